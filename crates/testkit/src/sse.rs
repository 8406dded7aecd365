//! The bytes of streaming answers in the Messages API's form.

use serde_json::{Value, json};

/// A block of text.
pub fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// A block of thinking with its signature.
pub fn thinking(thinking: &str, signature: &str) -> Value {
    json!({ "type": "thinking", "thinking": thinking, "signature": signature })
}

/// A call.
pub fn tool_use(id: &str, name: &str, input: Value) -> Value {
    let mut block = json!({ "type": "tool_use", "id": id, "name": name });
    block["input"] = input;
    block
}

/// The usage of a request, as the interface reports it.
pub fn usage(input: u64, cache_write: u64, cache_read: u64, output: u64) -> Value {
    json!({
        "input_tokens": input,
        "cache_creation_input_tokens": cache_write,
        "cache_read_input_tokens": cache_read,
        "output_tokens": output,
    })
}

/// One server-sent event.
pub fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or("message"))
}

/// A whole answer of the given blocks, one string for each event. Texts and inputs are cut in two, so
/// that readers have something to put together.
pub fn answer(blocks: &[Value], stop_reason: &str) -> Vec<String> {
    answer_with(blocks, stop_reason, &usage(10, 0, 0, 5))
}

/// As [`answer`], with the given usage.
pub fn answer_with(blocks: &[Value], stop_reason: &str, usage: &Value) -> Vec<String> {
    let mut start = usage.clone();
    start["output_tokens"] = 1.into();
    let mut events = vec![json!({
        "type": "message_start",
        "message": {
            "id": "msg_test", "type": "message", "role": "assistant", "model": "test-model",
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": start,
        },
    })];
    for (index, block) in blocks.iter().enumerate() {
        events.extend(block_events(index, block));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": { "stop_reason": stop_reason, "stop_sequence": null },
        "usage": usage,
    }));
    events.push(json!({ "type": "message_stop" }));
    events.iter().map(event).collect()
}

/// The stop reason of an answer of these blocks if no other reason stops it.
pub fn natural_stop(blocks: &[Value]) -> &'static str {
    if blocks.iter().any(|block| block["type"] == "tool_use") { "tool_use" } else { "end_turn" }
}

fn block_events(index: usize, block: &Value) -> Vec<Value> {
    let piece = |kind: &str, field: &str, piece: &str| {
        json!({
            "type": "content_block_delta", "index": index,
            "delta": { "type": kind, field: piece },
        })
    };
    let field = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
    let (start, deltas) = match block["type"].as_str() {
        Some("text") => (
            json!({ "type": "text", "text": "" }),
            halves(&field("text")).map(|half| piece("text_delta", "text", &half)).into(),
        ),
        Some("thinking") => {
            let [first, second] =
                halves(&field("thinking")).map(|half| piece("thinking_delta", "thinking", &half));
            let signature = piece("signature_delta", "signature", &field("signature"));
            let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
            (start, vec![first, second, signature])
        }
        Some("tool_use") => {
            let mut start = block.clone();
            start["input"] = json!({});
            let input = block["input"].to_string();
            let deltas =
                halves(&input).map(|half| piece("input_json_delta", "partial_json", &half));
            (start, deltas.into())
        }
        _ => (block.clone(), Vec::new()),
    };
    let start = json!({ "type": "content_block_start", "index": index, "content_block": start });
    let stop = json!({ "type": "content_block_stop", "index": index });
    [start].into_iter().chain(deltas).chain([stop]).collect()
}

fn halves(text: &str) -> [String; 2] {
    let mut middle = text.len() / 2;
    while !text.is_char_boundary(middle) {
        middle += 1;
    }
    let (one, two) = text.split_at(middle);
    [one.to_owned(), two.to_owned()]
}
