//! One open: `openat2` where the kernel has it, one step for each name of the path where it has not.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Opens what is at an absolute path. A link anywhere in it, the last name included, is refused with `ELOOP`.
pub(crate) fn open(path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    if !is_plain(path) || !path.is_absolute() {
        return Err(not_plain());
    }
    open_at(CWD, path, flags, mode).map_err(io::Error::from)
}

/// Opens what is at a path below an opened directory, and never leaves it.
pub(crate) fn open_below(
    directory: impl AsFd,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> io::Result<OwnedFd> {
    if !is_plain(path) || path.is_absolute() {
        return Err(not_plain());
    }
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    open_at(directory.as_fd(), path, flags, mode).map_err(io::Error::from)
}

/// Whether something is at an absolute path without `..`, and no link on the way. One look, however long the path is.
pub fn exists_without_links(path: &Path) -> bool {
    open(path, OFlags::PATH, Mode::empty()).is_ok()
}

/// Whether an open failed because there was a link on the way.
pub fn is_link_refusal(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::LOOP)
}

/// Resolved paths have no `..`: what it means depends on links.
fn is_plain(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

fn not_plain() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the path is not resolved")
}

fn open_at(
    start: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    match open_by_kernel(start, path, flags, mode) {
        Err(Errno::NOSYS) => open_by_steps(start, path, flags, mode),
        // Some containers refuse calls that they do not know as if they were forbidden.
        Err(Errno::PERM) if !is_known_by_kernel() => open_by_steps(start, path, flags, mode),
        result => result,
    }
}

fn open_by_kernel(
    start: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let mut resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    if !path.is_absolute() {
        resolve |= ResolveFlags::BENEATH;
    }
    rustix::io::retry_on_intr(|| fs::openat2(start, path, flags | OFlags::CLOEXEC, mode, resolve))
}

fn is_known_by_kernel() -> bool {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    open_by_kernel(CWD, Path::new("/"), flags, Mode::empty()).is_ok()
}

/// The same without `openat2`: each directory is opened from the one before, and links are refused.
fn open_by_steps(
    start: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let on_the_way = OFlags::PATH | OFlags::DIRECTORY;
    let mut names = path.components().peekable();
    let mut current: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        let from = current.as_ref().map_or(start, AsFd::as_fd);
        let name = name.as_os_str();
        // A slash at the end says that the last name is a directory.
        let is_last = names.peek().is_none();
        let is_directory = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let flags = match (is_last, is_directory) {
            (true, false) => flags,
            (true, true) => flags | OFlags::DIRECTORY,
            (false, _) => on_the_way,
        };
        current = Some(open_step(from, Path::new(name), flags, mode)?);
    }
    current.ok_or(Errno::NOENT)
}

fn open_step(
    from: BorrowedFd<'_>,
    name: &Path,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let strict = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::io::retry_on_intr(|| fs::openat(from, name, strict, mode));
    match opened {
        // A link is no directory; the caller learns which of the two it was.
        Err(Errno::NOTDIR) if is_link(from, name) => Err(Errno::LOOP),
        // Without `O_DIRECTORY`, `O_PATH` gives the link itself.
        Ok(file) if flags.contains(OFlags::PATH) && !flags.contains(OFlags::DIRECTORY) => {
            match FileType::from_raw_mode(fs::fstat(&file)?.st_mode) {
                FileType::Symlink => Err(Errno::LOOP),
                _ => Ok(file),
            }
        }
        opened => opened,
    }
}

