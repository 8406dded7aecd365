//! The calls that start, watch and stop agents: what each parameter does, and what is left on disk.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::Outcome;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::agent_stage::{LAST_AGENT, agent, field, message, starts, waits};
use crate::bench::{Asked, Bench, Told};

/// A call that waits for an agent that takes a minute.
fn waits_long() -> Bench {
    Bench::cast(&json!({
        "lead": [[waits("@@slow")], "going on", "heard"],
        "slow": [{"text": "the slow result", "latency_ms": 60_000}],
    }))
}

/// The call continued without the result, which came later and once.
fn assert_handed_over(told: &Told) {
    assert_eq!(told.agent_results()[0]["status"], "async_launched");
    let [news] = told.news()[..] else { panic!("{:?}", told.news()) };
    assert_eq!(field(news, "result"), Some("the slow result"), "{news}");
    let requests = told.asked_by("@@slow").len();
    assert_eq!(requests, 1, "the work goes on, it does not begin again");
    let updates = told.of("system", Some("task_updated"));
    assert!(updates.iter().any(|it| it["patch"]["is_backgrounded"] == true), "{updates:?}");
}

#[tokio::test(start_paused = true)]
async fn a_person_puts_an_agent_into_the_background() {
    // S-189, S-190, S-191, S-326
    let told = waits_long()
        .live("@@lead", |handle, watcher| async move {
            let at_work = |asked: &[Asked]| asked.iter().any(|it| it.agent.is_some());
            watcher.until(|_, asked| at_work(asked)).await;
            assert_eq!(handle.background_all(), 1);
            assert_eq!(handle.background_all(), 0, "no call waits any more");
        })
        .await;
    assert_handed_over(&told);
}

/// A lead that starts an agent of a minute in the background, and makes another call some time later.
fn works_beside() -> Bench {
    Bench::cast(&json!({
        "lead": [
            [starts("@@slow")],
            {"blocks": [{"tool": "TodoWrite", "input": {"todos": []}}], "latency_ms": 5_000},
            "heard",
            "and again",
        ],
        "slow": [{"text": "the slow result", "latency_ms": 60_000}],
    }))
}

/// The ids of agents that events of a kind name.
fn agents_at_work(events: &[Value]) -> Vec<String> {
    let started = events.iter().filter(|event| event["subtype"] == "task_started");
    started.filter_map(|event| event["task_id"].as_str().map(str::to_owned)).collect()
}

