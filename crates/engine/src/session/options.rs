//! The options of a session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_config::agent_memory::MemoryPlaces;
use centurion_config::agents::{AgentSources, PluginAgents};
use centurion_config::memory::Memory;
use centurion_config::settings::{MemorySettings, SkillSettings, WorktreeSettings};
use centurion_config::skills::{PluginSkills, SkillSources};
use centurion_hooks::{HookRules, HookSet};
use centurion_mcp::Connection;
use centurion_model::Model;
use centurion_permissions::Policy;
use centurion_protocol::sdk::InitPlugins;
use centurion_protocol::{Env, RecordId, SessionId, SystemWorld, World};
use centurion_tools::guard::GuardProgram;
use centurion_tools::{DynTool, SandboxPolicy};
use jiff::tz::TimeZone;

use crate::agent::builder::AgentServers;
use crate::agent::lead_link::LeadLink;
use crate::agent::member_processes::MemberProcessOptions;
use crate::agent::peers::PeerOptions;
use crate::agent::session_tasks::TaskListPlace;
use crate::agent::shared::{SilentView, View};
use crate::agent::team::TeamOptions;
use crate::definition::bypass::Bypass;
use crate::definition::context_rules::ContextRules;
use crate::definition::definitions::Definitions;
use crate::definition::model_check::ModelCheck;
use crate::definition::prompt::PromptOptions;
use crate::definition::request_settings::RequestSettings;
use crate::definition::resolve::MainFlags;
use crate::definition::rules::DelegationRules;
use crate::policy::broker::Answerer;
use crate::policy::permissions::{RuleSource, RuleStore};
use crate::toolset::servers::{ServerPatience, WithheldServer};
use crate::toolset::structured::StructuredOutput;
use crate::toolset::toolbox::ToolChoice;
use crate::turn::elicitation::Elicitations;
use crate::turn::hooks::HookHost;
use centurion_journal::{Mirror, Recording, Redaction};

/// The default number of read-only calls that run at once.
const CONCURRENT_CALLS: usize = 10;

/// The start of a session.
#[derive(Clone, Debug)]
pub enum Start {
    New(SessionId),
    /// Continue the transcript of this session.
    Resume(SessionId),
    /// A new session that begins with the history of another.
    Fork {
        from: SessionId,
        id: SessionId,
    },
}

impl Start {
    /// Its name for hooks.
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

/// A place in a transcript from which a session continues. What follows it there is left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResumePoint {
    /// The last record that counts.
    pub record: RecordId,
    /// The prompt whose turn is all that may be left behind.
    pub drops: Option<RecordId>,
}

/// The files of a session.
#[derive(Clone)]
pub struct Storage {
    /// The transcript of this session; `None` keeps none.
    pub transcript: Option<PathBuf>,
    /// The transcript to resume or fork from.
    pub resumed: Option<PathBuf>,
    /// The point in that transcript at which the session continues, if not at its end.
    pub resumed_at: Option<ResumePoint>,
    /// Output too large for an answer, private to the session.
    pub output_dir: PathBuf,
    /// The directory for copies of files before agents change them; `None` keeps none.
    pub file_history: Option<PathBuf>,
    pub redaction: Redaction,
    /// A second reader of all transcripts of the session.
    pub mirror: Option<Arc<dyn Mirror>>,
}

impl Storage {
    /// Keeps no transcript; only what is too large for an answer goes to this directory.
    pub fn without_transcript(output_dir: PathBuf) -> Self {
        Self {
            transcript: None,
            resumed: None,
            resumed_at: None,
            output_dir,
            file_history: None,
            redaction: Redaction::On,
            mirror: None,
        }
    }

    /// The way in which records reach the disk and other readers.
    pub(crate) fn recording(&self) -> Recording {
        Recording { redaction: self.redaction, mirror: self.mirror.clone() }
    }
}

