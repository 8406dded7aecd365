//! The parts that all agents of a session are built from, and the meaning of a definition for one of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_config::Problem;
use centurion_config::agent_memory::MemoryPlaces;
use centurion_config::agents::{ActiveAgent, AgentSource};
use centurion_config::mcp::{McpReference, McpServer, McpStanding};
use centurion_config::memory::Memory;
use centurion_config::settings::SkillSettings;
use centurion_config::skills::{SkillDefinition, SkillSource};
use centurion_config::trust::Unaccepted;
use centurion_hooks::{Hooks, Registration};
use centurion_mcp::Connection;
use centurion_protocol::{Effort, Env};
use centurion_tools::guard::GuardProgram;
use centurion_tools::{Checkpoints, DynTool, SandboxPolicy, SharedFiles};
use serde_json::Value;
use thiserror::Error;

use crate::agent::hooks::AgentHooks;
use crate::agent::isolation::Isolator;
use crate::agent::listing::Listing;
use crate::agent::session_place::SessionPlace;
use crate::agent::shared::Shared;
use crate::agent::{Agent, ToolScope};
use crate::definition::context_rules::ContextRules;
use crate::definition::environment::Environment;
use crate::definition::model_check::ModelCheck;
use crate::definition::request_settings::RequestSettings;
use crate::definition::resolve::{
    AgentPosition, EffectiveAgent, LaunchError, ResolveContext, Starter, resolve,
};
use crate::policy::permissions::Permissions;
use crate::schedule::Schedules;
use crate::toolset::servers::Servers;
use crate::toolset::toolbox::{Offer, SEARCH_TOOL, SpecCache, ToolChoice};
use centurion_journal::{Journal, Recording, Stamp};

/// The tool by which an agent starts others.
pub(crate) const AGENT_TOOL: &str = "Agent";

/// The tool by which an agent invokes skills.
pub(crate) const SKILL_TOOL: &str = "Skill";

/// The tools by which an agent starts and reaches others.
const AGENT_TOOLS: [&str; 3] = [AGENT_TOOL, "ListAgents", "SendMessage"];

/// The tool by which an agent brings over what others did apart.
const MERGE_TOOL: &str = "Worktrees";

/// The tools by which the main agent leads a team.
pub(crate) const LEADING_TOOLS: [&str; 2] = ["TeamCreate", "TeamDelete"];

/// The tools about the tasks that agents share.
pub const TASK_TOOLS: [&str; 4] = ["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"];

/// The tools by which an agent enters and leaves worktrees.
const WORKTREE_TOOLS: [&str; 2] = ["EnterWorktree", "ExitWorktree"];

/// Servers that definitions of agents bring.
pub trait AgentServers: Send + Sync {
    /// Reads what a definition says under `mcpServers`.
    fn read(
        &self,
        servers: &Value,
        by: &BroughtBy<'_>,
    ) -> Result<Vec<McpReference>, AgentServersError>;

    /// Starts a server that ends with the agent that brings it.
    fn own(&self, server: McpServer) -> Connection;
}

/// The reason why the servers that a definition brings cannot be used.
#[derive(Debug, Error)]
pub enum AgentServersError {
    #[error("{0}")]
    Malformed(Problem),
    #[error("its MCP server `{name}` is {standing}")]
    NotActive { name: String, standing: McpStanding },
    #[error("its MCP server `{name}`: {reason}")]
    Refused { name: String, reason: Unaccepted },
}

/// The definition that brings something.
#[derive(Clone, Copy, Debug)]
pub struct BroughtBy<'a> {
    pub name: &'a str,
    pub source: AgentSource,
    pub path: &'a Path,
}

/// The servers that an agent has beside those of its parent.
#[derive(Default)]
pub(crate) struct BroughtServers {
    pub(crate) all: Vec<Connection>,
    /// The servers that end with the agent.
    pub(crate) own: Vec<Connection>,
}

