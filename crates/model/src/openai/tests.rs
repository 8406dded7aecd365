//! Golden requests, and answers in the dialects of several servers.

use centurion_protocol::{
    Block, Effort, Message, Role, StopReason, ToolResult, ToolResultContent, ToolUseId, Usage,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::request::body;
use super::*;
use crate::testing::{blocks, decode, exchange, fold, request, world};
use crate::{BlockStart, Delta, ErrorKind, ModelError, StreamEvent};

fn text_of(request: &Request) -> String {
    String::from_utf8(body(request, ServedNames::default().of(&request.model)).to_vec()).unwrap()
}

fn json_of(request: &Request) -> Value {
    serde_json::from_str(&text_of(request)).unwrap()
}

#[test]
fn a_request_has_exactly_these_bytes() {
    let expected = concat!(
        r#"{"model":"gpt-4o","messages":["#,
        r#"{"role":"system","content":"one\n\ntwo"},"#,
        r#"{"role":"user","content":"hi"},"#,
        r#"{"role":"assistant","content":"I look","tool_calls":[{"id":"t1","type":"function","#,
        r#""function":{"name":"Read","arguments":"{\"n\":1e2, \"path\":\"a\\/b\"}"}}]},"#,
        r#"{"role":"tool","tool_call_id":"t1","content":"found"}],"#,
        r#""tools":[{"type":"function","function":{"name":"Read","description":"reads a file","#,
        r#""parameters":{"type":"object","properties":{"n":{"maximum":1e2}}}}}],"#,
        r#""max_tokens":32000,"stream":true,"stream_options":{"include_usage":true}}"#,
    );
    assert_eq!(text_of(&request("gpt-4o", exchange())), expected);
}

#[test]
fn messages_are_translated_once_and_shared() {
    let request = request("gpt-4o", exchange());
    let (one, two) = (body(&request, "m"), body(&request, "m"));
    let pointers = |body: &crate::ChunkedBody| -> Vec<*const u8> {
        body.chunks().map(|chunk| chunk.as_ptr()).collect()
    };
    let (one, two) = (pointers(&one), pointers(&two));
    assert_eq!(one.iter().filter(|pointer| two.contains(pointer)).count(), 4);
}

#[test]
fn only_reasoning_models_are_told_an_effort() {
    let mut request = request("gpt-5", [Message::user("hi")]);
    request.effort = Some(Effort::Max);
    let sent = json_of(&request);
    assert_eq!(sent["reasoning_effort"], "high");
    assert_eq!((&sent["max_completion_tokens"], sent.get("max_tokens")), (&json!(32000), None));
    request.model = "qwen3:8b".into();
    let sent = json_of(&request);
    assert_eq!((sent.get("reasoning_effort"), &sent["max_tokens"]), (None, &json!(32000)));
}

#[test]
fn pictures_files_errors_and_thinking_find_their_place() {
    let image = Block::Image { media_type: "image/png".into(), data: "AA==".into() };
    let document = Block::Document { media_type: "application/pdf".into(), data: "BB==".into() };
    let thinking = Block::Thinking { thinking: "hm".into(), signature: "s".into() };
    let result = ToolResult {
        id: ToolUseId::new("t1"),
        content: vec![
            ToolResultContent::Text("seen".into()),
            ToolResultContent::Image { media_type: "image/gif".into(), data: "CC==".into() },
        ],
        is_error: true,
    };
    let request = request(
        "m",
        [
            Message::new(Role::User, &[Block::text("look"), image, document]),
            Message::new(Role::Assistant, std::slice::from_ref(&thinking)),
            Message::user("well?"),
            Message::new(Role::Assistant, &[thinking, crate::testing::call("t1", "See", "{}")]),
            Message::new(Role::User, &[Block::ToolResult(result), Block::text("go on")]),
        ],
    );
    let expected = json!([
        { "role": "system", "content": "one\n\ntwo" },
        { "role": "user", "content": [
            { "type": "text", "text": "look" },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,AA==" } },
            { "type": "file", "file": {
                "filename": "document.pdf", "file_data": "data:application/pdf;base64,BB==" } },
        ] },
        { "role": "user", "content": "well?" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "t1", "type": "function", "function": { "name": "See", "arguments": "{}" } },
        ] },
        { "role": "tool", "tool_call_id": "t1",
          "content": "Error: seen\n(The image is in the next message.)" },
        { "role": "user", "content": [
            { "type": "text", "text": "The image that call t1 gave:" },
            { "type": "image_url", "image_url": { "url": "data:image/gif;base64,CC==" } },
            { "type": "text", "text": "go on" },
        ] },
    ]);
    assert_eq!(json_of(&request)["messages"], expected);
}

