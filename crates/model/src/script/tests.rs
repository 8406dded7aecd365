//! Whole scenarios, played under a paused clock.

use std::time::Duration;

use centurion_protocol::{
    Block, Conversation, Message, ReportedUsage, Role, SessionId, StopReason, Thinking, ToolResult,
    ToolSpec, ToolSpecs, ToolUse, ToolUseId, Usage,
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::{BlockStart, Delta, ErrorKind, ModelError, Prefix, StreamEvent, SystemPrompt};

fn request(messages: &[Message]) -> Request {
    let mut conversation = Conversation::default();
    for message in messages {
        conversation.push(message.clone()).unwrap();
    }
    let input_schema = serde_json::value::to_raw_value(&json!({"type": "object"})).unwrap();
    let tool = ToolSpec { name: "Read".into(), description: "reads".into(), input_schema };
    Request {
        model: "claude-test-1".into(),
        prefix: Prefix {
            system: SystemPrompt::new(vec!["You are the reviewer.".into()]),
            tools: ToolSpecs::new(vec![tool]),
            conversation,
        },
        max_tokens: 1000,
        thinking: Thinking::Auto,
        effort: None,
        session: "6f1c5d52-7d0c-4d1b-9d5a-2a3a4f1d2f10".parse::<SessionId>().unwrap(),
        agent: None,
        parent_agent: None,
    }
}

fn user(text: &str) -> Message {
    Message::user(text)
}

fn assistant(text: &str) -> Message {
    Message::new(Role::Assistant, &[Block::text(text)])
}

fn call_and_result(id: &str, result: &str) -> [Message; 2] {
    let id = ToolUseId::new(id);
    let input = serde_json::value::to_raw_value(&json!({})).unwrap();
    let call = ToolUse { id: id.clone(), name: "Read".into(), input };
    [
        Message::new(Role::Assistant, &[Block::ToolUse(call)]),
        Message::new(Role::User, &[Block::ToolResult(ToolResult::text(id, result))]),
    ]
}

/// A complete answer.
#[derive(Debug, Default)]
struct Answer {
    id: String,
    text: String,
    thinking: String,
    signature: String,
    calls: Vec<(String, String, Value)>,
    others: Vec<Value>,
    deltas: usize,
    stop: Option<StopReason>,
    usage: ReportedUsage,
    error: Option<ModelError>,
    took: Duration,
}

impl Answer {
    fn kind(&self) -> Option<ErrorKind> {
        self.error.as_ref().map(|error| error.kind)
    }

    fn message(&self) -> &str {
        self.error.as_ref().map_or("", |error| error.message.as_str())
    }
}

async fn ask(script: &Script, messages: &[Message]) -> Answer {
    ask_with(script, request(messages)).await
}

async fn ask_with(script: &Script, request: Request) -> Answer {
    let started = Instant::now();
    let mut answer = Answer::default();
    let mut json = String::new();
    let mut stream = script.stream(request);
    while let Some(event) = stream.next().await {
        match event {
            Ok(StreamEvent::Start { id, .. }) => answer.id = id,
            Ok(StreamEvent::BlockStart { block, .. }) => match block {
                BlockStart::ToolUse { id, name } => {
                    json.clear();
                    answer.calls.push((id.to_string(), name, Value::Null));
                }
                BlockStart::Other(raw) => {
                    answer.others.push(serde_json::from_str(raw.get()).unwrap());
                }
                BlockStart::RedactedThinking { data } => answer.others.push(json!(data)),
                BlockStart::Text | BlockStart::Thinking => {}
            },
            Ok(StreamEvent::Delta { delta, .. }) => {
                answer.deltas += 1;
                match delta {
                    Delta::Text(text) => answer.text += &text,
                    Delta::Thinking(text) => answer.thinking += &text,
                    Delta::Signature(text) => answer.signature += &text,
                    Delta::InputJson(text) => {
                        json += &text;
                        if let Ok(value) = serde_json::from_str(&json) {
                            answer.calls.last_mut().unwrap().2 = value;
                        }
                    }
                }
            }
            Ok(StreamEvent::Finish { stop_reason, usage }) => {
                answer.stop = Some(stop_reason);
                answer.usage = usage;
            }
            Ok(StreamEvent::BlockStop { .. } | StreamEvent::Ping) => {}
            Err(error) => answer.error = Some(error),
        }
    }
    answer.took = started.elapsed();
    answer
}

fn yaml(text: &str) -> Script {
    parse(text, "test.yaml").unwrap()
}

fn refusal(text: &str, name: &str) -> String {
    parse(text, name).unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_marker_selects_a_script_and_the_history_its_step() {
    let script = yaml("scripts:\n  lead: [one, two]\n  scout: [found it]\n");
    let first = user("please @@lead");
    assert_eq!(ask(&script, std::slice::from_ref(&first)).await.text, "one");
    let second = [first.clone(), assistant("one"), user("and @@nobody")];
    assert_eq!(ask(&script, &second).await.text, "two");
    let past = [first.clone(), assistant("one"), user("go on"), assistant("two"), user("more")];
    assert_eq!(ask(&script, &past).await.text, "done");
    let switched = [first, assistant("one"), user("now @@scout")];
    assert_eq!(ask(&script, &switched).await.text, "found it");
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_block_is_played() {
    let script = yaml(
        r#"
default:
  blocks:
    - plain
    - thinking: hm
    - {thinking: sure, signature: c2ln}
    - {tool: Read, input: {path: "a b", n: 3}, id: toolu_x}
    - tool: Read
    - {type: redacted_thinking, data: xyz}
    - {type: server_tool_use, id: s, name: web_search, input: {}}
"#,
    );
    let answer = ask(&script, &[user("hi")]).await;
    assert_eq!(answer.text, "plain");
    assert_eq!(answer.thinking, "hmsure");
    assert_eq!(answer.signature, "c2NyaXB0c2ln");
    assert_eq!(answer.calls[0], ("toolu_x".into(), "Read".into(), json!({"path": "a b", "n": 3})));
    assert_eq!(answer.calls[1].2, json!({}));
    assert_eq!(answer.others[0], json!("xyz"));
    assert_eq!(answer.others[1]["type"], "server_tool_use");
    assert_eq!(answer.stop, Some(StopReason::ToolUse));
    assert_eq!(answer.id, "msg_script_000001");
}

#[tokio::test(start_paused = true)]
async fn call_ids_differ_between_requests_and_within_a_conversation() {
    let text = "default: {tool: Read}";
    let script = yaml(text);
    let one = ask(&script, &[user("hi")]).await.calls[0].0.clone();
    let two = ask(&script, &[user("hi")]).await.calls[0].0.clone();
    let history = [vec![user("hi")], call_and_result("t", "x").to_vec()].concat();
    let resumed = ask(&yaml(text), &history).await.calls[0].0.clone();
    assert!(one != two && one != resumed, "{one} {two} {resumed}");
}

#[tokio::test(start_paused = true)]
async fn placeholders_see_the_newest_match_the_argument_and_the_number() {
    let script = yaml(
        "scripts:\n  go:\n    - [{tool: Read, input: {path: '${arg}', id: '${re:agentId: (\\w+)}'}}]\n    - 'n=${n}'\n",
    );
    let mut history = vec![user("agentId: old @@go:src/lib.rs")];
    let answer = ask(&script, &history).await;
    assert_eq!(answer.calls[0].2, json!({"path": "src/lib.rs", "id": "old"}));
    history.extend(call_and_result("t1", "agentId: new9"));
    assert_eq!(ask(&script, &history).await.text, "n=2");
    history.push(user("again @@go"));
    let answer = ask(&script, &history).await;
    assert_eq!(answer.calls[0].2, json!({"path": "", "id": "new9"}));
}

#[tokio::test(start_paused = true)]
async fn rules_come_first_and_all_their_conditions_must_hold() {
    let script = yaml(
        r#"
rules:
  - {match: {tool_result: "no such file"}, respond: gone}
  - {match: {system: reviewer, has_tool: Read, lacks_tool: Write, model: "^claude", turn: 1}, respond: second turn}
  - {match: {system_re: "revi.wer", last_user: "^bye"}, respond: farewell}
  - {match: {first_user: "hello.*there", max_hits: 1}, respond: once}
scripts: {s: [scripted]}
default: fallback
"#,
    );
    let hello = user("hello\nthere @@s");
    assert_eq!(ask(&script, std::slice::from_ref(&hello)).await.text, "once");
    assert_eq!(ask(&script, std::slice::from_ref(&hello)).await.text, "scripted");
    assert_eq!(ask(&script, &[user("bye")]).await.text, "farewell");
    assert_eq!(ask(&script, &[user("x"), assistant("y"), user("z")]).await.text, "second turn");
    let failed = [vec![user("x")], call_and_result("t", "no such file").to_vec()].concat();
    assert_eq!(ask(&script, &failed).await.text, "gone");
    assert_eq!(ask(&script, &[user("x")]).await.text, "fallback");
}

#[tokio::test(start_paused = true)]
async fn a_default_list_goes_by_turn() {
    let script = yaml("default:\n  - one\n  - [two, three]\n");
    assert_eq!(ask(&script, &[user("x")]).await.text, "one");
    assert_eq!(ask(&script, &[user("x"), assistant("a"), user("y")]).await.text, "twothree");
    let third = [user("x"), assistant("a"), user("y"), assistant("b"), user("z")];
    assert_eq!(ask(&script, &third).await.text, "done");
}

#[tokio::test(start_paused = true)]
async fn delays_pass_on_the_virtual_clock_and_chunks_split_characters() {
    let script =
        yaml("default: {text: äöüß!, latency_ms: 5000, chunk_delay_ms: 100, chunk_chars: 2}");
    let answer = ask(&script, &[user("x")]).await;
    assert_eq!((answer.text.as_str(), answer.deltas), ("äöüß!", 3));
    // Start, block start, three deltas, block stop, finish.
    assert_eq!(answer.took, Duration::from_millis(5000 + 7 * 100));
}

#[tokio::test(start_paused = true)]
async fn stop_reason_and_usage_can_be_given_and_are_estimated_otherwise() {
    let script = yaml(
        "scripts:\n  a: [{text: cut, stop_reason: max_tokens, usage: {input_tokens: 7, cache_read_input_tokens: 8, output_tokens: 9}}]\n  b: [four]\n",
    );
    let answer = ask(&script, &[user("@@a")]).await;
    assert_eq!(answer.stop, Some(StopReason::MaxTokens));
    assert_eq!(
        answer.usage.counts,
        Usage {
            input_tokens: 7,
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: 8,
            output_tokens: 9
        }
    );
    let asked = request(&[user("@@b")]);
    let bytes = asked.prefix.system.wire().len()
        + asked.prefix.tools.wire().len()
        + asked.prefix.conversation.bytes();
    let answer = ask_with(&script, asked).await;
    assert_eq!(answer.usage.counts.input_tokens, bytes.div_ceil(4) as u64);
    assert_eq!(
        answer.usage.counts.output_tokens,
        r#"{"type":"text","text":"four"}"#.len().div_ceil(4) as u64
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_be_empty() {
    let answer = ask(&yaml("default: {blocks: []}"), &[user("x")]).await;
    assert_eq!((answer.deltas, answer.stop), (0, Some(StopReason::EndTurn)));
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_succeeds_when_it_has_failed_often_enough() {
    let script = yaml(
        "scripts:\n  s:\n    - error: {status: 429, type: rate_limit_error, message: slow down, retry_after: 1.5, times: 2}\n      text: fine\n",
    );
    let one = [user("one @@s")];
    for _ in 0..2 {
        let answer = ask(&script, &one).await;
        let error = answer.error.unwrap();
        assert_eq!((error.kind, error.status), (ErrorKind::RateLimit, Some(429)));
        assert_eq!(error.retry_after, Some(Duration::from_millis(1500)));
        assert_eq!(error.message, "429 rate_limit_error: slow down");
    }
    assert_eq!(ask(&script, &one).await.text, "fine");
    // Another conversation counts on its own.
    assert_eq!(ask(&script, &[user("two @@s")]).await.kind(), Some(ErrorKind::RateLimit));
    // So does a second use of the script in the same conversation.
    let again = [user("one @@s"), assistant("fine"), user("@@s")];
    assert_eq!(ask(&script, &again).await.kind(), Some(ErrorKind::RateLimit));
}

#[tokio::test(start_paused = true)]
async fn refusals_are_sorted_like_a_providers() {
    for (error, kind) in [
        ("status: 529", ErrorKind::Overloaded),
        ("status: 503", ErrorKind::Overloaded),
        ("status: 500", ErrorKind::Server),
        ("{}", ErrorKind::Server),
        ("status: 401", ErrorKind::Authentication),
        ("status: 402", ErrorKind::Billing),
        ("{status: 404, type: not_found_error, message: 'model: x'}", ErrorKind::ModelNotFound),
        ("status: 400", ErrorKind::InvalidRequest),
        (
            "{status: 400, type: invalid_request_error, message: prompt is too long}",
            ErrorKind::ContextOverflow,
        ),
    ] {
        let error = if error.starts_with('{') { error.to_owned() } else { format!("{{{error}}}") };
        let script = yaml(&format!("default: {{error: {error}}}"));
        assert_eq!(ask(&script, &[user("x")]).await.kind(), Some(kind), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_only_fails_says_that_it_recovered() {
    let script = yaml("default: {error: {status: 529, times: 1}}");
    assert_eq!(ask(&script, &[user("x")]).await.kind(), Some(ErrorKind::Overloaded));
    assert_eq!(ask(&script, &[user("x")]).await.text, "recovered");
}

#[tokio::test(start_paused = true)]
async fn a_stream_breaks_where_the_scenario_says() {
    for (fault, kind) in [
        ("reset_after_events", ErrorKind::Network),
        ("malformed_after_events", ErrorKind::Malformed),
        ("stream_error_after_events", ErrorKind::Overloaded),
    ] {
        let script =
            yaml(&format!("default: {{text: abcdef, chunk_chars: 2, {fault}: 3, times: 1}}"));
        let broken = ask(&script, &[user("x")]).await;
        assert_eq!(broken.kind(), Some(kind));
        // Start, block start and one delta came through.
        assert_eq!((broken.text.as_str(), &broken.stop), ("ab", &None));
        let retried = ask(&script, &[user("x")]).await;
        assert_eq!((retried.text.as_str(), retried.kind()), ("abcdef", None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_stream_is_silent_until_its_caller_gives_up() {
    let script = yaml("default: {text: abc, stall_after_events: 1, stall_ms: 90000, times: 1}");
    let mut stream = script.stream(request(&[user("x")]));
    assert!(matches!(stream.next().await, Some(Ok(StreamEvent::Start { .. }))));
    let silence = tokio::time::timeout(Duration::from_mins(1), stream.next()).await;
    assert!(silence.is_err());
    assert!(matches!(stream.next().await, Some(Ok(StreamEvent::BlockStart { .. }))));
    drop(stream);
    assert_eq!(ask(&script, &[user("x")]).await.took, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_nothing_answers_is_refused_with_what_there_is() {
    let script = yaml("scripts: {review: [a], plan: [b]}");
    let answer = ask(&script, &[user("please @@reveiw this")]).await;
    assert_eq!(answer.kind(), Some(ErrorKind::Replay));
    for part in ["please @@reveiw this", "plan, review", "did you mean `@@review`?", "test.yaml"] {
        assert!(answer.message().contains(part), "{part}: {}", answer.message());
    }
}

/// The same file also drives the loopback server that stands in for the Messages API.
#[tokio::test(start_paused = true)]
async fn a_json_scenario_with_rules_scripts_and_faults() {
    let script = parse(
        r#"{
  "scripts": {
    "main": [
      [{"thinking": "let me look"}, {"tool": "Read", "input": {"path": "${arg}"}}],
      {"blocks": ["it says ${re:content: (\\w+)}"], "latency_ms": 40, "stop_reason": null}
    ],
    "flaky": [{"text": "made it", "error": {"status": 529, "type": "overloaded_error",
                "headers": {"retry-after": "2"}, "times": 1}}]
  },
  "rules": [{"match": {"last_user": "^ping$", "max_hits": 2}, "respond": {"text": "pong"}}],
  "default": {"text": "ok"}
}"#,
        "demo.json",
    )
    .unwrap();
    assert_eq!(ask(&script, &[user("ping")]).await.text, "pong");
    assert_eq!(ask(&script, &[user("other")]).await.text, "ok");
    let mut history = vec![user("@@main:notes.txt")];
    let answer = ask(&script, &history).await;
    assert_eq!(answer.calls[0].2, json!({"path": "notes.txt"}));
    history.extend(call_and_result(&answer.calls[0].0, "content: forty"));
    assert_eq!(ask(&script, &history).await.text, "it says forty");
    let failed = ask(&script, &[user("@@flaky")]).await;
    assert_eq!(failed.error.unwrap().retry_after, Some(Duration::from_secs(2)));
    assert_eq!(ask(&script, &[user("@@flaky")]).await.text, "made it");
}

#[test]
fn json_errors_carry_their_place_and_what_was_expected() {
    let error = refusal("{\n  \"scripts\": {\n    \"a\": [1]\n  }\n}", "x.json");
    assert!(
        error.starts_with("x.json:3:11: invalid type: integer `1`, expected a step"),
        "{error}"
    );
    let error = refusal("{\n  \"defualt\": \"x\"\n}", "x.json");
    assert_eq!(error, "x.json:2:11: a scenario has no key `defualt`; did you mean `default`?");
    let error = refusal("{\"default\": {\"latency\": 3, \"text\": \"x\"}}", "x.json");
    assert!(error.contains("did you mean `latency_ms`?"), "{error}");
    assert!(refusal("{", "x.json").starts_with("x.json:1:1: EOF"), "{}", refusal("{", "x.json"));
}

#[test]
fn yaml_errors_carry_their_place_and_what_was_expected() {
    let error = refusal("scripts:\n  a:\n    - 1\n", "x.yaml");
    assert!(error.starts_with("x.yaml:3:7: "), "{error}");
    assert!(error.contains("expected a step"), "{error}");
    let error = refusal("default:\n  text: x\n  chunk_char: 3\n", "x.yaml");
    assert!(error.starts_with("x.yaml:3:"), "{error}");
    assert!(
        error.contains("a step has no key `chunk_char`; did you mean `chunk_chars`?"),
        "{error}"
    );
    let error = refusal("rules:\n  - match: {last_user: '('}\n    respond: x\n", "x.yaml");
    assert!(error.starts_with("x.yaml:2:"), "{error}");
    assert!(error.contains("no regular expression"), "{error}");
    let error = refusal("default: [\n", "x.yaml");
    assert!(error.starts_with("x.yaml:"), "{error}");
}

#[test]
fn what_could_never_work_is_refused_when_the_file_is_read() {
    for (text, reason) in [
        ("{}", "needs `scripts`, `rules` or `default`"),
        ("scripts: {'a b': [x]}", "no marker can name the script `a b`"),
        ("default: {latency_ms: 3}", "a step needs `blocks`, one block or a fault"),
        ("default: {text: x, blocks: [y]}", "either `blocks` or the keys of one block"),
        ("default: {blocks: [{tool: Read, inptu: {}}]}", "did you mean `input`?"),
        ("default: {tool: Read, input: 3}", "the `input` of a call is an object"),
        ("default: {type: text}", "a `text` block needs `text`"),
        ("default: {text: x, latency_ms: -1}", "milliseconds"),
        ("default: {text: '${re:(}'}", "no regular expression"),
        ("default: {error: {status: 200}}", "400 or more"),
        ("default: {error: {headers: {'a b': c}}}", "`a b: c` is no header"),
        ("rules: [{match: {turn: 1}}]", "a rule needs `respond`"),
        ("rules: [{match: {lastuser: x}, respond: y}]", "did you mean `last_user`?"),
    ] {
        let error = refusal(text, "x.yaml");
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = open(Path::new("nowhere/none.yaml")).unwrap_err();
    assert!(error.to_string().contains("nowhere/none.yaml"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_examples_of_the_manual_work() {
    let manual = include_str!("../../../../docs/scripted-models.md");
    let examples: Vec<Script> = manual
        .split("```yaml\n")
        .skip(1)
        .map(|rest| yaml(rest.split("```").next().unwrap()))
        .collect();
    let [demo, faults] = examples.as_slice() else { panic!("{} examples", examples.len()) };
    let mut history = vec![user("please @@lead:/tmp/notes.txt")];
    let answer = ask(demo, &history).await;
    assert_eq!(answer.calls[0].2, json!({"file_path": "/tmp/notes.txt"}));
    history.extend(call_and_result("t", "first line"));
    assert_eq!(ask(demo, &history).await.text, "The file says \"first line\".");
    assert_eq!(ask(demo, &[user("hi")]).await.text, "Hello.");
    assert_eq!(ask(faults, &[user("@@busy")]).await.kind(), Some(ErrorKind::RateLimit));
    assert_eq!(ask(faults, &[user("@@flaky")]).await.kind(), Some(ErrorKind::Network));
}
