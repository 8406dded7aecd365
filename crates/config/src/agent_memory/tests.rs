//! Memories on scratch machines: where they are, what agents are told of them, and what hostile
//! repositories cannot do with them.

mod loading;
mod main_agent;
mod notes;
mod places;
mod snapshots;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::*;
use crate::settings::SettingsSources;

/// A scratch machine: a home, and a repository in `repo`.
/// The places of the memories on the machine of these tests.
struct Places {
    places: MemoryPlaces,
}

type Machine = crate::testing::Machine<Places>;

impl Machine {
    fn new() -> Self {
        Self::with(|path| {
            let places = MemoryPlaces {
                state_dir: path.join("home/.centurion"),
                other_dirs: vec![path.join("home/.claude")],
                project_root: path.join("repo"),
                chosen_dir: None,
                home: None,
                is_repository: true,
                auto_memory: true,
                snapshots: true,
            };
            fs::create_dir_all(path.join("repo/.git")).unwrap();
            fs::create_dir_all(path.join("home")).unwrap();
            Places { places }
        })
    }

    fn mode(&self, relative: &str) -> u32 {
        fs::metadata(self.path(relative)).unwrap().permissions().mode() & 0o777
    }

    /// Everything below a directory, hidden or not.
    fn files(&self, relative: &str) -> Vec<String> {
        let base = self.path(relative);
        let mut names = Vec::new();
        let mut folders = vec![base.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.symlink_metadata().unwrap().is_dir() {
                    folders.push(path);
                } else {
                    names.push(path.strip_prefix(&base).unwrap().display().to_string());
                }
            }
        }
        names.sort();
        names
    }

    fn memory(&self, scope: MemoryScope) -> AgentMemory {
        AgentMemory::locate(scope, "scout", &self.places).unwrap()
    }

    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(self.path("")).unwrap().display().to_string()
    }
}
