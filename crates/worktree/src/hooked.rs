//! Checkouts that a hook made in the place of a worktree of ours: what one was at when its agent began, and what is in it
//! at the end.
//!
//! The place of its git directory is known from the beginning: what its `.git` says later is the agent's word. A worktree of the
//! caller's repository is told of like one of ours. A repository of its own is only read, since the agent can write there,
//! and is not held against the caller's, which need not have its commits.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::branch::commit_at;
use crate::checkout::Checkout;
use crate::files::{SHORT, read, read_text, remove_if_there, replace_copy};
use crate::git::{At, Git, GitError};
use crate::names::{self, shown};
use crate::operation::Operation;
use crate::pipes;
use crate::private::{self, PrivateRepository};
use crate::report::{self, Caller, ChangedFile, Report};
use crate::shadow::Shadow;
use crate::snapshot::{add_files, ours};
use crate::whole_index::{WholeIndex, unhide};
use crate::worktrees::Worktrees;

/// The files whose lines are counted one by one.
const MOST_COUNTED: usize = 1_000;
const LARGEST_COUNTED: u64 = 4 * 1024 * 1024;

/// A checkout that a hook made, as its agent found it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookedCheckout {
    /// Its top directory, without links.
    pub path: PathBuf,
    /// The commit that it began at, and the branch.
    pub base: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    git_dir: PathBuf,
    common: PathBuf,
}

impl HookedCheckout {
    /// True where the agent that works in it can write to its repository.
    fn is_own_repository(&self) -> bool {
        self.common.starts_with(&self.path)
    }

    fn at(&self) -> At<'_> {
        At::git_dir(&self.git_dir).work_tree(&self.path)
    }
}

impl Worktrees {
    /// Looks at a directory that a hook made. Nothing where it is no checkout of its own with a commit.
    pub async fn hooked(&self, path: &Path) -> Option<HookedCheckout> {
        let found = Checkout::around(&self.git, path).await.ok()?;
        let Checkout { top, git_dir, common, head, branch, .. } = found;
        let real = |path: PathBuf| path.canonicalize().ok();
        let (path, git_dir, common) = (path.canonicalize().ok()?, real(git_dir)?, real(common)?);
        let is_its_own = top == path && PrivateRepository::at(&git_dir).is_none();
        is_its_own.then_some(HookedCheckout { path, base: head, branch, git_dir, common })
    }

    /// Describes what is in such a checkout now. `caller` is where the work is to go.
    pub async fn report_hooked(
        &self,
        hooked: &HookedCheckout,
        caller: Option<&Path>,
    ) -> Result<Report, GitError> {
        check(hooked)?;
        let from = match caller {
            Some(caller) => Checkout::around(&self.git, caller).await.ok(),
            None => None,
        };
        let ours = from.as_ref().map(|from| from.common.clone());
        let from = from.filter(|from| from.common == hooked.common);
        // The agent can write to any repository but the caller's.
        let (git, shadow) = if from.is_some() {
            (self.git.tamed(&hooked.git_dir).await?, None)
        } else {
            let shadow = Shadow::of(&self.git, &hooked.git_dir, ours.as_deref()).await?;
            (self.git.clone(), Some(shadow))
        };
        let git_dir = shadow.as_ref().map_or(hooked.git_dir.as_path(), Shadow::path);
        let at = || At::git_dir(git_dir).work_tree(&hooked.path);
        let index = WholeIndex::of(&git, &at(), &git_dir.join("index")).await?;
        let at = || at().index(index.path());
        let head = match &shadow {
            Some(shadow) => shadow.head.clone(),
            None => commit_at(&git, git_dir, "HEAD").await?,
        };
        let since = head.unwrap_or_else(|| hooked.base.clone());
        let mut files = changed(&git, at(), &hooked.base).await?;
        let uncommitted = changed(&git, at(), &since).await?.len();
        let untracked = others(&git, at(), &[]).await?;
        let ignored = others(&git, at(), &["--ignored", "--directory"]).await?;
        let uncommitted = uncommitted + untracked.len();
        files.extend(untracked.iter().enumerate().map(|(number, path)| ChangedFile {
            path: shown(path),
            lines: if number < MOST_COUNTED { lines(&hooked.path.join(path)) } else { None },
        }));
        let mut report = Report {
            path: hooked.path.clone(),
            branch: branch(&hooked.git_dir).unwrap_or_default(),
            base: hooked.base.clone(),
            head: since,
            ahead: 0,
            behind: 0,
            files,
            uncommitted,
            ignored: ignored.len(),
            operation: Operation::in_progress(&hooked.git_dir),
            saved: Vec::new(),
            merges: Vec::new(),
            notes: vec!["a hook made it".to_owned()],
        };
        if let Some(operation) = report.operation {
            report.notes.push(format!("a {} is not finished in it", operation.as_str()));
        }
        let Some(from) = from else {
            let (base, head) = (hooked.base.as_str(), report.head.as_str());
            (report.ahead, report.behind) = report::distance(&git, git_dir, (base, head)).await?;
            report.notes.push("it is a repository of its own, to fetch from".to_owned());
            return Ok(report);
        };
        compare(&git, hooked, &from, &mut report).await?;
        Ok(report)
    }
}

