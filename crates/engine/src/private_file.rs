//! Files that only their owner can read.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// For a path of ours: a link that another program put there is refused.
#[expect(clippy::cast_possible_wrap, reason = "the flags are small")]
pub(crate) const NO_LINK: i32 = OFlags::NOFOLLOW.bits() as i32;

/// Writes a new file, or replaces the content of one, with mode 0600. A link is left alone.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(NO_LINK)
        .open(path)?;
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

    #[test]
    fn a_link_in_its_place_is_not_written_through() {
        let scratch = tempfile::tempdir().unwrap();
        let (path, precious) = (scratch.path().join("a.json"), scratch.path().join("precious"));
        std::fs::write(&precious, "kept").unwrap();
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        write(&path, b"x").unwrap_err();
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "kept");
    }
}
