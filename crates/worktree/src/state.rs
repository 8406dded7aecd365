//! Finding the work done in a worktree.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::branch;
use crate::contents;
use crate::files::{LONG, read};
use crate::git::{At, Git, GitError};
use crate::names;
use crate::operation::Operation;
use crate::private;
use crate::record::{Kept, Record};
use crate::whole_index::WholeIndex;

/// Differences between a worktree and the state in which it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Files that git has and that differ, are gone or are staged.
    pub changed: Vec<PathBuf>,
    pub untracked: Vec<PathBuf>,
    /// Files and directories that git leaves out.
    pub ignored: Vec<PathBuf>,
    /// Files that git would leave out and that were added all the same.
    pub forced: Vec<PathBuf>,
    /// Set where its repository has objects, refs or stashes of its own.
    pub has_history: bool,
    pub operation: Option<Operation>,
}

impl Work {
    /// Everything is as it was made.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The files that may not be committed.
    pub(crate) fn open(&self) -> impl Iterator<Item = &PathBuf> {
        self.changed.iter().chain(&self.untracked).chain(&self.forced)
    }
}

/// Looks at a worktree, by one git process where nothing is in it that git ignores.
///
/// The index that was kept when it was made says what was there: what the agent's own index says of files counts for
/// nothing, since an agent may tell git not to look.
pub(crate) async fn look(git: &Git, kept: &Kept, record: &Record) -> Result<Work, GitError> {
    let git_dir = git_dir(kept, record);
    let own = || At::git_dir(&git_dir).work_tree(&record.path);
    // A file that is not checked out may be there all the same.
    let index = WholeIndex::of(git, &own(), &kept.index()).await?;
    let index = index.path();
    let said = match git.run_raw(own().index(index), STATUS).await {
        // Its commit may need files that the repository no longer has.
        Err(GitError::Failed { .. }) if is_out(kept, record) => {
            return files_alone(git, &own().index(index), record).await;
        }
        said => said?,
    };
    let mut work = Work { operation: Operation::in_progress(&git_dir), ..Work::default() };
    let mut is_on_branch = false;
    for entry in names::parts(&said) {
        let (kind, rest) = entry.split_at(entry.len().min(2));
        let after = |spaces: usize| {
            let parts = rest.splitn(spaces + 1, |byte| *byte == b' ');
            parts.last().map(names::path)
        };
        match kind {
            b"1 " => work.changed.extend(after(7)),
            b"u " => work.changed.extend(after(9)),
            b"? " => work.untracked.push(names::path(rest)),
            b"! " => work.ignored.push(names::path(rest)),
            b"# " => {
                let rest = String::from_utf8_lossy(rest);
                let head = rest.strip_prefix("branch.oid ");
                work.has_history |= head.is_some_and(|head| head != record.base);
                let branch = rest.strip_prefix("branch.head ");
                is_on_branch |= branch.is_some_and(|branch| branch == record.branch);
            }
            _ => {}
        }
    }
    let untouched =
        |path: &PathBuf| contents::is_untouched(&record.path, path, &record.links, &record.copies);
    work.untracked.retain(|path| !untouched(path));
    if !work.ignored.is_empty() {
        work.forced = forced(git, &own(), index).await?;
    }
    if !work.forced.is_empty() {
        let said = git.run_raw(own(), STATUS).await?;
        let ignored = names::parts(&said).filter_map(|entry| entry.strip_prefix(b"! "));
        work.ignored = ignored.map(names::path).collect();
    }
    work.ignored.retain(|path| !untouched(path));
    // Git does not look into repositories within this one, and neither do we: what is there was put there.
    let filled = |path: &&PathBuf| is_filled(&record.path.join(path));
    work.untracked.extend(record.submodules.iter().filter(filled).cloned());
    work.has_history |= !is_on_branch || (record.is_private && has_history(kept));
    Ok(work)
}

