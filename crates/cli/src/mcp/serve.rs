//! `centurion mcp serve`: this program as an MCP server on its standard streams.
//!
//! It ends when its input is closed, and ends everything that calls have started.

mod agents;
mod client;
mod request;
mod server;
mod streams;
mod tasks;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use centurion_config::settings::Settings;
use centurion_engine::{Options, ToolServer, View};
use centurion_hooks::{Action, HookSet};
use centurion_mcp::ThrottledTransport;
use centurion_protocol::sdk::{Event, EventBody, System};
use centurion_protocol::{SystemWorld, World};
use clap::{Args, Parser};
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::agents::ServedAgents;
use self::server::Server;
use self::streams::{BoundedLines, JsonLines};
use super::McpArgs;
use crate::args::{ModelArgs, PermissionArgs, RunArgs};
use crate::configuration::{Configuration, SettingsArgs};
use crate::log::start_logging;
use crate::output::note;
use crate::setup::{self, Lasting, SessionIo};
use crate::signals::Signals;
use crate::slow_servers;
use crate::surroundings::Surroundings;

/// The time that calls have to end once the client has stopped waiting for them.
const GRACE: Duration = Duration::from_secs(10);

/// The time that the client has to read the last answers after a signal.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The entrypoint of a session, as transcripts name it.
const ENTRYPOINT: &str = "mcp";

/// The limits of the tools and the agents of the server.
#[derive(Debug, Args)]
#[command(
    after_help = "The tools are those of an agent of this program, with the same rules, hooks and \
    sandbox. The tool `centurion` runs a whole agent.\n\
    What has to be asked goes to the program that calls, if it can ask (MCP elicitation), and is denied if \
    it cannot.\n\n\
    To use it, name it in an .mcp.json:\n  \
    {\"centurion\": {\"command\": \"centurion\", \"args\": [\"mcp\", \"serve\", \"--permission-mode\", \"acceptEdits\"]}}"
)]
pub(super) struct ServeArgs {
    /// Additional directories that the tools may work in
    #[arg(long, value_name = "DIR", num_args = 1..)]
    add_dir: Vec<PathBuf>,

    /// Log what happens to standard error, optionally only some targets: `--debug=centurion_model`
    #[arg(short, long, value_name = "FILTER", num_args = 0..=1, require_equals = true, default_missing_value = "debug")]
    debug: Option<String>,

    /// Keep no transcripts of agents
    #[arg(long)]
    no_session_persistence: bool,

    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    permissions: PermissionArgs,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    mcp: McpArgs,
}

impl ServeArgs {
    /// The same as the flags of a run, which is what every agent of the server is.
    fn into_run(self) -> anyhow::Result<RunArgs> {
        ensure!(
            self.permissions.permission_prompt_tool.is_none(),
            "--permission-prompt-tool has no use here: the program that calls is asked"
        );
        let mut run = RunArgs::try_parse_from(["centurion"])?;
        run.add_dir = self.add_dir;
        run.debug = self.debug;
        run.session.no_session_persistence = self.no_session_persistence;
        run.model = self.model;
        run.permissions = self.permissions;
        run.settings = self.settings;
        run.mcp = self.mcp;
        Ok(run)
    }
}

pub(super) async fn run(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let args = args.into_run()?;
    start_logging(args.debug.as_deref(), None)?;
    let surroundings = Surroundings::observe()?;
    let configuration = Configuration::load(&surroundings, &args.settings)?;
    configuration.warn();
    let hook_servers = hook_servers(&configuration.settings);
    // The tools leave nothing behind; their own sessions are for agents.
    let mut for_tools = args.clone();
    for_tools.session.no_session_persistence = true;
    for_tools.mcp.only = Some(hook_servers);
    for_tools.model.is_optional = true;
    let view = Arc::new(Notes);
    let (options, lasting) = prepare(&for_tools, &surroundings, configuration, view).await?;
    let roots = std::iter::once(options.base.cwd.clone())
        .chain(options.base.additional_directories.clone());
    let roots: Vec<PathBuf> = roots.collect();
    let servers = options.extensions.servers.clone();
    let tools = slow_servers::beside(servers, Box::pin(ToolServer::open(options))).await?;
    let agents = ServedAgents::new(args, surroundings, tools.mode(), roots);
    let server = Arc::new(Server::new(tools, agents));
    let code = serve(&server).await;
    server.close(GRACE).await;
    lasting.pool.shutdown().await;
    code
}

/// Answers until the input is closed or a signal ends it.
async fn serve(server: &Arc<Server>) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::new()?;
    let cancel = CancellationToken::new();
    let (input, output) =
        (BoundedLines::new(tokio::io::stdin()), JsonLines::new(tokio::io::stdout()));
    let streams = ThrottledTransport::new(AsyncRwTransport::new(input, output));
    let serving = async {
        match serve_server_with_ct(Arc::clone(server), streams, cancel.clone()).await {
            Ok(running) => running.waiting().await.map(drop).context("the server broke"),
            // The client closed the connection without asking for anything.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                Ok(())
            }
            Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
                bail!("the client did not begin with `initialize`, as MCP requires")
            }
            Err(error) => Err(error).context("the server could not begin"),
        }
    };
    let mut serving = std::pin::pin!(serving);
    let mut forced = None;
    let mut deadline = std::pin::pin!(tokio::time::sleep(LAST_WORDS));
    loop {
        tokio::select! {
            ended = &mut serving => {
                ended?;
                return Ok(forced.map_or(ExitCode::SUCCESS, ExitCode::from));
            }
            code = signals.next() => {
                if forced.is_some() {
                    return Ok(ExitCode::from(code));
                }
                forced = Some(code);
                cancel.cancel();
                deadline.as_mut().reset(Instant::now() + LAST_WORDS);
            }
            // The client may never read what is still to be said.
            () = &mut deadline, if forced.is_some() => {
                return Ok(forced.map_or(ExitCode::SUCCESS, ExitCode::from));
            }
        }
    }
}

/// Everything a session of this server is made from.
async fn prepare(
    args: &RunArgs,
    surroundings: &Surroundings,
    configuration: Configuration,
    view: Arc<dyn View>,
) -> anyhow::Result<(Options, Lasting)> {
    let world: Arc<dyn World> = Arc::new(SystemWorld);
    // A client of this server is no host.
    let io = SessionIo { world, view, host: None, mirror: None, answerer: None };
    let (mut options, lasting) = setup::options(args, surroundings, configuration, io).await?;
    ENTRYPOINT.clone_into(&mut options.base.entrypoint);
    Ok((options, lasting))
}

/// The servers that hooks call. A client that only uses the tools needs no others.
fn hook_servers(settings: &Settings) -> BTreeSet<String> {
    let hooks = HookSet::from_settings(settings);
    let server = |action: &Action| match action {
        Action::McpTool { server, .. } => Some(server.clone()),
        _ => None,
    };
    hooks.handlers().filter_map(|(_, handler)| server(&handler.action)).collect()
}

/// Tells people what hooks have to say to them, and what is wrong with hooks.
struct Notes;

impl View for Notes {
    fn show(&self, event: &Event) {
        if let EventBody::System(System::Informational(said)) = &event.body {
            note(&format!("{}: {}", said.level, said.content));
        }
    }
}
