//! The directory of sockets, held open: it stays the checked one, and the length of its path does not matter.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use centurion_files::private;
use rustix::fs::{AtFlags, FlockOperation, OFlags, RawDir, SeekFrom, flock, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::SocketError;

/// The time to wait for another process that changes the directory. No change takes longer than a few system calls.
const PATIENCE: Duration = Duration::from_secs(2);
/// The interval of attempts to get the lock.
const TRY_AGAIN: Duration = Duration::from_millis(1);
/// Room for some hundred names in one call.
const BUFFER: usize = 16 * 1024;

#[expect(clippy::cast_possible_wrap, reason = "the flags are small")]
const FLAGS: i32 = (OFlags::DIRECTORY.bits() | OFlags::NOFOLLOW.bits()) as i32;

/// A directory of sockets that only its owner may enter.
#[derive(Clone, Debug)]
pub struct SocketDirectory {
    descriptor: Arc<OwnedFd>,
    path: PathBuf,
}

/// Guard: no other process adds or removes sockets of the directory.
pub(super) struct Changing {
    /// Opened for this lock alone: two holders in one process exclude each other, too.
    descriptor: OwnedFd,
}

impl Drop for Changing {
    fn drop(&mut self) {
        // Closing it releases the lock at the latest.
        let _ = flock(&self.descriptor, FlockOperation::Unlock);
    }
}

impl SocketDirectory {
    /// Opens the directory, makes it if it is missing, and checks that it is private.
    pub fn open(path: &Path) -> Result<Self, SocketError> {
        let fault = |source| SocketError::Directory { path: path.to_owned(), source };
        private::create_directory(path).map_err(fault)?;
        Self::open_existing(path)
    }

    /// Opens the directory if there is one, and checks that it is private.
    pub fn open_existing(path: &Path) -> Result<Self, SocketError> {
        let directory = open(path)?;
        let metadata = directory
            .metadata()
            .map_err(|source| SocketError::Directory { path: path.to_owned(), source })?;
        if metadata.uid() != geteuid().as_raw() {
            return Err(SocketError::ForeignDirectory(path.to_owned()));
        }
        if metadata.mode() & 0o077 != 0 {
            return Err(SocketError::OpenDirectory(path.to_owned()));
        }
        Ok(Self { descriptor: Arc::new(directory.into()), path: path.to_owned() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a socket through the open directory. It is short, however long the directory's own path is.
    pub(super) fn address(&self, name: &str) -> Result<PathBuf, SocketError> {
        check_name(name)?;
        Ok(PathBuf::from(format!("/proc/self/fd/{}/{name}", self.descriptor.as_raw_fd())))
    }

    /// The names in the directory without hidden ones, in no order, at most this many.
    pub fn names(&self, most: usize) -> Result<Vec<String>, SocketError> {
        // A position of its own: two concurrent listings do not disturb each other.
        let directory = OwnedFd::from(open(&self.path_by_descriptor())?);
        let read = || -> Result<Vec<String>, Errno> {
            rustix::fs::seek(&directory, SeekFrom::Start(0))?;
            let mut buffer = Vec::with_capacity(BUFFER);
            let mut entries = RawDir::new(&directory, buffer.spare_capacity_mut());
            let mut names = Vec::new();
            while let Some(entry) = entries.next() {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_str();
                names.extend(name.filter(|name| !name.starts_with('.')).map(str::to_owned));
                if names.len() >= most {
                    break;
                }
            }
            Ok(names)
        };
        read().map_err(|error| self.fault(error))
    }

    /// Locks the directory against changes of other processes until the result is dropped. It may block, so it must not
    /// run on a thread of the runtime.
    pub(super) fn change(&self) -> Result<Changing, SocketError> {
        self.change_within(PATIENCE)
    }

    /// The same without waiting.
    pub(super) fn change_now(&self) -> Result<Changing, SocketError> {
        self.change_within(Duration::ZERO)
    }

    fn change_within(&self, patience: Duration) -> Result<Changing, SocketError> {
        let descriptor = OwnedFd::from(open(&self.path_by_descriptor())?);
        let until = Instant::now() + patience;
        loop {
            match flock(&descriptor, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Changing { descriptor }),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => {
                    std::thread::sleep(TRY_AGAIN);
                }
                Err(Errno::WOULDBLOCK) => return Err(SocketError::Held(self.path.clone())),
                Err(error) => return Err(self.fault(error)),
            }
        }
    }

    /// The file with this name now: the number of its device and its own.
    pub(super) fn file(&self, name: &str) -> Result<(u64, u64), SocketError> {
        let found = statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW);
        let stat = found.map_err(|error| self.fault(error))?;
        #[expect(clippy::useless_conversion, reason = "the types differ between systems")]
        Ok((stat.st_dev.into(), stat.st_ino.into()))
    }

    /// Removes a name.
    pub(super) fn remove(&self, name: &str, _: &Changing) -> Result<(), SocketError> {
        check_name(name)?;
        match unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.fault(error)),
        }
    }

    fn path_by_descriptor(&self) -> PathBuf {
        // The dot makes it a directory of its own: the last name is not followed if it is a link.
        PathBuf::from(format!("/proc/self/fd/{}/.", self.descriptor.as_raw_fd()))
    }

    fn fault(&self, error: Errno) -> SocketError {
        SocketError::Directory { path: self.path.clone(), source: error.into() }
    }
}

