//! MCP servers as people configure them: where each is declared, what it says, and whether it may run.
//!
//! Connecting to them is for others to do. Nothing here fails as a whole: what is wrong with a file or a
//! server is told with its line, and the rest counts.

mod edit;
mod entry;
mod expand;
mod policy;
mod reference;
mod show;
mod sources;
mod standing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::iter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

pub use self::edit::{McpChoice, McpEditError, McpTarget};
pub use self::entry::{ParsedServer, name_problem, parse_server};
pub use self::expand::McpVariables;
pub use self::reference::{McpReference, parse_references};
use self::sources::{FLAG, FoundServers, limit_problems};
pub use self::sources::{McpApproval, McpFlag, McpFlagError, McpPlaces, McpSources};
pub use self::standing::{McpDenial, McpDisabled, McpStanding};
use self::standing::{ServerPolicy, shadow};
use crate::Problem;
use crate::agents::AgentSource;
use crate::trust::{PowerItem, Reach, Unaccepted, commands_of};

/// A server, checked and with its variables expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServer {
    /// Unique among the servers of an agent; letters, digits, `_` and `-`, or `plugin:<p>:<s>`.
    pub name: String,
    pub transport: McpTransport,
    /// The most that one call may take.
    pub timeout: Option<Duration>,
    /// Whether its tools are offered from the start, however many tools there are.
    pub always_load: bool,
    pub origin: McpOrigin,
    /// The accepted parts of a server that a repository brings, as they were written. They are judged again before
    /// each start.
    pub accepted: Option<Vec<String>>,
}

impl McpServer {
    /// Texts that may name files which it runs, with variables filled in.
    pub fn commands(&self) -> Vec<String> {
        match &self.transport {
            McpTransport::Stdio { command, args, env } => {
                let words: Vec<&str> =
                    iter::once(command).chain(args).map(String::as_str).collect();
                commands_of(&words).into_iter().chain(env.values().cloned()).collect()
            }
            McpTransport::Http(remote) | McpTransport::Sse(remote) => {
                remote.headers_helper.iter().cloned().collect()
            }
            McpTransport::Sdk { .. } => Vec::new(),
        }
    }
}

/// The way to a server. Two servers with equal transports are one server.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum McpTransport {
    Stdio {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
    },
    Http(McpRemote),
    Sse(McpRemote),
    /// It lives in the host that started us and is reached by the control channel.
    Sdk {
        /// By which the host knows it.
        name: String,
    },
}

#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct McpRemote {
    pub url: String,
    pub headers: BTreeMap<String, String>,
    /// A command that prints more headers as a JSON object.
    pub headers_helper: Option<String>,
    pub oauth: Option<McpOAuth>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct McpOAuth {
    pub client_id: Option<String>,
    pub callback_port: Option<u16>,
    pub scopes: Vec<String>,
    pub auth_server_metadata_url: Option<String>,
}

/// The declaration of a server: its author and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpOrigin {
    pub scope: McpScope,
    /// `None` for what did not come from a file.
    pub file: Option<PathBuf>,
    pub line: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpScope {
    Managed,
    /// `--mcp-config`.
    Flag,
    Local,
    Project,
    User,
    Plugin(String),
    /// Declared by an agent's own definition.
    Agent(String),
    /// Declared by the host.
    Host,
}

impl McpOrigin {
    /// The file, or what stands for one in a message.
    pub(crate) fn place(&self) -> PathBuf {
        match (&self.file, &self.scope) {
            (Some(file), _) => file.clone(),
            (None, McpScope::Flag) => PathBuf::from(FLAG),
            (None, scope) => PathBuf::from(scope.to_string()),
        }
    }
}

/// A declared server, and what is to be done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    pub server: McpServer,
    pub standing: McpStanding,
    /// The command or address as it was written: variables are not expanded, and the secrets of an address are left
    /// out.
    pub endpoint: String,
    /// The item that has to be accepted before it runs, if it is the project's.
    pub power: Option<PowerItem>,
}

/// All servers of a run.
#[derive(Clone, Debug)]
pub struct McpConfiguration {
    /// The strongest scope first, and within a file as they were written.
    pub servers: Vec<Declared>,
    pub problems: Vec<Problem>,
    judge: ServerPolicy,
}

impl McpConfiguration {
    /// Reads all files. What is wrong with any of them is among the problems.
    pub fn load(sources: &McpSources<'_>) -> Self {
        let mut found = FoundServers::look(sources);
        let variables = McpVariables { env: sources.env, known: &sources.variables };
        let mut problems = std::mem::take(&mut found.problems);
        let judge = ServerPolicy::new(sources, &mut found, &mut problems);
        let mut servers = Vec::new();
        let trust = sources.settings.content_trust();
        for entry in found.entries {
            let power = entry.power_item();
            let content = power.as_ref().map_or(Ok(()), |it| trust.judge(it, Reach::Folder));
            let mut parsed = entry::read_server(&entry.name, &entry.node, entry.origin, &variables);
            problems.append(&mut parsed.problems);
            let Some(mut server) = parsed.server else { continue };
            // A server that the user vouches for by name is not judged by its content.
            let is_vouched = judge.standing(&server, Err(Unaccepted::Untrusted)).is_active();
            let is_judged = content.is_ok() && !is_vouched;
            server.accepted = power.as_ref().filter(|_| is_judged).map(|it| it.commands().to_vec());
            let standing = judge.standing(&server, content);
            servers.push(Declared { server, standing, endpoint: parsed.endpoint, power });
        }
        shadow(&mut servers);
        limit_problems(&mut problems);
        Self { servers, problems, judge }
    }

    /// The servers that run.
    pub fn active(&self) -> impl Iterator<Item = &McpServer> {
        self.servers.iter().filter(|it| it.standing.is_active()).map(|it| &it.server)
    }

    /// The server that a name stands for; if none runs, the strongest declaration of it.
    pub fn find(&self, name: &str) -> Option<&Declared> {
        let named = || self.servers.iter().filter(|it| it.server.name == name);
        named().find(|it| it.standing.is_active()).or_else(|| named().next())
    }

    /// The standing of a server that came another way, such as from a plugin.
    pub fn judge(&self, server: &McpServer) -> McpStanding {
        self.judge.standing(server, Err(Unaccepted::Untrusted))
    }

    /// The standing of a server that an agent's definition declares. Servers of plugins' agents are what the
    /// administrator let in with the plugin.
    pub fn judge_for(&self, server: &McpServer, agent: AgentSource) -> McpStanding {
        self.judge.standing_for(server, agent)
    }
}

/// The servers of a project's file, each of which needs to be accepted.
pub(crate) fn file_power(path: &Path) -> Vec<PowerItem> {
    let found = FoundServers::of_project_file(path);
    found.entries.iter().filter_map(sources::ServerEntry::power_item).collect()
}
