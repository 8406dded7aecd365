//! The guard of a program that owns its standard streams.
//!
//! The parent is at the other end of a socket: it sends there what the guard of a shell reads from its standard input.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::cgroup;
use super::outer::{self, GuardRole, Streams};
use super::watch::{self, GuardRemains, WatchEvent};
use super::{CommandLimits, Exit, GuardProgram, LAUNCH_PIPED, PIPE, Report};
use crate::process::PipedProgram;

/// The exit code for a missing program.
const NOT_FOUND: u8 = 127;
/// The exit code for a program that cannot run.
const CANNOT_RUN: u8 = 126;

/// The arguments of this guard. `lifeline` is a descriptor that it inherits.
pub(crate) fn args(lifeline: RawFd, guard: &GuardProgram, program: &PipedProgram) -> Vec<OsString> {
    let mut args: Vec<OsString> = vec![PIPE.into(), lifeline.to_string().into()];
    // The number of words that start a guard again, then these words, then the program.
    args.push((guard.args.len() + 1).to_string().into());
    args.push(guard.program.clone().into());
    args.extend(guard.args.iter().map(Into::into));
    args.push(program.program.clone());
    args.extend(program.args.iter().cloned());
    args
}

pub(super) fn run(mut args: impl Iterator<Item = OsString>, limits: CommandLimits) -> ExitCode {
    let mut number = || args.next()?.to_str()?.parse::<i32>().ok();
    let (Some(lifeline), Some(words)) = (number(), number()) else { return ExitCode::from(2) };
    let words = usize::try_from(words).unwrap_or_default();
    let launcher: Vec<OsString> = args.by_ref().take(words).collect();
    let program: Vec<OsString> = args.collect();
    let Ok(lifeline) = centurion_sandbox::inherited(lifeline).map(UnixStream::from) else {
        return ExitCode::from(2);
    };
    let parent = match outer::divide(Streams::Programs, limits) {
        Ok(GuardRole::Guard(parent)) => parent,
        Ok(GuardRole::Outer(end)) => return end,
        Err(error) => {
            tell(&lifeline, &Report::Failed(error.to_string()));
            return ExitCode::FAILURE;
        }
    };
    match start(&lifeline, parent, &launcher, &program) {
        Ok(events) => match watch(&events, &lifeline) {
            GuardRemains::Nothing => ExitCode::SUCCESS,
            GuardRemains::Something => ExitCode::FAILURE,
        },
        Err(error) => {
            tell(&lifeline, &Report::Failed(error.to_string()));
            ExitCode::FAILURE
        }
    }
}

fn start(
    lifeline: &UnixStream,
    parent: Option<OwnedFd>,
    launcher: &[OsString],
    program: &[OsString],
) -> io::Result<Receiver<WatchEvent>> {
    let Some((guard, words)) = launcher.split_first() else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let child = Command::new(guard)
        .args(words)
        .args([LAUNCH_PIPED.into(), OsString::from(getpid().as_raw_pid().to_string())])
        .args(program)
        .process_group(0)
        .spawn()?;
    // The streams belong to the program: their reader must see the program's end, not the guard's.
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;
    // The guard may live long: it must not keep a directory busy.
    let _ = std::env::set_current_dir("/");

    let (sender, events) = channel();
    let (reaper, child) = (sender.clone(), Pid::from_child(&child));
    watch::spawn(move || watch::reap(child, &reaper))?;
    let ears: OwnedFd = lifeline.try_clone()?.into();
    watch::spawn(move || watch::listen(&ears, parent.as_ref(), &sender))?;
    Ok(events)
}

/// Stays until no process of the program is left.
fn watch(events: &Receiver<WatchEvent>, lifeline: &UnixStream) -> GuardRemains {
    let mut untold: Option<Exit> = None;
    let mut tell_at = None;
    let mut kill_at: Option<Instant> = None;
    let tell_end = |untold: &mut Option<Exit>, left_running| {
        if let Some(exit) = untold.take() {
            tell(lifeline, &Report::Ended { exit, left_running });
        }
    };
    loop {
        let event = match [tell_at, kill_at].into_iter().flatten().min() {
            Some(at) => events.recv_timeout(at.saturating_duration_since(Instant::now())),
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(WatchEvent::ShellEnded(exit)) => {
                untold = Some(exit);
                tell_at = Some(Instant::now() + watch::LINGER);
            }
            Ok(WatchEvent::AllGone) => {
                tell_end(&mut untold, false);
                return GuardRemains::Nothing;
            }
            Ok(WatchEvent::Terminate) => {
                watch::ask_to_end();
                kill_at = Some(Instant::now() + watch::GRACE);
            }
            Ok(WatchEvent::LifelineCut) | Err(RecvTimeoutError::Disconnected) => {
                let (end, left) = watch::kill_all(events);
                tell_end(&mut end.or(untold), false);
                return left;
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = Instant::now();
        if tell_at.is_some_and(|at| at <= now) {
            tell_at = None;
            tell_end(&mut untold, true);
        }
        if kill_at.is_some_and(|at| at <= now) {
            let (end, left) = watch::kill_all(events);
            tell_end(&mut end.or(untold), false);
            return left;
        }
    }
}

/// The last step before the program: binds it to the guard's life, then becomes it.
pub(super) fn launch(mut args: impl Iterator<Item = OsString>, limits: CommandLimits) -> ExitCode {
    let guard = args.next().and_then(|pid| pid.to_str()?.parse().ok()).and_then(Pid::from_raw);
    let (Some(guard), Some(program)) = (guard, args.next()) else { return ExitCode::from(2) };
    let bound = set_parent_process_death_signal(Some(Signal::KILL));
    // The guard may have died before the kernel was asked to watch it.
    if bound.is_err() || getppid() != Some(guard) {
        return ExitCode::from(2);
    }
    if let Err(error) = cgroup::enter(guard, limits).apply() {
        let _ = writeln!(io::stderr(), "the limits could not be set, so nothing was run: {error}");
        return ExitCode::from(CANNOT_RUN);
    }
    let error = Command::new(&program).args(args).exec();
    let _ = writeln!(io::stderr(), "{} could not be started: {error}", program.display());
    ExitCode::from(match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        _ => CANNOT_RUN,
    })
}

/// Tells the parent, if it still exists.
fn tell(mut lifeline: &UnixStream, report: &Report) {
    let _ = writeln!(lifeline, "{report}");
}
