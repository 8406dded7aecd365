//! What extends the agents of a run: the hooks of its settings and its MCP servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use centurion_config::mcp::{Declared, McpConfiguration, McpStanding};
use centurion_config::plugins::{Plugin, PluginCatalog};
use centurion_config::settings::Settings;
use centurion_engine::{Elicitations, Extensions, HookHost};
use centurion_hooks::{Event, HookRules, HookSet};
use centurion_mcp::{Elicitor, Pool, PoolOptions, SdkChannel};
use centurion_protocol::Env;
use centurion_protocol::sdk::InitPlugin;

use crate::args::{InputFormat, RunArgs};
use crate::control::Control;
use crate::delegation;
use crate::output::note;
use crate::setup;
use crate::surroundings::Surroundings;

/// How long the first turn waits for servers, unless `MCP_TIMEOUT` says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// What surrounds the extensions of a run.
pub(crate) struct Around<'a> {
    pub(crate) env: &'a Arc<Env>,
    /// The directories that the agents work in.
    pub(crate) roots: &'a [PathBuf],
    pub(crate) output_dir: &'a Path,
    pub(crate) control: &'a Arc<Control>,
    pub(crate) plugins: &'a PluginCatalog,
}

/// Hooks that are known, and servers that are being connected.
pub(crate) fn extensions(
    args: &RunArgs,
    surroundings: &Surroundings,
    settings: &Settings,
    servers: &McpConfiguration,
    around: &Around<'_>,
) -> anyhow::Result<(Extensions, Arc<Pool>)> {
    warn(servers);
    let hooks = settings_hooks(settings);
    let has_host = args.format.input_format == InputFormat::StreamJson;
    let control = || Arc::clone(around.control);
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
        sdk: has_host.then(|| control() as Arc<dyn SdkChannel>),
    });
    let patience = if around.env.is_on("MCP_CONNECTION_NONBLOCKING") {
        Duration::ZERO
    } else {
        around.env.millis("MCP_TIMEOUT").unwrap_or(PATIENCE)
    };
    let extensions = Extensions {
        hooks,
        plugins: around.plugins.enabled.iter().map(|plugin| shown(plugin)).collect(),
        plugin_hooks: delegation::plugin_hooks(around.plugins),
        hook_rules: HookRules::new(&settings.hook_limits()),
        hook_host: has_host.then(|| control() as Arc<dyn HookHost>),
        shows_hooks: args.format.include_hook_events,
        home: surroundings.home.clone(),
        servers: servers.active().map(|server| pool.share(server.clone())).collect(),
        server_patience: patience,
        elicitations,
    };
    Ok((extensions, pool))
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
    for Declared { server, standing, .. } in &servers.servers {
        if matches!(standing, McpStanding::Untrusted | McpStanding::Pending) {
            note(&format!("warning: server `{}` was not started, it is {standing}", server.name));
        }
    }
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
