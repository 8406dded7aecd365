//! Removing a worktree in which nothing was done.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::branch;
use crate::git::{At, Git, GitError, failed};
use crate::names::shown;
use crate::own_branch::{self, Deletion};
use crate::place::open;
use crate::record::{Kept, Record, Stage};
use crate::register;

/// Directory for worktrees that are yet to be deleted, which may take long.
const TRASH: &str = ".trash";

/// Result of a removal.
#[derive(Debug)]
pub(crate) struct Removal {
    pub(crate) trash: Trash,
    /// The failure to remove its branch, and with that its record: the next process retries.
    pub(crate) left: Option<io::Error>,
}

impl Removal {
    /// The directories put aside, if nothing else is left.
    pub(crate) fn whole(self) -> io::Result<Trash> {
        match self.left {
            None => Ok(self.trash),
            Some(error) => Err(error),
        }
    }
}

/// Removes a worktree, its branch and what is kept about it. Can be called again where it was broken off. An error says
/// why it stays.
pub(crate) async fn remove(
    git: &Git,
    common: &Path,
    kept: &Kept,
    record: &Record,
) -> io::Result<Removal> {
    let building = record.path.file_name().map(|name| kept.building().join(name));
    // Until it is moved to its place, nothing there is ours.
    let is_placed = building.as_ref().is_none_or(|at| fs::symlink_metadata(at).is_err());
    if is_placed && !is_ours(common, kept, record) {
        let text = format!("{} is not the worktree that was made there", shown(&record.path));
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    }
    let was = record;
    let record = Record { stage: Stage::Removing, ..record.clone() };
    kept.write(&record)?;
    let put_away = if is_placed { put_away(&record.path) } else { Ok(None) };
    let trash = match put_away {
        Ok(trash) => trash,
        Err(error) => {
            // It can be worked in again.
            kept.write(was)?;
            return Err(error);
        }
    };
    let trash = Trash(trash.into_iter().collect());
    // A process may have died before it could note which one.
    for path in [Some(record.path.clone()), building].into_iter().flatten() {
        if let Ok(Some(admin)) = register::admin_of(common, &path) {
            // In one step: git breaks off where it finds half of one.
            let _ = fs::rename(admin, kept.removed_admin());
        }
    }
    let left = match remove_refs(git, common, kept, &record).await {
        Ok(()) => kept.delete().err(),
        Err(error) => Some(io::Error::other(error)),
    };
    if let Some(error) = &left {
        tracing::warn!(%error, path = %kept.path().display(), "the record of a worktree stays");
    }
    Ok(Removal { trash, left })
}

/// Removes the branch of a worktree, and the ref that kept the commit that it began at.
async fn remove_refs(
    git: &Git,
    common: &Path,
    kept: &Kept,
    record: &Record,
) -> Result<(), GitError> {
    // Only as long as it is where it began and no other checkout is on it: what another made of the branch is not ours.
    let name = format!("refs/heads/{}", record.branch);
    let mut input = String::new();
    let is_there = async || {
        let id = branch::in_repository(git, common, &name).await?;
        Ok::<_, GitError>(id.as_ref() == Some(&record.base))
    };
    own_branch::unlock(common, &record.branch)?;
    if is_there().await? && !branch::is_elsewhere(git, common, record).await? {
        let deletion = format!("delete {name} {}\n", record.base);
        match own_branch::delete(common, kept, record)? {
            Deletion::Gone => {}
            Deletion::Undone => input = deletion,
            Deletion::Unsure => {
                let at = At::git_dir(common).input(deletion.as_bytes());
                let output = git.try_run(at, ["update-ref", "--stdin"]).await?;
                // It may not have come back.
                if is_there().await? {
                    return Err(failed(&["update-ref"], &output));
                }
            }
        }
    }
    let base = format!("{}/base", record.saved_refs());
    if branch::in_repository(git, common, &base).await?.is_some() {
        input = format!("{input}delete {base}\n");
    }
    if !input.is_empty() {
        let at = At::git_dir(common).input(input.as_bytes());
        git.run(at, ["update-ref", "--stdin"]).await?;
    }
    Ok(())
}

/// Checks that the directory of a record is the worktree of this repository: its `.git` says so, or nothing is in it.
fn is_ours(common: &Path, kept: &Kept, record: &Record) -> bool {
    if !is_directory(&record.path) {
        return fs::symlink_metadata(&record.path).is_err();
    }
    // A git that was killed may have made the file that names the repository, and not yet written to it.
    let is_nothing = |entry: io::Result<fs::DirEntry>| {
        entry.is_ok_and(|entry| {
            let is_empty = |it: fs::Metadata| it.is_file() && it.len() == 0;
            entry.file_name() == ".git" && entry.metadata().is_ok_and(is_empty)
        })
    };
    let is_empty = fs::read_dir(&record.path).is_ok_and(|mut entries| entries.all(is_nothing));
    let pointed = crate::private::pointed(&record.path);
    is_empty
        || pointed.as_ref().is_some_and(|it| {
            *it == kept.private_repository() || it.parent() == Some(&common.join("worktrees"))
        })
}

/// Checks that a path is a directory, and no link to one.
fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Moves a worktree out of the way, in one step.
fn put_away(path: &Path) -> io::Result<Option<PathBuf>> {
    if fs::symlink_metadata(path).is_err() {
        return Ok(None);
    }
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    let trash = above.join(TRASH);
    // Commands may exchange a directory on the way for a link at any moment: what is moved and deleted is in those that
    // were opened.
    let opened = open(above)?;
    match fs::create_dir(opened.at(TRASH)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if let Some(odd) = trash.ancestors().take(3).find(|path| !is_directory(path)) {
        let text = format!("{} is no directory: remove it first", shown(odd));
        return Err(io::Error::other(text));
    }
    let opened_trash = opened.directory(Path::new(TRASH))?;
    for number in 0.. {
        let new = format!("{}-{number}", name.to_string_lossy());
        if fs::symlink_metadata(opened_trash.at(&new)).is_err() {
            fs::rename(opened.at(name), opened_trash.at(&new))?;
            return Ok(Some(trash.join(new)));
        }
    }
    Ok(None)
}

/// A worktree that was put aside. It is gone for all who look for it, and is yet to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "it uses space until it is deleted"]
pub struct Trash(Vec<PathBuf>);

impl Trash {
    /// Finds the directories that earlier processes put aside and did not delete.
    pub(crate) fn left(worktrees: &Path) -> Self {
        let trash = worktrees.join(TRASH);
        // A repository may bring links, which lead anywhere.
        let is_own = trash.ancestors().take(3).all(is_directory);
        let entries = if is_own { fs::read_dir(trash).ok() } else { None };
        Self(entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect())
    }

    /// Deletes it. Takes as long as the file system does.
    pub fn delete(self) {
        for path in self.0 {
            let (Some(trash), Some(name)) = (path.parent(), path.file_name()) else { continue };
            let removed = open(trash).and_then(|trash| fs::remove_dir_all(trash.at(name)));
            if let Err(error) = removed
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%error, path = %path.display(), "what was removed is still there");
            }
        }
    }
}