/// The differences of the files from how they were, whatever became of the commits.
async fn files_alone(git: &Git, at: &At<'_>, record: &Record) -> Result<Work, GitError> {
    const OTHERS: [&str; 4] = ["ls-files", "-z", "--others", "--exclude-standard"];
    let changed =
        git.run_raw(at.clone(), ["diff-files", "--name-only", "-z", "--no-renames"]).await?;
    let untracked = git.run_raw(at.clone(), OTHERS).await?;
    let ignored = OTHERS.iter().chain(&["--ignored", "--directory"]);
    let ignored = git.run_raw(at.clone(), ignored).await?;
    let untouched =
        |path: &PathBuf| contents::is_untouched(&record.path, path, &record.links, &record.copies);
    let paths = |said: &[u8]| -> Vec<PathBuf> {
        names::parts(said).map(names::path).filter(|path| !untouched(path)).collect()
    };
    Ok(Work {
        changed: paths(&changed),
        untracked: paths(&untracked),
        ignored: paths(&ignored),
        has_history: true,
        ..Work::default()
    })
}

/// All that git can say of the files of a worktree.
const STATUS: [&str; 8] = [
    "status",
    "--porcelain=v2",
    "--branch",
    "-z",
    "--untracked-files=all",
    "--ignored=matching",
    "--ignore-submodules=dirty",
    "--no-renames",
];

/// The files that the worktree's own index has although git ignores them, without those that were there.
async fn forced(git: &Git, own: &At<'_>, index: &Path) -> Result<Vec<PathBuf>, GitError> {
    const LIST: [&str; 5] = ["ls-files", "-z", "--cached", "--ignored", "--exclude-standard"];
    let now = git.run_raw(own.clone(), LIST).await?;
    if now.is_empty() {
        return Ok(Vec::new());
    }
    let before = git.run_raw(own.clone().index(index), LIST).await?;
    let before: BTreeSet<&[u8]> = names::parts(&before).collect();
    let new = names::parts(&now).filter(|path| !before.contains(path));
    Ok(new.map(names::path).collect())
}

/// Checks that a directory has entries. An unreadable one counts as filled.
pub(crate) fn is_filled(directory: &Path) -> bool {
    match fs::read_dir(directory) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

/// Checks that the private repository is in use. The record says so; a process may have died before it could write that.
pub(crate) fn is_out(kept: &Kept, record: &Record) -> bool {
    let points_there = || private::pointed(&record.path) == Some(kept.private_repository());
    record.is_private && (record.is_out || points_there())
}

/// The git directory that the worktree's git uses, whatever its `.git` file says.
pub(crate) fn git_dir(kept: &Kept, record: &Record) -> PathBuf {
    if is_out(kept, record) { kept.private_repository() } else { record.admin.clone() }
}

/// The commit that a worktree is at which is not out: that of its `HEAD`, or else of its branch.
pub(crate) async fn head(git: &Git, common: &Path, record: &Record) -> Result<String, GitError> {
    let mut head = None;
    if record.admin.is_dir() {
        head = branch::commit_at(git, &record.admin, "HEAD").await?;
    }
    if head.is_none() {
        head = branch::tip(git, common, record).await?;
    }
    Ok(head.unwrap_or_else(|| record.base.clone()))
}

/// Checks for objects and refs that only this worktree's repository has.
pub(crate) fn has_history(kept: &Kept) -> bool {
    let private = kept.private_repository();
    private.join("modules").exists()
        || has_objects(&private)
        || has_files(&private.join("refs"))
        || !is_same(&private.join("packed-refs"), &kept.refs())
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((read(one, LONG), read(other, LONG)), (Ok(one), Ok(other)) if one == other)
}

fn has_objects(private: &Path) -> bool {
    let Ok(entries) = fs::read_dir(private.join("objects")) else { return true };
    entries.flatten().any(|entry| entry.file_name() != "info" && has_files(&entry.path()))
}

/// Checks for a file below a directory. An unreadable entry counts as one.
fn has_files(directory: &Path) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return true };
    entries.into_iter().any(|entry| match entry {
        Ok(entry) if entry.file_type().is_ok_and(|kind| kind.is_dir()) => has_files(&entry.path()),
        _ => true,
    })
}
