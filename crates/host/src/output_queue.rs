//! A queue of bytes with one reader, which may be slow. The policy is the crate's, see there.
//!
//! While the reader keeps up, bytes are written at once. Bytes that it has no room for wait in three places, oldest
//! first: in the hands of the writer thread, on disk, and in `recent`. The first of them start the thread, and as long
//! as it has work, nothing else touches where the bytes go.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::time::Duration;

use centurion_engine::RoomFuture;
use centurion_protocol::end_json_line;
use parking_lot::{Condvar, Mutex};
use serde::Serialize;
use tokio::sync::watch;

use crate::spill::{LARGEST_READ, OpenSpill, Spill};

/// The most bytes that wait in memory, beside those that the writer has in its hands: no more than that is taken from
/// there or from the disk at once.
const MOST_IN_MEMORY: usize = LARGEST_READ;

/// The number of bytes on disk above which agents wait, too.
const MOST_ON_DISK: u64 = 128 * 1024 * 1024;

/// The longest time for which a reader may take nothing when the program is to end.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// The space for a line that is kept for the next.
const LARGEST_KEPT: usize = 64 * 1024;

/// The destination of bytes.
pub trait Sink: Write + Send {
    /// Whether the next write does not have to wait for the reader.
    fn is_ready(&mut self) -> bool {
        false
    }
}

pub struct OutputQueue {
    inner: Arc<Inner>,
    /// The buffer in which a line is made before it is added: events are many, and nearly all of one size.
    line: Mutex<Vec<u8>>,
}

struct Inner {
    state: Mutex<OutputQueueState>,
    /// Locked by the writer thread while it has work, and otherwise under the lock of the state.
    sink: Mutex<Box<dyn Sink>>,
    /// Wakes the writer thread.
    more: Condvar,
    /// Wakes tasks that wait for the writer or for the reader. The state says what has changed.
    changes: watch::Sender<()>,
}

struct OutputQueueState {
    writer: Writer,
    spill: Spill,
    recent: Vec<u8>,
    written: u64,
    /// Nothing more is taken.
    is_finishing: bool,
    /// The program is to end: a reader that does not read is not waited for.
    is_ending: bool,
    end: Option<End>,
}

/// The writer thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    NotStarted,
    Idle,
    /// It has bytes that are not written.
    Busy,
}

/// The end of a queue.
#[derive(Clone)]
enum End {
    AllWritten,
    Failed(ErrorKind, String),
}

impl OutputQueue {
    /// Writes to `sink`, from a thread of its own where that has to wait. What the reader does not read in time waits
    /// in files that `open_spill` makes.
    pub fn new(sink: impl Sink + 'static, open_spill: OpenSpill) -> Self {
        let state = OutputQueueState {
            writer: Writer::NotStarted,
            spill: Spill::new(open_spill),
            recent: Vec::new(),
            written: 0,
            is_finishing: false,
            is_ending: false,
            end: None,
        };
        let inner = Inner {
            state: Mutex::new(state),
            sink: Mutex::new(Box::new(sink)),
            more: Condvar::new(),
            changes: watch::Sender::new(()),
        };
        Self { inner: Arc::new(inner), line: Mutex::default() }
    }

    /// Adds bytes. They are dropped once the queue has failed or is finished.
    pub fn write(&self, bytes: &[u8]) {
        let mut state = self.inner.state.lock();
        if bytes.is_empty() || state.is_finishing || state.end.is_some() {
            return;
        }
        let was_busy = state.writer == Writer::Busy;
        let rest = if was_busy { bytes } else { self.inner.write_now(&mut state, bytes) };
        if rest.is_empty() || state.end.is_some() {
            return;
        }
        state.recent.extend_from_slice(rest);
        // One large piece for a writer that has nothing else to do needs no disk.
        if was_busy && state.recent.len() > MOST_IN_MEMORY {
            let recent = std::mem::take(&mut state.recent);
            if let Err(error) = state.spill.append(&recent) {
                let why = format!("its reader is behind, and the rest cannot be kept: {error}");
                self.inner.end(&mut state, End::Failed(error.kind(), why));
                return;
            }
        }
        if std::mem::replace(&mut state.writer, Writer::Busy) == Writer::NotStarted {
            let inner = Arc::clone(&self.inner);
            let thread = std::thread::Builder::new().name("output".to_owned());
            // It ends with the queue, or with the process if the reader never reads.
            if let Err(error) = thread.spawn(move || write_all(&inner)) {
                self.inner.fail(&mut state, &error);
            }
        }
        self.inner.more.notify_one();
    }

    /// Adds one JSON object on a line of its own.
    pub fn json_line(&self, value: &impl Serialize) {
        self.json("", value, "\n");
    }

    /// Adds a JSON value that has no line end in it, between two texts; whether it could be serialised.
    pub(crate) fn json(&self, before: &str, value: &impl Serialize, after: &str) -> bool {
        let mut line = self.line.lock();
        line.clear();
        line.extend_from_slice(before.as_bytes());
        if let Err(error) = serde_json::to_writer(&mut *line, value) {
            tracing::error!(%error, "an event could not be written");
            return false;
        }
        end_json_line(&mut line);
        line.pop();
        line.extend_from_slice(after.as_bytes());
        self.write(&line);
        line.shrink_to(LARGEST_KEPT);
        true
    }

