//! The shared state by which the agents of a session start, find and reach each other.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use centurion_protocol::AgentId;
use centurion_protocol::sdk::SubagentStats;
use indexmap::IndexMap;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::agent::builder::AgentBuilder;
use crate::agent::foreground::Foreground;
use crate::agent::lead_link::LeadLink;
use crate::agent::listing::LastListing;
use crate::agent::member_processes::MemberProcesses;
use crate::agent::peers::Peers;
use crate::agent::plan_instructions::PlanInstructions;
use crate::agent::session_tasks::SessionTasks;
use crate::agent::slots::Slots;
use crate::agent::task::Task;
use crate::agent::task_lists::TaskLists;
use crate::agent::team::Team;
use crate::definition::definitions::Definitions;
use crate::definition::limits::{Limits, SpawnGate};
use crate::definition::rules::DelegationRules;
use crate::money::budget::Account;
use crate::policy::tool_aliases::ToolAliases;

/// The most ended agents that are kept in memory. Earlier ones are read from their
/// transcripts when a message reaches them.
const MOST_ENDED: usize = 500;
/// The surplus that may be kept before it is dropped: dropping them together is cheaper than one by one.
const SURPLUS: usize = MOST_ENDED / 10;

/// Everything about the agents of one session.
pub(crate) struct Delegation {
    pub(crate) rules: DelegationRules,
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) builder: Arc<AgentBuilder>,
    /// The shared task lists; `None` where agents keep lists of their own.
    pub(crate) task_lists: Option<TaskLists>,
    /// The team of the session; `None` where teams are off.
    pub(crate) team: Option<Arc<Team>>,
    /// The processes of members; `None` where members are agents of this process.
    pub(crate) member_processes: Option<Arc<MemberProcesses>>,
    /// The way to the lead, if this process is that of a member.
    pub(crate) lead: Option<Arc<LeadLink>>,
    /// The user's other sessions; `None` where this one knows of none.
    pub(crate) peers: Option<Arc<Peers>>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) gate: SpawnGate,
    /// The host's instructions for planning.
    pub(crate) plan: PlanInstructions,
    /// The names of tools that the host redirects.
    pub(crate) aliases: ToolAliases,
    /// The last listing of agents that models were told.
    pub(crate) listing: LastListing,
    /// The agents that a person has the main agent wait for.
    pub(crate) foreground: Foreground,
    /// Held by tasks that still have something to tell about agents that have ended.
    telling: Arc<()>,
    /// True if the host or a setting wants to know what agents in the background are doing.
    summarises: AtomicBool,
    /// True if observers see what agents say while a call waits for them.
    forwards_text: AtomicBool,
    table: Mutex<Table>,
    /// Counts the ends of agents, for tasks that wait for one.
    ends: watch::Sender<u64>,
}

/// Locked last: no task is asked anything under this lock, because an agent that ends counts itself here under its own.
#[derive(Default)]
struct Table {
    /// In the order of their start.
    tasks: IndexMap<AgentId, Arc<Task>>,
    /// The agents that are at work.
    running: IndexMap<AgentId, Arc<Task>>,
    /// The accounts of agents that were dropped: what they have spent counts when they are resumed.
    accounts: HashMap<AgentId, Arc<Account>>,
    /// The agent that a name means: the last one that was given it.
    names: HashMap<String, AgentId>,
    stats: SubagentStats,
}

impl Delegation {
    pub(crate) fn new(
        rules: DelegationRules,
        definitions: Arc<Definitions>,
        builder: Arc<AgentBuilder>,
        task_list: Option<Arc<SessionTasks>>,
        team: Option<Arc<Team>>,
    ) -> Self {
        Self {
            slots: Slots::new(rules.limits.running),
            gate: SpawnGate::new(&rules.limits),
            plan: PlanInstructions::default(),
            aliases: ToolAliases::default(),
            summarises: AtomicBool::new(rules.summaries),
            forwards_text: AtomicBool::new(rules.forwards_text),
            rules,
            definitions,
            builder,
            task_lists: task_list.map(TaskLists::new),
            team,
            member_processes: None,
            lead: None,
            peers: None,
            listing: LastListing::default(),
            foreground: Foreground::default(),
            telling: Arc::default(),
            table: Mutex::default(),
            ends: watch::Sender::default(),
        }
    }

    pub(crate) fn with_peers(self, peers: Option<Peers>) -> Self {
        Self { peers: peers.map(Arc::new), ..self }
    }

    pub(crate) fn with_members(
        self,
        member_processes: Option<MemberProcesses>,
        lead: Option<Arc<LeadLink>>,
    ) -> Self {
        Self { member_processes: member_processes.map(Arc::new), lead, ..self }
    }

