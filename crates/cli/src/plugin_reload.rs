//! Reading the plugins of a running session again, when its host asks for it.
//!
//! Settings, plugins and the servers that these bring are read as at the start. Files of plugins that were on at the start
//! are kept from the session's own commands and edits. Those of a plugin that came later are not, so that hooks and servers
//! of one in the working directories wait for the next start, unless the repository's plugin was accepted as it is: that
//! one is compared before each of its commands.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_config::mcp::{McpScope, McpServer};
use centurion_config::plugins::{Plugin, PluginCatalog, Power};
use centurion_engine::PluginParts;
use centurion_host::{LoadedPlugins, PluginSource, PluginsUnreadable};
use centurion_protocol::SystemWorld;
use parking_lot::Mutex;

use crate::args::RunArgs;
use crate::configuration::Configuration;
use crate::delegation;
use crate::extensions::{JudgedPlugins, shown_plugins};
use crate::mcp;
use crate::output::note;
use crate::setup::working_directories;
use crate::surroundings::Surroundings;

/// Reads plugins again as the flags of a run say.
pub(crate) struct PluginReloader {
    args: RunArgs,
    surroundings: Surroundings,
    /// The directories that the agents work in.
    working: Vec<PathBuf>,
    /// The directories of the plugins that were on at the start.
    known: Vec<PathBuf>,
    judged: Arc<JudgedPlugins>,
    state: Mutex<ReloadState>,
}

#[derive(Default)]
struct ReloadState {
    /// Directories of plugins that joined the session since its start.
    added: Vec<PathBuf>,
    /// The plugins that were read last, and the directories that joined for them.
    read: Option<(Arc<PluginCatalog>, Vec<PathBuf>)>,
}

impl PluginReloader {
    pub(crate) fn new(
        args: &RunArgs,
        surroundings: &Surroundings,
        added: &[PathBuf],
        plugins: &PluginCatalog,
    ) -> Self {
        Self {
            args: args.clone(),
            surroundings: surroundings.for_later(),
            working: working_directories(surroundings, added),
            known: plugins.enabled.iter().map(|plugin| plugin.root().to_owned()).collect(),
            judged: JudgedPlugins::new(plugins),
            state: Mutex::default(),
        }
    }

    /// The plugins by which hooks and servers are judged, now and after each reload.
    pub(crate) fn judged(&self) -> &Arc<JudgedPlugins> {
        &self.judged
    }

    fn try_load(&self, added: &[PathBuf]) -> anyhow::Result<LoadedPlugins> {
        let Self { args, surroundings, .. } = self;
        let configuration = Configuration::load(surroundings, &args.settings)?;
        let settings = &configuration.settings;
        for directory in added {
            anyhow::ensure!(directory.is_dir(), "{} is no directory", directory.display());
        }
        let mut all = self.state.lock().added.clone();
        all.extend(added.iter().filter(|it| !all.contains(it)).cloned().collect::<Vec<_>>());
        let directories = [&args.delegation.plugin_dirs()[..], &all].concat();
        let plugins = delegation::plugins(surroundings, settings, &directories, &SystemWorld)?;
        delegation::prepare_plugins(&plugins);
        self.state.lock().read = Some((Arc::clone(&plugins), all));
        let (acting, waiting): (Vec<_>, Vec<_>) =
            plugins.enabled.iter().cloned().partition(|plugin| self.may_act(plugin));
        for plugin in &waiting {
            let name = plugin.name();
            note(&format!("warning: plugin {name}: its hooks and servers wait for the next start"));
        }
        let problem_count = plugins.problems.len() + waiting.len();
        let acting = PluginCatalog { enabled: acting, ..PluginCatalog::default() };
        let mut servers: Vec<McpServer> = Vec::new();
        if !args.mcp.strict_mcp_config {
            let mut all = mcp::configuration(surroundings, &configuration, &args.mcp)?;
            let bringing = args.delegation.bringing_servers(&acting.enabled, &surroundings.cwd);
            mcp::add_plugins(&mut all, &bringing, &settings.overlay(&surroundings.env));
            let is_of_plugin =
                |server: &&McpServer| matches!(server.origin.scope, McpScope::Plugin(_));
            servers.extend(all.active().filter(is_of_plugin).cloned());
        }
        let parts = PluginParts {
            shown: shown_plugins(&plugins),
            agents: plugins.enabled.iter().map(|plugin| plugin.agents()).collect(),
            skills: plugins.enabled.iter().map(|plugin| plugin.skills()).collect(),
            skill_folders: plugins.skill_folders.clone(),
            hooks: delegation::plugin_hooks(&acting),
        };
        Ok(LoadedPlugins { parts, servers, problem_count })
    }

    /// Tells whether hooks and servers of a plugin may run in this session.
    fn may_act(&self, plugin: &Plugin) -> bool {
        let root = plugin.root();
        let is_within = |directory: &PathBuf| is_near(root, directory);
        self.known.iter().any(|known| known == root)
            || matches!(plugin.power, Power::Repository(_))
            || !self.working.iter().any(is_within)
    }
}

/// Tells whether one of two directories lies in the other, as far as links tell.
fn is_near(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (one, other) = (real(one), real(other));
    one.starts_with(&other) || other.starts_with(&one)
}

impl PluginSource for PluginReloader {
    fn accept(&self) {
        let mut state = self.state.lock();
        if let Some((plugins, added)) = state.read.take() {
            self.judged.replace(&plugins);
            state.added = added;
        }
    }

    fn load(&self, added: &[PathBuf]) -> Result<LoadedPlugins, PluginsUnreadable> {
        self.try_load(added).map_err(|error| PluginsUnreadable(format!("{error:#}")))
    }
}
