//! The MCP servers of one agent: whose tools it has, which of them it only knows by name until it asks, and
//! what the servers say about themselves.
//!
//! Tools of servers are offered in the order of their names, those that a search brought after the others in
//! the order of the searches: what a request begins with does not change while nothing new is asked for.

mod announce;
mod expand;
mod patience;
mod require;
mod resources;
mod search;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use centurion_config::mcp::{McpScope, McpServer, McpTransport};
use centurion_mcp::{Connection, State, tool_name};
use centurion_protocol::{Env, ToolSpecs};
use centurion_tools::{DynTool, erase};
use indexmap::{IndexMap, IndexSet};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

pub(crate) use self::announce::{Announcements, KnownServers};
pub(crate) use self::expand::{Expansion, ServerCommand};
pub use self::patience::ServerPatience;
pub use self::require::{REQUIRED_PATIENCE, RequireError, UnusableServer};
use self::resources::{ListMcpResources, ReadMcpResource};
use self::search::ToolSearch;
use crate::policy::broker::AskedServer;
use crate::policy::permissions::Permissions;
use crate::toolset::toolbox::ServerTools;

/// About how many bytes of a tool's definition make a token.
const BYTES_PER_TOKEN: usize = 4;

/// When the tools of servers are only named until the model asks for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deferral {
    Always,
    Never,
    /// When their definitions would take more than this many hundredths of the model's window.
    Above(u8),
}

impl Deferral {
    const DEFAULT: Self = Self::Above(10);

    /// Reads the user's choice: `ENABLE_TOOL_SEARCH` is `true`, `false`, `auto` or `auto:N`.
    pub(crate) fn chosen(env: &Env) -> Self {
        match env.get("ENABLE_TOOL_SEARCH") {
            Some("true" | "1" | "on" | "yes") => Self::Always,
            Some("false" | "0" | "off" | "no") => Self::Never,
            Some(text) => match text.strip_prefix("auto:").map(str::parse) {
                Some(Ok(percent)) if percent <= 100 => Self::Above(percent),
                _ => Self::DEFAULT,
            },
            None => Self::DEFAULT,
        }
    }
}

/// The servers of one agent: those of its parent, which come and go there, and its own.
pub(crate) struct Servers {
    /// The parent, whose servers the agent has beside its own. `None` for the main agent.
    parent: Option<Arc<Servers>>,
    /// Its own. It is locked on its own: no lock of a parent is taken while it is held.
    state: Mutex<ServerTable>,
    deferral: Deferral,
}

/// A server that is declared and not started: what a repository brings to an untrusted folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithheldServer {
    pub name: String,
    /// In one word.
    pub status: &'static str,
    pub scope: McpScope,
    /// The reason why it was not started.
    pub reason: String,
}

#[derive(Default)]
struct ServerTable {
    connections: Vec<Connection>,
    /// Never started.
    withheld: Vec<WithheldServer>,
    /// Switched off while the session runs, by name.
    disabled: IndexSet<String>,
    /// Tools loaded by searches, in their order.
    loaded: IndexSet<String>,
    /// Tools that the command line names.
    asked_tools: Vec<String>,
    /// Servers that a first turn has waited for in vain, by name.
    overdue: IndexSet<String>,
    /// Added while the session runs, by name, and not yet waited for.
    newcomers: IndexSet<String>,
    /// Counts what was changed here; what servers change they count themselves.
    changes: u64,
}

/// The place that a server comes from, by its word in the public protocol.
pub fn public_source(server: &McpServer) -> &'static str {
    if matches!(server.transport, McpTransport::Sdk { .. }) {
        return "sdk";
    }
    match server.origin.scope {
        McpScope::Managed => "managed",
        McpScope::Flag | McpScope::Host => "dynamic",
        McpScope::Local => "local",
        McpScope::Project => "project",
        McpScope::User => "user",
        McpScope::Plugin(_) => "plugin",
        McpScope::Agent(_) => "agent",
    }
}

