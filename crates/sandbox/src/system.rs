//! The system calls that have no safe form elsewhere. Nothing else in the project is unsafe.
#![expect(
    unsafe_code,
    reason = "these system calls have no safe wrapper; each says why it is sound"
)]

use std::ffi::c_long;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use seccompiler::sock_filter;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Leaves the namespaces of the parent. The process must have one thread.
pub(crate) fn unshare(namespaces: UnshareFlags) -> rustix::io::Result<()> {
    debug_assert!(!namespaces.contains(UnshareFlags::FILES), "file descriptors stay shared");
    // SAFETY: without FILES, no thread loses file descriptors of another.
    unsafe { unshare_unsafe(namespaces) }
}

/// Makes sure that a program that this process becomes gets nothing but its standard streams.
pub(crate) fn close_all_on_exec() -> io::Result<()> {
    const FIRST: libc::c_uint = 3;
    // SAFETY: takes numbers only; descriptors are marked, not closed, so their owners stay right.
    let result = unsafe {
        libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    done(result)
}

/// How far a change of mounts goes.
#[derive(Clone, Copy)]
pub(crate) enum Reach {
    /// The mount itself.
    One,
    /// With every mount below it.
    All,
}

/// Makes mounts read-only.
pub(crate) fn make_read_only(mount: BorrowedFd<'_>, reach: Reach) -> rustix::io::Result<()> {
    let flags = match reach {
        Reach::One => libc::AT_EMPTY_PATH,
        Reach::All => libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
    };
    let attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the path is a C string and the attributes live until the call is over, with their size.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

/// Switches on the loopback interface of this network namespace.
pub(crate) fn raise_loopback() -> io::Result<()> {
    const UP_AND_RUNNING: libc::c_short = 0x41;
    let flags = SocketFlags::CLOEXEC;
    let socket: OwnedFd = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    // SAFETY: an `ifreq` is numbers and arrays of them, for which zero is a value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(*b"lo") {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = UP_AND_RUNNING;
    // SAFETY: this request reads an `ifreq`, which lives until the call is over.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    done(result.into())
}

/// The version of Landlock that the kernel has, or why it has none.
pub(crate) fn landlock_version() -> io::Result<u32> {
    const VERSION: libc::c_uint = 1;
    let nothing = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the kernel reads no attributes and only answers.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0_usize, VERSION) };
    u32::try_from(version).map_err(|_| io::Error::last_os_error())
}

/// Whether the kernel can filter system calls and refuse them with an error.
pub(crate) fn has_filters() -> bool {
    const ACTION_AVAILABLE: libc::c_uint = 2;
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads one number, which lives until the call is over.
    unsafe { libc::syscall(libc::SYS_seccomp, ACTION_AVAILABLE, 0, &raw const action) == 0 }
}

/// Runs `work` in a child process and gives what it returned; `None` when it did not end by itself.
///
/// The caller may have any number of threads, of which the child has only one: `work` must neither
/// allocate nor lock.
pub(crate) fn in_child(work: impl FnOnce() -> u8) -> io::Result<Option<u8>> {
    // SAFETY: the child only does `work`, which takes no lock that another thread may hold, and exits
    // without running anything of the parent's.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let code = work();
            // SAFETY: ends the process at once.
            unsafe { libc::_exit(code.into()) }
        }
        child => {
            let pid = rustix::process::Pid::from_raw(child);
            let status = loop {
                match rustix::process::waitpid(pid, rustix::process::WaitOptions::empty()) {
                    Err(rustix::io::Errno::INTR) => {}
                    result => break result?,
                }
            };
            let code = status.and_then(|(_, status)| status.exit_status());
            Ok(code.and_then(|code| u8::try_from(code).ok()))
        }
    }
}

