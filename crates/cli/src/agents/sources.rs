//! Everything that may define agents here: the one gathering, for commands and for runs.

use std::path::PathBuf;

use anyhow::bail;
use centurion_config::ReadRules;
use centurion_config::agents::{
    AgentSources, PluginAgents, ProjectFolders, Vocabulary, read_agents_flag,
};
use centurion_config::paths::{main_checkout, repo_root};
use centurion_engine::builtin::{self, Presence, Switches};
use centurion_permissions::all_tool_names;
use clap::Args;

use crate::configuration::Configuration;
use crate::surroundings::{MANAGED, Surroundings};

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Agents")]
pub(crate) struct AgentArgs {
    /// Agents for this run: a file, or JSON such as
    /// `{"scout": {"description": "…", "prompt": "…"}}`
    #[arg(long, value_name = "FILE|JSON")]
    pub(crate) agents: Option<String>,
}

/// Sources that flags bring besides the files that are always read.
#[derive(Debug, Default)]
pub(crate) struct FlagSources<'a> {
    /// The value of `--agents`.
    pub(crate) agents: Option<&'a str>,
    /// The directories of `--add-dir`, from the root of the file system.
    pub(crate) additional: &'a [PathBuf],
    /// The agents of all plugins that are on.
    pub(crate) plugins: Vec<PluginAgents>,
    pub(crate) read_rules: ReadRules,
}

/// All sources of agents. What is wrong with the files is found when they are loaded; only what a flag
/// asks for by name and cannot be read is an error.
pub(crate) fn sources(
    surroundings: &Surroundings,
    configuration: &Configuration,
    brought: FlagSources<'_>,
) -> anyhow::Result<AgentSources> {
    let settings = &configuration.settings;
    let cwd = &surroundings.cwd;
    let vocabulary = vocabulary();
    let flag = match (brought.agents, settings.sideload_disabled()) {
        (None, _) => Vec::new(),
        (Some(_), Some(origin)) => bail!("{origin} does not let --agents be used"),
        (Some(argument), None) => read_agents_flag(argument, cwd, &vocabulary)?,
    };
    let env = settings.overlay(&surroundings.env);
    let off = settings.subagents().disabled.into_iter().map(|name| name.value).collect();
    let switches = Switches::from(&env, off, Presence::Headless);
    let project = surroundings.project();
    let repository = repo_root(project);
    // A checkout that is no worktree is its own.
    let checkout = main_checkout(project).filter(|checkout| Some(checkout) != repository.as_ref());
    Ok(AgentSources {
        managed_dir: Some(PathBuf::from(MANAGED)),
        flag,
        settings: settings.agents(),
        folders: ProjectFolders {
            cwd: project.to_owned(),
            is_apart: surroundings.config_root.is_some(),
            repository,
            checkout,
            additional: brought.additional.to_vec(),
            home: surroundings.home.clone(),
        },
        config_dirs: surroundings.dirs.config_dirs().to_vec(),
        levels: settings.sources().definition_levels(),
        plugin_only: settings.plugin_only().agents.is_some(),
        plugins: brought.plugins,
        built_in: builtin::agents(&switches),
        vocabulary,
        content: settings.content_trust().clone(),
        read_rules: brought.read_rules,
    })
}

/// The names of all tools, for hints about those that do not exist.
fn vocabulary() -> Vocabulary {
    Vocabulary { tools: all_tool_names().map(str::to_owned).collect() }
}