#[test]
fn without_a_system_prompt_the_first_message_has_no_comma() {
    let mut request = request("m", [Message::user("hi")]);
    request.prefix.system = crate::SystemPrompt::new(Vec::new());
    request.prefix.tools = centurion_protocol::ToolSpecs::new(Vec::new());
    let sent = json_of(&request);
    assert_eq!(sent["messages"], json!([{ "role": "user", "content": "hi" }]));
    assert!(sent.get("tools").is_none());
}

fn chunk(delta: &Value) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": null });
    json!({ "id": "c1", "model": "gpt", "choices": [choice] }).to_string()
}

fn ends(reason: &str) -> String {
    let choice = json!({ "index": 0, "delta": {}, "finish_reason": reason });
    json!({ "id": "c1", "model": "gpt", "choices": [choice] }).to_string()
}

fn calls(calls: &Value) -> String {
    chunk(&json!({ "tool_calls": calls }))
}

fn read(chunks: &[String]) -> Result<Vec<StreamEvent>, ModelError> {
    let mut reader = OpenAiReader::new(7);
    let mut events = Vec::new();
    for chunk in chunks {
        events.extend(reader.read(chunk.as_bytes())?);
    }
    events.extend(sse::Decoder::end(&mut reader)?);
    check_shape(&events);
    Ok(events)
}

/// Blocks come one after another, and every delta is inside its own.
fn check_shape(events: &[StreamEvent]) {
    let (mut open, mut next) = (None, 0);
    for event in events {
        match event {
            StreamEvent::BlockStart { index, .. } => {
                assert_eq!((open, *index), (None, next));
                (open, next) = (Some(*index), next + 1);
            }
            StreamEvent::Delta { index, .. } => assert_eq!(open, Some(*index)),
            StreamEvent::BlockStop { index } => assert_eq!(open.take(), Some(*index)),
            StreamEvent::Start { .. } | StreamEvent::Finish { .. } => assert_eq!(open, None),
            StreamEvent::Ping => {}
        }
    }
    assert!(matches!(events.first(), Some(StreamEvent::Start { .. })));
    assert!(matches!(events.last(), Some(StreamEvent::Finish { .. })));
}

fn uses(events: &[StreamEvent]) -> Vec<(String, String, String)> {
    let answer = fold(events);
    assert!(answer.malformed_calls.is_empty(), "{:?}", answer.malformed_calls);
    let uses = answer.calls();
    uses.map(|call| (call.id.to_string(), call.name.clone(), call.input.get().to_owned())).collect()
}

#[test]
fn thinking_text_and_usage_are_retold() {
    let usage = json!({ "id": "c1", "choices": [], "usage": {
        "prompt_tokens": 100, "completion_tokens": 20,
        "prompt_tokens_details": { "cached_tokens": 60 } } });
    let events = read(&[
        chunk(&json!({ "role": "assistant", "content": "" })),
        chunk(&json!({ "reasoning_content": "let me " })),
        chunk(&json!({ "reasoning": "see" })),
        chunk(&json!({ "content": "Hel" })),
        chunk(&json!({ "content": "lo" })),
        ends("stop"),
        usage.to_string(),
        "[DONE]".into(),
    ])
    .unwrap();
    let answer = fold(&events);
    let thinking = json!({ "type": "thinking", "thinking": "let me see", "signature": "" });
    assert_eq!(blocks(&answer), json!([thinking, { "type": "text", "text": "Hello" }]));
    let usage = Usage {
        input_tokens: 40,
        cache_read_input_tokens: 60,
        output_tokens: 20,
        ..Usage::default()
    };
    assert_eq!((answer.usage.counts, answer.stop_reason), (usage, StopReason::EndTurn));
    assert_eq!((answer.id.as_str(), answer.model.as_str()), ("c1", "gpt"));
}

