//! What every agent of a session is made from, and the one way to make one.

use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};

use centurion_config::agent_memory::MemoryPlaces;
use centurion_config::agents::AgentSource;
use centurion_config::mcp::{McpReference, McpServer};
use centurion_config::memory::{Memory, MemoryTracker};
use centurion_hooks::{Hooks, Registration};
use centurion_mcp::Connection;
use centurion_model::SystemPrompt;
use centurion_protocol::{Conversation, Env};
use centurion_tools::guard::GuardProgram;
use centurion_tools::{DynTool, ReadState, SandboxPolicy, Shells, ShellsConfig, Workspace};
use serde_json::Value;

use crate::agent_tool::{AgentTool, Listing};
use crate::broker::Broker;
use crate::caller::Caller;
use crate::dispatch::Dispatch;
use crate::driver::{Driver, RequestSettings};
use crate::environment::Environment;
use crate::hooks::AgentHooks;
use crate::host::AgentHost;
use crate::list_agents::ListAgents;
use crate::permissions::Permissions;
use crate::prompt::instructions;
use crate::resolve::ToolView;
use crate::schedule::Schedules;
use crate::send_message::SendMessage;
use crate::servers::Servers;
use crate::session::Shared;
use crate::structured::StructuredOutput;
use crate::toolbox::{Offer, SpecCache, ToolChoice, Toolbox, ToolboxError};
use centurion_journal::{Journal, Redaction, Stamp};

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

/// Why a model may not be used, if so.
pub type ModelRefusal = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The ground that all agents of a session stand on.
pub(crate) struct Ground {
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
    pub(crate) redaction: Redaction,
    /// Where the transcripts of agents are.
    pub(crate) agents_dir: PathBuf,
    /// The main agent's transcript.
    pub(crate) transcript: PathBuf,
    pub(crate) settings: RequestSettings,
    /// The hooks of the session, once they are there.
    pub(crate) hooks: Option<Hooks>,
    /// What keeps the hooks of the settings in force.
    pub(crate) settings_hooks: Option<Arc<Registration>>,
    pub(crate) agent_servers: Option<Arc<dyn AgentServers>>,
    pub(crate) refuse_model: ModelRefusal,
    /// Where agents keep their memories; `None` where they keep none.
    pub(crate) memories: Option<MemoryPlaces>,
    /// Whether only plugins and the administrator may bring hooks.
    pub(crate) hooks_are_for_plugins: bool,
    /// The settings files that are there, for the program's own agents.
    pub(crate) settings_files: Vec<PathBuf>,
    pub(crate) specs: Arc<SpecCache>,
}

/// What one agent is made of, beside the ground.
pub(crate) struct Parts {
    pub(crate) caller: Arc<Caller>,
    pub(crate) view: ToolView,
    pub(crate) system: SystemPrompt,
    pub(crate) settings: RequestSettings,
    pub(crate) journal: Arc<Journal>,
    pub(crate) conversation: Conversation,
    pub(crate) structured: Option<StructuredOutput>,
    /// Whether it is told what the instruction files say.
    pub(crate) instructions: bool,
}

impl Ground {
    /// All tools that an agent could have, in their order, with what they say about agents now.
    pub(crate) fn candidates(&self, caller: &Arc<Caller>) -> (Vec<Arc<dyn DynTool>>, u64) {
        let listing = Listing::of(caller);
        let edition = edition(listing.as_ref());
        let mut tools = self.tools.clone();
        if let Some(listing) = listing {
            let caller = || Arc::clone(caller);
            tools.extend([
                centurion_tools::erase(AgentTool::new(caller(), listing)),
                centurion_tools::erase(ListAgents(caller())),
                centurion_tools::erase(SendMessage(caller())),
            ]);
        }
        let shared = caller.shared.upgrade().filter(|_| caller.identity.is_main());
        if shared.is_some_and(|shared| shared.schedules.get().is_some()) {
            tools.extend(Schedules::tools(caller));
        }
        if tools.len() > self.tools.len() {
            tools.sort_by(|one, other| one.name().cmp(other.name()));
        }
        (tools, edition)
    }

    pub(crate) fn offer<'a>(&'a self, permissions: &'a Permissions, broker: &Broker) -> Offer<'a> {
        Offer { choice: &self.choice, permissions, has_answerer: broker.has_answerer() }
    }

