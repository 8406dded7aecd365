//! Plugins that lie among skills: a folder with a manifest in the skills of the user or of the project is the plugin
//! `<name>@skills-dir`, and no skill.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use centurion_files::{Directory, Kind, Listed};

use super::looks::Looks;
use super::manifest::{PLACES, PLUGIN_FOLDER};
use crate::Problem;
use crate::agents::{PROJECT_DIRS, ProjectFolders};
use crate::paths::{Dirs, repo_root};
use crate::settings::Settings;
use crate::skills::MOST_LISTED;

/// The owner of a directory of skills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeper {
    User,
    Project,
}

/// A directory of skills in which plugins may lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SkillsDir {
    path: PathBuf,
    /// The directory that links must not lead out of.
    within: PathBuf,
    pub(super) keeper: Keeper,
}

/// The directories of skills that may hold plugins, the strongest first: a repository takes no name from its user.
pub(super) fn skills_dirs(dirs: &Dirs, settings: &Settings, project_dir: &Path) -> Vec<SkillsDir> {
    let sources = settings.sources();
    let (levels, home) = (sources.definition_levels(), sources.home.clone());
    let mut found = Vec::new();
    if levels.user {
        for directory in dirs.config_dirs().iter().rev() {
            let within = home.as_ref().filter(|home| directory.starts_with(home));
            let within = within.unwrap_or(directory).clone();
            found.push(SkillsDir { path: directory.join("skills"), within, keeper: Keeper::User });
        }
    }
    if levels.project {
        let cwd = project_dir.to_owned();
        let repository = repo_root(&cwd);
        let folders = ProjectFolders { cwd, repository, home, ..ProjectFolders::default() };
        for folder in folders.chain() {
            for name in PROJECT_DIRS.iter().rev() {
                let path = folder.path.join(name).join("skills");
                let within = folder.within.clone();
                found.push(SkillsDir { path, within, keeper: Keeper::Project });
            }
        }
    }
    found
}

impl SkillsDir {
    /// The folders in it that are plugins. A directory with more entries than skills are listed of is not searched: to
    /// list thousands at every start costs more than all else that is done about skills.
    pub(super) fn plugins(&self, looks: &mut Looks, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
        // Each folder in a directory is a link to it, where the file system counts them: thousands need not be listed.
        let folders = fs::metadata(&self.path).map_or(0, |it| it.nlink()).saturating_sub(2);
        if folders > MOST_LISTED as u64 {
            tracing::debug!(directory = %self.path.display(), "too large to be searched for plugins");
            return Vec::new();
        }
        let Ok(directory) = Directory::open(&self.path) else { return Vec::new() };
        let mut entries = directory.list(MOST_LISTED + 1).unwrap_or_default();
        // A manifest may come at any time into any folder: what is not there now is looked for again.
        looks.doubt(!entries.is_empty());
        if entries.len() > MOST_LISTED {
            tracing::debug!(directory = %self.path.display(), "too large to be searched for plugins");
            return Vec::new();
        }
        // One buffer for all: most of hundreds have none.
        let mut folder = PathBuf::new();
        let mut has_manifest = |entry: &Listed| {
            folder.as_mut_os_string().clear();
            folder.push(&entry.name);
            folder.push(PLUGIN_FOLDER);
            matches!(entry.kind, Kind::Directory | Kind::Link)
                && directory.stat(folder.as_os_str()).is_ok()
        };
        entries.retain(|entry| {
            has_manifest(entry) && manifest_of(&self.path.join(&entry.name)).exists()
        });
        if entries.is_empty() {
            return Vec::new();
        }
        let (Ok(real), Ok(within)) = (self.path.canonicalize(), self.within.canonicalize()) else {
            return Vec::new();
        };
        if !real.starts_with(&within) {
            return Vec::new();
        }
        entries.retain(|it| !it.name.as_encoded_bytes().starts_with(b"."));
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let mut plugins = Vec::new();
        for entry in entries {
            let root = self.path.join(&entry.name);
            let leads_out =
                |root: &Path| !root.canonicalize().is_ok_and(|it| it.starts_with(&within));
            if entry.kind == Kind::Link && leads_out(&root) {
                let message = "is a link that leads elsewhere, and is not followed".to_owned();
                problems.push(Problem { path: root, line: None, message });
                continue;
            }
            plugins.push(root);
        }
        plugins
    }
}

/// The path of the manifest that makes a folder among skills a plugin.
pub(crate) fn manifest_of(folder: &Path) -> PathBuf {
    let [place, _] = PLACES;
    folder.join(place)
}
