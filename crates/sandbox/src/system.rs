//! The system calls that have no safe form elsewhere. Nothing else in the project is unsafe.
#![expect(
    unsafe_code,
    reason = "these system calls have no safe wrapper; each says why it is sound"
)]

use std::ffi::{CString, c_char, c_long};
use std::io;
use std::mem::{size_of, zeroed};
use std::ops::Range;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getpid, getppid, set_parent_process_death_signal, setrlimit,
    setsid,
};
use rustix::thread::{UnshareFlags, set_no_new_privs, unshare_unsafe};
use seccompiler::{BpfProgram, apply_filter, sock_filter};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Leaves the namespaces of the parent. The process must have one thread.
pub(crate) fn unshare(namespaces: UnshareFlags) -> rustix::io::Result<()> {
    debug_assert!(!namespaces.contains(UnshareFlags::FILES), "file descriptors stay shared");
    // SAFETY: without FILES, no thread loses file descriptors of another.
    unsafe { unshare_unsafe(namespaces) }
}

/// Makes sure that a program that this process becomes inherits only its standard streams.
pub(crate) fn close_all_on_exec() -> io::Result<()> {
    const FIRST: libc::c_uint = 3;
    // SAFETY: takes numbers only; descriptors are marked, not closed, so their owners stay right.
    let result = unsafe {
        libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    done(result)
}

/// The session of a process, or of this one: 0 where its leader is not visible, as for a process that entered this PID
/// namespace from outside. `rustix` assumes that 0 is impossible.
pub fn session_of(pid: Option<Pid>) -> io::Result<i32> {
    // SAFETY: takes and gives numbers only.
    let session = unsafe { libc::getsid(Pid::as_raw(pid)) };
    if session < 0 { Err(io::Error::last_os_error()) } else { Ok(session) }
}

/// Has the kernel forget pages of a private mapping that cannot be written to and that are as their file has them: they come
/// back from it. Whether it did.
pub(crate) fn forget(addresses: Range<usize>) -> bool {
    let (start, length) = (addresses.start as *mut libc::c_void, addresses.len());
    // SAFETY: the next use of such a page finds the same bytes, read from the file, and no write can be lost.
    unsafe { libc::madvise(start, length, libc::MADV_DONTNEED) == 0 }
}

/// The scope of a change of mounts.
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

/// The kernel's version of Landlock, or the reason that it has none.
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

/// Runs `work` in a child process and returns its result; `None` when it did not end by itself.
///
/// The caller may have any number of threads, of which the child has only one: `work` must neither allocate nor lock.
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
            let pid = Pid::from_raw(child);
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

/// Texts in the kernel's form for `execve`.
pub(crate) struct Words {
    /// Ends with a null. Atomic, so that another thread may hold them: they are never changed.
    pointers: Vec<AtomicPtr<c_char>>,
    _texts: Vec<CString>,
}

impl Words {
    pub(crate) fn new(texts: Vec<CString>) -> Self {
        let pointers = texts.iter().map(|text| text.as_ptr().cast_mut());
        let pointers = pointers.chain([null_mut()]).map(AtomicPtr::new).collect();
        Self { pointers, _texts: texts }
    }
}

/// The parts that a process needs to become a program that only reads.
pub(crate) struct ReaderParts {
    /// Opened for reading.
    pub(crate) program: OwnedFd,
    pub(crate) words: Words,
    pub(crate) variables: Words,
    /// Landlock's.
    pub(crate) rules: OwnedFd,
    pub(crate) filter: BpfProgram,
    /// In bytes.
    pub(crate) memory: u64,
    /// Processor time.
    pub(crate) seconds: u64,
}

/// Makes a command become that program instead of its own, confined for good.
pub(crate) fn become_reader(command: &mut Command, becoming: ReaderParts) {
    let parent = getpid();
    let become_it = move || -> io::Result<()> {
        // All of it, or a closure would capture only the parts that are named below.
        let becoming = &becoming;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the kernel was asked to watch it.
        if getppid() != Some(parent) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let limit = |most: u64| Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(Resource::Data, limit(becoming.memory))?;
        setrlimit(Resource::Cpu, limit(becoming.seconds))?;
        setrlimit(Resource::Core, limit(0))?;
        close_all_on_exec()?;
        set_no_new_privs(true)?;
        // SAFETY: takes numbers only.
        let restricted = unsafe {
            libc::syscall(libc::SYS_landlock_restrict_self, becoming.rules.as_raw_fd(), 0)
        };
        done(restricted)?;
        apply_filter(&becoming.filter).map_err(|_| io::ErrorKind::Unsupported)?;
        // SAFETY: the path is a C string; both lists are pointers to C strings that live as long as
        // `becoming` does, with a null at the end. An atomic pointer has the form of a plain one.
        unsafe {
            libc::syscall(
                libc::SYS_execveat,
                becoming.program.as_raw_fd(),
                c"".as_ptr(),
                becoming.words.pointers.as_ptr(),
                becoming.variables.pointers.as_ptr(),
                libc::AT_EMPTY_PATH,
            )
        };
        Err(io::Error::last_os_error())
    };
    // SAFETY: after the fork, only system calls are made: nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(become_it) };
}

/// Makes a command start in a session of its own, away from any terminal, and end with the thread that starts it.
pub fn bind_to_starter(command: &mut Command) {
    let parent = getpid();
    let bind = move || -> io::Result<()> {
        setsid()?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the kernel was asked to watch it.
        if getppid() != Some(parent) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        Ok(())
    };
    // SAFETY: after the fork, only system calls are made: nothing is allocated and no lock is taken.
    unsafe { command.pre_exec(bind) };
}

/// Forks this process, which must have one thread: returns the child's number in the parent, `None` in the child.
pub fn fork_alone() -> io::Result<Option<Pid>> {
    // SAFETY: with one thread, the child has everything that the parent had.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(Pid::from_raw(child)),
    }
}

