//! The same story under every fault ends with the same answer and the same files.

use centurion_protocol::Outcome;
use serde_json::{Value, json};

use crate::bench::{Bench, Told};

/// Reads a file, changes it, and says what was done; `fault` is put into the second step.
fn story(fault: &Value) -> Bench {
    let mut edit = json!({"blocks": [
        {"text": "now the change"},
        {"tool": "Edit", "input": {"file_path": "a.txt", "old_string": "one", "new_string": "two"}},
    ]});
    edit.as_object_mut().unwrap().extend(fault.as_object().unwrap().clone());
    let bench =
        Bench::says(&json!([[{"tool": "Read", "input": {"file_path": "a.txt"}}], edit, "done"]));
    bench.file("a.txt", "one\n");
    bench
}

fn content(bench: &Bench) -> String {
    std::fs::read_to_string(bench.project().join("a.txt")).unwrap()
}

/// What was said and done, without the ids and places that differ from story to story.
fn said(bench: &Bench, told: &Told) -> Vec<Value> {
    let project = bench.project().display().to_string();
    told.events
        .iter()
        .filter(|event| event["type"] == "assistant" || event["type"] == "user")
        .map(|event| {
            let mut block = event["message"]["content"][0].clone();
            for key in ["id", "tool_use_id"] {
                block.as_object_mut().unwrap().remove(key);
            }
            serde_json::from_str(&block.to_string().replace(&project, "<project>")).unwrap()
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn every_fault_that_passes_leaves_no_trace_but_a_retry() {
    let calm = story(&json!({}));
    let expected = calm.run("change it").await;
    assert_eq!(expected.outcome, Some(Outcome::Completed));
    assert_eq!(content(&calm), "two\n");
    for fault in [
        json!({"error": {"status": 429, "type": "rate_limit_error", "headers": {"retry-after": "2"}, "times": 2}}),
        json!({"error": {"status": 529, "type": "overloaded_error", "times": 3}}),
        json!({"error": {"status": 500, "type": "api_error", "times": 1}}),
        json!({"error": {"status": 503, "type": "api_error", "times": 1}}),
        json!({"reset_after_events": 0, "times": 1}),
        json!({"reset_after_events": 3, "times": 2}),
        json!({"malformed_after_events": 3, "times": 1}),
        json!({"stream_error_after_events": 4, "times": 1}),
        json!({"stall_after_events": 0, "stall_ms": 100_000_000, "times": 1}),
        json!({"stall_after_events": 4, "stall_ms": 100_000_000, "times": 1}),
    ] {
        let bench = story(&fault);
        let told = bench.run("change it").await;
        assert_eq!(told.outcome, Some(Outcome::Completed), "{fault}");
        assert_eq!(content(&bench), "two\n", "{fault}");
        assert_eq!(
            said(&bench, &told),
            said(&calm, &expected),
            "nothing is said or done twice: {fault}"
        );
        let retries = told.of("system", Some("api_retry"));
        assert!(!retries.is_empty(), "a retry can be seen: {fault}");
        assert!(retries[0]["max_retries"] == 10 && retries[0]["attempt"] == 1);
        let notes = told.lines().iter().filter(|line| line["subtype"] == "api_retry").count();
        assert_eq!(notes, retries.len(), "and it is in the journal");
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_does_not_recover_ends_the_run_honestly() {
    for (fault, status) in [
        (json!({"error": {"status": 529, "type": "overloaded_error"}}), Some(529)),
        (json!({"error": {"status": 429, "type": "rate_limit_error"}}), Some(429)),
        (json!({"reset_after_events": 3}), None),
        (json!({"malformed_after_events": 3}), None),
    ] {
        let mut bench = story(&fault);
        bench.retries = 3;
        let told = bench.run("change it").await;
        assert_eq!(told.outcome, Some(Outcome::ApiError), "{fault}");
        assert_eq!(told.of("system", Some("api_retry")).len(), 3);
        let result = told.result();
        assert_eq!(
            (&result["is_error"], &result["terminal_reason"]),
            (&json!(true), &json!("api_error"))
        );
        assert_ne!(result["subtype"], "success");
        assert_eq!(result["api_error_status"].as_u64(), status, "{fault}");
        assert_eq!(content(&bench), "one\n", "no call of a broken answer was run");
        let synthetic = told.of("assistant", None);
        assert_eq!(synthetic.last().unwrap()["message"]["model"], "<synthetic>");
        // The session can continue as if nothing had happened.
        let again = Bench { dir: bench.dir, ..story(&json!({})) };
        let resumed = again.resume(&told, "try again").await;
        assert_eq!(resumed.outcome, Some(Outcome::Completed));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_key_and_a_bad_request_are_not_retried() {
    for (status, kind) in
        [(401, "authentication_error"), (403, "permission_error"), (400, "invalid_request_error")]
    {
        let told = Bench::says(&json!([{"error": {"status": status, "type": kind}, "blocks": []}]))
            .run("hi")
            .await;
        assert_eq!(told.outcome, Some(Outcome::ApiError));
        assert!(told.of("system", Some("api_retry")).is_empty(), "{status}");
        assert_eq!(told.requests.len(), 1, "{status}");
        assert_eq!(told.result()["api_error_status"], status);
    }
}

#[tokio::test(start_paused = true)]
async fn an_overloaded_model_gives_way_to_the_fallback() {
    let mut bench = Bench::new(json!({"rules": [
        {"match": {"model": "opus"}, "respond": {"error": {"status": 529, "type": "overloaded_error"}, "blocks": []}},
        {"match": {"model": "haiku"}, "respond": "from the small one"},
    ]}));
    bench.retries = 2;
    bench.fallback = vec!["claude-haiku-5-5".to_owned()];
    let told = bench.run("hi").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    assert_eq!(told.result()["result"], "from the small one");
    assert!(told.result()["modelUsage"].get("claude-haiku-5-5").is_some());
    assert_eq!(told.of("system", Some("informational")).len(), 1, "and the user is told");
}

#[tokio::test(start_paused = true)]
async fn text_of_an_answer_that_never_finished_is_kept() {
    let mut bench = Bench::says(
        &json!([{"blocks": [{"text": "the first half"}], "chunk_chars": 3, "reset_after_events": 6}]),
    );
    bench.retries = 1;
    let told = bench.run("hi").await;
    assert_eq!(told.outcome, Some(Outcome::ApiError));
    assert_eq!(told.of("system", Some("api_retry")).len(), 1, "it was tried twice");
    let lines = told.lines();
    let kept: Vec<&Value> = lines.iter().filter(|line| line["type"] == "assistant").collect();
    let [kept] = kept[..] else { panic!("once, and not once a try: {kept:?}") };
    let text = kept["message"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, "the first ha", "all that came of the last try, and of no other");
    assert_eq!(kept["message"]["stop_reason"], "cut_off");
    // A later session still has it before the model.
    let again = Bench { dir: bench.dir, ..Bench::says(&json!(["went on"])) };
    let resumed = again.resume(&told, "go on").await;
    let sent = resumed.requests.last().unwrap().to_string();
    assert_eq!(sent.matches("the first ha").count(), 1, "{sent}");
}

/// The smallest picture there is.
pub(crate) const PIXEL: [u8; 68] = [
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x04, 0x00, 0x00, 0x00, 0xb5, 0x1c, 0x0c,
    0x02, 0x00, 0x00, 0x00, 0x0b, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x60, 0x60, 0x00, 0x00,
    0x00, 0x03, 0x00, 0x01, 0x68, 0x26, 0x59, 0x0d, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44,
    0xae, 0x42, 0x60, 0x82,
];

#[tokio::test(start_paused = true)]
async fn one_refused_picture_does_not_make_every_later_request_fail() {
    // context.md 8, 19: anthropics/claude-code#29969
    let refusal = json!({
        "error": {
            "status": 400, "type": "invalid_request_error", "times": 1,
            "message": "messages.2.content.0.tool_result.content.0.image.source.base64: Could not process image",
        },
        "text": "I see nothing there.",
    });
    let read = json!({"tool": "Read", "input": {"file_path": "a.png"}});
    let bench = Bench::says(&json!([[read], refusal]));
    std::fs::write(bench.project().join("a.png"), PIXEL).unwrap();
    let told = bench.run("look").await;
    assert_eq!(told.outcome, Some(Outcome::Completed), "{}", told.result());
    let sent: Vec<String> = told.requests.iter().map(ToString::to_string).collect();
    assert_eq!(sent.len(), 3);
    assert!(sent[1].contains("image/png") && !sent[2].contains("image/png"), "{}", sent[2]);
    assert!(
        sent[2].contains("the provider refused it") && sent[2].contains("Could not process image")
    );
    let warned = told.of("system", Some("informational"));
    assert_eq!(warned.len(), 1, "{warned:?}");
}
