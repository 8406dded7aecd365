//! How the worktrees of a repository are found.

use std::io;

use crate::record::{Kept, Record, Stage};
use crate::state;

/// How a worktree is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A process uses it.
    InUse { process: String },
    /// It was kept, and is an ordinary worktree.
    Kept,
    /// A process died that used it: its history is not in the repository yet.
    Left,
    /// A process died that made or removed it: nothing was done in it.
    Unfinished,
    /// Its directory is gone.
    Gone,
    /// What is written about it cannot be read.
    Unreadable { reason: String },
}

/// A worktree of a repository.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Nothing if it cannot be read.
    pub record: Option<Record>,
    pub standing: Standing,
    pub(crate) kept: Kept,
}

impl Entry {
    /// Its name.
    pub fn name(&self) -> String {
        self.kept.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// What is found of a worktree.
pub(crate) fn entry(kept: Kept) -> Entry {
    let record = match kept.record() {
        Ok(record) => record,
        Err(error) => {
            let standing = match kept.holder() {
                Some(process) => Standing::InUse { process },
                None if error.kind() == io::ErrorKind::NotFound => Standing::Unfinished,
                None => Standing::Unreadable { reason: error.to_string() },
            };
            return Entry { record: None, standing, kept };
        }
    };
    let is_home = !state::is_out(&kept, &record);
    let standing = match kept.holder() {
        Some(process) => Standing::InUse { process },
        None if record.stage != Stage::Ready => Standing::Unfinished,
        None if !record.path.is_dir() => Standing::Gone,
        None if is_home => Standing::Kept,
        None => Standing::Left,
    };
    Entry { record: Some(record), standing, kept }
}
