//! The files of settings, in their order.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::document;
use super::edit::SettingsFile;
use super::level::{Level, LevelChoice};
use super::parent::{PARENT, ParentSettings};
use crate::Problem;
use crate::files::{self, FileError, LARGEST_SETTINGS, is_absence};

/// The directories of definitions in a project; the later one wins.
const PROJECT_DIRS: [&str; 2] = [".claude", ".centurion"];

/// The name that stands for a file where `--settings` held the JSON itself.
pub(super) const FLAG: &str = "--settings";

/// The places in which settings are looked for. All paths are absolute.
#[derive(Clone, Default)]
pub struct SettingsSources {
    /// The directory that the administrator of the machine manages.
    pub managed_dir: Option<PathBuf>,
    pub flag: Option<FlagSettings>,
    /// Settings that the program that started this one lays down. They count where the administrator manages nothing.
    pub parent: Option<ParentSettings>,
    /// The directory in which the program was started.
    pub start_dir: PathBuf,
    /// The directory whose files are the project's, if that is another one. What they say of places is meant of
    /// `start_dir`.
    pub project_dir: Option<PathBuf>,
    /// The checkout around it, as [`main_checkout`](crate::paths::main_checkout) finds it.
    pub checkout: Option<PathBuf>,
    pub home: Option<PathBuf>,
    /// The user's directories, such as `~/.claude`; the later one wins.
    pub config_dirs: Vec<PathBuf>,
    pub levels: LevelChoice,
    pub additions: Additions,
}

/// The sources that may add something to the program: hooks, agents, skills, plugins, servers, styles, status lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Additions {
    #[default]
    All,
    /// The administrator of the machine and flags alone. Other settings count without what they add.
    Named,
}

impl fmt::Debug for SettingsSources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SettingsSources")
            .field("start_dir", &self.start_dir)
            .finish_non_exhaustive()
    }
}

/// A value of `--settings`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlagSettings {
    File(PathBuf),
    Json(String),
}

#[derive(Debug, Error)]
pub enum FlagError {
    #[error("--settings: there is no file `{}`", .0.display())]
    NoFile(PathBuf),
    #[error("--settings names the file `{}`: change that one", .0.display())]
    IsFile(PathBuf),
    #[error("--settings: {place}{} {error}", line_of(.error))]
    Unusable { place: String, error: FileError },
    #[error("{flag}:{} {error}", line_of(.error))]
    Unreadable { flag: &'static str, error: FileError },
}

fn line_of(error: &FileError) -> String {
    error.line().map(|line| format!(" line {line}")).unwrap_or_default()
}

impl FlagSettings {
    /// Takes the argument of `--settings`: JSON if it begins with a brace, or else a file. What cannot
    /// be read is refused, for it was asked for by name.
    pub fn parse(argument: &str, cwd: &Path) -> Result<Self, FlagError> {
        let unusable = |place: &str, error| FlagError::Unusable { place: place.to_owned(), error };
        if argument.trim_start().starts_with('{') {
            if argument.len() as u64 > LARGEST_SETTINGS {
                let error = FileError::TooLarge { limit: LARGEST_SETTINGS };
                return Err(unusable("the JSON", error));
            }
            document::parse(argument).map_err(|error| unusable("the JSON", error))?;
            return Ok(Self::Json(argument.to_owned()));
        }
        let path = cwd.join(argument);
        let name = path.display().to_string();
        let (_, text) = files::read(&path, LARGEST_SETTINGS);
        match text.and_then(|text| text.as_deref().map(document::parse).transpose()) {
            Ok(Some(_)) => Ok(Self::File(path)),
            Ok(None) => Err(FlagError::NoFile(path)),
            Err(error) => Err(unusable(&name, error)),
        }
    }
}

/// One place to look at.
#[derive(Debug)]
pub(super) struct SettingsCandidate {
    pub(super) level: Level,
    pub(super) path: PathBuf,
    /// The JSON itself, where no file holds it.
    pub(super) text: Option<String>,
    /// The directory that `/path` in a rule is relative to.
    pub(super) root: PathBuf,
}

impl SettingsSources {
    /// The levels whose directories are searched for definitions.
    pub fn definition_levels(&self) -> LevelChoice {
        match self.additions {
            Additions::All => self.levels,
            Additions::Named => LevelChoice::NONE,
        }
    }

    /// All places, the strongest first. `problems` gets what cannot be looked into.
    pub(super) fn candidates(&self, problems: &mut Vec<Problem>) -> Vec<SettingsCandidate> {
        let mut places = Vec::new();
        self.managed(&mut places, problems);
        self.parent(&mut places);
        self.flag(&mut places);
        let start = &self.start_dir;
        let mut add = |level, path: PathBuf, root: &Path| {
            if self.levels.wants(level) {
                places.push(SettingsCandidate { level, path, text: None, root: root.to_owned() });
            }
        };
        for directory in self.local_dirs() {
            for name in PROJECT_DIRS.iter().rev() {
                add(Level::Local, directory.join(name).join("settings.local.json"), start);
            }
        }
        // In the home directory these are the user's own, or were moved elsewhere and are not wanted.
        let project = self.project_dir();
        if self.home.as_deref() != Some(project) {
            for name in PROJECT_DIRS.iter().rev() {
                add(Level::Project, project.join(name).join("settings.json"), start);
            }
        }
        for directory in self.config_dirs.iter().rev() {
            add(Level::User, directory.join("settings.json"), directory);
        }
        places
    }

