//! The guards of this process: starts them, and ends the processes that a killed guard leaves behind.
//!
//! This process adopts the children of a killed guard. Everything below a guard is in another session than this
//! process, and no process can enter an existing session: so a child of this process in another session that is no
//! guard, and is not [spared](spare), is left over.

use std::io::{self, Write as _};
use std::process::{self, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use centurion_sandbox::session_of;
use parking_lot::Mutex;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, pidfd_open,
    set_child_subreaper, waitid, waitpid,
};
use tokio::process::{Child, Command};

use super::second::{ENDING, NOT_STARTED, SPARED, STARTED, STARTING};
use super::tree::{self, Children, Process};
use super::watch::BRIEFLY;
use super::{GuardProgram, SECOND};
use crate::context::lock;

/// The variable in the environment of every process below a guard, unless the process removes it.
pub(super) const MARK: &str = "CENTURION_GUARDED_BY";

/// The time limit for ending the processes that a guard has left.
const PATIENCE: Duration = Duration::from_secs(3);

/// The interval of checks whether another process holds a guard or the second watcher.
const TICK: Duration = Duration::from_millis(500);

static FAMILY: Mutex<Family> = Mutex::new(Family {
    guards: Vec::new(),
    spared: Vec::new(),
    held: Vec::new(),
    is_watched: false,
    second: None,
});

struct Family {
    guards: Vec<KnownChild>,
    /// Other children in sessions of their own.
    spared: Vec<Pid>,
    /// The guards, and the second watcher, that were stopped or traced at the last check.
    held: Vec<Pid>,
    /// Whether a thread watches the guards.
    is_watched: bool,
    /// The second watcher, and its input.
    second: Option<(process::Child, process::ChildStdin)>,
}

/// A child of this process, known by a handle that no other process can get.
struct KnownChild {
    pid: Pid,
    handle: OwnedFd,
    kind: GuardKind,
}

/// Kinds of programs that are started here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuardKind {
    Guard,
    /// A program without a guard, which the kernel ends with this process even if it is stopped or traced.
    Alone,
}

/// A guard of this process. Once this is dropped, the second watcher makes sure that the guard ends.
#[derive(Debug)]
pub(crate) struct Member {
    pid: Pid,
    is_gone: bool,
}

/// Spares a child of this process that is in another session and is no guard, such as the keeper of the terminal.
pub fn spare(child: u32) {
    let Some(pid) = i32::try_from(child).ok().and_then(Pid::from_raw) else { return };
    let mut family = lock(&FAMILY);
    family.spared.push(pid);
    // A second watcher that starts later is told then.
    let _ = family.say(SPARED, pid);
}

/// Starts a guard from a fully prepared command.
pub(crate) fn spawn(
    program: &GuardProgram,
    command: &mut Command,
    kind: GuardKind,
) -> io::Result<(Child, Member)> {
    // Under the lock: a guard that is not registered yet would count as left over.
    let mut family = lock(&FAMILY);
    adopt_orphans();
    // Without a second watcher, or with one that is told of it later, nothing is there that could take it for left over.
    let _ = family.say(STARTING, getpid());
    let started = command.env(MARK, mark()).spawn();
    let child = started.inspect_err(|_| {
        let _ = family.say(NOT_STARTED, getpid());
    })?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    let pid = pid.expect("invariant: a child that was just started has a number");
    family.forget_awaited();
    if let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) {
        family.guards.push(KnownChild { pid, handle, kind });
    }
    family.tell_started(program, pid);
    if !family.is_watched {
        let program = program.clone();
        let thread = std::thread::Builder::new().name("guards".to_owned());
        match thread.spawn(move || watch(&program)) {
            Ok(_) => family.is_watched = true,
            Err(error) => tracing::warn!(%error, "guards of commands are not looked at"),
        }
    }
    Ok((child, Member { pid, is_gone: false }))
}

impl Member {
    /// Records the end of the guard. Ends the processes that it left, if it could not do its work.
    pub(crate) async fn ended(&mut self, is_clean: bool) {
        self.is_gone = true;
        if !is_clean {
            let _ = tokio::task::spawn_blocking(end_left_over).await;
        }
    }
}

impl Member {
    /// Records the end of a program without a guard. This process has adopted what the program left, and ends it.
    pub(crate) async fn ended_alone(&mut self) {
        let children = Children::of(getpid()).and_then(|children| children.now());
        // Of a kernel that keeps no such lists, only the second watcher knows.
        let mut children = children.unwrap_or_default();
        // One that has ended is waited for where it was started.
        children.retain(|child| !child.is_over);
        let is_clean = lock(&FAMILY).left_over(&children).is_empty();
        self.ended(is_clean).await;
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if !self.is_gone {
            // Without a second watcher there is still the guard.
            let _ = lock(&FAMILY).say(ENDING, self.pid);
        }
    }
}

impl Family {
    /// Forgets guards whose end was waited for. One that has only ended is still known: those who started it wait for
    /// it, and it is not left over.
    fn forget_awaited(&mut self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.guards.retain(|known| {
            let seen = waitid(WaitId::PidFd(known.handle.as_fd()), options);
            !matches!(seen, Err(Errno::CHILD))
        });
    }

