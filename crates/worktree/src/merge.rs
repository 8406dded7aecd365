//! Bringing the work of a worktree into the caller's checkout.
//!
//! The commits are made beside all checkouts. Then the caller's checkout is moved to the last of them by a fast-forward,
//! which git does as a whole or not at all, and which leaves alone whatever was changed there in other files.

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::checkout::{Checkout, CheckoutError};
use crate::entry::{Entry, Standing, explain_moved};
use crate::files::replace_copy;
use crate::git::{At, Git, GitError};
use crate::kept::{Ignored, uncommitted};
use crate::names::{self, for_shell, shown as shown_path};
use crate::operation::Operation;
use crate::record::Record;
use crate::report::{distance, try_merge};
use crate::snapshot::{add_all, ours};
use crate::state;
use crate::worktrees::Worktrees;

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

/// A file that a merge may not change, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRefusal {
    pub file: PathBuf,
    pub reason: String,
}

/// What is to be merged, and how.
#[derive(Clone, Copy)]
pub struct Merge<'a> {
    pub how: &'a How,
    /// What new commits say.
    pub message: &'a str,
    /// Looks at the files that would change, before anything does; says why not.
    pub check: &'a (dyn Fn(&[PathBuf]) -> Result<(), FileRefusal> + Sync),
}

