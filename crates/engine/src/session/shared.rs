//! What the agents of a session share, and the way to reach it from outside.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use centurion_config::agents::{ActiveAgent, ReadAgent};
use centurion_hooks::{HookSet, Registration, Scope};
use centurion_mcp::Connection;
use centurion_model::Model;
use centurion_permissions::Mode;
use centurion_protocol::sdk::{Event, EventBody, PermissionDenial, Status, System};
use centurion_protocol::{AgentId, Block, RecordId, SessionId, Thinking, Usage, World};
use centurion_tools::{Shells, StopError};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::background_tasks::{self, BackgroundTasks};
use crate::broker::{Answerer, Broker};
use crate::budget::Budget;
use crate::bulk_stop;
use crate::delegation::Delegation;
use crate::ledger::Ledger;
use crate::permissions::Permissions;
use crate::queue::{Item, Origin, Priority, Queue};
use crate::schedule::Schedules;
use crate::servers::{Servers, WithheldServer};
use crate::task::Stopper;

/// Somebody who watches.
pub trait View: Send + Sync {
    fn show(&self, event: &Event);

    /// A turn is over, and its result waits until agents in the background have ended.
    fn wait_for_agents(&self) {}
}

/// Shows nothing.
struct Unseen;

impl View for Unseen {
    fn show(&self, _: &Event) {}
}

/// What the agents of a session share.
pub(crate) struct Shared {
    pub(crate) id: SessionId,
    pub(crate) world: Arc<dyn World>,
    pub(crate) view: Arc<dyn View>,
    pub(crate) queue: Queue,
    pub(crate) broker: Arc<Broker>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) model: Model,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
    /// The main agent's.
    pub(crate) permissions: Arc<Permissions>,
    /// The main agent's.
    pub(crate) servers: Arc<Servers>,
    run: Mutex<RunState>,
    pub(crate) background: BackgroundTasks,
    /// The shells of all agents that have any.
    shells: Mutex<Vec<Weak<Shells>>>,
    /// What agents were not allowed to do whose end is yet to be told, by the id of those news.
    denials: Mutex<HashMap<RecordId, Vec<PermissionDenial>>>,
    /// The agents of the session.
    pub(crate) delegation: Delegation,
    /// What the main agent has set up for later; `None` where it cannot.
    pub(crate) schedules: Option<Schedules>,
    server_patience: Duration,
    /// What agents are told with whatever they are told next, by agent. It wakes nobody.
    whispers: Mutex<Vec<(Option<AgentId>, String)>>,
    /// Keeps the hooks of plugins and hosts in force.
    added_hooks: Mutex<Vec<Registration>>,
    /// What hooks named the session.
    title: Mutex<Option<String>>,
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
}

/// What a session is built from.
pub(crate) struct SharedParts {
    pub(crate) id: SessionId,
    pub(crate) world: Arc<dyn World>,
    pub(crate) view: Arc<dyn View>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) model: Model,
    pub(crate) permissions: Arc<Permissions>,
    pub(crate) servers: Arc<Servers>,
    pub(crate) server_patience: Duration,
    pub(crate) delegation: Delegation,
    pub(crate) schedules: Option<Schedules>,
}

impl Shared {
    pub(crate) fn new(parts: SharedParts) -> Self {
        Self {
            id: parts.id,
            world: parts.world,
            view: parts.view,
            queue: Queue::default(),
            broker: Arc::default(),
            budget: parts.budget,
            model: parts.model,
            ledger: Arc::default(),
            permissions: parts.permissions,
            servers: parts.servers,
            run: Mutex::default(),
            background: BackgroundTasks::default(),
            shells: Mutex::default(),
            denials: Mutex::default(),
            delegation: parts.delegation,
            schedules: parts.schedules,
            server_patience: parts.server_patience,
            whispers: Mutex::default(),
            added_hooks: Mutex::default(),
            title: Mutex::default(),
        }
    }

    /// The same session for a side question: it is not shown, no person can be asked and no agent started, but
    /// its usage is counted.
    pub(crate) fn aside(&self, permissions: Arc<Permissions>) -> Self {
        let aside = Self::new(SharedParts {
            id: self.id,
            world: Arc::clone(&self.world),
            view: Arc::new(Unseen),
            budget: self.budget.child(None),
            model: self.model.clone(),
            permissions,
            servers: Servers::none(),
            server_patience: Duration::ZERO,
            delegation: self.delegation.without_agents(),
            schedules: None,
        });
        Self { ledger: Arc::clone(&self.ledger), ..aside }
    }

    /// How long the first turn of an agent waits for servers that are not there yet.
    pub(crate) fn server_patience(&self) -> Duration {
        self.server_patience
    }

    pub(crate) fn title(&self) -> Option<String> {
        self.title.lock().clone()
    }

    pub(crate) fn set_title(&self, title: Option<String>) {
        *self.title.lock() = title;
    }

