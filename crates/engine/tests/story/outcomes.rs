//! How runs end: success only for an answer.

use std::sync::Arc;

use centurion_engine::{RoomFuture, Start, View};
use centurion_protocol::sdk::Event;
use centurion_protocol::{Block, Outcome, SeededWorld, World};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, Watcher};

#[tokio::test]
async fn an_answer_is_a_success() {
    let told = Bench::says(&json!(["hello"])).run("hi").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    let result = told.result();
    assert_eq!(
        (&result["subtype"], &result["is_error"], &result["result"], &result["terminal_reason"]),
        (&json!("success"), &json!(false), &json!("hello"), &json!("completed"))
    );
    assert_eq!(result["num_turns"], 1);
    assert!(result["modelUsage"]["claude-opus-5-5"]["outputTokens"].as_u64().unwrap() > 0);
    assert!(result["total_cost_usd"].as_f64().unwrap() > 0.0);
    assert_eq!(told.events[0]["subtype"], "init");
    assert!(told.events.iter().all(|event| event["session_id"] == told.session.to_string()));
}

#[tokio::test]
async fn success_is_never_given_to_an_empty_cut_off_or_refused_answer() {
    // I-10
    for (step, outcome) in [
        (json!({"blocks": []}), Outcome::Empty),
        (json!({"blocks": [{"text": "   "}]}), Outcome::Empty),
        (json!({"blocks": [{"thinking": "hm"}]}), Outcome::Empty),
        (
            json!({"blocks": [{"text": "half an ans"}], "stop_reason": "max_tokens"}),
            Outcome::MaxTokens,
        ),
        (json!({"blocks": [{"text": "no"}], "stop_reason": "refusal"}), Outcome::Refusal),
        (json!({"blocks": [], "stop_reason": "refusal"}), Outcome::Refusal),
        (
            json!({"blocks": [{"text": "x"}], "stop_reason": "model_context_window_exceeded"}),
            Outcome::ContextOverflow,
        ),
        (json!({"blocks": [{"text": "x"}], "stop_reason": "cosmic_ray"}), Outcome::Empty),
        (json!({"blocks": [{"text": "x"}], "stop_reason": "tool_use"}), Outcome::Empty),
    ] {
        let told = Bench::says(&json!([step])).run("hi").await;
        assert_eq!(told.outcome, Some(outcome), "{step}");
        let result = told.result();
        assert_eq!(result["is_error"], true, "{step}");
        assert_ne!(result["subtype"], "success", "{step}");
        assert_eq!(result["outcome"], outcome.as_str());
        assert_ne!(result["result"], "", "there is always something to read: {step}");
    }
}

#[tokio::test]
async fn a_stop_sequence_ends_a_turn_like_any_other_end() {
    let step = json!({"blocks": [{"text": "done"}], "stop_reason": "stop_sequence"});
    assert_eq!(Bench::says(&json!([step])).run("hi").await.outcome, Some(Outcome::Completed));
}

#[tokio::test]
async fn a_paused_turn_continues_from_where_it_paused() {
    let steps = json!([{"blocks": [{"text": "one moment"}], "stop_reason": "pause_turn"}, "there"]);
    let told = Bench::says(&steps).run("hi").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    assert_eq!(told.requests.len(), 2);
    assert_eq!(told.requests[1][1]["content"][0]["text"], "one moment");
}

#[tokio::test]
async fn thinking_goes_back_with_its_signature_and_redacted_thinking_as_it_came() {
    let bench = Bench::says(&json!([
        {"blocks": [
            {"thinking": "let me see", "signature": "c2lnbmVk"},
            {"type": "redacted_thinking", "data": "b3BhcXVl"},
            {"tool": "TodoWrite", "input": {"todos": []}}
        ]},
        "done"
    ]));
    let told = bench.run("hi").await;
    let answer = &told.requests[1][1]["content"];
    assert_eq!(
        answer[0],
        json!({"type": "thinking", "thinking": "let me see", "signature": "c2lnbmVk"})
    );
    assert_eq!(answer[1], json!({"type": "redacted_thinking", "data": "b3BhcXVl"}));
}

