//! The system calls that have no safe form elsewhere. Nothing else in the project is unsafe.
#![expect(
    unsafe_code,
    reason = "these system calls have no safe wrapper; each says why it is sound"
)]

use std::ffi::c_long;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{UnshareFlags, unshare_unsafe};

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

fn done(result: c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn last_error() -> rustix::io::Errno {
    rustix::io::Errno::from_io_error(&io::Error::last_os_error())
        .unwrap_or(rustix::io::Errno::INVAL)
}
