//! What extends the agents of a run: the hooks of its settings and its MCP servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use centurion_config::mcp::{Declared, McpConfiguration, McpScope, McpStanding};
use centurion_config::plugins::{AcceptedTree, Plugin, PluginCatalog, Power};
use centurion_config::settings::{Level, Settings};
use centurion_config::trust::Trust;
use centurion_engine::{Elicitations, Extensions, HookHost, ServerPatience, WithheldServer};
use centurion_hooks::{Event, HookJudge, HookRules, HookSet, HookSource};
use centurion_host::HostChannel;
use centurion_mcp::{Elicitor, Pool, PoolOptions, SdkChannel, ServerJudge};
use centurion_permissions::{Rule, RuleOrigin};
use centurion_protocol::Env;
use centurion_protocol::sdk::InitPlugin;

use crate::args::RunArgs;
use crate::delegation::{self, Found};
use crate::output::note;
use crate::setup;
use crate::surroundings::Surroundings;

/// How long a server may take to connect, unless `MCP_TIMEOUT` says otherwise. The first turn waits so long for
/// servers of `--mcp-config` and of hosts, and for those whose tools the command line names.
const CONNECT: Duration = Duration::from_secs(30);

/// How long the first turn waits for all other servers. Most are there within a second; an old one that drops the
/// question which protocol it speaks is greeted after two. What takes longer is slow or hangs: the run goes on, and
/// later turns have its tools.
const FIRST_TURN: Duration = Duration::from_secs(5);

/// What surrounds the extensions of a run.
pub(crate) struct Around<'a> {
    pub(crate) env: &'a Arc<Env>,
    /// The directories that the agents work in.
    pub(crate) roots: &'a [PathBuf],
    pub(crate) output_dir: &'a Path,
    pub(crate) host: Option<&'a Arc<HostChannel>>,
    pub(crate) found: &'a Found,
    pub(crate) hook_judge: &'a HookJudge,
    pub(crate) server_judge: ServerJudge,
}

/// Hooks that are known, and servers that are being connected.
pub(crate) fn extensions(
    args: &RunArgs,
    surroundings: &Surroundings,
    settings: &Settings,
    around: &Around<'_>,
) -> anyhow::Result<(Extensions, Arc<Pool>)> {
    let Found { plugins, servers, .. } = around.found;
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
        plugins: plugins.enabled.iter().map(|plugin| shown(plugin)).collect(),
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
    };
    Ok((extensions, pool))
}

/// The tools that rules of the command line name.
fn named_tools(allowed: &[String]) -> Vec<String> {
    let rules = allowed.iter().flat_map(|text| Rule::parse_list(text, &RuleOrigin::Flag));
    rules.flatten().map(|rule| rule.source().text.clone()).collect()
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

/// The plugins that the repository brings. They are compared with what was accepted before each of their commands
/// runs.
fn brought_plugins(plugins: &PluginCatalog) -> Vec<(String, AcceptedTree)> {
    let brought = plugins.enabled.iter().filter_map(|plugin| match &plugin.power {
        Power::Repository(tree) => Some((plugin.name().to_owned(), tree.clone())),
        Power::Full | Power::Limited { .. } => None,
    });
    brought.collect()
}

/// Judges what a repository brings again before it runs. What lies in the user's own directories and in plugins of
/// theirs counts.
pub(crate) fn hook_judge(
    surroundings: &Surroundings,
    plugins: &PluginCatalog,
    trust: &Arc<Trust>,
) -> HookJudge {
    let brought = brought_plugins(plugins);
    let is_own = |plugin: &&Arc<Plugin>| !matches!(plugin.power, Power::Repository(_));
    let installed = plugins.enabled.iter().filter(is_own).map(|plugin| plugin.root().to_owned());
    let own: Vec<PathBuf> =
        surroundings.dirs.config_dirs().iter().cloned().chain(installed).collect();
    let trust = Arc::clone(trust);
    HookJudge::new(move |origin, command, cwd| {
        let file = origin.file.as_deref();
        let is_in = |tree: &AcceptedTree| file.is_some_and(|file| file.starts_with(tree.root()));
        if let Some((_, tree)) = brought.iter().find(|(_, tree)| is_in(tree)) {
            tree.judge().map_err(|it| it.to_string())?;
        }
        let is_judged = match &origin.source {
            HookSource::Settings(level) => matches!(level, Level::Project | Level::Local),
            HookSource::Skill(_) | HookSource::Agent(_) => true,
            HookSource::Plugin(plugin) => brought.iter().any(|(name, _)| *name == plugin.name),
            HookSource::Host => false,
        };
        let file = file.filter(|_| is_judged);
        match file.filter(|file| !own.iter().any(|directory| file.starts_with(directory))) {
            Some(file) => trust.judge_command(file, command, cwd).map_err(|it| it.to_string()),
            None => Ok(()),
        }
    })
}

/// Judges the accepted servers of a repository, and of plugins in it, again before each start.
pub(crate) fn server_judge(
    surroundings: &Surroundings,
    plugins: &PluginCatalog,
    trust: &Arc<Trust>,
) -> ServerJudge {
    let (trust, cwd) = (Arc::clone(trust), surroundings.cwd.clone());
    let brought = brought_plugins(plugins);
    Arc::new(move |server| {
        if let McpScope::Plugin(plugin) = &server.origin.scope
            && let Some((_, tree)) = brought.iter().find(|(name, _)| name == plugin)
        {
            tree.judge()?;
        }
        trust.judge_server(server, &cwd)
    })
}

/// The hooks that there are and what is wrong with them, for people.
pub(crate) fn hook_summary(settings: &Settings) -> (Vec<String>, Vec<String>) {
    let hooks = HookSet::from_settings(settings);
    let line = |(event, handler): (Event, &centurion_hooks::Handler)| {
        format!("{event}: {} ({})", handler.action.label(), handler.origin)
    };
    let problems = hooks.problems().iter().map(ToString::to_string);
    let idle = never_fired(&hooks)
        .into_iter()
        .map(|(event, place)| format!("{place}: {event} does not happen in this version"));
    (hooks.handlers().map(line).collect(), problems.chain(idle).collect())
}

/// Events with hooks that nothing makes happen, each with where the hook is.
fn never_fired(hooks: &HookSet) -> Vec<(Event, String)> {
    let idle = hooks.handlers().filter(|(event, _)| !event.is_fired());
    idle.map(|(event, handler)| (event, handler.origin.to_string())).collect()
}
