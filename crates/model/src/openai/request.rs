//! The parts of a request for a chat completion.

use centurion_protocol::ToolSpec;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::message;
use crate::Request;
use crate::body::ChunkedBody;
use crate::catalog::{self, ModelInfo};

/// The body: each message is translated once, at the first request that carries it.
pub(super) fn body(request: &Request, served: &str) -> ChunkedBody {
    let mut body = ChunkedBody::default();
    let name = catalog::split_suffix(&request.model).0;
    body.push(format!(r#"{{"model":{},"messages":["#, Value::from(served)));
    let mut is_first = request.prefix.system.is_empty();
    if !is_first {
        let system: Vec<&str> = request.prefix.system.sections().collect();
        body.push(json!({ "role": "system", "content": system.join("\n\n") }).to_string());
    }
    for message in request.prefix.conversation.iter() {
        let wire = message.foreign(message::render);
        // A message of thinking alone leaves nothing to send.
        if !wire.is_empty() {
            body.push(wire.slice(usize::from(is_first)..));
            is_first = false;
        }
    }
    body.push(&b"]"[..]);
    if !request.prefix.tools.is_empty() {
        let tools: Vec<Tool<'_>> = request.prefix.tools.iter().map(Tool::from).collect();
        let tools = serde_json::to_string(&tools).expect("invariant: all keys are strings");
        body.push(format!(r#","tools":{tools}"#));
    }
    let tail = Value::from(tail(request, name)).to_string();
    body.push(format!(",{}", tail.get(1..).unwrap_or_default()));
    body
}

fn tail(request: &Request, name: &str) -> Map<String, Value> {
    let mut tail = Map::new();
    let reasons = catalog::reasons(name);
    // Reasoning models refuse the old name, many servers know no other.
    let limit = if reasons { "max_completion_tokens" } else { "max_tokens" };
    tail.insert(limit.into(), request.max_tokens.into());
    let info = ModelInfo::openai(name, false);
    if let Some(effort) = request.effort.and_then(|asked| info.effort(asked)) {
        tail.insert("reasoning_effort".into(), effort.as_str().into());
    }
    tail.insert("stream".into(), true.into());
    tail.insert("stream_options".into(), json!({ "include_usage": true }));
    tail
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

impl<'a> From<&'a ToolSpec> for Tool<'a> {
    fn from(spec: &'a ToolSpec) -> Self {
        let function = Function {
            name: &spec.name,
            description: &spec.description,
            parameters: &spec.input_schema,
        };
        Self { r#type: "function", function }
    }
}
