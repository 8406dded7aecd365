//! Recording and replaying whole exchanges.

use std::time::Duration;

use centurion_protocol::{
    Block, Conversation, Effort, Message, ReportedUsage, Role, SessionId, StopReason, Thinking,
    ToolSpec, ToolSpecs, ToolUseId, Usage,
};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::json;
use serde_json::value::RawValue;

use super::*;
use crate::{BlockStart, Delta, ErrorKind, ModelError, Prefix, StreamEvent, SystemPrompt, script};

type Item = Result<StreamEvent, ModelError>;

/// A provider that gives prepared answers, one after the other.
struct Prepared(Mutex<Vec<Vec<Item>>>);

impl Provider for Prepared {
    fn stream(&self, _: Request) -> EventStream {
        Box::pin(stream::iter(self.0.lock().remove(0)))
    }

    fn credential(&self) -> &'static str {
        "prepared"
    }
}

fn prepared(answers: Vec<Vec<Item>>) -> Arc<dyn Provider> {
    Arc::new(Prepared(Mutex::new(answers)))
}

fn scripted(yaml: &str) -> Arc<dyn Provider> {
    Arc::new(script::parse(yaml, "inner.yaml").unwrap())
}

/// A cassette that records `inner`.
fn record(path: &Path, inner: Arc<dyn Provider>) -> Cassette {
    open(path, Some(inner)).unwrap()
}

fn request(system: &str, messages: &[Message]) -> Request {
    let mut conversation = Conversation::default();
    for message in messages {
        conversation.push(message.clone()).unwrap();
    }
    let input_schema = serde_json::value::to_raw_value(&json!({"type": "object"})).unwrap();
    let tool = ToolSpec { name: "Read".into(), description: "reads".into(), input_schema };
    Request {
        model: "sonnet-1".into(),
        prefix: Prefix {
            system: SystemPrompt::new(vec![system.into()]),
            tools: ToolSpecs::new(vec![tool]),
            conversation,
        },
        max_tokens: 1000,
        thinking: Thinking::Auto,
        effort: Some(Effort::High),
        session: session('1'),
        agent: None,
        parent_agent: None,
    }
}

fn session(last: char) -> SessionId {
    format!("6f1c5d52-7d0c-4d1b-9d5a-2a3a4f1d2f1{last}").parse().unwrap()
}

fn user(text: &str) -> Message {
    Message::user(text)
}

fn without_tools(mut request: Request) -> Request {
    request.prefix.tools = ToolSpecs::new(Vec::new());
    request
}

fn with_system(mut request: Request, text: &str) -> Request {
    request.prefix.system = SystemPrompt::new(vec![text.into()]);
    request
}

fn ask(text: &str) -> Request {
    request("be brief", &[user(text)])
}

async fn items(cassette: &Cassette, request: Request) -> Vec<String> {
    cassette.stream(request).map(|item| format!("{item:?}")).collect().await
}

async fn text(cassette: &Cassette, request: Request) -> String {
    let mut text = String::new();
    let mut stream = cassette.stream(request);
    while let Some(item) = stream.next().await {
        match item {
            Ok(StreamEvent::Delta { delta: Delta::Text(piece), .. }) => text += &piece,
            Ok(_) => {}
            Err(error) => return error.message,
        }
    }
    text
}

fn start() -> StreamEvent {
    let usage = Usage { input_tokens: 3, ..Usage::default() }.into();
    StreamEvent::Start {
        id: "msg_1".into(),
        model: "sonnet-1".into(),
        usage,
        request_id: Some("req_1".into()),
    }
}

fn finish() -> StreamEvent {
    StreamEvent::Finish { stop_reason: StopReason::EndTurn, usage: ReportedUsage::default() }
}

fn overloaded() -> ModelError {
    let error = ModelError::new(ErrorKind::Overloaded, "too busy").with_status(529);
    ModelError { retry_after: Some(Duration::from_millis(1500)), ..error }
}

/// A scratch file; the directory lives as long as the value.
fn scratch() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.jsonl");
    (directory, path)
}

