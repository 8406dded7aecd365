//! The shell commands of a session, in the foreground and in the background.
//!
//! Every command runs below a guard (see [`crate::guard`]). When [`Shells`] is dropped, or the process dies, everything
//! that its commands have started ends.

mod background;
mod environment;
mod files;
mod foreground;
mod guarded;
mod output;
mod plain;
mod redacted;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::{CurrentSession, Env, TaskId, ToolUseId};
use centurion_sandbox::Plan;
use indexmap::IndexMap;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::context::lock;
use crate::guard::GuardProgram;
use crate::sandbox::IsolatedPlaces;
use background::Shell;
pub use background::{BackgroundShell, Reporting, ShellState};
use files::Files;
use foreground::Foreground;
use guarded::Guarded;
use output::BoundedText;
pub use output::OutputTail;
pub(crate) use redacted::redact_file;

/// The settings that all commands of a session share.
#[derive(Clone, Debug)]
pub struct ShellsConfig {
    pub guard: GuardProgram,
    pub session: CurrentSession,
    /// The directory in which the session was started.
    pub project_dir: PathBuf,
    /// Scripts that every command reads first, if they exist: variables that a hook or the user set.
    pub environment_files: Vec<PathBuf>,
    /// The output limit of a command, in bytes; a command that exceeds it is ended.
    pub max_output: u64,
}

impl ShellsConfig {
    pub const DEFAULT_MAX_OUTPUT: u64 = 1 << 30;

    pub fn new(
        guard: GuardProgram,
        session: impl Into<CurrentSession>,
        project_dir: PathBuf,
    ) -> Self {
        let (session, environment_files) = (session.into(), Vec::new());
        Self {
            guard,
            session,
            project_dir,
            environment_files,
            max_output: Self::DEFAULT_MAX_OUTPUT,
        }
    }
}

/// One command to run.
#[derive(Clone, Copy, Debug)]
pub struct ShellRequest<'a> {
    pub id: &'a TaskId,
    pub command: &'a str,
    pub cwd: &'a Path,
    pub env: &'a Env,
    /// The private directory of the session; output goes to `tasks/<id>.output` below it.
    pub output_dir: &'a Path,
    /// The time that the command may run.
    pub timeout: Option<Duration>,
    /// The confinement of the command, if there is one.
    pub sandbox: Option<&'a Plan>,
    pub keys: Keys,
    /// The places of an isolated agent.
    pub isolation: Option<&'a IsolatedPlaces>,
}

/// Whether a command gets the keys of model providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    Given,
    Withheld,
}

/// The end of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellExit {
    Code(i32),
    Signal(i32),
    /// It reached its timeout and was ended.
    TimedOut(Duration),
    /// It was ended on request, or with its session.
    Stopped,
    /// It reached the limit of its output and was ended.
    Overflow,
    /// Unknown, because the guard could not do its work.
    Lost(String),
}

impl ShellExit {
    pub fn is_success(&self) -> bool {
        *self == Self::Code(0)
    }

    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(*code),
            _ => None,
        }
    }
}

/// The end of a call's wait for its command.
#[derive(Clone, Debug)]
pub enum WaitEnd {
    /// The command has ended.
    Ended(ShellResult),
    /// The command continues in the background: a person let the call continue without it.
    Moved(BackgroundShell),
}

/// The result of a foreground command.
#[derive(Clone, Debug)]
pub struct ShellResult {
    pub exit: ShellExit,
    /// Standard output and error in order, readable and bounded.
    pub output: String,
    /// The file with the whole output, when `output` is not all of it or more may come.
    pub output_file: Option<PathBuf>,
    /// The directory in which the command ended, if it still exists.
    pub cwd_after: Option<PathBuf>,
    /// Whether processes of the command continue in the background.
    pub left_running: bool,
}

#[derive(Debug, Error)]
pub enum ShellError {
    #[error("cannot keep the files of a command in {}: {source}", .path.display())]
    Files { path: PathBuf, source: io::Error },
    #[error("cannot start {}: {source}", .program.display())]
    Start { program: PathBuf, source: io::Error },
    #[error("the session is ending and starts no more commands")]
    Closed,
}

/// The reason that a background shell could not be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StopError {
    #[error("there is no such task")]
    Unknown,
    #[error("the task is not running")]
    NotRunning,
}

