//! Locks of a repository: what one process of ours does at a time, whichever worktree it is about.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// Steps that one process at a time takes in a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exclusive {
    /// Having git note a worktree: git itself looks at the worktrees that are being made.
    Adding,
    /// Moving a checkout to what was merged into it, or back.
    Merging,
}

impl Exclusive {
    /// The file that is locked.
    pub(crate) fn path(self, common: &Path) -> PathBuf {
        common.join(match self {
            Self::Adding => "centurion/lock",
            Self::Merging => "centurion/merge.lock",
        })
    }

    /// Waits until no other process does it.
    pub(crate) async fn wait(self, common: &Path) -> io::Result<HeldLock> {
        let path = self.path(common);
        // A pipe would be waited for.
        if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(io::Error::other("it is no file: remove it"));
        }
        let file = File::options().create(true).append(true).open(&path)?;
        let wait = move || flock(&file, FlockOperation::LockExclusive).map(|()| file);
        let waited = tokio::task::spawn_blocking(wait).await.map_err(io::Error::other)?;
        Ok(HeldLock { _file: waited? })
    }
}

/// No other process does it as long as this is held, which a process cannot do beyond its end.
#[derive(Debug)]
pub(crate) struct HeldLock {
    _file: File,
}