#[tokio::test(start_paused = true)]
async fn what_was_recorded_is_replayed_byte_for_byte() {
    let (_directory, path) = scratch();
    let raw = "{\"type\":\"server_tool_use\",\n \"input\":{\"n\":1e2}}".to_owned();
    let answer = vec![
        Ok(start()),
        Ok(StreamEvent::BlockStart {
            index: 0,
            block: BlockStart::ToolUse { id: ToolUseId::new("toolu_1"), name: "Read".into() },
        }),
        Ok(StreamEvent::Delta {
            index: 0,
            delta: Delta::InputJson("{\"n\": 1e2,\"s\":\"\\/".into()),
        }),
        Ok(StreamEvent::Delta { index: 0, delta: Delta::InputJson("\u{1}é\"}".into()) }),
        Ok(StreamEvent::BlockStop { index: 0 }),
        Ok(StreamEvent::BlockStart {
            index: 1,
            block: BlockStart::Other(RawValue::from_string(raw).unwrap()),
        }),
        Ok(StreamEvent::Ping),
        Ok(finish()),
    ];
    let recording = record(&path, prepared(vec![answer]));
    assert_eq!(recording.credential(), "prepared");
    let recorded = items(&recording, ask("hi")).await;
    let replaying = open(&path, None).unwrap();
    assert_eq!(items(&replaying, ask("hi")).await, recorded);
    assert_eq!(replaying.recorded_model(), Some("sonnet-1"));
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failure_and_the_retry_are_replayed_in_order() {
    let (_directory, path) = scratch();
    let answers = vec![vec![Ok(start()), Err(overloaded())], vec![Ok(start()), Ok(finish())]];
    let recording = record(&path, prepared(answers));
    let first = items(&recording, ask("hi")).await;
    let second = items(&recording, ask("hi")).await;
    assert!(first[1].contains("1.5s") && first[1].contains("Overloaded"), "{first:?}");
    let replaying = open(&path, None).unwrap();
    assert_eq!(items(&replaying, ask("hi")).await, first);
    assert_eq!(items(&replaying, ask("hi")).await, second);
    let third = text(&replaying, ask("hi")).await;
    assert!(third.contains("has been replayed already"), "{third}");
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_recorded_without_the_credentials_in_its_message() {
    let (_directory, path) = scratch();
    let token = format!("ghp_{}", "a1".repeat(18));
    let error = ModelError::new(ErrorKind::Overloaded, format!("no such key: {token}"));
    let recording = record(&path, prepared(vec![vec![Ok(start()), Err(error)]]));
    let heard = items(&recording, ask("hi")).await;
    assert!(heard[1].contains(&token), "{heard:?}");
    let tape = std::fs::read_to_string(&path).unwrap();
    assert!(tape.contains("no such key: [redacted: github_token]"), "{tape}");
}

#[tokio::test(start_paused = true)]
async fn interleaved_agents_each_get_their_own_answers() {
    let (_directory, path) = scratch();
    let recording = record(&path, scripted("scripts: {a: [a one, a two], b: [b one]}"));
    let next = |text: &str| {
        let answer = Message::new(Role::Assistant, &[Block::text("a one")]);
        request("be brief", &[user(text), answer, user("go on")])
    };
    assert_eq!(text(&recording, ask("@@a")).await, "a one");
    assert_eq!(text(&recording, ask("@@b")).await, "b one");
    assert_eq!(text(&recording, next("@@a")).await, "a two");
    let replaying = open(&path, None).unwrap();
    assert_eq!(text(&replaying, ask("@@b")).await, "b one");
    assert_eq!(text(&replaying, ask("@@a")).await, "a one");
    assert_eq!(text(&replaying, next("@@a")).await, "a two");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_not_recorded_is_refused_and_the_difference_shown() {
    let (_directory, path) = scratch();
    let recording = record(&path, scripted("default: ok"));
    text(&recording, ask("read the file src/main.rs")).await;
    let replaying = open(&path, None).unwrap();

    let mut stream = replaying.stream(ask("read the file src/lib.rs"));
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Replay);
    for part in [
        "messages[0].content[0].text",
        "recorded: \"read the file src/main.rs\"",
        "asked:    \"read the file src/lib.rs\"",
        "(1 of 1 are unused)",
        "help:",
    ] {
        assert!(error.message.contains(part), "{part}: {}", error.message);
    }
    let original = || ask("read the file src/main.rs");
    let refused = [
        (Request { model: "opus-1".into(), ..original() }, "differs in model"),
        (Request { max_tokens: 7, ..original() }, "differs in max_tokens"),
        (Request { thinking: Thinking::Disabled, ..original() }, "differs in thinking"),
        (Request { effort: None, ..original() }, "recorded: high\n  asked:    none"),
        (without_tools(original()), "tools[0]"),
        (with_system(original(), "be long"), "differs in system[0]"),
    ];
    for (request, reason) in refused {
        let message = text(&replaying, request).await;
        assert!(message.contains(reason), "{reason}: {message}");
    }
    assert_eq!(text(&replaying, original()).await, "ok");
}

#[tokio::test(start_paused = true)]
async fn another_day_directory_and_git_state_do_not_matter() {
    let (_directory, path) = scratch();
    let asked = |cwd: &str, date: &str, branch: &str| {
        let system = format!(
            "# Environment\n- Working directory: {cwd}\n- Date: {date}\n- Git: branch {branch}\n"
        );
        // A path in an answer stays as it was when the answer was recorded.
        let answer = Message::new(Role::Assistant, &[Block::text("see /home/ann/proj/a.rs")]);
        let first = format!("# {cwd}/CLAUDE.md\nToday is {date}.");
        request(&system, &[user(&first), answer, user("go on")])
    };
    let recording = record(&path, scripted("default: ok"));
    text(&recording, asked("/home/ann/proj", "2026-11-15", "main")).await;
    let elsewhere = open(&path, None).unwrap();
    assert_eq!(text(&elsewhere, asked("/srv/ci", "2027-01-02", "dev")).await, "ok");
}

#[tokio::test(start_paused = true)]
async fn the_session_and_the_agent_do_not_matter_and_neither_does_a_model_left_open() {
    let (_directory, path) = scratch();
    let recording = record(&path, scripted("default: ok"));
    text(&recording, ask("hi")).await;
    let replaying = open(&path, None).unwrap();
    let other = Request {
        model: String::new(),
        session: session('2'),
        agent: Some(centurion_protocol::AgentId::new("a1")),
        ..ask("hi")
    };
    assert_eq!(text(&replaying, other).await, "ok");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_its_caller_gave_up_comes_after_the_one_that_was_whole() {
    let (_directory, path) = scratch();
    let inner = "default: {text: slow, stall_after_events: 2, times: 1}";
    let recording = record(&path, scripted(inner));
    let mut stream = recording.stream(ask("hi"));
    stream.next().await.unwrap().unwrap();
    drop(stream);
    assert_eq!(text(&recording, ask("hi")).await, "slow");
    let replaying = open(&path, None).unwrap();
    assert_eq!(text(&replaying, ask("hi")).await, "slow");
    let cut = text(&replaying, ask("hi")).await;
    assert!(cut.contains("its caller gave it up"), "{cut}");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stops_at_the_finish_has_recorded_a_whole_answer() {
    let (_directory, path) = scratch();
    let recording = record(&path, prepared(vec![vec![Ok(start()), Ok(finish())]]));
    let mut stream = recording.stream(ask("hi"));
    stream.next().await;
    stream.next().await;
    drop(stream);
    let replaying = open(&path, None).unwrap();
    assert_eq!(items(&replaying, ask("hi")).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_replay_waits_only_when_told_to() {
    let (_directory, path) = scratch();
    let inner = "default: {text: abc, latency_ms: 700, chunk_delay_ms: 50}";
    let recording = record(&path, scripted(inner));
    text(&recording, ask("hi")).await;
    let took = async |cassette: &Cassette| {
        let started = tokio::time::Instant::now();
        assert_eq!(text(cassette, ask("hi")).await, "abc");
        started.elapsed()
    };
    assert_eq!(took(&open(&path, None).unwrap()).await, Duration::ZERO);
    let timed = open(&path, None).unwrap().at_recorded_speed();
    // Five events; the delay after the last one moves nothing.
    assert_eq!(took(&timed).await, Duration::from_millis(700 + 4 * 50));
}

#[tokio::test(start_paused = true)]
async fn shared_history_is_stored_once() {
    let (_directory, path) = scratch();
    let recording = record(&path, scripted("default: ok"));
    let long = "word ".repeat(2000);
    text(&recording, ask(&long)).await;
    let answer = Message::new(Role::Assistant, &[Block::text("ok")]);
    text(&recording, request("be brief", &[user(&long), answer, user("more")])).await;
    let recorded = std::fs::read_to_string(&path).unwrap();
    assert_eq!(recorded.matches(&long).count(), 1);
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn only_the_owner_may_read_a_cassette() {
    use std::os::unix::fs::PermissionsExt;
    let (_directory, path) = scratch();
    let recording = record(&path, scripted("default: ok"));
    text(&recording, ask("hi")).await;
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_cassette_that_cannot_be_used_says_why() {
    let (directory, path) = scratch();
    let error = open(&path, None).err().unwrap().to_string();
    assert!(error.contains("run.jsonl=MODEL"), "{error}");
    let error = open(&directory.path().join("no/where.jsonl"), Some(scripted("default: ok")));
    assert!(matches!(error, Err(CassetteError::Write { .. })));
    std::fs::write(&path, "{\"cassette\":1}\n").unwrap();
    let error = open(&path, None).err().unwrap().to_string();
    assert!(error.contains("run.jsonl:1: this is no recorded exchange: missing field"), "{error}");
}

#[test]
fn a_spec_names_a_file_and_what_to_record() {
    assert_eq!(Spec::parse("a.jsonl"), Spec { path: Path::new("a.jsonl"), record: None });
    let both = Spec { path: Path::new("dir/a.jsonl"), record: Some("sonnet") };
    assert_eq!(Spec::parse("dir/a.jsonl=sonnet"), both);
    assert_eq!(Spec::parse("a.jsonl=").record, None);
}

fn any_event() -> impl Strategy<Value = StreamEvent> {
    let index = 0_usize..5;
    let usage = (any::<u64>(), any::<u64>(), any::<String>()).prop_map(|(input, output, tier)| {
        let mut usage = ReportedUsage::default();
        let sent = json!({"input_tokens": input, "output_tokens": output, "service_tier": tier});
        usage.update(sent.as_object().unwrap().clone());
        usage
    });
    let block = prop_oneof![
        Just(BlockStart::Text),
        Just(BlockStart::Thinking),
        any::<String>().prop_map(|data| BlockStart::RedactedThinking { data }),
        (any::<String>(), any::<String>())
            .prop_map(|(id, name)| BlockStart::ToolUse { id: ToolUseId::new(id), name }),
        any::<String>().prop_map(|text| {
            BlockStart::Other(
                RawValue::from_string(format!("{{ \"a\":\n{} }}", json!(text))).unwrap(),
            )
        }),
    ];
    let delta = (0..4, any::<String>()).prop_map(|(kind, text)| match kind {
        0 => Delta::Text(text),
        1 => Delta::Thinking(text),
        2 => Delta::Signature(text),
        _ => Delta::InputJson(text),
    });
    let stop = prop_oneof![
        Just(StopReason::EndTurn),
        Just(StopReason::Refusal),
        "[a-z]{12}".prop_map(StopReason::Other)
    ];
    prop_oneof![
        (any::<String>(), any::<String>(), usage.clone(), any::<Option<String>>()).prop_map(
            |(id, model, usage, request_id)| StreamEvent::Start { id, model, usage, request_id }
        ),
        (index.clone(), block).prop_map(|(index, block)| StreamEvent::BlockStart { index, block }),
        (index.clone(), delta).prop_map(|(index, delta)| StreamEvent::Delta { index, delta }),
        index.prop_map(|index| StreamEvent::BlockStop { index }),
        (stop, usage).prop_map(|(stop_reason, usage)| StreamEvent::Finish { stop_reason, usage }),
        Just(StreamEvent::Ping),
    ]
}

proptest! {
    #[test]
    fn any_recorded_sequence_replays_identically(
        events in prop::collection::vec(any_event(), 0..12),
        fails in any::<bool>(),
        prompt in "\\PC{1,40}",
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (_directory, path) = scratch();
            let mut answer: Vec<Item> = events.into_iter().map(Ok).collect();
            answer.extend(fails.then(|| Err(overloaded())));
            let recording = record(&path, prepared(vec![answer]));
            let recorded = items(&recording, ask(&prompt)).await;
            let replayed = items(&open(&path, None).unwrap(), ask(&prompt)).await;
            assert_eq!(replayed, recorded);
        });
    }
}
