//! `centurion agents explain`: everything that an agent would run with, and what decides each part. It is
//! the runtime that is asked: what it says is what a run does.

use std::process::ExitCode;
use std::sync::Arc;

use centurion_engine::{Options, Session};
use centurion_host::Fronts;
use centurion_protocol::{SystemWorld, World};
use clap::{Args, Parser};

use super::sources::AgentArgs;
use crate::args::{ModelArgs, PermissionArgs, RunArgs};
use crate::configuration::Configuration;
use crate::definitions::explained;
use crate::definitions::places::PlaceArgs;
use crate::mcp::McpArgs;
use crate::output::Output;
use crate::setup::{self, SessionIo};
use crate::slow_servers;
use crate::surroundings::Surroundings;

#[derive(Debug, Args)]
pub(super) struct ExplainAgentArgs {
    /// The agent's name
    name: String,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// As if the session itself ran as the agent (`--agent`), not as one that the main agent starts
    #[arg(long)]
    as_main: bool,

    /// As if it were started in the background
    #[arg(long, conflicts_with = "as_main")]
    background: bool,

    /// The depth of the agent that starts it; the main agent has 0
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "as_main")]
    depth: u32,

    #[command(flatten)]
    agents: AgentArgs,

    #[command(flatten)]
    places: PlaceArgs,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    permissions: PermissionArgs,
    #[command(flatten)]
    mcp: McpArgs,
}

impl ExplainAgentArgs {
    /// The flags of the run that is asked about.
    fn into_run(self) -> anyhow::Result<RunArgs> {
        let mut run = RunArgs::try_parse_from(["centurion"])?;
        run.add_dir = self.places.add_dir;
        run.model = self.model;
        // Nothing is asked of a model.
        run.model.is_optional = true;
        run.permissions = self.permissions;
        run.settings = self.places.settings;
        run.mcp = self.mcp;
        run.session.no_session_persistence = true;
        run.delegation.definitions = self.agents;
        run.delegation.plugin_dir = self.places.plugin_dir;
        Ok(run)
    }
}

pub(super) async fn run(args: ExplainAgentArgs) -> anyhow::Result<ExitCode> {
    let (name, as_json, as_main) = (args.name.clone(), args.json, args.as_main);
    let (background, depth) = (args.background, args.depth);
    let run = args.into_run()?;
    let world: Arc<dyn World> = Arc::new(SystemWorld);
    let surroundings = Surroundings::observe()?;
    let configuration = Configuration::load(&surroundings, &run.settings)?;
    configuration.warn();
    let io = SessionIo {
        world,
        view: Arc::new(Fronts::new([])),
        host: None,
        mirror: None,
        answerer: None,
    };
    let (options, lasting) = setup::options(&run, &surroundings, configuration, io).await?;
    let explaining = async |options: Options| {
        let session = Session::open(options).await?;
        let explained = if as_main {
            session.explain_main(&name).await
        } else {
            session.explain(&name, background, depth).await
        };
        anyhow::Ok(explained)
    };
    let servers = options.extensions.servers.clone();
    let explained = slow_servers::beside(servers, Box::pin(explaining(options))).await?;
    lasting.pool.shutdown().await;
    let explanation = explained?;
    let output = Output::default();
    if as_json {
        output.json_line(&explanation);
    } else {
        output.write_text(&explained::text(&explanation)?);
    }
    Ok(ExitCode::SUCCESS)
}
