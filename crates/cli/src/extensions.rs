//! Extensions of a run's agents: the hooks of its settings and its MCP servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use centurion_config::Problem;
use centurion_config::mcp::{Declared, McpConfiguration, McpScope, McpStanding};
use centurion_config::plugins::{AcceptedTree, Plugin, PluginCatalog, Power};
use centurion_config::settings::{Level, Settings};
use centurion_config::trust::{Trust, Unaccepted};
use centurion_engine::{Elicitations, Extensions, HookHost, ServerPatience, WithheldServer};
use centurion_hooks::{Event, HookJudge, HookRules, HookSet, HookSource};
use centurion_host::HostChannel;
use centurion_mcp::{Elicitor, Pool, PoolOptions, SdkChannel, ServerJudge};
use centurion_permissions::{Rule, RuleOrigin};
use centurion_protocol::Env;
use centurion_protocol::sdk::{InitPlugin, InitPlugins, PluginError};
use parking_lot::RwLock;

use crate::args::RunArgs;
use crate::delegation::{self, AgentParts};
use crate::output::note;
use crate::setup;
use crate::surroundings::Surroundings;

/// The longest time that a server takes to connect, unless `MCP_TIMEOUT` says otherwise. The first turn waits so long
/// for servers of `--mcp-config` and of hosts, and for those whose tools the command line names.
const CONNECT: Duration = Duration::from_secs(30);

/// The longest time that the first turn waits for all other servers. Most are there within a second; an old one that
/// drops the question which protocol it speaks is greeted after two. A server that takes longer is slow or hangs: the
/// run continues, and later turns have its tools.
const FIRST_TURN: Duration = Duration::from_secs(5);

/// The surroundings of a run's extensions.
pub(crate) struct ExtensionContext<'a> {
    pub(crate) env: &'a Arc<Env>,
    /// The directories that the agents work in.
    pub(crate) roots: &'a [PathBuf],
    pub(crate) output_dir: &'a Path,
    pub(crate) host: Option<&'a Arc<HostChannel>>,
    pub(crate) found: &'a AgentParts,
    pub(crate) hook_judge: &'a HookJudge,
    pub(crate) server_judge: ServerJudge,
}

/// Hooks that are known, and servers that are being connected.
pub(crate) fn extensions(
    args: &RunArgs,
    surroundings: &Surroundings,
    settings: &Settings,
    around: &ExtensionContext<'_>,
) -> anyhow::Result<(Extensions, Arc<Pool>)> {
    let AgentParts { plugins, servers, .. } = around.found;
    warn(servers);
    let hooks = settings_hooks(settings);
    let elicitations = Arc::new(Elicitations::default());
    let pool = Pool::new(PoolOptions {
        guard: setup::guard()?,
        env: Arc::clone(around.env),
        cwd: surroundings.cwd.clone(),
        roots: around.roots.to_vec(),
        output_dir: around.output_dir.to_owned(),
        credentials: Some(surroundings.dirs.mcp_credentials()),
        client_version: env!("CARGO_PKG_VERSION").to_owned(),
        elicitor: Arc::clone(&elicitations) as Arc<dyn Elicitor>,
        sampler: None,
        sdk: around.host.map(|host| Arc::clone(host) as Arc<dyn SdkChannel>),
        judge: Some(Arc::clone(&around.server_judge)),
    });
    let patience = if around.env.is_on("MCP_CONNECTION_NONBLOCKING") {
        ServerPatience::default()
    } else {
        let connect = around.env.millis("MCP_TIMEOUT").unwrap_or(CONNECT);
        ServerPatience { asked_for: connect, others: connect.min(FIRST_TURN) }
    };
    let extensions = Extensions {
        hooks,
        plugins: shown_plugins(plugins),
        plugin_hooks: delegation::plugin_hooks(plugins),
        hook_rules: HookRules::new(&settings.hook_limits()).judged_by(around.hook_judge.clone()),
        hook_host: around.host.map(|host| Arc::clone(host) as Arc<dyn HookHost>),
        shows_hooks: args.format.include_hook_events,
        home: surroundings.home.clone(),
        servers: servers.active().map(|server| pool.share(server.clone())).collect(),
        withheld_servers: withheld(servers).map(|(server, _)| server).collect(),
        asked_tools: named_tools(&args.permissions.allowed_tools),
        server_patience: patience,
        elicitations,
        setup: args.session.setup(),
        tools: Vec::new(),
    };
    Ok((extensions, pool))
}

