//! Many agents: large reports, recursion, few places, crossing messages.

use std::time::Duration;

use centurion_engine::Limit;
use centurion_protocol::Outcome;
use serde_json::{Value, json};

use crate::agent_stage::{LAST_AGENT, agent, field, message, starts, waits};
use crate::bench::{Bench, Told};

/// What the session counted of its agents.
fn stats(told: &Told) -> &Value {
    &told.result()["subagent_stats"]
}

#[tokio::test(start_paused = true)]
async fn seven_large_reports_fit_and_can_be_read_whole() {
    // scenario 21
    let long = format!("{}the end", "0123456789".repeat(4_000));
    let seven: Vec<Value> = (0..7).map(|_| waits("@@wordy")).collect();
    let bench = Bench::cast(&json!({"lead": [seven, "read"], "wordy": [long]}));
    let told = bench.run("@@lead").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    let texts = told.main_texts();
    let size: usize = texts.iter().map(|text| text.len()).sum();
    assert!(size < 7 * 36_000, "{size} bytes entered the conversation");
    for result in told.agent_results() {
        let file = result["outputFile"].as_str().unwrap();
        let place = format!("the whole report is in {file}");
        assert!(texts.iter().any(|text| text.contains(&place)), "{place}");
        assert!(std::fs::read_to_string(file).unwrap().contains(&long));
    }
}

/// Agents that each start five more.
fn bomb() -> Bench {
    let five = || -> Vec<Value> { (0..5).map(|_| waits("@@bomb")).collect() };
    Bench::cast(&json!({"lead": [five(), "defused"], "bomb": [five(), "gone off"]}))
}

#[tokio::test(start_paused = true)]
async fn a_recursion_bomb_ends_at_the_depth_and_at_the_number() {
    // scenario 23, D-12, I-8
    let mut bench = bomb();
    bench.knows_agents(|agents| {
        agents.rules.limits.depth = 2;
        agents.rules.limits.running = 3;
        agents.rules.limits.spawns = Some(17);
    });
    let told = bench.run("@@lead").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    let stats = stats(&told);
    assert_eq!(stats["spawned"], 17, "{stats}");
    assert_eq!(stats["completed"], 17, "{stats}");
    assert_eq!(stats["max_depth"], 2, "{stats}");
    assert!(stats["refused"]["concurrency_limit"].as_u64().unwrap() > 0, "{stats}");
    let deepest = told.asked.iter().filter(|it| !it.tools.contains(&"Agent".to_owned()));
    assert!(deepest.count() > 0, "whoever may start none is not offered it");
    let refusal = "no more agents may be started in this session, which has started 17";
    assert!(told.asked.iter().any(|it| it.texts().iter().any(|text| text.contains(refusal))));
}