/// The surroundings of a session.
pub struct Base {
    pub cwd: PathBuf,
    /// The directory that `CLAUDE_PROJECT_DIR` names: `cwd`, or the checkout whose configuration counts.
    pub project: PathBuf,
    /// The root of the repository whose state the main agent is told.
    pub repository: Option<PathBuf>,
    pub additional_directories: Vec<PathBuf>,
    pub env: Arc<Env>,
    pub world: Arc<dyn World>,
    pub time_zone: TimeZone,
    /// The program that guards shell commands: it calls [`centurion_tools::guard::run`] when its first argument
    /// is [`centurion_tools::guard::ARGUMENT`].
    pub guard: GuardProgram,
    /// The entry point of the program, as records write it.
    pub entrypoint: String,
    /// Features of the provider that the user switched on, for hosts to see.
    pub betas: Vec<String>,
}

impl Base {
    /// A directory, an empty environment, and the clock of this machine.
    pub fn new(cwd: PathBuf, guard: GuardProgram) -> Self {
        Self {
            project: cwd.clone(),
            cwd,
            repository: None,
            additional_directories: Vec::new(),
            env: Arc::default(),
            world: Arc::new(SystemWorld),
            time_zone: TimeZone::system(),
            guard,
            entrypoint: "sdk".to_owned(),
            betas: Vec::new(),
        }
    }
}

/// The permissions of a session's agents.
pub struct PermissionOptions {
    pub policy: Policy,
    /// Rules that may change while the session runs.
    pub rule_source: Option<Box<dyn RuleSource>>,
    /// The store of answers that hold for longer than the session.
    pub rule_store: Option<Arc<dyn RuleStore>>,
    pub bypass: Bypass,
    /// The sandbox of shell commands.
    pub sandbox: Option<Arc<SandboxPolicy>>,
    /// True if a command that is confined needs no question.
    pub allows_sandboxed: bool,
}

impl PermissionOptions {
    /// This policy, for as long as the session runs.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            rule_source: None,
            rule_store: None,
            bypass: Bypass::Refused("this session was not opened with it"),
            sandbox: None,
            allows_sandboxed: false,
        }
    }

    /// No rules: what is not read-only in this directory is asked about.
    pub fn in_directory(cwd: &Path) -> Self {
        Self::new(Policy {
            cwd: cwd.to_owned(),
            project_root: cwd.to_owned(),
            directories: vec![cwd.to_owned()],
            ..Policy::default()
        })
    }
}

/// Everything a session is made from. [`Options::new`] has a default for all that is not said.
pub struct Options {
    pub start: Start,
    pub storage: Storage,
    pub base: Base,
    pub permission: PermissionOptions,
    pub model: Model,
    pub settings: RequestSettings,
    pub context: ContextRules,
    /// True if a resumed session continues with the model it had.
    pub restores_model: bool,
    pub prompt: PromptOptions,
    /// The instruction files that apply; `None` leaves them out.
    pub memory: Option<Memory>,
    pub tools: ToolChoice,
    pub max_budget: Option<f64>,
    /// True if hosts are shown what the user may say next.
    pub suggests_prompts: bool,
    /// The memory tasks at the end of the session, for the main agent of a later one.
    pub remembers: MemorySettings,
    pub structured: Option<StructuredOutput>,
    /// Answers questions; without one they are denied.
    pub answerer: Option<Arc<dyn Answerer>>,
    pub view: Arc<dyn View>,
    pub extensions: Extensions,
    pub agents: AgentOptions,
}

impl Options {
    /// A new session with a model in a directory: the built-in tools, no agents, no instruction files, no rules, no
    /// view.
    pub fn new(model: Model, base: Base, storage: Storage) -> Self {
        let sources = (AgentSources::default(), SkillSources::default());
        let definitions = Definitions::new(sources.0, sources.1, Arc::clone(&base.world));
        Self {
            start: Start::New(base.world.session_id()),
            storage,
            permission: PermissionOptions::in_directory(&base.cwd),
            base,
            settings: RequestSettings {
                model: model.name().to_owned(),
                concurrent_calls: CONCURRENT_CALLS,
                ..RequestSettings::default()
            },
            context: ContextRules::default(),
            model,
            restores_model: false,
            prompt: PromptOptions::default(),
            memory: None,
            tools: ToolChoice::All,
            max_budget: None,
            suggests_prompts: false,
            remembers: MemorySettings::default(),
            structured: None,
            answerer: None,
            view: Arc::new(SilentView),
            extensions: Extensions::default(),
            agents: AgentOptions::new(definitions),
        }
    }
}

