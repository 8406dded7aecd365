//! What a request to the Messages API is made of.
//!
//! The messages come before everything that may differ between two turns, as the bytes they have
//! always been, so that a turn's request starts with the bytes of the turn before.

use bytes::Bytes;
use centurion_protocol::Message;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

use crate::Request;
use crate::body::ChunkedBody;
use crate::catalog::{self, ModelInfo, ThinkingMode};

const BREAKPOINT: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
const INTERLEAVED_THINKING: &str = "interleaved-thinking-2025-05-14";
const EFFORT: &str = "effort-2025-11-24";
const LARGE_WINDOW: &str = "context-1m-2025-08-07";

/// The body: shared chunks between a few new bytes.
pub(super) fn body(
    request: &Request,
    info: &ModelInfo,
    name: &str,
    extra: &Map<String, Value>,
) -> ChunkedBody {
    let mut body = ChunkedBody::default();
    let name = Value::from(name);
    let model = extra.get("model").unwrap_or(&name);
    body.push(format!(r#"{{"model":{model},"messages":["#));
    push_messages(&mut body, request);
    body.push(&b"]"[..]);
    if !request.prefix.system.is_empty() && !extra.contains_key("system") {
        body.push(&br#","system":"#[..]);
        body.push(request.prefix.system.wire().clone());
    }
    if !request.prefix.tools.is_empty() && !extra.contains_key("tools") {
        body.push(&br#","tools":"#[..]);
        body.push(request.prefix.tools.wire().clone());
    }
    let mut tail = tail(request, info);
    for (key, value) in extra.iter().filter(|(key, _)| *key != "model") {
        tail.insert(key.clone(), value.clone());
    }
    tail.insert("stream".into(), true.into());
    // The opening brace of the tail is the comma after the tools.
    let tail = Value::from(tail).to_string();
    body.push(Bytes::from(format!(",{}", tail.get(1..).unwrap_or_default())));
    body
}

fn push_messages(body: &mut ChunkedBody, request: &Request) {
    let last = request.prefix.conversation.len().saturating_sub(1);
    for (n, message) in request.prefix.conversation.iter().enumerate() {
        // The comma before the first one is left out.
        let from = usize::from(n == 0);
        match message.breakpoint_at().filter(|_| n == last) {
            Some(at) => push_with_breakpoint(body, message, from, at),
            None => body.push(message.wire().slice(from..)),
        }
    }
}

fn push_with_breakpoint(body: &mut ChunkedBody, message: &Message, from: usize, at: usize) {
    body.push(message.wire().slice(from..at));
    body.push(BREAKPOINT);
    body.push(message.wire().slice(at..));
}

/// Everything small.
fn tail(request: &Request, info: &ModelInfo) -> Map<String, Value> {
    let mut tail = Map::new();
    let user = json!({ "session_id": request.session }).to_string();
    tail.insert("metadata".into(), json!({ "user_id": user }));
    tail.insert("max_tokens".into(), request.max_tokens.into());
    let thinking = match info.thinking_mode(request.thinking, request.max_tokens) {
        ThinkingMode::Unsaid => None,
        ThinkingMode::Disabled => Some(json!({ "type": "disabled" })),
        ThinkingMode::Adaptive => Some(json!({ "type": "adaptive" })),
        ThinkingMode::Budget(tokens) => Some(json!({ "type": "enabled", "budget_tokens": tokens })),
    };
    if let Some(thinking) = thinking {
        tail.insert("thinking".into(), thinking);
    }
    if let Some(effort) = request.effort.and_then(|asked| info.effort(asked)) {
        tail.insert("output_config".into(), json!({ "effort": effort }));
    }
    tail
}

/// The headers: those of every request, and who asks.
pub(super) fn headers(fixed: &HeaderMap, request: &Request, info: &ModelInfo) -> HeaderMap {
    let mut headers = fixed.clone();
    let mut identify = |name: &'static str, value: &str| {
        // A teammate's name may hold what no header can; then it stays unsaid.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    identify("x-claude-code-session-id", &request.session.to_string());
    if let Some(agent) = &request.agent {
        identify("x-claude-code-agent-id", agent.as_str());
    }
    if let Some(parent) = &request.parent_agent {
        identify("x-claude-code-parent-agent-id", parent.as_str());
    }
    let chosen = fixed.get(BETA).and_then(|value| value.to_str().ok());
    let mut list = betas(request, info);
    list.splice(0..0, chosen);
    if let Ok(value) = HeaderValue::from_str(&list.join(","))
        && !list.is_empty()
    {
        headers.insert(BETA, value);
    }
    headers
}

fn betas(request: &Request, info: &ModelInfo) -> Vec<&'static str> {
    let mode = info.thinking_mode(request.thinking, request.max_tokens);
    let thinks = matches!(mode, ThinkingMode::Adaptive | ThinkingMode::Budget(_));
    let has_effort = request.effort.is_some_and(|asked| info.effort(asked).is_some());
    let asks_for_window = catalog::split_suffix(&request.model).1
        && !catalog::is_natively_large_window(&request.model);
    [
        thinks.then_some(INTERLEAVED_THINKING),
        has_effort.then_some(EFFORT),
        asks_for_window.then_some(LARGE_WINDOW),
    ]
    .into_iter()
    .flatten()
    .collect()
}