/// Ends this process at once, without running anything.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// Ignores every signal that can be ignored, except the end of children.
pub(crate) fn ignore_signals() {
    const LAST: i32 = 64;
    for signal in (1..=LAST).filter(|signal| *signal != libc::SIGCHLD) {
        // SAFETY: sets no handler; what cannot be ignored is refused.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Makes this process survive signals that would end or stop it, as far as possible. Programs that it becomes or starts
/// are not affected, as they would be if the signals were ignored.
pub fn survive_signals() {
    const LAST: i32 = 64;
    /// Faults of the process itself, and the signals about its children.
    const LEFT: [i32; 9] = [
        libc::SIGABRT,
        libc::SIGBUS,
        libc::SIGCHLD,
        libc::SIGCONT,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGPIPE,
        libc::SIGSEGV,
        libc::SIGSYS,
    ];
    take_no_notice((1..=LAST).filter(|signal| !LEFT.contains(signal)));
}

/// Makes a write beyond the limit on the size of files fail with an error instead of ending this process. The limit
/// still ends programs that it starts.
pub fn survive_file_size_limit() {
    take_no_notice([libc::SIGXFSZ].into_iter());
}

fn take_no_notice(signals: impl Iterator<Item = i32>) {
    extern "C" fn nothing(_: i32) {}

    // SAFETY: the structure is numbers and a set of them, for which zero is a value.
    let mut action: libc::sigaction = unsafe { zeroed() };
    let handler: extern "C" fn(i32) = nothing;
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    for signal in signals {
        // SAFETY: the handler does nothing, which is allowed at any moment; what cannot be handled is refused.
        unsafe { libc::sigaction(signal, &raw const action, null_mut()) };
    }
}

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look_at_stdout() {
    // SAFETY: only asks for a flag.
    if unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1 {
        STDOUT_WAS_CLOSED.store(true, Ordering::Relaxed);
    }
}

// SAFETY: the loader calls what stands here before `main`, on one thread; the function makes one system call and
// sets one number.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = look_at_stdout;

/// Whether this process was started without a standard output. The runtime opens `/dev/null` in its place before `main`
/// runs, so that later writes would succeed and be lost.
pub fn was_stdout_closed() -> bool {
    // Names the table's entry, or the linker could drop it.
    let _ = std::hint::black_box(&BEFORE_MAIN);
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}

/// Ends this process by a signal, so that its parent sees that.
pub(crate) fn die_by(signal: i32) -> ! {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads a structure that lives until the call is over; sets no handler; takes numbers.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
        // Signals that end nothing by default.
        libc::_exit(128 + signal)
    }
}

/// Takes over a descriptor that the parent left open for this process, and keeps it from every child.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: only sets a flag, and fails on a number that is not open.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and by the agreement with the parent nothing else in this process owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Adds a filter that passes undecided calls to the holder of the descriptor. System calls must be filtered
/// already.
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

/// Makes a descriptor awaitable: of system calls, which is readable when there are any, or of a process, which is when it
/// has ended. Needs a runtime.
pub fn awaitable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is the same open descriptor for as long as it lives.
    unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }.map_err(Into::into)
}

/// A system call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) id: u64,
    /// The thread that made it.
    pub(crate) thread: u32,
    pub(crate) args: [u64; 6],
}

/// The code of a request for these descriptors: the number, the direction, the size.
const fn request(direction: usize, number: usize, size: usize) -> libc::Ioctl {
    const MAGIC: usize = b'!' as usize;
    ((direction << 30) | (size << 16) | (MAGIC << 8) | number) as libc::Ioctl
}
const WRITE: usize = 1;
const BOTH: usize = 3;

/// Takes the next call. Waits if there is none: the caller checks first.
pub(crate) fn receive_call(calls: BorrowedFd<'_>) -> io::Result<Call> {
    const RECEIVE: libc::Ioctl = request(BOTH, 0, size_of::<libc::seccomp_notif>());
    // SAFETY: the structure is numbers, for which zero is a value; the kernel wants it to be zero.
    let mut told: libc::seccomp_notif = unsafe { zeroed() };
    // SAFETY: this request writes a `seccomp_notif`, which lives until the call is over.
    done(unsafe { libc::ioctl(calls.as_raw_fd(), RECEIVE, &raw mut told) }.into())?;
    Ok(Call { id: told.id, thread: told.pid, args: told.data.args })
}

/// Whether the caller still waits for the answer to a call.
pub(crate) fn is_waiting(calls: BorrowedFd<'_>, id: u64) -> bool {
    const VALID: libc::Ioctl = request(WRITE, 2, size_of::<u64>());
    // SAFETY: this request reads one number, which lives until the call is over.
    unsafe { libc::ioctl(calls.as_raw_fd(), VALID, &raw const id) == 0 }
}

/// Replaces a descriptor of a call's caller by a file.
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

/// Answers a call: success, or the number of an error.
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
