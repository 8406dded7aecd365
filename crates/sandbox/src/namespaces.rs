//! A user namespace in which this process controls its own mounts and network.
//!
//! Nothing here allocates: [`crate::Support`] tries the same steps in a child of a process with threads.

use std::ffi::CStr;
use std::io::Write as _;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Result, write};
use rustix::mount::{MountPropagationFlags, OpenTreeFlags, mount_change, open_tree};
use rustix::process::{getgid, getuid};
use rustix::thread::UnshareFlags;
use std::os::fd::AsFd as _;

use crate::Network;
use crate::system::{self, Reach};

/// The processes that a command sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Processes {
    /// Its own. The next child of this process is the first of them.
    Own,
    /// All processes of the machine.
    Shared,
}

/// Proof that this process has left the machine's mounts: only [`enter`] makes one. Every function that changes mounts
/// takes it, because the same calls would change the machine itself where root could not enter a namespace.
#[derive(Debug)]
pub(crate) struct OwnMounts(());

/// Enters namespaces of its own, with only the same user and group in them.
pub(crate) fn enter(network: &Network, processes: Processes) -> Result<OwnMounts> {
    let (user, group) = (Identity::new(getuid().as_raw()), Identity::new(getgid().as_raw()));
    let mut namespaces = UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    if *network != Network::Open {
        namespaces |= UnshareFlags::NEWNET;
    }
    if processes == Processes::Own {
        namespaces |= UnshareFlags::NEWPID;
    }
    system::unshare(namespaces)?;
    // A process that could drop a group could reach files that are closed to that group.
    write_to(c"/proc/self/setgroups", b"deny")?;
    write_to(c"/proc/self/uid_map", user.as_bytes())?;
    write_to(c"/proc/self/gid_map", group.as_bytes())?;
    mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    Ok(OwnMounts(()))
}

/// Makes all present mounts read-only.
pub(crate) fn make_all_read_only(_: &OwnMounts) -> Result<()> {
    let root = open_tree(CWD, c"/", OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    system::make_read_only(root.as_fd(), Reach::All)
}

/// A line that maps one id to itself.
struct Identity {
    line: [u8; 32],
    length: usize,
}

impl Identity {
    fn new(id: u32) -> Self {
        let mut line = [0; 32];
        let capacity = line.len();
        let mut rest = line.as_mut_slice();
        // Two numbers of ten digits at most fit.
        let _ = write!(rest, "{id} {id} 1");
        let length = capacity - rest.len();
        Self { line, length }
    }

    fn as_bytes(&self) -> &[u8] {
        self.line.get(..self.length).unwrap_or_default()
    }
}

fn write_to(path: &CStr, bytes: &[u8]) -> Result<()> {
    let file = openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    write(file, bytes)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_id_fits_its_line() {
        assert_eq!(Identity::new(0).as_bytes(), b"0 0 1");
        assert_eq!(Identity::new(u32::MAX).as_bytes(), b"4294967295 4294967295 1");
    }
}
