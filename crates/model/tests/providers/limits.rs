//! Both providers against a server that never stops sending: each kind of growth ends at a limit, the connection is
//! closed early, and the request is not retried.

use std::sync::Arc;
use std::time::Duration;

use centurion_model::{
    AnswerBuilder, Anthropic, ErrorKind, Model, ModelError, ModelEvent, OpenAi, Patience, Provider,
    ProviderKind, RetryPolicy, limits,
};
use centurion_protocol::Env;
use centurion_testkit::{Reply, Server, sse};
use futures_util::StreamExt;
use serde_json::{Value, json};

use crate::support::{env, request, world};

/// Longer than any of these takes.
const SILENCE_MS: &str = "20000";

/// A gigabyte, if it is taken whole.
const FLOOD: usize = 1 << 30;

/// More than may be read of any answer, and far less than the flood.
const TAKEN: u64 = 64 * 1024 * 1024;

fn anthropic(server: &Server) -> Arc<dyn Provider> {
    Arc::new(Anthropic::open(&env(&server.url(), SILENCE_MS), world()).expect("a provider"))
}

fn openai(server: &Server) -> Arc<dyn Provider> {
    Arc::new(OpenAi::open(&env(&server.url(), SILENCE_MS), world()).expect("a provider"))
}

/// Reads an answer as the engine does.
async fn run(provider: Arc<dyn Provider>) -> Result<String, ModelError> {
    let hurry = Duration::from_millis(1);
    let policy = RetryPolicy {
        max_retries: 3,
        first_delay: hurry,
        longest_delay: hurry,
        ..RetryPolicy::default()
    };
    let model =
        Model::with_provider(provider, ProviderKind::Anthropic, "test-model", policy, world());
    let mut builder = AnswerBuilder::default();
    let mut events = model.stream(request(), Patience::Full);
    while let Some(event) = events.next().await {
        match event? {
            ModelEvent::Stream(event) => builder.push(&event),
            ModelEvent::Held => {}
            ModelEvent::Retry(_) => builder = AnswerBuilder::default(),
        }
    }
    builder.finish().map(|answer| answer.text())
}

/// The events of an answer up to its first block of this kind.
fn opening(block: &Value) -> Vec<String> {
    let start = json!({"type": "content_block_start", "index": 0, "content_block": block});
    let mut events = sse::answer(&[], "end_turn");
    events.truncate(1);
    events.push(sse::event(&start));
    events
}

fn delta(kind: &str, field: &str) -> String {
    let text = "x".repeat(64 * 1024);
    let delta = json!({"type": kind, field: text});
    sse::event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
}

fn flood(opening: Vec<String>, piece: impl Into<Vec<u8>>) -> Reply {
    let piece = piece.into();
    let times = FLOOD / piece.len();
    Reply::events(opening).flood(piece, times)
}

async fn assert_bounded(name: &str, reply: Reply, open: fn(&Server) -> Arc<dyn Provider>) {
    let server = Server::start([reply]);
    let error = run(open(&server)).await.expect_err(name);
    assert_eq!(error.kind, ErrorKind::TooLarge, "{name}: {error}");
    assert!(error.message.len() < 8192, "{name}: a message of {}", error.message.len());
    assert!(server.sent() < TAKEN, "{name}: {} bytes were taken", server.sent());
    assert_eq!(server.requests().len(), 1, "{name}: it is not sent again");
}

