//! The location of a present or future file: an opened directory, and a name in it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, Stat, mkdirat, statat};
use rustix::io::Errno;

use crate::open::{open, open_below};
use crate::regular::{OpenError, READ, check_regular};

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// A name in an opened directory. Links that appear on the way to it later change nothing.
#[derive(Debug)]
pub struct Location {
    directory: OwnedFd,
    path: PathBuf,
}

impl Location {
    /// The location of an absolute path without links, whose directory exists.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (directory, _) = split(path)?;
        let directory = open(directory, DIRECTORY, Mode::empty())?;
        Ok(Self { directory, path: path.to_owned() })
    }

    /// The same, where missing directories are made.
    pub fn make(path: &Path) -> io::Result<Self> {
        let (directory, _) = split(path)?;
        let opened = match open(directory, DIRECTORY, Mode::empty()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => make_directories(directory)?,
            opened => opened?,
        };
        Ok(Self { directory: opened, path: path.to_owned() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the regular file that is here for reading.
    pub fn open_regular(&self) -> Result<File, OpenError> {
        // As with any path: not even opened when it is known to be a device.
        let name = Path::new(self.name());
        let kind = rustix::fs::FileType::from_raw_mode(self.stat()?.st_mode);
        let flags = match kind {
            rustix::fs::FileType::RegularFile | rustix::fs::FileType::Symlink => READ,
            _ => OFlags::PATH,
        };
        let file = File::from(open_below(&self.directory, name, flags, Mode::empty())?);
        check_regular(&file.metadata()?)?;
        Ok(file)
    }

    /// The metadata of the file here; of a link, those of the link.
    pub(crate) fn stat(&self) -> io::Result<Stat> {
        Ok(statat(&self.directory, self.name(), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    pub(crate) fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }
}

/// The directory of a path, and the name in it.
fn split(path: &Path) -> io::Result<(&Path, &OsStr)> {
    match (path.parent(), path.file_name()) {
        (Some(directory), Some(name)) => Ok((directory, name)),
        _ => Err(io::ErrorKind::IsADirectory.into()),
    }
}

/// Makes what is missing of a directory, one name after the other, each in the one before.
fn make_directories(path: &Path) -> io::Result<OwnedFd> {
    let mut current = open(Path::new("/"), DIRECTORY, Mode::empty())?;
    for name in path.components().skip(1) {
        let name = Path::new(name.as_os_str());
        let opened = match open_below(&current, name, DIRECTORY, Mode::empty()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match mkdirat(&current, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                open_below(&current, name, DIRECTORY, Mode::empty())
            }
            opened => opened,
        };
        current = opened?;
    }
    Ok(current)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::is_link_refusal;

    #[test]
    fn missing_directories_are_made_and_no_link_is_passed() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("outside")).unwrap();
        fs::create_dir_all(root.join("in/real")).unwrap();
        symlink("../outside", root.join("in/link")).unwrap();
        symlink("../outside/new", root.join("in/dangling")).unwrap();
        Location::make(&root.join("in/real/a/b/c/file")).unwrap();
        assert!(root.join("in/real/a/b/c").is_dir());
        for bad in ["in/link/a/file", "in/link/file", "in/dangling/a/file", "in/dangling/file"] {
            let error = Location::make(&root.join(bad)).unwrap_err();
            assert!(is_link_refusal(&error), "{bad}: {error}");
        }
        assert_eq!(fs::read_dir(root.join("outside")).unwrap().count(), 0);
        fs::write(root.join("file"), "").unwrap();
        let error = Location::make(&root.join("file/a/b")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
        let error = Location::open(&root.join("none/b")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(Location::open(Path::new("/")).unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }
}
