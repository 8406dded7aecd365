//! A session: one conversation with a person, from its first prompt to its end, across processes.
//!
//! It owns what its agents share (journal, queue, broker, budget, shells) and runs the main agent once for
//! each input that the queue holds.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use centurion_config::memory::{Memory, MemoryTracker};
use centurion_model::Model;
use centurion_permissions::{Mode, Policy};
use centurion_protocol::sdk::{Event, EventBody, Init, Status, System};
use centurion_protocol::{Block, Env, Outcome, RecordId, SessionId, TaskId, Usage, World};
use centurion_tools::guard::GuardProgram;
use centurion_tools::{ReadState, Shells, ShellsConfig, Workspace, builtin};
use indexmap::IndexMap;
use thiserror::Error;
use tokio_util::sync::CancellationToken;

use crate::broker::{Answerer, Broker};
use crate::budget::Budget;
use crate::dispatch::Dispatch;
use crate::driver::{Driver, RequestSettings, Run};
use crate::environment::Environment;
use crate::host::AgentHost;
use crate::journal::{Journal, JournalError, Redaction, Stamp};
use crate::ledger::Ledger;
use crate::prompt::{PromptOptions, instructions, system_prompt};
use crate::queue::{Item, Origin, Priority, Queue};
use crate::structured::StructuredOutput;
use crate::toolbox::{ToolChoice, Toolbox};
use crate::{report, transcript};

/// The version of the headless protocol that our events follow; hosts look at it.
const PROTOCOL_VERSION: &str = "2.1.325";
/// How long a finished run waits for background shells before it ends them.
const SHELL_GRACE: Duration = Duration::from_secs(5);

/// Where a session starts from.
#[derive(Clone, Debug)]
pub enum Start {
    New(SessionId),
    /// Go on with the transcript of this session.
    Resume(SessionId),
    /// A new session that begins with the history of another.
    Fork {
        from: SessionId,
        id: SessionId,
    },
}

impl Start {
    /// The id of the session itself.
    pub fn id(&self) -> SessionId {
        match self {
            Self::New(id) | Self::Resume(id) | Self::Fork { id, .. } => *id,
        }
    }
}

/// Where a session keeps things.
#[derive(Clone, Debug)]
pub struct Storage {
    /// The transcript of this session; `None` keeps none.
    pub transcript: Option<PathBuf>,
    /// The transcript to resume or fork from.
    pub resumed: Option<PathBuf>,
    /// Output too large for an answer, private to the session.
    pub output_dir: PathBuf,
    pub redaction: Redaction,
}

/// Everything a session is made from.
pub struct Options {
    pub start: Start,
    pub storage: Storage,
    pub cwd: PathBuf,
    pub repository: Option<PathBuf>,
    pub additional_directories: Vec<PathBuf>,
    pub env: Arc<Env>,
    pub world: Arc<dyn World>,
    pub model: Model,
    pub settings: RequestSettings,
    pub prompt: PromptOptions,
    /// The instruction files that apply; `None` leaves them out.
    pub memory: Option<Memory>,
    pub tools: ToolChoice,
    pub policy: Policy,
    pub max_budget: Option<f64>,
    pub structured: Option<StructuredOutput>,
    pub answerer: Option<Arc<dyn Answerer>>,
    pub view: Arc<dyn View>,
    pub guard: GuardProgram,
    pub entrypoint: String,
}

/// Why a session cannot start.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("cannot read the transcript {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Somebody who watches.
pub trait View: Send + Sync {
    fn show(&self, event: &Event);
}

/// What the agents of a session share.
pub(crate) struct Shared {
    pub(crate) id: SessionId,
    pub(crate) world: Arc<dyn World>,
    pub(crate) view: Arc<dyn View>,
    pub(crate) journal: Journal,
    pub(crate) queue: Queue,
    pub(crate) broker: Arc<Broker>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) model: Model,
    pub(crate) ledger: Mutex<Ledger>,
    pub(crate) policy: Arc<Mutex<Policy>>,
    /// Cancels the run that is under way.
    current: Mutex<CancellationToken>,
    /// What runs in the background now, by id: what each is for.
    tasks: Mutex<IndexMap<TaskId, String>>,
    /// A model that was chosen while the session runs, for the next run.
    chosen_model: Mutex<Option<String>>,
}

impl Shared {
    /// Shows an event that has no record.
    pub(crate) fn show(&self, body: EventBody) {
        self.show_as(self.world.record_id(), body);
    }

    /// Shows an event under the id of its record.
    pub(crate) fn show_as(&self, uuid: RecordId, body: EventBody) {
        self.view.show(&Event { body, session_id: self.id, uuid });
    }

