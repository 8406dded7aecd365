//! What a compaction leaves in the record and tells observers, and when it does not begin.

use std::time::Duration;

use centurion_hooks::Event;
use centurion_protocol::Outcome;
use serde_json::{Value, json};

use crate::bench::{Bench, Told};
use crate::compaction::{
    boundaries, full_child, good, is_compaction, much, read, telling, too_long, with_full_child,
};
use crate::hook_stage::{Stage, every_event};

fn of(lines: &[Value], fits: impl Fn(&Value) -> bool) -> Vec<&Value> {
    lines.iter().filter(|line| fits(line)).collect()
}

fn is_boundary(line: &Value) -> bool {
    line["subtype"] == "compact_boundary"
}

fn is_summary(line: &Value) -> bool {
    line["isCompactSummary"] == true
}

/// The lines of the transcript of the only agent that was started, and its id.
fn lines_of_child(told: &Told) -> (Vec<Value>, String) {
    let id = told.of("system", Some("task_started"))[0]["task_id"].as_str().unwrap().to_owned();
    let path = told.transcript.with_extension("").join(format!("subagents/agent-{id}.jsonl"));
    let text = std::fs::read_to_string(path).unwrap();
    (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), id)
}

#[tokio::test(start_paused = true)]
async fn a_childs_compaction_is_recorded_and_told_as_its_own() {
    // context.md 4
    let (_bench, told) = with_full_child().await;
    let (lines, id) = lines_of_child(&told);
    let records = of(&lines, |line| is_boundary(line) || is_summary(line));
    assert_eq!(records.len(), 2, "{records:?}");
    for record in records {
        assert_eq!((&record["isSidechain"], &record["agentId"]), (&json!(true), &json!(id)));
    }
    let summary = of(&lines, is_summary)[0];
    assert_eq!(summary["isVisibleInTranscriptOnly"], true);
    let status = told.of("system", Some("status"));
    let status: Vec<&&Value> = status
        .iter()
        .filter(|it| it["status"] == "compacting" || it["compact_result"].is_string())
        .collect();
    assert_eq!(status.len(), 2, "{status:?}");
    assert!(status.iter().all(|it| it["agent_id"] == json!(id)), "{status:?}");
}

