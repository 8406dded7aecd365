//! What was done in a worktree.

use std::fs;
use std::path::{Path, PathBuf};

use crate::branch;
use crate::contents;
use crate::files::{LONG, SHORT, read, read_text};
use crate::git::{At, Git, GitError};
use crate::operation::Operation;
use crate::private;
use crate::record::{Kept, Record};

/// What there is in a worktree that was not there when it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Files that git has and that differ, are gone or are staged.
    pub changed: Vec<PathBuf>,
    pub untracked: Vec<PathBuf>,
    /// Files and directories that git leaves out.
    pub ignored: Vec<PathBuf>,
    /// Whether its repository has something of its own: objects, refs, stashes.
    pub has_history: bool,
    pub operation: Option<Operation>,
}

impl Work {
    /// Whether everything is as it was made.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// How many files are not committed.
    pub fn uncommitted(&self) -> usize {
        self.changed.len() + self.untracked.len()
    }
}

/// Looks at a worktree by one git process.
///
/// The index that was kept when it was made says what was there: what the agent's own index says of files counts for
/// nothing, since an agent may tell git not to look.
pub(crate) async fn look(git: &Git, kept: &Kept, record: &Record) -> Result<Work, GitError> {
    let git_dir = git_dir(kept, record);
    let at = At::git_dir(&git_dir).work_tree(&record.path);
    let index = kept.index();
    let args = [
        "status",
        "--porcelain=v2",
        "--branch",
        "-z",
        "--untracked-files=all",
        "--ignored=matching",
        "--ignore-submodules=dirty",
        "--no-renames",
    ];
    let said = git.run(at.index(&index), args).await?;
    let mut work = Work { operation: Operation::in_progress(&git_dir), ..Work::default() };
    for entry in said.split_terminator('\0') {
        let (kind, rest) = entry.split_once(' ').unwrap_or((entry, ""));
        match kind {
            "1" => work.changed.extend(rest.splitn(8, ' ').nth(7).map(PathBuf::from)),
            "u" => work.changed.extend(rest.splitn(10, ' ').nth(9).map(PathBuf::from)),
            "?" => work.untracked.push(rest.into()),
            "!" => work.ignored.push(rest.into()),
            "#" => {
                let head = rest.strip_prefix("branch.oid ");
                work.has_history |= head.is_some_and(|head| head != record.base);
            }
            _ => {}
        }
    }
    let untouched =
        |path: &PathBuf| contents::is_untouched(&record.path, path, &record.links, &record.copies);
    work.untracked.retain(|path| !untouched(path));
    work.ignored.retain(|path| !untouched(path));
    // Git does not look into repositories within this one, and neither do we: what is there was put there.
    let filled = |path: &&PathBuf| is_filled(&record.path.join(path));
    work.untracked.extend(record.submodules.iter().filter(filled).cloned());
    work.has_history |= has_history(kept, record, &git_dir);
    Ok(work)
}

/// Whether something is in a directory. What cannot be looked at counts.
pub(crate) fn is_filled(directory: &Path) -> bool {
    match fs::read_dir(directory) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

/// Whether the private repository is in use. The record says so; a process may have died before it could write that.
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

/// Whether something is there that only this worktree's repository has.
fn has_history(kept: &Kept, record: &Record, git_dir: &Path) -> bool {
    let on_branch = read_text(&git_dir.join("HEAD"), SHORT)
        .is_ok_and(|head| head.trim() == format!("ref: refs/heads/{}", record.branch));
    if !record.is_private {
        return !on_branch;
    }
    let private = kept.private_repository();
    !on_branch
        || private.join("modules").exists()
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

/// Whether there is a file below a directory. What cannot be looked at counts as one.
fn has_files(directory: &Path) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return true };
    entries.into_iter().any(|entry| match entry {
        Ok(entry) if entry.file_type().is_ok_and(|kind| kind.is_dir()) => has_files(&entry.path()),
        _ => true,
    })
}
