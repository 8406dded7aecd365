//! One agent: who it is and what it has. Its driver, its dispatch, its tools and its hooks borrow it.

pub(crate) mod background_tasks;
pub(crate) mod builder;
pub(crate) mod context_file;
pub(crate) mod delegation;
pub(crate) mod evidence;
mod file_sharing;
pub(crate) mod foreground;
pub(crate) mod fork_point;
mod held_mail;
pub(crate) mod hooks;
pub(crate) mod isolation;
pub(crate) mod lead_link;
pub(crate) mod listing;
pub(crate) mod member_frames;
pub(crate) mod member_processes;
pub(crate) mod name_lookup;
pub(crate) mod peers;
pub(crate) mod plan_instructions;
pub(crate) mod progress;
pub(crate) mod result_room;
pub(crate) mod session_place;
pub(crate) mod session_tasks;
pub(crate) mod shared;
pub(crate) mod skills;
pub(crate) mod slots;
pub(crate) mod stall;
pub(crate) mod task;
pub(crate) mod task_lists;
pub(crate) mod team;
pub(crate) mod team_view;
mod wait;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use centurion_config::agent_memory::AgentMemory;
use centurion_journal::JournalError;
use centurion_journal::transcript::Loaded;
use centurion_protocol::sdk::PermissionDenial;
use centurion_protocol::{Effort, RecordId, Thinking};
use centurion_tools::{Plan, ReadState, Todo, ToolError, Workspace};
use parking_lot::Mutex;

use crate::agent::builder::AGENT_TOOL;
use crate::agent::fork_point::{ForkPoint, KeptPrefixes};
use crate::agent::hooks::AgentHooks;
use crate::agent::isolation::AgentWorktree;
use crate::agent::result_room::ResultRoom;
use crate::agent::shared::Shared;
use crate::agent::skills::AgentSkills;
use crate::agent::slots::Slot;
use crate::agent::task::{Asker, Task};
use crate::definition::identity::Identity;
use crate::definition::request_settings::RequestSettings;
use crate::definition::resolve::Starter;
use crate::definition::rules::SessionMode;
use crate::definition::spec::BroughtHooks;
use crate::money::budget::Budget;
use crate::policy::permissions::Permissions;
use crate::toolset::servers::Servers;

/// An agent. The main agent is one like the others, without a task and a slot.
pub(crate) struct Agent {
    /// Weak, because the session owns its agents.
    pub(crate) shared: Weak<Shared>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) permissions: Arc<Permissions>,
    pub(crate) servers: Arc<Servers>,
    pub(crate) budget: Arc<Budget>,
    /// Its slot among those that run; the main agent needs none.
    pub(crate) slot: Option<Slot>,
    /// `None` for the main agent.
    pub(crate) task: Option<Arc<Task>>,
    /// The types of agents that it may start; `None` is all.
    pub(crate) startable: Option<String>,
    /// The workspace of its tools.
    pub(crate) workspace: Arc<Workspace>,
    /// Its worktree, if it works in one.
    pub(crate) isolation: Option<Arc<AgentWorktree>>,
    pub(crate) hooks: AgentHooks,
    /// The hooks of its own definition and skills, which bind its forks, too.
    pub(crate) brought_hooks: Vec<BroughtHooks>,
    /// The notes of earlier sessions, for the main agent and its forks.
    pub(crate) notes: Option<Arc<AgentMemory>>,
    requests: Mutex<AgentRequests>,
    /// Denials of the agents whose ends it was told of, until its own run ends.
    denials: Mutex<Vec<PermissionDenial>>,
    /// Report limit of each awaited agent, in bytes.
    report_room: AtomicUsize,
    /// The room in its conversation for results of the present calls.
    pub(crate) result_room: Mutex<ResultRoom>,
    /// The point that agents started by the present calls continue from.
    fork_point: Mutex<Option<Arc<ForkPoint>>>,
    kept_prefixes: Mutex<KeptPrefixes>,
    skills: AgentSkills,
}

