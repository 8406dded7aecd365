//! The shared services of a session.

use std::collections::HashMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Weak};

use centurion_hooks::{HookScope, HookSet, Registration};
use centurion_journal::JournalError;
use centurion_model::Model;
use centurion_permissions::Mode;
use centurion_protocol::sdk::{
    Event, EventBody, InitPlugins, PermissionDenial, RateLimit, Status, System,
};
use centurion_protocol::{AgentId, Effort, RecordId, ReportedUsage, SessionId, Thinking, World};
use centurion_team::LEAD;
use centurion_tools::Shells;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::agent::Agent;
use crate::agent::background_tasks::{self, BackgroundTasks};
use crate::agent::context_file::ContextFile;
use crate::agent::delegation::Delegation;
use crate::agent::fork_point::{ForkPoint, StartPoint};
use crate::agent::task::PostResult;
use crate::definition::rules::SessionMode;
use crate::message::mail::{self, Arrival, Mail};
use crate::message::queue::Queue;
use crate::money::budget::Budget;
use crate::money::usage::UsageTotals;
use crate::policy::broker::Broker;
use crate::policy::permissions::Permissions;
use crate::schedule::Schedules;
use crate::toolset::servers::{ServerPatience, Servers};

/// An observer of the session.
pub trait View: Send + Sync {
    fn show(&self, event: &Event);

    /// Tells whether it is shown when the session is at work, and when no result is undelivered any more.
    fn wants_state(&self) -> bool {
        false
    }

    /// A turn is over, and its result waits until agents in the background have ended.
    fn wait_for_agents(&self) {}

    /// Waits while too much is kept for a reader that does not read; `None` if there is room now. Agents wait
    /// before each request.
    fn wait_for_room(&self) -> Option<RoomFuture<'_>> {
        None
    }
}

pub type RoomFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Shows nothing.
pub(crate) struct SilentView;

impl View for SilentView {
    fn show(&self, _: &Event) {}
}

/// The shared services of a session.
pub(crate) struct Shared {
    pub(crate) world: Arc<dyn World>,
    pub(crate) view: Arc<dyn View>,
    pub(crate) queue: Queue,
    pub(crate) broker: Arc<Broker>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) model: Model,
    pub(crate) usage: SessionUsage,
    /// The main agent's.
    pub(crate) permissions: Arc<Permissions>,
    /// The main agent's.
    pub(crate) servers: Arc<Servers>,
    /// Every task that works for the session.
    pub(crate) work: TaskTracker,
    run: Mutex<RunState>,
    pub(crate) background: BackgroundTasks,
    /// The shells of all agents that have any.
    shells: Mutex<Vec<Weak<Shells>>>,
    /// Denied calls of agents whose end is yet to be told, by the id of that notification.
    denials: Mutex<HashMap<RecordId, Vec<PermissionDenial>>>,
    /// The agents of the session.
    pub(crate) delegation: Delegation,
    /// The schedules of the main agent; `None` where it cannot.
    pub(crate) schedules: Option<Schedules>,
    server_patience: ServerPatience,
    /// Notes that agents read with their next input, by agent. They wake no agent.
    side_notes: Mutex<Vec<(Option<AgentId>, String)>>,
    added: Mutex<Additions>,
}

/// The use that the agents of a session have made of their provider.
#[derive(Default)]
pub(crate) struct SessionUsage {
    pub(crate) totals: Arc<Mutex<UsageTotals>>,
    /// The limits of the provider that hosts know of.
    pub(crate) told_limit: Mutex<Option<RateLimit>>,
    /// The searches of the web of all agents.
    pub(crate) searches: AtomicU32,
}

/// Additions of plugins and hosts to a session.
#[derive(Default)]
struct Additions {
    /// Keeps the hooks of the host in force.
    hooks: Option<Registration>,
    /// Keeps the hooks of plugins in force.
    plugin_hooks: Vec<Registration>,
    /// Keeps the functions of the lead's host in force, in a member's process.
    leads_functions: Option<(Value, Registration)>,
    /// The plugins that are switched on, as hosts see them.
    plugins: InitPlugins,
}

