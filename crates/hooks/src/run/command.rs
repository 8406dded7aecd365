//! Command hooks: a program below the guard, which reads JSON and prints its answer.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::time::Duration;

use centurion_tools::guard::GuardProgram;
use centurion_tools::{PipedProcess, PipedProgram};
use futures_util::FutureExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::ChildStdin;
use tokio::time::{Instant, MissedTickBehavior};

use super::{FiredEvent, placeholders};
use crate::handler::{CommandAction, HookShell};
use crate::hooks::Surroundings;
use crate::origin::HookSource;
use crate::reply::{End, HandlerEnd};

/// The bytes of each stream that are kept.
const LONGEST_OUTPUT: usize = 1024 * 1024;

/// The time between two looks at what a running hook has printed, and the bytes of each stream that are told then.
const PROGRESS: Duration = Duration::from_secs(1);
const LONGEST_PROGRESS: usize = 16 * 1024;

/// The program of a command, with its arguments and environment.
pub(super) fn program(
    action: &CommandAction,
    source: &HookSource,
    told: &FiredEvent,
    around: &Surroundings,
) -> PipedProgram {
    let environment = environment(source, told, around);
    let cwd = told.common.cwd.clone();
    if let Some(args) = &action.args {
        let options = source.plugin().map(|plugin| &plugin.options);
        let fill = |text: &str| OsString::from(placeholders::fill(text, &environment, options));
        let args = args.iter().map(|arg| fill(arg)).collect();
        return PipedProgram { program: fill(&action.command), args, cwd, environment };
    }
    // The shell expands the variables itself.
    let (shell, before): (&str, &[&str]) = match action.shell {
        HookShell::Sh => ("sh", &["-c"]),
        HookShell::Bash => ("bash", &["-c"]),
        HookShell::PowerShell => ("pwsh", &["-NoProfile", "-NonInteractive", "-Command"]),
    };
    let args = before.iter().copied().chain([action.command.as_str()]).map(OsString::from);
    PipedProgram { program: shell.into(), args: args.collect(), cwd, environment }
}

fn environment(
    source: &HookSource,
    told: &FiredEvent,
    around: &Surroundings,
) -> BTreeMap<String, String> {
    let users = around.env.of_programs();
    let mut variables: BTreeMap<String, String> =
        users.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut set = |name: &str, value: String| variables.insert(name.to_owned(), value);
    set("CENTURION", "1".to_owned());
    set("CLAUDECODE", "1".to_owned());
    set("CLAUDE_CODE_SESSION_ID", told.common.session_id.to_string());
    set("CLAUDE_PROJECT_DIR", around.project_dir.to_string_lossy().into_owned());
    if let Some(plugin) = source.plugin() {
        set("CLAUDE_PLUGIN_ROOT", plugin.root.to_string_lossy().into_owned());
        set("CLAUDE_PLUGIN_DATA", plugin.data.to_string_lossy().into_owned());
        for (key, value) in &plugin.options {
            let letter = |it: char| if it.is_ascii_alphanumeric() { it } else { '_' };
            let key: String = key.chars().map(letter).collect();
            set(&format!("CLAUDE_PLUGIN_OPTION_{}", key.to_ascii_uppercase()), value.clone());
        }
    }
    match &around.env_file {
        Some(file) if told.event.has_env_file() => {
            set("CLAUDE_ENV_FILE", file.to_string_lossy().into_owned());
        }
        // The file of an outer session does not belong to this one.
        _ => {
            variables.remove("CLAUDE_ENV_FILE");
        }
    }
    variables
}

