//! A piece of an answer in the form in which hosts expect it: the Messages API's stream events.

use centurion_model::{BlockStart, Delta, StreamEvent};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

/// The event as JSON; `None` for what hosts are not shown.
pub(super) fn to_json(event: &StreamEvent) -> Option<Box<RawValue>> {
    let value = match event {
        StreamEvent::Start { id, model, usage, .. } => json!({
            "type": "message_start",
            "message": {
                "id": id, "type": "message", "role": "assistant", "model": model, "content": [],
                "stop_reason": null, "stop_sequence": null, "usage": usage,
            },
        }),
        StreamEvent::BlockStart { index, block } => {
            json!({"type": "content_block_start", "index": index, "content_block": block_start(block)})
        }
        StreamEvent::Delta { index, delta } => {
            json!({"type": "content_block_delta", "index": index, "delta": delta_json(delta)})
        }
        StreamEvent::BlockStop { index } => json!({"type": "content_block_stop", "index": index}),
        StreamEvent::Finish { stop_reason, usage } => json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason, "stop_sequence": null},
            "usage": usage,
        }),
        StreamEvent::Ping => return None,
    };
    to_raw_value(&value).ok()
}

/// The event that ends a message in the stream, after its last `message_delta`.
pub(super) fn message_stop() -> Option<Box<RawValue>> {
    to_raw_value(&json!({"type": "message_stop"})).ok()
}

fn block_start(block: &BlockStart) -> Value {
    match block {
        BlockStart::Text => json!({"type": "text", "text": ""}),
        BlockStart::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
        BlockStart::RedactedThinking { data } => json!({"type": "redacted_thinking", "data": data}),
        BlockStart::ToolUse { id, name } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": {}})
        }
        BlockStart::Other(raw) => serde_json::from_str(raw.get()).unwrap_or_default(),
    }
}

fn delta_json(delta: &Delta) -> Value {
    match delta {
        Delta::Text(text) => json!({"type": "text_delta", "text": text}),
        Delta::Thinking(text) => json!({"type": "thinking_delta", "thinking": text}),
        Delta::Signature(text) => json!({"type": "signature_delta", "signature": text}),
        Delta::InputJson(text) => json!({"type": "input_json_delta", "partial_json": text}),
    }
}
