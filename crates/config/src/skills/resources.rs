//! The files that lie beside a skill, by name: what its text may send a reader to.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use super::definition::{SkillKind, SkillOrigin};

/// Most names that are told.
const MOST_NAMES: usize = 50;

/// Most files and folders that are looked at.
const MOST_ENTRIES: usize = 2_000;

/// Most folders in each other.
const DEEPEST: usize = 4;

/// The names of a skill's files, relative to its directory; those that are nearest come first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    pub names: Vec<String>,
    /// Set where there are more.
    pub is_cut: bool,
}

impl Resources {
    /// Looks at the directory of a skill. A command lies alone: what is beside it is not its own.
    pub(super) fn of(origin: &SkillOrigin) -> Self {
        match origin.kind {
            SkillKind::Skill => Self::look(origin.directory(), &origin.path),
            SkillKind::Command => Self::default(),
        }
    }

    fn look(directory: &Path, skill: &Path) -> Self {
        let mut resources = Self::default();
        let Ok(within) = directory.canonicalize() else { return resources };
        let mut folders = VecDeque::from([(PathBuf::new(), 0)]);
        let mut entries = 0;
        while let Some((folder, depth)) = folders.pop_front() {
            let Ok(listing) = fs::read_dir(directory.join(&folder)) else { continue };
            let mut paths: Vec<PathBuf> = Vec::new();
            for entry in listing.flatten() {
                entries += 1;
                if entries > MOST_ENTRIES {
                    resources.is_cut = true;
                    break;
                }
                paths.push(entry.path());
            }
            paths.sort();
            for path in paths.iter().filter(|path| *path != skill) {
                let Some(name) = shown_name(path) else { continue };
                let relative = folder.join(name);
                match ResourceKind::of(path, &within) {
                    ResourceKind::File if resources.names.len() == MOST_NAMES => {
                        resources.is_cut = true;
                    }
                    ResourceKind::File => resources.names.push(relative.display().to_string()),
                    ResourceKind::Folder if depth < DEEPEST => {
                        folders.push_back((relative, depth + 1));
                    }
                    ResourceKind::Folder => resources.is_cut = true,
                    ResourceKind::Other => {}
                }
            }
        }
        resources
    }
}

/// A name that can stand on a line by itself, of something that is not hidden.
fn shown_name(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?;
    (!name.starts_with('.') && !name.chars().any(char::is_control)).then_some(name)
}

enum ResourceKind {
    File,
    Folder,
    /// A link out of the directory or to a folder, or something that cannot be read.
    Other,
}

impl ResourceKind {
    fn of(path: &Path, within: &Path) -> Self {
        let Ok(metadata) = path.symlink_metadata() else { return Self::Other };
        if metadata.is_dir() {
            Self::Folder
        } else if metadata.is_file() || (metadata.is_symlink() && leads_to_file(path, within)) {
            Self::File
        } else {
            Self::Other
        }
    }
}

/// Checks that a link leads to a file in the same directory.
fn leads_to_file(link: &Path, within: &Path) -> bool {
    link.canonicalize().is_ok_and(|real| real.starts_with(within) && real.is_file())
}