#[tokio::test]
async fn an_answer_of_the_messages_api_that_never_ends_is_cut_at_a_limit() {
    let text = json!({"type": "text", "text": ""});
    let thinking = json!({"type": "thinking", "thinking": "", "signature": ""});
    let call = json!({"type": "tool_use", "id": "t", "name": "Read", "input": {}});
    let unknown = json!({"type": "server_tool_use", "id": "t", "name": "x", "input": {}});
    let usage = sse::event(&json!({
        "type": "message_delta", "delta": {"stop_reason": null}, "usage": {"output_tokens": 1},
    }));
    let cases: Vec<(&str, Reply)> = vec![
        ("text", flood(opening(&text), delta("text_delta", "text"))),
        ("thinking", flood(opening(&thinking), delta("thinking_delta", "thinking"))),
        ("signature", flood(opening(&thinking), delta("signature_delta", "signature"))),
        ("input", flood(opening(&call), delta("input_json_delta", "partial_json"))),
        ("input of an unknown block", flood(opening(&unknown), delta("input_json_delta", "partial_json"))),
        ("a piece that fits no block", flood(opening(&text), delta("signature_delta", "signature"))),
        ("empty pieces", flood(opening(&text), sse::event(&json!({
            "type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ""},
        })).repeat(500))),
        ("pings", flood(opening(&text), sse::event(&json!({"type": "ping"})).repeat(1000))),
        ("unknown events", flood(opening(&text), sse::event(&json!({"type": "new"})).repeat(1000))),
        ("usage", flood(opening(&text), usage.repeat(500))),
        ("comments", flood(opening(&text), ": still here\n\n".repeat(1000))),
        ("one line", flood(vec!["data: ".into()], "x".repeat(64 * 1024))),
        ("one comment", flood(vec![": ".into()], "x".repeat(64 * 1024))),
        ("one event of many lines", flood(Vec::new(), "data: x\n".repeat(10_000))),
        ("line ends", flood(Vec::new(), "\n".repeat(64 * 1024))),
        ("an event's name", flood(vec!["event: ".into()], "x".repeat(64 * 1024))),
    ];
    for (name, reply) in cases {
        assert_bounded(name, reply, anthropic).await;
    }
}

#[tokio::test]
async fn blocks_and_calls_without_end_are_cut_at_a_limit() {
    let blocks = |block: &Value| {
        let mut events = sse::answer(&[], "end_turn");
        events.truncate(1);
        let block = |index| {
            sse::event(&json!({
                "type": "content_block_start", "index": index, "content_block": block,
            }))
        };
        events.extend((0..=limits::MOST_BLOCKS).map(block));
        Reply::events(events)
    };
    let call = json!({"type": "tool_use", "id": "t", "name": "Read", "input": {}});
    assert_bounded("texts", blocks(&json!({"type": "text", "text": ""})), anthropic).await;
    assert_bounded("calls", blocks(&call), anthropic).await;
    // Content that comes whole with the start of a block counts, too.
    let whole =
        json!({"type": "tool_use", "id": "t", "name": "R", "input": {"a": "x".repeat(9000)}});
    assert_bounded("inputs", blocks(&whole), anthropic).await;
    let redacted = json!({"type": "redacted_thinking", "data": "x".repeat(9000)});
    assert_bounded("redacted thinking", blocks(&redacted), anthropic).await;
}

fn chunk(delta: &Value) -> String {
    format!("data: {}\n\n", json!({"id": "c", "model": "m", "choices": [{"delta": delta}]}))
}

fn call(index: u64, name: Option<&str>, arguments: &str) -> String {
    let function = json!({"name": name, "arguments": arguments});
    chunk(&json!({"tool_calls": [{"index": index, "function": function}]}))
}

#[tokio::test]
async fn a_chat_completion_that_never_ends_is_cut_at_a_limit() {
    let long = "x".repeat(64 * 1024);
    let first = || vec![call(0, Some("Read"), "{\"a\":\"")];
    let calls: Vec<String> = (0..=limits::MOST_BLOCKS as u64)
        .map(|at| call(4_000_000_000 - at, Some("Read"), "{}"))
        .collect();
    let switching = [chunk(&json!({"content": "x"})), chunk(&json!({"reasoning": "y"}))].concat();
    let cases: Vec<(&str, Reply)> = vec![
        ("content", flood(Vec::new(), chunk(&json!({"content": long})))),
        ("reasoning", flood(Vec::new(), chunk(&json!({"reasoning_content": long})))),
        ("arguments of the first call", flood(first(), call(0, None, &long))),
        ("arguments of a later call", flood(first(), call(4_000_000_000, Some("Read"), &long))),
        ("arguments without a name", flood(Vec::new(), call(7, None, &long))),
        ("text after a call", flood(first(), chunk(&json!({"content": long})))),
        ("voices in turn", flood(Vec::new(), switching.repeat(100))),
        ("voices in turn after a call", flood(first(), switching.repeat(100))),
        ("calls", Reply::events(calls)),
        ("empty chunks", flood(Vec::new(), "data: {\"choices\":[]}\n\n".repeat(1000))),
        ("comments", flood(Vec::new(), ": OPENROUTER PROCESSING\n\n".repeat(1000))),
        ("one line", flood(vec!["data: ".into()], "x".repeat(64 * 1024))),
    ];
    for (name, reply) in cases {
        assert_bounded(name, reply, openai).await;
    }
}