/// The tools that rules of the command line name.
fn named_tools(allowed: &[String]) -> Vec<String> {
    let rules = allowed.iter().flat_map(|text| Rule::parse_list(text, &RuleOrigin::Flag));
    rules.flatten().map(|rule| rule.source().text.clone()).collect()
}

/// The plugins as hosts are told of them, with what is wrong with them.
pub(crate) fn shown_plugins(plugins: &PluginCatalog) -> InitPlugins {
    let error = |problem: &Problem| {
        let plugin = plugins.enabled.iter().find(|it| problem.path.starts_with(it.root()));
        let directory =
            if problem.path.is_dir() { Some(&*problem.path) } else { problem.path.parent() };
        let name = || directory.and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let not_loaded = directory.filter(|_| plugin.is_none()).map(|it| it.display().to_string());
        PluginError {
            plugin: plugin.map_or_else(|| name().into_owned(), |it| it.id.to_string()),
            kind: if problem.path.exists() { "generic-error" } else { "path-not-found" },
            message: problem.to_string(),
            path: not_loaded,
        }
    };
    InitPlugins {
        enabled: plugins.enabled.iter().map(|plugin| shown(plugin)).collect(),
        errors: plugins.problems.iter().map(error).collect(),
    }
}

/// A plugin as hosts are told of it.
fn shown(plugin: &Plugin) -> InitPlugin {
    InitPlugin {
        name: plugin.name().to_owned(),
        path: plugin.root().display().to_string(),
        source: plugin.id.to_string(),
        version: plugin.manifest().version.clone(),
    }
}

/// Tells what is wrong with the files of servers, and which servers wait for the user's word.
fn warn(servers: &McpConfiguration) {
    for problem in &servers.problems {
        note(&format!("warning: {problem}"));
    }
    for (server, standing) in withheld(servers) {
        note(&format!("warning: server `{}` was not started, it is {standing}", server.name));
    }
}

/// The servers that wait for the user's word.
fn withheld(servers: &McpConfiguration) -> impl Iterator<Item = (WithheldServer, &McpStanding)> {
    let waits =
        |it: &&Declared| matches!(it.standing, McpStanding::Untrusted(_) | McpStanding::Pending);
    servers.servers.iter().filter(waits).map(|Declared { server, standing, .. }| {
        let withheld = WithheldServer {
            name: server.name.clone(),
            status: standing.word(),
            scope: server.origin.scope.clone(),
            reason: standing.to_string(),
        };
        (withheld, standing)
    })
}

/// The hooks of the settings. What is declared and cannot run is an error that the user sees.
pub(crate) fn settings_hooks(settings: &Settings) -> HookSet {
    let hooks = HookSet::from_settings(settings);
    for problem in hooks.problems() {
        note(&format!("error: {problem}"));
    }
    for (event, file) in never_fired(&hooks) {
        note(&format!("warning: {file}: {event} hooks do not run yet: nothing makes it happen"));
    }
    hooks
}

/// The plugins by which hooks and servers are judged before each run, as they were loaded last.
pub(crate) struct JudgedPlugins(RwLock<JudgedTrees>);

struct JudgedTrees {
    /// The plugins that the repository brings. They are compared with what was accepted before each of their commands
    /// runs.
    brought: Vec<(String, AcceptedTree)>,
    /// The directories of all others.
    installed: Vec<PathBuf>,
}

impl JudgedTrees {
    fn new(plugins: &PluginCatalog) -> Self {
        let (mut brought, mut installed) = (Vec::new(), Vec::new());
        for plugin in &plugins.enabled {
            match &plugin.power {
                Power::Repository(tree) => brought.push((plugin.name().to_owned(), tree.clone())),
                Power::Full | Power::Limited { .. } => installed.push(plugin.root().to_owned()),
            }
        }
        Self { brought, installed }
    }
}

impl JudgedPlugins {
    pub(crate) fn new(plugins: &PluginCatalog) -> Arc<Self> {
        Arc::new(Self(RwLock::new(JudgedTrees::new(plugins))))
    }

    /// Judges by other plugins from now on.
    pub(crate) fn replace(&self, plugins: &PluginCatalog) {
        *self.0.write() = JudgedTrees::new(plugins);
    }

