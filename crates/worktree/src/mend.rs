//! Ending what processes left that died.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::checkout::Checkout;
use crate::create::CreateError;
use crate::entry::{Entry, Standing};
use crate::git::GitError;
use crate::merge::MendedMerge;
use crate::names::shown;
use crate::record::Record;
use crate::remove::{self, Removal, Trash};
use crate::report::Report;
use crate::worktrees::{SettleError, Settled, Worktrees};

/// Result of mending the leftover of a dead process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mended {
    /// Nothing was done in the worktree.
    Removed(Trash),
    /// The worktree is an ordinary one now.
    Kept(Box<Report>),
    /// Its merge was finished or taken back.
    Merge(MendedMerge),
}

impl From<Settled> for Mended {
    fn from(settled: Settled) -> Self {
        match settled {
            Settled::Removed(trash) => Self::Removed(trash),
            Settled::Kept(report) => Self::Kept(report),
        }
    }
}

/// The failure to mend the leftover of a dead process.
#[derive(Debug, Error)]
pub enum MendError {
    #[error(transparent)]
    Settle(#[from] SettleError),
    #[error("nothing was done in it, and not all of it could be removed: {0}")]
    Remove(io::Error),
    #[error("its merge into {} was broken off, and is as it was left: {source}", shown(.into))]
    Merge { into: PathBuf, source: GitError },
}

impl Worktrees {
    /// Ends what dead processes left: history is brought home, merges are finished or taken back, what was half made is
    /// removed. What became of each.
    pub async fn mend(
        &self,
        directory: &Path,
    ) -> Result<Vec<(String, Result<Mended, MendError>)>, CreateError> {
        let from = self.checkout(directory).await?;
        let mut mended = Vec::new();
        for entry in self.list(directory).await? {
            let Some(record) = entry.record.clone() else {
                if entry.standing == Standing::Unfinished
                    && matches!(entry.kept.lease(), Ok(Some(_)))
                {
                    // Only the name was taken.
                    entry.kept.free();
                }
                continue;
            };
            if entry.standing.is_left()
                && let Some(ended) = self.mend_one(&from, &entry, record).await
            {
                mended.push((entry.name(), ended));
            }
        }
        Ok(mended)
    }

    /// Nothing if another process is faster.
    async fn mend_one(
        &self,
        from: &Checkout,
        entry: &Entry,
        mut record: Record,
    ) -> Option<Result<Mended, MendError>> {
        let refused = SettleError::of(&record);
        let _lease = match entry.kept.lease() {
            Ok(lease) => lease?,
            Err(error) => return Some(Err(refused(error.into()).into())),
        };
        let (common, kept) = (&from.common, &entry.kept);
        if let Standing::Merging { into } = &entry.standing {
            return match self.mend_merge(common, entry, &record).await {
                Ok(mended) => Some(Ok(Mended::Merge(mended?))),
                Err(source) => Some(Err(MendError::Merge { into: into.clone(), source })),
            };
        }
        if entry.standing == Standing::Unfinished {
            let removed = remove::remove(&self.git, common, kept, &record).await;
            return Some(match removed.and_then(Removal::whole) {
                Ok(trash) => Ok(Mended::Removed(trash)),
                Err(source) => Err(MendError::Remove(source)),
            });
        }
        let caller = record.caller.clone();
        let settled = match self.end(common, kept, &mut record, Some(&caller)).await {
            Ok(finished) => self.remove_if(finished, common, kept, record, Some(&caller)).await,
            Err(error) => Err(error),
        };
        Some(settled.map(Mended::from).map_err(MendError::from))
    }
}
