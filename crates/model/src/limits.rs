//! Limits on the size of a provider's answer, and the count that enforces them.
//!
//! The limits are far above the answers of models. An answer that exceeds one of them is a fault of the provider: it is
//! dropped, the connection is closed, and the request is not retried.

use centurion_protocol::JsonShape;
use serde_json::value::RawValue;

use crate::{BlockStart, ErrorKind, ModelError, StreamEvent};

/// Bytes of text, thinking, signatures, inputs and names in one answer. The longest answers that models can give have
/// about a million tokens, which are six megabytes.
pub const MOST_BYTES: usize = 16 * MIB;

/// Blocks in one answer; calls are blocks.
pub const MOST_BLOCKS: usize = 4096;

/// Events in one answer, whatever they hold.
pub const MOST_EVENTS: usize = 4_000_000;

/// Bytes on the wire between two pieces of content. Holds for one line, one event, and any number of comments and
/// pings, which a server can send for ever.
pub const MOST_BYTES_WITHOUT_CONTENT: usize = 20 * MIB;

/// Bytes in the body of an answer that does not stream, such as a list of models.
pub const MOST_BODY: usize = 8 * MIB;

/// The deepest nesting of JSON in a call's input, or in a block of an unknown kind. JSON parsers give up at 128 levels,
/// and the input becomes a part of larger documents.
pub const MOST_DEPTH: usize = 100;

/// The most values of such JSON: each takes far more memory than text.
pub const MOST_VALUES: usize = 200_000;

const MIB: usize = 1024 * 1024;

/// The size of one answer so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    bytes: usize,
    blocks: usize,
    events: usize,
}

impl Tally {
    /// Counts one event; fails when the answer is larger than any answer may be.
    pub(crate) fn count(&mut self, event: &StreamEvent) -> Result<(), ModelError> {
        self.events += 1;
        if self.events > MOST_EVENTS {
            return Err(too_large(format!("it has more than {MOST_EVENTS} events")));
        }
        let bytes = match event {
            StreamEvent::Start { id, model, request_id, .. } => {
                id.len() + model.len() + request_id.as_ref().map_or(0, String::len)
            }
            StreamEvent::BlockStart { block, .. } => {
                self.add_block()?;
                if let BlockStart::Other(raw) = block {
                    check_block(raw)?;
                }
                size(block)
            }
            StreamEvent::Delta { delta, .. } => delta.as_str().len(),
            StreamEvent::BlockStop { .. } | StreamEvent::Finish { .. } | StreamEvent::Ping => 0,
        };
        self.add_bytes(bytes)
    }

    pub(crate) fn add_bytes(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MOST_BYTES {
            return Err(too_large(format!("it has more than {} MiB", MOST_BYTES / MIB)));
        }
        Ok(())
    }

    pub(crate) fn add_block(&mut self) -> Result<(), ModelError> {
        self.blocks += 1;
        if self.blocks > MOST_BLOCKS {
            return Err(too_large(format!("it has more than {MOST_BLOCKS} blocks")));
        }
        Ok(())
    }
}

fn size(block: &BlockStart) -> usize {
    match block {
        BlockStart::Text | BlockStart::Thinking => 0,
        BlockStart::RedactedThinking { data } => data.len(),
        BlockStart::ToolUse { id, name } => id.as_str().len() + name.len(),
        BlockStart::Other(raw) => raw.get().len(),
    }
}

pub(crate) fn too_large(why: impl std::fmt::Display) -> ModelError {
    ModelError::new(
        ErrorKind::TooLarge,
        format!("the provider sent more than an answer can be: {why}"),
    )
}

/// Fails when too many bytes have come since the last piece of content: then no more content is expected.
pub(crate) fn check_bytes_without_content(bytes: usize) -> Result<(), ModelError> {
    if bytes > MOST_BYTES_WITHOUT_CONTENT {
        let most = MOST_BYTES_WITHOUT_CONTENT / MIB;
        return Err(too_large(format!("{most} MiB came without a piece of the answer")));
    }
    Ok(())
}

/// Fails for a block of an unknown kind that a later parser could not read: it is passed unchanged.
pub(crate) fn check_block(raw: &RawValue) -> Result<(), ModelError> {
    problem_of(raw).map_or(Ok(()), |problem| Err(too_large(format!("a block: {problem}"))))
}

/// The problem with the shape of JSON, if there is one.
pub(crate) fn problem_of(input: &RawValue) -> Option<String> {
    let shape = JsonShape::of(input.get().as_bytes());
    if shape.depth > MOST_DEPTH {
        return Some(format!("it is nested deeper than {MOST_DEPTH} levels"));
    }
    (shape.values > MOST_VALUES).then(|| format!("it has more than {MOST_VALUES} values"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn an_input_may_be_as_deep_and_as_wide_as_parsers_take_it() {
        let nested = |depth: usize| raw(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
        assert_eq!(problem_of(&nested(MOST_DEPTH)), None);
        assert!(problem_of(&nested(MOST_DEPTH + 1)).unwrap().contains("deeper"));
        let wide = |count: usize| raw(&format!("[{}[]]", "[],".repeat(count)));
        assert_eq!(problem_of(&wide(1000)), None);
        assert!(problem_of(&wide(MOST_VALUES / 2)).unwrap().contains("values"));
    }

    #[test]
    fn a_block_of_an_unknown_kind_may_be_no_deeper() {
        let block = |depth: usize| {
            let nested = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            raw(&format!(r#"{{"type":"server_tool_use","input":{nested}}}"#))
        };
        let start =
            |depth| StreamEvent::BlockStart { index: 0, block: BlockStart::Other(block(depth)) };
        assert!(Tally::default().count(&start(MOST_DEPTH - 1)).is_ok());
        let error = Tally::default().count(&start(MOST_DEPTH)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::TooLarge);
    }

    #[test]
    fn every_kind_of_growth_ends() {
        let delta = |text: &str| StreamEvent::Delta {
            index: 0,
            delta: crate::Delta::Signature(text.to_owned()),
        };
        let events = [
            delta(&"x".repeat(1000)),
            delta(""),
            StreamEvent::Ping,
            StreamEvent::BlockStart { index: 7, block: BlockStart::Text },
            StreamEvent::BlockStart {
                index: 7,
                block: BlockStart::RedactedThinking { data: "x".repeat(100_000) },
            },
            StreamEvent::BlockStart {
                index: 7,
                block: BlockStart::Other(raw(&format!("\"{}\"", "x".repeat(100_000)))),
            },
            StreamEvent::BlockStart {
                index: 7,
                block: BlockStart::ToolUse {
                    id: centurion_protocol::ToolUseId::new("t"),
                    name: "x".repeat(100_000),
                },
            },
            StreamEvent::BlockStop { index: 0 },
        ];
        for event in &events {
            let mut tally = Tally::default();
            let error = (0..=MOST_EVENTS).find_map(|_| tally.count(event).err());
            assert_eq!(error.map(|error| error.kind), Some(ErrorKind::TooLarge), "{event:?}");
        }
    }
}
