//! The places in which agents are looked for, the strongest first.

use std::path::{Path, PathBuf};

use super::definition::AgentSource;
use super::reading::{ReadAgent, Vocabulary};
use crate::ReadRules;
use crate::plugins::{PluginVariables, Power};
use crate::scan::{FileChoice, ScanPlace};
use crate::settings::{DeclaredAgent, LevelChoice};
use crate::trust::ContentTrust;

/// The directories of definitions in a project; the later one wins.
pub(crate) const PROJECT_DIRS: [&str; 2] = [".claude", ".centurion"];

/// Everything that may define agents. All paths are absolute.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSources {
    /// The directory that the administrator of the machine manages.
    pub managed_dir: Option<PathBuf>,
    /// The agents of `--agents` or of a host, as [`read_agents_flag`](super::read_agents_flag) read them.
    pub flag: Vec<ReadAgent>,
    /// `agents` of all settings, the strongest first.
    pub settings: Vec<DeclaredAgent>,
    pub folders: ProjectFolders,
    /// The user's directories, such as `~/.claude`; the later one wins.
    pub config_dirs: Vec<PathBuf>,
    pub levels: LevelChoice,
    /// Whether only managed agents, those of plugins and the program's own count; see
    /// [`PluginOnly`](crate::settings::PluginOnly).
    pub plugin_only: bool,
    pub plugins: Vec<PluginAgents>,
    pub built_in: Vec<BuiltInAgent>,
    pub vocabulary: Vocabulary,
    /// Says which definitions of projects were accepted with all that they bring.
    pub content: ContentTrust,
    /// Deny rules for reading, which bind the files of definitions and of output styles.
    pub read_rules: ReadRules,
}

/// The directory of a session, and the folders of its project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectFolders {
    pub cwd: PathBuf,
    /// Whether the session works elsewhere: then nothing is found by the files that it works with.
    pub is_apart: bool,
    /// The top of the repository, up to which every directory counts; without one only `cwd` does.
    pub repository: Option<PathBuf>,
    /// The main checkout, where the repository is a worktree of it.
    pub checkout: Option<PathBuf>,
    /// Directories that were added to the session.
    pub additional: Vec<PathBuf>,
    /// Its definitions are the user's own.
    pub home: Option<PathBuf>,
}

/// The agents of one plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginAgents {
    pub plugin: String,
    /// The plugin's own directory, which links must not lead out of.
    pub root: PathBuf,
    /// Directories and single files; one that is reached twice loads once.
    pub paths: Vec<PathBuf>,
    /// The variables that the texts of its agents may name.
    pub variables: PluginVariables,
    /// Whether all that its agents say counts.
    pub power: Power,
}

/// An agent that is part of the program, as Markdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltInAgent {
    /// The text that stands for a path in messages.
    pub path: &'static str,
    pub text: &'static str,
}

/// A directory of a project, with what links in it may lead to.
pub(crate) struct ProjectFolder {
    pub(crate) path: PathBuf,
    pub(crate) within: PathBuf,
}

impl ProjectFolders {
    /// All directories of the project, the nearest first.
    pub(crate) fn chain(&self) -> Vec<ProjectFolder> {
        let mut chain: Vec<ProjectFolder> = Vec::new();
        let top = self.repository.as_deref().filter(|top| self.cwd.starts_with(top));
        for directory in self.cwd.ancestors() {
            let within = top.unwrap_or(&self.cwd).to_owned();
            chain.push(ProjectFolder { path: directory.to_owned(), within });
            if top.is_none_or(|top| top == directory) {
                break;
            }
        }
        for directory in self.checkout.iter().chain(&self.additional) {
            chain.push(ProjectFolder { path: directory.clone(), within: directory.clone() });
        }
        let mut seen: Vec<PathBuf> = self.home.iter().cloned().collect();
        chain.retain(|folder| {
            let is_new = !seen.contains(&folder.path);
            if is_new {
                seen.push(folder.path.clone());
            }
            is_new
        });
        chain
    }
}

/// A place with who keeps agents there.
#[derive(Clone, Debug)]
pub(super) struct AgentPlace {
    pub(super) place: ScanPlace,
    pub(super) source: AgentSource,
    pub(super) plugin: Option<String>,
}

impl AgentSources {
    /// Whether agents of a source count at all.
    pub(super) fn wants(&self, source: AgentSource) -> bool {
        let is_left =
            matches!(source, AgentSource::Policy | AgentSource::Plugin | AgentSource::BuiltIn);
        is_left || !self.plugin_only
    }

    /// All places of one kind, the strongest first.
    pub(super) fn places(&self, source: AgentSource) -> Vec<AgentPlace> {
        let mut places = Vec::new();
        let mut add = |root: PathBuf, within: Option<&Path>, plugin: Option<&str>| {
            let within = within.map(Path::to_owned);
            let owner = plugin.unwrap_or(source.as_str()).to_owned();
            let place = ScanPlace { root, within, pick: FileChoice::Markdown, owner };
            places.push(AgentPlace { place, source, plugin: plugin.map(str::to_owned) });
        };
        match source {
            AgentSource::Policy => {
                if let Some(managed) = &self.managed_dir {
                    for name in PROJECT_DIRS.iter().rev() {
                        add(managed.join(name).join("agents"), None, None);
                    }
                }
            }
            AgentSource::Project if self.levels.project => {
                for folder in self.folders.chain() {
                    for name in PROJECT_DIRS.iter().rev() {
                        add(folder.path.join(name).join("agents"), Some(&folder.within), None);
                    }
                }
            }
            AgentSource::User if self.levels.user => {
                for directory in self.config_dirs.iter().rev() {
                    // People keep their own files elsewhere and link to them.
                    let home = self.folders.home.as_deref();
                    let within = home.filter(|home| directory.starts_with(home));
                    add(directory.join("agents"), Some(within.unwrap_or(directory)), None);
                }
            }
            AgentSource::Plugin => {
                for plugin in &self.plugins {
                    for path in &plugin.paths {
                        add(path.clone(), Some(&plugin.root), Some(&plugin.plugin));
                    }
                }
            }
            _ => {}
        }
        places
    }
}
