//! The guard's watch over one command.
//!
//! Two threads wait, one for the parent and one for the children; the program's first thread decides. Because the guard
//! adopts orphans, a guard without children means that no process of the command is left, and waiting for children
//! detects that without polling.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use centurion_sandbox::Hold;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::{Errno, dup};
use rustix::process::{Pid, Signal, WaitOptions, getpid, getppid, wait};
use rustix::stdio::stdin;

use super::outer::{self, GuardRole, Streams};
use super::{CommandLimits, Confinement, Exit, Report, TERMINATE, Task, launch, tree};
use crate::disk::open_flags;
use crate::shell::redact_file;

/// The time that a command has to end after a polite signal.
pub(super) const GRACE: Duration = Duration::from_secs(1);
/// The time that processes may survive their shell before they count as left running.
pub(super) const LINGER: Duration = Duration::from_millis(50);
/// The time that processes have to end before the next check.
pub(super) const BRIEFLY: Duration = Duration::from_millis(5);
/// A process that survives for longer cannot be killed: it belongs to another user, or the kernel holds it.
const GIVE_UP: Duration = Duration::from_secs(10);

/// Tells the launch step that all is ready.
const START: u8 = b's';

/// The remains of a command when its guard ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardRemains {
    Nothing,
    /// Processes that the guard could not end.
    Something,
}

pub(super) enum WatchEvent {
    /// The parent asks for a polite end.
    Terminate,
    /// The parent is gone, or wants the end now.
    LifelineCut,
    ShellEnded(Exit),
    /// No process of the command is left.
    AllGone,
}

pub(super) fn run(task: &Task, limits: CommandLimits) -> ExitCode {
    let parent = match outer::divide(Streams::Guards, limits) {
        Ok(GuardRole::Guard(parent)) => parent,
        Ok(GuardRole::Outer(end)) => return end,
        Err(error) => {
            tell(&Report::Failed(error.to_string()));
            return ExitCode::FAILURE;
        }
    };
    match Watch::start(task, parent) {
        Ok(mut watch) => match watch.run() {
            GuardRemains::Nothing => ExitCode::SUCCESS,
            GuardRemains::Something => ExitCode::FAILURE,
        },
        Err(error) => {
            tell(&Report::Failed(error.to_string()));
            ExitCode::FAILURE
        }
    }
}

struct Watch {
    events: Receiver<WatchEvent>,
    output: File,
    output_path: PathBuf,
    /// The file of the command, which may contain credentials.
    script: PathBuf,
    max_output: u64,
    /// The end of the shell, until the parent has been told.
    untold: Option<Exit>,
    /// Resources that the command's sandbox needs until no process of it is left.
    hold: Hold,
    /// While this is open, processes of the command may live in a namespace of their own.
    _lifeline: Option<ChildStdin>,
}

impl Watch {
    fn start(task: &Task, parent: Option<OwnedFd>) -> io::Result<Self> {
        let output = File::options()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(open_flags(OFlags::NOFOLLOW))
            .open(&task.output)?;
        let Some((program, args)) = task.launcher.split_first() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let hold = match &task.confinement {
            Some(path) => {
                let Confinement { plan, place } = Confinement::load(path)?;
                plan.hold(&place)?
            }
            None => Hold::default(),
        };
        let mut shell = Command::new(program)
            .args(args)
            .args(launch::args(getpid(), task))
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .process_group(0)
            .spawn()?;
        let mut lifeline = shell.stdin.take();
        let shell = Pid::from_child(&shell);
        tell(&Report::Started { group: shell.as_raw_pid() });
        // Only now does the command start: its parent knows which group to kill if the guard dies.
        if let Some(lifeline) = &mut lifeline {
            lifeline.write_all(&[START])?;
        }
        // The guard may live long: it must not keep a directory busy.
        let _ = std::env::set_current_dir("/");

        let (sender, events) = channel();
        let reaper = sender.clone();
        spawn(move || reap(shell, &reaper))?;
        let ears = dup(stdin())?;
        spawn(move || listen(&ears, parent.as_ref(), &sender))?;
        Ok(Self {
            events,
            output,
            output_path: task.output.clone(),
            script: task.script.clone(),
            max_output: task.max_output,
            untold: None,
            hold,
            _lifeline: lifeline,
        })
    }

