//! The processes of the machine, and functions that end the descendants of one.
//!
//! They are read from `/proc/<pid>/stat`: unlike the lists of children, every kernel has it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;
use std::time::Instant;

use centurion_sandbox::session_of;
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Dir, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getpid, getrlimit, kill_process,
    setrlimit, waitid,
};

use crate::context::lock;

/// A process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) parent: Option<Pid>,
    /// Its session. A process below a guard can only be in a session of its own or its guard's.
    pub(super) session: i32,
    /// Whether it has ended, but its parent has not waited for it yet.
    pub(super) is_over: bool,
}

/// The directory that shows processes. Held open: a command of root could cover it.
fn directory() -> io::Result<&'static OwnedFd> {
    static DIRECTORY: OnceLock<OwnedFd> = OnceLock::new();
    if let Some(directory) = DIRECTORY.get() {
        return Ok(directory);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = openat(CWD, "/proc", flags, Mode::empty())?;
    Ok(DIRECTORY.get_or_init(|| opened))
}

/// Makes sure that later calls can see processes.
pub(super) fn prepare() -> io::Result<()> {
    directory().map(|_| ())
}

/// The list of the children of a process. It is read again without opening a file: a process that may open no files any
/// more still sees its children, and adopts the children of those that it kills.
#[derive(Debug)]
pub(super) struct Children {
    of: Pid,
    list: File,
}

impl Children {
    /// Opens the list. Fails on a kernel that keeps no such lists.
    pub(super) fn of(pid: Pid) -> io::Result<Self> {
        // The children of the first thread: it gets the orphans.
        let path = format!("{0}/task/{0}/children", pid.as_raw_pid());
        let list = openat(directory()?, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { of: pid, list: list.into() })
    }

    /// The present children. Only their parent knows which of them have ended.
    pub(super) fn now(&self) -> io::Result<Vec<Process>> {
        let (mut text, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            match self.list.read_at(&mut piece, text.len() as u64)? {
                0 => break,
                count => text.extend_from_slice(piece.get(..count).unwrap_or_default()),
            }
        }
        let text = String::from_utf8_lossy(&text);
        let child = |pid: Pid| {
            let session = session_of(Some(pid)).unwrap_or(0);
            Process { pid, parent: Some(self.of), session, is_over: is_over(pid) }
        };
        Ok(text.split_ascii_whitespace().filter_map(parse_pid).map(child).collect())
    }
}

/// Whether a child of this process has ended. The parent can still wait for it.
fn is_over(child: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::Pid(child), options), Ok(Some(_)))
}

/// Whether a child of this process is stopped. Needs no file.
pub(super) fn is_stopped(child: Pid) -> bool {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::Pid(child), options), Ok(Some(_)))
}

/// Whether another process traces this one.
pub(super) fn is_traced(pid: Pid) -> bool {
    let stat = read(pid, "stat").unwrap_or_default();
    let state = stat.iter().rposition(|byte| *byte == b')').and_then(|end| stat.get(end + 2));
    state == Some(&b't')
}

static OWN_CHILDREN: Mutex<Option<Children>> = Mutex::new(None);

/// Makes sure that this process, which adopts the orphans below it, sees its children whatever limits another process
/// sets for it.
pub(super) fn hold_children() {
    // If the kernel has no such lists, the processes that watch this one still do.
    *lock(&OWN_CHILDREN) = Children::of(getpid()).ok();
}

/// Restores the limit on open files after another process changed it, as far as this process may.
pub(super) fn restore_limit() {
    const NEEDED: u64 = 64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= NEEDED) {
        return;
    }
    let within = limit.maximum.map_or(NEEDED, |maximum| maximum.min(NEEDED));
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(within), ..limit });
    // Root may do more.
    let maximum = limit.maximum.map(|maximum| maximum.max(NEEDED));
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(NEEDED), maximum });
}

/// Reads a file that describes a process.
pub(super) fn read(pid: Pid, name: &str) -> io::Result<Vec<u8>> {
    let path = format!("{}/{name}", pid.as_raw_pid());
    let file = openat(directory()?, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = Vec::new();
    File::from(file).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// All processes of the machine. A process that cannot open files any more sees only its own children, if it holds
/// their list; otherwise this fails.
pub(super) fn processes() -> io::Result<Vec<Process>> {
    restore_limit();
    match all_processes() {
        Err(error) if is_out_of_files(&error) => {
            lock(&OWN_CHILDREN).as_ref().ok_or(error).and_then(Children::now)
        }
        result => result,
    }
}

fn all_processes() -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory()?)? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().ok().and_then(parse_pid) else { continue };
        match read(pid, "stat") {
            Ok(stat) => found.extend(parse(pid, &stat)),
            Err(error) if is_out_of_files(&error) => return Err(error),
            // It has ended meanwhile.
            Err(_) => {}
        }
    }
    Ok(found)
}