#[test]
fn calls_may_grow_side_by_side() {
    let events = read(&[
        chunk(&json!({ "content": "I look" })),
        calls(&json!([{ "index": 0, "id": "a", "type": "function",
                       "function": { "name": "Read", "arguments": "" } }])),
        calls(&json!([{ "index": 1, "id": "b", "function": { "name": "Bash", "arguments": "{" } },
                     { "index": 0, "function": { "arguments": "{\"p\"" } }])),
        calls(&json!([{ "index": 0, "function": { "arguments": ":1}" } }])),
        calls(&json!([{ "index": 1, "function": { "arguments": "\"c\":2}" } }])),
        chunk(&json!({ "content": " and so on" })),
        ends("tool_calls"),
        "[DONE]".into(),
    ])
    .unwrap();
    let expected = [("a", "Read", r#"{"p":1}"#), ("b", "Bash", r#"{"c":2}"#)];
    assert_eq!(uses(&events), expected.map(|(a, b, c)| (a.into(), b.into(), c.into())));
    assert_eq!(fold(&events).stop_reason, StopReason::ToolUse);
    assert_eq!(fold(&events).text(), "I look and so on", "nothing is lost");
}

#[test]
fn the_first_call_is_told_as_it_grows() {
    let mut reader = OpenAiReader::new(7);
    let first = calls(&json!([{ "index": 0, "id": "a", "function": { "name": "Read" } }]));
    let events = reader.read(first.as_bytes()).unwrap();
    assert!(matches!(
        events.last(),
        Some(StreamEvent::BlockStart { block: BlockStart::ToolUse { .. }, .. })
    ));
    let piece = calls(&json!([{ "index": 0, "function": { "arguments": "{" } }]));
    let events = reader.read(piece.as_bytes()).unwrap();
    assert!(matches!(
        events.as_slice(),
        [StreamEvent::Delta { delta: Delta::InputJson(piece), .. }] if piece == "{"
    ));
}

#[test]
fn servers_number_and_name_calls_in_their_own_ways() {
    // A call in one piece, with or without a number and an id.
    let whole = |index: Option<u64>, id: Option<&str>| {
        let mut call = json!({ "function": { "name": "R", "arguments": r#"{"x":1}"# } });
        index.inspect(|index| call["index"] = (*index).into());
        id.inspect(|id| call["id"] = (*id).into());
        call
    };
    let made = ["call_0000000000000007_0", "call_0000000000000007_1"];
    let object = json!([{ "id": "b", "function": { "name": "R", "arguments": { "x": 1 } } }]);
    for (case, first, second, ids) in [
        ("each its own number", whole(Some(0), Some("a")), whole(Some(1), Some("b")), ["a", "b"]),
        // Ollama
        ("all numbered zero", whole(Some(0), Some("a")), whole(Some(0), Some("b")), ["a", "b"]),
        ("without numbers", whole(None, Some("a")), whole(None, Some("b")), ["a", "b"]),
        ("without ids", whole(Some(0), None), whole(Some(1), None), made),
        ("with nothing", whole(None, None), whole(None, None), made),
        ("zero and empty ids", whole(Some(0), None), whole(Some(0), Some("")), made),
        ("the same id", whole(Some(0), Some("a")), whole(Some(1), Some("a")), ["a", made[1]]),
        ("an object", whole(None, Some("a")), object[0].clone(), ["a", "b"]),
    ] {
        let apart = vec![calls(&json!([first])), calls(&json!([second]))];
        let together = vec![calls(&json!([first, second]))];
        for chunks in [apart, together] {
            // A plain `stop` beside calls counts as a request for the calls.
            let chunks = [chunks, vec![ends("stop"), "[DONE]".into()]].concat();
            let events = read(&chunks).unwrap();
            let expected = ids.map(|id| (id.to_owned(), "R".to_owned(), r#"{"x":1}"#.to_owned()));
            assert_eq!(uses(&events), expected, "{case}");
            assert_eq!(fold(&events).stop_reason, StopReason::ToolUse, "{case}");
        }
    }
}

#[test]
fn every_reason_to_stop_is_translated() {
    for (word, reason) in [
        ("stop", StopReason::EndTurn),
        ("length", StopReason::MaxTokens),
        ("content_filter", StopReason::Refusal),
        ("cosmic_ray", StopReason::Other("cosmic_ray".into())),
    ] {
        // Not every server sends `[DONE]`.
        let events = read(&[chunk(&json!({ "content": "x" })), ends(word)]).unwrap();
        assert_eq!(fold(&events).stop_reason, reason);
    }
}

#[test]
fn a_call_that_was_cut_off_is_dropped() {
    let cut = json!([{ "index": 0, "id": "a", "function": { "name": "R", "arguments": "{\"x" } }]);
    let events = read(&[chunk(&json!({ "content": "x" })), calls(&cut), ends("length")]).unwrap();
    let answer = fold(&events);
    assert_eq!((answer.calls().count(), answer.malformed_calls.len()), (0, 0));
}

#[test]
fn errors_in_the_stream_are_told_by_their_kind() {
    for (error, kind) in [
        (json!({ "error": { "code": 429, "message": "x" } }), ErrorKind::RateLimit),
        (json!({ "error": { "code": 502, "message": "x" }, "choices": [] }), ErrorKind::Server),
        (json!({ "error": { "code": "server_error", "message": "x" } }), ErrorKind::Server),
        (json!({ "error": "model runner has stopped" }), ErrorKind::Server),
        (json!({ "object": "error", "message": "bad", "code": 400 }), ErrorKind::InvalidRequest),
        (
            json!({ "object": "error", "message": "maximum context length is 8", "code": 400 }),
            ErrorKind::ContextOverflow,
        ),
    ] {
        let error = read(&[chunk(&json!({ "content": "x" })), error.to_string()]).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
    }
}

#[test]
fn what_breaks_the_protocol_is_an_error() {
    let nameless = json!([{ "index": 0, "id": "a", "function": { "arguments": "{}" } }]);
    for (chunks, kind) in [
        (vec!["{".to_owned()], ErrorKind::Malformed),
        (vec![], ErrorKind::Malformed),
        (vec!["[DONE]".to_owned()], ErrorKind::Malformed),
        (vec![chunk(&json!({ "content": "x" }))], ErrorKind::Network),
        (vec![chunk(&json!({ "content": "x" })), "[DONE]".into()], ErrorKind::Malformed),
        (vec![calls(&nameless), ends("stop")], ErrorKind::Malformed),
    ] {
        assert_eq!(read(&chunks).unwrap_err().kind, kind, "{chunks:?}");
    }
}

#[tokio::test]
async fn bytes_may_be_cut_anywhere() {
    let chunks = [
        chunk(&json!({ "content": "Hello, wörld 🌍" })),
        calls(&json!([{ "index": 0, "id": "a", "function": { "name": "R", "arguments": "{}" } }])),
        ends("tool_calls"),
        "[DONE]".to_owned(),
    ];
    let whole = chunks.map(|chunk| format!(": hm\ndata: {chunk}\n\n")).concat();
    for at in 0..=whole.len() {
        let (one, two) = whole.as_bytes().split_at(at);
        let events = decode(vec![one.to_vec(), two.to_vec()], OpenAiReader::new(7)).await.unwrap();
        assert_eq!(blocks(&fold(&events))[0]["text"], "Hello, wörld 🌍", "cut at {at}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(payloads in prop::collection::vec(payload(), 0..12)) {
        let mut reader = OpenAiReader::new(7);
        for payload in payloads {
            let _ = reader.read(&payload);
        }
    }
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    let json = prop::sample::select(vec![
        "null",
        "0",
        "-1",
        "1e99",
        "\"x\"",
        "\"\"",
        "{}",
        "[]",
        "[{}]",
        r#"{"name":"R"}"#,
        r#"{"name":"","arguments":"{"}"#,
        r#"{"arguments":[1]}"#,
        r#""stop""#,
    ]);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60),
        Just(b"[DONE]".to_vec()),
        prop::collection::vec(json, 5).prop_map(|parts| format!(
            r#"{{"choices":[{{"delta":{{"content":{},"tool_calls":[{{"index":{},"id":{},"function":{}}}]}},"finish_reason":{}}}]}}"#,
            parts[0], parts[1], parts[2], parts[3], parts[4]
        ).into_bytes()),
    ]
}

#[test]
fn a_key_is_needed_only_by_those_who_ask_for_one() {
    let open = |env: Env| OpenAi::open(&env, world());
    let error = open(Env::default()).err().unwrap().to_string();
    assert!(error.contains("help: set OPENAI_API_KEY"), "{error}");
    let local = open(Env::from([("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")])).unwrap();
    assert_eq!((local.key_source(), local.is_local()), ("none", true));
    assert!(local.headers.get("authorization").is_none());
    let keyed = [("OPENAI_BASE_URL", "http://10.0.0.1/v1"), ("OPENAI_API_KEY", "secret")];
    let keyed = open(Env::from(keyed)).unwrap();
    assert_eq!((keyed.key_source(), keyed.is_local()), ("OPENAI_API_KEY", false));
    assert_eq!(keyed.headers.get("authorization").unwrap(), "Bearer secret");
    assert!(!format!("{:?}", keyed.headers).contains("secret"));
}
