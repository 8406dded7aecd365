//! Whether sockets of processes lead to other processes, as the kernel tells on a diagnostic socket.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// The type of a request and of its answer (`SOCK_DIAG_BY_FAMILY`).
const BY_FAMILY: u16 = 20;
/// The flag of a request (`NLM_F_REQUEST`).
const REQUEST: u16 = 1;
/// Asks for the other end (`UDIAG_SHOW_PEER`).
const SHOW_PEER: u32 = 4;
/// The attribute with the other end (`UNIX_DIAG_PEER`).
const PEER: u16 = 2;
/// The size of the header of a message.
const HEADER: usize = 16;
/// The size of the description of a socket, before its attributes.
const DESCRIPTION: usize = 16;

/// Whether each socket of these processes is unconnected, or connected with another socket of theirs. False if that is
/// not known.
pub(super) fn stay_within(processes: &[PathBuf]) -> bool {
    let mut inodes = HashSet::new();
    for process in processes {
        match sockets_of(process) {
            Some(sockets) => inodes.extend(sockets),
            None => return false,
        }
    }
    inodes.iter().all(|inode| match peer_of(*inode) {
        Ok(OtherEnd::None) => true,
        Ok(OtherEnd::Socket(peer)) => inodes.contains(&peer),
        Ok(OtherEnd::Unknown) | Err(_) => false,
    })
}

/// The other end of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OtherEnd {
    None,
    /// The inode of a local socket. Zero means an end that the other program has not accepted yet, or has closed.
    Socket(u32),
    /// The socket is no local one, or nothing is known of it.
    Unknown,
}

/// The inodes of the sockets of a process.
fn sockets_of(process: &Path) -> Option<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(process.join("fd")).ok()? {
        // A descriptor may be closed meanwhile.
        let Ok(target) = fs::read_link(entry.ok()?.path()) else { continue };
        let inode = target.to_str().and_then(|it| it.strip_prefix("socket:[")?.strip_suffix(']'));
        if let Some(inode) = inode {
            found.push(inode.parse().ok()?);
        }
    }
    Some(found)
}

fn peer_of(inode: u32) -> Result<OtherEnd, Errno> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    send(&socket, &request(inode), SendFlags::empty())?;
    let mut answer = [0; 512];
    let (_, length) = recv(&socket, &mut answer, RecvFlags::DONTWAIT)?;
    Ok(parse(answer.get(..length).unwrap_or(&answer)).unwrap_or(OtherEnd::Unknown))
}

/// Asks for the other end of one local socket.
fn request(inode: u32) -> Vec<u8> {
    let mut body = vec![1, 0, 0, 0]; // AF_UNIX
    for number in [u32::MAX, inode, SHOW_PEER, u32::MAX, u32::MAX] {
        body.extend(number.to_ne_bytes());
    }
    let length = u32::try_from(HEADER + body.len()).unwrap_or_default();
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    message
}

/// The other end in an answer; `None` if that is no description of a socket.
fn parse(answer: &[u8]) -> Option<OtherEnd> {
    let short = |at: usize| Some(u16::from_ne_bytes(answer.get(at..at + 2)?.try_into().ok()?));
    let long = |at: usize| Some(u32::from_ne_bytes(answer.get(at..at + 4)?.try_into().ok()?));
    if short(4)? != BY_FAMILY || answer.len() < HEADER + DESCRIPTION {
        return None;
    }
    let mut at = HEADER + DESCRIPTION;
    while let (Some(length), Some(kind)) = (short(at), short(at + 2)) {
        if kind == PEER {
            return Some(OtherEnd::Socket(long(at + 4)?));
        }
        at += usize::from(length).next_multiple_of(4).max(4);
    }
    Some(OtherEnd::None)
}
