//! Reading what an agent may have put in its place: no link is followed, nothing is waited for, and no more is read than
//! there should be.

use std::io;
use std::path::Path;

use centurion_protocol::bounded;

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
