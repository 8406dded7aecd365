//! A short program of the user that we run for ourselves, such as git, without a guard between.
//!
//! A guard is two more processes, which start this program's own executable twice: more than most calls of git take. Such
//! a program starts nothing that a repository names, so less is enough. The kernel kills it when this process dies, and the
//! second watcher ends what it left, then and at its own end (invariant I-13). It is in a session of its own, without a
//! terminal to ask at. Where the user limits what commands may use, there is a guard all the same, which sets the limits.

use std::io;
use std::process::Stdio;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::guard::{self, GuardKind, GuardProgram, Member};
use crate::process::{Piped, PipedProgram};

/// A running program. Dropping it kills the program, and what the program started.
pub struct Bound {
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    runs: Runs,
}

enum Runs {
    Alone(Child, Member),
    Guarded(Box<Piped>),
}

impl Bound {
    /// Starts a program.
    pub fn start(guard: &GuardProgram, program: &PipedProgram) -> io::Result<Self> {
        if guard.has_limits() {
            let mut piped = Piped::start(guard, program)?;
            let (stdin, stdout) = (piped.stdin.take(), piped.stdout.take());
            let stderr = piped.stderr.take();
            return Ok(Self { stdin, stdout, stderr, runs: Runs::Guarded(Box::new(piped)) });
        }
        let mut command = Command::new(&program.program);
        command
            .args(&program.args)
            .env_clear()
            .envs(&program.environment)
            .current_dir(&program.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        centurion_sandbox::bind_to_starter(command.as_std_mut());
        let (mut child, member) = guard::spawn(guard, &mut command, GuardKind::Alone)?;
        Ok(Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            runs: Runs::Alone(child, member),
        })
    }

    /// Waits for its end; the exit code, or nothing where a signal ended it.
    pub async fn wait(&mut self) -> io::Result<Option<i32>> {
        match &mut self.runs {
            Runs::Alone(child, member) => {
                let status = child.wait().await?;
                member.ended_alone().await;
                Ok(status.code())
            }
            Runs::Guarded(piped) => Ok(piped.wait().await.code),
        }
    }
}
