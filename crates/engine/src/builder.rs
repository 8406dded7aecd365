//! What all agents of a session are built from, and the one way to build one.

use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use centurion_config::agent_memory::MemoryPlaces;
use centurion_config::agents::{ActiveAgent, AgentSource};
use centurion_config::mcp::{McpReference, McpServer};
use centurion_config::memory::{Memory, MemoryTracker};
use centurion_hooks::{Hooks, Registration};
use centurion_mcp::Connection;
use centurion_model::SystemPrompt;
use centurion_protocol::{Conversation, Effort, Env};
use centurion_tools::guard::GuardProgram;
use centurion_tools::{DynTool, SandboxPolicy, Shells, ShellsConfig, Tool as _, Workspace};
use parking_lot::Mutex;
use serde_json::Value;
use thiserror::Error;

use crate::agent::{Agent, AgentParts, ToolScope};
use crate::agent_tool::{AgentTool, Listing};
use crate::broker::Broker;
use crate::dispatch::Dispatch;
use crate::driver::{Driver, RequestSettings};
use crate::environment::Environment;
use crate::hooks::AgentHooks;
use crate::host::AgentHost;
use crate::list_agents::ListAgents;
use crate::permissions::Permissions;
use crate::prompt::instructions;
use crate::resolve::{
    EffectiveAgent, LaunchError, Place, ResolveContext, Starter, ToolView, resolve,
};
use crate::schedule::Schedules;
use crate::send_message::SendMessage;
use crate::servers::Servers;
use crate::session::Shared;
use crate::structured::StructuredOutput;
use crate::toolbox::{Offer, SpecCache, ToolChoice, Toolbox, ToolboxError};
use centurion_journal::{Journal, Redaction, Stamp};

/// The tools by which an agent starts and reaches others.
const AGENT_TOOLS: [&str; 3] = [AgentTool::NAME, ListAgents::NAME, SendMessage::NAME];

/// How many bytes one command may write before it is ended.
const MAX_OUTPUT_VARIABLE: &str = "CENTURION_MAX_COMMAND_OUTPUT_BYTES";

/// Servers that definitions of agents bring.
pub trait AgentServers: Send + Sync {
    /// Reads what a definition says under `mcpServers`; `Err` says what cannot be used.
    fn read(&self, servers: &Value, by: &BroughtBy<'_>) -> Result<Vec<McpReference>, String>;

    /// Starts a server that ends with the agent that brings it.
    fn own(&self, server: McpServer) -> Connection;
}

/// The definition that brings something.
#[derive(Clone, Copy, Debug)]
pub struct BroughtBy<'a> {
    pub name: &'a str,
    pub source: AgentSource,
    pub path: &'a Path,
}

/// The servers that an agent has beside those of whoever it works for.
#[derive(Default)]
pub(crate) struct BroughtServers {
    pub(crate) all: Vec<Connection>,
    /// Those of them that end with it.
    pub(crate) own: Vec<Connection>,
}

/// Why an agent cannot have the servers that its definition asks for.
#[derive(Debug, Error)]
pub(crate) enum ServersError {
    #[error("it asks for MCP servers, and this session has none for agents")]
    NoSource,
    #[error("{0}")]
    Unusable(String),
    #[error("it asks for the MCP server `{name}`, which is not configured ({written})")]
    NotConfigured { name: String, written: String },
}

/// Why a model may not be used, if so.
pub type ModelRefusal = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What all agents of a session are built from.
pub(crate) struct AgentBuilder {
    pub(crate) env: Arc<Env>,
    pub(crate) guard: GuardProgram,
    pub(crate) sandbox: Option<Arc<SandboxPolicy>>,
    pub(crate) allows_sandboxed: bool,
    /// Output too large for an answer, private to the session.
    pub(crate) output_dir: PathBuf,
    /// Scripts that every command reads first.
    pub(crate) env_files: Vec<PathBuf>,
    pub(crate) tools: Vec<Arc<dyn DynTool>>,
    pub(crate) choice: ToolChoice,
    pub(crate) environment: Environment,
    pub(crate) memory: Option<Arc<Memory>>,
    pub(crate) stamp: Stamp,
    pub(crate) files: SessionFiles,
    pub(crate) settings: RequestSettings,
    /// The hooks of the session.
    pub(crate) hooks: Hooks,
    /// Keeps the hooks of the settings in force.
    pub(crate) settings_hooks: Arc<Registration>,
    pub(crate) agent_servers: Option<Arc<dyn AgentServers>>,
    pub(crate) refuse_model: ModelRefusal,
    /// Where agents keep their memories; `None` where they keep none.
    pub(crate) memories: Option<MemoryPlaces>,
    pub(crate) sources: DefinitionSources,
    pub(crate) specs: Arc<SpecCache>,
}