impl Servers {
    pub(crate) fn new(connections: Vec<Connection>, deferral: Deferral) -> Arc<Self> {
        let state = Mutex::new(ServerTable { connections, ..ServerTable::default() });
        Arc::new(Self { parent: None, state, deferral })
    }

    /// The servers of a session, with those that are declared and not started, for hosts to see, and the tools that the
    /// command line names.
    pub(crate) fn of_session(
        connections: Vec<Connection>,
        deferral: Deferral,
        withheld: Vec<WithheldServer>,
        asked_tools: Vec<String>,
    ) -> Arc<Self> {
        let held = ServerTable { connections, withheld, asked_tools, ..ServerTable::default() };
        Arc::new(Self { parent: None, state: Mutex::new(held), deferral })
    }

    /// No servers at all.
    pub(crate) fn none() -> Arc<Self> {
        Self::new(Vec::new(), Deferral::Never)
    }

    /// The servers that are not started. One that got a connection since then is none of them.
    pub(crate) fn withheld(&self) -> Vec<WithheldServer> {
        let held = self.held();
        let is_there = |name: &str| held.connections.iter().any(|it| it.name() == name);
        held.withheld.iter().filter(|it| !is_there(&it.name)).cloned().collect()
    }

    fn held(&self) -> MutexGuard<'_, ServerTable> {
        self.state.lock()
    }

    /// All servers, with those that are switched off. Its own come last, in the place of those with the same name.
    pub(crate) fn all(&self) -> Vec<(Connection, bool)> {
        let inherited = self.parent.as_ref().map(|parent| parent.all()).unwrap_or_default();
        let held = self.held();
        let is_hidden =
            |it: &Connection| held.connections.iter().any(|own| own.name() == it.name());
        let is_on = |connection: &Connection| !held.disabled.contains(connection.name());
        let own = held.connections.iter().map(|it| (it.clone(), is_on(it)));
        inherited.into_iter().filter(|(it, _)| !is_hidden(it)).chain(own).collect()
    }

    /// The servers that are switched on.
    pub(crate) fn active(&self) -> Vec<Connection> {
        self.all().into_iter().filter(|(_, is_on)| *is_on).map(|(it, _)| it).collect()
    }

    pub(crate) fn find(&self, name: &str) -> Option<Connection> {
        let own = self.held().connections.iter().find(|it| it.name() == name).cloned();
        own.or_else(|| self.parent.as_ref()?.find(name))
    }

    /// The server that a tool of this name belongs to.
    pub(crate) fn server_of(&self, tool: &str) -> Option<AskedServer> {
        let is_its = |it: &Connection| tool.starts_with(&tool_name(it.name(), ""));
        let connection = self.active().into_iter().find(is_its)?;
        let source = public_source(connection.server());
        Some(AskedServer { name: connection.name().to_owned(), source })
    }

    /// Adds a server, in the place of one with the same name. The next run waits for it.
    pub(crate) fn add(&self, connection: Connection) {
        let mut held = self.held();
        held.changes += 1;
        held.newcomers.insert(connection.name().to_owned());
        held.overdue.shift_remove(connection.name());
        held.connections.retain(|it| it.name() != connection.name());
        held.connections.push(connection);
    }

    /// Has the tools of all servers looked at again: rules for them have changed.
    pub(crate) fn note_change(&self) {
        self.held().changes += 1;
    }

    /// Takes a server away; whether there was one.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let mut held = self.held();
        let before = held.connections.len();
        held.changes += 1;
        held.connections.retain(|it| it.name() != name);
        held.connections.len() < before
    }

    /// Switches a server on or off; whether there is one.
    pub(crate) fn switch(&self, name: &str, is_on: bool) -> bool {
        let mut held = self.held();
        held.changes += 1;
        if is_on {
            held.disabled.shift_remove(name);
        } else {
            held.disabled.insert(name.to_owned());
        }
        held.connections.iter().any(|it| it.name() == name)
    }

    /// The servers of a child: these, as they are at each moment, and its own. It looks for tools by itself.
    pub(crate) fn child(self: &Arc<Self>, own: Vec<Connection>) -> Arc<Self> {
        let state = Mutex::new(ServerTable { connections: own, ..ServerTable::default() });
        Arc::new(Self { parent: Some(Arc::clone(self)), state, deferral: self.deferral })
    }

    /// The servers of a fork: these, with the tools loaded that it sends, and no others.
    pub(crate) fn fork(self: &Arc<Self>, sent: &ToolSpecs) -> Arc<Self> {
        let fork = self.child(Vec::new());
        let served = sent.iter().map(|tool| &tool.name).filter(|name| name.starts_with("mcp__"));
        fork.held().loaded.extend(served.cloned());
        fork
    }

    /// The servers of the main agent.
    fn root(&self) -> &Self {
        self.parent.as_ref().map_or(self, |parent| parent.root())
    }

    /// A number that changes when there may be something new to offer, and is another one for other servers.
    pub(crate) fn version(&self) -> u64 {
        let inherited = self.parent.as_ref().map(|parent| parent.version());
        let held = self.held();
        // One that brings nothing of its own has what its parent has.
        if held.connections.is_empty() && (inherited.is_none() || held.changes == 0) {
            return inherited.unwrap_or(held.changes);
        }
        let mut hasher = std::hash::DefaultHasher::new();
        (inherited, held.changes).hash(&mut hasher);
        for connection in &held.connections {
            (connection.name(), connection.generation()).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// The tools that the servers bring to an agent whose model has a window of this many tokens.
    pub(crate) fn serve(self: &Arc<Self>, permissions: &Permissions, window: u64) -> ServerTools {
        let mut kept: IndexMap<String, Arc<dyn DynTool>> = IndexMap::new();
        let mut deferrable: IndexMap<String, Arc<dyn DynTool>> = IndexMap::new();
        let mut served = ServerTools::default();
        let mut has_resources = false;
        for connection in self.active().into_iter().filter(may_answer) {
            has_resources |=
                !connection.resources().is_empty() || !connection.resource_templates().is_empty();
            let loads_all = connection.server().always_load;
            for (tool, info) in connection.tools().into_iter().zip(connection.tool_infos()) {
                if !permissions.is_offered(&info.name) {
                    continue;
                }
                if info.requires_user_interaction {
                    served.personal.insert(info.name.clone());
                }
                let stays = loads_all || info.always_load;
                let into = if stays { &mut kept } else { &mut deferrable };
                into.insert(info.name, tool);
            }
        }
        kept.sort_unstable_keys();
        deferrable.sort_unstable_keys();
        if has_resources {
            let tools = [
                erase(ListMcpResources(Arc::clone(self))),
                erase(ReadMcpResource(Arc::clone(self))),
            ];
            let offered = tools.into_iter().filter(|tool| permissions.is_offered(tool.name()));
            served.offered.extend(offered.map(|tool| (tool.name().to_owned(), tool)));
        }
        let search: Arc<dyn DynTool> = erase(ToolSearch(Arc::clone(self)));
        let defers =
            self.defers(deferrable.values(), window) && permissions.is_offered(search.name());
        if !defers {
            kept.extend(deferrable);
            kept.sort_unstable_keys();
            served.offered.extend(kept);
            return served;
        }
        served.offered.insert(search.name().to_owned(), search);
        served.offered.extend(kept);
        for name in &self.held().loaded {
            served.offered.extend(deferrable.shift_remove_entry(name.as_str()));
        }
        served.deferred = deferrable.into_keys().collect();
        served
    }

    fn defers<'a>(&self, tools: impl Iterator<Item = &'a Arc<dyn DynTool>>, window: u64) -> bool {
        let size = |tool: &Arc<dyn DynTool>| {
            let spec = tool.spec();
            spec.name.len() + spec.description.len() + spec.input_schema.get().len()
        };
        let mut tools = tools.peekable();
        match self.deferral {
            _ if tools.peek().is_none() => false,
            Deferral::Always => true,
            Deferral::Never => false,
            Deferral::Above(percent) => {
                let tokens = tools.map(size).sum::<usize>() / BYTES_PER_TOKEN;
                tokens as u64 > window / 100 * u64::from(percent)
            }
        }
    }

    /// The server that a tool belongs to, and who brought the server.
    pub(crate) fn owner(&self, tool: &str) -> Option<(String, &'static str)> {
        if !tool.starts_with("mcp__") {
            return None;
        }
        self.active().iter().find_map(|connection| {
            let is_its = tool.strip_prefix(&tool_name(connection.name(), "")).is_some();
            is_its
                .then(|| (connection.name().to_owned(), source(&connection.server().origin.scope)))
        })
    }

    /// The reason why a tool is not there, where its server is the reason.
    pub(crate) fn absence(&self, tool: &str) -> Option<String> {
        let (server, _) = self.owner(tool)?;
        self.reachable(&server).err().map(|error| error.to_string())
    }

    /// Every server and how it is, as hosts read it.
    pub(crate) fn statuses(&self) -> Vec<Value> {
        let status = |(connection, is_on): (Connection, bool)| {
            let state = if is_on { connection.state().to_string() } else { "disabled".to_owned() };
            json!({
                "name": connection.name(),
                "status": state,
                "source": source(&connection.server().origin.scope),
            })
        };
        let withheld = |server: WithheldServer| {
            json!({
                "name": server.name,
                "status": server.status,
                "source": source(&server.scope),
                "reason": server.reason,
            })
        };
        let running = self.all().into_iter().map(status);
        running.chain(self.withheld().into_iter().map(withheld)).collect()
    }

    /// The commands that the prompts of servers are.
    pub(crate) fn commands(&self) -> Vec<ServerCommand> {
        let of = |connection: &Connection| -> Vec<ServerCommand> {
            let prompts = connection.prompts();
            prompts.iter().map(|prompt| ServerCommand::new(connection.name(), prompt)).collect()
        };
        self.active().iter().filter(|it| is_connected(it)).flat_map(of).collect()
    }
}