/// The reason why an agent cannot have the servers that its definition asks for.
#[derive(Debug, Error)]
pub enum ServersError {
    #[error("it asks for MCP servers, and this session has none for agents")]
    NoSource,
    #[error(transparent)]
    Unusable(#[from] AgentServersError),
    #[error("it asks for the MCP server `{name}`, which is not configured ({written})")]
    NotConfigured { name: String, written: String },
}

/// Constructors of the tools that reach agents and schedules. The session supplies this: such tools have agents
/// built, and so stand above the builder.
#[derive(Clone, Copy)]
pub(crate) struct EngineTools {
    /// The tool that starts agents.
    pub(crate) starting: fn(Arc<Agent>, Arc<Listing>) -> Arc<dyn DynTool>,
    /// The others by which an agent reaches agents.
    pub(crate) reaching: fn(&Arc<Agent>) -> Vec<Arc<dyn DynTool>>,
    /// The tool that invokes skills.
    pub(crate) invoking: fn(&Arc<Agent>) -> Arc<dyn DynTool>,
    /// The tools by which an agent enters and leaves worktrees.
    pub(crate) moving: fn(&Arc<Agent>) -> Vec<Arc<dyn DynTool>>,
    /// The tools about the tasks that agents share.
    pub(crate) sharing: fn(&Arc<Agent>) -> Vec<Arc<dyn DynTool>>,
    /// The tools by which the main agent leads a team.
    pub(crate) leading: fn(&Arc<Agent>) -> Vec<Arc<dyn DynTool>>,
    /// The tool by which an agent brings over what others did apart.
    pub(crate) merging: fn(&Arc<Agent>) -> Arc<dyn DynTool>,
    /// The tool that has the provider search the web.
    pub(crate) searching: fn(&Arc<Agent>) -> Arc<dyn DynTool>,
    /// The tools about schedules.
    pub(crate) scheduling: fn(&Arc<Agent>) -> Vec<Arc<dyn DynTool>>,
}

/// The settings about the sandbox of commands.
pub(crate) struct Confinement {
    /// The sandbox of agents that work in the user's own files.
    pub(crate) sandbox: Option<Arc<SandboxPolicy>>,
    /// True if a command that is confined needs no question.
    pub(crate) allows_sandboxed: bool,
}

/// The parts that all agents of a session are built from.
pub(crate) struct AgentBuilder {
    pub(crate) env: Arc<Env>,
    pub(crate) guard: GuardProgram,
    pub(crate) confinement: Confinement,
    /// Makes worktrees for agents that work apart.
    pub(crate) isolator: Isolator,
    pub(crate) tools: Vec<Arc<dyn DynTool>>,
    pub(crate) engine_tools: EngineTools,
    pub(crate) choice: ToolChoice,
    pub(crate) environment: Environment,
    /// The directory that `CLAUDE_PROJECT_DIR` names where the session was started.
    pub(crate) project: PathBuf,
    pub(crate) memory: Option<Arc<Memory>>,
    /// The stamp of the main agent's records when the process began.
    pub(crate) first_stamp: Stamp,
    pub(crate) files: SessionFiles,
    pub(crate) settings: RequestSettings,
    pub(crate) context: ContextRules,
    /// The hooks of the session.
    pub(crate) hooks: Hooks,
    /// Keeps the hooks of the settings in force.
    pub(crate) settings_hooks: Arc<Registration>,
    pub(crate) agent_servers: Option<Arc<dyn AgentServers>>,
    pub(crate) check_model: ModelCheck,
    pub(crate) sources: DefinitionSources,
    pub(crate) specs: Arc<SpecCache>,
}

/// The files of a session: transcripts, outputs, memories of its agents.
pub(crate) struct SessionFiles {
    pub(crate) recording: Recording,
    /// Output too large for an answer, private to the session.
    pub(crate) output_dir: PathBuf,
    /// Scripts that every command reads first.
    pub(crate) env_files: Vec<PathBuf>,
    /// The shared knowledge of its agents about the user's files.
    pub(crate) known: Arc<SharedFiles>,
    /// Keeps what the user's files were, where that is wanted.
    pub(crate) checkpoints: Option<Arc<Checkpoints>>,
    /// The session, and where its transcripts are.
    pub(crate) place: SessionPlace,
    /// The journal that writes the main agent's transcript.
    pub(crate) journal: Arc<Journal>,
    /// The directories of the agents' memories; `None` where they keep none.
    pub(crate) memories: Option<MemoryPlaces>,
}

/// The settings about sources of definitions.
pub(crate) struct DefinitionSources {
    /// True if only plugins and the administrator may bring hooks.
    pub(crate) only_plugin_hooks: bool,
    /// The settings files that exist, for the program's own agents.
    pub(crate) settings_files: Vec<PathBuf>,
    /// True if only the administrator's rules free tools.
    pub(crate) only_managed_rules: bool,
    /// The settings about skills.
    pub(crate) skills: SkillSettings,
}

impl DefinitionSources {
    /// The reason why a skill may not bring hooks, if so.
    pub(crate) fn skill_hooks_refusal(&self, skill: &SkillDefinition) -> Option<String> {
        if let Some(reason) = &skill.withheld {
            return Some(format!("not in force: {reason}"));
        }
        match skill.origin.source {
            SkillSource::Project | SkillSource::User if self.only_plugin_hooks => {
                Some("not in force: managed settings leave hooks to plugins".to_owned())
            }
            _ => None,
        }
    }
}

impl AgentBuilder {
    /// The stamp of records of the session as it is now.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp { session: self.files.place.id(), ..self.first_stamp.clone() }
    }