/// The parts of one agent; see [`AgentBuilder::agent`](crate::agent::builder::AgentBuilder::agent).
pub(crate) struct AgentParts {
    pub(crate) identity: Arc<Identity>,
    pub(crate) permissions: Arc<Permissions>,
    pub(crate) servers: Arc<Servers>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) slot: Option<Slot>,
    pub(crate) task: Option<Arc<Task>>,
    pub(crate) startable: Option<String>,
    pub(crate) brought_hooks: Vec<BroughtHooks>,
    pub(crate) hooks: AgentHooks,
    /// The directory that its tools start in.
    pub(crate) cwd: PathBuf,
    /// Its worktree, if it works in one.
    pub(crate) isolation: Option<Arc<AgentWorktree>>,
    /// The files that it has read.
    pub(crate) read_state: ReadState,
    pub(crate) kept: KeptWork,
    pub(crate) notes: Option<Arc<AgentMemory>>,
    pub(crate) requests: AgentRequests,
    pub(crate) skills: AgentSkills,
}

/// The current request settings of an agent. The agents that it starts inherit them unless they ask for others.
#[derive(Clone, Debug)]
pub(crate) struct AgentRequests {
    /// The input of a person that it works on now; its hooks hear of it.
    prompt: Option<RecordId>,
    model: String,
    effort: Option<Effort>,
    thinking: Thinking,
}

impl AgentRequests {
    pub(crate) fn new(settings: &RequestSettings, prompt: Option<RecordId>) -> Self {
        Self {
            prompt,
            model: settings.model.clone(),
            effort: settings.effort,
            thinking: settings.thinking,
        }
    }
}

/// The conditions for an agent's tools, and for the agents that it can start.
#[derive(Clone, Copy)]
pub(crate) struct ToolScope<'a> {
    pub(crate) permissions: &'a Permissions,
    pub(crate) servers: &'a Arc<Servers>,
    pub(crate) startable: Option<&'a str>,
    pub(crate) is_main: bool,
}

impl Agent {
    pub(crate) fn new(shared: Weak<Shared>, workspace: Arc<Workspace>, parts: AgentParts) -> Self {
        Self {
            shared,
            identity: parts.identity,
            permissions: parts.permissions,
            servers: parts.servers,
            budget: parts.budget,
            slot: parts.slot,
            task: parts.task,
            startable: parts.startable,
            workspace,
            isolation: parts.isolation,
            hooks: parts.hooks,
            brought_hooks: parts.brought_hooks,
            notes: parts.notes,
            requests: Mutex::new(parts.requests),
            denials: Mutex::default(),
            report_room: AtomicUsize::new(usize::MAX),
            result_room: Mutex::default(),
            fork_point: Mutex::default(),
            kept_prefixes: Mutex::default(),
            skills: parts.skills,
        }
    }

    /// The session, for a tool that needs it.
    pub(crate) fn session(&self) -> Result<Arc<Shared>, ToolError> {
        self.shared.upgrade().ok_or_else(|| ToolError::failed("the session has ended"))
    }

    /// Tells people something about the agent that is no part of a conversation.
    pub(crate) fn inform(&self, level: &'static str, text: String) {
        if let Some(shared) = self.shared.upgrade() {
            shared.inform(self.identity.id.as_ref(), level, text);
        }
    }

