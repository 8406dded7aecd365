//! Small files of people: read whole and within bounds, replaced whole or not at all.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use centurion_files::{OpenError, Stat, open_followed, open_regular};
use thiserror::Error;

use crate::paths::repo_root;

/// A file of settings that is larger than this is something else.
pub(crate) const LARGEST_SETTINGS: u64 = 2 * 1024 * 1024;

/// The users who may read a file that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Its owner alone.
    Owner,
    /// All who may read the user's files in general.
    Usual,
}

impl Readers {
    /// The mode to make a file with, of which the process takes away what its user does not want.
    fn mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Usual => 0o666,
        }
    }
}

/// The most names that are tried for the file that will take another's place.
const ATTEMPTS: u32 = 64;

/// The reason why a file cannot be used.
#[derive(Debug, Error)]
pub enum FileError {
    #[error("cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    #[error("{0}")]
    Denied(String),
    #[error("is not a regular file")]
    NotRegular,
    #[error("is larger than {} MiB", .limit / 1024 / 1024)]
    TooLarge { limit: u64 },
    #[error("is not UTF-8")]
    NotText { line: usize },
    #[error("is not valid JSON: {reason} (column {column})")]
    Broken { line: usize, column: usize, reason: String },
    #[error("cannot be written: {0}")]
    Unwritable(#[source] io::Error),
}

impl FileError {
    /// The line that is wrong, where it is one.
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::NotText { line } | Self::Broken { line, .. } => Some(*line),
            _ => None,
        }
    }
}

impl From<OpenError> for FileError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Io(error) => Self::Unreadable(error),
            OpenError::NotRegular(_) => Self::NotRegular,
        }
    }
}

/// The values that tell one version of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// Catches what sets the time of modification back.
    changed: (i64, i64),
}

impl Stamp {
    /// The stamp of what is there now; `None` where nothing is, or nothing can be seen.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().as_ref().map(Self::from)
    }

    /// The numbers that it is made of.
    pub(crate) fn numbers(&self) -> [u64; 7] {
        let Self { device, inode, size, modified, changed } = *self;
        let times = [modified.0, modified.1, changed.0, changed.1].map(i64::cast_unsigned);
        [device, inode, size, times[0], times[1], times[2], times[3]]
    }

    /// The stamp that has these numbers.
    pub(crate) fn from_numbers(numbers: [u64; 7]) -> Self {
        let [device, inode, size, times @ ..] = numbers;
        let [modified, nanoseconds, changed, more] = times.map(u64::cast_signed);
        Self { device, inode, size, modified: (modified, nanoseconds), changed: (changed, more) }
    }

    /// The identity of the file, under all names by which it can be reached.
    pub(crate) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// The second of its last change. Clocks of file systems are coarse: what changes again right
    /// after it may keep its stamp.
    pub(crate) fn changed_at(&self) -> i64 {
        self.changed.0.max(self.modified.0)
    }
}

impl From<&Stat> for Stamp {
    fn from(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size.cast_unsigned(),
            modified: (stat.st_mtime, stat.st_mtime_nsec.cast_signed()),
            changed: (stat.st_ctime, stat.st_ctime_nsec.cast_signed()),
        }
    }
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// The remark about a link that is not followed.
pub(crate) const LEADS_OUT: &str =
    "is a link out of the project, and is not followed until the folder is trusted";

/// Whether a file that belongs to this directory of a project is reached by a link out of the project.
pub(crate) fn leads_out(path: &Path, directory: &Path) -> bool {
    let root = repo_root(directory).unwrap_or_else(|| directory.to_owned());
    match (path.canonicalize(), root.canonicalize()) {
        (Ok(real), Ok(root)) => !real.starts_with(root),
        _ => false,
    }
}

/// Reads a text; `None` where there is no file. The stamp is from before the reading, so that a
/// change meanwhile is seen later.
pub(crate) fn read(path: &Path, limit: u64) -> (Option<Stamp>, Result<Option<String>, FileError>) {
    // Looked at before it is opened: opening a pipe would wait for a writer.
    match fs::metadata(path) {
        Ok(metadata) => {
            (Some(Stamp::from(&metadata)), read_found(path, &metadata, limit).map(Some))
        }
        Err(error) if is_absence(&error) => (None, Ok(None)),
        Err(error) => (None, Err(FileError::Unreadable(error))),
    }
}

fn read_found(path: &Path, metadata: &Metadata, limit: u64) -> Result<String, FileError> {
    String::from_utf8(bytes_of(path, metadata, limit)?).map_err(|error| {
        let good = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
        FileError::NotText { line: 1 + good.filter(|byte| **byte == b'\n').count() }
    })
}

