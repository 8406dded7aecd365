//! Making a session ready to run. Nothing is written until there is something to record.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use centurion_config::memory::{Memory, MemoryTracker};
use centurion_protocol::SessionId;
use centurion_protocol::sdk::Init;
use centurion_tools::guard::GuardProgram;
use centurion_tools::{ReadState, Shells, ShellsConfig, Workspace, builtin_under, resolve};
use thiserror::Error;

use super::{Options, Session, Shared, Start};
use crate::budget::Budget;
use crate::dispatch::Dispatch;
use crate::driver::{Driver, RequestSettings};
use crate::environment::Environment;
use crate::hooks::{AgentHooks, SessionHooks};
use crate::host::AgentHost;
use crate::journal::{Journal, JournalError, Stamp, TranscriptFile};
use crate::permissions::Permissions;
use crate::prompt::{instructions, system_prompt};
use crate::servers::{Deferral, Servers};
use crate::toolbox::{Toolbox, ToolboxError};
use crate::transcript::{self, Loaded};

/// The version of the headless protocol that our events follow; hosts look at it.
pub const PROTOCOL_VERSION: &str = "2.1.325";

/// Why a session cannot start.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error("cannot read the transcript {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Tools(#[from] ToolboxError),
}

impl Session {
    /// Makes a session ready to run.
    pub async fn open(mut options: Options) -> Result<Self, OpenError> {
        let id = options.start.id();
        let environment = Environment::observe(&options).await;
        let stamp = stamp(&mut options, &environment);
        let (journal, loaded) = open_journal(&options, stamp.clone())?;
        if let Some(model) = loaded.model.as_ref().filter(|_| options.restores_model) {
            options.settings.model.clone_from(model);
        }
        let shared = share(&mut options);
        let (permissions, servers) = (Arc::clone(&shared.permissions), Arc::clone(&shared.servers));
        let extensions = options.extensions;
        let env_file = options.storage.output_dir.join("hook-environment.sh");
        let users_env_file = options.env.get("CLAUDE_ENV_FILE").map(PathBuf::from);
        let env_files = users_env_file.into_iter().chain([env_file.clone()]).collect();
        let shells = shells(options.guard.clone(), id, &options.cwd, env_files);
        let workspace = Arc::new(Workspace {
            root: options.cwd.clone(),
            cwd: Mutex::new(options.cwd.clone()),
            read_state: seen(&loaded.seen_files),
            may_read: readers(&permissions),
            sandbox: options.sandbox.clone(),
            todos: Mutex::default(),
            shells: Arc::clone(&shells),
            output_dir: options.storage.output_dir,
            env: options.env,
            world: options.world,
            host: Arc::new(AgentHost::new(Arc::downgrade(&shared), Arc::clone(&permissions))),
        });
        let mut toolbox = Toolbox::new(
            builtin_under(options.sandbox.as_deref()),
            &options.tools,
            &permissions,
            shared.broker.has_answerer(),
        )?;
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
        let hooks = AgentHooks::of_session(
            &shared,
            Arc::clone(&workspace),
            SessionHooks {
                settings: extensions.hooks,
                rules: extensions.hook_rules,
                host: extensions.hook_host,
                shows_runs: extensions.shows_hooks,
                home: extensions.home,
                guard: options.guard,
                env_file,
                stamp,
                transcript: options.storage.transcript.unwrap_or_default(),
                effort: options.settings.effort,
            },
        );
        extensions.elicitations.attach(Arc::clone(&shared.broker), Arc::clone(&hooks));
        let is_new = loaded.conversation.is_empty();
        let memory = options.memory.as_ref().filter(|_| is_new).and_then(Memory::render);
        let dispatch = Dispatch {
            toolbox,
            workspace,
            permissions,
            broker: Arc::clone(&shared.broker),
            hooks,
            servers,
            allows_sandboxed: options.allows_sandboxed,
        };
        let driver = Driver {
            context: memory.as_deref().map(instructions),
            structured: options.structured,
            memory: options.memory.map(|memory| MemoryTracker::new(Arc::new(memory))),
            counted: loaded.counted,
            deferred: loaded.deferred,
            ..Driver::new(
                Arc::clone(&shared),
                journal,
                dispatch,
                loaded.conversation,
                system_prompt(&options.prompt, &environment),
                options.settings,
            )
        };
        Ok(Self {
            shared,
            driver,
            shells,
            init,
            results: 0,
            broken_lines: loaded.broken_lines,
            begins: Some(options.start.source()),
            server_patience: extensions.server_patience,
            elicitations: extensions.elicitations,
        })
    }
}

