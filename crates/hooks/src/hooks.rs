//! The hooks of a session: sets that are added and removed, and the selection of hooks for an event.
//!
//! Every agent fires its events here. An event without hooks costs one look at a number.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use centurion_protocol::{AgentId, Env, ToolUseId, World};
use centurion_tools::guard::GuardProgram;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use crate::background::Background;
use crate::condition::PathAnchors;
use crate::delegate::{Delegate, DelegateFuture};
use crate::event::{Event, EventSet};
use crate::handler::{Action, Handler, OnFailure};
use crate::hook_set::{Hook, HookSet};
use crate::input::{Common, EventInput};
use crate::rules::HookRules;
use crate::run::HttpClient;
use crate::watch_list::{FileChange, WatchList};
use crate::watcher::HookWatcher;

/// The parts of the program that hooks need.
#[derive(Clone)]
pub struct Surroundings {
    pub guard: GuardProgram,
    /// The environment of commands.
    pub env: Arc<Env>,
    /// The project in which the session was started, also for agents in worktrees.
    pub project_dir: PathBuf,
    pub home: Option<PathBuf>,
    /// The directory for texts that are too long for a conversation.
    pub overflow_dir: PathBuf,
    /// The file in which hooks may set variables for the commands of the session.
    pub env_file: Option<PathBuf>,
    pub world: Arc<dyn World>,
    pub delegate: Arc<dyn Delegate>,
    pub watcher: Arc<dyn HookWatcher>,
}

/// The agents for which a set of hooks counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookScope {
    /// All of them.
    Session,
    /// One; `None` is the main agent.
    Agent(Option<AgentId>),
}

/// All hooks of a session. Clones share them.
#[derive(Clone)]
pub struct Hooks(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    /// The events for which there may be hooks.
    events: AtomicU64,
    state: Mutex<State>,
    pub(crate) core: Arc<Core>,
    /// Asynchronous hooks, and processes that hooks left running. Ends with the session.
    pub(crate) background: Background,
    pub(crate) watched: WatchList,
}

/// The resources for running a hook.
pub(crate) struct Core {
    pub(crate) around: Surroundings,
    pub(crate) http: HttpClient,
}

struct State {
    registered: Vec<Arc<RegisteredSet>>,
    rules: Arc<HookRules>,
    next_id: u64,
}

struct RegisteredSet {
    id: u64,
    scope: HookScope,
    set: HookSet,
    /// For each hook of the set, whether it was to run once and has.
    spent: Vec<AtomicBool>,
}

/// Guard: a set of hooks is in force. Dropping it removes the hooks.
#[must_use = "dropping it takes the hooks away"]
pub struct Registration {
    shared: Weak<Shared>,
    id: u64,
}

impl RegisteredSet {
    fn new(id: u64, scope: HookScope, set: HookSet) -> Arc<Self> {
        let spent = set.hooks().iter().map(|_| AtomicBool::new(false)).collect();
        Arc::new(Self { id, scope, set, spent })
    }

    fn counts_in(&self, agent: Option<&AgentId>) -> bool {
        match &self.scope {
            HookScope::Session => true,
            HookScope::Agent(own) => own.as_ref() == agent,
        }
    }

    /// The hooks of an event that may still run.
    fn hooks(&self, event: Event) -> impl Iterator<Item = (&Hook, &AtomicBool)> {
        let is_wanted = self.set.events().contains(event);
        let hooks = if is_wanted { self.set.hooks() } else { &[] };
        hooks.iter().zip(&self.spent).filter(move |(hook, _)| hook.event == event)
    }
}

/// A hook that is in force, for people and hosts to see.
#[derive(Clone, Debug)]
pub struct ListedHook {
    pub event: Event,
    /// The subjects that it is for, as they can be written; empty for all.
    pub matcher: String,
    pub handler: Arc<Handler>,
}

impl Hooks {
    pub fn new(around: Surroundings, rules: HookRules) -> Self {
        let http = HttpClient::default();
        Self(Arc::new(Shared {
            events: AtomicU64::new(0),
            state: Mutex::new(State { registered: Vec::new(), rules: Arc::new(rules), next_id: 0 }),
            core: Arc::new(Core { around, http }),
            background: Background::default(),
            watched: WatchList::default(),
        }))
    }

    /// Adds a set behind the present ones.
    pub fn add(&self, scope: HookScope, set: HookSet) -> Registration {
        let mut state = self.0.state();
        let id = state.next_id;
        state.next_id += 1;
        state.registered.push(RegisteredSet::new(id, scope, set));
        self.0.note_events(&state);
        Registration { shared: Arc::downgrade(&self.0), id }
    }

    /// Sets other limits, as when settings change.
    pub fn limit(&self, rules: HookRules) {
        self.0.state().rules = Arc::new(rules);
    }

    /// The hooks in force, one a line: the event, and the source of the hook.
    pub fn describe(&self) -> Vec<String> {
        let registered = self.0.state().registered.clone();
        let handlers = registered.iter().flat_map(|it| it.set.handlers());
        handlers.map(|(event, handler)| format!("{event}  {}", handler.origin)).collect()
    }

