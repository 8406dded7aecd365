//! One line of a cassette, and the serde mirror of events and errors.
//!
//! The mirror is private to cassettes: the types that the rest of the program uses stay free of a storage format. JSON
//! from a provider is kept as text, so that its bytes survive.

use std::collections::BTreeMap;
use std::time::Duration;

use centurion_protocol::{ReportedUsage, StopReason, ToolUseId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::canonical::Canonical;
use crate::{BlockStart, Delta, ErrorKind, ModelError, StreamEvent};

/// The version of the format.
pub(super) const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub(super) cassette: u32,
    pub(super) request: Canonical<String>,
    /// The parts that `request` names and no earlier line contains.
    pub(super) parts: BTreeMap<String, Value>,
    /// Events with their times, in milliseconds since the request.
    pub(super) events: Vec<(u64, RecordedEvent)>,
    pub(super) end: End,
}

/// The end of an exchange.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    Whole,
    /// The caller dropped the stream.
    Cut,
    Failed(u64, RecordedFailure),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordedEvent {
    Start { id: String, model: String, usage: ReportedUsage, request_id: Option<String> },
    Text { index: usize },
    Thinking { index: usize },
    RedactedThinking { index: usize, data: String },
    ToolUse { index: usize, id: ToolUseId, name: String },
    Other { index: usize, json: String },
    TextDelta(usize, String),
    ThinkingDelta(usize, String),
    SignatureDelta(usize, String),
    InputDelta(usize, String),
    Stop { index: usize },
    Finish { stop_reason: StopReason, usage: ReportedUsage },
    Ping,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordedFailure {
    kind: Kind,
    status: Option<u16>,
    pub(super) message: String,
    retry_after_ms: Option<u64>,
}

/// Declares the mirror of [`ErrorKind`] and both conversions.
macro_rules! mirror_kinds {
    ($($kind:ident),*) => {
        #[derive(Debug, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Kind { $($kind),* }

        impl From<ErrorKind> for Kind {
            fn from(kind: ErrorKind) -> Self {
                match kind { $(ErrorKind::$kind => Self::$kind),* }
            }
        }

        impl From<Kind> for ErrorKind {
            fn from(kind: Kind) -> Self {
                match kind { $(Kind::$kind => Self::$kind),* }
            }
        }
    };
}

mirror_kinds!(
    Authentication,
    Billing,
    InvalidRequest,
    ModelNotFound,
    ContextOverflow,
    RateLimit,
    Overloaded,
    Server,
    Network,
    Timeout,
    Malformed,
    TooLarge,
    Replay
);

impl From<&StreamEvent> for RecordedEvent {
    fn from(event: &StreamEvent) -> Self {
        match event.clone() {
            StreamEvent::Start { id, model, usage, request_id } => {
                Self::Start { id, model, usage, request_id }
            }
            StreamEvent::BlockStart { index, block } => match block {
                BlockStart::Text => Self::Text { index },
                BlockStart::Thinking => Self::Thinking { index },
                BlockStart::RedactedThinking { data } => Self::RedactedThinking { index, data },
                BlockStart::ToolUse { id, name } => Self::ToolUse { index, id, name },
                BlockStart::Other(raw) => Self::Other { index, json: raw.get().to_owned() },
            },
            StreamEvent::Delta { index, delta } => match delta {
                Delta::Text(text) => Self::TextDelta(index, text),
                Delta::Thinking(text) => Self::ThinkingDelta(index, text),
                Delta::Signature(text) => Self::SignatureDelta(index, text),
                Delta::InputJson(text) => Self::InputDelta(index, text),
            },
            StreamEvent::BlockStop { index } => Self::Stop { index },
            StreamEvent::Finish { stop_reason, usage } => Self::Finish { stop_reason, usage },
            StreamEvent::Ping => Self::Ping,
        }
    }
}

impl TryFrom<RecordedEvent> for StreamEvent {
    type Error = serde_json::Error;

    fn try_from(event: RecordedEvent) -> Result<Self, Self::Error> {
        let block = |index, block| Self::BlockStart { index, block };
        let delta = |index, delta| Self::Delta { index, delta };
        Ok(match event {
            RecordedEvent::Start { id, model, usage, request_id } => {
                Self::Start { id, model, usage, request_id }
            }
            RecordedEvent::Text { index } => block(index, BlockStart::Text),
            RecordedEvent::Thinking { index } => block(index, BlockStart::Thinking),
            RecordedEvent::RedactedThinking { index, data } => {
                block(index, BlockStart::RedactedThinking { data })
            }
            RecordedEvent::ToolUse { index, id, name } => {
                block(index, BlockStart::ToolUse { id, name })
            }
            RecordedEvent::Other { index, json } => {
                block(index, BlockStart::Other(RawValue::from_string(json)?))
            }
            RecordedEvent::TextDelta(index, text) => delta(index, Delta::Text(text)),
            RecordedEvent::ThinkingDelta(index, text) => delta(index, Delta::Thinking(text)),
            RecordedEvent::SignatureDelta(index, text) => delta(index, Delta::Signature(text)),
            RecordedEvent::InputDelta(index, text) => delta(index, Delta::InputJson(text)),
            RecordedEvent::Stop { index } => Self::BlockStop { index },
            RecordedEvent::Finish { stop_reason, usage } => Self::Finish { stop_reason, usage },
            RecordedEvent::Ping => Self::Ping,
        })
    }
}

impl From<&ModelError> for RecordedFailure {
    fn from(error: &ModelError) -> Self {
        Self {
            kind: error.kind.into(),
            status: error.status,
            message: error.message.clone(),
            retry_after_ms: error.retry_after.map(millis),
        }
    }
}

impl From<RecordedFailure> for ModelError {
    fn from(failure: RecordedFailure) -> Self {
        Self {
            kind: failure.kind.into(),
            status: failure.status,
            message: failure.message,
            retry_after: failure.retry_after_ms.map(Duration::from_millis),
        }
    }
}

/// Whole milliseconds; half a billion years are enough.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
