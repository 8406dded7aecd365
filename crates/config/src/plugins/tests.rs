//! Plugins as people write, install and switch them on.

mod installing;
mod loading;
mod parts;
mod skills_dir;
mod validating;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_protocol::{Env, SystemWorld, World};

use super::*;
use crate::agents::{AgentCatalog, AgentLoader, AgentSources};
use crate::output_styles::OutputStyles;
use crate::paths::Dirs;
use crate::settings::{LevelChoice, RepositoryTrust, Settings, SettingsSources};
use crate::skills::{SkillCatalog, SkillDefinition, SkillLoader, SkillSources};

/// A clock that is far ahead of all files, so that what they say about themselves is sure.
struct Later;

impl World for Later {
    fn now(&self) -> jiff::Timestamp {
        "2100-01-01T00:00:00Z".parse().unwrap()
    }

    fn random(&self) -> u64 {
        0
    }
}

const NOTHING_ELSE: LevelChoice = LevelChoice { user: false, project: false, local: false };

/// A home, a project and a place for managed settings.
/// Marks the machine of these tests.
struct PluginTests;

type Machine = crate::testing::Machine<PluginTests>;

impl Machine {
    fn new() -> Self {
        let machine = Self::with(|_| PluginTests);
        for directory in ["home", "repo", "etc"] {
            fs::create_dir(machine.path(directory)).unwrap();
        }
        machine
    }

    /// A plugin in both of its usual parts: a manifest and one agent.
    fn plugin(&self, root: &str, name: &str, version: &str) {
        let manifest = format!(r#"{{"name": "{name}", "version": "{version}"}}"#);
        self.write(&format!("{root}/.claude-plugin/plugin.json"), &manifest);
        let agent = "---\nname: helper\ndescription: helps\n---\nHelp.\n";
        self.write(&format!("{root}/agents/helper.md"), agent);
    }

    /// Notes a plugin as installed in one of the stores, where its directory is.
    fn installed(&self, store: &str, id: &str, record: &str) {
        let text = format!(r#"{{"version": 2, "plugins": {{"{id}": [{record}]}}}}"#);
        self.write(&format!("{store}/installed_plugins.json"), &text);
    }

    fn dirs(&self) -> Dirs {
        Dirs::new(&Env::default(), Some(&self.path("home"))).unwrap()
    }

    fn stores(&self) -> PluginStores {
        PluginStores::new(&self.dirs())
    }

    fn settings_sources(&self) -> SettingsSources {
        SettingsSources {
            managed_dir: Some(self.path("etc")),
            start_dir: self.path("repo"),
            home: Some(self.path("home")),
            config_dirs: self.dirs().config_dirs().to_vec(),
            ..SettingsSources::default()
        }
    }

    fn settings(&self, standing: RepositoryTrust) -> Settings {
        Settings::load(self.settings_sources(), standing)
    }

    fn sources(&self, standing: RepositoryTrust, plugin_dirs: &[&str]) -> PluginSources {
        let dirs: Vec<PathBuf> = plugin_dirs.iter().map(|path| self.path(path)).collect();
        PluginSources::new(&self.dirs(), &self.settings(standing), &self.path("repo"), &dirs)
    }

    fn load(&self, plugin_dirs: &[&str]) -> Arc<PluginCatalog> {
        self.load_as(RepositoryTrust::Untrusted, plugin_dirs)
    }

    fn load_as(&self, standing: RepositoryTrust, plugin_dirs: &[&str]) -> Arc<PluginCatalog> {
        PluginLoader::new().load(&self.sources(standing, plugin_dirs), &SystemWorld)
    }
}

fn agent_sources(catalog: &PluginCatalog) -> AgentSources {
    AgentSources {
        plugins: catalog.enabled.iter().map(|plugin| plugin.agents()).collect(),
        levels: NOTHING_ELSE,
        ..AgentSources::default()
    }
}

/// The agents of these plugins alone.
fn agents(catalog: &PluginCatalog) -> Arc<AgentCatalog> {
    AgentLoader::new().load(&agent_sources(catalog), &SystemWorld)
}

/// The output styles of these plugins, beside the program's own.
fn styles(catalog: &PluginCatalog) -> OutputStyles {
    OutputStyles::load(&agent_sources(catalog), &SystemWorld)
}

/// The skills and commands of these plugins alone.
fn skills(catalog: &PluginCatalog) -> Arc<SkillCatalog> {
    let sources = SkillSources {
        plugins: catalog.enabled.iter().map(|plugin| plugin.skills()).collect(),
        levels: NOTHING_ELSE,
        ..SkillSources::default()
    };
    SkillLoader::new().load(&sources, &SystemWorld)
}

/// One of them, read whole.
fn skill(catalog: &SkillCatalog, name: &str) -> SkillDefinition {
    catalog.read(&catalog.find(name).unwrap()).unwrap().definition
}

fn agent_names(catalog: &PluginCatalog) -> Vec<String> {
    agents(catalog).active.iter().map(|agent| agent.definition.name.value.clone()).collect()
}

fn said(catalog: &PluginCatalog) -> Vec<String> {
    catalog.problems.iter().map(ToString::to_string).collect()
}

fn ids(catalog: &PluginCatalog) -> (Vec<String>, Vec<(String, String)>) {
    let enabled = catalog.enabled.iter().map(|plugin| plugin.id.to_string());
    let disabled = catalog.disabled.iter().map(|it| (it.id.to_string(), it.why.to_string()));
    (enabled.collect(), disabled.collect())
}