    /// Ends guards that another process holds, with their commands. A guard that is stopped or traced would do nothing
    /// when this process dies; only a command that wants to outlive this process holds its guard. A guard that is held
    /// only for a moment may be in a pause of all processes.
    fn end_held(&mut self, program: &GuardProgram) {
        let second = self.second.as_ref().map(|(child, _)| Pid::from_child(child));
        let guards = self.guards.iter().filter(|known| known.kind == GuardKind::Guard);
        let known = guards.map(|guard| guard.pid).chain(second);
        let held = known.filter(|pid| tree::is_stopped(*pid) || tree::is_traced(*pid));
        let held: Vec<Pid> = held.collect();
        let before = std::mem::replace(&mut self.held, held.clone());
        for pid in held.iter().filter(|pid| before.contains(pid)) {
            if second == Some(*pid) {
                self.replace_second(program);
            } else {
                let _ = tree::kill_descendants(*pid);
                let _ = kill_process(*pid, Signal::KILL);
            }
        }
    }

    /// Sends a message to the second watcher, if there is one that listens. Never waits for one that does not.
    fn say(&mut self, what: char, pid: Pid) -> io::Result<()> {
        let (_, told) = self.second.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        told.write_all(format!("{what}{}\n", pid.as_raw_pid()).as_bytes())
    }

    /// Tells the second watcher of a guard; starts a watcher if there is none, or if it was killed.
    fn tell_started(&mut self, program: &GuardProgram, pid: Pid) {
        if self.say(STARTED, pid).is_err() {
            self.replace_second(program);
        }
    }

    /// Starts another second watcher in place of one that does not work.
    fn replace_second(&mut self, program: &GuardProgram) {
        if let Some((mut lost, _)) = self.second.take() {
            // It may only be stopped.
            let _ = lost.kill();
            let _ = lost.wait();
        }
        match self.start_second(program) {
            Ok(second) => self.second = Some(second),
            Err(error) => tracing::warn!(%error, "no second watcher over commands can be started"),
        }
    }

    fn start_second(
        &self,
        program: &GuardProgram,
    ) -> io::Result<(process::Child, process::ChildStdin)> {
        let mut second = process::Command::new(&program.program)
            .args(&program.args)
            .args([SECOND, &mark()])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut told = second.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        ioctl_fionbio(&told, true)?;
        for pid in &self.spared {
            writeln!(told, "{SPARED}{}", pid.as_raw_pid())?;
        }
        for KnownChild { pid, .. } in &self.guards {
            writeln!(told, "{STARTED}{}", pid.as_raw_pid())?;
        }
        Ok((second, told))
    }

    /// The children of this process that no other part of it has started.
    fn left_over(&self, processes: &[Process]) -> Vec<Process> {
        let (me, session) = (getpid(), session_of(None).unwrap_or(0));
        let second = self.second.as_ref().map(|(child, _)| Pid::from_child(child));
        let is_known = |pid: Pid| {
            second == Some(pid)
                || self.spared.contains(&pid)
                || self.guards.iter().any(|guard| guard.pid == pid)
        };
        let orphans = processes.iter().filter(|process| {
            process.parent == Some(me) && process.session != session && !is_known(process.pid)
        });
        orphans.copied().collect()
    }
}

/// Makes this process the parent of the processes that a killed guard leaves.
fn adopt_orphans() {
    static ADOPTS: OnceLock<()> = OnceLock::new();
    ADOPTS.get_or_init(|| {
        if let Err(error) = set_child_subreaper(Some(getpid())) {
            tracing::warn!(%error, "orphans of commands cannot be adopted");
        }
        tree::hold_children();
    });
}

/// Watches the guards until there are none.
fn watch(program: &GuardProgram) {
    loop {
        std::thread::sleep(TICK);
        let mut family = lock(&FAMILY);
        family.forget_awaited();
        if family.guards.is_empty() {
            family.is_watched = false;
            return;
        }
        family.end_held(program);
    }
}

/// Ends the processes that a guard has left. No guard is started meanwhile.
fn end_left_over() {
    let family = lock(&FAMILY);
    let give_up = Instant::now() + PATIENCE;
    let find = |processes: &[Process]| {
        let orphans = family.left_over(processes);
        let pids: Vec<Pid> = orphans.iter().map(|process| process.pid).collect();
        [orphans, tree::descendants(&pids, processes)].concat()
    };
    let is_meant = |pid| tree::process(pid).is_some_and(|it| !family.left_over(&[it]).is_empty());
    loop {
        let killed = tree::kill_all(find);
        let hunted = tree::kill_newborn(Instant::now() + BRIEFLY, is_meant);
        // While a chain of processes lives, it leaves one ended process after another.
        let over = family.left_over(&tree::processes().unwrap_or_default());
        for process in &over {
            let _ = waitpid(Some(process.pid), WaitOptions::NOHANG);
        }
        if matches!((killed, hunted), (Ok(0), Ok(0))) && over.is_empty() {
            return;
        }
        if Instant::now() > give_up {
            return tracing::warn!("processes that a killed guard left could not be ended");
        }
    }
}

/// Identifies the processes of this Centurion among those of others.
fn mark() -> String {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let started = tree::read(getpid(), "stat").unwrap_or_default();
        let started = String::from_utf8_lossy(&started).into_owned();
        let started = started.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(19));
        format!("{}-{}", getpid().as_raw_pid(), started.unwrap_or("0"))
    })
    .clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_a_program_is_left_to_those_who_started_it() {
        let mut command = Command::new("true");
        command.stdin(Stdio::null()).kill_on_drop(true);
        centurion_sandbox::bind_to_starter(command.as_std_mut());
        let program = GuardProgram::new("true");
        let (mut child, mut member) = spawn(&program, &mut command, GuardKind::Alone).unwrap();
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(member.pid), ended).unwrap();
        // Meanwhile another program ends, and what it left is looked for.
        lock(&FAMILY).forget_awaited();
        end_left_over();
        assert!(child.wait().await.unwrap().success());
        member.ended_alone().await;
        lock(&FAMILY).forget_awaited();
        assert!(lock(&FAMILY).guards.is_empty());
    }
}
