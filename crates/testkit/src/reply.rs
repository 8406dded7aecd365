//! The server's reply to one request, and its faults.

use std::time::Duration;

use serde_json::{Value, json};

use crate::sse;

/// One answer of the server.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// The pieces of the reply, sent one by one.
    pub(crate) pieces: Vec<Vec<u8>>,
    /// A piece that is sent after the others, this many times.
    pub(crate) flood: Option<(Vec<u8>, usize)>,
    pub(crate) fault: Option<Fault>,
    pub(crate) delay: Duration,
}

/// A way to go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Closes the connection after this many pieces.
    Reset { after: usize },
    /// Sends an event that is no JSON after this many pieces, then continues.
    Malformed { after: usize },
    /// Sends bytes that are no text after this many pieces.
    Garbage { after: usize },
    /// Sends an in-stream error after this many pieces, then ends.
    StreamError { after: usize },
    /// Ends the body properly, after this many pieces.
    End { after: usize },
    /// Says nothing more after this many pieces, and keeps the connection open.
    Silence { after: usize },
    /// Takes the request and never answers.
    BlackHole,
}

impl Reply {
    /// A streaming answer of blocks in the Messages API's form; see [`sse`] for blocks.
    pub fn blocks(blocks: impl Into<Vec<Value>>) -> Self {
        let blocks = blocks.into();
        Self::events(sse::answer(&blocks, sse::natural_stop(&blocks)))
    }

    /// A streaming answer of one text.
    pub fn text(text: &str) -> Self {
        Self::blocks([sse::text(text)])
    }

    /// A streaming answer of the given server-sent events, each in a piece of its own.
    pub fn events(events: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        let pieces = events.into_iter().map(Into::into).collect();
        Self { pieces, ..Self::status(200) }.header("content-type", "text/event-stream")
    }

    /// A plain answer.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            pieces: Vec::new(),
            flood: None,
            fault: None,
            delay: Duration::ZERO,
        }
    }

    /// An error in the Messages API's form.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let body = json!({ "type": "error", "error": { "type": kind, "message": message } });
        Self::status(status).header("content-type", "application/json").body(body.to_string())
    }

    /// Too many requests; come back after this many seconds.
    pub fn rate_limit(seconds: &str) -> Self {
        Self::error(429, "rate_limit_error", "slow down").header("retry-after", seconds)
    }

    /// The provider has too much to do.
    pub fn overloaded() -> Self {
        Self::error(529, "overloaded_error", "overloaded")
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn body(self, body: impl Into<Vec<u8>>) -> Self {
        Self { pieces: vec![body.into()], ..self }
    }

    /// Sends one more piece, this many times: for answers larger than a test wants to hold.
    pub fn flood(self, piece: impl Into<Vec<u8>>, times: usize) -> Self {
        Self { flood: Some((piece.into(), times)), ..self }
    }

    pub fn fault(self, fault: Fault) -> Self {
        Self { fault: Some(fault), ..self }
    }

    /// Waits before the answer begins: for watching a program that waits.
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}
