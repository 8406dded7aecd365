//! Calls that a hook puts off, and servers that are required.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use centurion_engine::{RequireError, Start};
use centurion_hooks::Event;
use centurion_protocol::{Outcome, SeededWorld, World as _};
use serde_json::{Value, json};

use crate::bench::{Bench, Watcher};
use crate::hook_stage::Stage;

/// Hooks that put every call off until it is decided.
fn undecided() -> (Arc<Stage>, Arc<AtomicBool>) {
    let is_decided = Arc::new(AtomicBool::new(false));
    let decided = Arc::clone(&is_decided);
    let stage = Stage::new(move |told| {
        let defers = told["hook_event_name"] == "PreToolUse" && !decided.load(Ordering::SeqCst);
        let output = json!({"hookEventName": "PreToolUse", "permissionDecision": "defer"});
        Some(if defers { json!({"hookSpecificOutput": output}) } else { json!({}) })
    });
    (stage, is_decided)
}

fn write(name: &str) -> Value {
    json!({"tool": "Write", "input": {"file_path": name, "content": "x"}})
}

#[tokio::test]
async fn a_call_that_was_put_off_runs_once_when_it_is_decided() {
    let (stage, is_decided) = undecided();
    let bench = stage.set(Bench::says(&json!([[write("a.txt")], "done"])));
    let first = bench.run("go").await;
    assert_eq!(first.outcome, Some(Outcome::Deferred));
    let result = first.result();
    assert_eq!(result["subtype"], "success");
    assert_eq!(result["stop_reason"], "tool_deferred");
    assert_eq!(result["terminal_reason"], "tool_deferred");
    assert_eq!(result["deferred_tool_use"]["name"], "Write");
    assert!(!bench.project().join("a.txt").exists());
    // Still undecided: it waits on, and nothing is said to the model.
    let second = bench.resume(&first, "and now?").await;
    assert_eq!(second.outcome, Some(Outcome::Deferred));
    assert!(second.requests.is_empty());
    is_decided.store(true, Ordering::SeqCst);
    let third = bench.resume(&second, "go on").await;
    assert_eq!(third.outcome, Some(Outcome::Completed));
    assert!(bench.project().join("a.txt").exists());
    let told = stage.heard(Event::PreToolUse);
    assert_eq!(told.len(), 3, "asked each time");
    assert!(told.iter().all(|it| it["tool_use_id"] == told[0]["tool_use_id"]));
    let request = third.requests[0].to_string();
    assert_eq!(request.matches("go on").count(), 1, "{request}");
    assert!(!request.contains("and now?"), "{request}");
}

#[tokio::test]
async fn one_of_several_calls_is_asked_about_instead() {
    let (stage, _) = undecided();
    let bench = stage.set(Bench::says(&json!([[write("a.txt"), write("b.txt")], "done"])));
    let told = bench.run("go").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    for (text, is_error) in told.results() {
        assert!(is_error && text.contains("a hook wants a person to decide"), "{text}");
    }
}

#[tokio::test]
async fn a_call_whose_tool_is_gone_ends_the_run_and_leaves_history_valid() {
    let (stage, is_decided) = undecided();
    let call = json!({"tool": "mcp__desk__greet", "input": {}});
    let mut bench = stage.set(Bench::says(&json!([[call], "done"])));
    bench.allow = "mcp__desk";
    let first = bench.run("go").await;
    assert_eq!(first.outcome, Some(Outcome::Deferred));
    is_decided.store(true, Ordering::SeqCst);
    bench.adjust = Box::new(|_| {});
    let second = bench.resume(&first, "go on").await;
    assert_eq!(second.outcome, Some(Outcome::DeferredUnavailable));
    assert_eq!(second.result()["terminal_reason"], "tool_deferred_unavailable");
    let third = bench.resume(&second, "what now?").await;
    assert_eq!(third.outcome, Some(Outcome::Completed));
}

#[tokio::test]
async fn servers_that_are_required_must_be_there_with_tools() {
    // D-16
    let stage = Stage::silent();
    let bench = stage.set(Bench::says(&json!(["done"])));
    let start = Start::New(SeededWorld::new(9).session_id());
    let session = bench.open(start, None, &Arc::new(Watcher::default())).await;
    let handle = session.handle();
    let require = async |patterns: &[&str]| {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        handle.require_servers(&patterns, Duration::from_secs(30)).await
    };
    assert_eq!(require(&["desk"]).await, Ok(()));
    assert_eq!(require(&["DE*"]).await, Ok(()));
    assert_eq!(
        require(&["desk", "files"]).await.unwrap_err().to_string(),
        "the MCP server `files` is required and cannot be used: no server has this name"
    );
    handle.switch_server("desk", false);
    let pattern = "desk".to_owned();
    assert_eq!(require(&["desk"]).await, Err(RequireError::NotConfigured { pattern }));
}
