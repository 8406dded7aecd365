//! A program of the user that talks through pipes, below a guard: a hook, an MCP server.
//!
//! The standard streams belong to the program alone. The guard has a socket of its own: it reports the end there, and
//! ends everything below it when the socket closes. So nothing outlives Centurion here either (invariant I-13).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rustix::fd::AsRawFd as _;
use rustix::io::{FdFlags, fcntl_setfd};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::guard::{self, Exit, GuardKind, GuardProgram, Member, Report, TERMINATE};

/// The program to run, and its directory.
#[derive(Clone, Debug)]
pub struct PipedProgram {
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub environment: BTreeMap<String, String>,
    pub cwd: PathBuf,
}

/// The end of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipedEnd {
    /// `None` when a signal ended it or its guard was lost.
    pub code: Option<i32>,
    /// Whether it left processes behind. They live for as long as the [`PipedProcess`] does.
    pub left_running: bool,
}

/// A running program. Dropping it kills the program and everything that it started.
pub struct PipedProcess {
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    guard: Child,
    member: Member,
    lifeline: Option<BufReader<UnixStream>>,
    /// The part of the guard's report that was read.
    report: String,
    ended: Option<PipedEnd>,
}

impl PipedProcess {
    /// The guard gives a program one second; half a second more covers a slow machine.
    const POLITE: Duration = Duration::from_millis(1_500);
    const HARD: Duration = Duration::from_millis(450);

    /// Starts a program. A missing program is not detected here: it ends with code 127.
    pub fn start(guard: &GuardProgram, program: &PipedProgram) -> io::Result<Self> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        // Inherited on purpose. Should another process get a copy at this moment, it holds the guard's end and not
        // ours: the lifeline is still cut when ours closes.
        fcntl_setfd(&theirs, FdFlags::empty())?;
        let mut command = Command::new(&guard.program);
        command
            .args(&guard.args)
            .args(guard::pipe_args(theirs.as_raw_fd(), guard, program))
            .env_clear()
            .envs(&program.environment)
            .current_dir(&program.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let (mut child, member) = guard::spawn(guard, &mut command, GuardKind::Guard)?;
        drop(theirs);
        Ok(Self {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            guard: child,
            member,
            lifeline: Some(BufReader::new(UnixStream::from_std(ours)?)),
            report: String::new(),
            ended: None,
        })
    }

    /// Waits for the end of the program itself. May be dropped and called again.
    pub async fn wait(&mut self) -> PipedEnd {
        if let Some(ended) = &self.ended {
            return ended.clone();
        }
        if let Some(lifeline) = &mut self.lifeline
            && let Err(error) = lifeline.read_line(&mut self.report).await
        {
            tracing::warn!(%error, "a guard cannot be heard");
        }
        let report = Report::parse(self.report.trim_end());
        let ended = match report {
            Some(Report::Ended { exit: Exit::Code(code), left_running }) => {
                PipedEnd { code: Some(code), left_running }
            }
            Some(Report::Ended { left_running, .. }) => PipedEnd { code: None, left_running },
            _ => {
                // The guard is gone, or of no use: no process of the program continues.
                let _ = self.guard.start_kill();
                self.gone().await;
                PipedEnd { code: None, left_running: false }
            }
        };
        self.ended = Some(ended.clone());
        ended
    }

    /// Waits until everything that the program started has ended as well.
    pub async fn gone(&mut self) {
        let is_clean = match self.guard.wait().await {
            Ok(status) => status.success(),
            Err(error) => {
                tracing::warn!(%error, "the end of a guard cannot be seen");
                false
            }
        };
        self.member.ended(is_clean).await;
    }

    /// Ends the program and everything that it started, politely at first; takes two seconds at most.
    pub async fn stop(&mut self) {
        self.stdin = None;
        if let Some(lifeline) = &mut self.lifeline {
            // A guard that is gone has nothing left to end.
            let _ = lifeline.get_mut().write_all(&[TERMINATE]).await;
        }
        if timeout(Self::POLITE, self.gone()).await.is_ok() {
            return;
        }
        self.lifeline = None;
        if timeout(Self::HARD, self.gone()).await.is_err() {
            tracing::warn!("a guard does not end and is killed");
            let _ = self.guard.start_kill();
            self.gone().await;
        }
    }
}
