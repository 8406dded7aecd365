//! The process above a guard: ends everything when the guard is killed, or when the guard fails to after Centurion's
//! death.
//!
//! It does nothing else, and has one thread: a guard begins as this process and forks.

use std::fs::{self, File};
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, getpid, getppid, kill_process,
    pidfd_open, set_child_subreaper, set_dumpable_behavior, set_parent_process_death_signal,
    setsid, wait, waitpid,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::watch::BRIEFLY;
use super::{CommandLimits, cgroup, tree};

/// The interval of checks whether another process holds the guard.
const TICK: Duration = Duration::from_millis(500);
/// The time that a guard has to end everything once Centurion is dead.
const PATIENCE: Duration = Duration::from_secs(1);
/// A process that survives for longer cannot be killed.
const GIVE_UP: Duration = Duration::from_secs(10);

/// The owner of a guard's standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streams {
    /// The guard. Centurion sees the end of the streams when everything has ended.
    Guards,
    /// The program that the guard runs: only that program may hold them.
    Programs,
}

/// The role of this process after the fork.
pub(super) enum GuardRole {
    /// The guard, with a handle of Centurion's process.
    Guard(Option<OwnedFd>),
    /// The process above the guard, at the end of its work.
    Outer(ExitCode),
}

/// Leaves the caller's session, and forks into the guard and the process above it.
pub(super) fn divide(streams: Streams, limits: CommandLimits) -> io::Result<GuardRole> {
    // Away from the terminal: its signals do not reach the command, and no program can ask there for a password. The
    // leader of a process group cannot leave, but no caller starts a guard as one.
    let _ = setsid();
    // `killall` with the parent's name must not hit the guard too.
    let _ = fs::write("/proc/self/comm", "command-guard");
    centurion_sandbox::survive_signals();
    tree::prepare()?;
    let parent = getppid().and_then(|parent| pidfd_open(parent, PidfdFlags::empty()).ok());
    become_reaper()?;
    let Some(guard) = centurion_sandbox::fork_alone()? else {
        become_reaper()?;
        cgroup::make(getpid(), limits);
        return Ok(GuardRole::Guard(parent));
    };
    if streams == Streams::Programs {
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&nothing)?;
        dup2_stdout(&nothing)?;
        dup2_stderr(&nothing)?;
    }
    // This process may live long: it must not keep a directory busy.
    let _ = std::env::set_current_dir("/");
    let end = watch(guard, parent.as_ref());
    if limits != CommandLimits::default() {
        cgroup::remove(guard);
    }
    Ok(GuardRole::Outer(end))
}

fn become_reaper() -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    // A stopped process continues when its parent dies.
    set_parent_process_death_signal(Some(Signal::CONT))?;
    // Another process could open the other end of the pipes through it.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    tree::hold_children();
    Ok(())
}

/// Waits for the guard's end, or for Centurion's and then the guard's.
fn watch(guard: Pid, parent: Option<&OwnedFd>) -> ExitCode {
    let Ok(handle) = pidfd_open(guard, PidfdFlags::empty()) else {
        // A kernel without process handles: wait for the guard alone.
        return finish(wait_for(guard));
    };
    let handles = [Some(&handle), parent];
    let mut was_held = false;
    let ready = loop {
        let Some(ready) = wait_until_ready(&handles, Some(Instant::now() + TICK)) else {
            // A command has taken all files away from this process.
            return finish(false);
        };
        if ready.iter().any(|is_ready| *is_ready) {
            break ready;
        }
        // A stopped guard would do nothing when Centurion dies. Only a command that wants to outlive Centurion stops
        // its guard, and that command ends now. A single stop may be a pause of all processes.
        let is_held = tree::is_stopped(guard) || tree::is_traced(guard);
        if is_held && was_held {
            return finish(false);
        }
        was_held = is_held;
    };
    if !ready.first().is_some_and(|is_ready| *is_ready) {
        // Centurion is dead. A stopped guard continues; one that does not end has had its time.
        let _ = kill_process(guard, Signal::CONT);
        let until = Instant::now() + PATIENCE;
        let ready = wait_until_ready(&[Some(&handle)], Some(until)).unwrap_or_default();
        if !ready.first().is_some_and(|is_ready| *is_ready) {
            return finish(false);
        }
    }
    finish(wait_for(guard))
}

/// The handles that are ready, once one is or the time is over; `None` if they cannot be polled.
fn wait_until_ready(handles: &[Option<&OwnedFd>], until: Option<Instant>) -> Option<Vec<bool>> {
    loop {
        // The kernel polls no more handles than the process may have open.
        tree::restore_limit();
        let known = handles.iter().flatten();
        let mut polled: Vec<_> =
            known.map(|it| PollFd::from_borrowed_fd(it.as_fd(), PollFlags::IN)).collect();
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(_) => return Some(polled.iter().map(|it| !it.revents().is_empty()).collect()),
            Err(_) => return None,
        }
    }
}

/// Waits for the guard; returns whether it ended as it should.
fn wait_for(guard: Pid) -> bool {
    loop {
        match waitpid(Some(guard), WaitOptions::empty()) {
            Ok(Some((_, status))) => return status.exit_status() == Some(0),
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Kills the remaining processes, if the guard has not.
fn finish(is_clean: bool) -> ExitCode {
    if is_clean {
        return ExitCode::SUCCESS;
    }
    let give_up = Instant::now() + GIVE_UP;
    while Instant::now() < give_up && tree::kill_descendants(getpid()).is_ok() {
        loop {
            // Any child: `waitpid` without a number means the children in this process group.
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                // Nothing is left. The processes above check once more all the same.
                Err(_) => return ExitCode::FAILURE,
            }
        }
        let _ = tree::kill_newborn(Instant::now() + BRIEFLY, tree::is_near);
    }
    ExitCode::FAILURE
}
