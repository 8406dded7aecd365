//! What the agents of a session share to start, find and reach each other.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use centurion_permissions::Mode;
use centurion_protocol::AgentId;
use centurion_protocol::sdk::SubagentStats;
use indexmap::IndexMap;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;

use crate::agent_tool::LastListing;
use crate::builder::AgentBuilder;
use crate::definitions::Definitions;
use crate::limits::{Limits, SpawnGate};
use crate::places::Places;
use crate::task::Task;

/// How the main agent works with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionMode {
    #[default]
    Normal,
    /// It does nothing itself: it starts agents, which all run in the background.
    Coordinator,
    /// It never waits, so that a person can always speak to it.
    Assistant,
    /// It acts without being asked, and waits for nobody.
    Proactive,
}

/// What the user chose about agents that others start.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct DelegationRules {
    pub limits: Limits,
    /// Models for types of agents.
    pub models: IndexMap<String, String>,
    /// The model of agents that name none.
    pub subagent_model: Option<String>,
    /// The permission mode of agents that name none; `None` is that of the agent that starts them.
    pub child_mode: Option<Mode>,
    /// Whether agents run in the background unless somebody wants to wait.
    pub background: bool,
    /// Whether nothing at all runs in the background.
    pub background_is_off: bool,
    /// After how long a call that waits for an agent stops waiting.
    pub auto_background: Option<Duration>,
    /// How long an agent in the background may be silent; `None` is for ever.
    pub stall: Option<Duration>,
    /// How long a finished session waits for agents in the background; `None` is for ever.
    pub wait: Option<Duration>,
    pub mode: SessionMode,
    /// Whether an interrupt also ends agents in the background.
    pub interrupt_ends_background: bool,
    /// Whether the effort of the session holds for all agents, whatever they ask for.
    pub effort_is_fixed: bool,
    /// Whether hosts see what agents in the foreground say and think.
    pub forwards_text: bool,
    /// Added to the system prompt of every agent that another one starts.
    pub append_prompt: Option<String>,
    /// Whether a small model says now and then what agents in the background are doing.
    pub summaries: bool,
}

impl Default for DelegationRules {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            models: IndexMap::new(),
            subagent_model: None,
            child_mode: None,
            background: false,
            background_is_off: false,
            auto_background: None,
            stall: Some(Duration::from_mins(10)),
            wait: Some(Duration::from_mins(10)),
            mode: SessionMode::Normal,
            interrupt_ends_background: false,
            effort_is_fixed: false,
            forwards_text: false,
            append_prompt: None,
            summaries: false,
        }
    }
}

/// Everything about the agents of one session.
pub(crate) struct Delegation {
    pub(crate) rules: DelegationRules,
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) builder: Arc<AgentBuilder>,
    pub(crate) places: Arc<Places>,
    pub(crate) gate: SpawnGate,
    /// What models were last told about the agents that there are.
    pub(crate) listing: LastListing,
    /// Held by those who still have something to tell about agents that have ended.
    telling: Arc<()>,
    /// Whether somebody wants to know what agents in the background are doing.
    summarises: AtomicBool,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    tasks: IndexMap<AgentId, Arc<Task>>,
    /// Who answers to a name: the last one that was given it.
    names: HashMap<String, AgentId>,
    stats: SubagentStats,
}

impl Delegation {
    pub(crate) fn new(
        rules: DelegationRules,
        definitions: Arc<Definitions>,
        builder: Arc<AgentBuilder>,
    ) -> Self {
        Self {
            places: Places::new(rules.limits.running),
            gate: SpawnGate::new(&rules.limits),
            summarises: AtomicBool::new(rules.summaries),
            rules,
            definitions,
            builder,
            listing: LastListing::default(),
            telling: Arc::default(),
            table: Mutex::default(),
        }
    }

    /// The same for a side question, in which no agent can be started.
    pub(crate) fn without_agents(&self) -> Self {
        let limits = Limits { depth: 0, ..self.rules.limits.clone() };
        let rules = DelegationRules { limits, ..self.rules.clone() };
        Self::new(rules, Arc::clone(&self.definitions), Arc::clone(&self.builder))
    }

    pub(crate) fn summarises(&self) -> bool {
        self.summarises.load(Ordering::Relaxed)
    }

    pub(crate) fn summarise(&self, is_wanted: bool) {
        self.summarises.store(is_wanted, Ordering::Relaxed);
    }

    /// What is returned says, as long as it is held, that something will be told.
    pub(crate) fn will_tell(&self) -> Arc<()> {
        Arc::clone(&self.telling)
    }

    /// Whether something will be told, although nobody may be running.
    pub(crate) fn is_telling(&self) -> bool {
        Arc::strong_count(&self.telling) > 1
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }

    /// Takes a new agent into the table.
    pub(crate) fn enter(&self, task: &Arc<Task>) {
        let mut table = self.table();
        if let Some(name) = &task.identity.name {
            table.names.insert(name.clone(), task.id.clone());
        }
        table.tasks.insert(task.id.clone(), Arc::clone(task));
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<Task>> {
        let table = self.table();
        let id = table.names.get(id).cloned().unwrap_or_else(|| AgentId::new(id));
        table.tasks.get(&id).cloned()
    }

    /// All agents of this process, in the order of their start.
    pub(crate) fn tasks(&self) -> Vec<Arc<Task>> {
        self.table().tasks.values().cloned().collect()
    }

    pub(crate) fn running(&self) -> Vec<Arc<Task>> {
        self.tasks().into_iter().filter(|task| task.is_running()).collect()
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut SubagentStats)) {
        count(&mut self.table().stats);
    }

    pub(crate) fn stats(&self) -> SubagentStats {
        self.table().stats.clone()
    }
}