#[tokio::test(start_paused = true)]
async fn a_recursion_bomb_ends_at_the_budget_and_says_so() {
    // scenario 23, I-8
    let mut bench = bomb();
    bench.max_budget = Some(1.0);
    bench.knows_agents(|agents| agents.rules.limits.running = 4);
    let told = bench.run("@@lead").await;
    let cost = told.result()["total_cost_usd"].as_f64().unwrap();
    assert!(cost <= 1.0, "{cost}");
    let outcomes = told.of("system", Some("task_updated"));
    let failed: Vec<&str> =
        outcomes.iter().filter_map(|it| it["patch"]["error"].as_str()).collect();
    assert!(!failed.is_empty());
    assert!(failed.iter().all(|error| error.contains("budget")), "{failed:?}");
    let ended = told.of("system", Some("task_notification")).len();
    assert_eq!(ended, told.agent_ids().len(), "all of them end");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_started_where_none_may_be() {
    // scenario 23: zero means none
    for change in [
        |limits: &mut centurion_engine::Limits| limits.spawns = Some(0),
        |limits: &mut centurion_engine::Limits| limits.spawns_per_minute = Some(0),
    ] {
        let mut bench = bomb();
        bench.knows_agents(move |agents| change(&mut agents.rules.limits));
        let told = bench.run("@@lead").await;
        assert!(told.agent_ids().is_empty());
        assert!(
            told.results()
                .iter()
                .all(|(text, is_error)| *is_error && text.contains("do the work yourself"))
        );
    }
    let mut bench = bomb();
    bench.knows_agents(|agents| agents.rules.limits.depth = 0);
    let told = bench.run("@@lead").await;
    assert!(told.agent_ids().is_empty());
    assert!(!told.asked[0].tools.contains(&"Agent".to_owned()), "it is not even offered");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_has_spent_its_budget_hands_back_what_it_has() {
    // scenario 23, S-253
    let read = json!([{"text": "so far"}, {"tool": "Read", "input": {"file_path": "a.txt"}}]);
    let mut bench = Bench::cast(&json!({
        "lead": [[waits("@@spender")], "enough"],
        "spender": vec![read; 50],
    }));
    bench.file("a.txt", "alpha\n");
    bench.knows_agents(|agents| {
        agents.rules.limits.budget = Limit { dollars: None, tokens: Some(30_000) };
    });
    let told = bench.run("@@lead").await;
    let result = told.agent_results()[0];
    assert_eq!((&result["outcome"], &result["status"]), (&json!("budget"), &json!("failed")));
    assert_eq!(result["content"][0]["text"], "so far");
    let spent = result["cumulativeUsage"].clone();
    let total: u64 = spent.as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert!(total <= 30_000, "{spent}");
    assert_eq!(told.outcome, Some(Outcome::Completed), "the parent has a budget of its own");
}

#[tokio::test(start_paused = true)]
async fn agents_beyond_the_rate_are_refused_until_a_minute_has_passed() {
    // scenario 23
    let mut bench = Bench::cast(&json!({
        "lead": [
            [waits("@@quick"), waits("@@quick"), waits("@@quick")],
            {"blocks": [waits("@@quick")], "latency_ms": 61_000},
            "done",
        ],
        "quick": ["there"],
    }));
    bench.knows_agents(|agents| agents.rules.limits.spawns_per_minute = Some(2));
    let told = bench.run("@@lead").await;
    let errors: Vec<bool> = told.results().iter().map(|(_, is_error)| *is_error).collect();
    assert_eq!(errors, [false, false, true, false], "{:?}", told.results());
    assert!(told.results()[2].0.contains("try again in 60 seconds"), "{:?}", told.results());
}

#[tokio::test(start_paused = true)]
async fn no_slot_is_lost_after_a_chain_a_dozen_agents_and_stopped_agents() {
    // scenario 24, I-8
    let dozen: Vec<Value> = (0..12).map(|_| waits("@@quick")).collect();
    let stop = json!({"tool": "TaskStop", "input": {"task_id": LAST_AGENT}});
    let mut bench = Bench::cast(&json!({
        "lead": [
            [waits("@@down")],
            [starts("@@slow")], [starts("@@slow")], [stop],
            dozen,
            [waits("@@quick")],
            "all there",
            "heard",
        ],
        "down": [[waits("@@down")], "level done"],
        "quick": ["there"],
        "slow": [{"text": "slow", "latency_ms": 60_000}],
    }));
    bench.knows_agents(|agents| agents.rules.limits.running = 1);
    let told = bench.run("@@lead").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    let stats = stats(&told);
    assert_eq!(stats["spawned"], 3 + 2 + 12 + 1, "{stats}");
    assert_eq!(
        (&stats["completed"], &stats["killed"]["parent"]),
        (&json!(17), &json!(1)),
        "{stats}"
    );
}

/// The messages of one sender that an agent has read, in order.
fn heard_from(told: &Told, reader: &str, sender: &str) -> Vec<String> {
    let texts = told.asked_by(reader).last().unwrap().texts();
    let own =
        texts.into_iter().filter(|text| text.starts_with(&format!("The agent {sender} says")));
    own.map(|text| text.lines().last().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn two_senders_lose_nothing_and_keep_their_order() {
    // scenario 25, S-229, S-243
    let sends = |who: &str| -> Vec<Value> {
        (0..40).map(|n| message("bob", &format!("{who} {n}"))).collect()
    };
    let named = |prompt: &str, name: &str| {
        agent("general-purpose", prompt, &json!({"run_in_background": true, "name": name}))
    };
    let bench = Bench::cast(&json!({
        "lead": [
            [named("@@listen", "bob"), named("@@ann", "ann"), named("@@cid", "cid")],
            "meanwhile", "heard", "heard", "heard",
        ],
        "listen": [{"blocks": [{"tool": "Read", "input": {"file_path": "a.txt"}}], "latency_ms": 60_000}, "heard it all"],
        "ann": [sends("ann"), "sent"],
        "cid": [sends("cid"), "sent"],
    }));
    bench.file("a.txt", "alpha\n");
    let told = bench.run("@@lead").await;
    for who in ["ann", "cid"] {
        let expected: Vec<String> = (0..40).map(|n| format!("{who} {n}")).collect();
        assert_eq!(heard_from(&told, "@@listen", who), expected);
    }
    assert_eq!(told.news().len(), 3);
    let leads = told.main_texts();
    assert!(!leads.iter().any(|text| text.contains("ann 1")), "nothing of it reaches the parent");
}

#[tokio::test(start_paused = true)]
async fn a_message_says_what_became_of_it() {
    // scenario 25, S-226, S-230, S-231, S-233
    let named = |prompt: &str| agent("general-purpose", prompt, &json!({"name": "bob"}));
    let bench = Bench::cast(&json!({
        "lead": [
            [message("nobody", "hello?")],
            [named("@@first")],
            [named("@@second")],
            [message("nobody", "hello?"), message("a0123456789abcdef", "hello?")],
            [message("bob", "@@again")],
            "waiting",
            "heard",
        ],
        "first": ["first here"],
        "second": ["second here"],
        "again": ["still here"],
    }));
    let told = bench.run("@@lead").await;
    let receipts = told.of("user", None).into_iter().map(|it| it["tool_use_result"].clone());
    let receipts: Vec<Value> = receipts.filter(|it| it["success"].is_boolean()).collect();
    let statuses: Vec<&str> = receipts.iter().map(|it| it["status"].as_str().unwrap()).collect();
    assert_eq!(statuses[..3], ["no_such_agent"; 3], "{receipts:?}");
    assert!(receipts[0]["message"].as_str().unwrap().contains("start an agent first"));
    assert!(receipts[1]["message"].as_str().unwrap().contains("bob"), "{receipts:?}");
    assert_eq!(statuses[3], "resumed");
    let ids = told.agent_ids();
    assert_eq!(receipts[3]["resumedAgentId"], json!(ids[1]), "the name is the newer one's");
    assert!(told.asked_by("@@first").len() == 1, "the older one is left alone");
    assert!(field(told.news()[0], "result").unwrap().contains("still here"));
}

#[tokio::test(start_paused = true)]
async fn an_older_namesake_is_still_reached_by_its_id() {
    // scenario 25, S-233, S-242
    let named = |prompt: &str| agent("general-purpose", prompt, &json!({"name": "bob"}));
    let bench = Bench::cast(&json!({
        "lead": [
            [named("@@first")],
            [message(LAST_AGENT, "@@again"), named("@@second")],
            "done", "done",
        ],
        "first": ["first here"],
        "second": ["second here"],
        "again": ["still here"],
    }));
    let told = bench.run("@@lead").await;
    assert_eq!(told.asked_by("@@first").len(), 2, "by its id, though the name went on");
    assert_eq!(told.asked_by("@@second").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_provider_asks_for_patience_blocks_no_other_agent() {
    // scenario 19, D-12, I-8
    let refused =
        json!({"status": 429, "type": "rate_limit_error", "retry_after": 3_600, "times": 1});
    let with = |prompt: &str, model: &str| {
        agent("general-purpose", prompt, &json!({"run_in_background": true, "model": model}))
    };
    let mut bench = Bench::cast(&json!({
        "lead": [
            [with("@@busy", "haiku"), with("@@late", "haiku"), with("@@free", "sonnet")],
            "meanwhile", "heard", "heard", "heard",
        ],
        "busy": [{"error": refused, "text": "got through"}],
        "late": ["got through"],
        "free": [{"text": "worked", "latency_ms": 10_000}],
    }));
    bench.knows_agents(|agents| {
        agents.rules.limits.running = 1;
        agents.rules.wait = None;
    });
    let begun = tokio::time::Instant::now();
    let told = bench
        .live("@@lead", |_, watcher| async move {
            let is_end = |it: &Value| it["subtype"] == "task_notification";
            watcher.until(|events, _| events.iter().any(is_end)).await;
            assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", begun.elapsed());
        })
        .await;
    assert!(begun.elapsed() >= Duration::from_hours(1), "{:?}", begun.elapsed());
    let results: Vec<&str> =
        told.news().into_iter().map(|news| field(news, "result").unwrap_or(news)).collect();
    assert_eq!(results, ["worked", "got through", "got through"], "neither is taken for stalled");
    assert_eq!(told.asked_by("@@late").len(), 1, "the second one did not even try before");
}

#[tokio::test(start_paused = true)]
async fn agents_that_ended_long_ago_leave_memory_and_are_found_again() {
    let named = agent("general-purpose", "@@first", &json!({"name": "bob"}));
    let many: Vec<Value> = (0..300).map(|_| waits("@@quick")).collect();
    let bench = Bench::cast(&json!({
        "lead": [
            [named],
            many,
            many,
            [{"tool": "ListAgents", "input": {}}],
            [message("bob", "@@again")],
            "asked", "heard",
        ],
        "first": ["first here"],
        "quick": ["done"],
        "again": ["still here"],
    }));
    let told = bench.run("@@lead").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    let texts = told.main_texts();
    let listed = texts.iter().find(|text| text.contains("Subagents (")).expect("a list");
    assert!(!listed.contains("bob"), "it is not in memory any more");
    assert!(!listed.contains("Subagents (601)"), "{}", listed.lines().next().unwrap_or_default());
    assert_eq!(told.asked_by("@@first").len(), 2, "with all that it knows");
    assert!(field(told.news()[0], "result").unwrap().contains("still here"));
}
