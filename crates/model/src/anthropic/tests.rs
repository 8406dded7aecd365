//! Golden requests, and answers read from their bytes.

use centurion_protocol::{AgentId, Block, Effort, Message, Role, StopReason, Thinking, Usage};
use centurion_testkit::sse;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::request::{body, headers};
use super::*;
use crate::testing::{blocks, call, decode, exchange, fold, request, result};
use crate::{ErrorKind, ModelError, StreamEvent};

const BREAKPOINT: &str = r#","cache_control":{"type":"ephemeral"}"#;

fn info(request: &Request) -> ModelInfo {
    ModelInfo::anthropic(&request.model)
}

fn text_of(request: &Request) -> String {
    String::from_utf8(
        body(
            request,
            &info(request),
            ServedNames::default().of(&request.model),
            &RequestExtras::default(),
            &Map::new(),
        )
        .to_vec(),
    )
    .unwrap()
}

fn json_of(request: &Request) -> Value {
    serde_json::from_str(&text_of(request)).unwrap()
}

#[test]
fn a_request_has_exactly_these_bytes() {
    let mut request = request("claude-opus-5-5", exchange());
    request.effort = Some(Effort::Medium);
    let expected = concat!(
        r#"{"model":"claude-opus-5-5","messages":["#,
        r#"{"role":"user","content":[{"type":"text","text":"hi"}]},"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"I look"},"#,
        r#"{"type":"tool_use","id":"t1","name":"Read","input":{"n":1e2, "path":"a\/b"}}]},"#,
        r#"{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":"found","#,
        r#""cache_control":{"type":"ephemeral"}}]}],"#,
        r#""system":[{"type":"text","text":"one"},"#,
        r#"{"type":"text","text":"two","cache_control":{"type":"ephemeral"}}],"#,
        r#""tools":[{"name":"Read","description":"reads a file","#,
        r#""input_schema":{"type":"object","properties":{"n":{"maximum":1e2}}}}],"#,
        r#""metadata":{"user_id":"{\"session_id\":\"SESSION\"}"},"max_tokens":32000,"#,
        r#""thinking":{"type":"adaptive"},"output_config":{"effort":"medium"},"stream":true}"#,
    );
    assert_eq!(text_of(&request), expected.replace("SESSION", &request.session.to_string()));
}

#[test]
fn a_conversation_with_calls_is_sent_with_tools_even_if_the_agent_has_none() {
    let mut request = request("claude-opus-5-5", exchange());
    request.prefix.tools = centurion_protocol::ToolSpecs::new(Vec::new());
    let tools = json_of(&request)["tools"].clone();
    assert_eq!((&tools[0]["name"], tools.as_array().unwrap().len()), (&json!("Read"), 1));
    assert_eq!(tools[0]["input_schema"], json!({"type": "object"}));
    let plain = [Message::user("hi")];
    request.prefix.conversation = centurion_protocol::Conversation::default();
    for message in plain {
        request.prefix.conversation.push(message).unwrap();
    }
    assert_eq!(json_of(&request).get("tools"), None, "nothing was called");
}

#[test]
fn a_turn_that_began_without_thinking_continues_without() {
    let thinks = |model: &str, request: &mut Request, thinking: Thinking| {
        request.model = model.to_owned();
        request.thinking = thinking;
        let names = headers(&HeaderMap::new(), request, &info(request));
        let beta = names.get("anthropic-beta").map(|it| it.to_str().unwrap().to_owned());
        (json_of(request)["thinking"].clone(), beta.unwrap_or_default().contains("interleaved"))
    };
    // The results of a call come last, and its answer has no thinking.
    let mut request = request("claude-opus-5-5", exchange());
    let budget = Thinking::Budget(2_000);
    let (said, is_told) = thinks("claude-sonnet-4-5", &mut request, budget);
    assert_eq!((said, is_told), (Value::Null, false));
    let (said, _) = thinks("claude-opus-5-5", &mut request, Thinking::Auto);
    assert_eq!(said, json!({"type": "adaptive"}), "this one takes what comes");
    // A new prompt begins a new turn; one that began with thinking may continue with a bare call.
    let said = Block::text("done");
    request.prefix.conversation.push(Message::new(Role::Assistant, &[said])).unwrap();
    request.prefix.conversation.push(Message::user("more")).unwrap();
    let (said, _) = thinks("claude-sonnet-4-5", &mut request, budget);
    assert_eq!(said, json!({"type": "enabled", "budget_tokens": 2_000}));
    let thinking = Block::Thinking { thinking: "hm".into(), signature: "s".into() };
    for (id, mut blocks) in [("t8", vec![thinking]), ("t9", Vec::new())] {
        blocks.push(call(id, "Read", "{}"));
        request.prefix.conversation.push(Message::new(Role::Assistant, &blocks)).unwrap();
        request.prefix.conversation.push(Message::new(Role::User, &[result(id, "x")])).unwrap();
        let (said, _) = thinks("claude-sonnet-4-5", &mut request, budget);
        assert_eq!(said, json!({"type": "enabled", "budget_tokens": 2_000}), "{id}");
    }
}