/// Reads the bytes of a file that has just been looked at.
pub(crate) fn bytes_of(path: &Path, metadata: &Metadata, limit: u64) -> Result<Vec<u8>, FileError> {
    if !metadata.is_file() {
        return Err(FileError::NotRegular);
    }
    if metadata.len() > limit {
        return Err(FileError::TooLarge { limit });
    }
    bytes_in(open_followed(path)?, limit)
}

/// The same of a file at a path without links, which is opened exactly there.
pub(crate) fn bytes_at(real: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    bytes_in(open_regular(real)?, limit)
}

/// The bytes of an opened file.
pub(crate) fn bytes_in(
    (file, metadata): (File, Metadata),
    limit: u64,
) -> Result<Vec<u8>, FileError> {
    if metadata.len() > limit {
        return Err(FileError::TooLarge { limit });
    }
    // Room for one more byte than there should be: the end is seen without another piece.
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default() + 1);
    file.take(limit + 1).read_to_end(&mut bytes).map_err(FileError::Unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(FileError::TooLarge { limit });
    }
    Ok(bytes)
}

pub(crate) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Makes a directory if need be, and keeps others who do the same out of it until the guard is
/// dropped. The directory itself is the lock, so that no file is left behind.
pub(crate) fn lock_directory(directory: &Path) -> Result<File, FileError> {
    fs::create_dir_all(directory).map_err(FileError::Unwritable)?;
    let guard = File::open(directory).map_err(FileError::Unwritable)?;
    guard.lock().map_err(FileError::Unwritable)?;
    Ok(guard)
}

/// Puts a text in the place of a file: a reader sees the old one or the new one. The mode of an
/// existing file stays, a new one is the owner's alone.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), FileError> {
    replace_for(path, text, Readers::Owner)
}

/// The same, with a say in who may read a new file.
pub(crate) fn replace_for(path: &Path, text: &str, readers: Readers) -> Result<(), FileError> {
    replace_with(path, text, readers).map_err(FileError::Unwritable)
}

fn replace_with(path: &Path, text: &str, readers: Readers) -> io::Result<()> {
    let kept = fs::metadata(path).ok().map(|metadata| metadata.permissions().mode() & 0o7777);
    // A file that takes the place of another must not be readable by more people for a moment.
    let readers = if kept.is_some() { Readers::Owner } else { readers };
    let (file, temporary) = create_beside(path, readers)?;
    let keep_mode = || match kept {
        Some(mode) => file.set_permissions(fs::Permissions::from_mode(mode)),
        None => Ok(()),
    };
    let written = (&file)
        .write_all(text.as_bytes())
        .and_then(|()| keep_mode())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The error that matters is the first one.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// A new file in the directory of another, under a name that nothing has.
fn create_beside(path: &Path, readers: Readers) -> io::Result<(File, std::path::PathBuf)> {
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?.to_string_lossy();
    for attempt in 0..ATTEMPTS {
        let temporary = path.with_file_name(format!(".{name}.{}.{attempt}", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).mode(readers.mode()).open(&temporary)
        {
            Ok(file) => return Ok((file, temporary)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_texts_within_bounds_are_read() {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| scratch.path().join(name);
        fs::write(path("bytes"), b"a\nb\n\xff").unwrap();
        fs::write(path("long"), "12345").unwrap();
        assert!(matches!(read(&path("none"), 4), (None, Ok(None))));
        assert!(matches!(read(&path("long/below"), 4), (None, Ok(None))));
        assert!(matches!(read(scratch.path(), 4).1, Err(FileError::NotRegular)));
        assert!(matches!(read(Path::new("/dev/zero"), 4).1, Err(FileError::NotRegular)));
        assert!(matches!(read(&path("long"), 4).1, Err(FileError::TooLarge { limit: 4 })));
        assert_eq!(read(&path("bytes"), 9).1.unwrap_err().line(), Some(3));
        assert_eq!(read(&path("long"), 5).1.unwrap().as_deref(), Some("12345"));
    }

    #[test]
    fn a_file_is_replaced_in_one_step_and_keeps_its_mode() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("x.json");
        let mode = || fs::metadata(&path).unwrap().mode() & 0o777;
        replace(&path, "one").unwrap();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let before = Stamp::of(&path);
        replace(&path, "two").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), mode()), ("two", 0o644));
        assert_ne!(Stamp::of(&path), before);
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_new_file_may_have_the_usual_readers() {
        let scratch = tempfile::tempdir().unwrap();
        let mode = |name: &str| fs::metadata(scratch.path().join(name)).unwrap().mode() & 0o777;
        fs::write(scratch.path().join("usual"), "").unwrap();
        replace_for(&scratch.path().join("new"), "x", Readers::Usual).unwrap();
        assert_eq!(mode("new"), mode("usual"));
        fs::set_permissions(scratch.path().join("new"), fs::Permissions::from_mode(0o640)).unwrap();
        replace_for(&scratch.path().join("new"), "y", Readers::Usual).unwrap();
        assert_eq!(mode("new"), 0o640);
    }
}
