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
    Start { id: String, model: String, usage: Usage },
    BlockStart { index: usize, block: BlockStart },
    Delta { index: usize, delta: Delta },
    BlockStop { index: usize },
    Finish { stop_reason: StopReason, usage: Usage },
    Ping,
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
    /// A block of a kind this program does not know; complete as it is.
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
