//! An opened directory: what is in it, and what is below it.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, SeekFrom, Stat, statat};

use crate::open::{open, open_below};
use crate::regular::{OpenError, READ, check_regular};

/// Room for about a thousand names in one call.
const BUFFER: usize = 32 * 1024;

/// A directory that stays the one that was opened, whatever its path comes to mean.
#[derive(Debug)]
pub struct Directory {
    descriptor: OwnedFd,
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub name: OsString,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    Link,
    /// A pipe, a socket or a device.
    Other,
}

impl Directory {
    /// Opens the directory at an absolute path without links.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        Ok(Self { descriptor: open(path, flags, Mode::empty())? })
    }

    /// Opens a directory below this one; the empty path is this one again.
    pub fn directory(&self, below: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        Ok(Self { descriptor: open_below(&self.descriptor, below, flags, Mode::empty())? })
    }

    /// A path to a name in this directory, for as long as it is open: whatever its own path comes to mean.
    pub fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        Path::new("/proc/self/fd").join(self.descriptor.as_raw_fd().to_string()).join(name)
    }

    /// Opens a regular file below this directory for reading, without ever waiting.
    pub fn regular_file(&self, below: &Path) -> Result<(File, Metadata), OpenError> {
        let file = File::from(open_below(&self.descriptor, below, READ, Mode::empty())?);
        let metadata = file.metadata()?;
        check_regular(&metadata)?;
        Ok((file, metadata))
    }

    /// Lists the directory, in no order, at most `limit` entries.
    pub fn list(&self, limit: usize) -> io::Result<Vec<Listed>> {
        // The position belongs to the descriptor: a second listing begins again.
        rustix::fs::seek(&self.descriptor, SeekFrom::Start(0))?;
        let mut buffer = Vec::with_capacity(BUFFER);
        let mut entries = RawDir::new(&self.descriptor, buffer.spare_capacity_mut());
        let mut listed = Vec::new();
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                // Not every file system says it.
                FileType::Unknown => match self.stat(name) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(_) => continue,
                },
                known => known,
            };
            listed.push(Listed { name: name.to_owned(), kind: kind.into() });
            if listed.len() >= limit {
                break;
            }
        }
        Ok(listed)
    }

    /// The metadata of a name in the directory; of a link, those of the link.
    pub fn stat(&self, name: &OsStr) -> io::Result<Stat> {
        Ok(statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

impl From<FileType> for Kind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::is_link_refusal;

    #[test]
    fn a_directory_is_listed_with_what_its_entries_are() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        fs::create_dir(root.join("sub")).unwrap();
        fs::write(root.join("file\nname"), "x").unwrap();
        symlink("sub", root.join("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("pipe"), Mode::RWXU).unwrap();
        let directory = Directory::open(&root).unwrap();
        let mut listed = directory.list(usize::MAX).unwrap();
        listed.sort_by(|one, two| one.name.cmp(&two.name));
        let kinds: Vec<_> = listed.iter().map(|it| (it.name.to_str().unwrap(), it.kind)).collect();
        assert_eq!(
            kinds,
            [
                ("file\nname", Kind::File),
                ("link", Kind::Link),
                ("pipe", Kind::Other),
                ("sub", Kind::Directory)
            ]
        );
        assert_eq!(directory.list(2).unwrap().len(), 2);
        for number in 0..3_000 {
            fs::write(root.join("sub").join(format!("{number:0>100}")), "").unwrap();
        }
        let sub = directory.directory(Path::new("sub")).unwrap();
        assert_eq!(sub.list(usize::MAX).unwrap().len(), 3_000);
        assert!(is_link_refusal(&directory.directory(Path::new("link")).unwrap_err()));
    }

    #[test]
    fn an_opened_directory_stays_itself_when_its_path_becomes_a_link() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        for (name, content) in [("mine", "mine"), ("other", "other")] {
            fs::create_dir(root.join(name)).unwrap();
            fs::write(root.join(name).join("file"), content).unwrap();
        }
        let directory = Directory::open(&root.join("mine")).unwrap();
        fs::rename(root.join("mine"), root.join("moved")).unwrap();
        symlink("other", root.join("mine")).unwrap();
        let (file, _) = directory.regular_file(Path::new("file")).unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "mine");
        assert!(is_link_refusal(&Directory::open(&root.join("mine")).unwrap_err()));
    }
}