    /// The reader has gone, or cannot be written to: nothing more is kept for it.
    pub fn fail(&self, error: &io::Error) {
        self.inner.fail(&mut self.inner.state.lock(), error);
    }

    /// Waits until the queue has failed; for ever, if it does not.
    pub async fn failed(&self) {
        self.inner.wait(|state| matches!(state.end, Some(End::Failed(..)))).await;
    }

    /// From now on a reader that takes nothing for two seconds is not waited for.
    pub fn end_soon(&self) {
        self.inner.state.lock().is_ending = true;
        self.inner.changes.send_replace(());
    }

    /// Waits while too much waits for the reader; `None` if there is room now.
    pub fn wait_for_room(&self) -> Option<RoomFuture<'_>> {
        let has_room = |state: &OutputQueueState| state.spill.unread() < MOST_ON_DISK;
        if has_room(&self.inner.state.lock()) {
            return None;
        }
        Some(Box::pin(self.inner.wait(has_room)))
    }

    /// Takes nothing more and waits until all was written. `Err` says why not all was.
    pub async fn finish(&self) -> io::Result<()> {
        let mut changes = self.inner.changes.subscribe();
        {
            let mut state = self.inner.state.lock();
            state.is_finishing = true;
            if state.writer != Writer::Busy && state.end.is_none() {
                self.inner.end(&mut state, End::AllWritten);
            }
            self.inner.more.notify_one();
        }
        loop {
            let (written, is_ending) = {
                let state = self.inner.state.lock();
                match &state.end {
                    Some(End::AllWritten) => return Ok(()),
                    Some(End::Failed(kind, why)) => {
                        return Err(io::Error::new(*kind, why.clone()));
                    }
                    None => (state.written, state.is_ending),
                }
            };
            tokio::select! {
                _ = changes.changed() => {}
                () = tokio::time::sleep(LAST_PATIENCE), if is_ending => {
                    if self.inner.state.lock().written == written {
                        self.fail(&io::Error::new(ErrorKind::TimedOut, "its reader does not read"));
                    }
                }
            }
        }
    }
}

impl Drop for OutputQueue {
    fn drop(&mut self) {
        // The writer thread writes what is left, and ends.
        self.inner.state.lock().is_finishing = true;
        self.inner.more.notify_one();
    }
}

impl Inner {
    fn fail(&self, state: &mut OutputQueueState, error: &io::Error) {
        self.end(state, End::Failed(error.kind(), error.to_string()));
    }

    /// Ends the queue, unless it has ended.
    fn end(&self, state: &mut OutputQueueState, end: End) {
        if state.end.is_none() {
            state.end = Some(end);
            state.recent = Vec::new();
            state.spill.clear();
            self.more.notify_one();
            self.changes.send_replace(());
        }
    }

    /// Writes as much as the reader has room for; what is left.
    fn write_now<'b>(&self, state: &mut OutputQueueState, bytes: &'b [u8]) -> &'b [u8] {
        let mut sink = self.sink.lock();
        let mut rest = bytes;
        while !rest.is_empty() && sink.is_ready() {
            match sink.write(rest) {
                Ok(0) => self.fail(state, &ErrorKind::WriteZero.into()),
                Ok(count) => {
                    state.written += count as u64;
                    rest = rest.get(count..).unwrap_or_default();
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => self.fail(state, &error),
            }
            break;
        }
        rest
    }

    async fn wait(&self, is_so: impl Fn(&OutputQueueState) -> bool) {
        let mut changes = self.changes.subscribe();
        while !is_so(&self.state.lock()) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits for bytes and takes the oldest into the buffer; whether there are any, now or later.
    fn take(&self, buffer: &mut Vec<u8>) -> bool {
        buffer.clear();
        buffer.shrink_to(MOST_IN_MEMORY);
        let mut state = self.state.lock();
        loop {
            if state.end.is_some() {
                return false;
            }
            if state.spill.unread() > 0 {
                if let Err(error) = state.spill.take(buffer) {
                    self.fail(&mut state, &error);
                    return false;
                }
                self.changes.send_replace(());
                return true;
            }
            if !state.recent.is_empty() {
                std::mem::swap(buffer, &mut state.recent);
                return true;
            }
            state.writer = Writer::Idle;
            if state.is_finishing {
                self.end(&mut state, End::AllWritten);
                return false;
            }
            self.more.wait(&mut state);
        }
    }
}

/// Writes whatever comes, until the queue ends.
fn write_all(queue: &Inner) {
    let mut buffer = Vec::new();
    while queue.take(&mut buffer) {
        let mut sink = queue.sink.lock();
        let mut rest = buffer.as_slice();
        while !rest.is_empty() {
            let written = match sink.write(rest) {
                Ok(0) => Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                written => written,
            };
            let mut state = queue.state.lock();
            match written {
                Ok(count) => {
                    state.written += count as u64;
                    rest = rest.get(count..).unwrap_or_default();
                }
                Err(error) => queue.fail(&mut state, &error),
            }
            if state.end.is_some() {
                return;
            }
        }
        if let Err(error) = sink.flush() {
            queue.fail(&mut queue.state.lock(), &error);
        }
    }
}

#[cfg(test)]
mod tests;