/// The texts of the last request of the lead.
fn last_texts(asked: &[Asked]) -> Vec<String> {
    let last = asked.iter().rfind(|it| it.agent.is_none()).unwrap();
    last.texts().into_iter().map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn a_person_brings_an_agent_back_to_the_foreground_and_the_main_agent_waits_for_it() {
    let is_told =
        |asked: &[Asked]| last_texts(asked).iter().any(|it| it.contains("the slow result"));
    for brings in [true, false] {
        let third = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&third);
        let told = works_beside()
            .live("@@lead", |handle, watcher| async move {
                watcher.until(|events, _| !agents_at_work(events).is_empty()).await;
                let id = agents_at_work(&watcher.events.lock())[0].clone();
                if brings {
                    assert!(handle.foreground_agent(&id));
                    assert!(!handle.foreground_agent("nobody"));
                }
                let of_lead =
                    |asked: &[Asked]| asked.iter().filter(|it| it.agent.is_none()).count();
                watcher.until(|_, asked| of_lead(asked) == 3).await;
                *seen.lock() = Some(is_told(&watcher.asked.lock()));
            })
            .await;
        assert_eq!(*third.lock(), Some(brings), "what the step behind the call knew");
        let updates = told.of("system", Some("task_updated"));
        let is_shown = updates.iter().any(|it| it["patch"]["is_backgrounded"] == false);
        assert_eq!(is_shown, brings, "{updates:?}");
        let waits = told.of("system", Some("agent_waiting"));
        let waited = waits.iter().any(|it| it["agent_id"].is_null() && it["waits_for"] == "agent");
        assert_eq!(waited, brings, "{waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_in_the_foreground_is_let_go_by_the_background_key_and_by_an_interrupt() {
    for interrupts in [false, true] {
        let told = works_beside()
            .live("@@lead", |handle, watcher| async move {
                watcher.until(|events, _| !agents_at_work(events).is_empty()).await;
                let id = agents_at_work(&watcher.events.lock())[0].clone();
                assert!(handle.foreground_agent(&id));
                let waits = |events: &[Value]| {
                    events
                        .iter()
                        .any(|it| it["subtype"] == "agent_waiting" && it["agent_id"].is_null())
                };
                watcher.until(|events, _| waits(events)).await;
                if interrupts {
                    handle.interrupt();
                } else {
                    assert_eq!(handle.background_all(), 1);
                    assert_eq!(handle.background_all(), 0);
                }
                let is_back = |events: &[Value]| {
                    events.iter().any(|it| it["patch"]["is_backgrounded"] == true)
                };
                watcher.until(|events, _| is_back(events)).await;
            })
            .await;
        let [news] = told.news()[..] else { panic!("{:?}", told.news()) };
        assert_eq!(field(news, "result"), Some("the slow result"), "it went on");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_waits_too_long_continues_by_itself() {
    // S-192
    let mut bench = waits_long();
    bench.knows_agents(|agents| agents.rules.auto_background = Some(Duration::from_secs(20)));
    assert_handed_over(&bench.run("@@lead").await);
    bench.knows_agents(|agents| agents.rules.auto_background = Some(Duration::from_secs(90)));
    let told = bench.run("@@lead").await;
    assert_eq!(
        told.agent_results()[0]["status"],
        "completed",
        "an end that comes in time is waited for"
    );
    assert!(told.news().is_empty());
}

fn looks(block: bool, timeout: u64) -> Value {
    json!({"tool": "TaskOutput", "input": {"task_id": LAST_AGENT, "block": block, "timeout": timeout}})
}

#[tokio::test(start_paused = true)]
async fn waiting_for_the_output_of_an_agent_takes_its_news() {
    // S-244, S-246, S-247
    let mut bench = Bench::cast(&json!({
        "lead": [[starts("@@slow")], [looks(true, 5_000)], [looks(true, 120_000)], "got it", "too much"],
        "slow": [{"text": "the slow result", "latency_ms": 60_000}],
        "look": ["nothing new"],
    }));
    let told = bench.run("@@lead").await;
    let results = told.results();
    assert!(results[1].0.contains("running"), "{results:?}");
    assert!(
        results[2].0.contains("completed") && results[2].0.contains("the slow result"),
        "{results:?}"
    );
    assert!(told.news().is_empty(), "{:?}", told.news());
    assert_eq!(told.of("result", None).len(), 1, "nothing wakes it again");
    bench.seed = 40;
    let later = bench.resume(&told, "@@look").await;
    assert!(later.news().is_empty(), "nor in a later process: {:?}", later.news());
}

#[tokio::test(start_paused = true)]
async fn looking_at_the_output_of_an_agent_leaves_its_news() {
    // S-245
    let bench = Bench::cast(&json!({
        "lead": [
            [starts("@@quick")],
            [looks(false, 0)],
            {"blocks": [looks(false, 0)], "latency_ms": 60_000},
            "seen", "heard",
        ],
        "quick": [{"text": "the quick result", "latency_ms": 30_000}],
    }));
    let told = bench.run("@@lead").await;
    assert!(told.results()[1].0.contains("running"), "{:?}", told.results());
    let texts = told.main_texts();
    assert!(
        texts.iter().any(|text| text.contains("completed") && text.starts_with("Agent ")),
        "{texts:?}"
    );
    assert_eq!(told.news().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_end_is_told_by_the_call_or_by_the_news_and_never_by_both() {
    // S-221, S-247, I-3
    for seed in 0..20 {
        let bench = Bench {
            seed: 100 * seed,
            ..Bench::cast(&json!({
                "lead": [[starts("@@quick")], [looks(true, 60_000)], "got it", "heard"],
                "quick": ["the quick result"],
            }))
        };
        let told = bench.run("@@lead").await;
        let by_call =
            told.results().iter().filter(|(text, _)| text.contains("the quick result")).count();
        assert!(by_call == 1 || told.news().len() == 1, "seed {seed}: it is told");
        let is_late =
            told.news().iter().any(|news| field(news, "result") == Some("the quick result"));
        // News that came with the launch, before the call looked, is the only way to be told by both.
        let came_first = told.asked.iter().filter(|it| it.agent.is_none()).nth(1).unwrap();
        let came_first =
            came_first.texts().iter().any(|text| text.starts_with("<task-notification>"));
        assert!(!is_late || came_first, "seed {seed}: {:?}", told.main_texts());
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_tells_running_ended_and_unknown_agents_apart() {
    // S-249, S-250, S-251, S-256
    let stop = |id: &str| json!({"tool": "TaskStop", "input": {"task_id": id}});
    let bench = Bench::cast(&json!({
        "lead": [[starts("@@slow")], [stop(LAST_AGENT)], [stop(LAST_AGENT), stop("nobody")], "done", "heard"],
        "slow": [{"text": "never said", "latency_ms": 60_000}],
    }));
    let started = tokio::time::Instant::now();
    let told = bench.run("@@lead").await;
    assert!(started.elapsed() < Duration::from_secs(30), "nobody waits for the rest of it");
    let results = told.results();
    assert!(!results[1].1 && results[1].0.contains("Stopped agent"), "{results:?}");
    assert!(results[2].1 && results[2].0.contains("not running any more"), "{results:?}");
    assert!(results[3].1 && results[3].0.contains("there is no task"), "{results:?}");
    let [news] = told.news()[..] else { panic!("{:?}", told.news()) };
    assert_eq!(field(news, "status"), Some("killed"));
    assert_eq!(told.result()["subagent_stats"]["killed"]["parent"], 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_hands_over_data_of_the_required_shape_or_fails() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let hand = |n: Value| json!([{"tool": "StructuredOutput", "input": {"n": n}}]);
    let bench = Bench::cast(&json!({
        "lead": [
            [agent("general-purpose", "@@good", &json!({"output_schema": schema}))],
            [agent("general-purpose", "@@bad", &json!({"output_schema": schema}))],
            [agent("general-purpose", "@@good", &json!({"output_schema": {"type": "nonsense"}}))],
            "done",
        ],
        "good": [hand(json!("three")), hand(json!(3))],
        "bad": vec!["just words"; 20],
    }));
    let told = bench.run("@@lead").await;
    let results = told.agent_results();
    assert_eq!(results[0]["structuredOutput"], json!({"n": 3}));
    assert_eq!(results[0]["content"][0]["text"], r#"{"n":3}"#);
    assert_eq!(
        (&results[1]["outcome"], &results[1]["status"]),
        (&json!("schema_mismatch"), &json!("failed"))
    );
    let last = told.results().last().unwrap().clone();
    assert!(last.1 && last.0.contains("output_schema"), "{last:?}");
}

#[tokio::test(start_paused = true)]
async fn requests_of_an_agent_are_limited_by_call_definition_and_settings() {
    // S-129
    let read = json!([{"tool": "Read", "input": {"file_path": "a.txt"}}]);
    let mut bench = Bench::cast(&json!({
        "lead": [
            [agent("short", "@@busy", &json!({}))],
            [agent("short", "@@busy", &json!({"max_turns": 2}))],
            [agent("short", "@@busy", &json!({"max_turns": 50}))],
            "done",
        ],
        "busy": vec![read; 60],
    }));
    bench.agent("short", "maxTurns: 3\n", "Be short.");
    bench.file("a.txt", "alpha\n");
    bench.knows_agents(|agents| agents.rules.limits.turns = Some(5));
    let told = bench.run("@@lead").await;
    let calls: Vec<&Value> =
        told.agent_results().iter().map(|it| &it["totalToolUseCount"]).collect();
    assert_eq!(calls, [3, 2, 5]);
    assert!(told.agent_results().iter().all(|it| it["outcome"] == "max_turns"));
    assert!(told.main_texts()[1].contains("stopped after 3 requests"), "{:?}", told.main_texts());
}

#[tokio::test(start_paused = true)]
async fn the_old_way_to_resume_an_agent_works() {
    // S-128, D-6
    let again = json!({"tool": "Agent", "input": {"description": "again", "prompt": "@@more", "resume": LAST_AGENT}});
    let bench = Bench::cast(&json!({
        "lead": [[waits("@@work")], [again], "waiting", "done"],
        "work": ["first"],
        "more": ["second"],
    }));
    let told = bench.run("@@lead").await;
    assert_eq!(told.asked_by("@@work").len(), 2);
    assert_eq!(field(told.news()[0], "result"), Some("second"));
}

#[tokio::test(start_paused = true)]
async fn the_example_calls_run_as_written() {
    // S-368; without git there is no worktree, and forks are off here
    let call = |input: Value| json!({"tool": "Agent", "input": input});
    let bench = Bench::cast(&json!({
        "lead": [
            [call(json!({"description": "Explore the code", "prompt": "@@scout", "subagent_type": "Explore"}))],
            [call(json!({"description": "Run the tests", "prompt": "@@scout", "subagent_type": "general-purpose", "run_in_background": true}))],
            [call(json!({"description": "Review", "prompt": "@@scout", "name": "reviewer", "run_in_background": true})),
             message("reviewer", "also look at the tests")],
            [call(json!({"description": "Try it", "prompt": "@@scout", "isolation": "worktree"}))],
            [call(json!({"description": "Fork", "prompt": "@@scout", "subagent_type": "fork"}))],
            "done", "heard", "heard",
        ],
        "scout": [{"text": "found it", "latency_ms": 1_000}, "found more"],
    }));
    let told = bench.run("@@lead").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    let results = told.results();
    let errors: Vec<bool> = results.iter().map(|(_, is_error)| *is_error).collect();
    assert_eq!(errors, [false, false, false, false, true, true], "{results:?}");
    assert!(
        results[4].0.contains("isolation: worktree") && results[4].0.contains("not started"),
        "{results:?}"
    );
    assert!(
        results[5].0.contains("fork") && results[5].0.contains("nothing was started"),
        "{results:?}"
    );
    let explored = &told.agent_results()[0];
    assert_eq!(explored["agentType"], "Explore");
    assert!(
        !results[0].0.contains("agentId:"),
        "a one-shot agent gives no address: {}",
        results[0].0
    );
    assert_eq!(told.news().len(), 2, "{:?}", told.news());
}

#[tokio::test(start_paused = true)]
async fn an_agent_leaves_a_transcript_and_a_card_that_others_can_read() {
    // S-320, S-321, S-176, S-322; layout as observed
    let bench = Bench::cast(&json!({
        "lead": [[agent("general-purpose", "@@outer", &json!({"name": "ann"}))], "done"],
        "outer": [[starts("@@inner")], "outer done", "outer heard"],
        "inner": ["inner done"],
    }));
    let told = bench.run("@@lead").await;
    let ids = told.agent_ids();
    let directory = told.transcript.with_extension("").join("subagents");
    let card = |id: &str| -> Value {
        let text =
            std::fs::read_to_string(directory.join(format!("agent-{id}.meta.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let (outer, inner) = (card(&ids[0]), card(&ids[1]));
    assert_eq!(
        (&outer["agentType"], &outer["isBuiltIn"]),
        (&json!("general-purpose"), &json!(true))
    );
    assert_eq!((&outer["description"], &outer["name"]), (&json!("a job"), &json!("ann")));
    assert_eq!((&outer["spawnDepth"], &outer["requestShape"]), (&json!(1), &json!("foreground")));
    assert!(outer["toolUseId"].is_string() && outer.get("parentAgentId").is_none(), "{outer}");
    assert_eq!((&inner["parentAgentId"], &inner["spawnDepth"]), (&json!(ids[0]), &json!(2)));
    assert_eq!((&inner["requestShape"], &inner["finished"]), (&json!("background"), &json!(true)));
    for id in &ids {
        let path = told.agent_transcript(id);
        let lines: Vec<Value> = std::fs::read_to_string(&path)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let chained =
            lines.iter().filter(|line| line["type"] == "user" || line["type"] == "assistant");
        for line in chained {
            assert_eq!(
                (&line["isSidechain"], &line["agentId"]),
                (&json!(true), &json!(id)),
                "{line}"
            );
            assert_eq!(line["sessionId"], told.session.to_string());
        }
        for file in [path.clone(), path.with_extension("meta.json")] {
            let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{}", file.display());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_record_of_a_start_holds_all_that_is_in_force() {
    // theme 13; what a resume needs is here, and is tested by comparing requests
    let bench = Bench::cast(&json!({
        "lead": [[agent("exact", "@@work", &json!({"model": "claude-haiku-5-5", "name": "ann", "max_turns": 7}))], "done"],
        "work": ["done"],
    }));
    bench.agent("exact", "tools: Read, Bash(git *)\ndisallowedTools: Write\npermissionMode: dontAsk\neffort: low\ncolor: blue\n", "Be exact.");
    let told = bench.run("@@lead").await;
    let text = std::fs::read_to_string(told.agent_transcript(&told.agent_ids()[0])).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["subtype"], "agent_spawn");
    let spec = &first["data"]["spec"];
    for (key, value) in [
        ("agentType", json!("exact")),
        ("source", json!("projectSettings")),
        ("color", json!("blue")),
        ("name", json!("ann")),
        ("depth", json!(1)),
        ("path", json!(["ann"])),
        ("model", json!("claude-haiku-5-5")),
        ("effort", json!("low")),
        ("mode", json!("dontAsk")),
        ("maxTurns", json!(7)),
        ("only", json!(["Bash(git *)", "Read"])),
        ("cwd", json!(bench.project())),
        ("inBackground", json!(false)),
    ] {
        assert_eq!(spec[key], value, "{key}: {spec}");
    }
    assert!(spec["system"].to_string().contains("Be exact."), "{spec}");
    let ends: Vec<&str> = text.lines().filter(|line| line.contains("\"agent_end\"")).collect();
    let [end] = ends[..] else { panic!("{ends:?}") };
    let end: Value = serde_json::from_str(end).unwrap();
    assert_eq!(
        (&end["data"]["status"], &end["data"]["run"]),
        (&json!("completed"), &first["data"]["run"])
    );
}