/// Holds a worktree of the caller's repository against what the caller is at.
async fn compare(
    git: &Git,
    hooked: &HookedCheckout,
    from: &Checkout,
    report: &mut Report,
) -> Result<(), GitError> {
    let content = if report.uncommitted > 0 {
        snapshot(git, hooked, &report.head).await?
    } else {
        report.head.clone()
    };
    let git = &git.tamed(&from.git_dir).await?;
    let caller = Caller {
        git_dir: &from.git_dir,
        head: &from.head,
        name: from.branch.as_deref().unwrap_or(&from.head),
    };
    (report.ahead, report.behind) =
        report::distance(git, &hooked.common, (&from.head, &report.head)).await?;
    report.merges = report::try_merges(git, &hooked.common, &content, Some(&caller), &[]).await;
    Ok(())
}

/// Makes sure that git can look at it: no link leads elsewhere, and no pipe is waited for.
fn check(hooked: &HookedCheckout) -> io::Result<()> {
    let kind = fs::symlink_metadata(&hooked.path)?;
    if !kind.is_dir() {
        return Err(io::Error::other("its directory is one no longer"));
    }
    let waits = |path: PathBuf| {
        io::Error::other(format!("{} is a pipe or the like, which git would wait for", shown(path)))
    };
    if let Some(path) = pipes::first_in(&hooked.path) {
        return Err(waits(path));
    }
    if !hooked.is_own_repository() {
        return Ok(());
    }
    match private::first_odd(&hooked.git_dir) {
        Some(odd) => {
            let text = format!("its repository has links or pipes in it: {}", shown(odd));
            Err(io::Error::other(text))
        }
        None => Ok(()),
    }
}

/// The branch that a git directory is on.
fn branch(git_dir: &Path) -> Option<String> {
    let head = read_text(&git_dir.join("HEAD"), SHORT).ok()?;
    head.strip_prefix("ref: refs/heads/").map(|name| name.trim_end().to_owned())
}

/// The files that git has and that differ from a commit.
async fn changed(git: &Git, at: At<'_>, since: &str) -> Result<Vec<ChangedFile>, GitError> {
    report::numstat(git, at, &["--ignore-submodules=dirty", since]).await
}

/// The files that git does not have.
async fn others(git: &Git, at: At<'_>, more: &[&str]) -> Result<Vec<PathBuf>, GitError> {
    let args = ["ls-files", "-z", "--others", "--exclude-standard"];
    let said = git.run_raw(at, args.iter().chain(more)).await?;
    Ok(names::parts(&said).map(names::path).collect())
}

/// The lines of a new file; nothing where it is no text, or too large to count.
fn lines(path: &Path) -> Option<(u64, u64)> {
    let bytes = read(path, LARGEST_COUNTED).ok().filter(|bytes| !bytes.contains(&0))?;
    let parts = bytes.split(|byte| *byte == b'\n').count();
    // Behind the last line end there is no line.
    let is_over = bytes.last().is_none_or(|byte| *byte == b'\n');
    Some((parts.saturating_sub(usize::from(is_over)) as u64, 0))
}

/// A commit of the files of a worktree of the caller's repository, on top of what it is at. No ref has it.
async fn snapshot(git: &Git, hooked: &HookedCheckout, head: &str) -> Result<String, GitError> {
    let index = hooked.git_dir.join(format!("centurion-index-{}", std::process::id()));
    replace_copy(&hooked.git_dir.join("index"), &index)?;
    let made = async {
        let at = || hooked.at().index(&index);
        unhide(git, &at()).await?;
        add_files(git, &at(), &[], &[]).await?;
        let tree = git.run(at(), ["write-tree"]).await?;
        let args = ["commit-tree", tree.trim(), "-p", head, "-m", "What a hook's worktree has"];
        Ok(git.run(ours(hooked.at()), args).await?.trim().to_owned())
    };
    let made = made.await;
    remove_if_there(&index)?;
    made
}
