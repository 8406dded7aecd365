//! Random conversations with many prompts: `/compact` between and during work, pictures and thinking that a provider
//! refuses, forks and other agents at work, summaries that lie, windows smaller than the system prompt.

use std::sync::Arc;

use centurion_protocol::{Block, SeededWorld, World as _};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::agent_stage::starts;
use crate::bench::{Bench, Refuses, Told};
use crate::compaction::{any_summary, good, is_compaction, telling, text, too_long};
use crate::faults::PIXEL;

/// What is said to the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Prompt,
    Compact,
    /// With a text for the summary.
    CompactFor,
}

/// A prompt, and how many requests the session has sent when it comes. It comes earlier if the session is idle.
#[derive(Clone, Copy, Debug)]
struct Coming {
    said: Said,
    behind: usize,
}

/// What the provider does not accept, wherever it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dislike {
    Nothing,
    Pictures,
    Thinking,
    /// Results with the text of a certain file.
    Results,
    /// Calls that name that file.
    Calls,
    /// A certain text of an answer.
    Texts,
}

#[derive(Clone, Debug)]
struct Talk {
    window: u64,
    summaries: Vec<Value>,
    steps: Vec<Value>,
    coming: Vec<Coming>,
    dislike: Dislike,
}

const SMALLER_THAN_ANY_PROMPT: u64 = 1_500;

impl Talk {
    fn any() -> impl Strategy<Value = Self> {
        let window = prop_oneof![
            1 => SMALLER_THAN_ANY_PROMPT..13_000,
            8 => 16_000_u64..45_000,
            1 => Just(1_000_000),
        ];
        let said = prop::sample::select(
            &[Said::Prompt, Said::Prompt, Said::Compact, Said::CompactFor][..],
        );
        let coming = (said, 0_usize..30).prop_map(|(said, behind)| Coming { said, behind });
        let dislike = prop::sample::select(
            &[
                Dislike::Nothing,
                Dislike::Pictures,
                Dislike::Thinking,
                Dislike::Results,
                Dislike::Calls,
                Dislike::Texts,
            ][..],
        );
        let summaries = prop::collection::vec(any_summary(), 1..6);
        let steps = prop::collection::vec(any_step(), 8..50);
        let coming = prop::collection::vec(coming, 2..8);
        (window, summaries, steps, coming, dislike).prop_map(
            |(window, summaries, steps, coming, dislike)| Self {
                window,
                summaries,
                steps,
                coming,
                dislike,
            },
        )
    }

    fn bench(&self) -> Bench {
        let mut bench = telling(self.window, &self.summaries, &self.steps);
        let rules = bench.scenario["rules"].as_array_mut().unwrap();
        let slow = json!({"text": "slept", "latency_ms": 3_600_000});
        rules.insert(0, json!({"match": {"first_user": "@@sleeper"}, "respond": slow}));
        rules.push(json!({"match": {}, "respond": "heard"}));
        bench.knows_agents(|agents| agents.rules.forks = true);
        bench.file("huge.txt", &"fedcba9876543210\n".repeat(9_000));
        bench.file("odd.txt", "ODD-RESULT\n");
        std::fs::write(bench.project().join("a.png"), PIXEL).unwrap();
        bench.refuses = refuses(self.dislike);
        bench
    }

    /// The words of a prompt, which nothing else has.
    fn words(&self, n: usize) -> String {
        match self.coming[n].said {
            Said::Prompt => format!("PROMPT-WORDS-{n}."),
            Said::Compact => "/compact".to_owned(),
            Said::CompactFor => format!("/compact HEED-WORDS-{n}."),
        }
    }
}

fn any_step() -> impl Strategy<Value = Value> {
    let file = |name: &str| json!({"tool": "Read", "input": {"file_path": name}});
    let thinks = json!([{"thinking": "hm", "signature": "c2ln"}, "So.", file("long.txt")]);
    let forks = json!({"tool": "Agent", "input": {"description": "a branch", "prompt": "look"}});
    prop_oneof![
        10 => Just(json!([file("long.txt")])),
        2 => Just(thinks),
        2 => Just(json!([file("long.txt"), file("none.txt"), file("a.png"), file("huge.txt")])),
        2 => Just(json!([file("a.png"), file("a.png")])),
        2 => Just(json!([file("odd.txt"), file("long.txt")])),
        1 => Just(json!([forks, file("long.txt")])),
        1 => Just(json!([starts("@@sleeper")])),
        1 => Just(too_long()),
        1 => Just(json!("An answer.")),
    ]
}

