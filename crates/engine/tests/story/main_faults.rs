//! Faults of the program in the main agent: a view or a hook that panics ends the session with a result, and leaves a
//! transcript that can be resumed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use centurion_engine::{Session, Start, ToolServer, View};
use centurion_protocol::sdk::Event;
use centurion_protocol::{Outcome, SeededWorld, World as _};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::agent_stage::starts;
use crate::bench::{Bench, Told, Watcher};
use crate::hook_stage::Stage;

fn read() -> Value {
    json!({"tool": "Read", "input": {"file_path": "a.txt"}})
}

/// A main agent that has a child in the background when it reads a file.
fn busy_lead() -> Bench {
    let mut bench = Bench::cast(&json!({
        "lead": [[starts("@@slow")], [{"text": "reading"}, read()], "read it", "heard", "heard"],
        "slow": [{"text": "never", "latency_ms": 3_600_000}, "later after all"],
        "again": ["it works again", "heard"],
    }));
    bench.file("a.txt", "alpha\n");
    bench.knows_agents(|_| {});
    bench
}

/// Breaks at every event that has all of these texts, or only at the first one.
struct BreaksAt {
    inner: Arc<dyn View>,
    texts: &'static [&'static str],
    is_done: AtomicBool,
    always: bool,
}

impl View for BreaksAt {
    fn show(&self, event: &Event) {
        self.inner.show(event);
        let text = serde_json::to_string(event).unwrap();
        if self.texts.iter().all(|it| text.contains(it)) {
            let was_done = self.is_done.swap(true, Ordering::SeqCst);
            assert!(was_done && !self.always, "the view broke");
        }
    }
}

fn breaking(mut bench: Bench, texts: &'static [&'static str], always: bool) -> Bench {
    bench.also(move |options| {
        let inner = Arc::clone(&options.view);
        let is_done = AtomicBool::new(false);
        options.view = Arc::new(BreaksAt { inner, texts, is_done, always });
    });
    bench
}

/// The main agent ended as a fault, its children have ended, and all of it is recorded and shown.
fn assert_ended_by_fault(told: &Told, reason: &str, case: &str) {
    assert_eq!(told.outcome, Some(Outcome::Fault), "{case}");
    let results = told.of("result", None);
    let last = results.last().unwrap_or_else(|| panic!("{case}: a result is shown"));
    assert_eq!((&last["outcome"], &last["is_error"]), (&json!("fault"), &json!(true)), "{case}");
    let said = last["errors"].to_string();
    assert!(said.contains("ended by a fault of the program"), "{case}: {said}");
    assert!(said.contains(reason), "{case}: {said}");
    let transcript = std::fs::read_to_string(&told.transcript).unwrap();
    assert_eq!(transcript.matches("\"outcome\":\"fault\"").count(), 1, "{case}: {transcript}");
    assert_children_ended(told, case);
}

fn assert_children_ended(told: &Told, case: &str) {
    for id in told.agent_ids() {
        let record = std::fs::read_to_string(told.agent_transcript(&id)).unwrap();
        let ends = record.matches("\"subtype\":\"agent_end\"").count();
        assert_eq!(ends, 1, "{case}: {record}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_view_that_breaks_ends_the_main_agent_as_a_fault_and_a_resume_works() {
    // I-3
    let breaks: [(&[&str], usize); 4] = [
        (&["\"init\""], 0),
        (&["\"assistant\"", "@@slow"], 0),
        (&["\"assistant\"", "a.txt"], 1),
        (&["\"user\"", "alpha"], 1),
    ];
    for (texts, children) in breaks {
        for always in [false, true] {
            let case = format!("{texts:?}, always: {always}");
            let mut bench = breaking(busy_lead(), texts, always);
            let told = bench.run("@@lead").await;
            assert_ended_by_fault(&told, "the view broke", &case);
            assert_eq!(told.agent_ids().len(), children, "{case}");
            bench.adjust = Box::new(|_| {});
            bench.knows_agents(|_| {});
            let later = bench.resume(&told, "@@again").await;
            assert_eq!(later.outcome, Some(Outcome::Completed), "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_shown_is_no_good_end_and_ends_the_children() {
    for always in [false, true] {
        let bench = breaking(busy_lead(), &["\"result\"", "result_index"], always);
        let told = bench.run("@@lead").await;
        assert_eq!(told.outcome, Some(Outcome::Fault), "always: {always}");
        assert_eq!(told.agent_ids().len(), 1);
        assert_children_ended(&told, "result");
        let transcript = std::fs::read_to_string(&told.transcript).unwrap();
        assert!(transcript.contains("\"outcome\":\"completed\""), "the run itself was good");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_breaks_ends_the_main_agent_as_a_fault() {
    // I-3
    for event in ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"] {
        let stage = Stage::new(move |told| {
            let is_its = told["hook_event_name"] == event
                && told["agent_id"].is_null()
                && (told["tool_name"].is_null() || told["tool_name"] == "Read");
            assert!(!is_its, "the hook broke");
            Some(json!({}))
        });
        let bench = stage.set(busy_lead());
        let told = bench.run("@@lead").await;
        assert_ended_by_fault(&told, "the hook broke", event);
        let hears_end = stage.take().iter().any(|it| it["hook_event_name"] == "SessionEnd");
        assert!(hears_end, "{event}: hooks are told of the end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_of_the_sessions_end_that_breaks_leaves_the_outcome_alone() {
    let stage = Stage::new(|told| {
        assert!(told["hook_event_name"] != "SessionEnd", "the hook broke");
        Some(json!({}))
    });
    let bench = Bench::says(&json!(["done"]));
    let told = stage.set(bench).run("hello").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    assert_eq!(told.of("result", None).len(), 1);
}

#[tokio::test]
async fn a_served_call_that_a_hook_breaks_is_answered() {
    let stage = Stage::new(|told| {
        assert!(told["hook_event_name"] != "PreToolUse", "the hook broke");
        Some(json!({}))
    });
    let bench = stage.set(Bench::says(&json!([])));
    bench.file("a.txt", "alpha\n");
    let start = Start::New(SeededWorld::new(1).session_id());
    let options = bench.options(start, None, &Arc::new(Watcher::default()));
    let server = ToolServer::open(options).await.unwrap();
    let input = to_raw_value(&json!({"file_path": "a.txt"})).unwrap();
    let reply = server.call("Read", input, None, &CancellationToken::new()).await.unwrap();
    assert!(reply.is_error);
    let said = format!("{:?}", reply.content);
    assert!(said.contains("ended by a fault of the program: the hook broke"), "{said}");
    server.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_fault_while_the_main_agent_is_idle_ends_the_session_with_a_result() {
    let mut bench = Bench::says(&json!(["done", "run the tests"]));
    bench.also(|options| options.suggests_prompts = true);
    let bench = breaking(bench, &["prompt_suggestion"], false);
    let told = bench.run("hello").await;
    assert_ended_by_fault(&told, "the view broke", "suggestion");
    let outcomes = told.of("result", None);
    let outcomes: Vec<&Value> = outcomes.iter().map(|result| &result["outcome"]).collect();
    assert_eq!(outcomes, ["completed", "fault"]);
}

#[test]
fn a_session_runs_in_a_task_of_any_thread() {
    fn assert_send(_: impl Send) {}
    // Never called: that it compiles is the test.
    let _ = |session: &'static mut Session| assert_send(session.run());
}
