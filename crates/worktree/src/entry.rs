//! Finding the worktrees of a repository.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::{SHORT, read_text};
use crate::names::{for_shell, shown};
use crate::operation::Operation;
use crate::private;
use crate::record::{Kept, Record, Stage};
use crate::state;

/// State in which a worktree is found.
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
    /// A process died that merged it: the checkout that it was merged into may be between two commits.
    Merging { into: PathBuf },
    /// Its directory is gone.
    Gone,
    /// A person moved it by git: it is there.
    Moved { to: PathBuf },
    /// Its record cannot be read.
    Unreadable { reason: String },
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse { process } => write!(f, "in use (process {process})"),
            Self::Kept => f.write_str("kept"),
            Self::Left => f.write_str("left by a dead process"),
            Self::Paused { operation } => write!(f, "a {} is not finished", operation.as_str()),
            Self::Unfinished => f.write_str("half made"),
            Self::Merging { into } => write!(f, "its merge into {} was broken off", shown(into)),
            Self::Gone => f.write_str("its directory is gone"),
            Self::Moved { to } => write!(f, "moved to {}", shown(to)),
            Self::Unreadable { reason } => write!(f, "unreadable: {reason}"),
        }
    }
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

    /// Matches a name, a branch or an agent's id.
    pub fn is_meant(&self, name: &str) -> bool {
        let has =
            |record: &Record| record.branch == name || record.owner.agent.as_deref() == Some(name);
        self.name() == name || self.record.as_ref().is_some_and(has)
    }
}

/// A worktree as it is found.
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
    let merging = match kept.merge() {
        Ok(note) => note.map(|note| Standing::Merging { into: note.top }),
        Err(error) => Some(Standing::Unreadable { reason: error.to_string() }),
    };
    let is_out = state::is_out(&kept, &record);
    let is_there = record.path.is_dir() && !record.path.is_symlink();
    let begun = Operation::in_progress(&kept.private_repository()).filter(|_| is_out && is_there);
    let moved = moved(&record).filter(|_| !is_there);
    let standing = match (kept.holder(), merging, begun) {
        (Some(process), ..) => Standing::InUse { process },
        (None, ..) if record.stage != Stage::Ready => Standing::Unfinished,
        (None, Some(merging), _) => merging,
        (None, None, Some(operation)) => Standing::Paused { operation },
        (None, None, None) if is_out => Standing::Left,
        (None, None, None) if is_there => Standing::Kept,
        (None, None, None) => moved.map_or(Standing::Gone, |to| Standing::Moved { to }),
    };
    Entry { record: Some(record), standing, kept }
}

impl Standing {
    /// A dead process left it, and it is to be mended.
    pub fn is_left(&self) -> bool {
        matches!(self, Self::Left | Self::Unfinished | Self::Paused { .. } | Self::Merging { .. })
    }
}

/// Finds leftovers of dead processes, by the git directory that all worktrees of a repository share. Looks at files alone, and
/// at nothing where no agent worked apart.
pub fn left_in(common: &Path) -> Vec<Entry> {
    let all = Kept::all(common).unwrap_or_default().into_iter().map(entry);
    // A paused operation waits for a person, who was told.
    let is_to_mend = |entry: &Entry| {
        entry.standing.is_left() && !matches!(entry.standing, Standing::Paused { .. })
    };
    all.filter(is_to_mend).collect()
}

/// The place of a worktree that was moved.
pub(crate) fn moved(record: &Record) -> Option<PathBuf> {
    let text = read_text(&record.admin.join("gitdir"), SHORT).ok()?;
    let file = record.admin.join(text.trim_end_matches('\n')).canonicalize().ok()?;
    let to = file.parent().filter(|_| file.ends_with(".git"))?;
    let leads_back = to.join(private::pointed(to)?).canonicalize().ok()?;
    let is_it = leads_back == record.admin.canonicalize().ok()? && to != record.path;
    is_it.then(|| to.to_owned())
}

/// The note about a worktree that was moved, with the way back.
pub(crate) fn explain_moved(record: &Record, to: &Path) -> String {
    let home = record.path.ancestors().nth(3).unwrap_or(&record.path);
    let (home, from, to) = (for_shell(home), for_shell(to), for_shell(&record.path));
    format!("it was moved to {from}: `git -C {home} worktree move {from} {to}` brings it back")
}
