//! The process between Centurion and each program that it runs (invariant I-13).
//!
//! Every shell command, hook and MCP server runs below a guard: this program's own executable, started again. The guard
//! adopts every orphan below it, holds the read end of a pipe whose write end only Centurion has, and ends everything
//! when that pipe closes. So no process of a command outlives Centurion, however Centurion dies, and however far a
//! daemon has detached itself.
//!
//! A command outside of any sandbox is a process of the same user, and can kill or stop its guard. The process
//! [above](outer) the guard then ends everything. If the command kills that process too, Centurion adopts and ends the
//! remaining processes ([`family`]); and a [second] watcher waits for Centurion's own death.
//!
//! The guard knows nothing of sessions or tools. Its parent sends it bytes, and it answers in [`Report`] lines: on its
//! standard streams, or on a socket where those belong to the command.

mod cgroup;
mod confinement;
mod family;
mod launch;
mod limits;
mod outer;
mod pipe;
mod report;
mod second;
mod tree;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

pub use cgroup::is_available as can_bound_whole_commands;
pub(crate) use confinement::Confinement;
pub use family::spare;
pub(crate) use family::{GuardKind, Member, spawn};
pub(crate) use launch::quoted;
pub use limits::CommandLimits;
pub(crate) use pipe::args as pipe_args;
pub(crate) use report::{Exit, Report};

/// The first argument that makes a program a guard: it calls [`run`] with the arguments after it, and
/// does nothing else before.
pub const ARGUMENT: &str = "__guard";

/// On the guard's standard input: end the command, politely at first. Closing the pipe ends it at once.
pub(crate) const TERMINATE: u8 = b't';

/// The program that becomes a guard.
#[derive(Clone, Debug)]
pub struct GuardProgram {
    /// An executable that calls [`run`].
    pub program: PathBuf,
    /// Arguments that make the program call [`run`]; the guard's own arguments follow.
    pub args: Vec<String>,
}

impl GuardProgram {
    /// A program that becomes a guard when its first argument is [`ARGUMENT`].
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into(), args: vec![ARGUMENT.to_owned()] }
    }

    /// The same program with limits on everything that runs below it.
    #[must_use]
    pub fn with_limits(mut self, limits: CommandLimits) -> Self {
        self.args.extend(limits.to_word());
        self
    }

    /// Whether what runs below it has limits.
    pub(crate) fn has_limits(&self) -> bool {
        self.args.iter().any(|word| CommandLimits::is_word(word))
    }
}

/// Runs as the guard until its command and everything that the command started is gone.
///
/// `args` are the arguments that the guard was started with, after those of [`GuardProgram`].
pub fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let mut role = args.next();
    let mut limits = CommandLimits::default();
    let word = role.as_ref().and_then(|word| word.to_str());
    if let Some(word) = word.filter(|word| CommandLimits::is_word(word)) {
        // With a limit that cannot be read, nothing may run.
        let Some(read) = CommandLimits::from_word(word) else { return ExitCode::from(2) };
        limits = read;
        role = args.next();
    }
    match role.as_ref().and_then(|role| role.to_str()) {
        Some(WATCH) => {
            Task::from_args(args).map_or(ExitCode::from(2), |task| watch::run(&task, limits))
        }
        Some(LAUNCH) => launch::run(args, limits),
        Some(LAUNCH_INSIDE) => launch::run_inside(args, limits),
        Some(PIPE) => pipe::run(args, limits),
        Some(LAUNCH_PIPED) => pipe::launch(args, limits),
        Some(SECOND) => match args.next().as_ref().and_then(|mark| mark.to_str()) {
            Some(mark) => second::run(mark),
            None => ExitCode::from(2),
        },
        _ => ExitCode::from(2),
    }
}

const WATCH: &str = "watch";
const LAUNCH: &str = "launch";
const LAUNCH_INSIDE: &str = "launch-inside";
const PIPE: &str = "pipe";
const LAUNCH_PIPED: &str = "launch-piped";
const SECOND: &str = "second";

/// The task of one guard. The working directory and the environment are the guard's own.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Task {
    /// The file to which the command's output is appended.
    pub(crate) output: PathBuf,
    /// The guard ends the command when its output grows beyond this many bytes.
    pub(crate) max_output: u64,
    /// The file that holds the command.
    pub(crate) script: PathBuf,
    /// The file to which the command's last working directory is written.
    pub(crate) last_directory: PathBuf,
    /// The file that holds the command's [`Confinement`], if it has one.
    pub(crate) confinement: Option<PathBuf>,
    /// The command line that starts this program as a guard again.
    pub(crate) launcher: Vec<OsString>,
}

impl Task {
    pub(crate) fn into_args(self) -> Vec<OsString> {
        let mut args = vec![
            WATCH.into(),
            self.output.into(),
            self.max_output.to_string().into(),
            self.script.into(),
            self.last_directory.into(),
            self.confinement.unwrap_or_default().into(),
        ];
        args.extend(self.launcher);
        args
    }

    fn from_args(mut args: impl Iterator<Item = OsString>) -> Option<Self> {
        Some(Self {
            output: args.next()?.into(),
            max_output: args.next()?.to_str()?.parse().ok()?,
            script: args.next()?.into(),
            last_directory: args.next()?.into(),
            confinement: args.next().map(PathBuf::from).filter(|path| !path.as_os_str().is_empty()),
            launcher: args.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_survives_the_command_line() {
        for confinement in [None, Some(PathBuf::from("/c"))] {
            let task = || Task {
                output: "/o ut".into(),
                max_output: u64::MAX,
                script: "/s".into(),
                last_directory: "/d".into(),
                confinement: confinement.clone(),
                launcher: vec!["/exe".into(), "__guard".into()],
            };
            let mut args = task().into_args().into_iter();
            assert_eq!(args.next().unwrap(), WATCH);
            assert_eq!(Task::from_args(args), Some(task()));
        }
        assert_eq!(Task::from_args(["x".into(), "many".into()].into_iter()), None);
    }
}
