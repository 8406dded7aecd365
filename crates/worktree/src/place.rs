//! The place of a worktree, and the place where it is built.
//!
//! A command of another agent may exchange a directory of a checkout for a link at any moment. So the path of a worktree is
//! opened without a link on the way, and git works in the directory that was opened. Git itself looks its path up once more
//! when it starts, so a worktree gets its files within the git directory, which the sandbox keeps from all commands, and is moved
//! to its place whole.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use centurion_files::{Directory, is_link_refusal, private};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, StatxFlags, linkat, openat, renameat_with, statx,
};
use rustix::io::Errno;

use crate::checkout::{Checkout, WORKTREES};
use crate::create::CreateError;
use crate::names::shown;
use crate::record::Kept;
use crate::slug::Slug;

/// Opens the top directory of a checkout, or one below it. From the directory of worktrees on, no link is followed.
pub(crate) fn open(directory: &Path) -> io::Result<Directory> {
    let is_above = |above: &&Path| directory.starts_with(above.join(WORKTREES));
    let all: Vec<&Path> = directory.ancestors().filter(is_above).collect();
    let home = all.last().copied().unwrap_or(directory);
    let below = directory.strip_prefix(home).unwrap_or(Path::new(""));
    let opened = home.canonicalize().and_then(|home| Directory::open(&home.join(below)));
    opened.map_err(|error| {
        let text = if is_link_refusal(&error) {
            "a link is on the way, which is not followed".to_owned()
        } else {
            error.to_string()
        };
        io::Error::new(error.kind(), format!("{}: {text}", shown(directory)))
    })
}

/// The path of a worktree: in a directory below those of the repository, and no link on the way.
pub(crate) fn prepare(from: &Checkout, slug: &Slug) -> Result<PathBuf, CreateError> {
    let mut path = from.home.clone();
    let mut above = open(&path).map_err(CreateError::files(&path))?;
    for name in Path::new(WORKTREES) {
        path.push(name);
        match fs::create_dir(above.at(name)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(CreateError::files(&path)(error));
            }
            _ => {}
        }
        above = above.directory(Path::new(name)).map_err(|error| {
            if is_link_refusal(&error) {
                CreateError::Link(path.clone())
            } else {
                CreateError::files(&path)(error)
            }
        })?;
    }
    // Worktrees are no part of the checkout around them. This file leaves itself out, too.
    let ignore = path.join(".gitignore");
    if !above.at(".gitignore").exists()
        && link_whole(&above, ".gitignore").is_err()
        && let Err(error) = centurion_files::create(&ignore, b"*\n")
        && !ignore.exists()
    {
        return Err(CreateError::files(&ignore)(io::Error::other(error)));
    }
    path.push(slug.as_str());
    match fs::symlink_metadata(above.at(slug.as_str())) {
        Ok(metadata) if metadata.is_symlink() => Err(CreateError::Link(path)),
        _ => Ok(path),
    }
}

/// Makes the file that leaves out all names. A process that dies leaves nothing of it that git would show.
fn link_whole(directory: &Directory, name: &str) -> io::Result<()> {
    let mode = Mode::from_raw_mode(0o644);
    let flags = OFlags::TMPFILE | OFlags::WRONLY;
    let file = File::from(openat(CWD, directory.at(""), flags, mode)?);
    (&file).write_all(b"*\n")?;
    let own = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, own, CWD, directory.at(name), AtFlags::SYMLINK_FOLLOW)?)
}

/// A worktree that gets its files.
#[derive(Debug)]
pub(crate) struct Building {
    /// Its directory until it is whole.
    at: PathBuf,
    place: PathBuf,
}

impl Building {
    pub(crate) fn new(kept: &Kept, place: &Path) -> io::Result<Self> {
        let above = kept.building();
        private::create_directory(&above)?;
        let is_near = place.parent().is_some_and(|to| is_one_mount(&above, to));
        // From a git directory on another file system, nothing can be moved.
        let name = place.file_name().filter(|_| is_near);
        let at = name.map_or_else(|| place.to_owned(), |name| above.join(name));
        Ok(Self { at, place: place.to_owned() })
    }

    pub(crate) fn at(&self) -> &Path {
        &self.at
    }

    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    pub(crate) fn is_in_place(&self) -> bool {
        self.at == self.place
    }

    /// Makes its directory, which is opened then.
    pub(crate) fn make(&self) -> io::Result<Directory> {
        let (Some(above), Some(name)) = (self.at.parent(), self.at.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let above = open(above)?;
        fs::create_dir(above.at(name))?;
        above.directory(Path::new(name))
    }

    /// Moves it to its place, if that is free.
    pub(crate) fn finish(self) -> io::Result<()> {
        let (Some(above), Some(to)) = (self.at.parent(), self.place.parent()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        if !self.is_in_place() {
            let name = self.at.file_name().unwrap_or_default();
            let (from, to) = (open(above)?, open(to)?);
            let (from, to) = (from.at(name), to.at(name));
            match renameat_with(CWD, &from, CWD, &to, RenameFlags::NOREPLACE) {
                // A file system that cannot rename so. It replaces nothing but an empty directory.
                Err(Errno::INVAL | Errno::NOSYS) => fs::rename(from, to)?,
                renamed => renamed?,
            }
            fs::remove_dir(above)?;
        }
        Ok(())
    }
}

/// Checks that directories can be moved from one to the other.
fn is_one_mount(one: &Path, other: &Path) -> bool {
    let look = |path: &Path| {
        let flags = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, flags).ok()?;
        // Older kernels do not say which mount it is.
        let knows = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        Some((found.stx_dev_major, found.stx_dev_minor, knows.then_some(found.stx_mnt_id)))
    };
    look(one).is_some_and(|one| look(other) == Some(one))
}