/// Where the transcripts of a session are, and how they are written.
pub(crate) struct SessionFiles {
    pub(crate) redaction: Redaction,
    /// Where the transcripts of agents are.
    pub(crate) agents_dir: PathBuf,
    /// The main agent's transcript.
    pub(crate) transcript: PathBuf,
}

/// What the settings say about where definitions come from.
pub(crate) struct DefinitionSources {
    /// Whether only plugins and the administrator may bring hooks.
    pub(crate) only_plugin_hooks: bool,
    /// The settings files that exist, for the program's own agents.
    pub(crate) settings_files: Vec<PathBuf>,
}

/// What a driver is built from, beside its agent.
pub(crate) struct DriverParts {
    pub(crate) view: ToolView,
    pub(crate) system: SystemPrompt,
    pub(crate) settings: RequestSettings,
    pub(crate) journal: Arc<Journal>,
    pub(crate) conversation: Conversation,
    pub(crate) structured: Option<StructuredOutput>,
    /// Whether it is told what the instruction files say.
    pub(crate) instructions: bool,
}

impl AgentBuilder {
    /// All tools that an agent could have, in their order, with what they say about agents now.
    fn candidates(&self, shared: &Shared, agent: &Arc<Agent>) -> (Vec<Arc<dyn DynTool>>, u64) {
        let listing = Listing::of(&shared.delegation, &agent.tool_scope());
        let edition = edition(listing.as_ref());
        let mut tools = self.tools.clone();
        if let Some(listing) = listing {
            let agent = || Arc::clone(agent);
            tools.extend([
                centurion_tools::erase(AgentTool::new(agent(), listing)),
                centurion_tools::erase(ListAgents(agent())),
                centurion_tools::erase(SendMessage(agent())),
            ]);
        }
        if agent.identity.is_main() && shared.schedules.is_some() {
            tools.extend(Schedules::tools(agent));
        }
        if tools.len() > self.tools.len() {
            tools.sort_by(|one, other| one.name().cmp(other.name()));
        }
        (tools, edition)
    }

    /// The names of all tools that there are for an agent now, with those of its servers.
    pub(crate) fn pool(&self, shared: &Shared, scope: &ToolScope<'_>, model: &str) -> Vec<String> {
        let starts_agents = Listing::of(&shared.delegation, scope).is_some();
        let has_schedules = scope.is_main && shared.schedules.is_some();
        let for_agents: &[&str] = if starts_agents { &AGENT_TOOLS } else { &[] };
        let for_schedules: &[&str] = if has_schedules { &Schedules::TOOLS } else { &[] };
        let built_in = self.tools.iter().map(|tool| tool.name());
        let names = built_in.chain(for_agents.iter().copied()).chain(for_schedules.iter().copied());
        let mut pool = self.offer(scope.permissions, &shared.broker).names(names);
        // The order of the toolbox.
        if starts_agents || has_schedules {
            pool.sort();
        }
        let window = shared.model.info(model).context_window;
        let served = scope.servers.serve(scope.permissions, window);
        pool.extend(served.offered.into_keys().chain(served.deferred));
        pool
    }

    fn offer<'a>(&'a self, permissions: &'a Permissions, broker: &Broker) -> Offer<'a> {
        Offer { choice: &self.choice, permissions, has_answerer: broker.has_answerer() }
    }

    /// Decides what a definition means for an agent at this place.
    pub(crate) fn resolve(
        &self,
        shared: &Shared,
        agent: &ActiveAgent,
        place: Place<'_>,
        starter: &Starter,
        scope: &ToolScope<'_>,
    ) -> Result<EffectiveAgent, LaunchError> {
        let pool = self.pool(shared, scope, &starter.model);
        let context = ResolveContext {
            rules: &shared.delegation.rules,
            resolve_model: &|name| shared.model.resolve(name),
            refuse_model: &*self.refuse_model,
            bypass: scope.permissions.bypass(),
            pool: &pool,
            keeps_memory: self.memories.as_ref().is_some_and(|it| it.auto_memory),
            only_plugin_hooks: self.sources.only_plugin_hooks,
        };
        resolve(&agent.definition, agent.color, place, starter, &context)
    }

