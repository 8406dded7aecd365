//! Commands that a person types behind `!`: below a guard, so that nothing of them is left when they are stopped or the
//! program ends.

use std::collections::HashMap;
use std::sync::Arc;

use centurion_tools::{PipedProcess, PipedProgram};
use parking_lot::Mutex;
use tokio::io::AsyncReadExt as _;
use tokio::sync::oneshot;

use crate::setup;
use crate::surroundings::Surroundings;

/// The most output of a command that is kept.
const MOST_OUTPUT: usize = 256 * 1024;
/// The bytes of one read.
const READ: usize = 8 * 1024;

/// The commands that run, each with what stops it.
#[derive(Clone, Default)]
pub(super) struct OwnShells(Arc<Mutex<HashMap<u64, oneshot::Sender<()>>>>);

impl OwnShells {
    /// Takes note of a command that begins; what comes when it is to be stopped.
    pub(super) fn begin(&self, number: u64) -> oneshot::Receiver<()> {
        let (stop, stopped) = oneshot::channel();
        self.0.lock().insert(number, stop);
        stopped
    }

    pub(super) fn stop(&self, number: u64) {
        if let Some(stop) = self.0.lock().remove(&number) {
            // A command that has just ended needs no stop.
            let _ = stop.send(());
        }
    }

    pub(super) fn ended(&self, number: u64) {
        self.0.lock().remove(&number);
    }
}

/// Runs a command to its end, or until it is stopped; what it printed, and whether it succeeded. `prints` is told of each
/// piece of output as it comes.
pub(super) async fn run(
    command: &str,
    surroundings: &Surroundings,
    stop: oneshot::Receiver<()>,
    prints: impl Fn(String),
) -> (String, bool) {
    let variables = surroundings.env.iter();
    let program = PipedProgram {
        program: "sh".into(),
        args: vec!["-c".into(), format!("exec 2>&1; {command}").into()],
        environment: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        cwd: surroundings.cwd.clone(),
    };
    let started = setup::guard().and_then(|guard| Ok(PipedProcess::start(&guard, &program)?));
    let mut piped = match started {
        Ok(piped) => piped,
        Err(error) => return (format!("{error:#}"), false),
    };
    piped.stdin = None;
    let mut output = Vec::new();
    let code = tokio::select! {
        code = to_its_end(&mut piped, &mut output, prints) => code,
        _ = stop => {
            piped.stop().await;
            return (format!("{}\n(stopped)", text_of(&output)).trim_start().to_owned(), false);
        }
    };
    (text_of(&output), code == Some(0))
}

/// Reads what a command prints until it ends. Output beyond the limit is read, and not kept.
async fn to_its_end(
    piped: &mut PipedProcess,
    output: &mut Vec<u8>,
    prints: impl Fn(String),
) -> Option<i32> {
    let mut stdout = piped.stdout.take()?;
    let mut piece = vec![0; READ];
    loop {
        tokio::select! {
            biased;
            read = stdout.read(&mut piece) => match read {
                Ok(0) | Err(_) => return piped.wait().await.code,
                Ok(count) => take(&piece[..count], output, &prints),
            },
            // A process that it left in the background may hold its output open.
            ended = piped.wait() => {
                while let Ok(Ok(count @ 1..)) =
                    tokio::time::timeout(std::time::Duration::ZERO, stdout.read(&mut piece)).await
                {
                    take(&piece[..count], output, &prints);
                }
                return ended.code;
            }
        }
    }
}

fn take(piece: &[u8], output: &mut Vec<u8>, prints: &impl Fn(String)) {
    let room = MOST_OUTPUT.saturating_sub(output.len());
    output.extend_from_slice(&piece[..piece.len().min(room)]);
    prints(String::from_utf8_lossy(piece).into_owned());
}

fn text_of(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim_end().to_owned()
}