#[derive(Default)]
struct RunState {
    /// Cancels the run that is under way.
    current: Option<CancellationToken>,
    /// An interrupt came when a run was due but had not begun.
    interrupts_next: bool,
    /// A model chosen while the session runs, for the next run.
    chosen_model: Option<String>,
    chosen_thinking: Option<Thinking>,
    /// An effort chosen while the session runs, for the next run.
    chosen_effort: Option<EffortChoice>,
    /// Directories that were added and whose instructions the main agent is told with its next input.
    new_directories: Vec<PathBuf>,
    /// The instruction files that the main agent's conversation begins with.
    context_files: Vec<ContextFile>,
    /// The title that hooks gave the session.
    title: Option<String>,
    /// The last point from which the main agent's conversation can continue.
    main_point: Option<Arc<ForkPoint>>,
    /// The content of the first request, until there is one.
    start: Option<Arc<StartPoint>>,
    /// Weak, because its driver owns it.
    main_agent: Weak<Agent>,
}

/// The effort of later requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EffortChoice {
    /// The model's own.
    Usual,
    Level(Effort),
}

impl EffortChoice {
    pub(crate) fn level(self) -> Option<Effort> {
        match self {
            Self::Usual => None,
            Self::Level(effort) => Some(effort),
        }
    }
}

/// The parts of a session.
pub(crate) struct SharedParts {
    pub(crate) world: Arc<dyn World>,
    pub(crate) view: Arc<dyn View>,
    pub(crate) queue: Queue,
    pub(crate) budget: Arc<Budget>,
    pub(crate) model: Model,
    pub(crate) permissions: Arc<Permissions>,
    pub(crate) servers: Arc<Servers>,
    pub(crate) server_patience: ServerPatience,
    pub(crate) delegation: Delegation,
    pub(crate) schedules: Option<Schedules>,
}

impl Shared {
    pub(crate) fn new(parts: SharedParts) -> Self {
        Self {
            world: parts.world,
            view: parts.view,
            queue: parts.queue,
            broker: Arc::default(),
            budget: parts.budget,
            model: parts.model,
            usage: SessionUsage::default(),
            permissions: parts.permissions,
            servers: parts.servers,
            work: TaskTracker::new(),
            run: Mutex::default(),
            background: BackgroundTasks::default(),
            shells: Mutex::default(),
            denials: Mutex::default(),
            delegation: parts.delegation,
            schedules: parts.schedules,
            server_patience: parts.server_patience,
            side_notes: Mutex::default(),
            added: Mutex::default(),
        }
    }

    /// The id of the session. A conversation that begins anew has another one.
    pub(crate) fn id(&self) -> SessionId {
        self.delegation.builder.files.place.id()
    }

    /// The same session for a side question: it is not shown, no person can be asked and no agent started, but
    /// its usage is counted.
    pub(crate) fn for_side_question(&self, permissions: Arc<Permissions>) -> Self {
        let aside = Self::new(SharedParts {
            world: Arc::clone(&self.world),
            view: Arc::new(SilentView),
            queue: Queue::default(),
            budget: self.budget.child(None),
            model: self.model.clone(),
            permissions,
            servers: Servers::none(),
            server_patience: ServerPatience::default(),
            delegation: self.delegation.without_agents(),
            schedules: None,
        });
        let usage =
            SessionUsage { totals: Arc::clone(&self.usage.totals), ..SessionUsage::default() };
        Self { usage, work: self.work.clone(), ..aside }
    }

    /// The longest wait of an agent's first turn for servers that are still connecting.
    pub(crate) fn server_patience(&self) -> ServerPatience {
        self.server_patience
    }

    /// Tells whether models have tools for schedules.
    pub(crate) fn lets_models_schedule(&self) -> bool {
        self.schedules.is_some() && self.delegation.rules.mode == SessionMode::Assistant
    }

