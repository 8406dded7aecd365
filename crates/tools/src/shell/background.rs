//! One background shell: its state, and the report of its end.
//!
//! The end is told exactly once: by the call that waits for it, by the call that stops it, or else to the host. The
//! holder of a [`Reporter`] has that duty. A reporter that is dropped before it has told, because its call was
//! cancelled, returns the duty.

use std::path::PathBuf;
use std::sync::Arc;

use centurion_protocol::{TaskId, ToolUseId};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::ShellExit;
use crate::context::{Host, ShellChange, ShellEnd, lock};

/// The recipient of a background shell's end.
pub struct Reporting {
    pub host: Arc<dyn Host>,
    /// The call that starts the shell.
    pub call: ToolUseId,
    /// The model's description, or else the command. Only a short line of it is told.
    pub description: String,
}

/// A background shell at one moment.
#[derive(Clone, Debug)]
pub struct BackgroundShell {
    pub id: TaskId,
    pub command: String,
    /// The model's description, or else the command: one short line.
    pub description: String,
    pub output_file: PathBuf,
    pub state: ShellState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellState {
    Running,
    Ended(ShellExit),
}

pub(super) struct Shell {
    id: TaskId,
    call: ToolUseId,
    command: String,
    description: String,
    output_file: PathBuf,
    /// Cancelled to request the end.
    stop: CancellationToken,
    /// Cancelled when the end has come.
    ended: CancellationToken,
    record: Mutex<Record>,
}

struct Record {
    exit: Option<ShellExit>,
    /// The number of calls that have the duty to tell of the end.
    reporters: usize,
    /// The recipient if no call tells the end; `None` when the end has been told, or must not be.
    host: Option<Arc<dyn Host>>,
}

impl Shell {
    pub(super) fn new(
        id: TaskId,
        command: String,
        output_file: PathBuf,
        Reporting { host, call, description }: Reporting,
    ) -> Self {
        let description = one_line(&description);
        host.shell_changed(ShellChange::Started {
            task: id.clone(),
            call: call.clone(),
            description: description.clone(),
        });
        Self {
            id,
            call,
            command,
            description,
            output_file,
            stop: CancellationToken::new(),
            ended: CancellationToken::new(),
            record: Mutex::new(Record { exit: None, reporters: 0, host: Some(host) }),
        }
    }

    pub(super) fn view(&self) -> BackgroundShell {
        self.view_of(&lock(&self.record))
    }

    fn view_of(&self, record: &Record) -> BackgroundShell {
        BackgroundShell {
            id: self.id.clone(),
            command: self.command.clone(),
            description: self.description.clone(),
            output_file: self.output_file.clone(),
            state: record.exit.clone().map_or(ShellState::Running, ShellState::Ended),
        }
    }

    pub(super) async fn stop_wanted(&self) {
        self.stop.cancelled().await;
    }

    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Records the end, and notifies the model through the host unless a call will tell it.
    pub(super) fn finish(&self, exit: &ShellExit) {
        let watcher = {
            let mut record = lock(&self.record);
            record.exit = Some(exit.clone());
            record.host.clone()
        };
        if let Some(host) = watcher {
            host.shell_changed(ShellChange::Ended(self.end(exit)));
        }
        self.ended.cancel();
        self.tell_host();
    }

    fn end(&self, exit: &ShellExit) -> ShellEnd {
        ShellEnd {
            task: self.id.clone(),
            call: self.call.clone(),
            description: self.description.clone(),
            exit_code: exit.code(),
            stopped: *exit == ShellExit::Stopped,
            output_file: self.output_file.clone(),
        }
    }

    /// Makes sure that the host is not told any more.
    pub(super) fn silence(&self) {
        lock(&self.record).host = None;
    }

    /// Takes the duty to tell of the end when it comes.
    pub(super) fn reporter(shell: &Arc<Self>) -> Reporter {
        lock(&shell.record).reporters += 1;
        Reporter(Arc::clone(shell))
    }

    /// Requests the end and takes the duty to tell of it; `None` when the end has come, or another call has requested
    /// it already.
    pub(super) fn stopper(shell: &Arc<Self>) -> Option<Reporter> {
        let mut record = lock(&shell.record);
        if record.exit.is_some() || shell.stop.is_cancelled() {
            return None;
        }
        record.reporters += 1;
        // Under the lock, so that only one of two callers gets here.
        shell.stop.cancel();
        Some(Reporter(Arc::clone(shell)))
    }

    /// Tells the host of the end, if it has come and no call has told or will tell.
    fn tell_host(&self) {
        let (host, exit) = {
            let mut record = lock(&self.record);
            match (record.reporters, record.exit.clone()) {
                (0, Some(exit)) => (record.host.take(), exit),
                _ => return,
            }
        };
        if let Some(host) = host {
            host.report_shell_end(self.end(&exit));
        }
    }
}

/// The longest description, in characters.
const LONGEST: usize = 200;

/// The beginning of a text on one line, without control characters: models and people read it.
fn one_line(text: &str) -> String {
    let words = text.split(|character: char| character.is_control() || character.is_whitespace());
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(LONGEST) {
        None => line,
        Some(_) => line.chars().take(LONGEST - 1).chain(['…']).collect(),
    }
}

/// The duty of one call to tell of a shell's end.
pub(super) struct Reporter(Arc<Shell>);

impl Reporter {
    /// Returns the state: if the shell has ended, the host is not told again.
    pub(super) fn report(self) -> BackgroundShell {
        let mut record = lock(&self.0.record);
        if record.exit.is_some() {
            record.host = None;
        }
        self.0.view_of(&record)
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        lock(&self.0.record).reporters -= 1;
        self.0.tell_host();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_one_short_line() {
        for (text, expected) in [
            ("run the tests", "run the tests"),
            ("  build\n\tthen\r\nwait ", "build then wait"),
            ("red \x1b[31malert\x07\0", "red [31malert"),
            ("next\u{85}line\u{2028}end", "next line end"),
            ("", ""),
        ] {
            assert_eq!(one_line(text), expected);
        }
        assert_eq!(one_line(&"é".repeat(LONGEST)), "é".repeat(LONGEST));
        let cut = one_line(&"é".repeat(100_000));
        assert_eq!(cut.chars().count(), LONGEST);
        assert!(cut.ends_with('…'));
    }
}
