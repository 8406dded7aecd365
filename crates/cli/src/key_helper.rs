//! `apiKeyHelper`: a command of the user's that prints a key, asked again when the key has run out.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use centurion_model::{KeyError, KeyFuture, KeyHelper};
use centurion_protocol::Env;
use centurion_tools::{Bound, BoundOutput, PipedProgram};
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::setup;

/// The time for which a key is used before the command is asked again.
const LIFETIME: Duration = Duration::from_mins(5);
/// The longest time that the command may take: it may have to ask a server over a network.
const PATIENCE: Duration = Duration::from_mins(1);

/// The command, and the key that it printed last.
pub(crate) struct HelperCommand {
    command: String,
    env: Arc<Env>,
    cwd: PathBuf,
    lifetime: Duration,
    /// Held while the command runs: others wait for what it prints.
    kept: Mutex<Option<CachedKey>>,
}

/// The reason that the command gives no key. What it printed as a key may be a part of one, and is not shown.
#[derive(Debug, Error)]
enum HelperError {
    #[error("apiKeyHelper gives no key: it took longer than {} s", PATIENCE.as_secs())]
    Slow,
    #[error("apiKeyHelper gives no key: {0}")]
    Run(#[from] io::Error),
    #[error("apiKeyHelper gives no key: {end}: {said}")]
    Failed { end: String, said: String },
    #[error("apiKeyHelper gives no key: it printed nothing")]
    Empty,
    #[error("apiKeyHelper gives no key: it printed more than a key")]
    MoreThanAKey,
}

struct CachedKey {
    key: String,
    since: Instant,
}

impl HelperCommand {
    pub(crate) fn new(command: String, env: Arc<Env>, cwd: PathBuf) -> Self {
        let lifetime = env.number("CLAUDE_CODE_API_KEY_HELPER_TTL_MS").map(Duration::from_millis);
        let lifetime = lifetime.unwrap_or(LIFETIME);
        Self { command, env, cwd, lifetime, kept: Mutex::default() }
    }

    /// Runs the command, and returns the key that it printed. What it started ends with it.
    async fn ask(&self) -> Result<String, HelperError> {
        let guard = setup::guard().map_err(io::Error::other)?;
        let variables = self.env.iter();
        let program = PipedProgram {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), self.command.as_str().into()],
            environment: variables
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            cwd: self.cwd.clone(),
        };
        let running = Bound::run(&guard, &program, &[], MOST_PRINTED);
        key_of(&timeout(PATIENCE, running).await.map_err(|_| HelperError::Slow)??)
    }
}

/// The most that a helper may print.
const MOST_PRINTED: usize = 64 * 1024;

/// The key that was printed.
fn key_of(output: &BoundOutput) -> Result<String, HelperError> {
    if output.code != Some(0) {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().next().unwrap_or("it says nothing").trim().to_owned();
        let end =
            output.code.map_or("a signal ended it".to_owned(), |code| format!("exit code {code}"));
        return Err(HelperError::Failed { end, said });
    }
    match str::from_utf8(&output.stdout).map(str::trim) {
        Ok("") => Err(HelperError::Empty),
        Ok(key) if !key.contains(char::is_control) => Ok(key.to_owned()),
        _ => Err(HelperError::MoreThanAKey),
    }
}

impl KeyHelper for HelperCommand {
    fn key<'a>(&'a self, refused: Option<&'a str>) -> KeyFuture<'a> {
        Box::pin(async move {
            let mut kept = self.kept.lock().await;
            if let Some(kept) = &*kept
                && refused != Some(kept.key.as_str())
                && kept.since.elapsed() < self.lifetime
            {
                return Ok(kept.key.clone());
            }
            let key = self.ask().await.map_err(KeyError::new)?;
            *kept = Some(CachedKey { key: key.clone(), since: Instant::now() });
            Ok(key)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A helper that prints another key each time, in a directory of its own.
    fn counting(directory: &tempfile::TempDir, lifetime: &str) -> HelperCommand {
        let env =
            Env::from([("CLAUDE_CODE_API_KEY_HELPER_TTL_MS", lifetime), ("PATH", "/bin:/usr/bin")]);
        let command = "echo x >> asked; echo key-$(wc -l < asked)".to_owned();
        HelperCommand::new(command, Arc::new(env), directory.path().to_owned())
    }

    #[tokio::test]
    async fn a_key_is_kept_until_it_is_refused_or_has_run_out() {
        let directory = tempfile::tempdir().unwrap();
        let helper = counting(&directory, "60000");
        assert_eq!(helper.key(None).await.unwrap(), "key-1");
        assert_eq!(helper.key(None).await.unwrap(), "key-1");
        assert_eq!(helper.key(Some("key-1")).await.unwrap(), "key-2");
        // Another request had the old key refused, too: the new one is not known to be bad.
        assert_eq!(helper.key(Some("key-1")).await.unwrap(), "key-2");
        let forgetful = counting(&directory, "0");
        assert_eq!(forgetful.key(None).await.unwrap(), "key-3");
        assert_eq!(forgetful.key(None).await.unwrap(), "key-4");
    }

    #[tokio::test]
    async fn a_helper_that_gives_no_key_says_why_and_not_what() {
        let directory = tempfile::tempdir().unwrap();
        for (command, why) in [
            ("echo no vault >&2; exit 3", "exit code 3: no vault"),
            ("true", "printed nothing"),
            ("echo secret-one; echo secret-two", "more than a key"),
            ("yes secret", "more than 65536 bytes"),
        ] {
            let cwd = directory.path().to_owned();
            let helper = HelperCommand::new(command.to_owned(), Arc::default(), cwd);
            let error = helper.key(None).await.unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("secret"), "{error}");
        }
    }
}