    fn run(&mut self) -> GuardRemains {
        let mut pace = Pace::default();
        let mut look_at = Instant::now() + pace.interval;
        let mut tell_at = None;
        let mut kill_at = None;
        loop {
            let wake = [tell_at, kill_at].into_iter().flatten().fold(look_at, Instant::min);
            match self.events.recv_timeout(wake.saturating_duration_since(Instant::now())) {
                Ok(WatchEvent::ShellEnded(exit)) => {
                    self.untold = Some(exit);
                    tell_at = Some(Instant::now() + LINGER);
                }
                Ok(WatchEvent::AllGone) => {
                    self.close();
                    return GuardRemains::Nothing;
                }
                Ok(WatchEvent::Terminate) => {
                    ask_to_end();
                    kill_at = Some(Instant::now() + GRACE);
                }
                Ok(WatchEvent::LifelineCut) | Err(RecvTimeoutError::Disconnected) => {
                    let left = self.kill();
                    // The parent would have done it, but it is gone.
                    let _ = fs::remove_file(&self.script);
                    let _ = redact_file(&self.output_path);
                    return left;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = Instant::now();
            if tell_at.is_some_and(|at| at <= now) {
                tell_at = None;
                self.tell_end(true);
            }
            if kill_at.is_some_and(|at| at <= now) {
                return self.kill();
            }
            if look_at <= now {
                let size = self.output_size();
                if size > self.max_output {
                    return self.kill();
                }
                look_at = now + pace.next(size);
            }
        }
    }

    /// Kills until nothing is left. Stays until then: no other process would kill the rest.
    fn kill(&mut self) -> GuardRemains {
        let (end, left) = kill_all(&self.events);
        self.untold = end.or(self.untold.take());
        self.close();
        left
    }

    /// Ends the watch: cuts the output to its limit, and tells the parent.
    fn close(&mut self) {
        if self.output_size() > self.max_output {
            let _ = self.output.set_len(self.max_output);
            if self.untold.is_some() {
                self.untold = Some(Exit::Overflow);
            }
        }
        // Before the parent continues: it may want the held resources.
        self.hold = Hold::default();
        self.tell_end(false);
    }

    fn tell_end(&mut self, left_running: bool) {
        if let Some(exit) = self.untold.take() {
            tell(&Report::Ended { exit, left_running });
        }
    }

    fn output_size(&self) -> u64 {
        self.output.metadata().map_or(0, |metadata| metadata.len())
    }
}

/// Kills until nothing is left, and returns the end of the shell if that happened meanwhile.
pub(super) fn kill_all(events: &Receiver<WatchEvent>) -> (Option<Exit>, GuardRemains) {
    let give_up = Instant::now() + GIVE_UP;
    let mut end = None;
    while Instant::now() < give_up {
        if tree::kill_descendants(getpid()).is_err() {
            // A guard that does not even see its children is of no use: the process above adopts the rest.
            break;
        }
        match events.recv_timeout(BRIEFLY) {
            Ok(WatchEvent::ShellEnded(exit)) => end = Some(exit),
            Ok(WatchEvent::AllGone) | Err(RecvTimeoutError::Disconnected) => {
                return (end, GuardRemains::Nothing);
            }
            Ok(WatchEvent::Terminate | WatchEvent::LifelineCut) => {}
            Err(RecvTimeoutError::Timeout) => {
                let above = getppid();
                let is_meant = |pid| tree::is_near(pid) && Some(pid) != above;
                let _ = tree::kill_newborn(Instant::now() + BRIEFLY, is_meant);
            }
        }
    }
    (end, GuardRemains::Something)
}

/// Asks every process below the guard to end.
pub(super) fn ask_to_end() {
    tree::signal_descendants(getpid(), Signal::TERM);
    // A stopped process would not receive it.
    tree::signal_descendants(getpid(), Signal::CONT);
}

/// The interval of checks of the output's size: short while it grows, long while it does not.
#[derive(Default)]
struct Pace {
    interval: Duration,
    size: u64,
}

impl Pace {
    const FASTEST: Duration = Duration::from_millis(20);
    const SLOWEST: Duration = Duration::from_millis(320);

    fn next(&mut self, size: u64) -> Duration {
        self.interval = if size == self.size { self.interval * 2 } else { self.interval / 2 }
            .clamp(Self::FASTEST, Self::SLOWEST);
        self.size = size;
        self.interval
    }
}

/// Waits for children until there are none.
pub(super) fn reap(shell: Pid, events: &Sender<WatchEvent>) {
    loop {
        let event = match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == shell => match status.exit_status() {
                Some(code) => WatchEvent::ShellEnded(Exit::Code(code)),
                None => WatchEvent::ShellEnded(Exit::Signal(
                    status.terminating_signal().unwrap_or_default(),
                )),
            },
            Ok(_) | Err(Errno::INTR) => continue,
            Err(_) => WatchEvent::AllGone,
        };
        let last = matches!(event, WatchEvent::AllGone);
        if events.send(event).is_err() || last {
            return;
        }
    }
}

/// Listens to the parent until it is gone.
///
/// Its death counts, not only the closed lifeline: a command may hold a copy of the other end.
pub(super) fn listen(lifeline: &OwnedFd, parent: Option<&OwnedFd>, events: &Sender<WatchEvent>) {
    loop {
        let handles = [Some(lifeline), parent].into_iter().flatten();
        let mut polled: Vec<_> =
            handles.map(|it| PollFd::from_borrowed_fd(it.as_fd(), PollFlags::IN)).collect();
        // The kernel polls no more handles than the process may have open.
        tree::restore_limit();
        match poll(&mut polled, None) {
            Ok(_) => {}
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(_) => break,
        }
        let is_ready = |at: usize| polled.get(at).is_some_and(|it| !it.revents().is_empty());
        if is_ready(1) {
            break;
        }
        let mut byte = [0];
        match rustix::io::read(lifeline, &mut byte) {
            Ok(1) if byte == [TERMINATE] => {
                let _ = events.send(WatchEvent::Terminate);
            }
            Ok(1..) | Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(0) | Err(_) => break,
        }
    }
    let _ = events.send(WatchEvent::LifelineCut);
}

pub(super) fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    const STACK: usize = 128 * 1024;
    thread::Builder::new().stack_size(STACK).spawn(work).map(|_| ())
}

/// Tells the parent, if it still exists.
fn tell(report: &Report) {
    let mut parent = io::stdout().lock();
    let _ = writeln!(parent, "{report}").and_then(|()| parent.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_output_is_looked_at_more_often() {
        let mut pace = Pace::default();
        let idle: Vec<_> = (0..8).map(|_| pace.next(0)).collect();
        assert_eq!(idle.first(), Some(&Pace::FASTEST));
        assert_eq!(idle.last(), Some(&Pace::SLOWEST));
        let busy: Vec<_> = (1..9).map(|size| pace.next(size)).collect();
        assert_eq!(busy.last(), Some(&Pace::FASTEST));
    }
}