/// Sends a signal to every descendant of `root`.
pub(super) fn signal_descendants(root: Pid, signal: Signal) {
    for process in descendants(&[root], &processes().unwrap_or_default()) {
        // A process that is gone needs no signal; one of another user cannot receive it.
        let _ = kill_process(process.pid, signal);
    }
}

/// Kills every present descendant of `root`.
pub(super) fn kill_descendants(root: Pid) -> io::Result<()> {
    kill_all(|processes| descendants(&[root], processes)).map(|_| ())
}

/// Kills the processes that `find` selects among all processes; returns their number.
///
/// All are stopped before the first is killed, so that none can fork while the others die.
pub(super) fn kill_all(find: impl Fn(&[Process]) -> Vec<Process>) -> io::Result<usize> {
    const ROUNDS: usize = 8;
    let mut stopped = HashSet::new();
    let mut seen = Ok(());
    for _ in 0..ROUNDS {
        let processes = match processes() {
            Ok(processes) => processes,
            Err(error) => {
                seen = Err(error);
                break;
            }
        };
        let found = find(&processes).into_iter().filter(|process| !process.is_over);
        let fresh: Vec<Pid> =
            found.map(|process| process.pid).filter(|pid| stopped.insert(*pid)).collect();
        if fresh.is_empty() {
            break;
        }
        for pid in fresh {
            let _ = kill_process(pid, Signal::STOP);
        }
    }
    for pid in &stopped {
        let _ = kill_process(*pid, Signal::KILL);
    }
    seen.map(|()| stopped.len())
}

/// Kills the processes that are born until a moment, if they satisfy `is_meant`; returns their number.
///
/// A process that forks and ends at once is gone before all processes can be listed, and so is the next one. But the
/// kernel tells the number that it assigned last, and there are few numbers behind it.
pub(super) fn kill_newborn(until: Instant, is_meant: impl Fn(Pid) -> bool) -> io::Result<usize> {
    const BEFORE: i32 = 8;
    const BEHIND: i32 = 24;
    let mut killed = 0;
    while Instant::now() < until {
        let last = last_number()?;
        let numbers = last.saturating_sub(BEFORE).max(2)..=last.saturating_add(BEHIND);
        // Asking for the session is the fastest test whether a process exists.
        let there = |pid: &Pid| session_of(Some(*pid)).is_ok();
        for pid in numbers.filter_map(Pid::from_raw).filter(there).filter(|pid| is_meant(*pid)) {
            let _ = kill_process(pid, Signal::KILL);
            killed += 1;
        }
    }
    Ok(killed)
}

