//! What a session is made from.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use centurion_config::agent_memory::MemoryPlaces;
use centurion_config::memory::Memory;
use centurion_hooks::{HookRules, HookSet};
use centurion_mcp::Connection;
use centurion_model::Model;
use centurion_permissions::Policy;
use centurion_protocol::sdk::InitPlugin;
use centurion_protocol::{Env, SessionId, World};
use centurion_tools::SandboxPolicy;
use centurion_tools::guard::GuardProgram;
use jiff::tz::TimeZone;

use super::View;
use crate::broker::Answerer;
use crate::builder::{AgentServers, ModelRefusal};
use crate::definitions::Definitions;
use crate::delegation::DelegationRules;
use crate::driver::RequestSettings;
use crate::elicitation::Elicitations;
use crate::hooks::HookHost;
use crate::permissions::{Bypass, RuleSource, RuleStore};
use crate::prompt::PromptOptions;
use crate::resolve::MainFlags;
use crate::servers::WithheldServer;
use crate::structured::StructuredOutput;
use crate::toolbox::ToolChoice;
use centurion_journal::Redaction;

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
    /// How hooks call it.
    pub(super) fn source(&self) -> &'static str {
        match self {
            Self::New(_) => "startup",
            Self::Resume(_) => "resume",
            Self::Fork { .. } => "fork",
        }
    }

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
    pub time_zone: TimeZone,
    pub model: Model,
    pub settings: RequestSettings,
    /// Whether a resumed session goes on with the model it had.
    pub restores_model: bool,
    pub prompt: PromptOptions,
    /// The instruction files that apply; `None` leaves them out.
    pub memory: Option<Memory>,
    pub tools: ToolChoice,
    pub policy: Policy,
    /// Rules that may change while the session runs.
    pub rule_source: Option<Box<dyn RuleSource>>,
    /// Where answers that hold for longer than the session are kept.
    pub rule_store: Option<Arc<dyn RuleStore>>,
    pub bypass: Bypass,
    /// How shell commands are confined.
    pub sandbox: Option<Arc<SandboxPolicy>>,
    /// Whether a command that is confined needs no question.
    pub allows_sandboxed: bool,
    pub max_budget: Option<f64>,
    pub structured: Option<StructuredOutput>,
    pub answerer: Option<Arc<dyn Answerer>>,
    pub view: Arc<dyn View>,
    pub guard: GuardProgram,
    pub entrypoint: String,
    pub extensions: Extensions,
    pub agents: AgentOptions,
}

/// The agents that the session knows, and what they may do.
pub struct AgentOptions {
    pub definitions: Arc<Definitions>,
    pub rules: DelegationRules,
    /// The agent that the session itself runs as.
    pub main: Option<String>,
    /// What of the main agent is fixed by flags.
    pub flags: MainFlags,
    /// How servers are started that definitions bring.
    pub servers: Option<Arc<dyn AgentServers>>,
    pub refuse_model: ModelRefusal,
    /// Where agents keep their memories; `None` where they keep none.
    pub memory: Option<MemoryPlaces>,
    /// Whether only plugins and the administrator may bring hooks.
    pub only_plugin_hooks: bool,
    /// The settings files that are there, for the program's own agents.
    pub settings_files: Vec<PathBuf>,
}

impl AgentOptions {
    /// A session that knows these agents, with the usual rules.
    pub fn new(definitions: Arc<Definitions>) -> Self {
        Self {
            definitions,
            rules: DelegationRules::default(),
            main: None,
            flags: MainFlags::default(),
            servers: None,
            refuse_model: Arc::new(|_| None),
            memory: None,
            only_plugin_hooks: false,
            settings_files: Vec::new(),
        }
    }
}

/// What extends the agents of a session: hooks and MCP servers.
#[derive(Default)]
pub struct Extensions {
    /// The hooks of the settings.
    pub hooks: HookSet,
    /// The plugins that are switched on, for hosts to see.
    pub plugins: Vec<InitPlugin>,
    /// The hooks that plugins bring.
    pub plugin_hooks: Vec<HookSet>,
    pub hook_rules: HookRules,
    /// The program that drives this one, if it has functions that are hooks.
    pub hook_host: Option<Arc<dyn HookHost>>,
    /// Whether every run of a hook is an event.
    pub shows_hooks: bool,
    pub home: Option<PathBuf>,
    /// The servers of the main agent.
    pub servers: Vec<Connection>,
    /// The servers that are declared and not started, for hosts to see.
    pub withheld_servers: Vec<WithheldServer>,
    /// How long the first turn waits for servers that are not there yet.
    pub server_patience: Duration,
    /// Where servers put their questions.
    pub elicitations: Arc<Elicitations>,
}