    /// Keeps the main agent's conversation, for questions beside it.
    pub(crate) fn set_main_point(&self, point: ForkPoint) {
        let mut run = self.run.lock();
        run.main_point = Some(Arc::new(point));
        run.start = None;
    }

    pub(crate) fn set_start(&self, start: StartPoint) {
        self.run.lock().start = Some(Arc::new(start));
    }

    /// The main agent's conversation as it was last sent, or else as it will begin.
    pub(crate) fn sent_or_start(&self) -> (Option<Arc<ForkPoint>>, Option<Arc<StartPoint>>) {
        let run = self.run.lock();
        (run.main_point.clone(), run.start.clone())
    }

    /// The window of a model, as the user's rules have it.
    pub(crate) fn window_of(&self, model: &str) -> u64 {
        self.delegation.builder.context.window(&self.model.info(model))
    }

    pub(crate) fn main_point(&self) -> Option<Arc<ForkPoint>> {
        self.run.lock().main_point.clone()
    }

    /// The main agent, for as long as its driver lives.
    pub(crate) fn main_agent(&self) -> Option<Arc<Agent>> {
        self.run.lock().main_agent.upgrade()
    }

    /// Enters the main agent, as `Delegation::enter` does for the others.
    pub(crate) fn enter_main_agent(&self, agent: &Arc<Agent>) {
        self.run.lock().main_agent = Arc::downgrade(agent);
    }

    /// Accepts a message for the main agent: it is written down, and then put before it.
    pub(crate) fn post_to_main(&self, mail: &Mail) -> Result<PostResult, JournalError> {
        if mail::is_full(self.queue.mail_load(None)) {
            return Ok(PostResult::Full);
        }
        mail.accept(&self.delegation.builder.files.journal)?;
        self.note_team_mail(LEAD, mail);
        self.queue.push(mail.item(None, Arrival::AtWork));
        Ok(PostResult::Queued)
    }

    /// Shows other programs that a message was accepted for a member of the team or its lead.
    pub(crate) fn note_team_mail(&self, to: &str, mail: &Mail) {
        if let Some(view) = self.delegation.team.as_ref().and_then(|team| team.view()) {
            view.note(to, mail, self.world.now());
        }
    }

    pub(crate) fn title(&self) -> Option<String> {
        self.run.lock().title.clone()
    }

    pub(crate) fn set_title(&self, title: Option<String>) {
        self.run.lock().title = title;
    }

    /// Names the session from now on. A session that has not begun yet is named when it does.
    pub(crate) fn rename(&self, title: String) {
        self.set_title(Some(title));
        if self.delegation.builder.files.journal.has_begun() {
            self.record_title();
        }
    }

    /// Records the name of the session. A list of sessions reads only the two ends of a transcript.
    pub(crate) fn record_title(&self) {
        let Some(title) = self.title() else { return };
        // Nothing depends on it. A journal that cannot be written ends the run at the next record.
        if let Err(error) = self.delegation.builder.files.journal.note_title(&title) {
            tracing::error!(%error, "the name of the session could not be recorded");
        }
    }

    /// Puts the hooks of the host in the place of earlier ones.
    pub(crate) fn set_host_hooks(&self, set: HookSet) {
        let registration = self.delegation.builder.hooks.add(HookScope::Session, set);
        // The earlier ones go when these are in force: no event falls in between.
        let earlier = self.added.lock().hooks.replace(registration);
        drop(earlier);
    }

    /// In a member's process: puts the functions of the lead's host in the place of earlier ones.
    pub(crate) fn set_leads_functions(&self, functions: Option<&Value>) {
        let mut added = self.added.lock();
        if added.leads_functions.as_ref().map(|(known, _)| known) == functions {
            return;
        }
        added.leads_functions = functions.map(|functions| {
            let set = HookSet::from_host(functions);
            (functions.clone(), self.delegation.builder.hooks.add(HookScope::Session, set))
        });
    }

