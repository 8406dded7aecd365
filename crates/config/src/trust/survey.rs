//! Everything in a folder that grants power, at any depth: what a person accepts who trusts it.

use std::fs;
use std::path::{Path, PathBuf};

use centurion_protocol::World;

use super::PowerItem;
use crate::paths::repo_root;
use crate::repository::git_programs;
use crate::settings::{Level, file_power};
use crate::{agents, files, mcp, plugins, skills};

/// The most directories that are looked into.
const MOST_DIRECTORIES: usize = 100_000;

/// Directories of other people's things, in which no session is started.
const PASSED_OVER: [&str; 2] = [".git", "node_modules"];

const DEFINITIONS: [&str; 2] = [".claude", ".centurion"];

/// The contents that were found in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// The top of the folder, of which all was looked at.
    pub root: PathBuf,
    pub items: Vec<PowerItem>,
    /// There were more directories than are looked into.
    pub is_cut: bool,
}

impl Survey {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, ..Self::default() }
    }

    /// Leaves out what links bring from outside of the folder.
    #[must_use]
    pub fn without_links_out(mut self) -> Self {
        self.items.retain(|item| !files::leads_out(&item.file, item.base()));
        self
    }

    /// Adds what a directory itself defines.
    fn look_at(&mut self, base: &Path, world: &dyn World) {
        for name in DEFINITIONS {
            let directory = base.join(name);
            for (level, file) in
                [(Level::Project, "settings.json"), (Level::Local, "settings.local.json")]
            {
                self.items.append(&mut file_power(level, &directory.join(file)));
            }
            self.items.append(&mut agents::directory_power(&directory, &self.root, world));
            self.items.append(&mut skills::directory_power(&directory, &self.root, world));
            self.items.append(&mut plugins::directory_power(&directory));
        }
        self.items.append(&mut mcp::file_power(&base.join(".mcp.json")));
    }
}

/// Looks through the folder that a directory is in: its checkout, or the directory itself. The home
/// directory's own definitions are the user's.
pub fn survey(directory: &Path, home: Option<&Path>, world: &dyn World) -> Survey {
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let root = repo_root(&directory).unwrap_or(directory);
    let mut survey = Survey::new(root.clone());
    let real_home = home.map(|home| home.canonicalize().unwrap_or_else(|_| home.to_owned()));
    survey.items.append(&mut git_programs(&root, real_home.as_deref()).items);
    let mut waiting = vec![root];
    let mut seen = 0;
    while let Some(directory) = waiting.pop() {
        seen += 1;
        if seen > MOST_DIRECTORIES {
            survey.is_cut = true;
            break;
        }
        if home != Some(directory.as_path()) {
            survey.look_at(&directory, world);
        }
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        let mut below: Vec<PathBuf> = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let is_passed = PASSED_OVER.iter().chain(&DEFINITIONS).any(|passed| name == *passed);
            if !is_passed && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                below.push(entry.path());
            }
        }
        below.sort();
        waiting.extend(below.into_iter().rev());
    }
    survey
}