#[tokio::test(start_paused = true)]
async fn boundaries_say_how_long_they_took_what_is_dropped_in_all_and_what_is_kept() {
    // context.md 4
    let slow = json!({"text": "<summary>SUMMARY-1</summary>", "latency_ms": 1_500});
    let mut steps = much();
    steps.pop();
    steps.extend(much());
    let bench = telling(40_000, &[slow], &steps);
    let told = bench.run("PROMPT-WORDS").await;
    let lines = told.lines();
    let all = of(&lines, is_boundary);
    assert!(all.len() >= 2, "{}", told.result());
    let mut dropped = 0;
    for boundary in &all {
        let data = &boundary["compactMetadata"];
        let number = |name: &str| data[name].as_u64().unwrap();
        dropped += number("preTokens") - number("postTokens");
        assert_eq!(number("cumulativeDroppedTokens"), dropped, "{data}");
        assert!((1_500..60_000).contains(&number("durationMs")), "{data}");
        // The newest round is a part of what is kept, in its order, behind the same record.
        let (segment, kept) = (&data["preservedSegment"], &data["preservedMessages"]);
        assert_eq!(segment["anchorUuid"], kept["anchorUuid"], "{data}");
        assert_eq!(kept["uuids"], kept["allUuids"], "{data}");
        let ids = kept["uuids"].as_array().unwrap();
        let place = |id: &Value| ids.iter().position(|it| it == id).unwrap();
        let (head, tail) = (place(&segment["headUuid"]), place(&segment["tailUuid"]));
        assert!(head < tail && tail == ids.len() - 1, "{data}");
        let line = |id: &Value| lines.iter().find(|line| line["uuid"] == *id).unwrap();
        assert_eq!(line(&ids[head])["type"], "assistant", "{data}");
        let said = &line(&ids[0])["message"]["content"];
        assert_eq!(said, "PROMPT-WORDS", "the running prompt is kept before it: {data}");
    }
    let told_of = told.of("system", Some("compact_boundary"));
    assert_eq!(told_of.len(), all.len());
    for (event, boundary) in told_of.iter().zip(&all) {
        assert_eq!(
            event["compact_metadata"]["cumulative_dropped_tokens"],
            boundary["compactMetadata"]["cumulativeDroppedTokens"]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_request_that_is_too_long_is_an_error_and_no_compaction() {
    // context.md 1
    // The provider says so, or it would not be sent.
    for refuses in [true, false] {
        let stage = Stage::new(|_| Some(json!({})));
        let window = if refuses { 200_000 } else { 40_000 };
        let mut bench = telling(window, &[good()], &[too_long(), json!("Next.")]);
        let staged = std::sync::Arc::clone(&stage);
        bench.also(move |options| staged.extend(options, every_event()));
        let prompt = if refuses { "short".to_owned() } else { "word ".repeat(40_000) };
        let told = bench.run(&prompt).await;
        assert_eq!(told.outcome, Some(Outcome::ContextOverflow), "{}", told.result());
        assert_eq!(told.result()["terminal_reason"], "prompt_too_long");
        let errors = told.result()["errors"].to_string();
        assert!(errors.contains("too long") || errors.contains("more than the 40000"), "{errors}");
        assert!(stage.heard(Event::PreCompact).is_empty());
        let status = told.of("system", Some("status"));
        assert!(status.iter().all(|it| it["status"] != "compacting"), "{status:?}");
        assert!(!told.asked.iter().any(is_compaction) && boundaries(&told) == 0);
    }
}

#[tokio::test(start_paused = true)]
async fn there_is_nothing_to_compact_in_a_new_session_and_that_is_no_error() {
    // context.md 4
    let told = telling(200_000, &[good()], &[]).run("/compact").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    assert_eq!(told.result()["result"], "There is nothing to compact yet.");
    assert_eq!((&told.result()["num_turns"], told.asked.len()), (&json!(0), 0));
    assert!(told.of("system", Some("status")).iter().all(|it| it["status"] != "compacting"));
}

#[tokio::test(start_paused = true)]
async fn a_summary_without_an_end_is_given_up_before_it_has_cost_much() {
    // D-53; it could not be taken
    let endless = json!({"text": "word ".repeat(400_000), "chunk_chars": 10_000});
    let steps = [read(), read(), json!("Done.")];
    let bench = telling(200_000, &[endless], &steps);
    let told = bench.run("go").await;
    let later = Bench { seed: 30, ..bench };
    let compacted = later.resume(&told, "/compact").await;
    assert_eq!(compacted.outcome, Some(Outcome::CompactionFailed), "{}", compacted.result());
    let said = compacted.result().to_string();
    assert!(said.contains("longer than about 80000 tokens"), "{said}");
    let usage = compacted.result()["modelUsage"].to_string();
    let output: u64 = compacted.result()["modelUsage"]
        .as_object()
        .unwrap()
        .values()
        .map(|it| it["outputTokens"].as_u64().unwrap())
        .sum();
    assert!(output < 90_000, "{usage}");
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_broke_off_and_is_given_again_is_not_too_long_for_what_was_said_twice() {
    let analysis = "word ".repeat(36_000);
    let flaky = json!({
        "text": format!("<analysis>{analysis}</analysis><summary>SUMMARY-1.</summary>"),
        "chunk_chars": 10_000, "reset_after_events": 18, "times": 1,
    });
    let bench = telling(200_000, &[flaky], &[read(), read(), json!("Done.")]);
    let told = bench.run("go").await;
    let later = Bench { seed: 30, ..bench };
    let compacted = later.resume(&told, "/compact").await;
    assert_eq!(compacted.outcome, Some(Outcome::Completed), "{}", compacted.result());
    assert_eq!(boundaries(&compacted), 1);
}

#[tokio::test(start_paused = true)]
async fn a_child_whose_summary_takes_long_is_not_taken_for_stalled() {
    let slow = json!({"text": "<summary>SUMMARY-1.</summary>", "latency_ms": 60_000});
    let mut bench = full_child(&slow);
    bench.knows_agents(|agents| agents.rules.stall = Some(Duration::from_secs(20)));
    let told = bench.run("go").await;
    assert_eq!(told.outcome, Some(Outcome::Completed), "{}", told.result());
    assert_eq!(boundaries(&told), 1, "{:?}", told.results());
    assert!(told.results()[0].0.contains("Report."), "{:?}", told.results());
}
