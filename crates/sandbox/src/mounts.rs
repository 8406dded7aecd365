//! Builds a [`View`] out of mounts, in a mount namespace of its own.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, mount, move_mount, open_tree};

use crate::ApplyError;
use crate::devices::{self, Devices};
use crate::namespaces::{OwnMounts, make_all_read_only};
use crate::system::{self, Reach};
use crate::view::{Mode, View};

/// Makes the file system of this process match the view.
pub(crate) fn build(view: &View, own: &OwnMounts) -> Result<(), ApplyError> {
    // Before anything is covered or closed: the copies keep the present state.
    let copies = copies(view)?;
    let devices = Devices::take().map_err(ApplyError::step("get hold of the devices"))?;
    if !view.is_open() {
        make_all_read_only(own)
            .map_err(|error| ApplyError::step("make the file system read-only")(error.into()))?;
    }
    devices.mount(own).map_err(ApplyError::step("set up devices"))?;
    let mut covers = Vec::new();
    for (path, mode, copy) in copies {
        let placed = match copy {
            Some(copy) => place(&path, mode, &copy),
            None => hide(&path, view, &mut covers),
        };
        placed.map_err(|source| ApplyError::Place { path, source })?;
    }
    for cover in covers {
        close(&cover).map_err(|source| ApplyError::Place { path: cover, source })?;
    }
    devices::seal(own).map_err(ApplyError::step("close the devices"))
}

type Copy = (PathBuf, Mode, Option<OwnedFd>);

/// Each path of the view with a copy of its mount, unless it is hidden.
fn copies(view: &View) -> Result<Vec<Copy>, ApplyError> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    let places = view.iter().filter(|(path, _)| *path != Path::new("/"));
    let copies = places.map(|(path, mode)| {
        let copy = match mode {
            Mode::Hidden => None,
            _ => Some(open_tree(CWD, path, flags).map_err(|error| ApplyError::Place {
                path: path.to_owned(),
                source: error.into(),
            })?),
        };
        Ok((path.to_owned(), mode, copy))
    });
    copies.collect()
}

/// Mounts a copy at its original path, over whatever is there now.
fn place(path: &Path, mode: Mode, copy: &OwnedFd) -> io::Result<()> {
    if matches!(mode, Mode::ReadOnly | Mode::Shown) {
        system::make_read_only(copy.as_fd(), Reach::All)?;
    }
    // It can be missing only within a cover, or among the devices.
    if let Err(error) = fs::symlink_metadata(path)
        && error.kind() == io::ErrorKind::NotFound
    {
        let is_directory = File::from(copy.try_clone()?).metadata()?.is_dir();
        create(path, is_directory)?;
    }
    Ok(move_mount(copy, c"", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

fn create(path: &Path, is_directory: bool) -> io::Result<()> {
    if is_directory {
        return fs::create_dir_all(path);
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    File::create(path).map(drop)
}

/// Covers a file or directory with one that cannot be read.
fn hide(path: &Path, view: &View, covers: &mut Vec<PathBuf>) -> io::Result<()> {
    let is_directory = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata.is_dir(),
        // A device that the machine has and this view lacks.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !is_directory {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let unreadable = open_tree(CWD, devices::UNREADABLE, flags)?;
        system::make_read_only(unreadable.as_fd(), Reach::One)?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        return Ok(move_mount(unreadable, c"", CWD, path, flags)?);
    }
    let options = if view.has_within(path) { c"mode=755,size=1m" } else { c"mode=000,size=4k" };
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(c"tmpfs", path, c"tmpfs", flags, Some(options))?;
    covers.push(path.to_owned());
    Ok(())
}

/// Makes a cover read-only: nothing can be added any more.
fn close(cover: &Path) -> io::Result<()> {
    let mount = open_tree(CWD, cover, OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    Ok(system::make_read_only(mount.as_fd(), Reach::One)?)
}
