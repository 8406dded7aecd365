//! What a compaction may cost and cut: texts that go through several of them, and the money that is set aside.

use std::path::Path;

use centurion_config::memory::{Memory, MemorySources};
use centurion_engine::{ContextRules, TaskListPlace};
use centurion_permissions::Mode;
use centurion_protocol::{Block, Outcome, SeededWorld, World as _};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::agent_stage::starts;
use crate::bench::{Asked, Bench};
use crate::compaction::{
    GOES_ON, any_summary, boundaries, failures, first_behind, good, is_compaction, of_work, read,
    reads, telling, text, too_long,
};
use crate::skills::{invokes, skill};

/// The files that hold what was too long for the conversation, with their contents.
fn kept(bench: &Bench) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(bench.dir.path().join("output")).unwrap().flatten();
    let texts = entries.filter(|it| it.path().extension().is_some_and(|it| it == "txt"));
    let read = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    texts.map(|it| read(&it.path())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_cut_twice_is_whole_in_the_file_of_the_first_time() {
    // Cut when it came, and again because a provider finds what is left too long.
    let huge = json!([{"tool": "Read", "input": {"file_path": "huge.txt"}}]);
    let bench = telling(40_000, &[good()], &[read(), huge, too_long(), json!("Done.")]);
    let lines: Vec<String> = (0..1_900).map(|n| format!("line {n} {}", "x".repeat(90))).collect();
    bench.file("huge.txt", &lines.join("\n"));
    let told = bench.run("PROMPT-WORDS").await;
    assert_eq!((told.outcome, boundaries(&told)), (Some(Outcome::Completed), 1));
    let files = kept(&bench);
    let second = files.iter().find(|(name, _)| name.contains("compacted")).unwrap();
    let first = files.iter().find(|(name, _)| !name.contains("compacted")).unwrap();
    assert!(lines.iter().all(|line| first.1.contains(line)), "{}", first.0);
    assert!(second.1.contains(&first.0), "and the text of the second time names it");
    let sent = told.asked.last().unwrap().messages.to_string();
    assert!(sent.contains(&second.0), "which the model is told of: {sent}");
}

#[tokio::test(start_paused = true)]
async fn each_text_of_a_prompt_that_is_cut_is_whole_in_a_file_of_its_own() {
    let bench = telling(40_000, &[good()], &[read(), json!("Read."), json!("After.")]);
    let texts = ["apple ", "berry "].map(|word| format!("{word}begins. {}", word.repeat(20_000)));
    let told = {
        let texts = texts.clone();
        bench
            .live("first", |handle, watcher| async move {
                let world = SeededWorld::new(72);
                let blocks = texts.iter().map(Block::text).collect();
                let prompts = [blocks, vec![Block::text("/compact")], vec![Block::text("go on")]];
                for (ended, prompt) in prompts.into_iter().enumerate() {
                    let is_result = |it: &&Value| it["type"] == "result";
                    watcher
                        .until(|events, _| events.iter().filter(is_result).count() == ended + 1)
                        .await;
                    handle.submit(world.record_id(), prompt);
                }
            })
            .await
    };
    let outcomes: Vec<&Value> = told.of("result", None).iter().map(|it| &it["outcome"]).collect();
    assert_eq!(outcomes, ["completed", "context_overflow", "completed", "completed"]);
    let files = kept(&bench);
    for text in &texts {
        let holding: Vec<&str> =
            files.iter().filter(|(_, it)| it == text).map(|(name, _)| name.as_str()).collect();
        assert!(!holding.is_empty(), "{:?}", files.iter().map(|it| &it.0).collect::<Vec<_>>());
        let sent = told.asked.last().unwrap().messages.to_string();
        assert!(holding.iter().any(|name| sent.contains(name)), "{holding:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_of_very_many_results_leaves_a_session_that_continues() {
    // D-54: together they would be more than the window, however little each of them is
    for count in [40, 120, 300] {
        let calls: Vec<Value> = (0..count).map(|_| read()[0].clone()).collect();
        let bench = telling(40_000, &[good()], &[read(), json!(calls), json!("Done.")]);
        let told = bench.run("PROMPT-WORDS").await;
        assert_eq!(told.outcome, Some(Outcome::Completed), "{count}: {}", told.result());
        for asked in of_work(&told) {
            let size = asked.wire.len() + asked.fixed.len();
            assert!(size < 4 * 40_000, "{count}: {size} bytes are sent");
            assert_eq!(text(asked).matches("PROMPT-WORDS").count(), 1, "{count}");
        }
        let compacted = bench.resume(&told, "/compact").await;
        assert_eq!(compacted.outcome, Some(Outcome::Completed), "{count}: {}", compacted.result());
        let next = Bench { dir: bench.dir, ..telling(40_000, &[good()], &[json!("Next.")]) };
        let after = next.resume(&told, "NEXT-WORDS").await;
        assert_eq!(after.outcome, Some(Outcome::Completed), "{count}: {}", after.result());
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_of_very_many_large_texts_leaves_a_session_that_continues() {
    // D-54
    let bench = telling(40_000, &[good()], &[read(), json!("Read."), json!("After.")]);
    let told = bench
        .live("first", |handle, watcher| async move {
            let world = SeededWorld::new(72);
            let blocks =
                (0..60).map(|n| Block::text(format!("TEXT-{n} {}", "word ".repeat(4_000))));
            let prompts =
                [blocks.collect(), vec![Block::text("/compact")], vec![Block::text("go on")]];
            for (ended, prompt) in prompts.into_iter().enumerate() {
                let is_result = |it: &&Value| it["type"] == "result";
                watcher
                    .until(|events, _| events.iter().filter(is_result).count() == ended + 1)
                    .await;
                handle.submit(world.record_id(), prompt);
            }
        })
        .await;
    let outcomes: Vec<&Value> = told.of("result", None).iter().map(|it| &it["outcome"]).collect();
    assert_eq!(outcomes, ["completed", "context_overflow", "completed", "completed"]);
    let last = told.asked.last().unwrap();
    assert!(last.wire.len() + last.fixed.len() < 4 * 40_000, "{}", last.wire.len());
    // Already behind the compaction that was asked for.
    let boundaries = told.of("system", Some("compact_boundary"));
    let mut about = boundaries.iter().map(|it| &it["compact_metadata"]);
    let asked_for = about.find(|it| it["trigger"] == "manual").unwrap();
    assert!(asked_for["post_tokens"].as_u64().unwrap() < 40_000, "{asked_for}");
    assert_eq!(kept(&bench).len(), 60, "each text is whole in a file");
}

/// Much that a provider says it has read from its cache, and paid for as that.
fn cached(answer: &Value, tokens: u64) -> Value {
    let usage = json!({"input_tokens": 10, "cache_read_input_tokens": tokens, "output_tokens": 10});
    match answer.as_str() {
        Some(text) => json!({"text": text, "usage": usage}),
        None => json!({"blocks": answer, "usage": usage}),
    }
}

#[tokio::test(start_paused = true)]
async fn a_compaction_sets_the_price_of_what_is_cached_aside_and_not_that_of_a_new_reading() {
    // A million tokens of input cost $5, and $0.50 from the cache; an answer is taken for $0.026. Each large result has
    // 17,000 tokens, for which $0.12 are set aside with an answer. All requests together cost $0.05. To read the
    // conversation anew for a summary would be $0.2, and from the cache it is $0.02.
    let huge = json!([{"tool": "Read", "input": {"file_path": "huge.txt"}}]);
    let steps = [
        cached(&huge, 4_000),
        cached(&huge, 21_000),
        cached(&read(), 41_000),
        cached(&json!("Done."), 4_000),
    ];
    let mut bench = telling(60_000, &[cached(&good(), 41_000)], &steps);
    bench.file("huge.txt", &"0123456789abcdefghijklmnopqrstuvwxyz012\n".repeat(1_500));
    bench.max_budget = Some(0.16);
    let told = bench.run("PROMPT-WORDS").await;
    assert_eq!(told.outcome, Some(Outcome::Completed), "{}", told.result());
    assert_eq!((boundaries(&told), failures(&told)), (1, Vec::new()), "{}", told.result());
    assert!(told.asked.iter().any(is_compaction));
}

#[tokio::test(start_paused = true)]
async fn a_conversation_above_its_window_is_cut_by_rule_where_the_model_says_nothing() {
    // D-54: the same answer is an error where the conversation fits
    let bench = telling(40_000, &[json!("<summary></summary>")], &[read(), json!("Hello.")]);
    let told = bench.run("first").await;
    let huge = Bench { seed: 20, ..bench };
    let full = huge.resume(&told, &"word ".repeat(60_000)).await;
    assert_eq!(full.outcome, Some(Outcome::ContextOverflow), "{}", full.result());
    let asked = Bench { seed: 30, ..huge };
    let compacted = asked.resume(&told, "/compact").await;
    assert_eq!(compacted.outcome, Some(Outcome::Completed), "{}", compacted.result());
    let boundary = compacted.of("system", Some("compact_boundary"))[0];
    assert_eq!(boundary["compact_metadata"]["by_rule"], true, "{boundary}");
}

#[tokio::test(start_paused = true)]
async fn a_compaction_that_succeeds_takes_back_that_others_failed() {
    // Twice two failures, and a summary in between: three in a row would end the tries.
    let empty = || json!("<summary></summary>");
    let summaries = [empty(), empty(), good(), empty(), empty(), good()];
    let mut steps = reads(40);
    steps.push(json!("Done."));
    let told = telling(40_000, &summaries, &steps).run("go").await;
    assert_eq!(told.outcome, Some(Outcome::Completed), "{}", told.result());
    assert_eq!(failures(&told).len(), 4, "{:?}", failures(&told));
    let largest =
        of_work(&told).iter().map(|it| (it.wire.len() + it.fixed.len()) / 4).max().unwrap();
    assert!(largest < 35_000, "it is tried again before the window is full: {largest}");
}

#[tokio::test(start_paused = true)]
async fn a_fork_is_compacted_by_its_parents_count_and_misses_no_cache_then() {
    // S-276
    let usage = |input: u64, cached: u64| json!({"input_tokens": input, "cache_creation_input_tokens": cached, "output_tokens": 10});
    let fork =
        json!({"tool": "Agent", "input": {"description": "a branch", "prompt": "FORK-TASK"}});
    let full = json!({"blocks": [fork], "usage": usage(10, 180_000)});
    let mut bench = telling(200_000, &[good()], &[read(), read(), full]);
    bench.knows_agents(|agents| agents.rules.forks = true);
    let context = ContextRules { window: Some(200_000), ..ContextRules::default() };
    bench.also(move |options| options.context = context);
    let rules = bench.scenario["rules"].as_array_mut().unwrap();
    rules.push(json!({"match": {}, "respond": {"text": "Scope: done", "usage": usage(1_000, 0)}}));
    let told = bench.run("go").await;
    let of_fork: Vec<&Asked> = told.asked.iter().filter(|asked| asked.agent.is_some()).collect();
    assert!(is_compaction(of_fork[0]), "{}", text(of_fork[0]));
    assert!(text(of_fork[1]).contains("FORK_DIRECTIVE: FORK-TASK"), "{}", text(of_fork[1]));
    let said = format!("{:?}", told.of("system", Some("informational")));
    assert!(!said.contains("from its cache"), "it is another conversation by then: {said}");
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_summary_cannot_be_paid_ends_for_its_budget() {
    // A request can be paid that the provider finds too long, and a question behind the same conversation cannot.
    let steps = [read(), read(), too_long(), json!("never said")];
    let mut ends = Vec::new();
    for cents in 0..60 {
        let mut bench = telling(200_000, &[good()], &steps);
        bench.max_budget = Some(0.05 + f64::from(cents) / 400.0);
        let told = bench.run("PROMPT-WORDS").await;
        let has_summary = told.asked.iter().any(is_compaction);
        let failed = failures(&told);
        if !failed.is_empty() {
            assert!(!has_summary && failed[0].contains("budget"), "{failed:?}");
            assert_eq!(told.outcome, Some(Outcome::Budget), "{}", told.result());
            assert_eq!(boundaries(&told), 0);
        }
        ends.push((failed.len(), has_summary));
    }
    assert!(ends.contains(&(1, false)) && ends.contains(&(0, true)), "{ends:?}");
}

#[tokio::test(start_paused = true)]
async fn a_compaction_can_be_asked_for_first_where_a_process_died_in_a_call() {
    // The answer is so large that it does not stay word for word.
    let content = "word ".repeat(20_000);
    let write = json!([{"tool": "Write", "input": {"file_path": "w.txt", "content": content}}]);
    let bench = telling(60_000, &[good()], &[read(), write, json!("Done.")]);
    let told = bench.run("PROMPT-WORDS").await;
    let record = std::fs::read(&told.transcript).unwrap();
    let call = memchr::memmem::rfind(&record, b"\"name\":\"Write\"").unwrap();
    let end = call + memchr::memchr(b'\n', &record[call..]).unwrap() + 1;
    std::fs::write(&told.transcript, &record[..end]).unwrap();
    let later = bench.resume(&told, "/compact").await;
    assert_eq!(
        (later.outcome, boundaries(&later)),
        (Some(Outcome::Completed), 1),
        "{}",
        later.result()
    );
    let next = Bench { dir: bench.dir, ..telling(60_000, &[good()], &[json!("Later.")]) };
    let after = next.resume(&told, "NEXT-WORDS").await;
    assert_eq!(after.outcome, Some(Outcome::Completed), "{}", after.result());
    assert!(
        text(&after.asked[0]).contains("NEXT-WORDS") && text(&after.asked[0]).contains(GOES_ON)
    );
}

#[tokio::test(start_paused = true)]
async fn compactions_that_were_of_use_in_between_begin_the_count_of_useless_ones_anew() {
    // context.md 8, 1: three in a row end a run, and not three in all
    let full = json!({"blocks": read(), "usage": {"input_tokens": 990_000}});
    let mut steps = reads(2);
    for between in [1, 1, 6, 1, 1, 6, 1] {
        steps.push(full.clone());
        steps.extend(reads(between));
    }
    steps.push(json!("All read."));
    let mut bench = telling(0, &[good()], &steps);
    bench.also(|options| options.context = ContextRules::default());
    let told = bench.run("go").await;
    assert_eq!(told.outcome, Some(Outcome::Completed), "{}", told.result());
    assert_eq!(boundaries(&told), 7);
}

#[tokio::test(start_paused = true)]
async fn results_of_a_first_answer_that_the_provider_finds_too_long_are_cut() {
    // D-54: nothing can be summarised, and something can be made shorter
    let many: Vec<Value> = reads(9).iter().map(|it| it[0].clone()).collect();
    let bench = telling(40_000, &[good()], &[json!(many), too_long(), json!("Done.")]);
    let told = bench.run("PROMPT-WORDS").await;
    assert_eq!(told.outcome, Some(Outcome::Completed), "{}", told.result());
    assert_eq!((boundaries(&told), told.result()["result"].as_str()), (1, Some("Done.")));
    let sent = text(first_behind(&told));
    assert!(sent.contains("PROMPT-WORDS") && sent.contains("bytes are left out here"), "{sent}");
}

#[tokio::test(start_paused = true)]
async fn a_summary_by_rule_has_the_last_words_of_each_and_none_of_an_earlier_summary() {
    let said = |n: usize| json!([format!("WORDS-{n}."), read()[0]]);
    let mut steps: Vec<Value> = (1..=12).map(said).collect();
    steps.push(too_long());
    steps.extend((13..=24).map(said));
    steps.extend([too_long(), json!("Done.")]);
    let told = telling(200_000, &[too_long()], &steps).run("PROMPT-WORDS").await;
    assert_eq!((told.outcome, boundaries(&told)), (Some(Outcome::Completed), 2));
    let sent = text(of_work(&told).last().unwrap());
    // The newest answer stays word for word; of those before it the last eight are quoted.
    for (n, is_there) in [(24, true), (23, true), (16, true), (15, false), (13, false), (1, false)]
    {
        assert_eq!(sent.contains(&format!("WORDS-{n}.")), is_there, "{n}: {sent}");
    }
    assert!(sent.contains("(4 earlier texts are left out)"), "{sent}");
    assert_eq!(sent.matches(GOES_ON).count(), 1, "{sent}");
}

/// Where a list of things to do is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Own,
    Shared,
}

/// What the random conversations below are made of.
#[derive(Clone, Debug)]
struct Hardship {
    window: u64,
    summaries: Vec<Value>,
    rounds: usize,
    /// Before which rounds the provider finds a request too long.
    refused: Vec<usize>,
}

impl Hardship {
    fn any() -> impl Strategy<Value = Self> {
        let summaries = prop::collection::vec(any_summary(), 1..6);
        let refused = prop::collection::vec(0_usize..40, 0..3);
        (26_000_u64..60_000, summaries, 10_usize..40, refused).prop_map(
            |(window, summaries, rounds, refused)| Self { window, summaries, rounds, refused },
        )
    }

    /// A bench whose model says these steps first, and then reads and reads.
    fn bench(&self, first: &[Value], last: &[Value]) -> Bench {
        let (mut steps, begin) = (first.to_vec(), first.len());
        steps.extend(reads(self.rounds));
        for at in &self.refused {
            steps.insert(begin + at.min(&(steps.len() - begin)), too_long());
        }
        steps.extend_from_slice(last);
        let mut bench = telling(self.window, &self.summaries, &steps);
        let rules = bench.scenario["rules"].as_array_mut().unwrap();
        rules.insert(0, json!({"match": {"first_user": "@@sleeper"}, "respond": {"text": "slept", "latency_ms": 3_600_000}}));
        rules.push(json!({"match": {}, "respond": "heard"}));
        bench
    }
}

fn paused() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_counts_is_lost_however_often_and_badly_a_conversation_is_compacted(
        hardship in Hardship::any(),
        list in prop::sample::select(&[List::Own, List::Shared][..]),
        plans in any::<bool>(),
        says_at in 2_usize..12,
    ) {
        // D-52: the prompt, what is said meanwhile, the newest round, lists, running agents, used skills, the mode,
        // instruction files, files read
        paused().block_on(async {
            let listed = match list {
                List::Own => json!({"tool": "TodoWrite", "input": {"todos": [
                    {"content": "OPEN-THING", "status": "pending", "activeForm": "x"},
                ]}}),
                List::Shared => json!({"tool": "TaskCreate", "input": {"subject": "OPEN-THING", "description": ""}}),
            };
            let used = invokes("fix", "")[0].clone();
            let mut bench = hardship.bench(&[json!([starts("@@sleeper"), listed, used])], &[json!("The end.")]);
            skill(&bench, "fix", "", "SKILL-WORDS");
            bench.file("CLAUDE.md", "RULE-WORDS");
            bench.mode = if plans { Mode::Plan } else { Mode::AcceptEdits };
            let cwd = bench.project();
            let (lists, name) = (cwd.with_file_name("lists"), "alpha".parse().unwrap());
            let place = (list == List::Shared).then_some(TaskListPlace { lists, name });
            bench.also(move |options| {
                let sources = MemorySources { cwd: cwd.clone(), ..MemorySources::default() };
                options.memory = Some(Memory::load(sources));
                options.agents.task_list.clone_from(&place);
            });
            let told = bench
                .live("PROMPT-WORDS", |handle, watcher| async move {
                    let of_main = |asked: &[Asked]| asked.iter().filter(|it| it.agent.is_none()).count();
                    let is_over = |events: &[Value]| events.iter().any(|it| it["type"] == "result");
                    watcher.until(|events, asked| of_main(asked) >= says_at || is_over(events)).await;
                    handle.submit(SeededWorld::new(73).record_id(), vec![Block::text("QUEUED-WORDS")]);
                })
                .await;
            let id = told.of("system", Some("task_started"))[0]["task_id"].as_str().unwrap();
            let open = if list == List::Own { "[open] OPEN-THING" } else { "[pending] OPEN-THING" };
            let mode = if plans { "Plan mode is on" } else { "" };
            let work = of_work(&told);
            let of_main = work.iter().filter(|asked| asked.agent.is_none());
            let mut is_queued = false;
            for asked in of_main {
                let sent = text(asked);
                is_queued |= sent.contains("QUEUED-WORDS");
                assert_eq!(sent.matches("QUEUED-WORDS").count(), usize::from(is_queued), "{sent}");
                if !sent.contains(GOES_ON) {
                    continue;
                }
                // A prompt that came after the end of the first run is the one that is worked on.
                let first = sent.matches("PROMPT-WORDS").count();
                assert!(first == 1 || (first == 0 && is_queued && told.of("result", None).len() > 1), "{sent}");
                assert_eq!(sent.matches("RULE-WORDS").count(), 1, "{sent}");
                assert_eq!(sent.matches("SKILL-WORDS").count(), 1, "{sent}");
                for part in [open, "long.txt", id, mode] {
                    assert!(sent.contains(part), "{part}: {sent}");
                }
                let messages = asked.messages.as_array().unwrap();
                assert!(messages.len() >= 3, "the newest round: {sent}");
            }
            // Where the provider fails for good it is not sent, and is still in the record, once.
            let lines = told.lines();
            let is_it = |line: &&Value| line["type"] == "user" && line.to_string().contains("QUEUED-WORDS");
            assert_eq!(lines.iter().filter(is_it).count(), 1, "{}", told.result());
            let fails = told.of("result", None).iter().any(|it| it["outcome"] != "completed");
            assert!(is_queued || fails, "{}", told.result());
            let ended = told.of("system", Some("task_notification"));
            assert_eq!(ended.len(), 1, "{:?}", told.result());
        });
    }

    #[test]
    fn neither_a_childs_task_nor_a_forks_directive_is_ever_lost(
        hardship in Hardship::any(),
        is_fork in any::<bool>(),
    ) {
        // D-52, D-55
        paused().block_on(async {
            let start = if is_fork {
                json!([{"tool": "Agent", "input": {"description": "a branch", "prompt": "TASK-WORDS"}}])
            } else {
                json!([starts("TASK-WORDS")])
            };
            let mut bench = hardship.bench(&[read(), start], &[json!("Report.")]);
            bench.knows_agents(move |agents| agents.rules.forks = is_fork);
            // The main agent only waits.
            let rules = bench.scenario["rules"].as_array_mut().unwrap();
            rules.insert(0, json!({"match": {"last_user": "(?s)PROMPT-WORDS.*launched|task-notification"}, "respond": "waiting"}));
            let told = bench.run("PROMPT-WORDS").await;
            let of_child = told.asked.iter().filter(|asked| asked.agent.is_some());
            let of_child: Vec<&Asked> = of_child.filter(|asked| !is_compaction(asked)).collect();
            assert!(!of_child.is_empty(), "{:?}", told.results());
            for asked in of_child {
                let sent = text(asked);
                let task = if is_fork { "FORK_DIRECTIVE: TASK-WORDS" } else { "TASK-WORDS" };
                assert_eq!(sent.matches(task).count(), 1, "{sent}");
                assert!(!is_fork || sent.contains("<fork-boilerplate>"), "{sent}");
            }
        });
    }
}

/// The ids of calls that a request has, and of those that have their results in the message behind them.
fn calls_and_results(asked: &Asked) -> (Vec<String>, Vec<String>) {
    let messages = asked.messages.as_array().unwrap();
    let of = |message: &Value, kind: &str, id: &str| -> Vec<String> {
        let blocks = message["content"].as_array().into_iter().flatten();
        let blocks = blocks.filter(|block| block["type"] == kind);
        blocks.map(|block| block[id].as_str().unwrap().to_owned()).collect()
    };
    let calls = messages.iter().flat_map(|message| of(message, "tool_use", "id")).collect();
    let answered = messages.windows(2).flat_map(|pair| {
        let calls = of(&pair[0], "tool_use", "id");
        let results = of(&pair[1], "tool_result", "tool_use_id");
        calls.into_iter().filter(move |id| results.contains(id)).collect::<Vec<_>>()
    });
    (calls, answered.collect())
}

#[tokio::test(start_paused = true)]
async fn no_call_is_left_without_its_result_by_compactions_and_later_processes() {
    // context.md 8, 11: anomalyco/opencode#17065, anthropics/claude-code#24670
    let both = json!([read()[0], read()[0]]);
    let mut steps: Vec<Value> = std::iter::repeat_n(both, 16).collect();
    steps.extend([json!("All read."), json!("Later.")]);
    let bench = telling(40_000, &[good()], &steps);
    let told = bench.run("go").await;
    assert!(boundaries(&told) >= 1, "{}", told.result());
    let later = bench.resume(&told, "and now?").await;
    assert_eq!(later.outcome, Some(Outcome::Completed), "{}", later.result());
    for asked in told.asked.iter().chain(&later.asked) {
        let (calls, answered) = calls_and_results(asked);
        assert_eq!(calls, answered, "{}", text(asked));
    }
    assert!(!calls_and_results(first_behind(&told)).0.is_empty(), "the newest round has calls");
}
