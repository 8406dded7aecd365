//! The parts of a request to the Messages API.
//!
//! The messages come before all parts that may differ between two turns, with unchanged bytes, so that a turn's request
//! starts with the bytes of the turn before.
//!
//! Cache breakpoints: behind the system prompt and behind the last block; in a fork also behind its parent's last
//! request and behind the part that it shares with other forks. So the first fork reads the cache of the parent, and
//! the second all that the first has written.

use std::collections::BTreeSet;

use bytes::Bytes;
use centurion_protocol::{Block, Conversation, Message, Role, Thinking};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

use crate::body::ChunkedBody;
use crate::catalog::{self, ModelInfo, ThinkingMode};
use crate::{Request, RequestExtras};

const BREAKPOINT: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

/// The most calls in an answer for which a provider's cache lookup still reaches back over them and their results.
const MOST_CALLS: usize = 8;

pub(super) const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
const INTERLEAVED_THINKING: &str = "interleaved-thinking-2025-05-14";
const EFFORT: &str = "effort-2025-11-24";
const LARGE_WINDOW: &str = "context-1m-2025-08-07";

/// The body: shared chunks between a few new bytes.
pub(super) fn body(
    request: &Request,
    info: &ModelInfo,
    name: &str,
    extras: &RequestExtras,
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
    let tools = match &request.prefix.tools {
        _ if extra.contains_key("tools") => None,
        none if none.is_empty() => {
            called_tools(&request.prefix.conversation).map(|tools| Bytes::from(tools.to_string()))
        }
        tools => Some(tools.wire().clone()),
    };
    if let Some(tools) = tools {
        body.push(&br#","tools":"#[..]);
        body.push(tools);
    }
    let mut tail = tail(request, info, extras);
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
    let conversation = &request.prefix.conversation;
    let breakpoints = breakpoints(conversation);
    let mut breakpoints = breakpoints.iter().peekable();
    for (n, message) in conversation.iter().enumerate() {
        // The comma before the first one is left out.
        let mut from = usize::from(n == 0);
        while let Some((_, at)) = breakpoints.next_if(|(message, _)| *message == n) {
            body.push(message.wire().slice(from..*at));
            body.push(BREAKPOINT);
            from = *at;
        }
        body.push(message.wire().slice(from..));
    }
}

/// The breakpoints in messages, in order: at most three, each as the number of a message and an offset in it.
///
/// A provider looks for cached content at a breakpoint and a few blocks before it. Where more blocks have come since
/// the previous request, the end of that request has a breakpoint as well.
fn breakpoints(conversation: &Conversation) -> Vec<(usize, usize)> {
    let before = |n: usize| {
        let n = n.checked_sub(2)?;
        Some((n, conversation.iter().nth(n)?.breakpoint_at()?))
    };
    let last = conversation.len().saturating_sub(1);
    let end = conversation.last().and_then(|message| Some((last, message.breakpoint_at()?)));
    let shared = conversation.iter().enumerate().filter_map(|(n, it)| Some((n, it.shared_at()?)));
    let fork = shared.last();
    let calls = conversation.last().map_or(0, |last| last.calls().len());
    let mut all: Vec<(usize, usize)> = match fork {
        Some(shared) => before(shared.0).into_iter().chain([shared]).collect(),
        None if calls > MOST_CALLS => before(last).into_iter().collect(),
        None => Vec::new(),
    };
    all.extend(end.filter(|end| !all.contains(end)));
    all
}

/// The thinking field. An interface with a budget refuses it in the middle of a turn that began without thinking, such
/// as that of an agent that continues another's conversation.
fn thinking_mode(request: &Request, info: &ModelInfo) -> ThinkingMode {
    let mode = info.thinking_mode(request.thinking, request.max_tokens);
    match mode {
        ThinkingMode::Budget(_) if is_in_plain_turn(&request.prefix.conversation) => {
            info.thinking_mode(Thinking::Disabled, request.max_tokens)
        }
        mode => mode,
    }
}

/// Whether the last message answers calls of a turn that began without thinking.
fn is_in_plain_turn(conversation: &Conversation) -> bool {
    let answers = |it: &Message| it.role() == Role::User && !it.calls().is_empty();
    if !conversation.last().is_some_and(answers) {
        return false;
    }
    // The turn began behind the last message of the user that answers no calls.
    let mut first: Option<&Message> = None;
    for message in conversation.iter() {
        first = match message.role() {
            Role::User if message.calls().is_empty() => None,
            Role::User => first,
            Role::Assistant => first.or(Some(message)),
        };
    }
    first.is_some_and(|turn| {
        let first = turn.blocks().into_iter().next();
        !matches!(first, Some(Block::Thinking { .. } | Block::RedactedThinking { .. }))
    })
}

/// Definitions for the called tools, where the agent has none: the provider refuses a conversation with calls but
/// without tools. `None` where nothing was called.
fn called_tools(conversation: &Conversation) -> Option<Value> {
    let answers = conversation.iter().filter(|it| it.role() == Role::Assistant);
    let calls = answers.filter(|it| !it.calls().is_empty()).flat_map(Message::blocks);
    let name = |block: Block| match block {
        Block::ToolUse(call) => Some(call.name),
        _ => None,
    };
    let names: BTreeSet<String> = calls.filter_map(name).collect();
    let spec = |name: String| {
        let description = "Not available in this conversation.";
        json!({"name": name, "description": description, "input_schema": {"type": "object"}})
    };
    (!names.is_empty()).then(|| names.into_iter().map(spec).collect())
}

/// All small fields.
fn tail(request: &Request, info: &ModelInfo, extras: &RequestExtras) -> Map<String, Value> {
    let mut tail = Map::new();
    let user = json!({ "session_id": request.session }).to_string();
    tail.insert("metadata".into(), json!({ "user_id": user }));
    tail.insert("max_tokens".into(), request.max_tokens.into());
    let thinking = match thinking_mode(request, info) {
        ThinkingMode::Unsaid => None,
        ThinkingMode::Disabled => Some(json!({ "type": "disabled" })),
        ThinkingMode::Adaptive => Some(json!({ "type": "adaptive" })),
        ThinkingMode::Budget(tokens) => Some(json!({ "type": "enabled", "budget_tokens": tokens })),
    };
    if let Some(mut thinking) = thinking {
        extras.add_display(&mut thinking);
        tail.insert("thinking".into(), thinking);
    }
    let mut config = Map::new();
    if let Some(effort) = request.effort.and_then(|asked| info.effort(asked)) {
        config.insert("effort".into(), json!(effort));
    }
    if request.agent.is_none() {
        extras.add_budget(&mut config);
    }
    if !config.is_empty() {
        tail.insert("output_config".into(), config.into());
    }
    tail
}

/// The headers: those of every request, and the agent that asks.
pub(super) fn headers(fixed: &HeaderMap, request: &Request, info: &ModelInfo) -> HeaderMap {
    let mut headers = fixed.clone();
    let mut identify = |name: &'static str, value: &str| {
        // A teammate's name may contain characters that no header can; then it is left out.
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
    let mode = thinking_mode(request, info);
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