/// The source of a server, in the words that hooks and hosts know.
pub(crate) fn source(scope: &McpScope) -> &'static str {
    match scope {
        McpScope::Managed => "managed",
        McpScope::Flag => "dynamic",
        McpScope::Local => "local",
        McpScope::Project => "project",
        McpScope::User => "user",
        McpScope::Plugin(_) => "plugin",
        McpScope::Agent(_) => "agent",
        McpScope::Host => "sdk",
    }
}

/// Tells whether calls reach a server, at the latest once it is connected again. Until then it has the tools that
/// it had: what a request begins with does not change because a line broke for a moment.
fn may_answer(connection: &Connection) -> bool {
    matches!(connection.state(), State::Connected | State::Pending)
}

/// The reason of a state as the end of a sentence, where there is one.
fn reason_suffix(state: &State) -> String {
    state.reason().map(|reason| format!(": {reason}")).unwrap_or_default()
}

fn is_connected(connection: &Connection) -> bool {
    connection.state() == State::Connected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_chooses_when_tools_are_deferred() {
        let chosen = |value| Deferral::chosen(&Env::from([("ENABLE_TOOL_SEARCH", value)]));
        assert_eq!(chosen("true"), Deferral::Always);
        assert_eq!(chosen("0"), Deferral::Never);
        assert_eq!(chosen("auto:25"), Deferral::Above(25));
        for other in ["auto", "auto:x", "auto:900", ""] {
            assert_eq!(chosen(other), Deferral::DEFAULT, "{other}");
        }
    }
}
