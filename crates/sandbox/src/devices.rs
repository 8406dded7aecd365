//! The devices that a command sees: those that every program may use, and terminals and shared memory of its own.
//!
//! The machine's own `/dev` has disks, from which denied files could be read, and the user's terminals, into which
//! commands could be typed.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, mount, move_mount, open_tree};

use crate::namespaces::OwnMounts;
use crate::system::{self, Reach};

/// An unreadable file, mounted over hidden files.
pub(crate) const UNREADABLE: &str = "/dev/.hidden";

const NODES: [&str; 6] = ["full", "null", "random", "tty", "urandom", "zero"];
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("ptmx", "pts/ptmx"),
    ("stderr", "fd/2"),
    ("stdin", "fd/0"),
    ("stdout", "fd/1"),
];

/// The machine's devices, opened before `/dev` is covered.
pub(crate) struct Devices(Vec<(&'static str, OwnedFd)>);

impl Devices {
    /// Opens the devices that are shared with the machine.
    pub(crate) fn take() -> io::Result<Self> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let mut nodes = Vec::new();
        for name in NODES {
            match open_tree(CWD, format!("/dev/{name}"), flags) {
                Ok(node) => nodes.push((name, node)),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self(nodes))
    }

    /// Covers `/dev`. Files can be added to it until [`seal`].
    pub(crate) fn mount(self, _: &OwnMounts) -> io::Result<()> {
        let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
        mount(c"tmpfs", c"/dev", c"tmpfs", flags, Some(c"mode=755,size=1m"))?;
        for (name, node) in self.0 {
            let path = format!("/dev/{name}");
            File::create(&path)?;
            move_mount(node, c"", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        }
        for (name, target) in LINKS {
            symlink(target, format!("/dev/{name}"))?;
        }
        fs::create_dir("/dev/pts")?;
        let options = Some(c"newinstance,ptmxmode=0666,mode=620");
        mount(c"devpts", c"/dev/pts", c"devpts", flags, options)?;
        fs::create_dir("/dev/shm")?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount(c"tmpfs", c"/dev/shm", c"tmpfs", flags, Some(c"mode=1777"))?;
        File::create(UNREADABLE)?.set_permissions(Permissions::from_mode(0o000))
    }
}

/// Whether `/dev` can be covered at all. Allocates nothing.
pub(crate) fn try_cover(_: &OwnMounts) -> rustix::io::Result<()> {
    mount(c"tmpfs", c"/dev", c"tmpfs", MountFlags::NOSUID, Some(c"mode=755,size=4k"))
}

/// Makes `/dev` read-only: nothing can be added any more.
pub(crate) fn seal(_: &OwnMounts) -> io::Result<()> {
    let devices = open_tree(CWD, c"/dev", OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    Ok(system::make_read_only(devices.as_fd(), Reach::One)?)
}
