//! The second watcher: ends the processes that a guard can no longer end.
//!
//! A command that no sandbox confines can kill, stop or blind its guard, which is a process of the same user. So there
//! is one more process, above no command: it knows the guards of one Centurion, waits for Centurion's death, gives the
//! guards time to do their work, and kills the processes that they leave. It recognizes the processes of a command by
//! their parents, their session and their environment.

use std::collections::HashSet;
use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use centurion_sandbox::session_of;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, getpid, getppid, kill_process, pidfd_open,
    set_dumpable_behavior, set_parent_process_death_signal, setsid,
};
use rustix::stdio::stdin;

use super::family::MARK;
use super::tree::{self, Children, Process};
use super::watch::BRIEFLY;

/// The time that a guard has to end everything when it must.
const PATIENCE: Duration = Duration::from_millis(2_500);
/// The same when Centurion is dead: guards then kill at once.
const PATIENCE_AFTER_DEATH: Duration = Duration::from_secs(1);
/// The time for which a dead guard's session is remembered: a live Centurion ends the processes of such a guard within
/// it.
const MEMORY: Duration = Duration::from_secs(10);
/// The interval, and the time after a guard's end, of searches for processes that Centurion adopted.
const AGAIN: Duration = Duration::from_millis(20);
const LOOK_FOR: Duration = Duration::from_secs(1);
/// A child of Centurion that was seen this long ago, without a message about it, is no guard.
const NEW: Duration = Duration::from_millis(200);
/// The same while Centurion starts a guard. On a busy machine it may get no time between the start and the message.
const LONGEST_START: Duration = Duration::from_secs(10);
/// A process that survives for longer cannot be killed.
const GIVE_UP: Duration = Duration::from_secs(10);

/// The messages on standard input, one line each: a guard is about to be started, was started, could not be started, or must
/// end; a child is no guard and stays.
pub(super) const STARTING: char = '>';
pub(super) const STARTED: char = '+';
pub(super) const NOT_STARTED: char = '!';
pub(super) const ENDING: char = '-';
pub(super) const SPARED: char = '=';

/// A guard, known by a handle that no other process can get.
struct Guard {
    pid: Pid,
    handle: OwnedFd,
    /// The time by which it must have ended.
    deadline: Option<Instant>,
}

pub(super) fn run(mark: &str) -> ExitCode {
    let _ = setsid();
    let _ = fs::write("/proc/self/comm", "command-guard");
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // If it is stopped, it continues when Centurion dies.
    let _ = set_parent_process_death_signal(Some(Signal::CONT));
    let _ = std::env::set_current_dir("/");
    centurion_sandbox::survive_signals();
    if tree::prepare().is_err() {
        return ExitCode::FAILURE;
    }
    let (parent_number, parent) = centurion(mark).unzip();
    let adopted = parent_number.and_then(|parent| Children::of(parent).ok());
    let mut watcher = Second {
        parent,
        parent_number,
        mark: mark.as_bytes().to_owned(),
        guards: Vec::new(),
        spared: Vec::new(),
        dead: Vec::new(),
        starting: None,
        adopted,
        left: Vec::new(),
        look_at: None,
        look_until: Instant::now(),
    };
    watcher.watch();
    watcher.finish();
    ExitCode::SUCCESS
}

/// The Centurion of a mark, if it is the parent of this process. If it died before this process looked, another process is
/// the parent, and the children of that one are not meant.
fn centurion(mark: &str) -> Option<(Pid, OwnedFd)> {
    let number = mark.split('-').next()?.parse().ok().and_then(Pid::from_raw)?;
    let handle = pidfd_open(number, PidfdFlags::empty()).ok()?;
    // Compared last: a process that is the parent now has been the parent all the time.
    (getppid() == Some(number)).then_some((number, handle))
}