/// The messages that have a breakpoint, each with the numbers of the blocks.
fn marked(request: &Request) -> Vec<(usize, Vec<usize>)> {
    let body = json_of(request);
    let messages = body["messages"].as_array().unwrap().iter().enumerate();
    let marks = messages.map(|(n, message)| {
        let blocks = message["content"].as_array().unwrap().iter().enumerate();
        let marked = blocks.filter(|(_, block)| block.get("cache_control").is_some());
        (n, marked.map(|(at, _)| at).collect::<Vec<_>>())
    });
    marks.filter(|(_, blocks)| !blocks.is_empty()).collect()
}

#[test]
fn breakpoints_stand_where_a_provider_finds_what_it_has_cached() {
    let many = |count: usize| {
        let ids: Vec<String> = (0..count).map(|n| format!("u{n}")).collect();
        let calls: Vec<Block> = ids.iter().map(|id| call(id, "Read", "{}")).collect();
        let results: Vec<Block> = ids.iter().map(|id| result(id, "ok")).collect();
        (Message::new(Role::Assistant, &calls), results)
    };
    let (asks, results) = many(2);
    let answered = Message::new(Role::User, &results);
    let usual = request("claude-opus-5-5", [Message::user("hi"), asks, answered]);
    assert_eq!(marked(&usual), [(2, vec![1])]);
    let (asks, results) = many(20);
    let answered = Message::new(Role::User, &results);
    let wide = request("claude-opus-5-5", [Message::user("hi"), asks.clone(), answered]);
    assert_eq!(marked(&wide), [(0, vec![0]), (2, vec![19])], "too many blocks to look back over");
    let begun = Message::with_shared(Role::User, &results, &[Block::text("do")]);
    let mut messages = vec![Message::user("hi"), asks, begun];
    let fork = request("claude-opus-5-5", messages.clone());
    assert_eq!(marked(&fork), [(0, vec![0]), (2, vec![19, 20])]);
    messages.push(Message::new(Role::Assistant, &[call("v", "Read", "{}")]));
    messages.push(Message::new(Role::User, &[result("v", "ok")]));
    let later = request("claude-opus-5-5", messages);
    assert_eq!(
        marked(&later),
        [(0, vec![0]), (2, vec![19]), (4, vec![0])],
        "four with the system's"
    );
}

#[test]
fn a_turn_starts_with_the_bytes_of_the_turn_before() {
    let [hello, asks, answered] = exchange();
    let thinking = Block::Thinking { thinking: "hm".into(), signature: "c2ln".into() };
    let mut messages = vec![hello, asks, answered];
    for n in 0..300 {
        let id = format!("u{n}");
        let calls = [thinking.clone(), Block::text("and"), call(&id, "Read", "{}")];
        messages.push(Message::new(Role::Assistant, &calls));
        messages.push(Message::new(Role::User, &[result(&id, "ok"), Block::text("go on")]));
    }
    let mut before: Option<String> = None;
    for end in (1..=messages.len()).step_by(2) {
        let text = text_of(&request("claude-opus-5-5", messages[..end].to_vec()));
        assert_eq!(text.matches(BREAKPOINT).count(), 2, "system and last message");
        let plain = text.replacen(BREAKPOINT, "", 1);
        let head = plain.split_once("],\"system\"").unwrap().0.to_owned();
        if let Some(before) = before.replace(head.clone()) {
            assert!(head.starts_with(&before));
        }
    }
}

