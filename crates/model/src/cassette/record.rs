//! Recording: passes the events of another provider through and appends each exchange as one line.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use centurion_protocol::end_json_line;
use futures_util::{Stream, stream};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::CassetteError;
use super::canonical::{Canonical, name_of};
use super::line::{End, Line, RecordedEvent, RecordedFailure, VERSION, millis};
use super::secrets::{redact_end, redact_events, redact_value};
use crate::{ErrorKind, EventStream, ModelError, Provider, Request, StreamEvent};

/// The file being written.
pub(super) struct Recorder {
    path: PathBuf,
    state: Mutex<RecorderState>,
}

struct RecorderState {
    file: File,
    /// The names of the parts in the file.
    known: HashSet<String>,
    /// The reason that nothing more is recorded: a cassette with a hole is worse than none.
    failed: Option<String>,
}

impl Recorder {
    pub(super) fn create(path: &Path) -> Result<Self, CassetteError> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options
            .open(path)
            .map_err(|source| CassetteError::Write { path: path.to_owned(), source })?;
        let state = RecorderState { file, known: HashSet::new(), failed: None };
        Ok(Self { path: path.to_owned(), state: Mutex::new(state) })
    }

    /// The reason that recording stopped, if it did.
    fn failure(&self) -> Option<ModelError> {
        let state = self.state.lock();
        state.failed.as_ref().map(|reason| ModelError::new(ErrorKind::Replay, reason.clone()))
    }

    fn append(&self, request: Canonical<Value>, events: Vec<(u64, RecordedEvent)>, end: End) {
        let mut state = self.state.lock();
        let mut parts = BTreeMap::new();
        let request = request.map(|mut part| {
            redact_value(&mut part);
            let name = name_of(&part);
            if !state.known.contains(&name) {
                parts.insert(name.clone(), part);
            }
            name
        });
        let names: Vec<String> = parts.keys().cloned().collect();
        let events = redact_events(events);
        let end = redact_end(end);
        let line = Line { cassette: VERSION, request, parts, events, end };
        let written =
            serde_json::to_vec(&line).map_err(std::io::Error::from).and_then(|mut line| {
                end_json_line(&mut line);
                state.file.write_all(&line)
            });
        match written {
            Ok(()) => state.known.extend(names),
            Err(error) => {
                let path = self.path.display();
                tracing::warn!(%path, %error, "an exchange could not be recorded");
                state.failed = Some(format!("cannot write the cassette `{path}`: {error}"));
            }
        }
    }
}

/// Sends the request through `inner` and records the answer.
pub(super) fn stream(
    inner: &dyn Provider,
    recorder: &Arc<Recorder>,
    request: Request,
) -> EventStream {
    if let Some(error) = recorder.failure() {
        return Box::pin(stream::iter([Err(error)]));
    }
    let canonical = Canonical::of(&request);
    Box::pin(Recording {
        started: Instant::now(),
        inner: inner.stream(request),
        recorder: Arc::clone(recorder),
        open: Some(OpenExchange { request: canonical, events: Vec::new(), finished: false }),
    })
}

/// An exchange in progress. However it ends, it is written exactly once.
struct Recording {
    started: Instant,
    inner: EventStream,
    recorder: Arc<Recorder>,
    /// `None` once it is written.
    open: Option<OpenExchange>,
}

struct OpenExchange {
    request: Canonical<Value>,
    events: Vec<(u64, RecordedEvent)>,
    finished: bool,
}

impl Recording {
    fn close(&mut self, end: End) {
        if let Some(open) = self.open.take() {
            self.recorder.append(open.request, open.events, end);
        }
    }
}

impl Stream for Recording {
    type Item = Result<StreamEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let item = self.inner.as_mut().poll_next(context);
        let at = millis(self.started.elapsed());
        match &item {
            Poll::Ready(Some(Ok(event))) => {
                if let Some(open) = &mut self.open {
                    open.finished |= matches!(event, StreamEvent::Finish { .. });
                    open.events.push((at, event.into()));
                }
            }
            Poll::Ready(Some(Err(error))) => {
                self.close(End::Failed(at, RecordedFailure::from(error)));
            }
            Poll::Ready(None) => self.close(End::Whole),
            Poll::Pending => {}
        }
        item
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // A reader that has seen `Finish` need not poll further; any other stream was cut short.
        let whole = self.open.as_ref().is_some_and(|open| open.finished);
        self.close(if whole { End::Whole } else { End::Cut });
    }
}