/// Runs a program to its end. `left` receives it if processes of it continue.
pub(super) async fn run(
    guard: &GuardProgram,
    program: &PipedProgram,
    input: &str,
    left: &mut Option<PipedProcess>,
    progressed: &(dyn Fn(String, String) + Sync),
) -> HandlerEnd {
    let mut piped = match PipedProcess::start(guard, program) {
        Ok(piped) => piped,
        Err(error) => return HandlerEnd::failed(format!("cannot be started: {error}")),
    };
    let stdin = piped.stdin.take();
    let mut stdout = Collected::new(piped.stdout.take());
    let mut stderr = Collected::new(piped.stderr.take());
    let end = {
        let talk = async {
            tokio::join!(feed(stdin, input), listen(&mut stdout, &mut stderr, progressed));
            std::future::pending().await
        };
        tokio::select! {
            biased;
            end = piped.wait() => end,
            never = talk => never,
        }
    };
    if end.left_running {
        // They hold the pipes open, so the streams do not end. The program's own output is there already.
        stdout.read_what_is_there();
        stderr.read_what_is_there();
        *left = Some(piped);
    } else {
        tokio::join!(stdout.read_all(), stderr.read_all());
    }
    let end_of_output = if stdout.is_cut {
        End::SaidTooMuch(format!("its output has more than {LONGEST_OUTPUT} bytes"))
    } else {
        End::Finished
    };
    HandlerEnd {
        stdout: stdout.into_text(),
        stderr: stderr.into_text(),
        exit_code: end.code,
        end: end_of_output,
    }
}

/// Reads both streams to their ends. Tells what is there so far, at most once in a while and only if there is more.
async fn listen(
    stdout: &mut Collected<impl AsyncRead + Unpin>,
    stderr: &mut Collected<impl AsyncRead + Unpin>,
    progressed: &(dyn Fn(String, String) + Sync),
) {
    let mut tick = tokio::time::interval_at(Instant::now() + PROGRESS, PROGRESS);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = 0;
    while stdout.is_open() || stderr.is_open() {
        let kept = stdout.bytes.len() + stderr.bytes.len();
        tokio::select! {
            _ = stdout.read_more(), if stdout.is_open() => {}
            _ = stderr.read_more(), if stderr.is_open() => {}
            _ = tick.tick(), if kept > told => {
                told = kept;
                progressed(stdout.end_of_text(), stderr.end_of_text());
            }
        }
    }
}

/// Writes the input. A program that does not read it is no failure.
async fn feed(stdin: Option<ChildStdin>, input: &str) {
    let Some(mut stdin) = stdin else { return };
    let fed = async {
        stdin.write_all(input.as_bytes()).await?;
        stdin.write_all(b"\n").await?;
        stdin.shutdown().await
    };
    if let Err(error) = fed.await
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        tracing::debug!(%error, "a hook could not be told everything");
    }
}

/// A stream, as far as it is kept.
struct Collected<S> {
    stream: Option<S>,
    bytes: Vec<u8>,
    /// Whether there was more than is kept.
    is_cut: bool,
}

impl<S: AsyncRead + Unpin> Collected<S> {
    fn new(stream: Option<S>) -> Self {
        Self { stream, bytes: Vec::new(), is_cut: false }
    }

    /// Reads to the end, and discards the excess. May be dropped and called again.
    async fn read_all(&mut self) {
        while self.read_more().await {}
    }

    /// Reads everything that is available without waiting.
    fn read_what_is_there(&mut self) {
        // The scheduler must not pretend that nothing is available.
        let reading = tokio::task::coop::unconstrained(self.read_all());
        // If it has to wait, nothing more is available.
        let _ = reading.now_or_never();
    }

    /// Reads once; returns whether there was more.
    async fn read_more(&mut self) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        let mut piece = Vec::with_capacity(16 * 1024);
        let count = stream.read_buf(&mut piece).await.unwrap_or(0);
        if count == 0 {
            self.stream = None;
        }
        let room = LONGEST_OUTPUT.saturating_sub(self.bytes.len());
        self.is_cut |= piece.len() > room;
        self.bytes.extend(piece.into_iter().take(room));
        count > 0
    }

    fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// The end of what is there.
    fn end_of_text(&self) -> String {
        let begin = self.bytes.len().saturating_sub(LONGEST_PROGRESS);
        String::from_utf8_lossy(&self.bytes[begin..]).into_owned()
    }

    fn into_text(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}