/// What the agents of the session will share.
fn share(options: &mut Options) -> Arc<Shared> {
    // What the session keeps for the model to read later is the model's to read.
    options.policy.readable.push(resolve(&options.storage.output_dir));
    let permissions = Permissions::new(
        std::mem::take(&mut options.policy),
        options.bypass,
        options.rule_source.take(),
        options.rule_store.take(),
    );
    let connections = std::mem::take(&mut options.extensions.servers);
    let shared = Shared::new(
        options.start.id(),
        Arc::clone(&options.world),
        Arc::clone(&options.view),
        Budget::root(options.max_budget),
        options.model.clone(),
        Arc::new(permissions),
        Servers::new(connections, Deferral::chosen(&options.env)),
    );
    if let Some(answerer) = options.answerer.take() {
        shared.broker.attach(answerer);
    }
    Arc::new(shared)
}

/// What every record of the main agent carries.
fn stamp(options: &mut Options, environment: &Environment) -> Stamp {
    Stamp {
        session: options.start.id(),
        agent: None,
        cwd: options.cwd.display().to_string(),
        git_branch: environment.git.as_ref().map(|git| git.branch.clone()).unwrap_or_default(),
        entrypoint: std::mem::take(&mut options.entrypoint),
    }
}

fn init(
    shared: &Shared,
    toolbox: &Toolbox,
    cwd: &Path,
    additional_directories: &[PathBuf],
    settings: &RequestSettings,
) -> Init {
    let directories = additional_directories.iter().map(|path| path.display().to_string());
    Init {
        cwd: cwd.display().to_string(),
        tools: toolbox.names().map(str::to_owned).collect(),
        mcp_servers: Vec::new(),
        model: settings.model.clone(),
        permission_mode: shared.permissions.mode().to_string(),
        slash_commands: Vec::new(),
        api_key_source: shared.model.key_source().to_owned(),
        claude_code_version: PROTOCOL_VERSION,
        centurion_version: env!("CARGO_PKG_VERSION"),
        output_style: "default",
        agents: Vec::new(),
        skills: Vec::new(),
        plugins: Vec::new(),
        additional_directories: directories.collect(),
    }
}

fn shells(guard: GuardProgram, id: SessionId, cwd: &Path, env_files: Vec<PathBuf>) -> Arc<Shells> {
    let config = ShellsConfig::new(guard, id, cwd.to_owned());
    Arc::new(Shells::new(ShellsConfig { environment_files: env_files, ..config }))
}

/// Whether what lies below a place that may be searched may be read.
fn readers(permissions: &Arc<Permissions>) -> Arc<dyn Fn(&Path) -> bool + Send + Sync> {
    let permissions = Arc::clone(permissions);
    Arc::new(move |path| !permissions.denies_reading(path))
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
fn open_journal(options: &Options, stamp: Stamp) -> Result<(Journal, Loaded), OpenError> {
    let (storage, world) = (&options.storage, Arc::clone(&options.world));
    let redaction = storage.redaction;
    let (journal, loaded) = match (&options.start, &storage.transcript) {
        (Start::New(_), Some(path)) => {
            (Journal::new(path.clone(), stamp, world, redaction), Loaded::default())
        }
        (Start::Resume(_), Some(path)) => {
            // Locked before it is read: what another process has yet to write must not be missed.
            let mut file = TranscriptFile::open(path)?;
            let loaded = transcript::load(&file.read()?);
            (Journal::resume(file, loaded.last, stamp, world, redaction), loaded)
        }
        (Start::Fork { from, id }, Some(path)) => {
            let text = read(storage.resumed.as_deref())?;
            let (copied, loaded) = std::thread::scope(|scope| {
                let copy = scope.spawn(|| TranscriptFile::copy(path, &text, *from, *id));
                let loaded = transcript::load(&text);
                (copy.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), loaded)
            });
            (Journal::resume(copied?, loaded.last, stamp, world, redaction), loaded)
        }
        (_, None) => {
            let text = read(storage.resumed.as_deref())?;
            (Journal::nowhere(stamp, world), transcript::load(&text))
        }
    };
    Ok((journal, loaded))
}

fn read(path: Option<&Path>) -> Result<Vec<u8>, OpenError> {
    let Some(path) = path else { return Ok(Vec::new()) };
    std::fs::read(path).map_err(|source| OpenError::Read { path: path.to_owned(), source })
}