    /// Adds hooks for the rest of the session.
    pub(super) fn add_hooks(&self, set: HookSet) {
        let registration = self.delegation.builder.hooks.add(Scope::Session, set);
        let mut added = self.added_hooks.lock();
        added.push(registration);
    }

    /// Takes note of the shells of an agent, so that they can be ended from outside.
    pub(crate) fn note_shells(&self, shells: &Arc<Shells>) {
        let mut all = self.shells.lock();
        all.retain(|shells| shells.strong_count() > 0);
        all.push(Arc::downgrade(shells));
    }

    fn all_shells(&self) -> Vec<Arc<Shells>> {
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

    /// What the agent was not allowed to do whose end these news tell of.
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

    /// Shows an event under the id of its record.
    pub(crate) fn show_as(&self, uuid: RecordId, body: EventBody) {
        if matches!(body, EventBody::System(System::Init(_)) | EventBody::Result(_)) {
            background_tasks::tell(self);
        }
        self.view.show(&Event { body, session_id: self.id, uuid });
    }

    /// Tells an agent something with its next turn, without waking it; one that has ended is told of by what
    /// its parent hears.
    pub(crate) fn whisper(&self, agent: Option<AgentId>, text: String) {
        // Looked at under the lock that those take who end: nothing is left with an agent that is gone.
        let mut whispers = self.whispers.lock();
        whispers.push(self.heard_by_the_living(agent, text));
    }

    fn heard_by_the_living(
        &self,
        agent: Option<AgentId>,
        text: String,
    ) -> (Option<AgentId>, String) {
        let hears = self.living(agent.as_ref());
        let text = match agent.filter(|agent| hears.as_ref() != Some(agent)) {
            Some(gone) => format!("For agent {gone}, which has ended:\n{text}"),
            None => text,
        };
        (hears, text)
    }

    /// An agent has ended: what it was still to be told is told to its parent.
    pub(crate) fn pass_on_whispers(&self, gone: &AgentId) {
        let mut whispers = self.whispers.lock();
        let is_its = |(to, _): &mut (Option<AgentId>, String)| to.as_ref() == Some(gone);
        let left: Vec<_> = whispers.extract_if(.., is_its).collect();
        let passed = left.into_iter().map(|(to, text)| self.heard_by_the_living(to, text));
        whispers.extend(passed.collect::<Vec<_>>());
    }

    /// What an agent is to be told now.
    pub(crate) fn take_whispers(&self, agent: Option<&AgentId>) -> Vec<String> {
        let mut whispers = self.whispers.lock();
        let is_its = |(to, _): &mut (Option<AgentId>, String)| to.as_ref() == agent;
        whispers.extract_if(.., is_its).map(|(_, text)| text).collect()
    }

    pub(crate) fn show_mode(&self, mode: Mode) {
        let permission_mode = mode.to_string();
        self.show(EventBody::System(System::Status(Status { status: None, permission_mode })));
    }

    /// Adds what requests to a model consumed; returns what it cost.
    pub(crate) fn add_usage(&self, model: &str, usage: &Usage) -> f64 {
        let info = self.model.info(model);
        self.ledger.lock().add(model, &info, usage)
    }

    /// Marks the beginning of a run; what is returned cancels it.
    pub(super) fn begin_run(&self) -> CancellationToken {
        let cancel = CancellationToken::new();
        let mut run = self.run.lock();
        if std::mem::take(&mut run.interrupts_next) {
            cancel.cancel();
        }
        run.current = Some(cancel.clone());
        cancel
    }

    pub(super) fn end_run(&self) {
        self.run.lock().current = None;
    }

    pub(super) fn take_chosen_model(&self) -> Option<String> {
        self.run.lock().chosen_model.take()
    }

    pub(super) fn take_chosen_thinking(&self) -> Option<Thinking> {
        self.run.lock().chosen_thinking.take()
    }
}

/// A way to reach a running session from outside.
#[derive(Clone)]
pub struct Handle(pub(super) Arc<Shared>);

impl Handle {
    /// From now on questions go to `answerer`. Tools that need a person are offered only to a session that
    /// was opened with one.
    pub fn attach(&self, answerer: Arc<dyn Answerer>) {
        self.0.broker.attach(answerer);
    }

    /// Queues what a person says.
    pub fn submit(&self, id: RecordId, content: Vec<Block>) {
        self.submit_with(id, content, Priority::Next);
    }

    /// Queues what a person says, sooner or later than usual.
    pub fn submit_with(&self, id: RecordId, content: Vec<Block>, priority: Priority) {
        let origin = Origin::Person;
        self.0.queue.push(Item { id, priority, addressee: None, content, origin });
    }

    /// Tells the main agent something with its next turn, without waking it.
    pub fn remind(&self, text: String) {
        self.0.whisper(None, text);
    }

    /// Nothing more will be submitted: the session ends when all is done.
    pub fn close(&self) {
        self.0.queue.close();
    }

