//! A file written as a whole: readers see the old content or the new, never a part.
//!
//! A file with several names is the exception: a new file in its place would part them, so it is written
//! [where it is](crate::in_place), unless the caller wants them [parted](replace_alone).
//!
//! Not synced to the platter: a crash of the machine may lose the change, as with any editor's save, but
//! a sync for each edit costs more than all the rest of a call.

use std::fs::{File, Metadata, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Mode, accessat, unlinkat};
use thiserror::Error;

use crate::in_place::write_in_place;
use crate::temporary::{Holds, Temporary};
use crate::{Location, is_link_refusal};

/// The number of bytes that are compared at once.
const PIECE: usize = 64 * 1024;

/// A file that is about to be changed: still open, with what was read of it.
#[derive(Debug)]
pub struct Existing {
    pub location: Location,
    pub file: File,
    pub metadata: Metadata,
    pub bytes: Vec<u8>,
}

/// The reason that a file was not written.
#[derive(Debug, Error)]
pub enum ReplaceError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Another content, or another file, than the one that was read.
    #[error("the file has changed since it was read")]
    Changed,
    /// A file that was not there before.
    #[error("a file has appeared there")]
    Appeared,
    /// Writing in place failed, and so did putting the old content back.
    #[error("{source}, and the old content could not be put back")]
    Torn {
        source: io::Error,
        /// The path of the old content.
        saved: Option<PathBuf>,
    },
}

/// Creates the file at an absolute path without links, with the directories that are missing.
pub fn create(path: &Path, bytes: &[u8]) -> Result<(), ReplaceError> {
    create_with_mode(path, bytes, None)
}

/// The same with a mode, which it has from its first moment.
pub fn create_with_mode(path: &Path, bytes: &[u8], mode: Option<u32>) -> Result<(), ReplaceError> {
    let location = Location::make(path)?;
    let usual = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let first = if mode.is_some() { Mode::RUSR | Mode::WUSR } else { usual };
    let mut temporary = Temporary::create(&location, first, Holds::New)?;
    temporary.file.write_all(bytes)?;
    if let Some(mode) = mode {
        temporary.file.set_permissions(Permissions::from_mode(mode))?;
    }
    temporary.settle().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => ReplaceError::Appeared,
        _ => ReplaceError::Io(error),
    })
}

/// Puts `bytes` in the place of what was read. Mode, owner and names stay.
pub fn replace(existing: &Existing, bytes: &[u8]) -> Result<(), ReplaceError> {
    existing.check_writable()?;
    if existing.metadata.nlink() > 1 {
        return write_in_place(existing, bytes);
    }
    match replace_by_rename(existing, bytes) {
        Err(ReplaceError::Io(error)) if must_write_in_place(&error) => {
            write_in_place(existing, bytes)
        }
        result => result,
    }
}

/// The same for this name alone: where the file has other names, they keep the old content.
pub fn replace_alone(existing: &Existing, bytes: &[u8]) -> Result<(), ReplaceError> {
    existing.check_writable()?;
    match replace_by_rename(existing, bytes) {
        Err(ReplaceError::Io(error))
            if must_write_in_place(&error) && existing.file.metadata()?.nlink() == 1 =>
        {
            write_in_place(existing, bytes)
        }
        result => result,
    }
}

fn replace_by_rename(existing: &Existing, bytes: &[u8]) -> Result<(), ReplaceError> {
    let metadata = &existing.metadata;
    // The replacement must not be readable by more people, not even for a moment.
    let (location, mode) = (&existing.location, Mode::RUSR | Mode::WUSR);
    let mut temporary = Temporary::create(location, mode, Holds::New)?;
    temporary.file.write_all(bytes)?;
    let own = temporary.file.metadata()?;
    if (own.uid(), own.gid()) != (metadata.uid(), metadata.gid()) {
        // Only root can give files away; for others the new file is simply theirs.
        let _ = fchown(&temporary.file, Some(metadata.uid()), Some(metadata.gid()));
    }
    temporary.file.set_permissions(metadata.permissions())?;
    existing.check_unchanged()?;
    Ok(temporary.replace()?)
}

/// The directory lets nothing be created or moved, as around a single mounted file.
fn must_write_in_place(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, ResourceBusy};
    matches!(error.kind(), PermissionDenied | ResourceBusy | CrossesDevices)
}

impl Existing {
    /// Removes the file, if it is still what was read.
    pub fn remove(&self) -> Result<(), ReplaceError> {
        self.check_unchanged()?;
        let location = &self.location;
        unlinkat(location.directory(), location.name(), AtFlags::empty())
            .map_err(io::Error::from)?;
        Ok(())
    }

    /// A rename asks the directory for permission, not the file: this asks the file.
    fn check_writable(&self) -> io::Result<()> {
        let location = &self.location;
        Ok(accessat(location.directory(), location.name(), Access::WRITE_OK, AtFlags::empty())?)
    }

