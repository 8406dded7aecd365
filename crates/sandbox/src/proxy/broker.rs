//! Makes the connections of a command in its place: to listed Unix sockets, and to no others.
//!
//! A filter cannot see which socket a call means, since the kernel gives it no memory of the caller. So the filter
//! passes the call to this process, which copies the address once, connects to the copied address, and puts the
//! finished socket in place of the caller's own. Later changes by the caller do not count, and no call is ever
//! continued unchanged.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, connect, sockopt};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::unix_sockets::{AllowedSockets, reach};
use crate::system::{self, Call};

/// The most concurrent connections of one command. More wait for their turn.
const MOST_AT_ONCE: usize = 16;

/// The longest address.
const LONGEST_ADDRESS: usize = 128;

/// Serves one command until no process of it is left.
pub(super) async fn serve(calls: OwnedFd, listed: Arc<AllowedSockets>) {
    let calls = match system::awaitable(calls) {
        Ok(calls) => Arc::new(calls),
        Err(error) => return tracing::warn!(%error, "a command's connections cannot be watched"),
    };
    let turns = Arc::new(Semaphore::new(MOST_AT_ONCE));
    let mut answers = JoinSet::new();
    loop {
        let Ok(mut readiness) = calls.readable().await else { return };
        // Checks first: receiving waits when there is no call, whatever the descriptor's flags are.
        loop {
            match state(calls.get_ref()) {
                State::Waiting => break,
                State::Over => return,
                State::Called => {}
            }
            // Fails when the calling process has ended.
            let Ok(call) = system::receive_call(calls.get_ref().as_fd()) else { continue };
            while answers.try_join_next().is_some() {}
            let Ok(turn) = Arc::clone(&turns).acquire_owned().await else { return };
            let (calls, listed) = (Arc::clone(&calls), Arc::clone(&listed));
            answers.spawn_blocking(move || {
                let _turn = turn;
                answer(calls.get_ref(), &call, &listed);
            });
        }
        readiness.clear_ready();
    }
}

enum State {
    Waiting,
    Called,
    Over,
}