    /// The same for a side question, in which no agent can be started.
    pub(crate) fn without_agents(&self) -> Self {
        let limits = Limits { depth: 0, ..self.rules.limits.clone() };
        let rules = DelegationRules { limits, ..self.rules.clone() };
        Self::new(rules, Arc::clone(&self.definitions), Arc::clone(&self.builder), None, None)
    }

    pub(crate) fn summarises(&self) -> bool {
        self.summarises.load(Ordering::Relaxed)
    }

    pub(crate) fn summarise(&self, is_wanted: bool) {
        self.summarises.store(is_wanted, Ordering::Relaxed);
    }

    pub(crate) fn forwards_text(&self) -> bool {
        self.forwards_text.load(Ordering::Relaxed)
    }

    pub(crate) fn forward_text(&self, is_wanted: bool) {
        self.forwards_text.store(is_wanted, Ordering::Relaxed);
    }

    /// A guard: as long as it is held, something will be told.
    pub(crate) fn will_tell(&self) -> Arc<()> {
        Arc::clone(&self.telling)
    }

    /// Tells whether something will be told, although no agent may be running.
    pub(crate) fn is_telling(&self) -> bool {
        Arc::strong_count(&self.telling) > 1
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }

    /// Enters an agent into the table, when it begins or when it is known from its transcript.
    pub(crate) fn enter(&self, task: &Arc<Task>) {
        let is_running = task.is_running();
        let mut table = self.table();
        if is_running {
            table.running.insert(task.id.clone(), Arc::clone(task));
        }
        if let Some(name) = &task.identity.name {
            table.names.insert(name.clone(), task.id.clone());
        }
        table.tasks.insert(task.id.clone(), Arc::clone(task));
    }

    /// Takes note that an agent has ended.
    pub(crate) fn note_end(&self, task: &Task) {
        let mut table = self.table();
        table.running.swap_remove(&task.id);
        table.drop_surplus();
        drop(table);
        self.ends.send_modify(|count| *count += 1);
    }

    /// Forgets agents but for these: the conversation that knew them is over, and their names are free.
    pub(crate) fn forget_but(&self, kept: &HashSet<AgentId>) {
        let mut table = self.table();
        let running = table.running.keys().cloned().collect::<HashSet<_>>();
        let stays = |id: &AgentId| kept.contains(id) || running.contains(id);
        table.tasks.retain(|id, _| stays(id));
        table.names.retain(|_, id| stays(id));
    }

    /// Changes with every end of an agent.
    pub(crate) fn ends(&self) -> watch::Receiver<u64> {
        self.ends.subscribe()
    }

    /// The id of the agent that a name or id means.
    pub(crate) fn id_of(&self, to: &str) -> AgentId {
        self.table().names.get(to).cloned().unwrap_or_else(|| AgentId::new(to))
    }

    pub(crate) fn find(&self, to: &str) -> Option<Arc<Task>> {
        let id = self.id_of(to);
        self.table().tasks.get(&id).cloned()
    }

    /// The account of an agent that was dropped.
    pub(crate) fn account(&self, id: &AgentId) -> Option<Arc<Account>> {
        self.table().accounts.get(id).cloned()
    }

    /// All agents that are in memory, in the order of their start.
    pub(crate) fn tasks(&self) -> Vec<Arc<Task>> {
        self.table().tasks.values().cloned().collect()
    }

    pub(crate) fn running(&self) -> Vec<Arc<Task>> {
        let mut running: Vec<_> = self.table().running.values().cloned().collect();
        running.retain(|task| task.is_running());
        running
    }

    pub(crate) fn has_running(&self) -> bool {
        let at = |index: usize| self.table().running.get_index(index).map(|(_, it)| Arc::clone(it));
        (0..).map_while(at).any(|task| task.is_running())
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut SubagentStats)) {
        count(&mut self.table().stats);
    }

    pub(crate) fn stats(&self) -> SubagentStats {
        self.table().stats.clone()
    }
}

impl Table {
    /// Drops the agents that ended first, where there are too many: those that nothing else holds, and whose
    /// transcripts are there to be read again.
    fn drop_surplus(&mut self) {
        let ended = self.tasks.len().saturating_sub(self.running.len());
        if ended <= MOST_ENDED + SURPLUS {
            return;
        }
        let mut surplus = ended - MOST_ENDED;
        let (accounts, running) = (&mut self.accounts, &self.running);
        self.tasks.retain(|id, task| {
            let is_kept = surplus == 0
                || running.contains_key(id)
                || Arc::strong_count(task) > 1
                || !task.transcript.exists();
            if !is_kept {
                surplus -= 1;
                accounts.insert(id.clone(), Arc::clone(&task.account));
            }
            is_kept
        });
    }
}
