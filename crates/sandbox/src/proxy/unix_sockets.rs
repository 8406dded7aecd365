//! The Unix sockets that may be reached, by their paths.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// The sockets of a list. Links are resolved once: a command may be able to change them.
#[derive(Debug, Default)]
pub(super) struct AllowedSockets(Vec<SocketPath>);

#[derive(Debug)]
struct SocketPath {
    written: PathBuf,
    /// The path without links, at the time of listing.
    resolved: PathBuf,
}

impl AllowedSockets {
    pub(super) fn new(paths: &[PathBuf]) -> Self {
        let places = paths.iter().map(|path| {
            let written = plain(path);
            let resolved = written.canonicalize().unwrap_or_else(|_| resolve(&written));
            SocketPath { written, resolved }
        });
        Self(places.collect())
    }

    /// The listed socket at an absolute path of a command, if there is one.
    pub(super) fn find(&self, path: &Path) -> Option<&Path> {
        let written = plain(path);
        let resolved = resolve(&written);
        let place = self.0.iter().find(|it| it.written == written || it.resolved == resolved);
        place.map(|place| place.resolved.as_path())
    }
}

/// Connects to the socket at a path without links.
pub(super) fn reach(path: &Path, is_blocking: bool) -> io::Result<OwnedFd> {
    let (flags, resolving) = (OFlags::PATH | OFlags::CLOEXEC, ResolveFlags::NO_SYMLINKS);
    let place = File::from(openat2(CWD, path, flags, Mode::empty(), resolving)?);
    if !place.metadata()?.file_type().is_socket() {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    let mut flags = SocketFlags::CLOEXEC;
    if !is_blocking {
        flags |= SocketFlags::NONBLOCK;
    }
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // By the descriptor: the checked file is the one that is connected to.
    let address = SocketAddrUnix::new(format!("/proc/self/fd/{}", place.as_raw_fd()))?;
    connect(&socket, &address)?;
    Ok(socket)
}

/// The path with its directory resolved; a missing part stays as it is.
fn resolve(path: &Path) -> PathBuf {
    match (path.parent().and_then(|parent| parent.canonicalize().ok()), path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

/// The path without dots.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_is_found_by_every_way_that_leads_to_it_and_no_other() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("run/deep")).unwrap();
        symlink("run", root.join("var")).unwrap();
        let _listener = UnixListener::bind(root.join("run/a.sock")).unwrap();
        let listed = AllowedSockets::new(&[root.join("var/a.sock"), root.join("run/late.sock")]);
        for name in ["var/a.sock", "run/a.sock", "run/./deep/../a.sock"] {
            assert_eq!(listed.find(&root.join(name)), Some(&*root.join("run/a.sock")), "{name}");
        }
        assert!(listed.find(&root.join("var/late.sock")).is_some());
        for name in ["run/b.sock", "run", "a.sock", "run/a.sock/x", ""] {
            assert_eq!(listed.find(&root.join(name)), None, "{name}");
        }
        assert!(reach(&root.join("run/a.sock"), true).is_ok());
    }

    #[test]
    fn a_link_that_was_put_in_the_place_of_a_socket_is_not_followed() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        let _other = UnixListener::bind(root.join("other")).unwrap();
        let listed = AllowedSockets::new(&[root.join("late")]);
        symlink("other", root.join("late")).unwrap();
        let found = listed.find(&root.join("late")).unwrap();
        assert!(reach(found, true).is_err());
        std::fs::write(root.join("file"), "").unwrap();
        assert!(reach(&root.join("file"), true).is_err());
    }
}
