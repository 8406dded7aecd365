//! The places in which definitions are looked for: flags, settings and plugins, gathered once for a command.

use std::path::PathBuf;
use std::sync::Arc;

use centurion_config::agents::AgentSources;
use centurion_config::plugins::PluginCatalog;
use centurion_config::settings::Settings;
use centurion_protocol::SystemWorld;
use clap::Args;

use crate::agents::sources::{self, FlagSources};
use crate::configuration::{Configuration, SettingsArgs};
use crate::delegation;
use crate::setup;
use crate::surroundings::Surroundings;

/// The places in which definitions are looked for, besides the files that are always read.
#[derive(Debug, Default, Args)]
pub(crate) struct PlaceArgs {
    /// Directories of plugins that are on, too
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir: Vec<PathBuf>,
    /// Additional directories that belong to the project
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub(crate) add_dir: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: SettingsArgs,
}

/// All places of definitions, as a command of this program sees them.
pub(crate) struct Places {
    pub(crate) surroundings: Surroundings,
    pub(crate) settings: Settings,
    pub(crate) plugins: Arc<PluginCatalog>,
    pub(crate) agents: AgentSources,
}

impl Places {
    /// Gathers them, with the agents that `--agents` brings. What is wrong with the settings is told.
    pub(crate) fn gather(args: &PlaceArgs, agents: Option<&str>) -> anyhow::Result<Self> {
        let surroundings = Surroundings::observe()?;
        let configuration = Configuration::load(&surroundings, &args.settings)?;
        configuration.warn();
        let settings = &configuration.settings;
        let plugins = delegation::plugins(&surroundings, settings, &args.plugin_dir, &SystemWorld)?;
        let brought = FlagSources {
            agents,
            additional: &setup::additional_directories(&args.add_dir)?,
            plugins: plugins.enabled.iter().map(|plugin| plugin.agents()).collect(),
            ..FlagSources::default()
        };
        let agents = sources::sources(&surroundings, &configuration, brought)?;
        Ok(Self { surroundings, settings: configuration.settings, plugins, agents })
    }
}