    /// The names of all tools that there are for an agent now, with those of its servers.
    pub(crate) fn pool(&self, shared: &Shared, caller: &Arc<Caller>, model: &str) -> Vec<String> {
        let (tools, _) = self.candidates(caller);
        let mut pool = self.offer(&caller.permissions, &shared.broker).names(&tools);
        let window = shared.model.info(model).context_window;
        let served = caller.servers.serve(&caller.permissions, window);
        pool.extend(served.offered.into_keys().chain(served.deferred));
        pool
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
    ) -> Result<BroughtServers, String> {
        let source = self.agent_servers.as_ref().ok_or(NO_SERVERS)?;
        let mut brought = BroughtServers::default();
        for reference in source.read(asked, by)? {
            let connection = match reference {
                McpReference::Inline(server) => {
                    let own = source.own(*server);
                    brought.own.push(own.clone());
                    own
                }
                McpReference::Named(name) => among.find(&name).ok_or_else(|| {
                    format!(
                        "it asks for the MCP server `{name}`, which is not configured ({written})"
                    )
                })?,
            };
            brought.all.push(connection);
        }
        Ok(brought)
    }

    /// Where an agent's tools work.
    pub(crate) fn workspace(
        &self,
        shared: &Arc<Shared>,
        caller: &Caller,
        cwd: PathBuf,
        read_state: ReadState,
    ) -> Arc<Workspace> {
        let config = ShellsConfig::new(self.guard.clone(), self.stamp.session, cwd.clone());
        let shells = Shells::new(ShellsConfig {
            environment_files: self.env_files.clone(),
            max_output: self.env.number(MAX_OUTPUT_VARIABLE).unwrap_or(config.max_output),
            ..config
        });
        let shells = Arc::new(shells);
        shared.note_shells(&shells);
        let permissions = Arc::clone(&caller.permissions);
        let reads = Arc::clone(&permissions);
        let (permitted, hosts) = (Arc::clone(&permissions), Arc::clone(&permissions));
        Arc::new(Workspace {
            root: cwd.clone(),
            cwd: Mutex::new(cwd),
            read_state,
            may_read: Arc::new(move |path| !reads.denies_reading(path)),
            find_denied: Arc::new(move || permitted.find_denied()),
            host_rule: Arc::new(move |url| hosts.host_rule(url)),
            sandbox: self.sandbox.clone(),
            todos: Mutex::default(),
            shells,
            output_dir: self.output_dir.clone(),
            env: Arc::clone(&self.env),
            world: Arc::clone(&shared.world),
            host: Arc::new(AgentHost::new(
                Arc::downgrade(shared),
                permissions,
                Arc::clone(&caller.identity),
            )),
        })
    }

    /// Makes an agent.
    pub(crate) fn assemble(
        &self,
        shared: &Arc<Shared>,
        parts: Parts,
        workspace: Arc<Workspace>,
        hooks: Arc<AgentHooks>,
    ) -> Result<Driver, ToolboxError> {
        let Parts { caller, view, structured, .. } = parts;
        let (tools, edition) = self.candidates(&caller);
        let offer = self.offer(&caller.permissions, &shared.broker);
        let cache = Some(Arc::clone(&self.specs));
        let mut toolbox = Toolbox::new(tools, view, &offer, cache, edition)?;
        if let Some(structured) = &structured {
            toolbox = toolbox.with(Arc::new(structured.clone()));
        }
        let is_new = parts.conversation.is_empty();
        let memory = self.memory.as_ref().filter(|_| parts.instructions);
        let told = memory.filter(|_| is_new).and_then(|memory| memory.render());
        let dispatch = Dispatch {
            toolbox,
            workspace,
            permissions: Arc::clone(&caller.permissions),
            broker: Arc::clone(&shared.broker),
            hooks,
            servers: Arc::clone(&caller.servers),
            allows_sandboxed: self.allows_sandboxed,
            caller: Arc::clone(&caller),
        };
        caller.note(&parts.settings);
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

/// Why a definition cannot bring servers where nobody starts them.
const NO_SERVERS: &str = "it asks for MCP servers, and this session has none for agents";

/// A caller whose session has ended.
pub(crate) const GONE: &str = "the session has ended";

/// The session, or the reason why there is none.
pub(crate) fn alive(shared: &Weak<Shared>) -> Result<Arc<Shared>, String> {
    shared.upgrade().ok_or_else(|| GONE.to_owned())
}
