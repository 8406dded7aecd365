//! A file that is on its way to its place: beside it, under a name of its own, gone unless it arrives.
//!
//! A process that is killed leaves it behind. So it is locked for as long as its process lives, and each process
//! removes the unlocked ones from a directory before it puts a first one there.

use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use parking_lot::Mutex;
use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, openat,
    renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::Location;

/// The number of names that are tried.
const ATTEMPTS: usize = 16;

const PREFIX: &str = ".centurion-";

/// The most names of a directory that are looked at for what dead processes left.
const MOST_NAMES: usize = 20_000;

/// The directories that this process has cleaned, by device and file number.
static CLEANED: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());

/// The content of a temporary file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// The new content, on its way to its place. Worth nothing without the process that writes it.
    New,
    /// The old content, while the file itself is written to. If the process dies then, it is the only whole one.
    Old,
}

impl Holds {
    fn suffix(self) -> &'static str {
        match self {
            Self::New => ".new",
            Self::Old => ".old",
        }
    }
}

/// A new file in the directory of a location.
pub(crate) struct Temporary<'l> {
    beside: &'l Location,
    name: OsString,
    pub(crate) file: File,
    is_settled: bool,
}

impl<'l> Temporary<'l> {
    pub(crate) fn create(beside: &'l Location, mode: Mode, holds: Holds) -> io::Result<Self> {
        clean_once(beside.directory());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..ATTEMPTS {
            // The hasher has random keys: names that another process cannot take before.
            let random = RandomState::new().build_hasher().finish();
            let name = OsString::from(format!("{PREFIX}{random:016x}{}", holds.suffix()));
            match openat(beside.directory(), &name, flags, mode) {
                Ok(file) if is_taken(&file) => {}
                Ok(file) => return Ok(Self { beside, name, file: file.into(), is_settled: false }),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Takes the place of what is at the location.
    pub(crate) fn replace(mut self) -> io::Result<()> {
        let directory = self.beside.directory();
        renameat(directory, &self.name, directory, self.beside.name())?;
        self.arrive();
        Ok(())
    }

    /// Takes the place at the location, at which there must be nothing.
    pub(crate) fn settle(mut self) -> io::Result<()> {
        let directory = self.beside.directory();
        let name = self.beside.name();
        match renameat_with(directory, &self.name, directory, name, RenameFlags::NOREPLACE) {
            // Some file systems cannot.
            Err(Errno::INVAL | Errno::NOSYS) => match self.beside.stat() {
                Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
                Err(_) => renameat(directory, &self.name, directory, name)?,
            },
            renamed => renamed?,
        }
        self.arrive();
        Ok(())
    }

    /// It is the file now, and no longer ours to lock. A process that is being started has a copy of every open file
    /// for a moment, so that closing it would not be enough.
    fn arrive(&mut self) {
        self.is_settled = true;
        let _ = flock(&self.file, FlockOperation::Unlock);
    }

    /// Leaves the file where it is; where that is.
    pub(crate) fn keep(mut self) -> PathBuf {
        self.is_settled = true;
        self.beside.path().with_file_name(&self.name)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.is_settled {
            // The error that matters is the one that came before.
            let _ = unlinkat(self.beside.directory(), &self.name, AtFlags::empty());
        }
    }
}

/// Locks a file that was just made. Whether another process took it for one of a dead process, and removes it.
fn is_taken(file: &OwnedFd) -> bool {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => fstat(file).is_ok_and(|stat| stat.st_nlink == 0),
        // A file system without locks: what cannot be locked is never removed.
        Err(error) => error == Errno::WOULDBLOCK,
    }
}

/// Removes what dead processes left in a directory, unless this process has done so before. No error of it matters to
/// the file that is written.
fn clean_once(directory: BorrowedFd<'_>) {
    let Ok(stat) = fstat(directory) else { return };
    #[expect(clippy::useless_conversion, reason = "the types differ between systems")]
    let id = (u64::from(stat.st_dev), u64::from(stat.st_ino));
    if CLEANED.lock().insert(id) {
        let _ = clean(directory);
    }
}

fn clean(directory: BorrowedFd<'_>) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    for entry in Dir::new(openat(directory, ".", flags, Mode::empty())?)?.take(MOST_NAMES) {
        let entry = entry?;
        let name = entry.file_name();
        if is_name_of_new(name.to_bytes()) {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            if let Ok(file) = openat(directory, name, flags, Mode::empty())
                && is_left(&file)
            {
                unlinkat(directory, name, AtFlags::empty())?;
            }
        }
    }
    Ok(())
}

fn is_name_of_new(name: &[u8]) -> bool {
    let random = name.strip_prefix(PREFIX.as_bytes());
    let random = random.and_then(|rest| rest.strip_suffix(Holds::New.suffix().as_bytes()));
    random.is_some_and(|it| it.len() == 16 && it.iter().all(u8::is_ascii_hexdigit))
}

/// Whether it is a file of this user that no process holds. Locks it, so that none takes it from now on.
fn is_left(file: &OwnedFd) -> bool {
    let is_own = fstat(file).is_ok_and(|stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_nlink == 1
            && stat.st_uid == geteuid().as_raw()
    });
    is_own && flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;
    use crate::create;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|it| it.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_process_left_goes_with_the_next_file_and_what_a_live_one_writes_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let left = ".centurion-0123456789abcdef.new";
        fs::write(root.join(left), "half of i").unwrap();
        // Another test of this process may have had a directory of the same number.
        CLEANED.lock().clear();
        create(&root.join("a"), b"x").unwrap();
        assert_eq!(names(&root), ["a"]);
        // One of a live process, and things that only look like one.
        let location = Location::open(&root.join("b")).unwrap();
        let live = Temporary::create(&location, Mode::RUSR | Mode::WUSR, Holds::New).unwrap();
        let live_name = live.name.to_str().unwrap().to_owned();
        fs::write(root.join(left), "half of i").unwrap();
        fs::write(root.join(".centurion-0123456789abcdef.old"), "the only whole one").unwrap();
        fs::write(root.join(".centurion-notes.new"), "a user's").unwrap();
        fs::write(root.join(".centurion-0123456789abcdef"), "of another version").unwrap();
        fs::create_dir(root.join(".centurion-1111111111111111.new")).unwrap();
        symlink("a", root.join(".centurion-2222222222222222.new")).unwrap();
        fs::write(root.join("c"), "").unwrap();
        fs::hard_link(root.join("c"), root.join(".centurion-3333333333333333.new")).unwrap();
        let mut kept = names(&root);
        kept.retain(|name| name != left);
        clean(location.directory()).unwrap();
        assert_eq!(names(&root), kept);
        assert!(kept.contains(&live_name));
        live.replace().unwrap();
        assert!(root.join("b").exists() && !root.join(&live_name).exists());
    }

    #[test]
    fn a_file_that_another_process_takes_for_a_dead_ones_is_made_again() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().canonicalize().unwrap().join("f");
        let open = || OwnedFd::from(File::create(&path).unwrap());
        let (own, other) = (open(), open());
        assert!(is_left(&other), "as the other process does in the moment before it is locked");
        assert!(is_taken(&own), "while the other holds it");
        fs::remove_file(&path).unwrap();
        drop(other);
        assert!(is_taken(&own), "when the other has removed it");
        assert!(!is_taken(&open()));
    }

    #[test]
    fn a_file_that_arrived_is_not_locked() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().canonicalize().unwrap().join("f");
        let location = Location::open(&path).unwrap();
        let temporary = Temporary::create(&location, Mode::RUSR | Mode::WUSR, Holds::New).unwrap();
        let copy = temporary.file.try_clone().unwrap();
        temporary.settle().unwrap();
        assert!(File::open(&path).unwrap().try_lock().is_ok(), "a copy of it is open: {copy:?}");
    }
}