fn is_link(from: BorrowedFd<'_>, name: &Path) -> bool {
    fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    type Open = fn(BorrowedFd<'_>, &Path, OFlags, Mode) -> Result<OwnedFd, Errno>;

    /// Both ways must give the same.
    const WAYS: [(&str, Open); 2] = [("kernel", open_by_kernel), ("steps", open_by_steps)];

    const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);
    const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

    fn scratch() -> (tempfile::TempDir, PathBuf) {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        (scratch, root)
    }

    #[test]
    fn a_link_anywhere_in_the_path_is_refused_either_way() {
        let (_scratch, root) = scratch();
        create_dir_all(root.join("real/deep")).unwrap();
        write(root.join("real/deep/file"), "x").unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("deep", root.join("real/alias")).unwrap();
        symlink("file", root.join("real/deep/name")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        for (way, open) in WAYS {
            let opened = |relative: &str, flags| {
                open(CWD, &root.join(relative), flags, Mode::empty()).map(drop)
            };
            for (good, flags) in [
                ("real/deep/file", READ),
                ("real/deep/file", OFlags::PATH),
                ("real/deep", DIRECTORY),
                ("real/deep/", DIRECTORY),
                ("real//deep/./file", READ),
            ] {
                assert_eq!(opened(good, flags), Ok(()), "{way} {good}");
            }
            for (bad, flags) in [
                ("link/deep/file", READ),
                ("real/alias/file", READ),
                ("real/deep/name", READ),
                ("real/deep/name", OFlags::PATH),
                ("real/deep/name", OFlags::WRONLY),
                ("real/deep/name", OFlags::WRONLY | OFlags::CREATE),
                ("link", DIRECTORY),
                ("link/", DIRECTORY),
                ("dangling", READ),
                ("dangling", OFlags::WRONLY | OFlags::CREATE),
                ("loop", READ),
                ("loop/x", READ),
            ] {
                assert_eq!(opened(bad, flags), Err(Errno::LOOP), "{way} {bad}");
            }
            for (bad, flags, expected) in [
                ("none", READ, Errno::NOENT),
                ("none/x", READ, Errno::NOENT),
                ("real/deep/file/x", READ, Errno::NOTDIR),
                ("real/deep/file/", READ, Errno::NOTDIR),
                ("real/deep/file", DIRECTORY, Errno::NOTDIR),
                (&*"n".repeat(300), READ, Errno::NAMETOOLONG),
            ] {
                assert_eq!(opened(bad, flags), Err(expected), "{way} {bad}");
            }
        }
        assert!(!root.join("nowhere").exists());
    }

    #[test]
    fn what_the_kernel_offers_as_magic_links_is_refused_either_way() {
        let (_scratch, root) = scratch();
        write(root.join("file"), "x").unwrap();
        let file = std::fs::File::open(root.join("file")).unwrap();
        let process = format!("/proc/{}", std::process::id());
        let number = std::os::fd::AsRawFd::as_raw_fd(&file);
        for (way, open) in WAYS {
            for path in [
                format!("{process}/fd/{number}"),
                format!("{process}/root/etc"),
                format!("{process}/cwd"),
                format!("{process}/exe"),
                "/proc/self/status".to_owned(),
            ] {
                let opened = open(CWD, Path::new(&path), READ, Mode::empty());
                assert_eq!(opened.map(drop), Err(Errno::LOOP), "{way} {path}");
            }
            let status = format!("{process}/status");
            assert!(open(CWD, Path::new(&status), READ, Mode::empty()).is_ok(), "{way}");
        }
    }

    #[test]
    fn a_path_below_a_directory_never_leaves_it() {
        let (_scratch, root) = scratch();
        create_dir_all(root.join("in/deep")).unwrap();
        write(root.join("in/deep/new\nline"), "x").unwrap();
        write(root.join("secret"), "x").unwrap();
        symlink(root.join("secret"), root.join("in/away")).unwrap();
        let directory = open(&root.join("in"), DIRECTORY, Mode::empty()).unwrap();
        let below = |path: &str| open_below(&directory, Path::new(path), READ, Mode::empty());
        assert!(below("").is_ok() && below("deep").is_ok() && below("deep/new\nline").is_ok());
        assert!(is_link_refusal(&below("away").unwrap_err()));
        for bad in ["..", "../secret", "deep/../../secret", "/etc/passwd"] {
            assert_eq!(below(bad).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{bad}");
        }
        let secret = Path::new("../secret");
        let kernel = open_by_kernel(directory.as_fd(), secret, READ, Mode::empty());
        assert_eq!(kernel.map(drop), Err(Errno::XDEV), "the kernel would refuse it, too");
        for bad in ["relative", "", "/a/../b"] {
            let error = open(Path::new(bad), READ, Mode::empty()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{bad}");
        }
    }

    #[test]
    fn very_long_paths_open_by_steps_and_fail_cleanly_in_the_kernel() {
        let (_scratch, root) = scratch();
        let mut deep = open(&root, DIRECTORY, Mode::empty()).unwrap();
        let mut path = root.clone();
        let name = "d".repeat(200);
        for _ in 0..30 {
            fs::mkdirat(&deep, &*name, Mode::RWXU).unwrap();
            deep = open_below(&deep, Path::new(&name), DIRECTORY, Mode::empty()).unwrap();
            path.push(&name);
        }
        let kernel = open_by_kernel(CWD, &path, DIRECTORY, Mode::empty());
        assert_eq!(kernel.map(drop), Err(Errno::NAMETOOLONG));
        assert!(open_by_steps(CWD, &path, DIRECTORY, Mode::empty()).is_ok());
    }

    #[test]
    fn the_kernel_of_these_tests_knows_the_call() {
        assert!(is_known_by_kernel());
    }
}
