//! Reading what an agent may have put in its place: no link is followed, nothing is waited for, and no more is read than
//! there should be.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use centurion_files::private;
use centurion_protocol::bounded;

use crate::names::shown;

/// Files of git's that hold a path, a commit or a name.
pub(crate) const SHORT: u64 = 64 * 1024;

/// Lists of refs, logs and indexes.
pub(crate) const LONG: u64 = 256 * 1024 * 1024;

/// The content of a regular file.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, _) = centurion_files::open_regular(path).map_err(io::Error::other)?;
    bounded::read_all(file, most)
}

/// The same as text.
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&read(path, most)?).into_owned())
}

/// Copies a regular file over another in one step. One that is not there is left out.
///
/// The copy is as old as what it is of: git takes a file for unchanged that is older than the index, so that a copy that
/// is younger would hide changes that were made right after the index was written.
pub(crate) fn replace_copy(from: &Path, to: &Path) -> io::Result<()> {
    let (file, metadata) = match centurion_files::open_regular(from) {
        Ok(opened) => opened,
        Err(_) if !from.exists() => return Ok(()),
        Err(error) => return Err(io::Error::other(error)),
    };
    // A file with nothing in it but its length takes no room until it is copied.
    if metadata.len() > LONG {
        return Err(io::Error::other(format!("{} is larger than any of its kind", shown(from))));
    }
    if let Some(above) = to.parent() {
        private::create_directory(above)?;
    }
    let new = to.with_extension("centurion");
    remove_if_there(&new)?;
    let mut copy = private::create(&new)?;
    io::copy(&mut file.take(LONG), &mut copy)?;
    copy.set_modified(metadata.modified()?)?;
    fs::rename(&new, to)
}

pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
