//! Files that only their owner can read.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Writes a file that did not exist, mode 0600. The directory is made where it is missing.
pub(crate) fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)
}

/// Puts a file in the place of another in one step: readers see the old or the new one, never a part.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let fresh = path.with_file_name(name);
    // What a crash left there.
    let _ = fs::remove_file(&fresh);
    create(&fresh, content)?;
    fs::rename(&fresh, path).inspect_err(|_| {
        let _ = fs::remove_file(&fresh);
    })
}
