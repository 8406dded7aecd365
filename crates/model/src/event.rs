//! The events of a streaming answer.
//!
//! The form is that of the Messages API, which hosts of the headless protocol expect; other providers are translated
//! into it.

use centurion_protocol::{ReportedUsage, StopReason, ToolUseId};
use serde_json::value::RawValue;

/// One event of a streaming answer. A well-formed stream is `Start`, then for each block `BlockStart`, any number of
/// `Delta`s and `BlockStop`, then `Finish`; `Ping`s may come anywhere. A stream without `Finish` was cut off, and the
/// provider reports that as an error.
#[derive(Clone, Debug)]
pub enum StreamEvent {
    Start {
        id: String,
        model: String,
        usage: ReportedUsage,
        /// The provider's id of this request in its own logs.
        request_id: Option<String>,
    },
    BlockStart {
        index: usize,
        block: BlockStart,
    },
    Delta {
        index: usize,
        delta: Delta,
    },
    BlockStop {
        index: usize,
    },
    /// The end of a whole answer. `usage` counts all of the request, not only the part since `Start`.
    Finish {
        stop_reason: StopReason,
        usage: ReportedUsage,
    },
    Ping,
}

impl StreamEvent {
    /// The bytes of the answer in this event.
    pub fn text_length(&self) -> u64 {
        let Self::Delta { delta, .. } = self else { return 0 };
        delta.as_str().len() as u64
    }
}

#[derive(Clone, Debug)]
pub enum BlockStart {
    Text,
    Thinking,
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: ToolUseId,
        name: String,
    },
    /// A block of an unknown kind, passed unchanged. If it has an input, that may follow in [`Delta::InputJson`]s;
    /// [`AnswerBuilder`](crate::AnswerBuilder) inserts it.
    Other(Box<RawValue>),
}

#[derive(Clone, Debug)]
pub enum Delta {
    Text(String),
    Thinking(String),
    Signature(String),
    /// A piece of the JSON text of a call's input.
    InputJson(String),
}

impl Delta {
    /// The text of the piece, of any kind.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(text)
            | Self::Thinking(text)
            | Self::Signature(text)
            | Self::InputJson(text) => text,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }
}
