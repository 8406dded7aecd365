//! The note on disk of a merge that is moving a checkout.
//!
//! Git changes files, then its index, then the branch. A process that dies in between leaves a checkout that is neither as it
//! was nor as it was to be: the note says which two commits it is between.

use std::io;
use std::path::{Component, PathBuf};

use centurion_files::private;
use serde::{Deserialize, Serialize};

use crate::files::{self, remove_if_there};
use crate::record::{Kept, is_commit};

const NOTE: &str = "merging.json";

/// Larger is no note.
const LARGEST: u64 = 64 * 1024 * 1024;

/// A merge that has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MergeNote {
    /// The checkout that is moved.
    pub(crate) top: PathBuf,
    /// The commit that it was at, and the one that it is to be at.
    pub(crate) from: String,
    pub(crate) to: String,
    /// The files that differ between the two and that were not as in `from` before it began: whatever becomes of these is not
    /// ours. Bytes, since names need not be text.
    #[serde(default)]
    pub(crate) set_aside: Vec<Vec<u8>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rest: Option<RestNote>,
}

/// The commit of what was not committed in the worktree, which its own branch is to be at in the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RestNote {
    /// The commit that it is built on.
    pub(crate) tip: String,
    pub(crate) commit: String,
    /// The tree that was staged meanwhile.
    pub(crate) staged: String,
}

impl Kept {
    pub(crate) fn write_merge(&self, note: &MergeNote) -> io::Result<()> {
        private::replace(&self.path().join(NOTE), &serde_json::to_vec(note)?)
    }

    /// The merge that was begun and not ended.
    pub(crate) fn merge(&self) -> io::Result<Option<MergeNote>> {
        let path = self.path().join(NOTE);
        if path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(None);
        }
        let note: MergeNote = serde_json::from_slice(&files::read(&path, LARGEST)?)?;
        // These become words of git's command lines. What is written in a git directory may be a stranger's.
        let rest = note.rest.iter().flat_map(|rest| [&rest.tip, &rest.commit, &rest.staged]);
        let is_plain = [&note.from, &note.to].into_iter().chain(rest).all(|it| is_commit(it))
            && note.top.is_absolute()
            && !note.top.components().any(|it| it == Component::ParentDir);
        if is_plain {
            Ok(Some(note))
        } else {
            Err(io::Error::other("its merge does not say what it should"))
        }
    }

    pub(crate) fn forget_merge(&self) -> io::Result<()> {
        remove_if_there(&self.path().join(NOTE))
    }
}
