//! Operations of git that were begun in a worktree and not ended.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::branch::commit_at;
use crate::git::{Git, GitError};
use crate::names::for_shell;
use crate::ordinary::has_reftable;
use crate::record::Record;

/// Something of git's that was begun and not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    Merge,
    Rebase,
    /// Patches that `git am` applies.
    Am,
    CherryPick,
    Revert,
    Bisect,
    /// Files with conflicts, of which git does not say where they come from.
    Conflict,
}

impl Operation {
    const SIGNS: [(&str, Self); 8] = [
        ("rebase-apply/applying", Self::Am),
        ("rebase-merge", Self::Rebase),
        ("rebase-apply", Self::Rebase),
        ("MERGE_HEAD", Self::Merge),
        ("CHERRY_PICK_HEAD", Self::CherryPick),
        ("REVERT_HEAD", Self::Revert),
        ("sequencer", Self::CherryPick),
        ("BISECT_LOG", Self::Bisect),
    ];

    /// The operation in progress in a git directory.
    pub(crate) fn in_progress(git_dir: &Path) -> Option<Self> {
        let mut signs = Self::SIGNS.iter();
        signs.find(|(sign, _)| git_dir.join(sign).exists()).map(|(_, operation)| *operation)
    }

    /// The operation in progress in a worktree that is home.
    pub(crate) async fn at_home(git: &Git, record: &Record) -> Result<Option<Self>, GitError> {
        let found = Self::in_progress(&record.admin);
        if found.is_some() || !has_reftable(&record.admin) {
            return Ok(found);
        }
        for (sign, operation) in Self::SIGNS {
            if matches!(operation, Self::CherryPick | Self::Revert)
                && commit_at(git, &record.admin, sign).await?.is_some()
            {
                return Ok(Some(operation));
            }
        }
        Ok(None)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Rebase => "rebase",
            Self::Am => "am",
            Self::CherryPick => "cherry-pick",
            Self::Revert => "revert",
            Self::Bisect => "bisect",
            Self::Conflict => "conflict",
        }
    }

    /// The command that gives it up, for a shell.
    pub fn abort(self, record: &Record) -> String {
        let words = match self {
            // Without a name it would go to a branch that only the agent's own repository may have.
            Self::Bisect => format!("bisect reset {}", record.branch),
            Self::Conflict => "reset".to_owned(),
            other => format!("{} --abort", other.as_str()),
        };
        format!("git -C {} {words}", for_shell(&record.path))
    }

    /// Explains the obstacle to merging or removing a worktree, with the way out.
    pub(crate) fn explain(self, record: &Record) -> String {
        let (name, abort) = (self.as_str(), self.abort(record));
        match self {
            Self::Conflict => format!(
                "conflicts are not solved in it: solve and `git add` them there, or forget what is staged with `{abort}`"
            ),
            _ => format!(
                "a {name} is not finished in it: finish it there, or give it up with `{abort}`"
            ),
        }
    }

    /// The same where only the agent's own repository knows of the operation.
    pub(crate) fn explain_out(self, record: &Record) -> String {
        format!("{}; then run `centurion worktrees clean`", self.explain(record))
    }
}
