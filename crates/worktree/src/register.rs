//! Noting a worktree in a repository as `git worktree add --no-checkout` does it, without a git process.
//!
//! Git makes the directory of a worktree file by file, and any git that looks at it meanwhile breaks off. Here it is made
//! beside and renamed into its place, so that it is there whole or not at all.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use centurion_protocol::bounded;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::files::{LONG, SHORT, read_text};
use crate::ordinary::has_reftable;
use crate::place::Building;
use crate::record::Kept;

/// The most numbers that are tried behind a name that is taken.
const MOST_NAMES: usize = 1000;

/// Notes a worktree that is on a branch, as one in its place, makes its directory, and lets that lead to the note; the directory of the
/// note, which is locked. What is not usual about the repository is left to git: then there is none, and nothing is changed.
pub(crate) fn register(
    common: &Path,
    kept: &Kept,
    building: &Building,
    branch: &str,
) -> io::Result<Option<PathBuf>> {
    if !is_usual(common) {
        return Ok(None);
    }
    let path = building.place();
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Ok(None) };
    let new = kept.new_admin();
    fs::create_dir_all(new.join("refs"))?;
    fs::write(new.join("HEAD"), format!("ref: refs/heads/{branch}\n"))?;
    fs::write(new.join("commondir"), "../..\n")?;
    lead_to(&new, path)?;
    fs::write(new.join("locked"), format!("{}\n", lock_reason()))?;
    let made = building.make()?;
    for number in 0..MOST_NAMES {
        let name = if number == 0 { name.to_owned() } else { format!("{name}{number}") };
        let admin = common.join("worktrees").join(name);
        if fs::symlink_metadata(&admin).is_ok() {
            continue;
        }
        fs::write(made.at(".git"), format!("gitdir: {}\n", admin.display()))?;
        match move_to(&new, &admin) {
            Ok(()) => return Ok(Some(admin)),
            Err(Errno::EXIST | Errno::NOTEMPTY) => {}
            // A file system that cannot rename so.
            Err(Errno::INVAL | Errno::NOSYS) => break,
            Err(error) => return Err(error.into()),
        }
    }
    fs::remove_file(made.at(".git"))?;
    fs::remove_dir(building.at())?;
    fs::remove_dir_all(&new)?;
    Ok(None)
}

/// Has the note of a worktree say where that is.
pub(crate) fn lead_to(admin: &Path, path: &Path) -> io::Result<()> {
    fs::write(admin.join("gitdir"), format!("{}/.git\n", path.display()))
}

/// The reason of a lock, for a person whose git finds it.
pub(crate) fn lock_reason() -> String {
    format!("centurion works in it (process {})", std::process::id())
}

/// Moves a directory to a name that is free. Git removes the directory above when its last worktree goes.
fn move_to(from: &Path, to: &Path) -> Result<(), Errno> {
    let mut moved = Err(Errno::NOENT);
    for _ in 0..MOST_NAMES {
        moved = renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE);
        if moved != Err(Errno::NOENT) || fs::symlink_metadata(from).is_err() {
            break;
        }
        if let Some(above) = to.parent()
            && let Err(error) = fs::create_dir(above)
            && error.kind() != ErrorKind::AlreadyExists
        {
            return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        }
    }
    moved
}

/// Checks that the repository has its refs in files, and no extension that says more of worktrees.
fn is_usual(common: &Path) -> bool {
    let config = bounded::read_text_file(&common.join("config"), LONG);
    let worktrees = fs::symlink_metadata(common.join("worktrees"));
    !has_reftable(common)
        && config.is_ok_and(|text| !text.to_lowercase().contains("extensions"))
        && worktrees.map_or_else(|error| error.kind() == ErrorKind::NotFound, |it| it.is_dir())
}

/// The directory that the repository has for a worktree.
pub(crate) fn admin_of(common: &Path, path: &Path) -> io::Result<Option<PathBuf>> {
    let file = format!("{}/.git", path.display());
    let entries = match fs::read_dir(common.join("worktrees")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    let mut directories = entries.flatten().map(|entry| entry.path());
    Ok(directories.find(|directory| {
        read_text(&directory.join("gitdir"), SHORT).is_ok_and(|text| text.trim() == file)
    }))
}
