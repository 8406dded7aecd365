//! Bringing the work of a worktree into the caller's checkout.
//!
//! The commits are made beside all checkouts. Then the caller's checkout is moved to the last of them by a fast-forward,
//! which git does as a whole or not at all, and which leaves alone whatever was changed there in other files.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::checkout::{Checkout, CheckoutError};
use crate::git::{At, Git, GitError};
use crate::report::{distance, try_merge};
use crate::snapshot::{left_out, ours, put_paths};
use crate::worktrees::{Entry, Standing, Worktrees};
use crate::{Record, state};

/// How the commits are brought over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// A merge; a fast-forward where that is one.
    Merge,
    /// One commit with all changes.
    Squash,
    /// Each commit again, on top of the caller's.
    Rebase,
    /// The same with some commits only.
    CherryPick(Vec<String>),
}

/// What a merge did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The commit that the caller's checkout was at, and is at now.
    pub from: String,
    pub to: String,
    /// How many commits were made or brought over.
    pub commits: u64,
}

/// Why nothing was merged. Everything is as it was.
#[derive(Debug, Error)]
pub enum MergeError {
    #[error("there is no worktree `{0}`")]
    Unknown(String),
    #[error("process {0} uses the worktree: wait until its agent has ended")]
    InUse(String),
    #[error("the worktree is not in order: `centurion worktrees clean` mends it")]
    Left,
    #[error("a {0} is not finished in the worktree: finish or abort it there first")]
    Operation(&'static str),
    #[error("conflicts in {}: nothing was changed", shown(files))]
    Conflicts { files: Vec<PathBuf>, commit: Option<String> },
    #[error("there is nothing to merge: the branch has no commit that is not in {0} already")]
    Nothing(String),
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    #[error(transparent)]
    Git(#[from] GitError),
}

fn shown(files: &[PathBuf]) -> String {
    let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    names.join(", ")
}

impl Worktrees {
    /// Merges what was done in a worktree into the checkout around a directory. What is not committed there is
    /// committed on its branch first, with this message.
    pub async fn merge(
        &self,
        directory: &Path,
        entry: &Entry,
        how: &How,
        message: &str,
    ) -> Result<Merged, MergeError> {
        let record = match (&entry.record, &entry.standing) {
            (_, Standing::InUse { process }) => return Err(MergeError::InUse(process.clone())),
            (Some(record), Standing::Kept | Standing::Gone) => record,
            _ => return Err(MergeError::Left),
        };
        let Ok(Some(lease)) = entry.kept.lease() else {
            return Err(MergeError::InUse(entry.kept.holder().unwrap_or_default()));
        };
        let into = self.checkout(directory).await?;
        let git = &self.git.tamed(&into.git_dir).await?;
        if entry.standing == Standing::Kept {
            if let Some(operation) = state::Operation::in_progress(&record.admin) {
                return Err(MergeError::Operation(operation.as_str()));
            }
            commit_rest(git, record, message).await?;
        }
        let name = format!("refs/heads/{}^{{commit}}", record.branch);
        let tip = git.run(At::git_dir(&into.common), ["rev-parse", "--verify", &name]).await?;
        let tip = tip.trim();
        let (ahead, behind) = distance(git, &into.git_dir, (&into.head, tip)).await?;
        let to = match how {
            _ if ahead == 0 => {
                let name = into.branch.clone().unwrap_or_else(|| into.head.clone());
                return Err(MergeError::Nothing(name));
            }
            How::Merge if behind == 0 => tip.to_owned(),
            How::Merge => merge_commit(git, &into, tip, message, &[&into.head, tip]).await?,
            How::Squash => merge_commit(git, &into, tip, message, &[&into.head]).await?,
            How::Rebase => {
                let range = format!("{}..{tip}", into.head);
                let args = ["rev-list", "--reverse", "--no-merges", "--topo-order", &range];
                let listed = git.run(At::git_dir(&into.git_dir), args).await?;
                again(git, &into, listed.lines()).await?
            }
            How::CherryPick(commits) => {
                again(git, &into, commits.iter().map(String::as_str)).await?
            }
        };
        let args = ["merge", "--ff-only", "--quiet", &to];
        git.run(At::directory(&into.top), args).await?;
        drop(lease);
        let (commits, _) = distance(git, &into.git_dir, (&into.head, &to)).await?;
        Ok(Merged { from: into.head, to, commits })
    }
}

/// Commits on a worktree's branch what is not committed there.
async fn commit_rest(git: &Git, record: &Record, message: &str) -> Result<(), GitError> {
    let at = || At::directory(&record.path);
    let mut add: Vec<String> = ["add", "--all", "--", "."].map(str::to_owned).into();
    add.extend(left_out(record));
    let status = ["status", "--porcelain", "-z", "--untracked-files=all"];
    let ours_alone: Vec<String> = put_paths(record).map(|path| format!("?? {path}")).collect();
    let said = git.run(at(), status).await?;
    if said.split_terminator('\0').all(|entry| ours_alone.iter().any(|own| own == entry)) {
        return Ok(());
    }
    git.run(at(), &add).await?;
    let args = ["commit", "--quiet", "--no-verify", "--message", message];
    git.run(identified(git, at(), &record.path).await, args).await.map(|_| ())
}

/// With the user's name where there is one.
async fn identified<'a>(git: &Git, at: At<'a>, directory: &Path) -> At<'a> {
    let known = git.try_run(At::directory(directory), ["var", "GIT_COMMITTER_IDENT"]).await;
    if known.is_ok_and(|output| output.code == Some(0)) { at } else { ours(at) }
}

