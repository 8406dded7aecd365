//! Reading plugins again, as a host asks for it while the session runs.

use centurion_config::mcp::{McpScope, McpServer};
use centurion_engine::{Handle, PluginParts};
use centurion_mcp::Connection;
use serde_json::json;
use thiserror::Error;

use super::request::ReloadPlugins;
use super::{Answer, Control, Refusal, look, servers};

/// Reads the plugins of a session as they are on disk now.
pub trait PluginSource: Send + Sync {
    fn load(&self) -> Result<LoadedPlugins, PluginsUnreadable>;
}

/// Plugins that were read again.
#[derive(Default)]
pub struct LoadedPlugins {
    pub parts: PluginParts,
    /// The servers that may be connected.
    pub servers: Vec<McpServer>,
    /// The number of problems in them, which the user was told of.
    pub problem_count: usize,
}

/// The failure to read settings or plugins. The session goes on with the plugins that it knows.
#[derive(Debug, Error)]
#[error("plugins cannot be read again: {0}")]
pub struct PluginsUnreadable(pub String);

impl Control {
    /// Puts the plugins as they are now in the place of those that the session knows: agents, skills, commands, hooks and
    /// servers.
    pub(super) fn reload_plugins(&self, wishes: &ReloadPlugins) -> Answer {
        let handle = &self.handle;
        if wishes.refuse_if_busy && handle.is_busy() {
            return Err(Refusal::Busy);
        }
        if !wishes.add_plugins.is_empty() {
            return Err(Refusal::invalid("plugins are chosen when the session begins"));
        }
        let loaded = self.plugins.load().map_err(Refusal::invalid)?;
        let shown = loaded.parts.shown.clone();
        handle.set_plugins(loaded.parts);
        self.set_servers(handle, loaded.servers);
        handle.reload_skills();
        Ok(json!({
            "commands": look::commands(handle),
            "agents": look::agents(handle),
            "plugins": shown.enabled,
            "mcpServers": servers::status(handle),
            "skills": handle.skill_names(),
            "error_count": loaded.problem_count,
        }))
    }

    /// Makes the servers of plugins be exactly these. Those that have not changed stay connected, and all others stay as
    /// they are.
    fn set_servers(&self, handle: &Handle, wanted: Vec<McpServer>) {
        let is_of_plugin = |connection: &Connection| {
            matches!(connection.server().origin.scope, McpScope::Plugin(_))
        };
        let (known, others): (Vec<_>, Vec<_>) =
            handle.servers().into_iter().map(|(it, _)| it).partition(is_of_plugin);
        for connection in &known {
            if !wanted.contains(connection.server()) {
                handle.remove_server(connection.name());
            }
        }
        for server in wanted {
            let is_known = known.iter().any(|it| *it.server() == server);
            let is_taken = others.iter().any(|it| it.name() == server.name);
            if !is_known && !is_taken {
                handle.add_server(self.pool.share(server));
            }
        }
    }
}
