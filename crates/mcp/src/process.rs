//! The process behind a server that talks through its standard streams.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::markup::contain;
use centurion_redact::redact_text;
use centurion_tools::{PipedProcess, PipedProgram};
use parking_lot::Mutex;
use tokio::io::AsyncReadExt as _;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::pool::Settings;

/// The bytes of a server's standard error that are kept.
const LAST_WORDS: usize = 8 * 1024;

/// A running server. Dropping it kills it and everything that it started.
pub(crate) struct ServerProcess {
    piped: PipedProcess,
    last_words: Arc<Mutex<VecDeque<u8>>>,
    /// Reads the standard error to its end, so that a verbose server never blocks.
    listener: JoinSet<()>,
}

impl ServerProcess {
    pub(crate) fn start(
        settings: &Settings,
        command: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
    ) -> io::Result<(Self, ChildStdout, ChildStdin)> {
        let mut environment = settings.environment();
        environment.extend(env.iter().map(|(name, value)| (name.clone(), value.clone())));
        let program = PipedProgram {
            program: command.into(),
            args: args.iter().map(Into::into).collect(),
            environment,
            cwd: settings.cwd.clone(),
        };
        let mut piped = PipedProcess::start(&settings.guard, &program)?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (piped.stdin.take(), piped.stdout.take(), piped.stderr.take())
        else {
            return Err(io::Error::other("its standard streams are not there"));
        };
        let last_words = Arc::default();
        let mut listener = JoinSet::new();
        listener.spawn(listen(stderr, Arc::clone(&last_words)));
        Ok((Self { piped, last_words, listener }, stdout, stdin))
    }

    /// Describes the end of the server, with its last error output. Waits a moment for both.
    pub(crate) async fn why_ended(&mut self) -> String {
        let how = match timeout(Duration::from_secs(1), self.piped.wait()).await {
            Ok(end) => match end.code {
                Some(code) => format!("it ended with code {code}"),
                None => "it was ended by a signal".to_owned(),
            },
            Err(_) => "it closed its output".to_owned(),
        };
        // A child that still runs may keep the stream open for ever.
        let _ = timeout(Duration::from_millis(200), self.listener.join_next()).await;
        self.with_last_words(how)
    }

    /// Adds the server's last error output.
    pub(crate) fn with_last_words(&self, reason: String) -> String {
        let words = self.last_words.lock();
        let words: Vec<u8> = words.iter().copied().collect();
        let words = String::from_utf8_lossy(&words);
        match others_words(&words).as_str() {
            "" => reason,
            words => format!("{reason}; it last said: {words}"),
        }
    }

    /// Ends the server and everything that it started, politely at first.
    pub(crate) async fn stop(mut self) {
        self.piped.stop().await;
    }
}

/// The output of a foreign program, for models and hosts: without credentials, and with markup of ours defused.
pub(crate) fn others_words(said: &str) -> String {
    contain(&redact_text(said.trim())).into_owned()
}

async fn listen(mut stderr: ChildStderr, last_words: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let said = buffer.get(..count).unwrap_or_default();
        let mut words = last_words.lock();
        words.extend(said);
        let surplus = words.len().saturating_sub(LAST_WORDS);
        words.drain(..surplus);
    }
}
