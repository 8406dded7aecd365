//! One message of a conversation as chat messages: a leading comma before each, so that a request is a plain
//! concatenation.

use bytes::Bytes;
use centurion_protocol::{Block, Message, Role, ToolResult, ToolResultContent};
use serde_json::{Value, json};

/// Translates a message. Thinking and blocks of unknown kinds belong to the provider that made them
/// and are left out.
pub(super) fn render(message: &Message) -> Bytes {
    let messages = match message.role() {
        Role::Assistant => assistant(message.blocks()).into_iter().collect(),
        Role::User => user(message.blocks()),
    };
    let mut wire = String::new();
    for message in messages {
        wire.push(',');
        wire.push_str(&message.to_string());
    }
    wire.into()
}

fn assistant(blocks: Vec<Block>) -> Option<Value> {
    let (mut text, mut calls) = (String::new(), Vec::new());
    for block in blocks {
        match block {
            Block::Text(piece) => text.push_str(&piece),
            Block::ToolUse(call) => calls.push(json!({
                "id": call.id,
                "type": "function",
                "function": { "name": call.name, "arguments": call.input.get() },
            })),
            _ => {}
        }
    }
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let content = if text.is_empty() { Value::Null } else { text.into() };
    let mut message = json!({ "role": "assistant", "content": content });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    Some(message)
}

/// Results first: they must follow their calls.
fn user(blocks: Vec<Block>) -> Vec<Value> {
    let (mut messages, mut parts) = (Vec::new(), Vec::new());
    for block in blocks {
        match block {
            Block::ToolResult(result) => messages.push(tool(result, &mut parts)),
            Block::Text(text) => parts.push(text_part(&text)),
            Block::Image { media_type, data } => parts.push(image_part(&media_type, &data)),
            Block::Document { media_type, data } => parts.push(file_part(&media_type, &data)),
            _ => {}
        }
    }
    if parts.is_empty() {
        return messages;
    }
    // Every server accepts plain text.
    let only_text = parts.iter().map(|part| part["text"].as_str()).collect::<Option<Vec<_>>>();
    let content = only_text.map(|texts| Value::from(texts.join("\n\n")));
    messages.push(json!({ "role": "user", "content": content.unwrap_or_else(|| parts.into()) }));
    messages
}

/// A result is text here; its pictures and files move into the user message that follows.
fn tool(result: ToolResult, parts: &mut Vec<Value>) -> Value {
    let mut texts = Vec::new();
    for content in result.content {
        let (kind, part) = match content {
            ToolResultContent::Text(text) => {
                texts.push(text);
                continue;
            }
            ToolResultContent::Image { media_type, data } => {
                ("image", image_part(&media_type, &data))
            }
            ToolResultContent::Document { media_type, data } => {
                ("file", file_part(&media_type, &data))
            }
        };
        texts.push(format!("(The {kind} is in the next message.)"));
        parts.push(text_part(&format!("The {kind} that call {} gave:", result.id)));
        parts.push(part);
    }
    let text = texts.join("\n");
    let text = if result.is_error { format!("Error: {text}") } else { text };
    json!({ "role": "tool", "tool_call_id": result.id, "content": text })
}

fn text_part(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn image_part(media_type: &str, data: &str) -> Value {
    let url = format!("data:{media_type};base64,{data}");
    json!({ "type": "image_url", "image_url": { "url": url } })
}

fn file_part(media_type: &str, data: &str) -> Value {
    let name = match media_type.rsplit('/').next() {
        Some("plain") | None => "document.txt".to_owned(),
        Some(extension) => format!("document.{extension}"),
    };
    let data = format!("data:{media_type};base64,{data}");
    json!({ "type": "file", "file": { "filename": name, "file_data": data } })
}
