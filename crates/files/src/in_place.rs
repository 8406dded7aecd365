//! Writing into a file that must stay the file it is: one with several names, or one whose directory
//! cannot be changed.
//!
//! The names stay one file, as users of hard links expect. The price is that readers can see a part. What
//! must not happen is that a full disk leaves neither the old content nor the new one: so space is
//! reserved first, the old content is kept in a second file meanwhile, and a write that fails is undone.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate};
use rustix::io::Errno;

use crate::open::open_below;
use crate::replace::{Existing, ReplaceError};
use crate::temporary::{Holds, Temporary};

/// Writes `bytes` over what was read, in the same file.
pub(crate) fn write_in_place(existing: &Existing, bytes: &[u8]) -> Result<(), ReplaceError> {
    let location = &existing.location;
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = open_below(location.directory(), Path::new(location.name()), flags, Mode::empty());
    let file = File::from(opened.map_err(|error| match error {
        error if crate::is_link_refusal(&error) => ReplaceError::Changed,
        error => ReplaceError::Io(error),
    })?);
    let metadata = file.metadata()?;
    let (read, opened) = (&existing.metadata, &metadata);
    if (opened.dev(), opened.ino()) != (read.dev(), read.ino()) {
        return Err(ReplaceError::Changed);
    }
    existing.check_unchanged()?;
    let saved = save(existing)?;
    reserve(&file, bytes.len())?;
    let mut written = 0;
    let result = write_from_start(&file, bytes, &mut written)
        .and_then(|()| file.set_len(bytes.len() as u64));
    let Err(source) = result else { return Ok(()) };
    match restore(&file, &existing.bytes, written) {
        Ok(()) => Err(source.into()),
        Err(_) => Err(ReplaceError::Torn { source, saved: saved.map(Temporary::keep) }),
    }
}

/// A copy of the old content, for as long as the file holds neither it nor the new one. `None` where the
/// directory takes no new file.
fn save(existing: &Existing) -> io::Result<Option<Temporary<'_>>> {
    let (location, mode) = (&existing.location, Mode::RUSR | Mode::WUSR);
    let mut saved = match Temporary::create(location, mode, Holds::Old) {
        Ok(saved) => saved,
        Err(error) => match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => return Ok(None),
            _ => return Err(error),
        },
    };
    saved.file.write_all(&existing.bytes)?;
    Ok(Some(saved))
}

/// Makes sure of the space for this many bytes, where the file system can.
fn reserve(file: &File, length: usize) -> io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, length as u64) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => Ok(()),
        reserved => Ok(reserved?),
    }
}