/// The commands of one session.
pub struct Shells {
    config: ShellsConfig,
    /// Every background shell of the session, in the order of their start; ended ones stay for queries.
    background: Mutex<IndexMap<TaskId, Arc<Shell>>>,
    /// The calls that wait for a command now.
    foreground: Foreground,
    /// Holds the guard of each background command. Dropping the set drops them, which ends their commands.
    tasks: Mutex<JoinSet<()>>,
    /// Cancelled when the session ends.
    closed: CancellationToken,
    /// Cancelled when the commands end that run in the background now. A child of `closed`.
    ends_running: Mutex<CancellationToken>,
}

impl Shells {
    /// The longest time that a shutdown takes.
    const SHUTDOWN: Duration = Duration::from_secs(3);

    pub fn new(config: ShellsConfig) -> Self {
        let closed = CancellationToken::new();
        Self {
            config,
            background: Mutex::default(),
            foreground: Foreground::default(),
            tasks: Mutex::default(),
            ends_running: Mutex::new(closed.child_token()),
            closed,
        }
    }

    /// Runs a command to its end, its timeout, or the cancellation; then everything that it started
    /// is gone, unless it ended by itself and left processes behind on purpose. A person may let the call continue
    /// without the command, which is a background shell from then on, told of by `reporting`.
    ///
    /// `limit` bounds the characters of the output.
    pub async fn run(
        &self,
        request: ShellRequest<'_>,
        limit: OutputLimit,
        reporting: Reporting,
        cancel: &CancellationToken,
    ) -> Result<WaitEnd, ShellError> {
        let (files, mut process) = self.start_guard(request)?;
        let waiting = self.foreground.wait(reporting.call.clone());
        let mut left_running = false;
        let exit = tokio::select! {
            biased;
            ended = process.ended() => {
                left_running = ended.left_running;
                ended.exit
            }
            () = cancel.cancelled() => process.stop(ShellExit::Stopped).await,
            () = self.closed.cancelled() => process.stop(ShellExit::Stopped).await,
            () = waiting.released() => {
                return Ok(WaitEnd::Moved(self.adopt(request, files, process, None, reporting)));
            }
            exit = expiry(request.timeout) => process.stop(exit).await,
        };
        let limit = if exit.is_success() { limit.success } else { limit.failure };
        let BoundedText { text, whole } = output::read(files.output(), limit).await;
        let output_file = (left_running || !whole).then(|| files.keep_output());
        match &output_file {
            Some(output) if left_running => self.hold(process, output.clone()),
            Some(output) => redact(output.clone()).await,
            None => {}
        }
        Ok(WaitEnd::Ended(ShellResult {
            exit,
            output: text,
            output_file,
            cwd_after: files.cwd_after(),
            left_running,
        }))
    }

    /// Lets every call that waits for a command continue without it; how many did.
    pub fn release_all(&self) -> usize {
        self.foreground.release_all()
    }

    /// Lets this call continue without the command that it waits for; whether it waited for one.
    pub fn release(&self, call: &ToolUseId) -> bool {
        self.foreground.release(call)
    }

    /// Starts a command in the background. `reporting` receives its end once, unless a call has told the model before.
    pub fn start(
        &self,
        request: ShellRequest<'_>,
        reporting: Reporting,
    ) -> Result<BackgroundShell, ShellError> {
        let (files, process) = self.start_guard(request)?;
        Ok(self.adopt(request, files, process, request.timeout, reporting))
    }

    /// Makes a command that runs a background shell.
    fn adopt(
        &self,
        request: ShellRequest<'_>,
        files: Files,
        mut process: Guarded,
        timeout: Option<Duration>,
        reporting: Reporting,
    ) -> BackgroundShell {
        let shell = Arc::new(Shell::new(
            request.id.clone(),
            request.command.to_owned(),
            files.keep_output(),
            reporting,
        ));
        lock(&self.background).insert(request.id.clone(), Arc::clone(&shell));
        let view = shell.view();
        let closed = lock(&self.ends_running).clone();
        self.spawn(async move {
            let exit = tokio::select! {
                biased;
                ended = process.ended() => ended.exit,
                () = shell.stop_wanted() => process.stop(ShellExit::Stopped).await,
                () = closed.cancelled() => process.stop(ShellExit::Stopped).await,
                exit = expiry(timeout) => process.stop(exit).await,
            };
            let output = files.output().to_owned();
            drop(files);
            redact(output.clone()).await;
            shell.finish(&exit);
            Self::hold_until(process, closed, output).await;
        });
        view
    }

    /// The state of a background shell.
    pub fn get(&self, id: &str) -> Option<BackgroundShell> {
        self.find(id).map(|shell| shell.view())
    }

    /// The running background shells.
    pub fn running(&self) -> Vec<BackgroundShell> {
        let shells = lock(&self.background);
        let views = shells.values().map(|shell| shell.view());
        views.filter(|shell| shell.state == ShellState::Running).collect()
    }

