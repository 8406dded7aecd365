//! Calls: side by side or in order, with sane answers to bad input.

use centurion_protocol::Outcome;
use serde_json::json;

use crate::bench::Bench;

#[tokio::test]
async fn results_stand_in_the_order_of_the_calls() {
    let bench = Bench::says(&json!([
        [
            {"tool": "Read", "input": {"file_path": "a.txt"}},
            {"tool": "Write", "input": {"file_path": "new.txt", "content": "n\n"}},
            {"tool": "Read", "input": {"file_path": "new.txt"}},
            {"tool": "Read", "input": {"file_path": "a.txt"}},
        ],
        "done"
    ]));
    bench.file("a.txt", "alpha\n");
    let told = bench.run("go").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    let results = told.requests[1][2]["content"].as_array().unwrap().clone();
    let text = |n: usize| results[n]["content"].as_str().unwrap().to_owned();
    assert!(text(0).contains("alpha") && text(3).contains("alpha"));
    assert!(text(2).contains("\tn"), "a read after a write sees it: {}", text(2));
}

#[tokio::test]
async fn bad_calls_are_answered_and_the_run_continues() {
    let bench = Bench::says(&json!([
        [
            {"tool": "Frobnicate", "input": {}},
            {"tool": "Read", "input": {}},
            {"tool": "Read", "input": {"file_path": 7}},
            {"tool": "Read", "input": {"file_path": "a.txt", "colour": "red"}},
            {"tool": "AskUserQuestion", "input": {"questions": []}},
        ],
        "done"
    ]));
    let told = bench.run("go").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    let results = told.results();
    assert!(results.iter().all(|(_, is_error)| *is_error), "{results:?}");
    assert!(results[0].0.contains("No such tool available: Frobnicate"));
    assert!(results[1].0.contains("file_path"), "{}", results[1].0);
    assert!(results[3].0.contains("colour"), "{}", results[3].0);
    assert!(results[4].0.contains("no user can answer"), "{}", results[4].0);
}

#[tokio::test]
async fn advertised_tools_are_the_callable_ones() {
    // I-2
    let mut bench = Bench::says(
        &json!([[{"tool": "Write", "input": {"file_path": "x", "content": "y"}}], "done"]),
    );
    bench.deny = "Write";
    let told = bench.run("go").await;
    let tools = told.events[0]["tools"].as_array().unwrap().clone();
    assert!(!tools.contains(&json!("Write")) && tools.contains(&json!("Edit")));
    assert!(told.results()[0].0.contains("Write is not available"));
    assert!(!bench.project().join("x").exists());
}

#[tokio::test]
async fn every_step_is_in_the_transcript_under_the_id_that_was_shown() {
    let bench = Bench::says(&json!([
        {"blocks": [{"text": "looking"}, {"tool": "Read", "input": {"file_path": "a.txt"}}]},
        "done"
    ]));
    bench.file("a.txt", "alpha\n");
    let told = bench.run("go").await;
    let lines = told.lines();
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["user", "assistant", "assistant", "user", "assistant", "system"]);
    assert_eq!(lines[0]["message"]["content"], "go", "a prompt is a plain string");
    for event in
        told.events.iter().filter(|event| event["type"] == "assistant" || event["type"] == "user")
    {
        assert!(lines.iter().any(|line| line["uuid"] == event["uuid"]));
    }
    for pair in lines.windows(2) {
        assert_eq!(pair[1]["parentUuid"], pair[0]["uuid"]);
    }
    assert_eq!(lines[3]["sourceToolAssistantUUID"], lines[2]["uuid"]);
    assert_eq!(lines[3]["toolUseResult"]["type"], "text");
    assert_eq!(lines[5]["data"]["outcome"], "completed");
}

#[tokio::test]
async fn a_transcript_is_as_large_as_what_was_said() {
    let said = "word ".repeat(8_000);
    let step = json!({"blocks": [{"text": said}], "chunk_chars": 2});
    let mut bench = Bench::says(&json!([step]));
    bench.partial_messages = true;
    let told = bench.run("talk").await;
    assert!(told.of("stream_event", None).len() > 10_000, "it came in many pieces");
    let size = usize::try_from(told.transcript.metadata().unwrap().len()).unwrap();
    assert!(size < said.len() + 4_000, "{size} bytes for {} said", said.len());
}
