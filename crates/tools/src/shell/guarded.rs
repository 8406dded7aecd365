//! A command below its guard, seen from the parent.

use std::collections::BTreeMap;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::files::Files;
use super::{ShellError, ShellExit, ShellRequest, ShellsConfig};
use crate::guard::{self, Exit, Member, Report, TERMINATE, Task};

/// A running guard. Dropping it closes the lifeline, and the guard kills everything below it.
pub(super) struct Guarded {
    guard: Child,
    member: Member,
    lifeline: Option<ChildStdin>,
    reports: Lines<BufReader<ChildStdout>>,
    /// The shell's process group, until the shell is known to have ended.
    group: Option<Pid>,
}

/// The end of a command's shell.
pub(super) struct GuardedEnd {
    pub(super) exit: ShellExit,
    pub(super) left_running: bool,
}

impl Guarded {
    /// The guard gives a command one second; half a second more covers a slow machine.
    const POLITE: Duration = Duration::from_millis(1_500);
    const HARD: Duration = Duration::from_millis(450);
    /// The time to read the last report after the end of the guard, which sent it before.
    const LAST_WORDS: Duration = Duration::from_millis(100);

    pub(super) fn start(
        config: &ShellsConfig,
        files: &Files,
        request: &ShellRequest<'_>,
        environment: BTreeMap<String, String>,
    ) -> Result<Self, ShellError> {
        let confinement = match request.sandbox {
            Some(plan) => Some(files.confine(plan, request.id, request.cwd)?.to_owned()),
            None => None,
        };
        let program = &config.guard.program;
        let mut launcher = vec![program.into()];
        launcher.extend(config.guard.args.iter().map(Into::into));
        let task = Task {
            output: files.output().to_owned(),
            max_output: config.max_output,
            script: files.script().to_owned(),
            last_directory: files.last_directory().to_owned(),
            confinement,
            launcher,
        };
        let mut command = Command::new(program);
        command
            .args(&config.guard.args)
            .args(task.into_args())
            .env_clear()
            .envs(environment)
            .current_dir(request.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let (mut guard, member) =
            guard::spawn(&config.guard, &mut command, guard::GuardKind::Guard)
                .map_err(|source| ShellError::Start { program: program.clone(), source })?;
        let lifeline = guard.stdin.take();
        let reports = guard.stdout.take().expect("invariant: standard output is piped");
        let reports = BufReader::new(reports).lines();
        Ok(Self { guard, member, lifeline, reports, group: None })
    }

    /// Waits for the end of the shell. May be dropped and called again.
    pub(super) async fn ended(&mut self) -> GuardedEnd {
        loop {
            let lost = match self.report().await {
                Ok(Some(line)) => match Report::parse(&line) {
                    Some(Report::Started { group }) => {
                        self.group = Pid::from_raw(group);
                        continue;
                    }
                    Some(Report::Ended { exit, left_running }) => {
                        self.group = None;
                        return GuardedEnd { exit: exit.into(), left_running };
                    }
                    Some(Report::Failed(reason)) => reason,
                    None => format!("the guard said {line:?}"),
                },
                Ok(None) => "its guard was killed".to_owned(),
                Err(error) => format!("its guard cannot be heard: {error}"),
            };
            self.kill_group();
            // The guard failed: no process of the command may continue.
            let _ = self.guard.start_kill();
            self.gone().await;
            return GuardedEnd { exit: ShellExit::Lost(lost), left_running: false };
        }
    }

    /// The next report of the guard; `None` when it is gone.
    async fn report(&mut self) -> io::Result<Option<String>> {
        tokio::select! {
            biased;
            line = self.reports.next_line() => line,
            // A command may kill only the process above the guard: the guard could then continue in silence.
            _ = self.guard.wait() => {
                timeout(Self::LAST_WORDS, self.reports.next_line()).await.unwrap_or(Ok(None))
            }
        }
    }

    /// Waits until no process of the command is left.
    pub(super) async fn gone(&mut self) {
        let is_clean = match self.guard.wait().await {
            Ok(status) => status.success(),
            Err(error) => {
                tracing::warn!(%error, "cannot wait for a guard");
                false
            }
        };
        self.member.ended(is_clean).await;
    }

    /// Ends everything, politely at first; takes two seconds at most. Returns `reason`.
    pub(super) async fn stop(&mut self, reason: ShellExit) -> ShellExit {
        if let Some(lifeline) = &mut self.lifeline {
            // A guard that is gone has nothing left to end.
            let _ = lifeline.write_all(&[TERMINATE]).await;
            let _ = lifeline.flush().await;
        }
        if timeout(Self::POLITE, self.gone()).await.is_ok() {
            return reason;
        }
        self.lifeline = None;
        if timeout(Self::HARD, self.gone()).await.is_err() {
            tracing::warn!("a guard does not end and is killed");
            let _ = self.guard.start_kill();
            self.kill_group();
            self.gone().await;
        }
        reason
    }

    /// Kills the process group: the last resort when the guard does not do its work.
    fn kill_group(&mut self) {
        if let Some(group) = self.group.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl From<Exit> for ShellExit {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self::Code(code),
            Exit::Signal(signal) => Self::Signal(signal),
            Exit::Overflow => Self::Overflow,
        }
    }
}
