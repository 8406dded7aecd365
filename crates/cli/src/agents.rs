//! `centurion agents`: which agents there are, what is wrong with their files, and files of new ones.

mod check;
mod explain;
mod list;
mod memory;
mod new;
pub(crate) mod sources;

use std::process::ExitCode;
use std::sync::Arc;

use centurion_config::agents::{AgentCatalog, AgentDefinition, AgentLoader};
use centurion_protocol::SystemWorld;
use clap::{Args, Parser, Subcommand};

pub(crate) use self::new::write_new_agent;
use self::sources::AgentArgs;
use crate::definitions::listing::Form;
use crate::definitions::places::{PlaceArgs, Places};

/// Shows agents, checks their files and writes new ones.
#[derive(Debug, Parser)]
#[command(name = "centurion agents")]
pub(crate) struct AgentsCommandArgs {
    #[command(subcommand)]
    action: AgentsAction,
}

#[derive(Debug, Subcommand)]
enum AgentsAction {
    /// List the agents that there are, by who defines them
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        sources: AgentSourceArgs,
    },
    /// Say what is wrong with files of agents; fails if one cannot be used
    Check(check::CheckAgentsArgs),
    /// Say what an agent would run with, and which file, line or rule decides each part
    Explain(Box<explain::ExplainAgentArgs>),
    /// Show where an agent's memory is, and carry it between projects
    Memory(memory::MemoryArgs),
    /// Write the file of a new agent
    New(new::NewAgentArgs),
}

/// The places in which agents are looked for, besides the files that are always read.
#[derive(Debug, Default, Args)]
struct AgentSourceArgs {
    #[command(flatten)]
    agents: AgentArgs,
    #[command(flatten)]
    places: PlaceArgs,
}

/// The agents as a command of this program sees them.
struct KnownAgents {
    places: Places,
    catalog: Arc<AgentCatalog>,
}

impl KnownAgents {
    fn load(args: &AgentSourceArgs) -> anyhow::Result<Self> {
        let places = Places::gather(&args.places, args.agents.agents.as_deref())?;
        let catalog = AgentLoader::new().load(&places.agents, &SystemWorld);
        Ok(Self { places, catalog })
    }

    /// Every agent, also those that cannot be asked for.
    fn all(&self) -> impl Iterator<Item = &AgentDefinition> {
        let active = self.catalog.active.iter().map(|agent| &*agent.definition);
        active.chain(self.catalog.shadowed.iter().map(|agent| &*agent.definition))
    }
}

pub(crate) async fn run(args: AgentsCommandArgs) -> anyhow::Result<ExitCode> {
    match args.action {
        AgentsAction::List { json, sources } => {
            let agents = KnownAgents::load(&sources)?;
            list::print(&agents.catalog, Form::new(json));
            Ok(ExitCode::SUCCESS)
        }
        AgentsAction::Check(args) => check::run(&args),
        AgentsAction::Explain(args) => Box::pin(explain::run(*args)).await,
        AgentsAction::Memory(args) => memory::run(&args),
        AgentsAction::New(args) => new::run(&args),
    }
}
