//! The last step before the shell: binds it to the guard's life, then becomes it.
//!
//! A second line of defence. When the guard itself is killed, the kernel kills the shell; only the
//! process that will be the shell can ask for that, and it must do so after the fork.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// What shells give when there is nothing to run.
const NOT_FOUND: u8 = 127;

/// The arguments of this step, in the order that [`run`] reads them.
pub(super) fn args(guard: Pid, script: &OsStr, last_directory: &OsStr) -> [OsString; 4] {
    [
        super::LAUNCH.into(),
        guard.as_raw_pid().to_string().into(),
        script.to_owned(),
        last_directory.to_owned(),
    ]
}

pub(super) fn run(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let guard = args.next().and_then(|pid| pid.to_str()?.parse().ok()).and_then(Pid::from_raw);
    let (Some(script), Some(last_directory)) = (args.next(), args.next()) else {
        return ExitCode::from(2);
    };
    let bound = set_parent_process_death_signal(Some(Signal::KILL));
    // The guard closes the pipe when all is ready.
    let ready = io::stdin().lock().read(&mut [0]);
    // It may have died before the kernel was asked to watch it.
    if ready.is_err() || bound.is_err() || guard.is_none() || getppid() != guard {
        return ExitCode::from(2);
    }
    let mut error = io::Error::from(io::ErrorKind::NotFound);
    for shell in [Shell::Bash, Shell::Posix] {
        let text = shell.text(&script, &last_directory);
        error = Command::new(shell.name()).arg("-c").arg(text).stdin(Stdio::null()).exec();
        if error.kind() != io::ErrorKind::NotFound {
            break;
        }
    }
    // This goes where the command's output would have gone.
    let _ = writeln!(io::stderr(), "neither bash nor sh could be started: {error}");
    ExitCode::from(NOT_FOUND)
}

#[derive(Clone, Copy)]
enum Shell {
    Bash,
    Posix,
}

impl Shell {
    fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Posix => "sh",
        }
    }

    /// Runs the command from its file and notes where it stood when the shell ended.
    ///
    /// The command is not an argument: `pkill -f` with a word of it would otherwise end its own shell.
    /// All stands on one line, so that line numbers in messages are those of the command.
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

/// A word that a shell takes as it is.
fn quoted(word: &[u8]) -> Vec<u8> {
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

    /// Both shells, in a directory whose name needs quoting, with everything that could go wrong.
    #[test]
    fn a_command_runs_from_its_file_and_leaves_its_directory_behind() {
        let scratch = tempfile::tempdir().unwrap();
        let home = scratch.path().join("it's a $(dir)");
        fs::create_dir_all(home.join("sub")).unwrap();
        let (script, directory) = (home.join("script"), home.join("pwd"));
        for (shell, command, code) in [
            (Shell::Bash, "cd sub; set -C; exit 7", 7),
            (Shell::Posix, "cd sub; exit 7", 7),
            (Shell::Bash, "set -eu\ncd sub\nfalse\ncd ..", 1),
            (Shell::Posix, "cd sub", 0),
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