    pub(crate) fn tasks(&self) -> MutexGuard<'_, IndexMap<TaskId, String>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn show_mode(&self, mode: Mode) {
        let permission_mode = mode.to_string();
        self.show(EventBody::System(System::Status(Status { status: None, permission_mode })));
    }

    /// Adds what an answer consumed; returns what it cost.
    pub(crate) fn add_usage(&self, served: &str, requested: &str, usage: &Usage) -> f64 {
        // Priced by the name that was asked for: providers answer with dated names.
        let info = self.model.info(requested);
        let name = if served.is_empty() { requested } else { served };
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).add(name, &info, usage)
    }
}

/// A way to reach a running session from outside.
#[derive(Clone)]
pub struct Handle(Arc<Shared>);

impl Handle {
    /// Queues what a person says.
    pub fn submit(&self, id: RecordId, content: Vec<Block>) {
        self.submit_with(id, content, Priority::Next);
    }

    /// Queues what a person says, sooner or later than usual.
    pub fn submit_with(&self, id: RecordId, content: Vec<Block>, priority: Priority) {
        self.0.queue.push(Item { id, priority, addressee: None, content, origin: Origin::Person });
    }

    /// Nothing more will be submitted: the session ends when all is done.
    pub fn close(&self) {
        self.0.queue.close();
    }

    /// Stops the run that is under way; history stays valid.
    pub fn interrupt(&self) {
        self.0.current.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }

    /// Stops the run that is under way and drops what waits: the session ends.
    pub fn stop(&self) {
        self.0.queue.abandon();
        self.interrupt();
    }

    pub fn set_mode(&self, mode: Mode) {
        self.0.policy.lock().unwrap_or_else(PoisonError::into_inner).mode = mode;
        self.0.show_mode(mode);
    }

    /// Uses another model from the next run on; returns its full name.
    pub fn set_model(&self, name: &str) -> String {
        let full = self.0.model.resolve(name);
        *self.0.chosen_model.lock().unwrap_or_else(PoisonError::into_inner) = Some(full.clone());
        full
    }
}

/// One session with its main agent.
pub struct Session {
    shared: Arc<Shared>,
    driver: Driver,
    shells: Arc<Shells>,
    init: Init,
    results: u32,
}

impl Session {
    /// Makes a session ready to run. Nothing is written until there is something to record.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let id = options.start.id();
        let environment = Environment::observe(
            &options.cwd,
            options.repository.as_deref(),
            options.additional_directories.clone(),
            &options.settings.model,
            options.world.now(),
        )
        .await;
        let stamp = Stamp {
            session: id,
            agent: None,
            cwd: options.cwd.display().to_string(),
            git_branch: environment.git.as_ref().map(|git| git.branch.clone()).unwrap_or_default(),
            entrypoint: options.entrypoint.clone(),
        };
        let (journal, loaded) = open_journal(&options, stamp)?;
        let is_new = loaded.conversation.is_empty();
        let policy = Arc::new(Mutex::new(options.policy));
        let broker = Arc::new(Broker::default());
        let has_answerer = options.answerer.is_some();
        if let Some(answerer) = options.answerer {
            broker.attach(answerer);
        }
        let shared = Arc::new(Shared {
            id,
            world: Arc::clone(&options.world),
            view: options.view,
            journal,
            queue: Queue::default(),
            broker: Arc::clone(&broker),
            budget: Budget::root(options.max_budget),
            model: options.model,
            ledger: Mutex::default(),
            policy: Arc::clone(&policy),
            current: Mutex::default(),
            tasks: Mutex::default(),
            chosen_model: Mutex::default(),
        });
        let shells =
            Arc::new(Shells::new(ShellsConfig::new(options.guard, id, options.cwd.clone())));
        let host = AgentHost::new(Arc::downgrade(&shared), Arc::clone(&policy));
        let workspace = Arc::new(Workspace {
            root: options.cwd.clone(),
            cwd: Mutex::new(options.cwd.clone()),
            read_state: seen(&loaded.seen_files),
            todos: Mutex::default(),
            shells: Arc::clone(&shells),
            output_dir: options.storage.output_dir.clone(),
            env: Arc::clone(&options.env),
            world: options.world,
            host: Arc::new(host),
        });
        let mut toolbox = {
            let policy = policy.lock().unwrap_or_else(PoisonError::into_inner);
            Toolbox::new(builtin(), &options.tools, &policy, has_answerer)
        };
        if let Some(structured) = &options.structured {
            toolbox = toolbox.with(Arc::new(structured.clone()));
        }
        let init = init(
            &shared,
            &toolbox,
            &options.cwd,
            &options.additional_directories,
            &options.settings,
        );
        let context = options
            .memory
            .as_ref()
            .filter(|_| is_new)
            .and_then(Memory::render)
            .as_deref()
            .map(instructions);
        let counted = loaded.last_usage.map(|usage| (usage.total(), loaded.conversation.bytes()));
        let driver = Driver {
            shared: Arc::clone(&shared),
            dispatch: Dispatch { toolbox, workspace, policy, broker },
            unanswered: loaded.conversation.open_calls().to_vec(),
            conversation: loaded.conversation,
            system: system_prompt(&options.prompt, &environment),
            settings: options.settings,
            context,
            structured: options.structured,
            budget: shared.budget.child(None),
            memory: options.memory.map(|memory| MemoryTracker::new(Arc::new(memory))),
            counted,
        };
        Ok(Self { shared, driver, shells, init, results: 0 })
    }

    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.shared))
    }

    pub fn id(&self) -> SessionId {
        self.shared.id
    }

    /// Runs until the input is closed and nothing is owed. Returns how the last run ended.
    pub async fn run(&mut self) -> Option<Outcome> {
        let mut last = None;
        while let Some(items) = self.next_items().await {
            last = Some(self.run_once(&items).await);
        }
        self.shells.shutdown().await;
        last
    }

    async fn next_items(&self) -> Option<Vec<Item>> {
        if let Some(items) = self.shared.queue.next(None).await {
            return Some(items);
        }
        if self.shells.running().is_empty() {
            return None;
        }
        tokio::time::timeout(SHELL_GRACE, self.shared.queue.arrival(None)).await.ok()
    }

    async fn run_once(&mut self, items: &[Item]) -> Outcome {
        let cancel = CancellationToken::new();
        *self.shared.current.lock().unwrap_or_else(PoisonError::into_inner) = cancel.clone();
        if let Some(model) =
            self.shared.chosen_model.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            self.init.model.clone_from(&model);
            self.driver.settings.model = model;
        }
        let mode = self.shared.policy.lock().unwrap_or_else(PoisonError::into_inner).mode;
        self.init.permission_mode = mode.to_string();
        self.shared.show(EventBody::System(System::Init(Box::new(self.init.clone()))));
        let mut run = Run::new();
        if let Err(error) = self.driver.run(&mut run, items, &cancel).await {
            run.outcome = Outcome::JournalFailed;
            run.errors.push(error.to_string());
        }
        let origin = items.first().and_then(|item| item.origin.to_value());
        let result = report::result(&self.shared, &run, self.results, origin);
        self.results += 1;
        if let Err(error) = report::record(&self.shared, &run, &result) {
            tracing::error!(%error, "the end of the run could not be recorded");
        }
        self.shared.show(EventBody::Result(Box::new(result)));
        run.outcome
    }
}

