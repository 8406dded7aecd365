//! The second watcher: ends what a guard cannot end any more.
//!
//! A command that no sandbox confines can kill, stop or blind its guard, which is a process of the same user. One
//! more process stands aside, above no command: it knows the guards of one Centurion, waits for Centurion's
//! death, gives the guards time to do their work, and kills what they leave. What belongs to a command it knows by
//! its parents, its session and its environment.

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

/// How long a guard may take to end everything when it must.
const PATIENCE: Duration = Duration::from_millis(2_500);
/// The same when Centurion is dead: guards then kill without asking first.
const PATIENCE_AFTER_DEATH: Duration = Duration::from_secs(1);
/// How long a dead guard's session is remembered: Centurion ends what such a guard left, if it lives so long.
const MEMORY: Duration = Duration::from_secs(10);
/// How often, and how long after a guard's end, it is looked for what Centurion adopted.
const AGAIN: Duration = Duration::from_millis(20);
const LOOK_FOR: Duration = Duration::from_secs(1);
/// A child of Centurion that was seen this long ago and not told of is no guard.
const NEW: Duration = Duration::from_millis(200);
/// After this, what does not die cannot be killed.
const GIVE_UP: Duration = Duration::from_secs(10);

/// What is told on standard input, a line each: a guard was started, or is to end.
pub(super) const STARTED: char = '+';
pub(super) const ENDING: char = '-';

/// A guard, known by a handle that no other process can get.
struct Guard {
    pid: Pid,
    handle: OwnedFd,
    /// When it must have ended.
    deadline: Option<Instant>,
}

pub(super) fn run(mark: &str) -> ExitCode {
    let _ = setsid();
    let _ = fs::write("/proc/self/comm", "command-guard");
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // Should it be stopped then, it goes on.
    let _ = set_parent_process_death_signal(Some(Signal::CONT));
    let _ = std::env::set_current_dir("/");
    centurion_sandbox::survive_signals();
    let parent_number = getppid();
    let parent = parent_number.and_then(|parent| pidfd_open(parent, PidfdFlags::empty()).ok());
    let (Some(parent), Ok(())) = (parent, tree::prepare()) else { return ExitCode::FAILURE };
    let adopted = parent_number.and_then(|parent| Children::of(parent).ok());
    let mut watcher = Second {
        parent,
        parent_number,
        mark: mark.as_bytes().to_owned(),
        guards: Vec::new(),
        dead: Vec::new(),
        adopted,
        left: Vec::new(),
        look_at: None,
        look_until: Instant::now(),
    };
    watcher.watch();
    watcher.finish();
    ExitCode::SUCCESS
}

struct Second {
    parent: OwnedFd,
    parent_number: Option<Pid>,
    /// What the environment of every command has in it.
    mark: Vec<u8>,
    guards: Vec<Guard>,
    /// Guards that ended, and until when they are remembered.
    dead: Vec<(Pid, Instant)>,
    /// The children of Centurion, which adopts what dead guards leave, and ends it. While it is stopped it does not.
    adopted: Option<Children>,
    /// What was adopted and is no guard: when Centurion dies it is a child of another process.
    left: Vec<LeftOver>,
    /// When it is to be looked for again, and how long.
    look_at: Option<Instant>,
    look_until: Instant,
}

/// What a dead guard has left.
struct LeftOver {
    pid: Pid,
    /// Nothing if no file can be opened.
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

    /// Ends what Centurion adopted from dead guards. Goes on for a while.
    fn end_adopted(&mut self) {
        let session = session_of(self.parent_number).unwrap_or(0);
        let children = self.adopted.as_ref().and_then(|children| children.now().ok());
        let mut found = children.unwrap_or_default();
        found.retain(|child| {
            let is_guard = self.guards.iter().any(|guard| guard.pid == child.pid);
            let is_own = child.session == session || child.pid == getpid();
            !is_guard && !is_own && tree::process(child.pid).is_none_or(|it| !it.is_over)
        });
        let mut left = Vec::new();
        for Process { pid, session, .. } in found {
            // A guard that was just started has a session of its own, and may not have been told of yet.
            let seen = self.left.iter().find(|left| left.pid == pid).map(|left| left.seen);
            let is_known = seen.is_some_and(|seen| seen.elapsed() >= NEW);
            if is_known || session != pid.as_raw_pid() {
                let _ = tree::kill_descendants(pid);
                let _ = kill_process(pid, Signal::KILL);
            }
            let handle = pidfd_open(pid, PidfdFlags::empty()).ok();
            left.push(LeftOver { pid, handle, seen: seen.unwrap_or_else(Instant::now) });
        }
        // A chain of processes goes on for a while, and its next one is adopted when this one has ended.
        if !left.is_empty() {
            self.look_until = Instant::now() + LOOK_FOR;
        }
        let again = Instant::now() + AGAIN;
        self.look_at = (again < self.look_until).then_some(again);
        self.left = left;
    }

    /// Waits for news, or until a moment.
    fn wait(&mut self, until: Option<Instant>) -> Ready {
        tree::restore_limit();
        let handles = [stdin(), self.parent.as_fd()].into_iter();
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
                // A command may have taken all files away from this process: then it has to look by itself.
                std::thread::sleep(Duration::from_millis(100));
                self.look_from_now();
                return Ready { is_told: false, parent_is_gone: getppid() != self.parent_number };
            }
        }
        let is_ready = |at: usize| polled.get(at).is_some_and(|it| !it.revents().is_empty());
        let ready = Ready { is_told: is_ready(0), parent_is_gone: is_ready(1) };
        // A guard has ended. This may be the last answer, should a command take all files away.
        if polled.iter().skip(2).any(|it| !it.revents().is_empty()) {
            self.look_from_now();
        }
        ready
    }

    /// Takes in what is told; `false` when the other end is closed.
    fn listen(&mut self, heard: &mut Vec<u8>) -> bool {
        let mut bytes = [0; 4096];
        // Nothing may be read ahead: what was read is not seen by `poll`.
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
        if let Some(pid) = line.strip_prefix(STARTED).and_then(pid) {
            // One that has ended already is remembered all the same.
            match pidfd_open(pid, PidfdFlags::empty()) {
                Ok(handle) => self.guards.push(Guard { pid, handle, deadline: None }),
                Err(_) => self.dead.push((pid, Instant::now() + MEMORY)),
            }
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
                // Once more, should the kernel need its time.
                guard.deadline = Some(now + PATIENCE);
            }
        }
    }

    /// Sees to it that nothing is left.
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

/// Kills all processes of some sessions, without the help of any file; how many.
fn kill_sessions(sessions: &HashSet<i32>) -> usize {
    /// The kernel gives out no larger number.
    const LARGEST: i32 = 1 << 22;
    let is_meant =
        |pid: &Pid| session_of(Some(*pid)).is_ok_and(|session| sessions.contains(&session));
    let found = (2..=LARGEST).filter_map(Pid::from_raw).filter(is_meant);
    found.filter(|pid| kill_process(*pid, Signal::KILL).is_ok()).count()
}

struct Ready {
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
    // It may be stopped; what it does not do any more is done here.
    let _ = tree::kill_descendants(guard.pid);
    let _ = kill_process(guard.pid, Signal::KILL);
}
