//! Reading plugins again, as a host asks for it while the session runs.

use std::path::PathBuf;

use centurion_config::mcp::{McpScope, McpServer};
use centurion_engine::{Handle, PluginParts};
use centurion_mcp::Connection;
use serde_json::json;
use thiserror::Error;

use super::request::{AddedPlugin, ReloadPlugins};
use super::{Answer, Control, Refusal, look, servers};

/// Reads the plugins of a session as they are on disk now.
pub trait PluginSource: Send + Sync {
    /// Reads them, with some that join the session now. Nothing is in force yet.
    fn load(&self, added: &[PathBuf]) -> Result<LoadedPlugins, PluginsUnreadable>;

    /// Takes note that what was read last is in force.
    fn accept(&self);
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

/// The failure to read settings or plugins. The session continues with the plugins that it knows.
#[derive(Debug, Error)]
#[error("plugins cannot be read again: {0}")]
pub struct PluginsUnreadable(pub String);

/// The servers that come and go with plugins.
struct Impact {
    added: Vec<String>,
    removed: Vec<String>,
}

impl Impact {
    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

/// The change of the tools that a running conversation was told of; none before the first request.
fn impact(handle: &Handle, wanted: &[McpServer]) -> Impact {
    let mut impact = Impact { added: Vec::new(), removed: Vec::new() };
    if !handle.has_sent_request() {
        return impact;
    }
    let known: Vec<Connection> =
        handle.servers().into_iter().map(|(it, _)| it).filter(is_of_plugin).collect();
    let is_wanted = |it: &&Connection| wanted.contains(it.server());
    let is_known = |server: &&McpServer| known.iter().any(|it| it.server() == *server);
    let gone = known.iter().filter(|it| !is_wanted(it)).map(|it| it.name().to_owned());
    impact.removed.extend(gone);
    let new = wanted.iter().filter(|server| !is_known(server)).map(|server| server.name.clone());
    impact.added.extend(new);
    impact
}

fn is_of_plugin(connection: &Connection) -> bool {
    matches!(connection.server().origin.scope, McpScope::Plugin(_))
}

/// The directory of a plugin that a host adds.
fn directory(plugin: &AddedPlugin) -> Result<PathBuf, Refusal> {
    if plugin.kind != "local" {
        return Err(Refusal::invalid(format!("`{}` is no kind of plugin: use local", plugin.kind)));
    }
    if !plugin.path.is_absolute() {
        return Err(Refusal::invalid(format!("{} is no absolute path", plugin.path.display())));
    }
    Ok(plugin.path.clone())
}

impl Control {
    /// Puts the plugins as they are now in the place of those that the session knows: agents, skills, commands, hooks and
    /// servers.
    pub(super) fn reload_plugins(&self, wishes: &ReloadPlugins) -> Answer {
        let handle = &self.handle;
        if wishes.refuse_if_busy && handle.is_busy() {
            return Err(Refusal::Busy);
        }
        let added = wishes.add_plugins.iter().map(directory).collect::<Result<Vec<_>, _>>()?;
        let loaded = self.plugins.load(&added).map_err(Refusal::invalid)?;
        let problem_count = loaded.problem_count;
        let impact = wishes.hold_on_cache_impact.then(|| impact(handle, &loaded.servers));
        let is_held = impact.as_ref().is_some_and(|impact| !impact.is_empty());
        if !is_held {
            self.plugins.accept();
            handle.set_plugins(loaded.parts);
            self.set_servers(handle, loaded.servers);
            handle.reload_skills();
        }
        let mut answer = json!({
            "commands": look::commands(handle),
            "agents": look::agents(handle),
            "plugins": handle.plugins().enabled,
            "mcpServers": servers::status(handle),
            "skills": handle.skill_names(),
            "error_count": problem_count,
        });
        if let Some(impact) = impact {
            answer["held"] = json!(is_held);
            if is_held {
                answer["cache_impact"] = json!({
                    "mcp_servers_added": impact.added,
                    "mcp_servers_removed": impact.removed,
                    "lsp_tool_change": null,
                });
            }
        }
        Ok(answer)
    }

    /// Makes the servers of plugins be exactly these. Those that have not changed stay connected, and all others stay as
    /// they are.
    fn set_servers(&self, handle: &Handle, wanted: Vec<McpServer>) {
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
