//! Limits hold, and cancelling at any point leaves a history that can continue.

use std::sync::Arc;
use std::time::Duration;

use centurion_engine::Start;
use centurion_protocol::{Block, Outcome, SeededWorld, World};
use serde_json::json;

use crate::bench::{Bench, Watcher};

const READ: &str = "a.txt";

fn endless() -> Bench {
    let step = json!([{"tool": "Read", "input": {"file_path": READ}}]);
    let bench = Bench::says(&json!(vec![step; 60]));
    bench.file(READ, "text\n");
    bench
}

#[tokio::test]
async fn turns_are_limited() {
    let mut bench = endless();
    bench.max_turns = Some(3);
    let told = bench.run("go on").await;
    assert_eq!(told.outcome, Some(Outcome::MaxTurns));
    assert_eq!(told.requests.len(), 3);
    let result = told.result();
    assert_eq!((&result["subtype"], &result["num_turns"]), (&json!("error_max_turns"), &json!(3)));
}

#[tokio::test]
async fn money_is_limited_and_zero_means_none() {
    let mut bench = endless();
    bench.max_budget = Some(0.0);
    let none = bench.run("go on").await;
    assert_eq!((none.outcome, none.requests.len()), (Some(Outcome::Budget), 0));
    assert_eq!(none.result()["subtype"], "error_max_budget_usd");
    let mut bench = endless();
    bench.max_budget = Some(0.20);
    let some = bench.run("go on").await;
    assert_eq!(some.outcome, Some(Outcome::Budget));
    assert!(some.requests.len() > 1 && some.requests.len() < 60);
    assert!(some.result()["total_cost_usd"].as_f64().unwrap() <= 0.20);
}

#[tokio::test]
async fn a_conversation_that_does_not_fit_the_window_is_not_sent() {
    let bench = Bench { model: "tiny-model", ..Bench::says(&json!(["never said"])) };
    let told = bench.run(&"word ".repeat(200_000)).await;
    assert_eq!((told.outcome, told.requests.len()), (Some(Outcome::ContextOverflow), 0));
    assert_eq!(told.result()["terminal_reason"], "prompt_too_long");
}

#[tokio::test(start_paused = true)]
async fn cancelling_at_any_moment_leaves_a_history_that_can_continue() {
    let steps = json!([
        {"latency_ms": 100, "chunk_delay_ms": 10, "chunk_chars": 2, "blocks": [
            {"text": "reading now"},
            {"tool": "Read", "input": {"file_path": READ}},
            {"tool": "Read", "input": {"file_path": READ}},
        ]},
        {"latency_ms": 100, "chunk_delay_ms": 10, "chunk_chars": 2, "blocks": [{"text": "all done here"}]},
        "resumed"
    ]);
    for after in (0..420).step_by(7) {
        let bench = Bench::says(&steps);
        bench.file(READ, "text\n");
        let watcher = Arc::new(Watcher::default());
        let id = SeededWorld::new(9).session_id();
        let mut session = bench.open(Start::New(id), None, &watcher).await;
        let handle = session.handle();
        handle.submit(SeededWorld::new(10).record_id(), vec![Block::text("read it")]);
        handle.close();
        let outcome = {
            let mut running = std::pin::pin!(session.run());
            tokio::select! {
                outcome = &mut running => outcome,
                () = tokio::time::sleep(Duration::from_millis(after)) => {
                    handle.interrupt();
                    running.await
                }
            }
        };
        let told = bench.told(&session, outcome, &watcher);
        // The transcript is open for one writer only, for as long as the session can be reached.
        drop((session, handle));
        if outcome != Some(Outcome::Completed) {
            assert_eq!(outcome, Some(Outcome::Cancelled), "after {after} ms");
            assert!(told.result()["terminal_reason"].as_str().unwrap().starts_with("aborted_"));
        }
        // The bench checks each request; an invalid history would fail here.
        let again = Bench { dir: bench.dir, ..Bench::new(json!({"default": "resumed"})) };
        let resumed = again.resume(&told, "go on").await;
        assert_eq!(resumed.outcome, Some(Outcome::Completed), "after {after} ms");
    }
}