    /// Waits until a background shell has ended, or `patience` is over. An end that this returns is not reported again.
    pub async fn wait(&self, id: &str, patience: Duration) -> Option<BackgroundShell> {
        let shell = self.find(id)?;
        let reporter = Shell::reporter(&shell);
        // The state tells whether the shell ended or the patience was over.
        let _ = timeout(patience, shell.ended()).await;
        Some(reporter.report())
    }

    /// Ends a background shell and everything that it started. The end is not reported again.
    pub async fn stop(&self, id: &str) -> Result<BackgroundShell, StopError> {
        let shell = self.find(id).ok_or(StopError::Unknown)?;
        let reporter = Shell::stopper(&shell).ok_or(StopError::NotRunning)?;
        shell.ended().await;
        Ok(reporter.report())
    }

    /// Reads the present output of a background shell.
    pub async fn output(&self, shell: &BackgroundShell, limit: usize) -> String {
        output::read(&shell.output_file, limit).await.text
    }

    /// Reads the end of a background shell's output, as it is now; `None` if there is no such shell.
    pub async fn tail(&self, id: &str) -> Option<io::Result<OutputTail>> {
        let file = self.find(id)?.view().output_file;
        let reading = tokio::task::spawn_blocking(move || OutputTail::read(&file));
        Some(reading.await.unwrap_or_else(|error| Err(io::Error::other(error))))
    }

    /// Ends everything, politely at first, and starts nothing any more. Reports nothing.
    pub async fn shutdown(&self) {
        let tasks = std::mem::take(&mut *lock(&self.tasks));
        self.end(&self.closed, tasks).await;
    }

    /// Ends the background commands and all that earlier commands left running, politely at first. Reports nothing. More
    /// can be started afterwards.
    pub async fn end_all(&self) {
        let (earlier, tasks) = {
            let mut ends_running = lock(&self.ends_running);
            let earlier = std::mem::replace(&mut *ends_running, self.closed.child_token());
            (earlier, std::mem::take(&mut *lock(&self.tasks)))
        };
        self.end(&earlier, tasks).await;
    }

    async fn end(&self, token: &CancellationToken, mut tasks: JoinSet<()>) {
        for shell in lock(&self.background).values() {
            shell.silence();
        }
        token.cancel();
        // Commands that remain after the time are aborted with the set.
        let all = async { while tasks.join_next().await.is_some() {} };
        if timeout(Self::SHUTDOWN, all).await.is_err() {
            tracing::warn!("some commands did not end in time and were killed");
        }
    }

    fn find(&self, id: &str) -> Option<Arc<Shell>> {
        lock(&self.background).get(&TaskId::new(id)).cloned()
    }

    fn start_guard(&self, request: ShellRequest<'_>) -> Result<(Files, Guarded), ShellError> {
        if self.closed.is_cancelled() {
            return Err(ShellError::Closed);
        }
        let prelude = environment::prelude(&self.config.environment_files);
        let command = [prelude.as_slice(), request.command.as_bytes()].concat();
        let files = Files::create(request.output_dir, request.id, &command)?;
        let environment = environment::of_commands(&self.config, &request);
        let process = Guarded::start(&self.config, &files, &request, environment)?;
        Ok((files, process))
    }

    /// Keeps the remaining processes of a command running until they are ended, or the session ends.
    fn hold(&self, process: Guarded, output: PathBuf) {
        let ends = lock(&self.ends_running).clone();
        self.spawn(Self::hold_until(process, ends, output));
    }

    async fn hold_until(mut process: Guarded, closed: CancellationToken, output: PathBuf) {
        tokio::select! {
            () = process.gone() => {}
            () = closed.cancelled() => {
                process.stop(ShellExit::Stopped).await;
            }
        }
        // The remaining processes may have written more.
        redact(output).await;
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }
}

/// The most characters of a command's output in an answer.
#[derive(Clone, Copy, Debug)]
pub struct OutputLimit {
    pub success: usize,
    pub failure: usize,
}

/// Removes the credentials from a kept output.
async fn redact(output: PathBuf) {
    let redacted = tokio::task::spawn_blocking(move || redact_file(&output)).await;
    if let Err(error) = redacted.unwrap_or_else(|error| Err(io::Error::other(error))) {
        tracing::debug!(%error, "an output could not be redacted");
    }
}

async fn expiry(timeout: Option<Duration>) -> ShellExit {
    match timeout {
        Some(timeout) => {
            sleep(timeout).await;
            ShellExit::TimedOut(timeout)
        }
        None => std::future::pending().await,
    }
}
