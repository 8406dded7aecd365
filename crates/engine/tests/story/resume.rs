//! Continuing a session: after its end, in a copy, and after a crash at any record.

use centurion_engine::Start;
use centurion_protocol::{Outcome, SeededWorld, World};
use serde_json::json;

use crate::bench::Bench;

fn worker() -> Bench {
    let bench = Bench::new(json!({
        "scripts": {
            "work": [
                {"blocks": [
                    {"thinking": "hm", "signature": "c2ln"},
                    {"text": "reading"},
                    {"tool": "Read", "input": {"file_path": "a.txt"}},
                    {"tool": "Read", "input": {"file_path": "b.txt"}}
                ]},
                [{"tool": "Edit", "input": {"file_path": "a.txt", "old_string": "one", "new_string": "two"}}],
                "all done"
            ],
            "more": ["went on"]
        }
    }));
    bench.file("a.txt", "one\n");
    bench.file("b.txt", "b\n");
    bench
}

#[tokio::test]
async fn a_resumed_session_sends_the_same_history_byte_for_byte() {
    let bench = worker();
    let first = bench.run("@@work").await;
    let second = bench.resume(&first, "@@more").await;
    assert_eq!(second.outcome, Some(Outcome::Completed));
    let (before, after) = (first.requests.last().unwrap(), second.requests.last().unwrap());
    let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
    assert_eq!(before[..], after[..before.len()], "what was sent is a prefix of what is sent");
    assert_eq!(after.len(), before.len() + 2);
    assert_eq!(second.session, first.session);
}

#[tokio::test]
async fn a_fork_leaves_the_first_session_as_it_was() {
    let bench = worker();
    let first = bench.run("@@work").await;
    let before = std::fs::read(&first.transcript).unwrap();
    let id = SeededWorld::new(77).session_id();
    let start = Start::Fork { from: first.session, id };
    let fork = bench.start(start, Some(first.transcript.clone()), "@@more").await;
    assert_eq!(fork.outcome, Some(Outcome::Completed));
    assert_eq!(std::fs::read(&first.transcript).unwrap(), before);
    assert!(fork.lines().iter().all(|line| line["sessionId"] == id.to_string()));
    assert_eq!(fork.requests[0].as_array().unwrap().len(), 7);
}

#[tokio::test]
async fn after_a_crash_at_any_byte_of_the_transcript_the_session_continues() {
    // S-231 is built on this: a conversation is a function of its transcript.
    let bench = worker();
    let first = bench.run("@@work").await;
    let whole = std::fs::read(&first.transcript).unwrap();
    let step = (whole.len() / 150).max(1);
    for cut in (1..whole.len()).step_by(step).chain(line_ends(&whole)) {
        std::fs::write(&first.transcript, &whole[..cut]).unwrap();
        let resumed = bench.resume(&first, "@@more").await;
        assert_eq!(resumed.outcome, Some(Outcome::Completed), "cut at byte {cut}");
    }
}

fn line_ends(text: &[u8]) -> Vec<usize> {
    text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect()
}

#[tokio::test]
async fn a_call_cut_off_by_a_crash_is_answered_in_the_record_as_well() {
    let bench = worker();
    let first = bench.run("@@work").await;
    let text = std::fs::read_to_string(&first.transcript).unwrap();
    // Up to the Edit call, without its result.
    let cut: Vec<&str> = text.lines().take(8).collect();
    assert!(cut[7].contains("tool_use") && cut[7].contains("Edit"), "{}", cut[7]);
    std::fs::write(&first.transcript, cut.join("\n") + "\n").unwrap();
    let resumed = bench.resume(&first, "@@more").await;
    let results = resumed.results();
    assert!(results[0].1 && results[0].0.contains("check before you repeat it"));
    let lines = resumed.lines();
    assert_eq!(lines[8]["message"]["content"][0]["type"], "tool_result");
    let third = bench.resume(&resumed, "@@more").await;
    let (before, after) =
        (resumed.requests[0].as_array().unwrap(), third.requests[0].as_array().unwrap());
    assert_eq!(before[..], after[..before.len()]);
}