/// Makes the commit of a merge.
async fn merge_commit(
    git: &Git,
    into: &Checkout,
    tip: &str,
    message: &str,
    parents: &[&str],
) -> Result<String, MergeError> {
    let tree = try_merge(git, &into.git_dir, None, (&into.head, tip)).await?;
    let tree = tree.map_err(|files| MergeError::Conflicts { files, commit: None })?;
    let mut args = vec!["commit-tree", &tree, "-m", message];
    args.extend(parents.iter().flat_map(|parent| ["-p", parent]));
    let at = identified(git, At::git_dir(&into.git_dir), &into.top).await;
    Ok(git.run(at, args).await?.trim().to_owned())
}

/// Makes commits again on top of the caller's; the last of them.
async fn again(
    git: &Git,
    into: &Checkout,
    commits: impl Iterator<Item = &str>,
) -> Result<String, MergeError> {
    let mut onto = into.head.clone();
    for commit in commits {
        let git_dir = &into.git_dir;
        let args = ["show", "--no-patch", "--format=%H%x00%P%x00%an%x00%ae%x00%aI%x00%B", commit];
        let said = git.run(At::git_dir(git_dir), args).await?;
        let mut fields = said.splitn(6, '\0');
        let mut field = || fields.next().unwrap_or_default().to_owned();
        let (id, parents) = (field(), field());
        let (name, email, date, message) = (field(), field(), field(), field());
        let base = parents.split(' ').next().filter(|parent| !parent.is_empty());
        let tree = try_merge(git, git_dir, base, (&onto, &id)).await?;
        let tree =
            tree.map_err(|files| MergeError::Conflicts { files, commit: Some(id.clone()) })?;
        let at = identified(git, At::git_dir(git_dir), &into.top).await;
        let at = at
            .variable("GIT_AUTHOR_NAME", name)
            .variable("GIT_AUTHOR_EMAIL", email)
            .variable("GIT_AUTHOR_DATE", date)
            .input(message.as_bytes());
        let args = ["commit-tree", &tree, "-p", &onto, "-F", "-"];
        let made = git.run(at, args).await?;
        made.trim().clone_into(&mut onto);
    }
    Ok(onto)
}