/// The number of the process that was started last.
fn last_number() -> io::Result<i32> {
    let path = c"loadavg";
    let file = openat(directory()?, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = String::new();
    File::from(file).read_to_string(&mut text)?;
    let last = text.split_whitespace().next_back().and_then(|last| last.parse().ok());
    last.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Whether a process is a child of this one, or in this session.
pub(super) fn is_near(pid: Pid) -> bool {
    let (me, session) = (getpid(), session_of(None).unwrap_or(0));
    // 0 is no session, but stands for all sessions that cannot be seen.
    let is_in = |it: &Process| session != 0 && it.session == session;
    process(pid).is_some_and(|it| it.pid != me && (is_in(&it) || it.parent == Some(me)))
}

/// A process, if it exists.
pub(super) fn process(pid: Pid) -> Option<Process> {
    parse(pid, &read(pid, "stat").ok()?)
}

/// The processes below any of `roots`, nearest first.
pub(super) fn descendants(roots: &[Pid], processes: &[Process]) -> Vec<Process> {
    let mut children: HashMap<Pid, Vec<Process>> = HashMap::new();
    for process in processes {
        if let Some(parent) = process.parent {
            children.entry(parent).or_default().push(*process);
        }
    }
    let mut found: Vec<Process> =
        roots.iter().filter_map(|root| children.remove(root)).flatten().collect();
    let mut next = 0;
    while let Some(process) = found.get(next) {
        if let Some(more) = children.remove(&process.pid) {
            found.extend(more);
        }
        next += 1;
    }
    found
}

/// Parses a `stat` line. The second field is a name in parentheses that may hold anything.
fn parse(pid: Pid, stat: &[u8]) -> Option<Process> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let (state, parent) = (fields.next()?, parse_pid(fields.next()?));
    let session = fields.nth(1)?.parse().ok()?;
    Some(Process { pid, parent, session, is_over: matches!(state, "Z" | "X") })
}

fn parse_pid(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

fn is_out_of_files(error: &io::Error) -> bool {
    const PROCESS: i32 = Errno::MFILE.raw_os_error();
    const SYSTEM: i32 = Errno::NFILE.raw_os_error();
    matches!(error.raw_os_error(), Some(PROCESS | SYSTEM))
}

#[cfg(test)]
mod tests {
    use centurion_testkit::{Lack, skip};

    use super::*;

    #[test]
    fn a_process_name_cannot_hide_its_parent() {
        let pid = Pid::from_raw(12).unwrap();
        let read = parse(pid, b"12 (a) S 1 (b) S 9) R 42 12 7 0").unwrap();
        assert_eq!((read.parent, read.session, read.is_over), (Pid::from_raw(42), 7, false));
        assert!(parse(pid, b"12 (a) Z 0 0 0").unwrap().is_over);
        assert_eq!(parse(pid, b"12 no name"), None);
    }

    /// Kernel threads, and processes that entered a container from outside, have no visible session.
    #[test]
    fn the_session_of_every_process_is_the_one_that_its_file_names() {
        let mut compared = 0;
        for before in processes().unwrap() {
            let asked = session_of(Some(before.pid)).ok();
            if process(before.pid).is_some_and(|after| after == before) {
                assert_eq!(asked, Some(before.session), "{before:?}");
                compared += 1;
            }
        }
        assert!(compared > 1);
    }

    /// Each of these lives for a moment, starts the next one, and ends.
    #[test]
    fn a_chain_of_processes_that_are_gone_before_they_are_seen_is_cut() {
        // Each holds the pipe. Without a reader, the first that writes to it ends, and no other follows.
        let chain = "use POSIX; POSIX::setsid(); $| = 1; \
                     while (1) { exit if fork; setpgrp; print 1 or exit }";
        let mut perl = std::process::Command::new("perl");
        let mut first =
            perl.args(["-e", chain]).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let mut pipe = first.stdout.take().unwrap();
        // The first of them ends at once, too; its session stays.
        let session = Pid::from_child(&first).as_raw_pid();
        first.wait().unwrap();
        pipe.read_exact(&mut [0; 3]).unwrap();
        let reader = std::thread::spawn(move || {
            // The pipe ends when no process of the chain is left.
            io::copy(&mut pipe.take(1_000_000), &mut io::sink()).unwrap()
        });
        let is_meant = |pid| session_of(Some(pid)).is_ok_and(|of| of == session);
        let soon = || Instant::now() + std::time::Duration::from_millis(20);
        while !reader.is_finished() {
            kill_newborn(soon(), is_meant).unwrap();
        }
        let lived = reader.join().unwrap();
        assert!(lived < 1_000_000, "{lived} have lived");
    }

    #[test]
    fn children_are_listed_without_opening_a_file() {
        if !std::path::Path::new("/proc/thread-self/children").exists() {
            return skip(Lack::ChildLists);
        }
        assert!(Children::of(getpid()).unwrap().now().is_ok());
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "sleep 600 & echo; wait"]).stdout(std::process::Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let mut ready = [0];
        shell.stdout.take().unwrap().read_exact(&mut ready).unwrap();
        let pid = Pid::from_child(&shell);
        let children = Children::of(pid).unwrap();
        for _ in 0..2 {
            let found = children.now().unwrap();
            assert_eq!(found.len(), 1);
            assert_eq!(process(found[0].pid).unwrap().parent, Some(pid));
        }
        let child = children.now().unwrap()[0].pid;
        kill_process(pid, Signal::STOP).unwrap();
        while !is_stopped(pid) {}
        assert!(!is_over(pid) && !is_traced(pid));
        shell.kill().unwrap();
        while !is_over(pid) {}
        kill_process(child, Signal::KILL).unwrap();
        shell.wait().unwrap();
    }

    #[test]
    fn a_child_is_found_and_killed() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let me = getpid();
        let below = |root| {
            let found = descendants(&[root], &processes().unwrap());
            found.into_iter().map(|process| process.pid).collect::<Vec<_>>()
        };
        assert!(below(me).contains(&pid));
        assert!(below(pid).is_empty());
        // Only this child: other tests of this program have children too.
        let only = |processes: &[Process]| {
            processes.iter().copied().filter(|process| process.pid == pid).collect()
        };
        assert_eq!(kill_all(only).unwrap(), 1);
        assert!(!child.wait().unwrap().success());
        assert!(!below(me).contains(&pid));
    }
}
