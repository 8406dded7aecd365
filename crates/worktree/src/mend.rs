//! Ending what processes left that died.

use std::path::Path;

use crate::checkout::Checkout;
use crate::create::CreateError;
use crate::entry::{Entry, Standing};
use crate::record::Record;
use crate::remove;
use crate::worktrees::{SettleError, Settled, Worktrees};

impl Worktrees {
    /// Ends what dead processes left: history is brought home, what was half made is removed. What became of each.
    pub async fn mend(
        &self,
        directory: &Path,
    ) -> Result<Vec<(String, Result<Settled, SettleError>)>, CreateError> {
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
            let is_left = matches!(
                entry.standing,
                Standing::Left | Standing::Unfinished | Standing::Paused { .. }
            );
            if is_left && let Some(settled) = self.mend_one(&from, &entry, record).await {
                mended.push((entry.name(), settled));
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
    ) -> Option<Result<Settled, SettleError>> {
        let refused = SettleError::of(&record);
        let _lease = match entry.kept.lease() {
            Ok(lease) => lease?,
            Err(error) => return Some(Err(refused(error.into()))),
        };
        let (common, kept) = (&from.common, &entry.kept);
        if entry.standing == Standing::Unfinished {
            let removed = remove::remove(&self.git, common, kept, &record).await;
            return Some(removed.map(Settled::Removed).map_err(|error| refused(error.into())));
        }
        let caller = record.caller.clone();
        let ended = self.end(common, kept, &mut record, Some(&caller)).await;
        Some(match ended {
            Ok(finished) => self.remove_if(finished, common, kept, record, Some(&caller)).await,
            Err(error) => Err(error),
        })
    }
}