    /// Stops the run that is under way or about to begin; history stays valid. Returns what still waits.
    pub fn interrupt(&self) -> Vec<RecordId> {
        let waiting = self.0.queue.pending(None);
        let mut run = self.0.run.lock();
        match &run.current {
            Some(current) => current.cancel(),
            None => run.interrupts_next = !waiting.is_empty(),
        }
        drop(run);
        if self.0.delegation.rules.interrupt_ends_background {
            self.stop_agents();
        }
        waiting.into_iter().map(|item| item.id).collect()
    }

    /// Stops the run that is under way and every agent, and drops what waits: the session ends.
    pub fn stop(&self) {
        self.0.queue.abandon();
        for task in self.0.delegation.running() {
            task.stop(Stopper::Session);
        }
        self.interrupt();
    }

    /// Ends an agent or a shell in the background, whichever agent's; `Err` says why nothing was ended.
    pub async fn stop_task(&self, id: &str) -> Result<(), StopError> {
        if let Some(task) = self.0.delegation.find(id) {
            return if task.stop(Stopper::Person) { Ok(()) } else { Err(StopError::NotRunning) };
        }
        for shells in self.0.all_shells() {
            match shells.stop(id).await {
                Err(StopError::Unknown) => {}
                stopped => return stopped.map(drop),
            }
        }
        Err(StopError::Unknown)
    }

    /// Ends every agent in the background. The main agent is told once, of all of them.
    pub fn stop_agents(&self) -> usize {
        bulk_stop::stop_all(&self.0)
    }

    /// Lets every call that waits for an agent go on without it; how many did.
    pub fn background_agents(&self) -> usize {
        let running = self.0.delegation.running();
        running.iter().filter(|task| task.detach()).count()
    }

    /// Has a small model say now and then what agents in the background are doing, or no longer.
    pub fn summarise_agents(&self, is_wanted: bool) {
        self.0.delegation.summarise(is_wanted);
    }

    /// Whether a small model says what agents in the background are doing.
    pub fn summarises_agents(&self) -> bool {
        self.0.delegation.summarises()
    }

    /// Adds agents that a host brings.
    pub fn add_agents(&self, agents: Vec<ReadAgent>) {
        self.0.delegation.definitions.add(agents);
    }

    /// All agents that can be asked for.
    pub fn agents(&self) -> Vec<ActiveAgent> {
        let agents = self.0.delegation.definitions.agents();
        let is_shown = |agent: &&ActiveAgent| agent.definition.name.value != "fork";
        agents.active.iter().filter(is_shown).cloned().collect()
    }

    /// Adds hooks for the rest of the session.
    pub fn add_hooks(&self, set: HookSet) {
        self.0.add_hooks(set);
    }

    /// The servers of the main agent, each with whether it is switched on.
    pub fn servers(&self) -> Vec<(Connection, bool)> {
        self.0.servers.all()
    }

    /// The servers that are declared and were not started.
    pub fn withheld_servers(&self) -> Vec<WithheldServer> {
        self.0.servers.withheld()
    }

    /// Waits until every pattern names a server that is connected and has a tool. `Err` says which one does
    /// not, and why.
    pub async fn require_servers(
        &self,
        patterns: &[String],
        patience: Duration,
    ) -> Result<(), String> {
        self.0.servers.require(patterns, patience).await
    }

    /// The commands that the servers bring.
    pub fn commands(&self) -> Vec<String> {
        self.0.servers.commands()
    }

    /// Adds a server, in the place of one with the same name.
    pub fn add_server(&self, connection: Connection) {
        self.0.servers.add(connection);
    }

    /// Takes a server away; whether there was one.
    pub fn remove_server(&self, name: &str) -> bool {
        self.0.servers.remove(name)
    }

    /// Switches a server on or off; whether there is one.
    pub fn switch_server(&self, name: &str, is_on: bool) -> bool {
        self.0.servers.switch(name, is_on)
    }

    pub fn mode(&self) -> Mode {
        self.0.permissions.mode()
    }

    /// The full name of a model.
    pub fn resolve_model(&self, name: &str) -> String {
        self.0.model.resolve(name)
    }

    /// Changes how the model thinks from the next run on.
    pub fn set_thinking(&self, thinking: Thinking) {
        let mut run = self.0.run.lock();
        run.chosen_thinking = Some(thinking);
    }

    /// Changes the permission mode; `Err` says why not.
    pub fn set_mode(&self, mode: Mode) -> Result<(), &'static str> {
        self.0.permissions.set_mode(mode)?;
        self.0.show_mode(mode);
        Ok(())
    }

    /// Uses another model from the next run on, or the session's own; returns its full name.
    pub fn set_model(&self, name: Option<&str>) -> String {
        let full =
            name.map_or_else(|| self.0.model.name().to_owned(), |name| self.0.model.resolve(name));
        let mut run = self.0.run.lock();
        run.chosen_model = Some(full.clone());
        full
    }
}
