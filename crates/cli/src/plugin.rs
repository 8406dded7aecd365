//! `centurion plugin`: which plugins there are, what they bring, and what is to become of them.

mod add;
mod git;
mod marketplace;
mod show;
mod switch;
mod validate;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use centurion_config::plugins::{
    InstallScope, MarketplacePolicy, PluginCatalog, PluginId, PluginLoader, PluginSources,
    PluginStores,
};
use centurion_config::settings::{Level, SettingsFile};
use centurion_protocol::SystemWorld;
use clap::{Parser, Subcommand, ValueEnum};

use crate::configuration::{Configuration, SettingsArgs};
use crate::output::note;
use crate::surroundings::Surroundings;

/// Adds, shows, checks and removes plugins.
#[derive(Debug, Parser)]
#[command(name = "centurion plugin")]
pub(crate) struct PluginCommandArgs {
    #[command(subcommand)]
    action: PluginAction,
}

#[derive(Debug, Subcommand)]
enum PluginAction {
    /// Install a plugin and switch it on: `add PLUGIN@MARKETPLACE` or `add DIRECTORY`
    #[command(visible_alias = "install")]
    Add {
        /// A plugin of a marketplace, or a plugin's directory
        plugin: String,
        /// Scope: the user, the project, or the user in this project
        #[arg(short, long, default_value = "user")]
        scope: PluginScope,
    },
    /// Remove a plugin
    #[command(visible_alias = "uninstall")]
    Remove {
        plugin: String,
        /// Scope that it is removed from; default: all scopes in this project
        #[arg(short, long)]
        scope: Option<PluginScope>,
    },
    /// List the plugins, what they bring, and why those that are off are
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// A plugin's directory to list, too
        #[arg(long, value_name = "DIRECTORY")]
        plugin_dir: Vec<PathBuf>,
        #[command(flatten)]
        settings: SettingsArgs,
    },
    /// Switch a plugin on
    Enable {
        plugin: String,
        /// In whose settings
        #[arg(short, long, default_value = "user")]
        scope: PluginScope,
    },
    /// Switch a plugin off
    Disable {
        plugin: String,
        /// In whose settings
        #[arg(short, long, default_value = "user")]
        scope: PluginScope,
    },
    /// Check a plugin's or marketplace's directory
    Validate {
        #[arg(default_value = ".")]
        directory: PathBuf,
    },
    /// Add, list, update and remove marketplaces
    Marketplace {
        #[command(subcommand)]
        action: marketplace::MarketplaceAction,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PluginScope {
    /// For you, in all projects
    User,
    /// For everybody who has the project
    Project,
    /// For you, in this project
    Local,
}

impl PluginScope {
    fn level(self) -> Level {
        match self {
            Self::User => Level::User,
            Self::Project => Level::Project,
            Self::Local => Level::Local,
        }
    }

    fn install_scope(self) -> InstallScope {
        match self {
            Self::User => InstallScope::User,
            Self::Project => InstallScope::Project,
            Self::Local => InstallScope::Local,
        }
    }
}

pub(crate) fn run(args: PluginCommandArgs) -> anyhow::Result<ExitCode> {
    match args.action {
        PluginAction::Add { plugin, scope } => add::add(&plugin, scope)?,
        PluginAction::Remove { plugin, scope } => add::remove(&plugin, scope)?,
        PluginAction::List { json, plugin_dir, settings } => {
            let plugins = Plugins::load(&settings, &plugin_dir)?;
            show::list(&plugins.catalog(), json);
        }
        PluginAction::Enable { plugin, scope } => switch::switch(&plugin, scope, true)?,
        PluginAction::Disable { plugin, scope } => switch::switch(&plugin, scope, false)?,
        PluginAction::Validate { directory } => return Ok(validate::run(&directory)),
        PluginAction::Marketplace { action } => marketplace::run(&action)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The plugins as a command of this program sees them.
struct Plugins {
    surroundings: Surroundings,
    configuration: Configuration,
    sources: PluginSources,
}

impl Plugins {
    fn load(args: &SettingsArgs, plugin_dirs: &[PathBuf]) -> anyhow::Result<Self> {
        let surroundings = Surroundings::observe()?;
        let configuration = Configuration::load(&surroundings, args)?;
        configuration.warn();
        let settings = &configuration.settings;
        if let Some(origin) = settings.sideload_disabled()
            && !plugin_dirs.is_empty()
        {
            bail!("{origin} does not let --plugin-dir be used");
        }
        let sources =
            PluginSources::new(&surroundings.dirs, settings, &surroundings.cwd, plugin_dirs);
        Ok(Self { surroundings, configuration, sources })
    }

    /// Reads the settings of the files alone.
    fn plain() -> anyhow::Result<Self> {
        Self::load(&SettingsArgs::default(), &[])
    }

    fn stores(&self) -> &PluginStores {
        &self.sources.stores
    }

    /// All plugins. What is wrong with them is told.
    fn catalog(&self) -> Arc<PluginCatalog> {
        let catalog = PluginLoader::new().load(&self.sources, &SystemWorld);
        for problem in &catalog.problems {
            note(&format!("warning: {problem}"));
        }
        catalog
    }

    fn policy(&self) -> MarketplacePolicy {
        let policy = MarketplacePolicy::new(&self.sources.settings);
        for problem in &policy.problems {
            note(&format!("warning: {problem}"));
        }
        policy
    }

    fn settings_file(&self, scope: PluginScope) -> anyhow::Result<SettingsFile> {
        let file = self.configuration.settings.sources().file_for(scope.level());
        file.context("the home directory has no settings of a project")
    }

    /// The plugin that a person means: by its whole id, or by a name that only one has.
    fn meant(&self, written: &str) -> anyhow::Result<PluginId> {
        if written.contains('@') {
            return Ok(written.parse()?);
        }
        let mut ids: Vec<PluginId> =
            self.stores().contents().plugins.into_iter().map(|plugin| plugin.id).collect();
        ids.retain(|id| id.name() == written);
        ids.sort();
        ids.dedup();
        match ids.as_slice() {
            [id] => Ok(id.clone()),
            [] => bail!(
                "there is no plugin `{written}`\nhelp: `centurion plugin list` shows those there are"
            ),
            several => {
                let names: Vec<String> = several.iter().map(ToString::to_string).collect();
                bail!("`{written}` may be any of {}", names.join(", "))
            }
        }
    }
}