struct Second {
    /// Centurion; `None` where it is dead already.
    parent: Option<OwnedFd>,
    parent_number: Option<Pid>,
    /// The mark in the environment of every command.
    mark: Vec<u8>,
    guards: Vec<Guard>,
    /// Children of Centurion in sessions of their own that are no guards and end by themselves.
    spared: Vec<Pid>,
    /// Ended guards, and the time until which they are remembered.
    dead: Vec<(Pid, Instant)>,
    /// The time since which Centurion starts a guard.
    starting: Option<Instant>,
    /// The children of Centurion, which adopts and ends the processes of dead guards. A stopped Centurion does not end
    /// them.
    adopted: Option<Children>,
    /// Adopted processes that are no guards: when Centurion dies, they become children of another process.
    left: Vec<LeftOver>,
    /// The time of the next search, and the end of searching.
    look_at: Option<Instant>,
    look_until: Instant,
}

/// A process that a dead guard has left.
struct LeftOver {
    pid: Pid,
    /// `None` if no file can be opened.
    handle: Option<OwnedFd>,
    seen: Instant,
}

impl Second {
    /// Returns when Centurion is dead.
    fn watch(&mut self) {
        let mut heard = Vec::new();
        loop {
            let deadlines = self.guards.iter().filter_map(|guard| guard.deadline);
            let ready = self.wait(deadlines.chain(self.look_at).min());
            if ready.parent_is_gone {
                return;
            }
            if ready.is_told && !self.listen(&mut heard) {
                return;
            }
            self.forget_ended();
            self.end_overdue();
            if self.look_at.is_some_and(|at| at <= Instant::now()) {
                self.end_adopted();
            }
        }
    }

    fn look_from_now(&mut self) {
        let now = Instant::now();
        self.look_at = Some(now);
        self.look_until = now + LOOK_FOR;
    }

    /// Ends the processes that Centurion adopted from dead guards. Repeats this for a while.
    fn end_adopted(&mut self) {
        let session = session_of(self.parent_number).unwrap_or(0);
        let children = self.adopted.as_ref().and_then(|children| children.now().ok());
        let mut found = children.unwrap_or_default();
        found.retain(|child| {
            let is_guard = self.guards.iter().any(|guard| guard.pid == child.pid);
            let is_own = child.session == session
                || child.pid == getpid()
                || self.spared.contains(&child.pid);
            !is_guard && !is_own && tree::process(child.pid).is_none_or(|it| !it.is_over)
        });
        let mut left = Vec::new();
        for Process { pid, session, .. } in found {
            let seen = self.left.iter().find(|left| left.pid == pid).map(|left| left.seen);
            if session != pid.as_raw_pid() || seen.is_some_and(|seen| !self.may_be_new(seen)) {
                let _ = tree::kill_descendants(pid);
                let _ = kill_process(pid, Signal::KILL);
            }
            let handle = pidfd_open(pid, PidfdFlags::empty()).ok();
            left.push(LeftOver { pid, handle, seen: seen.unwrap_or_else(Instant::now) });
        }
        // A chain of processes lives for a while: its next process is adopted when this one has ended.
        if !left.is_empty() {
            self.look_until = Instant::now() + LOOK_FOR;
        }
        let again = Instant::now() + AGAIN;
        self.look_at = (again < self.look_until).then_some(again);
        self.left = left;
    }

    /// Whether a child of Centurion, in a session of its own and seen first at a time, may be a guard about which the message
    /// has not arrived yet.
    fn may_be_new(&self, seen: Instant) -> bool {
        let is_starting = self.starting.is_some_and(|since| since.elapsed() < LONGEST_START);
        seen.elapsed() < if is_starting { LONGEST_START } else { NEW }
    }

