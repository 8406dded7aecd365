//! The one spawn: every agent that another one starts or resumes begins here.
//!
//! An agent is a task of this process with a handle from its first moment. Whether a call waits for it is the
//! waiter's affair.

mod life;
mod member_process;
mod member_run;
mod meta;
mod relay;
mod resume;
mod worktree;

use std::any::Any;
use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use centurion_config::agent_memory::AgentMemory;
use centurion_hooks::{HookScope, Registration};
use centurion_mcp::Connection;
use centurion_model::SystemPrompt;
use centurion_permissions::{Role, Rule, RuleError, RuleOrigin};
use centurion_protocol::markup::contain;
use centurion_protocol::{AgentId, Block, ToolUseId};
use centurion_team::LEAD;
use centurion_tools::ReadState;
use serde::Serialize;
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent::builder::{BroughtServers, ServersError};
use crate::agent::delegation::Delegation;
use crate::agent::fork_point::{Inheritance, InheritedPart};
use crate::agent::hooks::reminder;
use crate::agent::isolation::entered::EnteredPlace;
use crate::agent::isolation::{self, AgentWorktree, IsolationError, WorktreeEnd};
use crate::agent::shared::Shared;
use crate::agent::skills::AgentSkills;
use crate::agent::task::{Asker, End, Files, RunStart, Task, TaskRun};
use crate::agent::{Agent, AgentParts, AgentRequests, KeptWork};
use crate::definition::builtin;
use crate::definition::request_settings::RequestSettings;
use crate::definition::spec::{AgentSpec, BroughtHooks};
use crate::delegate::build::DriverParts;
use crate::delegate::inherit::InheritError;
use crate::delegate::notification;
use crate::delegate::powers::Powers;
use crate::delegate::preload::hook_set;
use crate::message::life_records::SPAWN;
use crate::message::manner::Manner;
use crate::message::queue::{Item, Origin, Priority};
use crate::message::teammate_message::TeammateMessage;
use crate::money::budget::{Account, Amount};
use crate::toolset::servers::Servers;
use crate::toolset::structured::{SchemaError, StructuredOutput};
use crate::toolset::toolbox::ToolboxError;
use crate::turn::driver::{Driver, EarlierState, Run};
use centurion_journal::transcript::Loaded;
use centurion_journal::{Journal, JournalError, Stamp};

pub(crate) use self::member_process::carry_out;
use self::meta::write_meta;
pub(crate) use self::resume::resume;