    /// Puts the hooks of plugins, and what hosts are told of these, in the place of earlier ones.
    pub(crate) fn set_plugins(&self, plugins: InitPlugins, hooks: Vec<HookSet>) {
        let add = |set| self.delegation.builder.hooks.add(HookScope::Session, set);
        let registered = hooks.into_iter().map(add).collect();
        let mut added = self.added.lock();
        added.plugins = plugins;
        // The earlier ones go when these are in force: no event falls in between.
        let earlier = std::mem::replace(&mut added.plugin_hooks, registered);
        drop(added);
        drop(earlier);
    }

    /// The plugins that are switched on, as hosts see them.
    pub(crate) fn plugins(&self) -> InitPlugins {
        self.added.lock().plugins.clone()
    }

    /// Takes note of the shells of an agent, so that they can be ended from outside.
    pub(crate) fn note_shells(&self, shells: &Arc<Shells>) {
        let mut all = self.shells.lock();
        all.retain(|shells| shells.strong_count() > 0);
        all.push(Arc::downgrade(shells));
    }

    /// The shells of all agents that have any.
    pub(crate) fn all_shells(&self) -> Vec<Arc<Shells>> {
        let all = self.shells.lock();
        all.iter().filter_map(Weak::upgrade).collect()
    }

    /// Keeps what an agent was not allowed to do until its end is told.
    pub(crate) fn keep_denials(&self, news: RecordId, denials: &[PermissionDenial]) {
        if !denials.is_empty() {
            let mut kept = self.denials.lock();
            kept.insert(news, denials.to_vec());
        }
    }

    /// The denied calls of the agent whose end this notification tells.
    pub(crate) fn take_denials(&self, news: RecordId) -> Vec<PermissionDenial> {
        let mut kept = self.denials.lock();
        kept.remove(&news).unwrap_or_default()
    }

    /// The agent, or the first of those above it that has not ended; `None` is the main agent.
    pub(crate) fn living(&self, agent: Option<&AgentId>) -> Option<AgentId> {
        let delegation = &self.delegation;
        let mut agent = agent.cloned();
        while let Some(id) = agent {
            let task = delegation.find(id.as_str())?;
            if task.is_running() {
                return Some(id);
            }
            agent = task.run().asker.map(|asker| asker.agent);
        }
        None
    }

    /// Shows an event that has no record.
    pub(crate) fn show(&self, body: EventBody) {
        self.show_as(self.world.record_id(), body);
    }

    /// Shows an event of a session that this one was before its conversation began anew.
    pub(crate) fn show_of(&self, session_id: SessionId, uuid: RecordId, body: EventBody) {
        self.view.show(&Event { body, session_id, uuid });
    }

    /// Shows an event under the id of its record.
    pub(crate) fn show_as(&self, uuid: RecordId, body: EventBody) {
        if matches!(body, EventBody::System(System::Init(_)) | EventBody::Result(_)) {
            background_tasks::tell(self);
        }
        self.view.show(&Event { body, session_id: self.id(), uuid });
    }

    /// Tells an agent something with its next turn, without waking it. If it has ended, the nearest agent up the
    /// line of askers that still runs is told instead.
    pub(crate) fn add_side_note(&self, agent: Option<AgentId>, text: String) {
        // Looked at under the lock that an ending agent takes: nothing is left with an agent that is gone.
        let mut side_notes = self.side_notes.lock();
        side_notes.push(self.deliver_side_note(agent, text));
    }

    fn deliver_side_note(&self, agent: Option<AgentId>, text: String) -> (Option<AgentId>, String) {
        let hears = self.living(agent.as_ref());
        let text = match agent.filter(|agent| hears.as_ref() != Some(agent)) {
            Some(gone) => format!("For agent {gone}, which has ended:\n{text}"),
            None => text,
        };
        (hears, text)
    }