fn init(
    shared: &Shared,
    toolbox: &Toolbox,
    cwd: &Path,
    additional_directories: &[PathBuf],
    settings: &RequestSettings,
) -> Init {
    Init {
        cwd: cwd.display().to_string(),
        tools: toolbox.names().map(str::to_owned).collect(),
        mcp_servers: Vec::new(),
        model: settings.model.clone(),
        permission_mode: String::new(),
        slash_commands: Vec::new(),
        api_key_source: shared.model.key_source().to_owned(),
        claude_code_version: PROTOCOL_VERSION,
        centurion_version: env!("CARGO_PKG_VERSION"),
        output_style: "default",
        agents: Vec::new(),
        skills: Vec::new(),
        plugins: Vec::new(),
        additional_directories: additional_directories
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
    }
}

/// What an agent knows of files from an earlier process.
fn seen(results: &[serde_json::Value]) -> ReadState {
    let state = ReadState::default();
    for result in results {
        state.replay(result);
    }
    state
}

/// Opens the transcript and reads what it holds.
fn open_journal(
    options: &Options,
    stamp: Stamp,
) -> Result<(Journal, transcript::Loaded), OpenError> {
    let (storage, world) = (&options.storage, Arc::clone(&options.world));
    let text = match &storage.resumed {
        Some(path) => {
            std::fs::read(path).map_err(|source| OpenError::Read { path: path.clone(), source })?
        }
        None => Vec::new(),
    };
    let loaded = transcript::load(&text);
    if loaded.broken_lines > 0 {
        tracing::warn!(lines = loaded.broken_lines, "lines of the transcript could not be read");
    }
    let last = loaded.last;
    let journal = match (&options.start, storage.transcript.clone()) {
        (_, None) => Journal::nowhere(stamp, world),
        (Start::New(_), Some(path)) => Journal::new(path, stamp, world, storage.redaction),
        (Start::Resume(_), Some(path)) => {
            Journal::resume(path, last, stamp, world, storage.redaction)?
        }
        (Start::Fork { from, id }, Some(path)) => {
            Journal::fork(path, &text, (*from, *id), last, stamp, world, storage.redaction)?
        }
    };
    Ok((journal, loaded))
}
