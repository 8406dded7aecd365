//! Providers that refuse a part of a conversation: the session continues, whatever the part is.

use std::path::PathBuf;
use std::sync::Arc;

use centurion_engine::Start;
use centurion_protocol::{Block, Outcome, SeededWorld, World as _};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bench::{Bench, Refuses, Told, Watcher};
use crate::compaction::{GOES_ON, boundaries, good, read, telling, text};

/// The places and blocks of a request.
fn blocks(messages: &[Value]) -> impl Iterator<Item = (usize, usize, &Value)> {
    messages.iter().enumerate().flat_map(|(n, message)| {
        let blocks = message["content"].as_array().unwrap().iter().enumerate();
        blocks.map(move |(at, block)| (n, at, block))
    })
}

/// A provider that takes no thinking of others.
fn refuses_thinking(names_place: bool) -> Refuses {
    Arc::new(move |messages| {
        let (n, at, _) = blocks(messages).find(|(.., block)| block["type"] == "thinking")?;
        let place =
            if names_place { format!("messages.{n}.content.{at}: ") } else { String::new() };
        Some(format!("{place}Invalid `signature` in `thinking` block"))
    })
}

fn thinks(rest: &Value) -> Value {
    json!([{"thinking": "THOUGHT", "signature": "Zm9yZWlnbg=="}, rest])
}

#[tokio::test(start_paused = true)]
async fn a_refused_signature_costs_the_thinking_and_nothing_else() {
    // D-54
    for names_place in [true, false] {
        let steps = [thinks(&read()[0]), thinks(&json!("Read.")), json!("Next.")];
        let mut bench = telling(200_000, &[good()], &steps);
        let told = bench.run("PROMPT-WORDS").await;
        assert!(text(told.asked.last().unwrap()).contains("THOUGHT"));
        bench.refuses = Some(refuses_thinking(names_place));
        bench.scenario = telling(200_000, &[good()], &[json!("Next.")]).scenario;
        let next = bench.resume(&told, "next").await;
        assert_eq!(next.outcome, Some(Outcome::Completed), "{}", next.result());
        let [refused, sent] = &next.asked[..] else { panic!("{}", next.asked.len()) };
        assert!(text(refused).contains("THOUGHT") && !text(sent).contains("THOUGHT"));
        for part in ["PROMPT-WORDS", "tool_use", "tool_result", "Read.", "next"] {
            assert!(text(sent).contains(part), "{part}: {}", text(sent));
        }
        let warned = next.of("system", Some("informational"));
        assert!(warned[0]["content"].as_str().unwrap().contains("thinking"), "{warned:?}");
        // The same where a summary is asked for, in a process that knows nothing of it.
        let compacted = bench.resume(&told, "/compact").await;
        assert_eq!(
            (compacted.outcome, boundaries(&compacted)),
            (Some(Outcome::Completed), 1),
            "{}",
            compacted.result()
        );
        let boundary = compacted.of("system", Some("compact_boundary"))[0];
        assert_ne!(boundary["compact_metadata"]["by_rule"], true, "by the model: {boundary}");
    }
}

#[tokio::test(start_paused = true)]
async fn thinking_without_a_signature_is_kept_in_the_record_and_never_sent() {
    let unsigned = json!([{"thinking": "THOUGHT", "signature": ""}, read()[0]]);
    let mut bench = telling(200_000, &[good()], &[unsigned, json!("Read."), json!("Next.")]);
    bench.refuses = Some(refuses_thinking(true));
    let told = bench.run("go").await;
    let next = bench.resume(&told, "next").await;
    for told in [&told, &next] {
        assert_eq!(told.outcome, Some(Outcome::Completed), "{}", told.result());
        assert!(told.asked.iter().all(|asked| !text(asked).contains("THOUGHT")));
        assert_eq!(told.of("system", Some("informational")).len(), 0, "nothing was refused");
    }
    assert!(next.asked[0].wire.starts_with(&told.asked[1].wire), "the same bytes");
    assert!(told.lines().iter().any(|line| line.to_string().contains("THOUGHT")));
}