    /// Waits for news, or until the given time.
    fn wait(&mut self, until: Option<Instant>) -> StartState {
        tree::restore_limit();
        let parent = self.parent.iter().map(|parent| parent.as_fd());
        let handles = [stdin()].into_iter().chain(parent);
        let handles = handles.chain(self.guards.iter().map(|guard| guard.handle.as_fd()));
        let mut polled: Vec<_> =
            handles.map(|handle| PollFd::from_borrowed_fd(handle, PollFlags::IN)).collect();
        let timeout = until.map(|until| {
            let left = until.saturating_duration_since(Instant::now());
            Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 })
        });
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => {
                // A command may have taken all files away from this process: then it has to poll by itself.
                std::thread::sleep(Duration::from_millis(100));
                self.look_from_now();
                return StartState {
                    is_told: false,
                    parent_is_gone: getppid() != self.parent_number,
                };
            }
        }
        let is_ready = |at: usize| polled.get(at).is_some_and(|it| !it.revents().is_empty());
        let parents = usize::from(self.parent.is_some());
        let ready =
            StartState { is_told: is_ready(0), parent_is_gone: parents > 0 && is_ready(parents) };
        // A guard has ended. This may be the last answer, if a command takes all files away.
        if polled.iter().skip(1 + parents).any(|it| !it.revents().is_empty()) {
            self.look_from_now();
        }
        ready
    }

    /// Reads messages; `false` when the other end is closed.
    fn listen(&mut self, heard: &mut Vec<u8>) -> bool {
        let mut bytes = [0; 4096];
        // Nothing may be read ahead: `poll` does not see bytes that were read.
        match rustix::io::read(stdin(), &mut bytes) {
            Ok(0) => return false,
            Ok(count) => heard.extend_from_slice(bytes.get(..count).unwrap_or_default()),
            Err(error) => return error == Errno::INTR,
        }
        while let Some(end) = heard.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = heard.drain(..=end).collect();
            self.obey(str::from_utf8(&line).unwrap_or_default().trim_end());
        }
        true
    }

    fn obey(&mut self, line: &str) {
        let pid = |text: &str| text.parse().ok().and_then(Pid::from_raw);
        match line.chars().next() {
            Some(STARTING) => self.starting = Some(Instant::now()),
            Some(STARTED | NOT_STARTED) => self.starting = None,
            _ => {}
        }
        if let Some(pid) = line.strip_prefix(STARTED).and_then(pid) {
            // A guard that has ended already is remembered all the same.
            match pidfd_open(pid, PidfdFlags::empty()) {
                Ok(handle) => self.guards.push(Guard { pid, handle, deadline: None }),
                Err(_) => self.dead.push((pid, Instant::now() + MEMORY)),
            }
        } else if let Some(pid) = line.strip_prefix(SPARED).and_then(pid) {
            self.spared.push(pid);
        } else if let Some(pid) = line.strip_prefix(ENDING).and_then(pid) {
            let found = self.guards.iter_mut().find(|guard| guard.pid == pid);
            if let Some(guard) = found {
                guard.deadline = Some(Instant::now() + PATIENCE);
            }
        }
    }

    fn forget_ended(&mut self) {
        let now = Instant::now();
        self.dead.retain(|(_, until)| *until > now);
        let ended = self.guards.extract_if(.., |guard| is_over(&guard.handle));
        let before = self.dead.len();
        self.dead.extend(ended.map(|guard| (guard.pid, now + MEMORY)));
        if self.dead.len() > before {
            self.look_from_now();
        }
    }

    /// Kills guards that had to end and did not, with everything below them.
    fn end_overdue(&mut self) {
        let now = Instant::now();
        for guard in &mut self.guards {
            if guard.deadline.is_some_and(|deadline| deadline <= now) {
                end(guard);
                // Try again later, in case the kernel needs time.
                guard.deadline = Some(now + PATIENCE);
            }
        }
    }

    /// Makes sure that no process is left.
    fn finish(&mut self) {
        let patience = Instant::now() + PATIENCE_AFTER_DEATH;
        while !self.guards.is_empty() && Instant::now() < patience {
            self.wait_for_guards(patience);
            self.forget_ended();
        }
        for guard in &self.guards {
            end(guard);
        }
        for LeftOver { pid, handle, .. } in &self.left {
            if handle.as_ref().is_none_or(|handle| !is_over(handle)) {
                let _ = tree::kill_descendants(*pid);
                let _ = kill_process(*pid, Signal::KILL);
            }
        }
        let guards = self.guards.iter().map(|guard| guard.pid);
        let sessions: HashSet<i32> =
            guards.chain(self.dead.iter().map(|(pid, _)| *pid)).map(Pid::as_raw_pid).collect();
        let give_up = Instant::now() + GIVE_UP;
        let is_left = |process: &Process| {
            process.pid != getpid()
                && (sessions.contains(&process.session) || self.is_marked(process.pid))
        };
        let find = |processes: &[Process]| {
            let roots: Vec<Process> = processes.iter().copied().filter(is_left).collect();
            let pids: Vec<Pid> = roots.iter().map(|process| process.pid).collect();
            [roots, tree::descendants(&pids, processes)].concat()
        };
        let is_meant = |pid: Pid| {
            pid != getpid()
                && session_of(Some(pid))
                    .is_ok_and(|session| sessions.contains(&session) || self.is_marked(pid))
        };
        loop {
            let killed = match tree::kill_all(find) {
                Ok(killed) => {
                    killed + tree::kill_newborn(Instant::now() + BRIEFLY, is_meant).unwrap_or(0)
                }
                Err(_) => kill_sessions(&sessions),
            };
            if killed == 0 || Instant::now() > give_up {
                return;
            }
        }
    }

    fn wait_for_guards(&self, until: Instant) {
        let handles = self.guards.iter().map(|guard| guard.handle.as_fd());
        let mut polled: Vec<_> =
            handles.map(|handle| PollFd::from_borrowed_fd(handle, PollFlags::IN)).collect();
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
        let _ = poll(&mut polled, Some(&timeout));
    }

    fn is_marked(&self, pid: Pid) -> bool {
        let wanted = [MARK.as_bytes(), b"=", &self.mark].concat();
        tree::read(pid, "environ")
            .is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|variable| variable == wanted))
    }
}