fn state(calls: &OwnedFd) -> State {
    let mut polled = [PollFd::new(calls, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut polled, Some(&now)) {
        Ok(0) | Err(Errno::INTR) => State::Waiting,
        Ok(_) if polled.iter().any(|it| it.revents().contains(PollFlags::IN)) => State::Called,
        Ok(_) | Err(_) => State::Over,
    }
}

fn answer(calls: &OwnedFd, call: &Call, listed: &AllowedSockets) {
    let error = make(calls, call, listed).err().map(Errno::raw_os_error);
    if let Err(error) = system::answer_call(calls.as_fd(), call.id, error) {
        tracing::debug!(%error, "the client of a connection is gone");
    }
}

/// Makes the connection that a call requests.
fn make(calls: &OwnedFd, call: &Call, listed: &AllowedSockets) -> Result<(), Errno> {
    let [number, place, length, ..] = call.args;
    let (number, length) = (lower_half(number), lower_half(length));
    let address = read_address(call, place, length)?;
    match address {
        Address::Unix(path) => {
            let path = if path.is_absolute() {
                path
            } else {
                fs::read_link(of(call, "cwd")).map_err(|error| errno(&error))?.join(path)
            };
            let Some(path) = listed.find(&path) else { return Err(Errno::ACCESS) };
            let flags = flags_of(call, number)?;
            let socket = reach(path, !flags.is_nonblocking).map_err(|error| errno(&error))?;
            system::replace_file(
                calls.as_fd(),
                call.id,
                socket.as_fd(),
                number,
                flags.closes_on_exec,
            )
            .map_err(|error| errno(&error))
        }
        Address::Network(address) => {
            let socket = take(calls, call, number)?;
            connect(&socket, &address)
        }
        Address::None => {
            let socket = take(calls, call, number)?;
            rustix::net::connect_unspec(&socket)
        }
    }
}

/// The caller's own socket, if it is a network socket.
fn take(calls: &OwnedFd, call: &Call, number: u32) -> Result<OwnedFd, Errno> {
    // A process has the number of its first thread.
    let status = fs::read_to_string(of(call, "status")).map_err(|error| errno(&error))?;
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    let process = process.and_then(|id| id.trim().parse().ok()).and_then(Pid::from_raw);
    let process = pidfd_open(process.ok_or(Errno::SRCH)?, PidfdFlags::empty())?;
    let number = i32::try_from(number).map_err(|_| Errno::BADF)?;
    let socket = pidfd_getfd(&process, number, PidfdGetfdFlags::empty())?;
    // The number of an ended process may belong to another by now.
    if !system::is_waiting(calls.as_fd(), call.id) {
        return Err(Errno::SRCH);
    }
    let family = sockopt::socket_domain(&socket)?;
    let is_network = [AddressFamily::INET, AddressFamily::INET6].contains(&family);
    if is_network { Ok(socket) } else { Err(Errno::ACCESS) }
}

#[derive(Debug, PartialEq, Eq)]
enum Address {
    Unix(PathBuf),
    Network(SocketAddr),
    /// Ends a connection.
    None,
}

fn read_address(call: &Call, place: u64, length: u32) -> Result<Address, Errno> {
    let length = usize::try_from(length).map_err(|_| Errno::INVAL)?;
    let mut bytes = [0; LONGEST_ADDRESS];
    let bytes = bytes.get_mut(..length).ok_or(Errno::INVAL)?;
    let memory = File::open(of(call, "mem")).map_err(|error| errno(&error))?;
    memory.read_exact_at(bytes, place).map_err(|_| Errno::FAULT)?;
    parse(bytes)
}

fn parse(bytes: &[u8]) -> Result<Address, Errno> {
    let (family, rest) = bytes.split_first_chunk::<2>().ok_or(Errno::INVAL)?;
    let family = AddressFamily::from_raw(u16::from_ne_bytes(*family));
    match family {
        AddressFamily::UNIX => {
            let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
            match rest.get(..end) {
                // Names that are no paths cannot be listed.
                None | Some([]) => Err(Errno::ACCESS),
                Some(path) => Ok(Address::Unix(Path::new(OsStr::from_bytes(path)).to_owned())),
            }
        }
        AddressFamily::INET => {
            let (port, rest) = rest.split_first_chunk().ok_or(Errno::INVAL)?;
            let (address, _) = rest.split_first_chunk::<4>().ok_or(Errno::INVAL)?;
            let (address, port) = (Ipv4Addr::from(*address), u16::from_be_bytes(*port));
            Ok(Address::Network(SocketAddrV4::new(address, port).into()))
        }
        AddressFamily::INET6 => {
            let (port, rest) = rest.split_first_chunk().ok_or(Errno::INVAL)?;
            let (flow, rest) = rest.split_first_chunk().ok_or(Errno::INVAL)?;
            let (address, rest) = rest.split_first_chunk::<16>().ok_or(Errno::INVAL)?;
            let scope = rest.first_chunk().map_or(0, |scope| u32::from_ne_bytes(*scope));
            let (address, port) = (Ipv6Addr::from(*address), u16::from_be_bytes(*port));
            let flow = u32::from_be_bytes(*flow);
            Ok(Address::Network(SocketAddrV6::new(address, port, flow, scope).into()))
        }
        AddressFamily::UNSPEC => Ok(Address::None),
        _ => Err(Errno::ACCESS),
    }
}

struct FileFlags {
    is_nonblocking: bool,
    closes_on_exec: bool,
}

/// The flags of the caller's socket.
fn flags_of(call: &Call, number: u32) -> Result<FileFlags, Errno> {
    let info =
        fs::read_to_string(of(call, &format!("fdinfo/{number}"))).map_err(|_| Errno::BADF)?;
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    let flags = flags.ok_or(Errno::BADF)?;
    Ok(FileFlags {
        is_nonblocking: flags & libc::O_NONBLOCK != 0,
        closes_on_exec: flags & libc::O_CLOEXEC != 0,
    })
}

/// A file of the kernel about the caller.
fn of(call: &Call, what: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{}/{what}", call.thread))
}

/// The part of an argument that the kernel uses where it expects a small number.
fn lower_half(argument: u64) -> u32 {
    u32::try_from(argument & u64::from(u32::MAX)).unwrap_or_default()
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(match error.kind() {
        io::ErrorKind::ConnectionRefused => Errno::CONNREFUSED,
        _ => Errno::ACCESS,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_kernel_reads_them() {
        let unix = |path: &[u8]| [&1_u16.to_ne_bytes(), path].concat();
        assert_eq!(parse(&unix(b"/s\0junk")), Ok(Address::Unix("/s".into())));
        assert_eq!(parse(&unix(b"s")), Ok(Address::Unix("s".into())));
        assert_eq!(parse(&unix(b"\0abstract")), Err(Errno::ACCESS));
        assert_eq!(parse(&unix(b"")), Err(Errno::ACCESS));
        let four = [&2_u16.to_ne_bytes()[..], &[0, 80, 127, 0, 0, 1], &[0; 8]].concat();
        assert_eq!(parse(&four), Ok(Address::Network("127.0.0.1:80".parse().unwrap())));
        let six = [&10_u16.to_ne_bytes()[..], &[1, 187], &[0; 4], &[0; 15], &[1], &[0; 4]].concat();
        assert_eq!(parse(&six), Ok(Address::Network("[::1]:443".parse().unwrap())));
        assert_eq!(parse(&[0, 0]), Ok(Address::None));
        assert_eq!(parse(&[1]), Err(Errno::INVAL));
        assert_eq!(parse(&four[..5]), Err(Errno::INVAL));
        assert_eq!(parse(&16_u16.to_ne_bytes()), Err(Errno::ACCESS));
    }
}
