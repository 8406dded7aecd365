//! How the worktrees of a repository are found.

use std::io;

use crate::names::shown;
use crate::operation::Operation;
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
    /// Something of git's was begun in it and not ended, which only its own repository knows.
    Paused { operation: Operation },
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
        shown(self.kept.path().file_name().unwrap_or_default())
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
    let is_out = state::is_out(&kept, &record);
    let is_there = record.path.is_dir();
    let begun = Operation::in_progress(&kept.private_repository()).filter(|_| is_out && is_there);
    let standing = match (kept.holder(), begun) {
        (Some(process), _) => Standing::InUse { process },
        (None, _) if record.stage != Stage::Ready => Standing::Unfinished,
        (None, Some(operation)) => Standing::Paused { operation },
        (None, None) if is_out => Standing::Left,
        (None, None) if is_there => Standing::Kept,
        (None, None) => Standing::Gone,
    };
    Entry { record: Some(record), standing, kept }
}
