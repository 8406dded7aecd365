//! Files that only their owner can read.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a new file, or replaces the content of one, with mode 0600.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.write_all(content)?;
    // Cut afterwards and only where it must be: a file that was emptied and filled again is sent to the disk
    // at once by some file systems, and whoever writes waits.
    let length = content.len() as u64;
    if file.metadata()?.len() > length {
        file.set_len(length)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_was_there_before_is_gone() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a.json");
        for content in ["short", "something longer", "no", ""] {
            write(&path, content.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