    /// The directory whose files are added to the managed ones.
    pub(super) fn drop_in_dir(&self) -> Option<PathBuf> {
        self.managed_dir.as_ref().map(|directory| directory.join("managed-settings.d"))
    }

    fn managed(&self, places: &mut Vec<SettingsCandidate>, problems: &mut Vec<Problem>) {
        let Some(directory) = &self.managed_dir else { return };
        let mut paths = vec![directory.join("managed-settings.json")];
        if let Some(directory) = self.drop_in_dir() {
            match drop_ins(&directory) {
                Ok(mut added) => paths.append(&mut added),
                Err(error) if is_absence(&error) => {}
                Err(error) => {
                    let message = format!("cannot be read: {error}");
                    problems.push(Problem { path: directory, line: None, message });
                }
            }
        }
        // A later file is laid over the earlier ones.
        places.extend(paths.into_iter().rev().map(|path| SettingsCandidate {
            level: Level::Managed,
            path,
            text: None,
            root: directory.clone(),
        }));
    }

    fn parent(&self, places: &mut Vec<SettingsCandidate>) {
        if let Some(parent) = self.parent.as_ref().filter(|_| !self.is_managed()) {
            places.push(SettingsCandidate {
                level: Level::Managed,
                path: PathBuf::from(PARENT),
                text: Some(parent.text.clone()),
                root: self.start_dir.clone(),
            });
        }
    }

    /// Tells whether the administrator manages something: then the limits of a parent do not count.
    pub fn is_managed(&self) -> bool {
        let mut places = Vec::new();
        self.managed(&mut places, &mut Vec::new());
        places.iter().any(|managed| managed.path.symlink_metadata().is_ok())
    }

    fn flag(&self, places: &mut Vec<SettingsCandidate>) {
        let (path, text) = match &self.flag {
            None => return,
            Some(FlagSettings::File(path)) => (path.clone(), None),
            Some(FlagSettings::Json(text)) => (PathBuf::from(FLAG), Some(text.clone())),
        };
        let beside = path.parent().filter(|_| text.is_none());
        let root = beside.unwrap_or(&self.start_dir).to_owned();
        places.push(SettingsCandidate { level: Level::Flag, path, text, root });
    }

    /// The directories of local settings, the stronger one first: the checkout, so that all of its worktrees and
    /// subdirectories share them, and the project's.
    fn local_dirs(&self) -> Vec<&Path> {
        let project = self.project_dir();
        let mut directories: Vec<&Path> = self.local_root().into_iter().collect();
        if directories.first() != Some(&project) {
            directories.push(project);
        }
        directories
    }

    /// The directory whose files are the project's.
    fn project_dir(&self) -> &Path {
        self.project_dir.as_deref().unwrap_or(&self.start_dir)
    }

    /// The file that an answer for this level is written to; `None` where no answer is stored.
    pub fn file_for(&self, level: Level) -> Option<SettingsFile> {
        let [shared, _] = PROJECT_DIRS;
        match level {
            Level::Managed | Level::Flag => None,
            Level::Local => {
                let directory = self.local_root().unwrap_or(self.project_dir()).join(shared);
                Some(SettingsFile::in_project(directory.join("settings.local.json")))
            }
            Level::Project if self.home.as_deref() == Some(self.project_dir()) => None,
            Level::Project => {
                let directory = self.project_dir().join(shared);
                Some(SettingsFile::in_project(directory.join("settings.json")))
            }
            Level::User => {
                // Ours, so that another program's files stay as they are.
                let directory = self.config_dirs.last()?;
                Some(SettingsFile::of_user(directory.join("settings.json")))
            }
        }
    }

    fn local_root(&self) -> Option<&Path> {
        let checkout = self.checkout.as_deref()?;
        let home = self.home.as_deref();
        (home != Some(checkout)
            && (checkout == self.project_dir() || is_owned_like(checkout, home?)))
        .then_some(checkout)
    }
}

/// Whether two directories have one owner. Another user's checkout says nothing for this user.
fn is_owned_like(directory: &Path, home: &Path) -> bool {
    let owner = |path: &Path| fs::metadata(path).map(|metadata| metadata.uid()).ok();
    owner(directory).is_some_and(|uid| owner(home) == Some(uid))
}

/// The files of a directory in the order of their names.
fn drop_ins(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.retain(|path| is_drop_in(path));
    paths.sort();
    Ok(paths)
}

fn is_drop_in(path: &Path) -> bool {
    let is_hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
    !is_hidden && path.extension().is_some_and(|extension| extension == "json")
}