    /// The directory that `CLAUDE_PROJECT_DIR` names for an agent in this one: an agent that works apart has its own.
    pub(crate) fn project_of<'a>(&'a self, cwd: &'a Path) -> &'a Path {
        if cwd == self.environment.cwd { &self.project } else { cwd }
    }

    /// The names of all tools that there are for an agent now, with those of its servers.
    pub(crate) fn pool(&self, shared: &Shared, scope: &ToolScope<'_>, model: &str) -> Vec<String> {
        let starts_agents = Listing::of(&shared.delegation, scope).is_some();
        let has_schedules = scope.is_main && shared.lets_models_schedule();
        let for_agents: &[&str] = if starts_agents { &AGENT_TOOLS } else { &[] };
        let for_schedules: &[&str] = if has_schedules { &Schedules::TOOLS } else { &[] };
        let has_skills = shared.delegation.definitions.has_skills_for_models();
        let for_skills: &[&str] = if has_skills { &[SKILL_TOOL] } else { &[] };
        let for_worktrees: &[&str] = if self.has_repository() { &WORKTREE_TOOLS } else { &[] };
        let merges = starts_agents && self.has_repository();
        let for_merging: &[&str] = if merges { &[MERGE_TOOL] } else { &[] };
        let has_tasks = shared.delegation.has_tasks();
        let for_tasks: &[&str] = if has_tasks { &TASK_TOOLS } else { &[] };
        let leads = scope.is_main && shared.delegation.team.is_some();
        let for_leading: &[&str] = if leads { &LEADING_TOOLS } else { &[] };
        let built_in = self.tools.iter().map(|tool| tool.name());
        let names = built_in
            .chain(for_agents.iter().copied())
            .chain(for_schedules.iter().copied())
            .chain(for_skills.iter().copied())
            .chain(for_tasks.iter().copied())
            .chain(for_leading.iter().copied())
            .chain(for_worktrees.iter().copied())
            .chain(for_merging.iter().copied())
            .chain([SEARCH_TOOL]);
        let mut pool = self.offer(scope.permissions, shared).names(names);
        // The order of the toolbox.
        pool.sort();
        let window = shared.window_of(model);
        let served = scope.servers.serve(scope.permissions, window);
        pool.extend(served.offered.into_keys().chain(served.deferred));
        pool
    }

    /// Tells whether the session began in a git repository.
    pub(crate) fn has_repository(&self) -> bool {
        self.environment.git.is_some()
    }

    /// The conditions for offering tools to an agent.
    pub(crate) fn offer<'a>(&'a self, permissions: &'a Permissions, shared: &Shared) -> Offer<'a> {
        Offer {
            choice: &self.choice,
            permissions,
            has_answerer: shared.broker.has_answerer(),
            searches_web: shared.model.searches_web(),
            plans_for_lead: false,
        }
    }

    /// Decides what a definition means for an agent at this place.
    pub(crate) fn resolve(
        &self,
        shared: &Shared,
        agent: &ActiveAgent,
        place: AgentPosition<'_>,
        starter: &Starter,
        scope: &ToolScope<'_>,
    ) -> Result<EffectiveAgent, LaunchError> {
        let pool = self.pool(shared, scope, &starter.model);
        let context = ResolveContext {
            rules: &shared.delegation.rules,
            resolve_model: &|name| shared.model.resolve(name),
            check_model: &*self.check_model,
            bypass: scope.permissions.bypass(),
            pool: &pool,
            keeps_memory: self.files.memories.as_ref().is_some_and(|it| it.auto_memory),
            only_plugin_hooks: self.sources.only_plugin_hooks,
        };
        resolve(&agent.definition, agent.color, place, starter, &context)
    }

    /// The hooks of the session, for an agent with this effort.
    pub(crate) fn agent_hooks(&self, effort: Option<Effort>) -> AgentHooks {
        let registration = Arc::clone(&self.settings_hooks);
        AgentHooks::new(self.hooks.clone(), registration, effort)
    }

    /// Connects what a definition asks for: servers that it brings are started, those that it names are found
    /// among others. One that is not found is an error that says where it is `written`: nothing is left out in
    /// silence.
    pub(crate) fn servers(
        &self,
        asked: &Value,
        by: &BroughtBy<'_>,
        written: &dyn std::fmt::Display,
        among: &Servers,
    ) -> Result<BroughtServers, ServersError> {
        let source = self.agent_servers.as_ref().ok_or(ServersError::NoSource)?;
        let mut brought = BroughtServers::default();
        for reference in source.read(asked, by)? {
            let connection = match reference {
                McpReference::Inline(server) => {
                    let own = source.own(*server);
                    brought.own.push(own.clone());
                    own
                }
                McpReference::Named(name) => among.find(&name).ok_or_else(|| {
                    ServersError::NotConfigured { name, written: written.to_string() }
                })?,
            };
            brought.all.push(connection);
        }
        Ok(brought)
    }
}
