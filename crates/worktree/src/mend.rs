//! Ending what processes left that died.

use std::path::Path;

use crate::create::CreateError;
use crate::entry::Standing;
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
            let Some(mut record) = entry.record.clone() else {
                if entry.standing == Standing::Unfinished
                    && matches!(entry.kept.lease(), Ok(Some(_)))
                {
                    // Only the name was taken.
                    entry.kept.free();
                }
                continue;
            };
            if !matches!(entry.standing, Standing::Left | Standing::Unfinished) {
                continue;
            }
            // Another process may be faster.
            let Ok(Some(lease)) = entry.kept.lease() else { continue };
            let settled = if entry.standing == Standing::Unfinished {
                let removed = remove::remove(&self.git, &from.common, &entry.kept, &record).await;
                let Some(trash) = removed else { continue };
                Ok(Settled::Removed(trash))
            } else {
                let caller = record.caller.clone();
                match self.end(&from.common, &entry.kept, &mut record, Some(&caller)).await {
                    Ok(finished) => {
                        let (common, kept) = (&from.common, &entry.kept);
                        self.remove_if(finished, common, kept, record, Some(&caller)).await
                    }
                    Err(error) => Err(error),
                }
            };
            drop(lease);
            mended.push((entry.name(), settled));
        }
        Ok(mended)
    }
}