    pub(crate) fn tool_scope(&self) -> ToolScope<'_> {
        ToolScope {
            permissions: &self.permissions,
            servers: &self.servers,
            startable: self.startable.as_deref(),
            is_main: self.identity.is_main(),
        }
    }

    /// The model that its requests ask for.
    pub(crate) fn model(&self) -> String {
        self.requests.lock().model.clone()
    }

    /// The values that an agent inherits when this one starts it in a directory.
    pub(crate) fn starter(&self, cwd: PathBuf) -> Starter {
        let requests = self.requests.lock().clone();
        Starter {
            model: requests.model,
            effort: requests.effort,
            thinking: requests.thinking,
            stance: self.permissions.stance(),
            depth: self.identity.depth,
            cwd,
        }
    }

    /// The input of a person that it works on.
    pub(crate) fn prompt(&self) -> Option<RecordId> {
        self.requests.lock().prompt
    }

    pub(crate) fn set_prompt(&self, prompt: Option<RecordId>) {
        self.requests.lock().prompt = prompt;
    }

    /// Notes what its requests ask for.
    pub(crate) fn note_settings(&self, settings: &RequestSettings) {
        let mut requests = self.requests.lock();
        if requests.model != settings.model {
            requests.model.clone_from(&settings.model);
        }
        requests.effort = settings.effort;
        requests.thinking = settings.thinking;
    }

    /// Sets what agents that the present calls start may continue from.
    pub(crate) fn set_fork_point(&self, point: Option<Arc<ForkPoint>>) {
        *self.fork_point.lock() = point;
    }

    /// Writes down what requests begin with, for forks of later processes; gives the digest of it.
    pub(crate) fn keep_prefix(&self, point: &ForkPoint) -> Result<String, JournalError> {
        self.kept_prefixes.lock().keep(point)
    }

    /// Forgets which beginnings of requests its transcript holds: it has another one.
    pub(crate) fn forget_prefixes(&self) {
        *self.kept_prefixes.lock() = KeptPrefixes::default();
    }

    pub(crate) fn fork_point(&self) -> Option<Arc<ForkPoint>> {
        self.fork_point.lock().clone()
    }

    /// Sets the report limit of each awaited agent.
    pub(crate) fn set_report_room(&self, bytes: usize) {
        self.report_room.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn report_room(&self) -> usize {
        self.report_room.load(Ordering::Relaxed)
    }

    /// Adds denials of an agent whose end it is told of.
    pub(crate) fn note_denials(&self, denials: Vec<PermissionDenial>) {
        self.denials.lock().extend(denials);
    }

    /// Takes the denials noted so far.
    pub(crate) fn take_denials(&self) -> Vec<PermissionDenial> {
        std::mem::take(&mut *self.denials.lock())
    }

    /// The agent as the one that asks for a run of another; `None` is the main agent.
    pub(crate) fn asker(&self) -> Option<Asker> {
        self.task.as_ref().map(|task| Asker { agent: task.id.clone(), run: task.run().id })
    }

    /// Tells whether it has the tool that starts agents.
    pub(crate) fn starts_agents(&self) -> bool {
        let Some(shared) = self.shared.upgrade() else { return false };
        let offer = shared.delegation.builder.offer(&self.permissions, &shared);
        let is_offered = !offer.names(std::iter::once(AGENT_TOOL)).is_empty();
        let view = self.task.as_ref().map(|task| &task.spec.tools);
        is_offered && view.is_none_or(|view| view.admits(AGENT_TOOL).is_ok())
    }

    /// Tells whether it is a member of a team whose plan the lead has to approve.
    pub(crate) fn plans_for_lead(&self) -> bool {
        let team = self.task.as_ref().and_then(|task| task.spec.team.as_ref());
        team.is_some_and(|team| team.must_plan)
    }

    /// Tells whether it can look into a file that another agent writes.
    pub(crate) fn can_read_files(&self) -> bool {
        if self.only_directs() {
            return false;
        }
        let has = |tool| {
            self.identity.is_main() || self.program_tools().iter().any(|it| it.name() == tool)
        };
        (has("Read") && self.permissions.is_offered("Read")) || has("Bash")
    }

    /// Tells whether it is the main agent of a session in which that one only directs others.
    fn only_directs(&self) -> bool {
        let mode = self.shared.upgrade().map(|shared| shared.delegation.rules.mode);
        self.identity.is_main() && mode == Some(SessionMode::Coordinator)
    }
}

/// The work of an agent as its record has it: what is to do, and by which plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptWork {
    pub(crate) todos: Vec<Todo>,
    pub(crate) plan: Plan,
}

impl KeptWork {
    pub(crate) fn take(loaded: &mut Loaded) -> Self {
        let todos = loaded.todos.take().and_then(|list| serde_json::from_value(list).ok());
        let proposed = loaded.proposed_plans.pop().map(|plan| plan.text);
        let plan = Plan { approved: loaded.plan.take(), proposed };
        Self { todos: todos.unwrap_or_default(), plan }
    }
}