impl<'a> Merge<'a> {
    /// One that may change any file.
    pub fn any(how: &'a How, message: &'a str) -> Self {
        Self { how, message, check: &|_| Ok(()) }
    }
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
    /// Something of git's was begun in the worktree and not ended.
    #[error("{0}")]
    Operation(String),
    /// The worktree is at another place.
    #[error("{0}")]
    Moved(String),
    #[error("conflicts in {}: nothing was changed", files.join(", "))]
    Conflicts {
        files: Vec<String>,
        /// The commit that could not be made again.
        commit: Option<String>,
        /// Commands after which the work can be merged.
        help: String,
    },
    #[error("nothing was merged: it changes {}: {}", shown_path(&.0.file), .0.reason)]
    Refused(FileRefusal),
    #[error("there is nothing to merge: the branch has no commit that is not in {0} already")]
    Nothing(String),
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Worktrees {
    /// Merges what was done in a worktree into the checkout around a directory. What is not committed there is
    /// committed on its branch first, with this message.
    pub async fn merge(
        &self,
        directory: &Path,
        entry: &Entry,
        &Merge { how, message, check }: &Merge<'_>,
    ) -> Result<Merged, MergeError> {
        let record = usable(entry)?;
        let in_use = || MergeError::InUse(entry.kept.holder().unwrap_or_default());
        let lease = entry.kept.lease().map_err(GitError::from)?.ok_or_else(in_use)?;
        let into = self.checkout(directory).await?;
        let git = &self.git.tamed(&into.git_dir).await?;
        let mut rest = None;
        let mut tip = state::head(git, &into.common, record).await?;
        if entry.standing == Standing::Kept {
            if let Some(operation) = Operation::at_home(git, record).await? {
                return Err(MergeError::Operation(operation.explain(record)));
            }
            // What is configured may depend on where git works.
            let there = git.tamed(&record.admin).await?;
            rest = commit_rest(&there, record, &tip, message).await?;
            tip = rest.clone().unwrap_or(tip);
        }
        let tip = tip.as_str();
        let (ahead, behind) = distance(git, &into.git_dir, (&into.head, tip)).await?;
        if ahead == 0 {
            let name = into.branch.clone().unwrap_or_else(|| into.head.clone());
            return Err(MergeError::Nothing(name));
        }
        let to = match how {
            How::Merge if behind == 0 => Ok(tip.to_owned()),
            _ => commits(git, &into, tip, how, message).await,
        };
        let to = to.map_err(|error| error.with_help(&into, entry, record, how, rest.is_some()))?;
        check(&touched(git, &into, &to).await?).map_err(MergeError::Refused)?;
        let args = [
            "merge",
            "--ff-only",
            "--quiet",
            "--no-squash",
            "--commit",
            "--no-autostash",
            "--no-verify-signatures",
            "--no-overwrite-ignore",
            &to,
        ];
        git.run(At::directory(&into.top), args).await?;
        if let Some(commit) = rest {
            take_over(git, record, &commit).await?;
        }
        drop(lease);
        let (commits, _) = distance(git, &into.git_dir, (&into.head, &to)).await?;
        Ok(Merged { from: into.head, to, commits })
    }
}

/// The files of the caller's checkout that would change.
async fn touched(git: &Git, into: &Checkout, to: &str) -> Result<Vec<PathBuf>, GitError> {
    let args = ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", &into.head, to];
    let said = git.run_raw(At::git_dir(&into.git_dir), args).await?;
    Ok(names::parts(&said).map(names::path).collect())
}

/// The record of a worktree that can be merged.
fn usable(entry: &Entry) -> Result<&Record, MergeError> {
    match (&entry.record, &entry.standing) {
        (_, Standing::InUse { process }) => Err(MergeError::InUse(process.clone())),
        (Some(record), Standing::Kept | Standing::Gone) => Ok(record),
        (Some(record), Standing::Paused { operation }) => {
            Err(MergeError::Operation(operation.explain_out(record)))
        }
        (Some(record), Standing::Moved { to }) => Err(MergeError::Moved(explain_moved(record, to))),
        _ => Err(MergeError::Left),
    }
}

impl MergeError {
    /// Says of conflicts how they can be solved: where the work is, so that the caller's checkout stays as it is.
    fn with_help(
        mut self,
        into: &Checkout,
        entry: &Entry,
        record: &Record,
        how: &How,
        has_rest: bool,
    ) -> Self {
        let Self::Conflicts { commit, help, .. } = &mut self else { return self };
        let name = into.branch.as_deref().unwrap_or(&into.head);
        let (here, there) = (for_shell(&into.top), for_shell(&record.path));
        *help = match (how, commit) {
            (How::CherryPick(_), Some(commit)) => {
                format!("`git -C {here} cherry-pick {commit}`, and solve the conflicts there")
            }
            _ if entry.standing == Standing::Gone => {
                format!("`git -C {here} merge {}`, and solve the conflicts there", record.branch)
            }
            (_, commit) => {
                let open = format!("`git -C {there} add -A`, `git -C {there} commit -m Work`, ");
                let open = if has_rest { open.as_str() } else { "" };
                let verb = if commit.is_some() { "rebase" } else { "merge" };
                format!(
                    "{open}`git -C {there} {verb} {name}`; solve the conflicts there and go on with `git -C {there} {verb} \
                     --continue`; then merge {} again",
                    entry.name()
                )
            }
        };
        self
    }
}

/// Makes the commits that are brought over; the last of them.
async fn commits(
    git: &Git,
    into: &Checkout,
    tip: &str,
    how: &How,
    message: &str,
) -> Result<String, MergeError> {
    match how {
        How::Merge => merge_commit(git, into, tip, message, &[&into.head, tip]).await,
        How::Squash => merge_commit(git, into, tip, message, &[&into.head]).await,
        How::Rebase => {
            let range = format!("{}..{tip}", into.head);
            let args = ["rev-list", "--reverse", "--no-merges", "--topo-order", &range];
            let listed = git.run(At::git_dir(&into.git_dir), args).await?;
            again(git, into, listed.lines()).await
        }
        How::CherryPick(commits) => again(git, into, commits.iter().map(String::as_str)).await,
    }
}

/// Where the index lies that has what is not committed.
fn rest_index(record: &Record) -> PathBuf {
    record.admin.join("centurion-index")
}

/// Makes a commit of what is not committed in a worktree, beside its branch and its index.
async fn commit_rest(
    git: &Git,
    record: &Record,
    head: &str,
    message: &str,
) -> Result<Option<String>, GitError> {
    let at = At::directory(&record.path);
    if uncommitted(git, &at, record, Ignored::LeftOut).await?.is_empty() {
        return Ok(None);
    }
    let index = rest_index(record);
    replace_copy(&record.admin.join("index"), &index)?;
    let at = || At::directory(&record.path).index(&index);
    add_all(git, &at(), record, &[]).await?;
    let tree = git.run(at(), ["write-tree"]).await?;
    let args = ["commit-tree", tree.trim(), "-p", head, "-m", message];
    let commit = git.run(identified(git, at(), &record.path).await, args).await?;
    Ok(Some(commit.trim().to_owned()))
}

/// Has a worktree be at the commit that was made of what was not committed.
async fn take_over(git: &Git, record: &Record, commit: &str) -> Result<(), GitError> {
    let args = ["update-ref", "-m", "centurion: what was not committed", "HEAD", commit];
    git.run(At::directory(&record.path), args).await?;
    std::fs::rename(rest_index(record), record.admin.join("index"))?;
    Ok(())
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
    let tree = tree.map_err(|files| conflicts(files, None))?;
    let mut args = vec!["commit-tree", &tree, "-m", message];
    args.extend(parents.iter().flat_map(|parent| ["-p", parent]));
    let at = identified(git, At::git_dir(&into.git_dir), &into.top).await;
    Ok(git.run(at, args).await?.trim().to_owned())
}

fn conflicts(files: Vec<String>, commit: Option<String>) -> MergeError {
    MergeError::Conflicts { files, commit, help: String::new() }
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
        let name = format!("{commit}^{{commit}}");
        let args = ["rev-parse", "--verify", "--end-of-options", &name];
        let commit = git.run(At::git_dir(git_dir), args).await?;
        let format = "--format=%H%x00%P%x00%an%x00%ae%x00%aI%x00%B";
        let said =
            git.run(At::git_dir(git_dir), ["show", "--no-patch", format, commit.trim()]).await?;
        let mut fields = said.splitn(6, '\0');
        let mut field = || fields.next().unwrap_or_default().to_owned();
        let (id, parents) = (field(), field());
        let (name, email, date, message) = (field(), field(), field(), field());
        let base = parents.split(' ').next().filter(|parent| !parent.is_empty());
        let tree = try_merge(git, git_dir, base, (&onto, &id)).await?;
        let tree = tree.map_err(|files| conflicts(files, Some(id.clone())))?;
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