#[test]
fn thinking_that_another_provider_did_not_sign_is_not_sent() {
    let thinking =
        |signature: &str| Block::Thinking { thinking: "hm".into(), signature: signature.into() };
    let blocks = [thinking(""), thinking("c2ln"), Block::text("so")];
    let messages =
        [Message::user("hi"), Message::new(Role::Assistant, &blocks), Message::user("on")];
    let sent = json_of(&request("claude-opus-5-5", messages));
    let kinds: Vec<&Value> = sent["messages"][1]["content"].as_array().unwrap().iter().collect();
    assert_eq!(kinds.len(), 2, "{kinds:?}");
    assert_eq!(kinds[0]["signature"], "c2ln");
}

#[test]
fn nothing_of_a_conversation_is_copied() {
    let request = request("claude-opus-5-5", exchange());
    let body =
        body(&request, &info(&request), &request.model, &RequestExtras::default(), &Map::new());
    let shared = |bytes: &bytes::Bytes| {
        let own = bytes.as_ptr_range();
        body.chunks().filter(|chunk| own.contains(&chunk.as_ptr())).count()
    };
    assert!(request.prefix.conversation.iter().all(|message| shared(message.wire()) > 0));
    assert!(shared(request.prefix.system.wire()) == 1 && shared(request.prefix.tools.wire()) == 1);
    let new: usize = body.chunks().map(bytes::Bytes::len).sum::<usize>()
        - request.prefix.conversation.bytes()
        - request.prefix.system.wire().len()
        - request.prefix.tools.wire().len();
    assert!(new < 400, "{new} new bytes");
}

#[test]
fn what_is_not_there_is_not_sent() {
    let mut request = request("some-model[1m]", [Message::user("hi")]);
    request.prefix.system = crate::SystemPrompt::new(Vec::new());
    request.prefix.tools = centurion_protocol::ToolSpecs::new(Vec::new());
    request.effort = Some(Effort::High);
    let sent = json_of(&request);
    let keys: Vec<&str> = sent.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["model", "messages", "metadata", "max_tokens", "stream"]);
    assert_eq!(sent["model"], "some-model");
}

#[test]
fn older_models_are_given_a_budget() {
    let mut request = request("claude-sonnet-4-5", [Message::user("hi")]);
    request.thinking = Thinking::Budget(5000);
    let thinking = json!({ "type": "enabled", "budget_tokens": 5000 });
    assert_eq!(json_of(&request)["thinking"], thinking);
    request.model = "claude-opus-5-5".into();
    request.thinking = Thinking::Disabled;
    assert_eq!(json_of(&request)["thinking"], json!({ "type": "disabled" }));
}

#[test]
fn extra_fields_are_merged_and_win() {
    let extra = json!({ "max_tokens": 7, "top_k": 3, "tools": [], "stream": false });
    let request = request("claude-opus-5-5", [Message::user("hi")]);
    let sent = body(
        &request,
        &info(&request),
        &request.model,
        &RequestExtras::default(),
        extra.as_object().unwrap(),
    )
    .to_vec();
    let text = String::from_utf8(sent).unwrap();
    assert_eq!(text.matches("\"tools\"").count(), 1);
    let sent: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&sent["max_tokens"], &sent["top_k"]), (&json!(7), &json!(3)));
    assert_eq!((&sent["tools"], &sent["stream"]), (&json!([]), &json!(true)));
}

fn client(env: &[(&str, &str)]) -> Result<Anthropic, OpenError> {
    let pairs = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let local = [("ANTHROPIC_BASE_URL".to_owned(), "http://127.0.0.1:9".to_owned())];
    Anthropic::open(&Env::new(local.into_iter().chain(pairs)), crate::testing::world())
}