#[tokio::test]
async fn output_of_a_required_shape_is_enforced() {
    let mut bench = Bench::says(&json!([
        "the answer is three",
        [{"tool": "StructuredOutput", "input": {"n": "three"}}],
        [{"tool": "StructuredOutput", "input": {"n": 3}}]
    ]));
    bench.schema =
        Some(r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#);
    let told = bench.run("how many?").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    assert_eq!(told.result()["structured_output"], json!({"n": 3}));
    assert_eq!(told.requests.len(), 3, "handing over ends the run");
    assert!(told.results()[0].1, "what does not fit is an error for the model");
}

#[tokio::test]
async fn a_model_that_never_hands_over_is_no_success() {
    let mut bench = Bench::new(json!({"default": "just words"}));
    bench.schema = Some(r#"{"type":"object"}"#);
    let told = bench.run("how many?").await;
    assert_eq!(told.outcome, Some(Outcome::SchemaMismatch));
    assert_eq!(told.result()["subtype"], "error_max_structured_output_retries");
}

#[tokio::test]
async fn a_model_that_hands_over_the_wrong_shape_for_ever_is_stopped() {
    let step = json!([{"tool": "StructuredOutput", "input": {"n": "no number"}}]);
    let mut bench = Bench::says(&json!(vec![step; 40]));
    bench.schema = Some(r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#);
    let told = bench.run("how many?").await;
    assert_eq!(told.outcome, Some(Outcome::SchemaMismatch));
    assert!(told.requests.len() < 10);
}

#[tokio::test]
async fn blank_text_beside_a_call_does_not_stand_in_history() {
    let bench = Bench::says(&json!([
        {"blocks": [{"text": "\n\n"}, {"tool": "TodoWrite", "input": {"todos": []}}]},
        "done"
    ]));
    let told = bench.run("hi").await;
    assert_eq!(told.requests[1][1]["content"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn pieces_of_answers_are_shown_when_asked_for() {
    let mut bench = Bench::says(&json!([{"blocks": [{"text": "hello world"}], "chunk_chars": 4}]));
    bench.partial_messages = true;
    let told = bench.run("hi").await;
    let pieces = told.of("stream_event", None);
    let kinds: Vec<&str> =
        pieces.iter().map(|event| event["event"]["type"].as_str().unwrap()).collect();
    assert_eq!(kinds.first(), Some(&"message_start"));
    assert_eq!(kinds.last(), Some(&"message_stop"));
    let text: String =
        pieces.iter().filter_map(|event| event["event"]["delta"]["text"].as_str()).collect();
    assert_eq!(text, "hello world");
}

/// A view whose reader has far too much to read, until it is let.
struct Crowded {
    watcher: Arc<Watcher>,
    room: CancellationToken,
}

impl View for Crowded {
    fn show(&self, event: &Event) {
        self.watcher.show(event);
    }

    fn wait_for_room(&self) -> Option<RoomFuture<'_>> {
        (!self.room.is_cancelled()).then(|| Box::pin(self.room.cancelled()) as RoomFuture<'_>)
    }
}

#[tokio::test]
async fn an_agent_sends_no_request_while_its_view_has_no_room() {
    for is_stopped in [false, true] {
        let (room, watcher) = (CancellationToken::new(), Arc::new(Watcher::default()));
        let view = Crowded { watcher: Arc::clone(&watcher), room: room.clone() };
        let view: Arc<dyn View> = Arc::new(view);
        let bench = Bench {
            adjust: Box::new(move |options| options.view = Arc::clone(&view)),
            ..Bench::says(&json!(["hello"]))
        };
        let world = SeededWorld::new(7);
        let mut session = bench.open(Start::New(world.session_id()), None, &watcher).await;
        let handle = session.handle();
        handle.submit(world.record_id(), vec![Block::text("hi")]);
        handle.close();
        let mut run = Box::pin(session.run());
        let begun = watcher.until(|events, _| !events.is_empty());
        tokio::select! {
            _ = &mut run => panic!("it did not wait"),
            () = begun => {}
        }
        assert!(futures_util::poll!(&mut run).is_pending());
        assert!(watcher.asked.lock().is_empty());
        if is_stopped {
            handle.stop();
            assert_eq!(run.await, Some(Outcome::Cancelled));
        } else {
            room.cancel();
            assert_eq!(run.await, Some(Outcome::Completed));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_results_of_one_turn_together_fit_the_window() {
    // D-54; parallel reads that exceeded it left sessions dead for good elsewhere
    let line = "x".repeat(90);
    let text = format!("{}\n", vec![line; 1_990].join("\n"));
    let read = |n: usize| json!({"tool": "Read", "input": {"file_path": format!("{n}.txt")}});
    let calls: Vec<Value> = (0..12).map(read).collect();
    let bench =
        Bench { model: "claude-sonnet-4-5", ..Bench::says(&json!([calls, [read(0)], "done"])) };
    for n in 0..12 {
        bench.file(&format!("{n}.txt"), &text);
    }
    let told = bench.run("read all").await;
    assert_eq!(told.outcome, Some(Outcome::Completed), "{}", told.result());
    let results = told.requests[1][2]["content"].as_array().unwrap();
    let sizes: Vec<usize> = results.iter().map(|it| it["content"].to_string().len()).collect();
    assert!(sizes.iter().sum::<usize>() < 450_000, "{sizes:?}");
    assert!(sizes[0] > 150_000, "what has room is whole: {sizes:?}");
    let last = results[11]["content"].to_string();
    let (_, rest) = last.split_once("the whole text is in ").unwrap();
    let path = rest.split(']').next().unwrap();
    assert!(std::fs::read_to_string(path).unwrap().len() > 180_000, "{path}");
    assert_eq!(told.requests.len(), 3, "and the session goes on");
}