/// The kinds and marks of all parts of the conversation that `conversation` makes.
const PARTS: [(&str, &str); 11] = [
    ("image", "iVBORw0KGgo="),
    ("text", "MARK-PROMPT"),
    ("thinking", "MARK-THOUGHT"),
    ("text", "MARK-SAID"),
    ("tool_use", "MARK-FIRST"),
    ("tool_use", "MARK-SECOND"),
    ("tool_result", "MARK-CONTENT"),
    ("text", "MARK-ANSWER"),
    ("text", "MARK-LATER"),
    ("tool_use", "MARK-THIRD"),
    ("text", "MARK-END"),
];

/// A conversation of two prompts with a block of each kind.
async fn conversation(bench: &mut Bench) -> Told {
    for name in ["MARK-FIRST", "MARK-SECOND", "MARK-THIRD"] {
        bench.file(name, &format!("{name} says MARK-CONTENT"));
    }
    let read = |name: &str| json!({"tool": "Read", "input": {"file_path": name}});
    let think = json!({"thinking": "MARK-THOUGHT"});
    let steps = [
        json!([think, "MARK-SAID", read("MARK-FIRST"), read("MARK-SECOND")]),
        json!([think, "MARK-ANSWER"]),
        json!([read("MARK-THIRD")]),
        json!("MARK-END"),
    ];
    bench.scenario = telling(200_000, &[good()], &steps).scenario;
    let image = Block::Image { media_type: "image/png".into(), data: "iVBORw0KGgo=".into() };
    let start = Start::New(SeededWorld::new(bench.seed).session_id());
    let prompts = [vec![image, Block::text("MARK-PROMPT")], vec![Block::text("MARK-LATER")]];
    let told = submit_all(bench, start, None, &prompts).await;
    assert_eq!(told.outcome, Some(Outcome::Completed), "{}", told.result());
    told
}

/// A provider that refuses all requests in which this part stands.
fn refuses(part: (&'static str, &'static str), names_place: bool) -> Refuses {
    Arc::new(move |messages| {
        let (kind, mark) = part;
        let is_it = |block: &Value| block["type"] == kind && block.to_string().contains(mark);
        let (n, at, _) = blocks(messages).find(|(.., block)| is_it(block))?;
        Some(if names_place {
            format!("messages.{n}.content.{at}.{kind}: it is not accepted")
        } else {
            "a part of this request is not accepted".to_owned()
        })
    })
}

#[test]
fn all_parts_are_in_the_conversation_that_is_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut bench = telling(200_000, &[good()], &[]);
        let told = conversation(&mut bench).await;
        bench.scenario = telling(200_000, &[good()], &[json!("Here.")]).scenario;
        let next = bench.resume(&told, "next").await;
        for part in PARTS {
            assert!(
                refuses(part, true)(next.asked[0].messages.as_array().unwrap()).is_some(),
                "{part:?}"
            );
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 44, ..ProptestConfig::default() })]

    #[test]
    fn whatever_part_a_provider_refuses_the_session_continues(
        part in prop::sample::select(&PARTS[..]),
        names_place in any::<bool>(),
        compacts_first in any::<bool>(),
        is_one_process in any::<bool>(),
    ) {
        // D-54, I-15
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut bench = telling(200_000, &[good()], &[]);
            let told = conversation(&mut bench).await;
            let before = std::fs::read(&told.transcript).unwrap();
            bench.refuses = Some(refuses(part, names_place));
            let answers: Vec<Value> = (0..8).map(|_| json!("Here.")).collect();
            bench.scenario = telling(200_000, &[good()], &answers).scenario;
            let mut prompts = vec!["first", "/compact", "second", "/compact", "third"];
            if compacts_first {
                prompts.remove(0);
            }
            let results = if is_one_process {
                let prompts: Vec<_> = prompts.iter().map(|it| vec![Block::text(*it)]).collect();
                let path = Some(told.transcript.clone());
                let later = submit_all(&bench, Start::Resume(told.session), path, &prompts).await;
                later.of("result", None).into_iter().cloned().collect()
            } else {
                let mut results = Vec::new();
                for prompt in &prompts {
                    results.push(bench.resume(&told, prompt).await.result().clone());
                }
                results
            };
            for (prompt, result) in prompts.iter().zip(&results) {
                let is_prompt = *prompt != "/compact";
                let outcome = result["outcome"].as_str().unwrap();
                // A part that is named costs nothing. One that is not can cost prompts, until it was compacted away.
                let may_fail = is_prompt && !names_place && *prompt != "third";
                assert!(outcome == "completed" || (may_fail && outcome == "api_error"), "{prompt}: {result}");
            }
            assert_eq!(results.last().unwrap()["result"], "Here.");
            let after = std::fs::read(&told.transcript).unwrap();
            assert!(after.starts_with(&before), "the record keeps all of it");
        });
    }
}