#[tokio::test]
async fn what_an_error_says_is_read_and_kept_up_to_a_limit() {
    let long = "x".repeat(1 << 20);
    // The body of a refusal.
    let body = Reply::status(400).body("oops ").flood("x".repeat(64 * 1024), FLOOD >> 16);
    // An error in a stream, and an event whose fields are of the wrong kind: both are quoted.
    let error =
        json!({"type": "error", "error": {"type": "invalid_request_error", "message": long}});
    let wrong = json!({"type": "content_block_stop", "index": long});
    let stream = |event: &Value| {
        let mut events = opening(&json!({"type": "text", "text": ""}));
        events.push(sse::event(event));
        Reply::events(events)
    };
    for reply in [body, stream(&error), stream(&wrong)] {
        let server = Server::start([reply]);
        let error = run(anthropic(&server)).await.unwrap_err();
        assert!(error.message.len() < 8192, "{} bytes are kept", error.message.len());
        assert!(server.sent() < TAKEN);
    }
}

#[tokio::test]
async fn a_list_of_models_without_end_is_refused() {
    let list =
        Reply::status(200).body("{\"data\":[").flood("{\"id\":\"x\"},".repeat(6000), FLOOD >> 16);
    let server = Server::start([list]);
    let env = Env::from([("OPENAI_BASE_URL", server.url().as_str())]);
    let error = Model::open(None, &env, world()).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("more than"), "{error}");
    assert!(server.sent() < TAKEN, "{} bytes were taken", server.sent());
}

#[tokio::test]
async fn heads_without_end_are_refused() {
    let mut reply = Reply::text("hello");
    for number in 0..20_000 {
        reply = reply.header(&format!("x-{number}"), &"x".repeat(100));
    }
    let server = Server::start([reply]);
    assert!(run(anthropic(&server)).await.is_err());
}

#[tokio::test]
async fn an_answer_as_long_as_models_can_write_is_taken() {
    let text = "word ".repeat(2 << 20);
    assert!(text.len() > 10_000_000 && text.len() < limits::MOST_BYTES);
    let events = sse::answer_with(&[sse::text(&text)], "end_turn", &sse::usage(1, 0, 0, 2_000_000));
    let server = Server::start([Reply::events(events)]);
    assert!(run(anthropic(&server)).await.unwrap() == text);
}

#[tokio::test]
async fn an_input_that_is_nested_too_deep_is_a_malformed_call_and_nothing_worse() {
    for depth in [limits::MOST_DEPTH + 1, 100_000] {
        let mut events = opening(&json!({"type": "tool_use", "id": "t", "name": "R", "input": {}}));
        let input = format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        let delta = json!({"type": "input_json_delta", "partial_json": input});
        events
            .push(sse::event(&json!({"type": "content_block_delta", "index": 0, "delta": delta})));
        events.push(sse::event(&json!({"type": "content_block_stop", "index": 0})));
        events.extend(sse::answer(&[], "tool_use").split_off(1));
        let server = Server::start([Reply::events(events)]);
        let mut builder = AnswerBuilder::default();
        let mut stream = anthropic(&server).stream(request());
        while let Some(event) = stream.next().await {
            builder.push(&event.unwrap());
        }
        let answer = builder.finish().unwrap();
        assert_eq!(answer.malformed_calls.len(), 1);
        assert!(
            answer.malformed_calls[0].1.contains("deeper than 100"),
            "{:?}",
            answer.malformed_calls
        );
    }
}
