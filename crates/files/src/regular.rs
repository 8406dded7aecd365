//! Regular files, opened for reading. Pipes, devices and directories are refused, not waited for.

use std::fs::{File, FileType, Metadata, symlink_metadata};
use std::io;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use thiserror::Error;

use crate::open::open;

/// Without waiting for the other end of a pipe, and without taking a terminal.
pub(crate) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::NOFOLLOW);

/// The reason that a file was not opened.
#[derive(Debug, Error)]
pub enum OpenError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("is not a regular file")]
    NotRegular(FileType),
}

/// Opens the regular file at an absolute path without links.
pub fn open_regular(path: &Path) -> Result<(File, Metadata), OpenError> {
    // Opening some devices has an effect, so that they are not even opened. What is there may be another
    // thing by the time of the open: what was opened is looked at again.
    check_regular(&symlink_metadata(path)?)?;
    let file = File::from(open(path, READ, Mode::empty())?);
    let metadata = file.metadata()?;
    check_regular(&metadata)?;
    Ok((file, metadata))
}

/// Opens the regular file that a path leads to, through whatever links, without ever waiting.
pub fn open_followed(path: &Path) -> Result<(File, Metadata), OpenError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::io::retry_on_intr(|| openat(CWD, path, flags, Mode::empty()));
    let file = File::from(opened.map_err(io::Error::from)?);
    let metadata = file.metadata()?;
    check_regular(&metadata)?;
    Ok((file, metadata))
}

pub(crate) fn check_regular(metadata: &Metadata) -> Result<(), OpenError> {
    let kind = metadata.file_type();
    // A link is left to the open, which refuses it with the error of a link.
    if kind.is_file() || kind.is_symlink() { Ok(()) } else { Err(OpenError::NotRegular(kind)) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt as _, symlink};
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::is_link_refusal;

    fn irregular(path: &Path) -> FileType {
        match open_regular(path) {
            Err(OpenError::NotRegular(kind)) => kind,
            other => panic!("{}: {other:?}", path.display()),
        }
    }

    #[test]
    fn pipes_devices_sockets_and_directories_are_refused_at_once() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        rustix::fs::mkfifoat(CWD, root.join("pipe"), Mode::RWXU).unwrap();
        let _socket = UnixListener::bind(root.join("socket")).unwrap();
        assert!(irregular(&root.join("pipe")).is_fifo());
        assert!(irregular(&root.join("socket")).is_socket());
        assert!(irregular(Path::new("/dev/zero")).is_char_device());
        assert!(irregular(Path::new("/dev/tty")).is_char_device());
        assert!(irregular(&root).is_dir());
        symlink("pipe", root.join("link")).unwrap();
        match open_regular(&root.join("link")) {
            Err(OpenError::Io(error)) => assert!(is_link_refusal(&error), "{error}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_pipe_that_comes_after_the_look_is_not_waited_for() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        rustix::fs::mkfifoat(CWD, root.join("pipe"), Mode::RWXU).unwrap();
        let opened = File::from(open(&root.join("pipe"), READ, Mode::empty()).unwrap());
        let checked = check_regular(&opened.metadata().unwrap());
        assert!(matches!(checked, Err(OpenError::NotRegular(kind)) if kind.is_fifo()));
    }
}
