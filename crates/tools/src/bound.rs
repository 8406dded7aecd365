//! A short program of the user that we run for ourselves, such as git, without a guard between.
//!
//! A guard is two more processes, which start this program's own executable twice: more than most calls of git take. Such
//! a program starts nothing that a repository names, so less is enough. The kernel kills it when this process dies, and the
//! second watcher ends what it left, then and at its own end (invariant I-13). It is in a session of its own, without a
//! terminal to ask at. Where the user limits what commands may use, there is a guard all the same, which sets the limits.

use std::io;
use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::guard::{self, GuardKind, GuardProgram, Member};
use crate::process::{PipedProcess, PipedProgram};

/// A running program. Dropping it kills the program, and what the program started.
pub struct Bound {
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    runs: Runs,
}

enum Runs {
    Alone(Child, Member),
    Guarded(Box<PipedProcess>),
}

/// The output of a program that has ended.
pub struct BoundOutput {
    /// The exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Bound {
    /// Runs a program with `input` as its standard input, to its end. One that prints more than `most` bytes into a stream is
    /// ended, which is an error.
    pub async fn run(
        guard: &GuardProgram,
        program: &PipedProgram,
        input: &[u8],
        most: usize,
    ) -> io::Result<BoundOutput> {
        let mut bound = Self::start(guard, program)?;
        let (stdin, stdout, stderr) =
            (bound.stdin.take(), bound.stdout.take(), bound.stderr.take());
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A program may end without having read its input.
                let _ = stdin.write_all(input).await;
            }
            Ok(())
        };
        let (stdout, stderr, ()) =
            tokio::try_join!(at_most(stdout, most), at_most(stderr, most), feed)?;
        Ok(BoundOutput { code: bound.wait().await?, stdout, stderr })
    }

    /// Starts a program.
    pub fn start(guard: &GuardProgram, program: &PipedProgram) -> io::Result<Self> {
        if guard.has_limits() {
            let mut piped = PipedProcess::start(guard, program)?;
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

/// Reads a stream to its end.
async fn at_most(stream: Option<impl AsyncRead + Unpin>, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        stream.take(most as u64 + 1).read_to_end(&mut bytes).await?;
    }
    if bytes.len() > most {
        return Err(io::Error::other(format!("it printed more than {most} bytes")));
    }
    Ok(bytes)
}