/// Prompts to one process, each behind the end of the one before.
async fn submit_all(
    bench: &Bench,
    start: Start,
    resumed: Option<PathBuf>,
    prompts: &[Vec<Block>],
) -> Told {
    let watcher = Arc::new(Watcher::default());
    let mut session = bench.open(start, resumed, &watcher).await;
    let handle = session.handle();
    let ids = SeededWorld::new(72);
    let results = |events: &[Value]| events.iter().filter(|it| it["type"] == "result").count();
    let person = async {
        for (n, prompt) in prompts.iter().enumerate() {
            watcher.until(|events, _| results(events) == n).await;
            handle.submit(ids.record_id(), prompt.clone());
        }
        handle.close();
    };
    let ((), outcome) = tokio::join!(person, session.run());
    bench.told(&session, outcome, &watcher)
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_is_refused_for_an_unknown_reason_can_be_compacted_and_continues() {
    // D-54: also where nothing was answered yet that could be summarised
    let mut bench = telling(200_000, &[good()], &[json!("Here.")]);
    bench.refuses = Some(refuses(("text", "GUILTY"), false));
    let told = bench.run("GUILTY words").await;
    assert_eq!(told.outcome, Some(Outcome::ApiError), "{}", told.result());
    let again = bench.resume(&told, "innocent").await;
    assert_eq!(again.outcome, Some(Outcome::ApiError), "the words are still there");
    let compacted = bench.resume(&told, "/compact").await;
    assert_eq!(
        (compacted.outcome, boundaries(&compacted)),
        (Some(Outcome::Completed), 1),
        "{}",
        compacted.result()
    );
    let next = bench.resume(&told, "NEXT-WORDS").await;
    assert_eq!(next.outcome, Some(Outcome::Completed), "{}", next.result());
    let sent = text(&next.asked[0]);
    assert!(sent.contains(GOES_ON) && sent.contains("NEXT-WORDS") && !sent.contains("GUILTY"));
    assert!(sent.contains("The record has all of it"), "{sent}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_something_else_changes_nothing() {
    let mut bench = telling(200_000, &[good()], &[read(), json!("Read."), json!("Here.")]);
    let told = bench.run("PROMPT-WORDS").await;
    bench.refuses = Some(Arc::new(|_| Some("tools.3.custom.input_schema: it is no schema".into())));
    for prompt in ["next", "/compact"] {
        let refused = bench.resume(&told, prompt).await;
        assert!(refused.result()["is_error"] == true, "{}", refused.result());
        assert_eq!(boundaries(&refused), 0);
    }
    bench.refuses = None;
    let last = bench.resume(&told, "last").await;
    let sent = text(&last.asked[0]);
    assert!(last.asked[0].wire.starts_with(&told.asked[1].wire), "{sent}");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_refuses_one_part_after_another_ends_the_run_and_costs_few_requests() {
    let mut bench = telling(200_000, &[good()], &[json!("Here.")]);
    // Every text that is no note of ours.
    bench.refuses = Some(Arc::new(|messages| {
        let is_note = |it: &Value| it.to_string().contains("the provider refused it");
        let (n, at, _) = blocks(messages).find(|(.., block)| !is_note(block))?;
        Some(format!("messages.{n}.content.{at}: no"))
    }));
    let start = Start::New(SeededWorld::new(bench.seed).session_id());
    let prompt: Vec<Block> = (0..40).map(|n| Block::text(format!("TEXT-{n}"))).collect();
    let told = submit_all(&bench, start, None, &[prompt]).await;
    assert_eq!(told.outcome, Some(Outcome::ApiError), "{}", told.result());
    assert_eq!(told.asked.len(), 13);
    bench.refuses = None;
    let next = bench.resume(&told, "again").await;
    assert_eq!(next.outcome, Some(Outcome::Completed), "{}", next.result());
    assert!(text(&next.asked[0]).contains("TEXT-0"), "nothing is lost for good");
}
