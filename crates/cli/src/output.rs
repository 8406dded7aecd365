//! What the program prints, and in which form.

mod json;
mod live;
mod stream;
mod text;

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

pub(crate) use json::JsonView;
pub(crate) use live::{LiveView, Nowhere};
pub(crate) use stream::StreamView;
pub(crate) use text::TextView;

/// The space for a line that is kept for the next.
const LARGEST_KEPT: usize = 64 * 1024;

/// Standard output, written a whole piece at a time. When the reader goes away that is no error: nothing
/// more is written, and whoever waits for `closed` is told. Any other failure is one.
#[derive(Default)]
pub(crate) struct Output {
    is_closed: AtomicBool,
    has_failed: AtomicBool,
    closed: Notify,
    /// Where a line is made before it is written: events are many, and nearly all of one size.
    line: Mutex<Vec<u8>>,
}

impl Output {
    pub(crate) fn write(&self, bytes: &[u8]) {
        if self.is_closed.load(Ordering::Relaxed) {
            return;
        }
        let mut stdout = io::stdout().lock();
        let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush()) else { return };
        self.is_closed.store(true, Ordering::Relaxed);
        if error.kind() != io::ErrorKind::BrokenPipe {
            self.has_failed.store(true, Ordering::Relaxed);
            note(&format!("error: standard output cannot be written: {error}"));
        }
        self.closed.notify_one();
    }

    /// Whether something could not be written though somebody reads.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// One JSON object on a line of its own.
    pub(crate) fn json_line(&self, value: &impl serde::Serialize) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        line.clear();
        match serde_json::to_writer(&mut *line, value) {
            Ok(()) => {
                line.push(b'\n');
                self.write(&line);
            }
            Err(error) => tracing::error!(%error, "an event could not be written"),
        }
        line.shrink_to(LARGEST_KEPT);
    }

    /// Waits until nobody reads any more.
    pub(crate) async fn closed(&self) {
        self.closed.notified().await;
    }
}

/// A line without characters that would command a terminal.
pub(crate) fn printable(line: &str) -> String {
    let plain = line.chars().map(|c| if c == '\t' { ' ' } else { c });
    plain.filter(|c| !c.is_control()).collect()
}

/// Tells a person on standard error what failed and why. Lines that begin with `help:` stand as they are.
pub(crate) fn complain(error: &anyhow::Error) {
    let mut causes = error.chain().map(ToString::to_string);
    let mut text = causes.next().unwrap_or_default();
    for cause in causes {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    note(&format!("error: {text}"));
}

/// Writes a line to standard error. If even that fails there is nobody to tell.
pub(crate) fn note(line: &str) {
    drop(writeln!(io::stderr().lock(), "{line}"));
}