/// The agents that the session knows, and what they may do.
pub struct AgentOptions {
    pub definitions: Arc<Definitions>,
    pub rules: DelegationRules,
    /// The agent that the session itself runs as.
    pub main: Option<String>,
    /// The parts of the main agent that flags fix.
    pub flags: MainFlags,
    /// The starter of servers that definitions bring.
    pub servers: Option<Arc<dyn AgentServers>>,
    /// Refuses models that the settings do not list.
    pub check_model: ModelCheck,
    /// The directories of the agents' memories; `None` where they keep none.
    pub memory: Option<MemoryPlaces>,
    /// True if only plugins and the administrator may bring hooks.
    pub only_plugin_hooks: bool,
    /// The settings files that are there, for the program's own agents.
    pub settings_files: Vec<PathBuf>,
    /// True if only the administrator's rules free tools.
    pub only_managed_rules: bool,
    /// The settings about skills.
    pub skills: SkillSettings,
    /// The settings about worktrees of agents.
    pub worktrees: WorktreeSettings,
    /// The task list that agents share; `None` where each keeps a list of its own.
    pub task_list: Option<TaskListPlace>,
    /// The team that agents with a name join; `None` where teams are off.
    pub team: Option<TeamOptions>,
    /// The back end for members of the team; `None` keeps them in this process.
    pub member_processes: Option<MemberProcessOptions>,
    /// The way to the lead, if this process is that of a member.
    pub lead: Option<Arc<LeadLink>>,
    /// The options of the session among the user's sessions; `None` leaves it alone.
    pub peers: Option<PeerOptions>,
    /// The worktree that the session itself works in from its beginning.
    pub begins_in: Option<String>,
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
            check_model: Arc::new(|_| Ok(())),
            memory: None,
            only_plugin_hooks: false,
            settings_files: Vec::new(),
            only_managed_rules: false,
            skills: SkillSettings::default(),
            worktrees: WorktreeSettings::default(),
            task_list: None,
            team: None,
            member_processes: None,
            lead: None,
            peers: None,
            begins_in: None,
        }
    }
}

/// The parts of plugins that a session uses, but for their servers.
#[derive(Default)]
pub struct PluginParts {
    /// The plugins that are switched on, as hosts see them.
    pub shown: InitPlugins,
    pub agents: Vec<PluginAgents>,
    pub skills: Vec<PluginSkills>,
    /// Folders among skills that are plugins, and so are no skills.
    pub skill_folders: Vec<PathBuf>,
    pub hooks: Vec<HookSet>,
}

/// Extensions of a session's agents: hooks, tools and MCP servers.
#[derive(Default)]
pub struct Extensions {
    /// Tools beside the built-in ones, with names of their own.
    pub tools: Vec<Arc<dyn DynTool>>,
    /// The hooks of the settings.
    pub hooks: HookSet,
    /// The plugins that are switched on, for hosts to see.
    pub plugins: InitPlugins,
    /// The hooks that plugins bring.
    pub plugin_hooks: Vec<HookSet>,
    pub hook_rules: HookRules,
    /// The program that drives this one, if it has functions that are hooks.
    pub hook_host: Option<Arc<dyn HookHost>>,
    /// True if every run of a hook is an event.
    pub shows_hooks: bool,
    pub home: Option<PathBuf>,
    /// The servers of the main agent.
    pub servers: Vec<Connection>,
    /// The servers that are declared and not started, for hosts to see.
    pub withheld_servers: Vec<WithheldServer>,
    /// Tools that the command line names: the first turn waits for their servers as for those of the command line.
    pub asked_tools: Vec<String>,
    /// The longest wait of the first turn for servers that are still connecting.
    pub server_patience: ServerPatience,
    /// The receiver of servers' questions.
    pub elicitations: Arc<Elicitations>,
    /// The Setup hooks that run before the session begins, where the program was started for them.
    pub setup: Option<SetupTrigger>,
}

/// The reason why Setup hooks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetupTrigger {
    Init,
    Maintenance,
}

impl SetupTrigger {
    /// Its name for hooks.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::Maintenance => "maintenance",
        }
    }
}