    /// An agent has ended: what it was still to be told is told to its parent.
    pub(crate) fn pass_on_side_notes(&self, gone: &AgentId) {
        let mut side_notes = self.side_notes.lock();
        let is_its = |(to, _): &mut (Option<AgentId>, String)| to.as_ref() == Some(gone);
        let left: Vec<_> = side_notes.extract_if(.., is_its).collect();
        let passed = left.into_iter().map(|(to, text)| self.deliver_side_note(to, text));
        side_notes.extend(passed.collect::<Vec<_>>());
    }

    /// Takes the pending side notes of an agent.
    pub(crate) fn take_side_notes(&self, agent: Option<&AgentId>) -> Vec<String> {
        let mut side_notes = self.side_notes.lock();
        let is_its = |(to, _): &mut (Option<AgentId>, String)| to.as_ref() == agent;
        side_notes.extract_if(.., is_its).map(|(_, text)| text).collect()
    }

    pub(crate) fn show_mode(&self, mode: Mode) {
        let permission_mode = mode.to_string();
        self.show(EventBody::System(System::Status(Status {
            permission_mode: Some(permission_mode),
            ..Status::default()
        })));
    }

    /// Adds what requests to a model consumed; returns what it cost.
    pub(crate) fn add_usage(&self, model: &str, usage: &ReportedUsage) -> f64 {
        let info = self.model.info(model);
        if let Some(lead) = &self.delegation.lead {
            lead.tell_used(model, usage);
        }
        self.usage.totals.lock().add(model, &info, self.model.provider_kind(), usage)
    }

    /// Marks the beginning of a run; what is returned cancels it.
    pub(crate) fn begin_run(&self) -> CancellationToken {
        let cancel = CancellationToken::new();
        let mut run = self.run.lock();
        if std::mem::take(&mut run.interrupts_next) {
            cancel.cancel();
        }
        run.current = Some(cancel.clone());
        cancel
    }

    /// Tells whether the main agent is at work.
    pub(crate) fn is_running(&self) -> bool {
        self.run.lock().current.is_some()
    }

    pub(crate) fn end_run(&self) {
        self.run.lock().current = None;
    }

    /// Cancels the run that is under way or else, where one `is_due`, the next.
    pub(crate) fn interrupt_run(&self, is_due: bool) {
        let mut run = self.run.lock();
        match &run.current {
            Some(current) => current.cancel(),
            None => run.interrupts_next = is_due,
        }
    }

    pub(crate) fn choose_model(&self, model: String) {
        self.run.lock().chosen_model = Some(model);
    }

    pub(crate) fn choose_thinking(&self, thinking: Thinking) {
        self.run.lock().chosen_thinking = Some(thinking);
    }

    pub(crate) fn choose_effort(&self, effort: EffortChoice) {
        self.run.lock().chosen_effort = Some(effort);
    }

    /// The model and the effort that were chosen for the next run.
    pub(crate) fn chosen(&self) -> (Option<String>, Option<EffortChoice>) {
        let run = self.run.lock();
        (run.chosen_model.clone(), run.chosen_effort)
    }

    pub(crate) fn set_context_files(&self, files: Vec<ContextFile>) {
        self.run.lock().context_files = files;
    }

    pub(crate) fn context_files(&self) -> Vec<ContextFile> {
        self.run.lock().context_files.clone()
    }

    pub(crate) fn note_new_directory(&self, directory: PathBuf) {
        self.run.lock().new_directories.push(directory);
    }

    pub(crate) fn take_new_directories(&self) -> Vec<PathBuf> {
        std::mem::take(&mut self.run.lock().new_directories)
    }

    pub(crate) fn take_chosen_effort(&self) -> Option<EffortChoice> {
        self.run.lock().chosen_effort.take()
    }

    pub(crate) fn take_chosen_model(&self) -> Option<String> {
        self.run.lock().chosen_model.take()
    }

    pub(crate) fn take_chosen_thinking(&self) -> Option<Thinking> {
        self.run.lock().chosen_thinking.take()
    }
}