/// The reason why an agent could not be started or resumed.
#[derive(Debug, Error)]
pub(crate) enum SpawnError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Tools(#[from] ToolboxError),
    #[error("a rule of its definition cannot be read: {0}")]
    Rule(#[from] RuleError),
    #[error("its output schema cannot be used: {0}")]
    Schema(#[from] SchemaError),
    #[error(transparent)]
    Servers(#[from] ServersError),
    #[error(transparent)]
    Inherit(#[from] InheritError),
    #[error("it cannot work where it did: {0}")]
    Isolation(#[from] IsolationError),
    #[error("the agent is at work already")]
    AtWork,
    #[error("a fault of the program: {0}")]
    Fault(String),
}

/// The channel on which a waiting call gets the end of an agent.
pub(crate) type EndSender = oneshot::Receiver<Arc<End>>;

/// A launch of an agent.
pub(crate) struct Launch {
    pub(crate) id: AgentId,
    /// The worktree that it works in: one that was made for it, or in that of its caller.
    pub(crate) worktree: Option<Arc<AgentWorktree>>,
    /// True if that was made for it.
    pub(crate) is_apart: bool,
    pub(crate) spec: Arc<AgentSpec>,
    pub(crate) powers: Powers,
    pub(crate) prompt: String,
    pub(crate) initial_prompt: Option<String>,
    /// Parts of the definition that are not in force, with the reasons.
    pub(crate) problems: Vec<String>,
    /// The servers that it has beside its parent's.
    pub(crate) servers: BroughtServers,
    pub(crate) structured: Option<StructuredOutput>,
    pub(crate) call: ToolUseId,
    pub(crate) read_state: ReadState,
    /// The texts of skills that it knows from the start.
    pub(crate) skills: Vec<String>,
    /// The conversation that it begins with.
    pub(crate) inherited: Option<Inheritance>,
    /// Rules by which it need not ask, beside those of the session.
    pub(crate) allow: Vec<Rule>,
}

/// The record of a start.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpawnNote<'a> {
    agent_id: &'a AgentId,
    run: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    asker: Option<Asker>,
    prompt: String,
    spec: Cow<'a, AgentSpec>,
}

/// An agent that is about to run.
struct Child {
    shared: Arc<Shared>,
    task: Arc<Task>,
    driver: Driver,
    agent: Arc<Agent>,
    /// Keeps its own hooks in force.
    hooks: Vec<Registration>,
    /// Servers that end with it.
    servers: Vec<Connection>,
    items: Vec<Item>,
    /// Parts of its definition that are not in force, with the reasons.
    problems: Vec<String>,
    /// The state of this run.
    run: Run,
    /// True if it is at work in its worktree, if it has one, and how it left that.
    is_inside: bool,
    worktree_end: Option<WorktreeEnd>,
    /// A worktree that it had entered when it ended.
    goes_back_to: Option<EnteredPlace>,
    beginning: RunStart,
    /// True if hooks know that it began.
    has_begun: bool,
    has_ended: bool,
}

/// Starts an agent. The receiver gets its end, where a call is to wait for it.
pub(crate) fn spawn(
    shared: &Arc<Shared>,
    parent: &Agent,
    launch: Launch,
) -> Result<(Arc<Task>, Option<EndSender>), SpawnError> {
    let made = launch.worktree.clone().filter(|_| launch.is_apart);
    let started = start(shared, parent, launch);
    if started.is_err()
        && let Some(worktree) = made
    {
        let session = Arc::clone(shared);
        shared.work.spawn(async move {
            session.delegation.builder.isolator.discard(&worktree).await;
        });
    }
    started
}

fn start(
    shared: &Arc<Shared>,
    parent: &Agent,
    launch: Launch,
) -> Result<(Arc<Task>, Option<EndSender>), SpawnError> {
    let delegation = &shared.delegation;
    let id = launch.id;
    let run = new_run(shared, parent, launch.call.clone(), launch.prompt.clone());
    let files = agent_files(delegation, &id);
    let journal = Arc::new(Journal::new(
        files.transcript.clone(),
        stamp(delegation, &launch.spec, &id),
        Arc::clone(&shared.world),
        delegation.builder.files.recording.clone(),
    ));
    let account = Account::new(delegation.rules.limits.budget, Amount::default());
    let (spec, to) = (Arc::clone(&launch.spec), Arc::clone(&journal));
    let inherited = launch.inherited;
    let task = Task::new(id.clone(), spec, inherited.clone(), files, account, run, to);
    let conversation = inherited.as_ref().map(|it| it.point.prefix.conversation.clone());
    let start = ChildParts {
        loaded: Loaded {
            conversation: conversation.unwrap_or_default(),
            counted: inherited.as_ref().and_then(Inheritance::counted),
            ..Loaded::default()
        },
        inherited,
        read_state: launch.read_state,
        servers: launch.servers,
        structured: launch.structured,
        powers: launch.powers,
        parent_servers: Some(Arc::clone(&parent.servers)),
        journal,
        allow: launch.allow,
        worktree: launch.worktree,
    };
    let mut child = Child::new(shared, delegation, &task, start, parent)?;
    // Nothing can fail any more: what has a beginning will have an end.
    let TaskRun { id: run, asker, prompt, .. } = task.run();
    let note = SpawnNote { agent_id: &id, run, asker, prompt, spec: launch.spec.for_record() };
    child.driver.journal.note(SPAWN, &note)?;
    child.driver.journal.rest();
    child.problems = launch.problems;
    child.is_inside = launch.is_apart;
    let context = &mut child.driver.preamble.context;
    context.extend(launch.skills);
    context.extend(launch.spec.reminder.iter().map(|text| reminder(text)));
    if let Some(worktree) = launch.spec.worktree.as_ref().filter(|_| !launch.spec.is_fork()) {
        context.push(reminder(&isolation::notice(worktree)));
    }
    child.items = first_items(shared, &task, launch.initial_prompt, &launch.prompt);
    Ok(begin(delegation, task, child, launch.spec.in_background))
}

fn begin(
    delegation: &Delegation,
    task: Arc<Task>,
    mut child: Child,
    in_background: bool,
) -> (Arc<Task>, Option<EndSender>) {
    let end = (!in_background).then(|| task.await_end());
    child.shared.queue.listen(&task.id);
    delegation.enter(&task);
    // Its start is recorded, so that it gets an end even after a panic.
    let shown = catch_unwind(AssertUnwindSafe(|| child.show_beginning()));
    if let Err(panic) = shown {
        child.fail(&*panic);
    }
    let (kind, run) = (&task.spec.agent_type, task.run().id);
    tracing::debug!(agent = %task.id, kind, run, depth = task.spec.depth, in_background, "an agent begins");
    let shared = Arc::clone(&child.shared);
    shared.work.spawn(child.live());
    (task, end)
}

/// The request settings of an agent.
fn request_settings(spec: &AgentSpec, session: &RequestSettings) -> RequestSettings {
    RequestSettings {
        model: spec.model.clone(),
        effort: spec.effort,
        thinking: spec.thinking,
        max_turns: spec.max_turns,
        partial_messages: false,
        ..session.clone()
    }
}

/// The parts of a child at its start.
struct ChildParts {
    loaded: Loaded,
    /// The conversation of another agent that it begins with.
    inherited: Option<Inheritance>,
    read_state: ReadState,
    servers: BroughtServers,
    structured: Option<StructuredOutput>,
    powers: Powers,
    /// `None` for the main agent's.
    parent_servers: Option<Arc<Servers>>,
    journal: Arc<Journal>,
    /// Rules by which it need not ask.
    allow: Vec<Rule>,
    worktree: Option<Arc<AgentWorktree>>,
}

/// The role of an agent, beside the rules that bind all.
fn role(spec: &AgentSpec, start: &mut ChildParts, parent: &Agent) -> Result<Role, SpawnError> {
    let only = spec.only.iter().map(|text| Rule::parse(text, RuleOrigin::Session));
    let only = only.collect::<Result<Vec<_>, _>>()?;
    Ok(Role {
        only: only.into_iter().collect(),
        allow: std::mem::take(&mut start.allow).into_iter().collect(),
        deny: parent.denied_by_skills().into_iter().collect(),
        memory: start.powers.memory.take(),
        apart: worktree::apart(start.worktree.as_deref(), parent),
        // Earlier records do not say it.
        only_reads: spec.only_reads || builtin::is_scout(&spec.source, &spec.agent_type),
    })
}

/// The notes of the main agent, which a fork of it has, too.
fn main_notes(shared: &Shared, spec: &AgentSpec) -> Option<Arc<AgentMemory>> {
    shared.main_agent().filter(|_| spec.depth == 1)?.notes.clone()
}

impl Child {
    fn new(
        shared: &Arc<Shared>,
        delegation: &Delegation,
        task: &Arc<Task>,
        mut start: ChildParts,
        parent: &Agent,
    ) -> Result<Self, SpawnError> {
        let (spec, builder) = (&task.spec, &delegation.builder);
        let role = role(spec, &mut start, parent)?;
        let permissions = Arc::new(parent.permissions.child(role, start.powers.own_mode));
        let parents = start.parent_servers.unwrap_or_else(|| Arc::clone(&shared.servers));
        let fork = start.inherited.as_ref().filter(|it| it.what == InheritedPart::All);
        let view = fork.map_or_else(|| spec.tools.own(), |fork| fork.point.tool_view());
        let settings = request_settings(spec, &builder.settings);
        let earlier = EarlierState::take(&mut start.loaded);
        let kept = KeptWork::take(&mut start.loaded);
        let agent = builder.agent(
            shared,
            AgentParts {
                requests: AgentRequests::new(&settings, parent.prompt()),
                skills: AgentSkills::new(
                    builder.program_tools(shared, &permissions, &view),
                    &start.loaded.told_skills,
                    parent.denied_by_skills(),
                ),
                identity: Arc::clone(&task.identity),
                permissions,
                servers: match fork {
                    Some(fork) => parents.fork(&fork.point.prefix.tools),
                    None => with_own(&parents, &start.servers),
                },
                budget: parent.budget.with(&task.account),
                slot: Some(delegation.slots.slot().until(task.run().cancel)),
                task: Some(Arc::clone(task)),
                // `Agent(a, b)` limits what the main agent and its forks start; elsewhere it only says that it may.
                startable: spec.startable.clone(),
                brought_hooks: start.powers.hooks.clone(),
                hooks: builder.agent_hooks(spec.effort),
                cwd: spec.cwd.clone(),
                isolation: start.worktree,
                read_state: start.read_state,
                kept,
                notes: fork.and_then(|_| main_notes(shared, spec)),
            },
        );
        let hooks = register_hooks(shared, task, &start.powers.hooks);
        let parts = DriverParts {
            view,
            system: match fork {
                Some(fork) => fork.point.prefix.system.clone(),
                None => SystemPrompt::new(spec.system.clone()),
            },
            settings,
            journal: start.journal,
            conversation: start.loaded.conversation,
            earlier,
            structured: start.structured,
            fixed_tools: fork.map(|fork| fork.point.prefix.tools.clone()),
            instructions: spec.instructions,
            notes_section: None,
            tells_notes_aside: false,
            context: Vec::new(),
        };
        let has_begun = start.loaded.last.is_some();
        let mut driver = builder.driver(shared, agent, parts)?;
        if let Some(inherited) = start.inherited {
            inherited.set_up(&mut driver, has_begun);
        }
        let beginning = if has_begun { RunStart::Resumed } else { RunStart::First };
        Ok(Self::of_driver(shared, task, driver, hooks, start.servers.own, beginning))
    }

    fn of_driver(
        shared: &Arc<Shared>,
        task: &Arc<Task>,
        driver: Driver,
        hooks: Vec<Registration>,
        servers: Vec<Connection>,
        beginning: RunStart,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            task: Arc::clone(task),
            agent: Arc::clone(&driver.dispatch.agent),
            driver,
            hooks,
            servers,
            items: Vec::new(),
            problems: Vec::new(),
            run: Run::new(),
            is_inside: false,
            worktree_end: None,
            goes_back_to: None,
            beginning,
            has_begun: false,
            has_ended: false,
        }
    }

    /// Shows observers that it begins, and what it has to do without.
    fn show_beginning(&self) {
        write_meta(&self.shared, &self.task, None);
        notification::show_started(&self.shared, &self.task, self.beginning);
        let kind = &self.task.spec.agent_type;
        let unconfined = self.agent.isolation.as_ref().and_then(|it| it.unconfined());
        for problem in self.problems.iter().chain(&unconfined) {
            self.agent.inform("warning", format!("agent {kind}: {problem}"));
        }
    }
}

/// The message of a panic.
pub(crate) fn panic_words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let words = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    words.unwrap_or("it did not say why").to_owned()
}

fn new_run(shared: &Shared, asker: &Agent, call: ToolUseId, prompt: String) -> TaskRun {
    TaskRun {
        id: format!("{:016x}", shared.world.random()),
        call,
        asker: asker.asker(),
        prompt,
        cancel: CancellationToken::new(),
        started: Instant::now(),
    }
}

/// The paths of an agent's transcript and output. An agent that is known keeps its own.
pub(crate) fn agent_files(delegation: &Delegation, id: &AgentId) -> Files {
    if let Some(task) = delegation.find(id.as_str()) {
        let (transcript, output) = (task.transcript.clone(), task.output.path().to_owned());
        return Files { transcript, output };
    }
    let builder = &delegation.builder;
    Files {
        transcript: builder.files.place.agents_dir().join(format!("agent-{id}.jsonl")),
        output: builder.files.output_dir.join("tasks").join(format!("{id}.output")),
    }
}

fn stamp(delegation: &Delegation, spec: &AgentSpec, id: &AgentId) -> Stamp {
    Stamp {
        agent: Some(id.clone()),
        cwd: spec.cwd.display().to_string(),
        ..delegation.builder.stamp()
    }
}

/// The first items of an agent: words of an agent and of a definition, in which nothing passes for our markup.
fn first_items(
    shared: &Shared,
    task: &Task,
    initial_prompt: Option<String>,
    prompt: &str,
) -> Vec<Item> {
    let item = |text: String, origin| Item {
        id: shared.world.record_id(),
        priority: Priority::Next,
        addressee: Some(task.id.clone()),
        content: vec![Block::Text(contain(&text).into_owned())],
        origin,
        manner: Manner::default(),
    };
    if task.spec.is_fork() {
        let mut text = format!("FORK_DIRECTIVE: {prompt}");
        if let Some(worktree) = &task.spec.worktree {
            text = format!("{text}\n\n{}", isolation::notice(worktree));
        }
        return vec![item(text, Origin::Delegation)];
    }
    if task.spec.team.is_some() {
        return vec![first_mail(shared, task, initial_prompt, prompt)];
    }
    match initial_prompt {
        // A command stands alone, so that it can be replaced by what it means.
        Some(initial) if initial.trim_start().starts_with('/') => {
            vec![item(initial, Origin::Initial), item(prompt.to_owned(), Origin::Delegation)]
        }
        Some(initial) => vec![item(format!("{initial}\n\n{prompt}"), Origin::Delegation)],
        None => vec![item(prompt.to_owned(), Origin::Delegation)],
    }
}

/// The first mail of a team member: its lead speaks to it, as it does later.
fn first_mail(shared: &Shared, task: &Task, initial: Option<String>, prompt: &str) -> Item {
    let text = match initial {
        Some(initial) => format!("{initial}\n\n{prompt}"),
        None => prompt.to_owned(),
    };
    let summary = Some(task.spec.description.as_str());
    let message = TeammateMessage { from: LEAD, color: None, summary, text: &text };
    Item {
        id: shared.world.record_id(),
        priority: Priority::Next,
        addressee: Some(task.id.clone()),
        content: vec![Block::Text(message.words(false))],
        origin: Origin::Delegation,
        manner: Manner::default(),
    }
}

/// The servers of the agent: its parent's, replaced by the definition's where the names are the same.
/// What the definition only names is the parent's already, unless another agent than the parent has it.
fn with_own(inherited: &Arc<Servers>, brought: &BroughtServers) -> Arc<Servers> {
    let is_inherited = |it: &Connection| {
        let is_own = brought.own.iter().any(|own| own.name() == it.name());
        !is_own && inherited.find(it.name()).is_some()
    };
    inherited.child(brought.all.iter().filter(|it| !is_inherited(it)).cloned().collect())
}

/// Puts the hooks of the agent's own definition in force, for as long as the result is held.
fn register_hooks(shared: &Shared, task: &Task, brought: &[BroughtHooks]) -> Vec<Registration> {
    let register = |brought| {
        let set = hook_set(shared, Some(&task.id), &task.spec.agent_type, brought).as_subagent();
        shared.delegation.builder.hooks.add(HookScope::Agent(Some(task.id.clone())), set)
    };
    brought.iter().map(register).collect()
}
