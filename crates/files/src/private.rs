//! Files and directories that only their owner can read: modes 0600 and 0700.
//!
//! The paths are our own. A link that another program put at the last name is refused, never followed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

#[expect(clippy::cast_possible_wrap, reason = "the flags are small")]
const NO_LINK: i32 = OFlags::NOFOLLOW.bits() as i32;

/// Makes a directory, with those above it, unless it exists.
pub fn create_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes a directory that does not exist yet, below one that does.
pub fn create_new_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Opens or makes a file as `options` say, with the directory that it is to be in.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.mode(0o600).custom_flags(NO_LINK);
    match (options.open(path), path.parent()) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
            create_directory(parent)?;
            options.open(path)
        }
        (opened, _) => opened,
    }
}

/// Makes a file that does not exist yet, with the directory that it is to be in.
pub fn create(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().write(true).create_new(true), path)
}

/// Makes a file, or replaces the content of one in place.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = open(OpenOptions::new().write(true).create(true).truncate(false), path)?;
    file.write_all(content)?;
    // Truncate afterwards and only where needed: some file systems flush a file to disk at once when it was
    // emptied and filled again, and the writer waits.
    let length = content.len() as u64;
    if file.metadata()?.len() > length {
        file.set_len(length)?;
    }
    Ok(())
}

/// Replaces a file in one step: readers see the old or the new content, never a part.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let fresh = path.with_file_name(name);
    // A crash may have left one.
    let _ = fs::remove_file(&fresh);
    let written = create(&fresh).and_then(|mut file| file.write_all(content));
    written.and_then(|()| fs::rename(&fresh, path)).inspect_err(|_| {
        let _ = fs::remove_file(&fresh);
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn every_way_to_make_a_file_keeps_it_and_its_directory_private() {
        let scratch = tempfile::tempdir().unwrap();
        let path = |name: &str| scratch.path().join(name).join("file");
        create(&path("create")).unwrap();
        write(&path("write"), b"x").unwrap();
        replace(&path("replace"), b"x").unwrap();
        for name in ["create", "write", "replace"] {
            assert_eq!((mode(&path(name)), mode(&scratch.path().join(name))), (0o600, 0o700));
        }
    }

    #[test]
    fn old_content_is_gone_however_long_it_was() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a.json");
        for write in [write, replace] {
            for content in ["short", "something longer", "no", ""] {
                write(&path, content.as_bytes()).unwrap();
                assert_eq!(fs::read_to_string(&path).unwrap(), content);
            }
        }
    }

    #[test]
    fn a_link_in_its_place_is_not_written_through() {
        let scratch = tempfile::tempdir().unwrap();
        let (path, precious) = (scratch.path().join("a.json"), scratch.path().join("precious"));
        fs::write(&precious, "kept").unwrap();
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        write(&path, b"x").unwrap_err();
        create(&path).unwrap_err();
        replace(&path, b"x").unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
    }
}
