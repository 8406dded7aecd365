//! The events of an answer as it streams in.
//!
//! The shape is the Messages API's, which is what hosts of the headless protocol expect to see; other
//! providers are translated into it.

use centurion_protocol::{StopReason, ToolUseId, Usage};
use serde_json::value::RawValue;

/// One event of a streaming answer. A well-formed stream is `Start`, then for each block
/// `BlockStart`, any number of `Delta`s and `BlockStop`, then `Finish`; `Ping`s may come anywhere.
/// A stream that ends without `Finish` was cut off, and the provider says so with an error.
#[derive(Clone, Debug)]
pub enum StreamEvent {
    Start {
        id: String,
        model: String,
        usage: Usage,
        /// What the provider calls this request in its own logs.
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
    /// The end of a whole answer. `usage` counts all of the request, not what came since `Start`.
    Finish {
        stop_reason: StopReason,
        usage: Usage,
    },
    Ping,
}

impl StreamEvent {
    /// How many bytes of an answer it brings.
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
    /// A block of a kind this program does not know, carried as it came. If it has an input, that
    /// may follow in [`Delta::InputJson`]s; [`AnswerBuilder`](crate::AnswerBuilder) puts it in.
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
    /// The piece of text, whatever it is a piece of.
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