    /// Compares the plugin of the repository that a file lies in with what was accepted.
    fn judge_file(&self, file: &Path) -> Result<(), Unaccepted> {
        let trees = self.0.read();
        let found = trees.brought.iter().find(|(_, tree)| file.starts_with(tree.root()));
        found.map_or(Ok(()), |(_, tree)| tree.judge())
    }

    /// Compares the plugin of the repository that has a name with what was accepted.
    fn judge_name(&self, name: &str) -> Result<(), Unaccepted> {
        let trees = self.0.read();
        let found = trees.brought.iter().find(|(brought, _)| brought == name);
        found.map_or(Ok(()), |(_, tree)| tree.judge())
    }

    fn is_brought(&self, name: &str) -> bool {
        self.0.read().brought.iter().any(|(brought, _)| brought == name)
    }

    fn is_installed(&self, file: &Path) -> bool {
        self.0.read().installed.iter().any(|root| file.starts_with(root))
    }
}

/// Judges what a repository brings again before it runs. What lies in the user's own directories and in plugins of
/// theirs counts.
pub(crate) fn hook_judge(
    surroundings: &Surroundings,
    plugins: &Arc<JudgedPlugins>,
    trust: &Arc<Trust>,
) -> HookJudge {
    let own: Vec<PathBuf> = surroundings.dirs.config_dirs().to_vec();
    let (plugins, trust) = (Arc::clone(plugins), Arc::clone(trust));
    HookJudge::new(move |origin, command, cwd| {
        let file = origin.file.as_deref();
        if let Some(file) = file {
            plugins.judge_file(file)?;
        }
        let is_judged = match &origin.source {
            HookSource::Settings(level) => matches!(level, Level::Project | Level::Local),
            HookSource::Skill(_) | HookSource::Agent(_) => true,
            HookSource::Plugin(plugin) => plugins.is_brought(&plugin.name),
            HookSource::Host => false,
        };
        let is_own = |file: &Path| {
            own.iter().any(|directory| file.starts_with(directory)) || plugins.is_installed(file)
        };
        match file.filter(|file| is_judged && !is_own(file)) {
            Some(file) => trust.judge_command(file, command, cwd),
            None => Ok(()),
        }
    })
}

/// Judges the accepted servers of a repository, and of plugins in it, again before each start.
pub(crate) fn server_judge(
    surroundings: &Surroundings,
    plugins: &Arc<JudgedPlugins>,
    trust: &Arc<Trust>,
) -> ServerJudge {
    let (trust, cwd) = (Arc::clone(trust), surroundings.cwd.clone());
    let plugins = Arc::clone(plugins);
    Arc::new(move |server| {
        if let McpScope::Plugin(plugin) = &server.origin.scope {
            plugins.judge_name(plugin)?;
        }
        trust.judge_server(server, &cwd)
    })
}

/// The hooks that there are and what is wrong with them, for people.
pub(crate) fn hook_summary(settings: &Settings) -> HookSummary {
    let hooks = HookSet::from_settings(settings);
    let line = |(event, handler): (Event, &centurion_hooks::Handler)| {
        format!("{event}: {} ({})", handler.action.label(), handler.origin)
    };
    let (off, wrong): (Vec<_>, Vec<_>) = hooks.problems().iter().partition(|it| it.is_off);
    let idle = never_fired(&hooks)
        .into_iter()
        .map(|(event, place)| format!("{place}: {event} does not happen in this version"));
    HookSummary {
        hooks: hooks.handlers().map(line).collect(),
        off: off.into_iter().map(ToString::to_string).collect(),
        problems: wrong.into_iter().map(ToString::to_string).chain(idle).collect(),
    }
}

/// The hooks of the settings, in lines for people.
pub(crate) struct HookSummary {
    pub(crate) hooks: Vec<String>,
    /// Styles that are kept off, with the reason.
    pub(crate) off: Vec<String>,
    /// Mistakes in others.
    pub(crate) problems: Vec<String>,
}

/// Events with hooks that nothing makes happen, each with where the hook is.
fn never_fired(hooks: &HookSet) -> Vec<(Event, String)> {
    let idle = hooks.handlers().filter(|(event, _)| !event.is_fired());
    idle.map(|(event, handler)| (event, handler.origin.to_string())).collect()
}
