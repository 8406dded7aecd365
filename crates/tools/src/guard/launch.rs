//! The last step before the shell: binds it to the guard's life, confines it, then becomes it.
//!
//! A second line of defence: when the guard itself is killed, the kernel kills the shell. Only the process that will be
//! the shell can ask for that, and it must do so after the fork. The same holds for the sandbox: the guard stays
//! outside.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rustix::io::dup;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use rustix::stdio::stdin;

use super::{CommandLimits, Confinement, Task, cgroup};

/// The exit code of a shell for a missing program.
const NOT_FOUND: u8 = 127;
/// The exit code of a shell for a program that cannot run.
const CANNOT_RUN: u8 = 126;

/// The arguments of this step.
pub(super) fn args(guard: Pid, task: &Task) -> Vec<OsString> {
    let mut args = vec![super::LAUNCH.into(), guard.as_raw_pid().to_string().into()];
    let confinement = task.confinement.as_deref().unwrap_or(Path::new(""));
    args.extend([&task.script, &task.last_directory, confinement].map(|path: &Path| path.into()));
    args.extend(task.launcher.iter().cloned());
    args
}

/// The files of the command that becomes a shell.
struct Launch {
    script: OsString,
    last_directory: OsString,
    /// The file of its [`Confinement`]; empty when it has none.
    confinement: PathBuf,
    limits: CommandLimits,
}

impl Launch {
    fn from_args(args: &mut impl Iterator<Item = OsString>, limits: CommandLimits) -> Option<Self> {
        Some(Self {
            script: args.next()?,
            last_directory: args.next()?,
            confinement: args.next()?.into(),
            limits,
        })
    }
}

/// Waits for the guard, then becomes the shell.
pub(super) fn run(mut args: impl Iterator<Item = OsString>, limits: CommandLimits) -> ExitCode {
    let guard = args.next().and_then(|pid| pid.to_str()?.parse().ok()).and_then(Pid::from_raw);
    let launch = Launch::from_args(&mut args, limits);
    let (Some(guard), Some(mut launch)) = (guard, launch) else { return ExitCode::from(2) };
    let bound = set_parent_process_death_signal(Some(Signal::KILL));
    // The guard writes a byte when all is ready, and holds the pipe open while it lives.
    let ready = io::stdin().lock().read_exact(&mut [0]);
    // The guard may have died before the kernel was asked to watch it.
    if ready.is_err() || bound.is_err() || getppid() != Some(guard) {
        return ExitCode::from(2);
    }
    // From inside of a sandbox the group could not be entered.
    launch.limits = cgroup::enter(guard, limits);
    if launch.confinement.as_os_str().is_empty() {
        return become_shell(&launch, &[]);
    }
    let is_limit = |word: &OsString| word.to_str().is_some_and(CommandLimits::is_word);
    let mut again: Vec<OsString> = args.filter(|word| !is_limit(word)).collect();
    again.extend(launch.limits.to_word().map(OsString::from));
    again.extend([
        super::LAUNCH_INSIDE.into(),
        launch.script.clone(),
        launch.last_directory.clone(),
        launch.confinement.clone().into(),
    ]);
    let wrapped = Confinement::load(&launch.confinement)
        .map_err(Box::<dyn Error>::from)
        .and_then(|confinement| Ok(confinement.plan.wrapped(&confinement.place, &again)?));
    match wrapped {
        Ok(None) => become_confined_shell(&launch, ShellParent::Guard),
        Ok(Some(mut wrapped)) => refuse(&wrapped.stdin(Stdio::null()).exec()),
        Err(error) => refuse(error.as_ref()),
    }
}

/// Continues after a helper program has made the namespaces of the sandbox. The helper also makes sure that nothing
/// outlives the guard.
pub(super) fn run_inside(
    mut args: impl Iterator<Item = OsString>,
    limits: CommandLimits,
) -> ExitCode {
    let launch = Launch::from_args(&mut args, limits);
    launch.map_or(ExitCode::from(2), |launch| become_confined_shell(&launch, ShellParent::Helper))
}

/// The parent of a confined shell.
#[derive(Clone, Copy)]
enum ShellParent {
    /// The guard, at the other end of standard input.
    Guard,
    /// A helper program, which ends with the guard and ends everything below it.
    Helper,
}

