//! `centurion skills`: which skills and commands there are, what is wrong with their files, what one of them comes
//! to, and files of new ones. Runs no command of a skill.

mod check;
mod effects;
mod explain;
mod list;
mod new;
pub(crate) mod sources;

pub(crate) use self::list::GROUPS;

use std::process::ExitCode;
use std::sync::Arc;

use centurion_config::skills::{SkillCatalog, SkillLoader};
use centurion_protocol::SystemWorld;
use clap::{Parser, Subcommand};

use crate::definitions::listing::Form;
use crate::definitions::places::{PlaceArgs, Places};

/// Shows skills and commands, checks their files, explains one and writes new ones.
#[derive(Debug, Parser)]
#[command(name = "centurion skills")]
pub(crate) struct SkillsCommandArgs {
    #[command(subcommand)]
    action: SkillsAction,
}

#[derive(Debug, Subcommand)]
enum SkillsAction {
    /// List the skills and commands that there are, by whose they are
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        places: PlaceArgs,
    },
    /// Say what is wrong with files of skills and commands; fails if one cannot be used
    Check(check::CheckSkillsArgs),
    /// Say what a skill comes to, and which file and line decides each part; runs nothing
    Explain(explain::ExplainSkillArgs),
    /// Write the file of a new skill
    New(new::NewSkillArgs),
}

/// The skills as a command of this program sees them.
pub(crate) struct Skills {
    places: Places,
    pub(crate) catalog: Arc<SkillCatalog>,
}

impl Skills {
    /// All of them, however many there are.
    pub(crate) fn load(args: &PlaceArgs) -> anyhow::Result<Self> {
        let places = Places::gather(args, None)?;
        let sources = sources::sources(&places.agents, &places.settings, &places.plugins);
        let catalog = SkillLoader::new().load_all(&sources, &SystemWorld);
        Ok(Self { places, catalog })
    }
}

pub(crate) fn run(args: SkillsCommandArgs) -> anyhow::Result<ExitCode> {
    match args.action {
        SkillsAction::List { json, places } => {
            let skills = Skills::load(&places)?;
            list::print(&skills.catalog, Form::new(json));
            Ok(ExitCode::SUCCESS)
        }
        SkillsAction::Check(args) => check::run(&args),
        SkillsAction::Explain(args) => explain::run(&args),
        SkillsAction::New(args) => new::run(&args),
    }
}