    /// Whether what would be written over is what was read: the same file under the same name, with the same
    /// content.
    pub(crate) fn check_unchanged(&self) -> Result<(), ReplaceError> {
        let stat = match self.location.stat() {
            Ok(stat) => stat,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ReplaceError::Changed);
            }
            Err(error) if is_link_refusal(&error) => return Err(ReplaceError::Changed),
            Err(error) => return Err(error.into()),
        };
        let is_same = (stat.st_dev, stat.st_ino) == (self.metadata.dev(), self.metadata.ino());
        if is_same && self.has_same_content()? { Ok(()) } else { Err(ReplaceError::Changed) }
    }

    fn has_same_content(&self) -> io::Result<bool> {
        let mut piece = vec![0; PIECE.min(self.bytes.len() + 1)];
        let mut rest = self.bytes.as_slice();
        let mut at = 0;
        loop {
            let count = self.file.read_at(&mut piece, at)?;
            if count == 0 {
                return Ok(rest.is_empty());
            }
            match rest.strip_prefix(piece.get(..count).unwrap_or_default()) {
                Some(after) => rest = after,
                None => return Ok(false),
            }
            at += count as u64;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    pub(crate) fn existing(path: &Path) -> Existing {
        let location = Location::open(path).unwrap();
        let file = location.open_regular().unwrap();
        let metadata = file.metadata().unwrap();
        Existing { bytes: fs::read(path).unwrap(), location, file, metadata }
    }

    fn scratch() -> (tempfile::TempDir, PathBuf) {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        (scratch, root)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn replacing_keeps_the_mode_and_leaves_nothing_behind() {
        let (_scratch, root) = scratch();
        let path = root.join("run.sh");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
        replace(&existing(&path), b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(mode(&path), 0o750);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
    }

    #[test]
    fn a_new_file_gets_its_directories_and_an_ordinary_mode() {
        let (_scratch, root) = scratch();
        let path = root.join("a/b/c.txt");
        create(&path, b"x").unwrap();
        assert_eq!(mode(&path) & !0o644, 0);
        assert_eq!(mode(&path) & 0o600, 0o600);
    }

    #[test]
    fn a_file_that_appeared_meanwhile_is_not_replaced() {
        let (_scratch, root) = scratch();
        let path = root.join("f");
        fs::write(&path, "another's").unwrap();
        assert!(matches!(create(&path, b"x"), Err(ReplaceError::Appeared)));
        fs::remove_file(&path).unwrap();
        symlink("elsewhere", &path).unwrap();
        assert!(matches!(create(&path, b"x"), Err(ReplaceError::Appeared)));
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
    }

    #[test]
    fn what_is_written_over_is_what_was_read() {
        let (_scratch, root) = scratch();
        let path = root.join("f");
        #[expect(clippy::type_complexity, reason = "a table of names and changes")]
        let changes: [(&str, fn(&Path)); 5] = [
            ("content", |path| fs::write(path, "two").unwrap()),
            ("length", |path| fs::write(path, "one more").unwrap()),
            ("another file with the same content", |path| {
                fs::write(path.with_extension("new"), "one").unwrap();
                fs::rename(path.with_extension("new"), path).unwrap();
            }),
            ("a link", |path| {
                fs::remove_file(path).unwrap();
                symlink("g", path).unwrap();
            }),
            ("nothing", |path| fs::remove_file(path).unwrap()),
        ];
        for (what, change) in changes {
            for names in [1, 2] {
                let _ = fs::remove_file(&path);
                let _ = fs::remove_file(root.join("other"));
                fs::write(root.join("g"), "one").unwrap();
                fs::write(&path, "one").unwrap();
                if names == 2 {
                    fs::hard_link(&path, root.join("other")).unwrap();
                }
                let read = existing(&path);
                change(&path);
                let now = fs::read(&path).ok();
                let error = replace(&read, b"mine").unwrap_err();
                assert!(
                    matches!(error, ReplaceError::Changed)
                        || what == "nothing" && matches!(&error, ReplaceError::Io(_)),
                    "{what}: {error:?}"
                );
                assert_eq!(fs::read(&path).ok(), now, "{what}");
                assert_eq!(fs::read(root.join("g")).unwrap(), b"one", "{what}");
            }
        }
    }

    #[test]
    fn a_directory_exchanged_for_a_link_between_reading_and_writing_does_not_matter() {
        let (_scratch, root) = scratch();
        for name in ["in", "out"] {
            fs::create_dir(root.join(name)).unwrap();
            fs::write(root.join(name).join("f"), name).unwrap();
        }
        let read = existing(&root.join("in/f"));
        fs::rename(root.join("in"), root.join("moved")).unwrap();
        symlink("out", root.join("in")).unwrap();
        replace(&read, b"new").unwrap();
        assert_eq!(fs::read_to_string(root.join("out/f")).unwrap(), "out");
        assert_eq!(fs::read_to_string(root.join("moved/f")).unwrap(), "new");
    }
}
