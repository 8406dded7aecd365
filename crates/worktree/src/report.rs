//! Reports of agents' work in worktrees, with dry-run merges.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::git::{At, Git, GitError, failed};
use crate::names::{self, shown};
use crate::operation::Operation;
use crate::record::Record;

/// The most other worktrees that one is held against.
const MOST_SIBLINGS: usize = 8;

/// A file that differs from the commit that a worktree began at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Its name as text: quoted as git does it where it is not plain.
    pub path: String,
    /// Lines added and removed; nothing for what is no text.
    pub lines: Option<(u64, u64)>,
}

/// A merge that was tried without touching any checkout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DryMerge {
    /// The other side: a branch, or a commit.
    pub with: String,
    /// The files in conflict, as text.
    pub conflicts: Vec<String>,
}

/// Contents of a kept worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub path: PathBuf,
    pub branch: String,
    /// The commit that it began at, and the one that it is at.
    pub base: String,
    pub head: String,
    /// Commits that it has and the caller's branch does not, and the other way around.
    pub ahead: u64,
    pub behind: u64,
    pub files: Vec<ChangedFile>,
    /// Files that are changed or new and not committed.
    pub uncommitted: usize,
    /// Files and directories that git leaves out.
    pub ignored: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// Refs that hold what is not on the branch.
    pub saved: Vec<String>,
    pub merges: Vec<DryMerge>,
    /// Further notes, each in a few words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Report {
    pub fn conflicts(&self) -> impl Iterator<Item = &DryMerge> {
        self.merges.iter().filter(|merge| !merge.conflicts.is_empty())
    }
}

/// The caller's side of a comparison.
pub(crate) struct Caller<'a> {
    pub(crate) git_dir: &'a Path,
    pub(crate) head: &'a str,
    pub(crate) name: &'a str,
}

/// The files that differ between two commits.
pub(crate) async fn changed_files(
    git: &Git,
    git_dir: &Path,
    (from, to): (&str, &str),
) -> Result<Vec<ChangedFile>, GitError> {
    numstat(git, At::git_dir(git_dir), &[from, to]).await
}

/// The files that differ, with their lines.
pub(crate) async fn numstat(
    git: &Git,
    at: At<'_>,
    what: &[&str],
) -> Result<Vec<ChangedFile>, GitError> {
    let args = ["diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"];
    let said = git.run_raw(at, args.iter().chain(what)).await?;
    let file = |entry: &[u8]| {
        let mut fields = entry.splitn(3, |byte| *byte == b'\t');
        let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse().ok();
        let (added, removed) = (number(), number());
        let path = shown(names::path(fields.next()?));
        Some(ChangedFile { path, lines: added.zip(removed) })
    };
    Ok(names::parts(&said).filter_map(file).collect())
}

/// Counts the commits that each side has and the other does not.
pub(crate) async fn distance(
    git: &Git,
    git_dir: &Path,
    (ours, theirs): (&str, &str),
) -> Result<(u64, u64), GitError> {
    let range = format!("{ours}...{theirs}");
    let args = ["rev-list", "--left-right", "--count", &range];
    let said = git.run(At::git_dir(git_dir), args).await?;
    let mut counts = said.split_whitespace().map(|count| count.parse().unwrap_or(0));
    let (behind, ahead) = (counts.next().unwrap_or(0), counts.next().unwrap_or(0));
    Ok((ahead, behind))
}

/// The tree that a merge would give, or the files in conflict.
pub(crate) async fn try_merge(
    git: &Git,
    git_dir: &Path,
    base: Option<&str>,
    (ours, theirs): (&str, &str),
) -> Result<Result<String, Vec<String>>, GitError> {
    let mut args = vec!["merge-tree".to_owned(), "--write-tree".to_owned()];
    args.extend(["--name-only", "-z", "--no-messages"].map(str::to_owned));
    args.extend(base.map(|base| format!("--merge-base={base}")));
    args.extend([ours.to_owned(), theirs.to_owned()]);
    let output = git.try_run(At::git_dir(git_dir), &args).await?;
    let mut parts = names::parts(&output.stdout);
    let tree = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    match output.code {
        Some(0) => Ok(Ok(tree)),
        Some(1) => Ok(Err(parts.map(|it| shown(names::path(it))).collect())),
        _ => Err(failed(&args, &output)),
    }
}

/// Tries a commit with the caller's and with those of other worktrees.
pub(crate) async fn try_merges(
    git: &Git,
    common: &Path,
    content: &str,
    caller: Option<&Caller<'_>>,
    siblings: &[Record],
) -> Vec<DryMerge> {
    let mut merges = Vec::new();
    let mut note = |with: &str, tried: Result<Result<String, Vec<String>>, GitError>| match tried {
        Ok(outcome) => {
            let conflicts = outcome.err().unwrap_or_default();
            merges.push(DryMerge { with: with.to_owned(), conflicts });
        }
        Err(error) => tracing::debug!(%error, with, "a merge cannot be tried"),
    };
    if let Some(Caller { git_dir, head, name }) = caller {
        note(name, try_merge(git, git_dir, None, (head, content)).await);
    }
    for sibling in siblings.iter().filter(|it| it.tip != it.base).take(MOST_SIBLINGS) {
        note(&sibling.branch, try_merge(git, common, None, (&sibling.tip, content)).await);
    }
    merges
}