#[test]
fn headers_say_who_asks_and_what_is_used() {
    let provider = client(&[
        ("ANTHROPIC_API_KEY", "secret"),
        ("ANTHROPIC_CUSTOM_HEADERS", "X-Team: blue\n\nanthropic-beta: mine"),
    ])
    .unwrap();
    assert_eq!(provider.key_source(), "ANTHROPIC_API_KEY");
    let mut request = request("claude-opus-5-5", [Message::user("hi")]);
    request.agent = Some(AgentId::new("a1"));
    request.effort = Some(Effort::High);
    let sent = headers(&provider.headers, &request, &info(&request));
    let get = |name: &str| sent.get(name).map(|value| value.to_str().unwrap().to_owned());
    let session = request.session.to_string();
    for (name, value) in [
        ("anthropic-version", "2023-06-01"),
        ("x-api-key", "secret"),
        ("x-claude-code-session-id", session.as_str()),
        ("x-claude-code-agent-id", "a1"),
        ("x-team", "blue"),
        ("anthropic-beta", "mine,interleaved-thinking-2025-05-14,effort-2025-11-24"),
        ("user-agent", concat!("centurion/", env!("CARGO_PKG_VERSION"))),
    ] {
        assert_eq!(get(name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(get("authorization"), None);
    assert!(!format!("{sent:?}").contains("secret"), "a key is never shown");
}

#[test]
fn the_program_around_is_named_where_its_name_fits_a_header() {
    let agent = |app: &str| {
        let provider = client(&[("CLAUDE_AGENT_SDK_CLIENT_APP", app)]).unwrap();
        let mut request = request("some-model", [Message::user("hi")]);
        request.thinking = Thinking::Disabled;
        let sent = headers(&provider.headers, &request, &info(&request));
        sent.get("user-agent").unwrap().to_str().unwrap().to_owned()
    };
    let own = concat!("centurion/", env!("CARGO_PKG_VERSION"));
    assert_eq!(agent("my-app/1.0.0"), format!("{own} (client-app/my-app/1.0.0)"));
    for wrong in ["", " ", "a\nb", "a) evil (b", "é", &"x".repeat(201)] {
        assert_eq!(agent(wrong), own, "{wrong}");
    }
}

#[test]
fn headers_leave_out_what_is_not_used() {
    let provider = client(&[("ANTHROPIC_AUTH_TOKEN", "token")]).unwrap();
    let mut request = request("some-model", [Message::user("hi")]);
    let sent = headers(&provider.headers, &request, &info(&request));
    assert_eq!(sent.get("authorization").unwrap(), "Bearer token");
    for name in ["x-api-key", "anthropic-beta", "x-claude-code-agent-id"] {
        assert!(sent.get(name).is_none(), "{name}");
    }
    request.model = "claude-sonnet-4-5[1m]".into();
    request.thinking = Thinking::Disabled;
    let sent = headers(&provider.headers, &request, &info(&request));
    assert_eq!(sent.get("anthropic-beta").unwrap(), "context-1m-2025-08-07");
    assert_eq!(client(&[]).unwrap().key_source(), "none");
}

#[test]
fn a_wrong_environment_is_refused_without_showing_secrets() {
    for (name, value) in [
        ("ANTHROPIC_CUSTOM_HEADERS", "X-Bad\u{7f}: secret"),
        ("ANTHROPIC_API_KEY", "secret\nsecret"),
        ("CLAUDE_CODE_EXTRA_BODY", "[1]"),
        ("CLAUDE_CODE_EXTRA_BODY", r#"{"messages":[]}"#),
        ("ANTHROPIC_BASE_URL", "ftp://x"),
        ("ANTHROPIC_BASE_URL", "nowhere"),
    ] {
        let error = client(&[(name, value)]).err().unwrap().to_string();
        assert!(error.contains(name) && error.contains("\nhelp: "), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

fn reader(events: &[Value]) -> Result<Vec<StreamEvent>, ModelError> {
    let mut reader = AnthropicReader::default();
    let mut all = Vec::new();
    for event in events {
        all.extend(reader.read(event.to_string().as_bytes())?);
    }
    Ok(all)
}

fn kind_of(events: &[Value]) -> ErrorKind {
    reader(events).unwrap_err().kind
}

fn start() -> Value {
    json!({ "type": "message_start", "message": {
        "id": "m", "model": "x",
        "usage": { "input_tokens": 3, "cache_read_input_tokens": 20, "output_tokens": 1 },
    } })
}

fn rich_blocks() -> Vec<Value> {
    vec![
        sse::thinking("let me see… ünïcode", "c2lnbmF0dXJl"),
        json!({ "type": "redacted_thinking", "data": "opaque" }),
        sse::text("Hello, wörld 🌍\n"),
        sse::tool_use("t1", "Read", json!({ "path": "a\nb", "deep": [1, { "x": "\"}" }] })),
        sse::tool_use("t2", "Bash", json!({})),
    ]
}

#[tokio::test]
async fn an_answer_is_read_whole() {
    let usage = sse::usage(7, 2, 30, 99);
    let pieces = sse::answer_with(&rich_blocks(), "tool_use", &usage);
    let pieces = pieces.into_iter().map(String::into_bytes).collect();
    let answer = fold(&decode(pieces, AnthropicReader::default()).await.unwrap());
    assert_eq!(blocks(&answer), json!(rich_blocks()));
    assert_eq!((answer.id.as_str(), answer.model.as_str()), ("msg_test", "test-model"));
    let usage = Usage {
        input_tokens: 7,
        cache_creation_input_tokens: 2,
        cache_read_input_tokens: 30,
        output_tokens: 99,
    };
    assert_eq!(answer.usage.counts, usage);
}

#[tokio::test]
async fn every_reason_to_stop_comes_through() {
    for (word, reason) in [
        ("end_turn", StopReason::EndTurn),
        ("tool_use", StopReason::ToolUse),
        ("max_tokens", StopReason::MaxTokens),
        ("stop_sequence", StopReason::StopSequence),
        ("pause_turn", StopReason::PauseTurn),
        ("refusal", StopReason::Refusal),
        ("model_context_window_exceeded", StopReason::ModelContextWindowExceeded),
        ("cosmic_ray", StopReason::Other("cosmic_ray".into())),
    ] {
        let pieces = sse::answer(&[sse::text("x")], word).into_iter().map(String::into_bytes);
        let events = decode(pieces.collect(), AnthropicReader::default()).await.unwrap();
        assert_eq!(fold(&events).stop_reason, reason);
    }
}

#[tokio::test]
async fn bytes_may_be_cut_anywhere() {
    let whole = sse::answer(&rich_blocks(), "tool_use").concat().replace('\n', "\r\n").into_bytes();
    for at in 0..=whole.len() {
        let pieces = vec![whole[..at].to_vec(), whole[at..].to_vec()];
        let events = decode(pieces, AnthropicReader::default()).await.unwrap();
        assert_eq!(blocks(&fold(&events)), json!(rich_blocks()), "cut at {at}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bytes_may_be_cut_in_any_way(sizes in prop::collection::vec(1_usize..40, 1..200)) {
        let whole = sse::answer(&rich_blocks(), "tool_use").concat().into_bytes();
        let (mut rest, mut pieces) = (whole.as_slice(), Vec::new());
        for size in sizes.iter().cycle() {
            if rest.is_empty() { break; }
            let (piece, tail) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece.to_vec());
            rest = tail;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let events = runtime.block_on(decode(pieces, AnthropicReader::default())).unwrap();
        prop_assert_eq!(blocks(&fold(&events)), json!(rich_blocks()));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(payloads in prop::collection::vec(payload(), 0..12)) {
        let mut reader = AnthropicReader::default();
        for payload in payloads {
            let _ = reader.read(&payload);
        }
    }
}

/// Anything, from noise to nearly valid.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
        "ping",
        "new_thing",
    ]);
    let json = prop::sample::select(vec![
        "null",
        "0",
        "-1",
        "1e99",
        "\"x\"",
        "{}",
        "[]",
        r#"{"type":"text_delta","text":"x"}"#,
        r#"{"type":"tool_use","id":"a","name":"b","input":{"c":1}}"#,
        r#"{"type":"text","text":5}"#,
        r#"{"stop_reason":"end_turn"}"#,
        r#"{"type":"input_json_delta","partial_json":"{"}"#,
    ]);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60),
        (word, prop::collection::vec(json, 4)).prop_map(|(word, parts)| format!(
            r#"{{"type":"{word}","message":{},"index":{},"content_block":{},"delta":{}}}"#,
            parts[0], parts[1], parts[2], parts[3]
        )
        .into_bytes()),
    ]
}

#[test]
fn counts_of_the_end_replace_only_those_they_name() {
    let events = reader(&[
        start(),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" },
                "usage": { "output_tokens": 50, "input_tokens": null } }),
        json!({ "type": "message_stop" }),
    ])
    .unwrap();
    let usage = fold(&events).usage.counts;
    assert_eq!((usage.input_tokens, usage.cache_read_input_tokens), (3, 20));
    assert_eq!(usage.output_tokens, 50);
}

#[test]
fn blocks_and_events_of_tomorrow_do_no_harm() {
    let search = json!({ "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} });
    let found = json!({ "type": "web_search_tool_result", "tool_use_id": "s", "content": [1] });
    let events = reader(&[
        json!({ "type": "fanfare", "message": 5, "index": "x" }),
        start(),
        json!({ "type": "ping" }),
        json!({ "type": "content_block_start", "index": 0, "content_block": search }),
        json!({ "type": "content_block_delta", "index": 0,
                "delta": { "type": "input_json_delta", "partial_json": r#"{"query""# } }),
        json!({ "type": "content_block_delta", "index": 0,
                "delta": { "type": "input_json_delta", "partial_json": r#": "rust"}"# } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "content_block_start", "index": 1, "content_block": found }),
        json!({ "type": "content_block_stop", "index": 1 }),
        json!({ "type": "content_block_start", "index": 2, "content_block": sse::text("a") }),
        json!({ "type": "content_block_delta", "index": 2, "delta": { "type": "citations_delta" } }),
        json!({ "type": "content_block_stop", "index": 2 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": null }),
        json!({ "type": "message_stop" }),
    ])
    .unwrap();
    let answer = fold(&events);
    assert!(
        serde_json::to_string(&answer.blocks).unwrap().contains(r#""input":{"query": "rust"}"#)
    );
    let mut search = search;
    search["input"] = json!({ "query": "rust" });
    assert_eq!(blocks(&answer), json!([search, found, sse::text("a")]));
}

#[test]
fn an_input_that_comes_whole_with_its_block_counts() {
    let whole = sse::tool_use("t", "Read", json!({ "path": "x" }));
    let begin = json!({ "type": "content_block_start", "index": 0, "content_block": whole });
    let piece = json!({ "type": "content_block_delta", "index": 0,
                        "delta": { "type": "input_json_delta", "partial_json": r#"{"y":1}"# } });
    let stop = json!({ "type": "content_block_stop", "index": 0 });
    let delta = json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } });
    let end = json!({ "type": "message_stop" });
    let without = [start(), begin.clone(), stop.clone(), delta.clone(), end.clone()];
    assert_eq!(blocks(&fold(&reader(&without).unwrap()))[0]["input"], json!({ "path": "x" }));
    let with = [start(), begin, piece, stop, delta, end];
    assert_eq!(blocks(&fold(&reader(&with).unwrap()))[0]["input"], json!({ "y": 1 }));
}

#[test]
fn what_breaks_the_protocol_is_an_error() {
    let text = json!({ "type": "content_block_start", "index": 0, "content_block": sse::text("") });
    let delta = json!({ "type": "content_block_delta", "index": 0,
                        "delta": { "type": "text_delta", "text": "x" } });
    let stop = json!({ "type": "content_block_stop", "index": 0 });
    let nameless = json!({ "type": "content_block_start", "index": 0,
                           "content_block": { "type": "tool_use", "id": "t" } });
    for events in [
        vec![text.clone()],
        vec![start(), start()],
        vec![start(), delta.clone()],
        vec![start(), stop.clone()],
        vec![start(), text.clone(), text.clone()],
        vec![start(), text, stop.clone(), delta],
        vec![start(), nameless],
        vec![start(), json!({ "type": "content_block_start", "index": -1 })],
        vec![start(), json!({ "type": "message_stop" })],
        vec![json!({ "no": "type" })],
    ] {
        assert_eq!(kind_of(&events), ErrorKind::Malformed, "{events:?}");
    }
}

#[test]
fn an_error_in_the_stream_is_told_by_its_kind() {
    for (name, kind) in [
        ("overloaded_error", ErrorKind::Overloaded),
        ("api_error", ErrorKind::Server),
        ("rate_limit_error", ErrorKind::RateLimit),
        ("authentication_error", ErrorKind::Authentication),
        ("invalid_request_error", ErrorKind::InvalidRequest),
    ] {
        let error = json!({ "type": "error", "error": { "type": name, "message": "m" } });
        assert_eq!(kind_of(&[start(), error]), kind);
    }
    assert_eq!(kind_of(&[json!({ "type": "error" })]), ErrorKind::Server);
}

#[tokio::test]
async fn an_answer_that_ends_early_is_no_answer() {
    let events = sse::answer(&[sse::text("hello")], "end_turn");
    for end in 0..events.len() {
        let pieces = events[..end].iter().map(|event| event.clone().into_bytes()).collect();
        let error = decode(pieces, AnthropicReader::default()).await.unwrap_err();
        let expected = if end == 0 { ErrorKind::Malformed } else { ErrorKind::Network };
        assert_eq!(error.kind, expected, "after {end} events");
    }
}