/// Takes over a descriptor that the parent left open for this process, and keeps it from any child.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: only sets a flag, and fails on a number that is not open.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and by the agreement with the parent nobody else in this process owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Adds a filter whose undecided calls are told to whoever holds the descriptor. System calls must be
/// filtered already.
pub(crate) fn filter_and_listen(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let length = libc::c_ushort::try_from(program.len()).map_err(io::Error::other)?;
    // The two types are one: four numbers in this order.
    let filter = program.as_ptr().cast::<libc::sock_filter>().cast_mut();
    let program = libc::sock_fprog { len: length, filter };
    // SAFETY: the kernel reads the program, which lives until the call is over, with its length.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    match libc::c_int::try_from(result) {
        // SAFETY: the kernel has just made it for this call.
        Ok(number @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Tells when there are calls. Needs a runtime.
pub(crate) fn watch(calls: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is the same open descriptor for as long as it lives.
    unsafe { AsyncFd::register_with_interest(calls, Interest::READABLE) }.map_err(Into::into)
}

/// A system call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) id: u64,
    /// The thread that made it.
    pub(crate) thread: u32,
    pub(crate) args: [u64; 6],
}

/// The codes of the requests that these descriptors take: what is told, its direction, its size.
const fn request(direction: usize, number: usize, size: usize) -> libc::Ioctl {
    const MAGIC: usize = b'!' as usize;
    ((direction << 30) | (size << 16) | (MAGIC << 8) | number) as libc::Ioctl
}
const WRITE: usize = 1;
const BOTH: usize = 3;

/// Takes the next call. To be called when there is one: otherwise it waits.
pub(crate) fn receive_call(calls: BorrowedFd<'_>) -> io::Result<Call> {
    const RECEIVE: libc::Ioctl = request(BOTH, 0, size_of::<libc::seccomp_notif>());
    // SAFETY: the structure is numbers, for which zero is a value; the kernel wants it to be zero.
    let mut told: libc::seccomp_notif = unsafe { zeroed() };
    // SAFETY: this request writes a `seccomp_notif`, which lives until the call is over.
    done(unsafe { libc::ioctl(calls.as_raw_fd(), RECEIVE, &raw mut told) }.into())?;
    Ok(Call { id: told.id, thread: told.pid, args: told.data.args })
}

/// Whether somebody still waits for the answer to a call.
pub(crate) fn is_waiting(calls: BorrowedFd<'_>, id: u64) -> bool {
    const VALID: libc::Ioctl = request(WRITE, 2, size_of::<u64>());
    // SAFETY: this request reads one number, which lives until the call is over.
    unsafe { libc::ioctl(calls.as_raw_fd(), VALID, &raw const id) == 0 }
}

/// Puts a file where the caller of a call has one, in place of that.
pub(crate) fn replace_file(
    calls: BorrowedFd<'_>,
    id: u64,
    file: BorrowedFd<'_>,
    number: u32,
    closes_on_exec: bool,
) -> io::Result<()> {
    const ADD: libc::Ioctl = request(WRITE, 3, size_of::<libc::seccomp_notif_addfd>());
    let addition = libc::seccomp_notif_addfd {
        id,
        flags: u32::try_from(libc::SECCOMP_ADDFD_FLAG_SETFD).map_err(io::Error::other)?,
        srcfd: file.as_raw_fd().cast_unsigned(),
        newfd: number,
        newfd_flags: if closes_on_exec { libc::O_CLOEXEC.cast_unsigned() } else { 0 },
    };
    // SAFETY: this request reads a `seccomp_notif_addfd`, which lives until the call is over.
    let result = unsafe { libc::ioctl(calls.as_raw_fd(), ADD, &raw const addition) };
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Answers a call: done, or refused with the number of an error.
pub(crate) fn answer_call(calls: BorrowedFd<'_>, id: u64, error: Option<i32>) -> io::Result<()> {
    const SEND: libc::Ioctl = request(BOTH, 1, size_of::<libc::seccomp_notif_resp>());
    let mut answer =
        libc::seccomp_notif_resp { id, val: 0, error: error.map_or(0, |error| -error), flags: 0 };
    // SAFETY: this request reads a `seccomp_notif_resp`, which lives until the call is over.
    done(unsafe { libc::ioctl(calls.as_raw_fd(), SEND, &raw mut answer) }.into())
}

fn done(result: c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn last_error() -> rustix::io::Errno {
    rustix::io::Errno::from_io_error(&io::Error::last_os_error())
        .unwrap_or(rustix::io::Errno::INVAL)
}