/// A provider that refuses the first block of a kind, and names it as providers do.
fn refuses(dislike: Dislike) -> Option<Refuses> {
    let words = match dislike {
        Dislike::Nothing => return None,
        Dislike::Pictures => "Could not process image",
        Dislike::Thinking => "Invalid `signature` in `thinking` block",
        Dislike::Results | Dislike::Calls | Dislike::Texts => "Input should be valid",
    };
    let is_it = move |block: &Value| match dislike {
        Dislike::Nothing => false,
        Dislike::Pictures => block.to_string().contains("\"type\":\"image\""),
        Dislike::Thinking => block["type"] == "thinking",
        Dislike::Results => {
            block["type"] == "tool_result" && block.to_string().contains("ODD-RESULT")
        }
        Dislike::Calls => block["type"] == "tool_use" && block.to_string().contains("odd.txt"),
        Dislike::Texts => block["text"] == "So.",
    };
    Some(Arc::new(move |messages: &[Value]| {
        let places = messages.iter().enumerate().flat_map(|(n, message)| {
            let blocks = message["content"].as_array().unwrap().iter().enumerate();
            blocks.map(move |(at, block)| (n, at, block))
        });
        let mut places = places.filter(|(_, _, block)| is_it(block));
        places.next().map(|(n, at, _)| format!("messages.{n}.content.{at}: {words}"))
    }))
}

async fn play(talk: &Talk, bench: &Bench) -> Told {
    let (first, rest) = (talk.words(0), (1..talk.coming.len()).collect::<Vec<_>>());
    bench
        .live(&first, |handle, watcher| async move {
            let world = SeededWorld::new(901);
            for n in rest {
                let behind = talk.coming[n].behind;
                let is_idle = |events: &[Value]| {
                    events
                        .last()
                        .is_some_and(|event| event["state"] == "idle" || event["type"] == "result")
                };
                watcher.until(|events, asked| asked.len() >= behind || is_idle(events)).await;
                handle.submit(world.record_id(), vec![Block::text(talk.words(n))]);
            }
        })
        .await
}

const HONEST: [&str; 5] =
    ["completed", "context_overflow", "api_error", "compaction_failed", "cancelled"];

fn check(talk: &Talk, told: &Told) {
    for result in told.of("result", None) {
        let outcome = result["outcome"].as_str().unwrap();
        assert!(HONEST.contains(&outcome), "{result}");
        assert!(
            outcome == "completed" || result["errors"].as_array().is_some_and(|it| !it.is_empty()),
            "{result}"
        );
    }
    let count = talk.steps.len() + talk.coming.len();
    assert!(told.asked.len() < 12 * count + 60, "{} requests for {count} steps", told.asked.len());
    let lines = told.lines();
    for n in 0..talk.coming.len() {
        let words = talk.words(n);
        match talk.coming[n].said {
            Said::Prompt => {
                let is_it = |line: &&Value| {
                    line["type"] == "user"
                        && line["isMeta"] != true
                        && line.to_string().contains(&words)
                };
                assert_eq!(lines.iter().filter(is_it).count(), 1, "{words}");
                for asked in told.asked.iter().filter(|it| it.agent.is_none() && !is_compaction(it))
                {
                    assert!(text(asked).matches(&words).count() <= 1, "{words}: {}", text(asked));
                }
            }
            Said::Compact => {}
            Said::CompactFor => {
                let heed = words.strip_prefix("/compact ").unwrap();
                for asked in told.asked.iter().filter(|asked| text(asked).contains(heed)) {
                    assert!(is_compaction(asked), "they end with the compaction: {}", text(asked));
                }
            }
        }
    }
}

fn paused() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_said_meanwhile_and_refused_a_conversation_stays_valid_and_can_always_go_on(
        talk in Talk::any(),
    ) {
        // I-15, D-52, D-53, D-57
        paused().block_on(async {
            let bench = talk.bench();
            let told = play(&talk, &bench).await;
            check(&talk, &told);
            // With room, and whatever the provider does not accept, both a prompt and `/compact` work.
            let more = telling(1_000_000, &[good()], &(0..12).map(|_| json!("Later.")).collect::<Vec<_>>());
            let later = Bench { dir: bench.dir, refuses: refuses(talk.dislike), seed: 40, ..more };
            let next = later.resume(&told, "NEXT-WORDS").await;
            assert_eq!(next.result()["outcome"], "completed", "{}", next.result());
            let later = Bench { seed: 50, ..later };
            let compacted = later.resume(&told, "/compact").await;
            let said = compacted.result()["result"].as_str().unwrap();
            let is_short = said.contains("would not be smaller");
            assert!(compacted.result()["outcome"] == "completed" || is_short, "{said}");
            let later = Bench { seed: 60, ..later };
            let last = later.resume(&told, "LAST-WORDS").await;
            assert_eq!(last.result()["outcome"], "completed", "{}", last.result());
            let sent = text(last.asked.iter().rfind(|it| it.agent.is_none()).unwrap());
            assert_eq!(sent.matches("LAST-WORDS").count(), 1, "{sent}");
        });
    }
}