    /// The hooks of the session, for an agent with this effort.
    pub(crate) fn agent_hooks(&self, effort: Option<Effort>) -> AgentHooks {
        let registration = Arc::clone(&self.settings_hooks);
        AgentHooks::new(self.hooks.clone(), registration, self.files.transcript.clone(), effort)
    }

    /// Connects what a definition asks for: servers that it brings are started, those that it names are
    /// found among others. One that nobody has is an error that says where it is `written`: nothing is left
    /// out in silence.
    pub(crate) fn servers(
        &self,
        asked: &Value,
        by: &BroughtBy<'_>,
        written: &dyn std::fmt::Display,
        among: &Servers,
    ) -> Result<BroughtServers, ServersError> {
        let source = self.agent_servers.as_ref().ok_or(ServersError::NoSource)?;
        let mut brought = BroughtServers::default();
        for reference in source.read(asked, by).map_err(ServersError::Unusable)? {
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

    /// Builds an agent of a session.
    pub(crate) fn agent(&self, shared: &Arc<Shared>, parts: AgentParts) -> Arc<Agent> {
        let shells = Arc::new(self.shells(parts.cwd.clone()));
        shared.note_shells(&shells);
        Arc::new_cyclic(|agent| {
            let permissions = Arc::clone(&parts.permissions);
            let (read, denied, hosts) =
                (Arc::clone(&permissions), Arc::clone(&permissions), permissions);
            let workspace = Workspace {
                root: parts.cwd.clone(),
                cwd: Mutex::new(parts.cwd.clone()),
                read_state: parts.read_state.clone(),
                may_read: Arc::new(move |path| !read.denies_reading(path)),
                find_denied: Arc::new(move || denied.find_denied()),
                host_rule: Arc::new(move |url| hosts.host_rule(url)),
                sandbox: self.sandbox.clone(),
                todos: Mutex::default(),
                shells,
                output_dir: self.output_dir.clone(),
                env: Arc::clone(&self.env),
                world: Arc::clone(&shared.world),
                host: Arc::new(AgentHost::new(Weak::clone(agent))),
            };
            Agent::new(Arc::downgrade(shared), Arc::new(workspace), parts)
        })
    }

    fn shells(&self, cwd: PathBuf) -> Shells {
        let config = ShellsConfig::new(self.guard.clone(), self.stamp.session, cwd);
        Shells::new(ShellsConfig {
            environment_files: self.env_files.clone(),
            max_output: self.env.number(MAX_OUTPUT_VARIABLE).unwrap_or(config.max_output),
            ..config
        })
    }

    /// Builds the driver of an agent.
    pub(crate) fn driver(
        &self,
        shared: &Arc<Shared>,
        agent: Arc<Agent>,
        parts: DriverParts,
    ) -> Result<Driver, ToolboxError> {
        let DriverParts { view, structured, .. } = parts;
        let (tools, edition) = self.candidates(shared, &agent);
        let offer = self.offer(&agent.permissions, &shared.broker);
        let cache = Some(Arc::clone(&self.specs));
        let mut toolbox = Toolbox::new(tools, view, &offer, cache, edition)?;
        if let Some(structured) = &structured {
            toolbox = toolbox.with(Arc::new(structured.clone()));
        }
        let is_new = parts.conversation.is_empty();
        let memory = self.memory.as_ref().filter(|_| parts.instructions);
        let told = memory.filter(|_| is_new).and_then(|memory| memory.render());
        agent.note_settings(&parts.settings);
        let dispatch = Dispatch {
            toolbox,
            agent,
            broker: Arc::clone(&shared.broker),
            allows_sandboxed: self.allows_sandboxed,
        };
        Ok(Driver {
            context: told.as_deref().map(instructions).into_iter().collect(),
            structured,
            memory: memory.map(|memory| MemoryTracker::new(Arc::clone(memory))),
            ..Driver::new(
                Arc::clone(shared),
                parts.journal,
                dispatch,
                parts.conversation,
                parts.system,
                parts.settings,
            )
        })
    }
}

/// A number for what the tools say about agents.
pub(crate) fn edition(listing: Option<&Arc<Listing>>) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    listing.map(|listing| &listing.text).hash(&mut hasher);
    hasher.finish()
}