/// Writes all bytes; `written` says how many, also where it fails.
fn write_from_start(file: &File, bytes: &[u8], written: &mut usize) -> io::Result<()> {
    while let Some(rest) = bytes.get(*written..).filter(|rest| !rest.is_empty()) {
        match file.write_at(rest, *written as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => *written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Puts back what was written over.
fn restore(file: &File, old: &[u8], written: usize) -> io::Result<()> {
    file.write_all_at(old.get(..written).unwrap_or(old), 0)?;
    file.set_len(old.len() as u64)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;
    use std::process::Command;

    use centurion_testkit::{Lack, skip};

    use super::*;
    use crate::replace::tests::existing;
    use crate::{replace, replace_alone};

    /// The variable that names the directory of a test which runs again in a process of its own.
    const AGAIN: &str = "CENTURION_TEST_DIRECTORY";

    /// Runs a test of this file again below a shell command that prepares the process and the directory
    /// `$CENTURION_TEST_DIRECTORY`, then `exec`s `"$@"`. `None` where the machine does not let it.
    fn run_again(test: &str, wrapper: &[&str], prepare: &str) -> Option<()> {
        let scratch = tempfile::tempdir().unwrap();
        let (program, arguments) = wrapper.split_first().unwrap();
        let output = Command::new(program)
            .args(arguments)
            .args(["-c", prepare, "sh"])
            .arg(std::env::current_exe().unwrap())
            .args([&format!("in_place::tests::{test}"), "--exact", "--nocapture"])
            .env(AGAIN, scratch.path().canonicalize().unwrap())
            .output()
            .ok()?;
        let said = String::from_utf8_lossy(&output.stdout);
        let failed = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(77) || failed.starts_with("unshare:") {
            return None;
        }
        assert!(output.status.success() && said.contains("1 passed"), "{said}\n{failed}");
        Some(())
    }

    fn here() -> Option<PathBuf> {
        std::env::var_os(AGAIN).map(PathBuf::from)
    }

    fn linked(root: &Path, content: &[u8]) -> (PathBuf, PathBuf) {
        let (one, two) = (root.join("one"), root.join("two"));
        fs::write(&one, content).unwrap();
        fs::hard_link(&one, &two).unwrap();
        (one, two)
    }

    #[test]
    fn a_file_with_two_names_keeps_both() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let (one, two) = linked(&root, b"old and longer");
        for content in [&b"new"[..], b"something longer again", b""] {
            replace(&existing(&one), content).unwrap();
            assert_eq!(fs::read(&two).unwrap(), content);
            assert_eq!(fs::metadata(&one).unwrap().nlink(), 2);
            assert_eq!(fs::read_dir(&root).unwrap().count(), 2);
        }
    }

    #[test]
    fn a_file_with_two_names_is_parted_where_that_is_wanted() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let (one, two) = linked(&root, b"old");
        fs::set_permissions(&one, Permissions::from_mode(0o750)).unwrap();
        // Not even where no other way of writing is left.
        fs::set_permissions(&root, Permissions::from_mode(0o555)).unwrap();
        let refused = replace_alone(&existing(&one), b"new");
        fs::set_permissions(&root, Permissions::from_mode(0o755)).unwrap();
        assert_eq!(fs::read(&two).unwrap(), b"old");
        if refused.is_err() {
            replace_alone(&existing(&one), b"new").unwrap();
        }
        assert_eq!(
            (fs::read(&one).unwrap(), fs::read(&two).unwrap()),
            (b"new".into(), b"old".into())
        );
        assert_eq!(fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 2);
    }

    #[test]
    fn a_file_can_change_in_a_directory_that_cannot() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let path = root.join("f");
        fs::write(&path, "old and longer").unwrap();
        fs::set_permissions(&root, Permissions::from_mode(0o555)).unwrap();
        let changed = replace(&existing(&path), b"new");
        let created = crate::create(&root.join("g"), b"new");
        fs::set_permissions(&root, Permissions::from_mode(0o755)).unwrap();
        changed.unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        if !rustix::process::geteuid().is_root() {
            created.unwrap_err();
        }
    }

    #[test]
    fn a_hard_linked_file_on_a_full_disk_stays_intact() {
        let Some(root) = here() else {
            // A file system of 64 KiB, of which nothing is left.
            let prepare = "mount -t tmpfs -o size=64k none \"$CENTURION_TEST_DIRECTORY\" || exit 77; exec \"$@\"";
            let wrapper = ["unshare", "--user", "--map-root-user", "--mount", "sh"];
            let name = "a_hard_linked_file_on_a_full_disk_stays_intact";
            return run_again(name, &wrapper, prepare).unwrap_or_else(|| skip(Lack::Namespaces));
        };
        let old = vec![b'o'; 8192];
        let (one, two) = linked(&root, &old);
        let read = existing(&one);
        let mut filler = File::create(root.join("filler")).unwrap();
        while filler.write_all(&[0; 4096]).is_ok() {}
        for (what, new) in [
            ("longer", vec![b'n'; 12_288]),
            ("as long", vec![b'n'; 8192]),
            ("shorter", b"new".to_vec()),
        ] {
            match replace(&read, &new) {
                Err(ReplaceError::Io(error)) => {
                    assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{what}");
                    assert_eq!(fs::read(&two).unwrap(), old, "{what}");
                }
                other => panic!("{what}: {other:?}"),
            }
            assert_eq!(fs::metadata(&one).unwrap().nlink(), 2);
            assert_eq!(fs::read_dir(&root).unwrap().count(), 3, "{what}: nothing is left behind");
        }
        fs::remove_file(root.join("two")).unwrap();
        let alone = existing(&one);
        replace(&alone, &[b'n'; 12_288]).unwrap_err();
        assert_eq!(fs::read(&one).unwrap(), old, "a file with one name, too");
        drop(filler);
        fs::remove_file(root.join("filler")).unwrap();
        replace(&alone, b"new").unwrap();
        assert_eq!(fs::read(&one).unwrap(), b"new");
    }

    #[test]
    fn a_write_in_place_that_breaks_off_is_undone() {
        let Some(root) = here() else {
            // Files end at 8 KiB, which is noticed only when it is written.
            let prepare = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
            let name = "a_write_in_place_that_breaks_off_is_undone";
            return run_again(name, &["bash"], prepare).unwrap();
        };
        let old = vec![b'o'; 4096];
        let (one, two) = linked(&root, &old);
        let error = replace(&existing(&one), &[b'n'; 16_384]).unwrap_err();
        assert!(
            matches!(&error, ReplaceError::Io(error) if error.kind() == io::ErrorKind::FileTooLarge)
        );
        assert_eq!(fs::read(&two).unwrap(), old);
        assert_eq!(fs::metadata(&one).unwrap().nlink(), 2);
        assert_eq!(fs::read_dir(&root).unwrap().count(), 2);
    }
}
