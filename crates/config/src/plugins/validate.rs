//! Checking a plugin for its author: all that is wrong with it, with file and line.
//!
//! Hooks are not checked here: they are part of the result, for the caller to check.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use centurion_protocol::{Env, World};

use super::bundle::{Bundle, PluginHooks};
use super::marketplace::{MARKETPLACE_FILE, Marketplace};
use super::name::INLINE;
use super::plugin::{Power, servers};
use super::source::EntrySource;
use super::variables::PluginVariables;
use crate::Problem;
use crate::agents::{AgentLoader, AgentSources, PluginAgents, Vocabulary};
use crate::settings::LevelChoice;
use crate::skills::{PluginSkills, SkillLoader, SkillSources};

/// Only the plugin is looked at.
const NOTHING_ELSE: LevelChoice = LevelChoice { user: false, project: false, local: false };

/// The result of validating a directory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Validation {
    /// Parts that cannot be used as they are.
    pub errors: Vec<Problem>,
    /// Remarks for its author.
    pub warnings: Vec<Problem>,
    /// The name of the plugin, if it is one.
    pub plugin: Option<String>,
    /// The name of the marketplace, if it is one.
    pub marketplace: Option<String>,
    /// The names of its agents, skills and commands, and servers.
    pub agents: Vec<String>,
    pub skills: Vec<String>,
    pub servers: Vec<String>,
    /// Its hooks, which are not checked here.
    pub hooks: Vec<PluginHooks>,
    /// The directory's real path, where it can be told.
    pub root: PathBuf,
}

/// Checks a directory that is a plugin, a marketplace, or both. `vocabulary` is for hints about tools.
pub fn validate(directory: &Path, vocabulary: &Vocabulary, world: &dyn World) -> Validation {
    let mut validation = Validation { root: directory.to_owned(), ..Validation::default() };
    let is_marketplace = directory.join(MARKETPLACE_FILE).symlink_metadata().is_ok();
    let has_manifest =
        super::manifest::PLACES.iter().any(|it| directory.join(it).symlink_metadata().is_ok());
    if is_marketplace {
        validation.check_marketplace(directory);
    }
    if has_manifest || !is_marketplace {
        validation.check_plugin(directory, vocabulary, world);
    }
    validation
}

impl Validation {
    fn check_marketplace(&mut self, directory: &Path) {
        let marketplace = match Marketplace::read(directory) {
            Ok(marketplace) => marketplace,
            Err(problem) => return self.errors.push(problem),
        };
        self.errors.extend(marketplace.problems.iter().cloned());
        for entry in &marketplace.entries {
            let EntrySource::Relative(path) = &entry.source else { continue };
            if let Err(error) = marketplace.directory(path) {
                self.errors.push(Problem {
                    path: marketplace.file.clone(),
                    line: Some(entry.line),
                    message: format!("plugin `{}`: {error}", entry.name),
                });
            }
        }
        self.marketplace = Some(marketplace.name);
    }

    fn check_plugin(&mut self, directory: &Path, vocabulary: &Vocabulary, world: &dyn World) {
        let name = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let name = name.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut bundle = match Bundle::read(directory, &name) {
            Ok(bundle) => bundle,
            Err(mut problems) => return self.errors.append(&mut problems),
        };
        self.errors.append(&mut bundle.errors);
        self.warnings.append(&mut bundle.remarks);
        self.check_agents(&bundle, vocabulary, world);
        self.check_skills(&bundle, world);
        self.check_servers(&bundle);
        self.hooks.clone_from(&bundle.hooks);
        self.root.clone_from(&bundle.root);
        self.plugin = Some(bundle.manifest.name);
        let has_nothing = self.agents.is_empty()
            && self.skills.is_empty()
            && self.servers.is_empty()
            && self.hooks.is_empty();
        if has_nothing && self.errors.is_empty() {
            let message =
                "brings nothing: no agents, skills, commands, hooks or servers".to_owned();
            self.warnings.push(Problem { path: bundle.root, line: None, message });
        }
    }

    fn check_agents(&mut self, bundle: &Bundle, vocabulary: &Vocabulary, world: &dyn World) {
        let plugin = PluginAgents {
            plugin: bundle.manifest.name.clone(),
            root: bundle.root.clone(),
            paths: bundle.agents.clone(),
            variables: PluginVariables::default(),
            power: Power::Full,
        };
        let sources = AgentSources {
            plugins: vec![plugin],
            levels: NOTHING_ELSE,
            vocabulary: vocabulary.clone(),
            ..AgentSources::default()
        };
        let catalog = AgentLoader::new().load(&sources, world);
        let failed = catalog.failed.iter().cloned();
        self.errors.extend(failed.map(|failed| Problem {
            path: failed.path,
            line: failed.line,
            message: failed.reason,
        }));
        self.warnings.extend(catalog.problems.iter().cloned());
        let names = catalog.active.iter().map(|agent| agent.definition.name.value.clone());
        self.agents = names.collect();
        if let Some(agent) = &bundle.agent {
            let full = format!("{}:{}", bundle.manifest.name, agent.name);
            if catalog.find(&agent.name).or_else(|| catalog.find(&full)).is_none() {
                let message =
                    format!("`agent` names `{}`, which is no agent of this plugin", agent.name);
                let (path, line) = (agent.file.clone(), Some(agent.line));
                self.warnings.push(Problem { path, line, message });
            }
        }
    }

    fn check_skills(&mut self, bundle: &Bundle, world: &dyn World) {
        let plugin = PluginSkills {
            plugin: bundle.manifest.name.clone(),
            root: bundle.root.clone(),
            skills: bundle.skills.clone(),
            commands: bundle.commands.clone(),
            variables: PluginVariables::default(),
            power: Power::Full,
        };
        let sources =
            SkillSources { plugins: vec![plugin], levels: NOTHING_ELSE, ..SkillSources::default() };
        let mut checked = SkillLoader::new().load_all(&sources, world).check();
        self.errors.append(&mut checked.failed);
        self.warnings.append(&mut checked.problems);
        let names = checked.active.into_iter().map(|skill| skill.definition.name);
        self.skills = names.collect();
    }

    fn check_servers(&mut self, bundle: &Bundle) {
        let root = &bundle.root;
        let data = Path::new("/").join(INLINE);
        let variables = PluginVariables::new(root, &data, root, &BTreeMap::new());
        for mut parsed in servers(bundle, &variables, &Env::default()) {
            let told = match &parsed.server {
                Some(_) => &mut self.warnings,
                None => &mut self.errors,
            };
            told.append(&mut parsed.problems);
            self.servers.extend(parsed.server.map(|server| server.name));
        }
    }
}