fn become_confined_shell(launch: &Launch, inside: ShellParent) -> ExitCode {
    let applied = Confinement::load(&launch.confinement).map_err(Box::<dyn Error>::from).and_then(
        |confinement| {
            let lifeline = match inside {
                ShellParent::Guard => Some(dup(stdin())?),
                ShellParent::Helper => None,
            };
            Ok(confinement.plan.apply(&confinement.place, lifeline)?)
        },
    );
    match applied {
        Ok(variables) => become_shell(launch, &variables),
        Err(error) => refuse(error.as_ref()),
    }
}

/// Reports the reason that there is no sandbox; without it, nothing runs.
fn refuse(error: &dyn Error) -> ExitCode {
    // The command's output would have gone to the same place.
    let _ = writeln!(io::stderr(), "the sandbox could not be set up, so nothing was run: {error}");
    ExitCode::from(CANNOT_RUN)
}

fn become_shell(launch: &Launch, variables: &[(&str, String)]) -> ExitCode {
    if let Err(error) = launch.limits.apply() {
        let _ = writeln!(io::stderr(), "the limits could not be set, so nothing was run: {error}");
        return ExitCode::from(CANNOT_RUN);
    }
    let mut error = io::Error::from(io::ErrorKind::NotFound);
    for shell in [ShellKind::Bash, ShellKind::Posix] {
        let text = shell.text(&launch.script, &launch.last_directory);
        let mut command = Command::new(shell.name());
        command.arg("-c").arg(text).stdin(Stdio::null());
        error = command.envs(variables.iter().map(|(name, value)| (name, value))).exec();
        if error.kind() != io::ErrorKind::NotFound {
            break;
        }
    }
    let _ = writeln!(io::stderr(), "neither bash nor sh could be started: {error}");
    ExitCode::from(NOT_FOUND)
}

#[derive(Clone, Copy)]
enum ShellKind {
    Bash,
    Posix,
}

impl ShellKind {
    fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Posix => "sh",
        }
    }

    /// Runs the command from its file and records the directory in which the shell ended.
    ///
    /// The command is not an argument: `pkill -f` with a word of it would otherwise end its own shell. All stands on
    /// one line, so that line numbers in messages are those of the command.
    fn text(self, script: &OsStr, last_directory: &OsStr) -> OsString {
        let read: &[u8] = match self {
            Self::Bash => b"<",
            Self::Posix => b"cat ",
        };
        let (script, directory) = (quoted(script.as_bytes()), quoted(last_directory.as_bytes()));
        let trap = quoted(&[b"pwd -P 2>/dev/null >|", directory.as_slice(), b" || :"].concat());
        let text =
            [b"trap ", trap.as_slice(), b" EXIT; eval \"$(", read, script.as_slice(), b")\""];
        OsString::from_vec(text.concat())
    }
}

/// Quotes a word for a shell.
pub(crate) fn quoted(word: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for byte in word {
        match byte {
            b'\'' => quoted.extend_from_slice(br"'\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    quoted
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Both shells, in a directory whose name needs quoting, with every possible fault.
    #[test]
    fn a_command_runs_from_its_file_and_leaves_its_directory_behind() {
        let scratch = tempfile::tempdir().unwrap();
        let home = scratch.path().join("it's a $(dir)");
        fs::create_dir_all(home.join("sub")).unwrap();
        let (script, directory) = (home.join("script"), home.join("pwd"));
        for (shell, command, code) in [
            (ShellKind::Bash, "cd sub; set -C; exit 7", 7),
            (ShellKind::Posix, "cd sub; exit 7", 7),
            (ShellKind::Bash, "set -eu\ncd sub\nfalse\ncd ..", 1),
            (ShellKind::Posix, "cd sub", 0),
        ] {
            fs::write(&script, command).unwrap();
            let status = Command::new(shell.name())
                .arg("-c")
                .arg(shell.text(script.as_os_str(), directory.as_os_str()))
                .current_dir(&home)
                .status()
                .unwrap();
            assert_eq!(status.code(), Some(code), "{command}");
            let stood = fs::read_to_string(&directory).unwrap();
            assert!(stood.ends_with("it's a $(dir)/sub\n"), "{command}: {stood}");
        }
    }
}