/// Kills all processes of some sessions, without opening any file; returns their number.
fn kill_sessions(sessions: &HashSet<i32>) -> usize {
    /// The largest process number of the kernel.
    const LARGEST: i32 = 1 << 22;
    let is_meant =
        |pid: &Pid| session_of(Some(*pid)).is_ok_and(|session| sessions.contains(&session));
    let found = (2..=LARGEST).filter_map(Pid::from_raw).filter(is_meant);
    found.filter(|pid| kill_process(*pid, Signal::KILL).is_ok()).count()
}

struct StartState {
    is_told: bool,
    parent_is_gone: bool,
}

fn is_over(handle: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(handle, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut polled, Some(&now)), Ok(1..))
}

/// Kills everything below a guard, then the guard.
fn end(guard: &Guard) {
    if is_over(&guard.handle) {
        return;
    }
    // The guard may be stopped: this does its work.
    let _ = tree::kill_descendants(guard.pid);
    let _ = kill_process(guard.pid, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_that_takes_long_to_start_is_not_taken_for_left_over() {
        let mut second = Second {
            parent: None,
            parent_number: None,
            mark: Vec::new(),
            guards: Vec::new(),
            spared: Vec::new(),
            dead: Vec::new(),
            starting: None,
            adopted: None,
            left: Vec::new(),
            look_at: None,
            look_until: Instant::now(),
        };
        let before = |time: Duration| Instant::now().checked_sub(time).unwrap();
        let (slow, never) = (2 * NEW, 2 * LONGEST_START);
        assert!(second.may_be_new(Instant::now()) && !second.may_be_new(before(slow)));
        second.obey(&format!("{STARTING}1"));
        assert!(second.may_be_new(before(slow)) && !second.may_be_new(before(never)));
        for over in [format!("{STARTED}{}", i32::MAX), format!("{NOT_STARTED}1")] {
            second.obey(&format!("{STARTING}1"));
            second.obey(&over);
            assert!(!second.may_be_new(before(slow)), "{over}");
        }
        // A Centurion that is stopped while it starts one is not waited for without end.
        second.starting = Some(before(never));
        assert!(!second.may_be_new(before(slow)));
    }
}