    /// The hooks that are in force, in the order in which they run.
    pub fn listed(&self) -> Vec<ListedHook> {
        let registered = self.0.state().registered.clone();
        let hooks = registered.iter().flat_map(|it| it.set.hooks());
        let listed = hooks.map(|hook| ListedHook {
            event: hook.event,
            matcher: hook.matcher.text(),
            handler: Arc::clone(&hook.handler),
        });
        listed.collect()
    }

    /// The functions of the host that are in force, in the form in which the host names them: for agents of another
    /// process, whose events happen there. `None` if there are none.
    pub fn host_functions(&self) -> Option<Value> {
        let mut events: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
        for hook in self.listed() {
            let Action::Callback(function) = &hook.handler.action else { continue };
            let mut group = json!({"hookCallbackIds": [function.id]});
            if !hook.matcher.is_empty() {
                group["matcher"] = json!(hook.matcher);
            }
            if let Some(timeout) = hook.handler.timeout {
                group["timeout"] = json!(timeout.as_secs_f64());
            }
            if function.on_failure == OnFailure::Block {
                group["onFailure"] = json!("block");
            }
            events.entry(hook.event.name()).or_default().push(group);
        }
        (!events.is_empty()).then(|| json!(events))
    }

    /// Calls a function of the host for an agent of another process; `None` if no hook in force is that function.
    pub fn call_function<'a>(
        &'a self,
        id: &'a str,
        input: &'a Value,
        call: Option<&'a ToolUseId>,
    ) -> Option<DelegateFuture<'a, Value>> {
        let is_it = |action: &Action| matches!(action, Action::Callback(it) if it.id == id);
        let is_known = self.listed().iter().any(|hook| is_it(&hook.handler.action));
        is_known.then(|| self.0.core.around.delegate.callback(id, input, call))
    }

    /// Whether no hook can match an event. Costs next to nothing.
    pub fn is_empty_for(&self, event: Event) -> bool {
        !EventSet::from_bits(self.0.events.load(Ordering::Acquire)).contains(event)
    }

    /// The watched files that changed since the last check. Checks nothing if no hook would receive the event.
    pub fn changed_files(&self, cwd: &Path) -> Vec<FileChange> {
        if self.is_empty_for(Event::FileChanged) {
            return Vec::new();
        }
        let registered = self.0.state().registered.clone();
        let hooks = registered.iter().flat_map(|it| it.hooks(Event::FileChanged));
        let named = hooks.flat_map(|(hook, _)| hook.matcher.file_names());
        self.0.watched.look(named.map(|name| cwd.join(name)).collect())
    }

    /// Ends everything that hooks have left running.
    pub async fn shutdown(&self) {
        self.0.background.shutdown().await;
    }

    pub(crate) fn rules(&self) -> Arc<HookRules> {
        Arc::clone(&self.0.state().rules)
    }

    /// Selects the hooks for an event, in the order of their declaration, each once. Returns a hook that runs only once
    /// only one time.
    pub(crate) fn select<E: EventInput>(&self, common: &Common, input: &E) -> Vec<Arc<Handler>> {
        let (registered, rules) = {
            let state = self.0.state();
            (state.registered.clone(), Arc::clone(&state.rules))
        };
        let around = &self.0.core.around;
        let places = PathAnchors {
            cwd: &common.cwd,
            project: &around.project_dir,
            home: around.home.as_deref(),
        };
        let fits = |handler: &Handler| match (&handler.condition, input.call()) {
            (Some(condition), Some(call)) => condition.fits(&call.as_call(), places),
            _ => true,
        };
        let subject = input.subject();
        let mut selected: Vec<Arc<Handler>> = Vec::new();
        let own = registered.iter().filter(|it| it.counts_in(common.agent_id.as_ref()));
        for (hook, spent) in own.flat_map(|it| it.hooks(E::EVENT)) {
            let handler = &hook.handler;
            let is_meant = rules.allows(&handler.origin.source)
                && hook.matcher.fits(subject, E::EVENT)
                && fits(handler)
                && !selected.iter().any(|other| handler.repeats(other));
            if is_meant && !(handler.once && spent.swap(true, Ordering::AcqRel)) {
                selected.push(Arc::clone(handler));
            }
        }
        selected
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn note_events(&self, state: &State) {
        let bits = state.registered.iter().fold(0, |bits, it| bits | it.set.events().bits());
        self.events.store(bits, Ordering::Release);
    }
}

impl Registration {
    /// Replaces this set by another, as when settings change.
    pub fn replace(&self, set: HookSet) {
        let Some(shared) = self.shared.upgrade() else { return };
        let mut state = shared.state();
        if let Some(registered) = state.registered.iter_mut().find(|it| it.id == self.id) {
            *registered = RegisteredSet::new(self.id, registered.scope.clone(), set);
        }
        shared.note_events(&state);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let mut state = shared.state();
        state.registered.retain(|registered| registered.id != self.id);
        shared.note_events(&state);
    }
}