fn open(path: &Path) -> Result<File, SocketError> {
    let opened = OpenOptions::new().read(true).custom_flags(FLAGS).open(path);
    opened.map_err(|source| match Errno::from_io_error(&source) {
        Some(Errno::NOTDIR | Errno::LOOP) => SocketError::NoDirectory(path.to_owned()),
        _ => SocketError::Directory { path: path.to_owned(), source },
    })
}

/// Checks a name. Names come from ids; a name that could lead elsewhere never becomes a path.
fn check_name(name: &str) -> Result<(), SocketError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let fits = !name.is_empty() && name.len() <= 64 && !name.starts_with('.');
    if fits && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(SocketError::Name(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_a_private_directory_of_our_own_is_used() {
        let scratch = tempfile::tempdir().unwrap();
        let made = scratch.path().join("a/b/sockets");
        SocketDirectory::open(&made).unwrap();
        assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&made, Permissions::from_mode(0o750)).unwrap();
        let error = SocketDirectory::open(&made).unwrap_err();
        assert!(matches!(error, SocketError::OpenDirectory(_)), "{error}");
        fs::set_permissions(&made, Permissions::from_mode(0o700)).unwrap();
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(&made, &link).unwrap();
        let error = SocketDirectory::open(&link).unwrap_err();
        assert!(matches!(error, SocketError::NoDirectory(_)), "{error}");
        let file = scratch.path().join("file");
        fs::write(&file, "").unwrap();
        let error = SocketDirectory::open_existing(&file).unwrap_err();
        assert!(matches!(error, SocketError::NoDirectory(_)), "{error}");
        let foreign = SocketDirectory::open_existing(Path::new("/"));
        assert!(foreign.is_err(), "it is open to all, or another user's");
    }

    #[test]
    fn no_name_leads_out_of_the_directory() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = SocketDirectory::open(&scratch.path().join("s")).unwrap();
        for name in ["", ".", "..", "../x", "a/b", ".hidden", "a\0b", "a b", &"x".repeat(65)] {
            assert!(matches!(directory.address(name), Err(SocketError::Name(_))), "{name:?}");
        }
        assert!(directory.address("7b5e1e6e-8d6c.sock").is_ok());
    }

    #[test]
    fn the_directory_stays_the_one_that_was_checked() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("s");
        let directory = SocketDirectory::open(&path).unwrap();
        fs::write(path.join("one"), "").unwrap();
        fs::rename(&path, scratch.path().join("moved")).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("two"), "").unwrap();
        assert_eq!(directory.names(10).unwrap(), ["one"]);
    }
}
