//! The branch of a worktree that is made, made and deleted without a git process where the repository keeps its refs in
//! files. What is not plain is left to git, and nothing is changed then.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use centurion_files::private;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::files::{SHORT, read_text, remove_if_there};
use crate::record::{Kept, Record};
use crate::refs::{FiledRef, all_refs, filed_ref, is_plain_name, packed_ref};

/// The text of a lock of ours: one that a killed process left is told from one of git's.
const LOCK: &str = "centurion deletes it\n";

/// The file of a branch, where it can be in one: its name is one word below the branches.
fn file_of(common: &Path, branch: &str) -> Option<PathBuf> {
    let heads = common.join("refs/heads");
    let is_own = |path: &Path| fs::symlink_metadata(path).is_ok_and(|it| it.is_dir());
    let is_own = is_own(&heads) && is_own(&common.join("refs"));
    (is_own && !branch.contains('/') && is_plain_name(branch)).then(|| heads.join(branch))
}

/// Makes a branch that is not there; whether that was done.
pub(crate) fn make(common: &Path, kept: &Kept, branch: &str, base: &str) -> io::Result<bool> {
    let (Some(file), Some(all)) = (file_of(common, branch), all_refs(common)) else {
        return Ok(false);
    };
    let (name, below) = (format!("refs/heads/{branch}"), format!("refs/heads/{branch}/"));
    let is_taken = |it: &String| *it == name || it.starts_with(&below);
    // An empty directory may be left of other refs, and a lock is a git at work.
    if all.keys().any(is_taken) || file.exists() || lock_of(&file).exists() {
        return Ok(false);
    }
    put(common, kept, &format!("{base}\n"), &file)
}

/// Puts a whole file where there is none; whether that was done.
fn put(common: &Path, kept: &Kept, text: &str, to: &Path) -> io::Result<bool> {
    let new = kept.path().join("branch");
    remove_if_there(&new)?;
    let mut written = private::create(&new)?;
    written.write_all(text.as_bytes())?;
    // As git does it with a branch: no crash of the machine leaves an empty one.
    if text != LOCK {
        written.sync_data()?;
    }
    // Others read it as far as they may read the repository's files.
    if let Ok(like) = fs::metadata(common.join("HEAD")) {
        written.set_permissions(like.permissions())?;
    }
    match renameat_with(CWD, &new, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST | Errno::INVAL | Errno::NOSYS) => remove_if_there(&new).map(|()| false),
        Err(error) => Err(error.into()),
    }
}

/// Result of the deletion of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deletion {
    Gone,
    /// It is gone, but a git that packs refs may bring it back.
    Unsure,
    /// Nothing was changed: it is git's to delete.
    Undone,
}

/// Deletes the branch of a worktree that is where it began, and its log.
pub(crate) fn delete(common: &Path, kept: &Kept, record: &Record) -> io::Result<Deletion> {
    let Some(file) = file_of(common, &record.branch) else { return Ok(Deletion::Undone) };
    let lock = lock_of(&file);
    if !put(common, kept, LOCK, &lock)? {
        return Ok(Deletion::Undone);
    }
    let deleted = delete_locked(common, record, &file);
    remove_if_there(&lock)?;
    deleted
}

/// Removes the lock of a process of ours that died. This one has the lease of the worktree.
pub(crate) fn unlock(common: &Path, branch: &str) -> io::Result<()> {
    let lock = file_of(common, branch).map(|file| lock_of(&file));
    match lock.filter(|lock| read_text(lock, SHORT).is_ok_and(|text| text == LOCK)) {
        Some(lock) => remove_if_there(&lock),
        None => Ok(()),
    }
}

fn delete_locked(common: &Path, record: &Record, file: &Path) -> io::Result<Deletion> {
    let name = format!("refs/heads/{}", record.branch);
    // One that is packed, too, would be there again, possibly with an older commit.
    let is_alone = packed_ref(common, &name) == FiledRef::Missing;
    if filed_ref(common, &name) != FiledRef::Id(record.base.clone()) || !is_alone {
        return Ok(Deletion::Undone);
    }
    let packing = common.join("packed-refs.lock");
    remove_if_there(&common.join("logs").join(&name))?;
    fs::remove_file(file)?;
    // A git that packs refs may have read it before it was gone. It holds its lock until they are packed: so one of the two
    // is seen, and then git deletes it.
    let is_packing = fs::symlink_metadata(&packing).is_ok();
    let is_packed = packed_ref(common, &name) != FiledRef::Missing;
    Ok(if is_packing || is_packed { Deletion::Unsure } else { Deletion::Gone })
}

fn lock_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}
