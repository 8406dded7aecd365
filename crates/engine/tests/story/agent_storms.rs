//! Bad weather: providers that fail all agents at once, and reports that would not fit.

use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::{Outcome, SeededWorld, World};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::agent_stage::{field, starts, waits};
use crate::bench::{Asked, Bench, Told};

fn read() -> Value {
    json!({"tool": "Read", "input": {"file_path": "a.txt"}})
}

/// Five agents, each of which asks its provider twice; this is the second answer. A scenario counts its
/// faults for each conversation: those of one prompt share them.
fn five(prompt: fn(usize) -> String, step: &Value) -> Bench {
    let five: Vec<Value> = (0..5).map(|n| starts(&prompt(n))).collect();
    let heard: Vec<Value> = (0..5).map(|_| json!("heard")).collect();
    let lead: Vec<Value> = [json!(five), json!("meanwhile")].into_iter().chain(heard).collect();
    Bench::cast(&json!({"lead": lead, "busy": [[{"text": "begun"}, read()], step]}))
}

fn own_faults(n: usize) -> String {
    format!("@@busy:{n}")
}

fn shared_faults(_: usize) -> String {
    "@@busy".to_owned()
}

fn all_completed(told: &Told, count: usize) {
    let news = told.news();
    assert_eq!(news.len(), count, "{news:?}");
    assert!(news.iter().all(|news| field(news, "status") == Some("completed")), "{news:?}");
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_lasts_longer_than_a_stall_pauses_all_agents_and_fails_none() {
    // scenario 19: 429 to all
    let refused =
        json!({"status": 429, "type": "rate_limit_error", "retry_after": 1_800, "times": 1});
    let mut bench = five(shared_faults, &json!({"error": refused, "text": "got through"}));
    bench.file("a.txt", "alpha\n");
    bench.knows_agents(|agents| agents.rules.wait = None);
    let begun = Instant::now();
    let told = bench.run("@@lead").await;
    all_completed(&told, 5);
    assert!(begun.elapsed() >= Duration::from_mins(30), "{:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_hours(1), "together: {:?}", begun.elapsed());
    let waits = told.of("system", Some("api_retry"));
    assert_eq!(waits.len(), 1, "one is refused, and the others do not try: {waits:?}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_comes_while_all_are_paused_waits_with_them() {
    // scenario 19
    let refused =
        json!({"status": 429, "type": "rate_limit_error", "retry_after": 1_800, "times": 1});
    let mut bench = Bench::cast(&json!({
        "lead": [[starts("@@first")], [starts("@@second")], "meanwhile", "heard", "heard"],
        "first": [{"error": refused, "text": "got through"}],
        "second": ["came later"],
    }));
    bench.knows_agents(|agents| {
        agents.rules.wait = None;
        agents.rules.models.insert("general-purpose".to_owned(), "claude-haiku-5-5".to_owned());
    });
    let told = bench.run("@@lead").await;
    all_completed(&told, 2);
    assert_eq!(told.asked_by("@@second").len(), 1, "it did not try before");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_falls_silent_once_is_asked_again_and_nothing_is_lost() {
    // scenario 19: black hole in the middle of an answer, with the usual time limits
    let silent = json!({"text": "the whole of it", "chunk_chars": 4, "stall_after_events": 4, "stall_ms": 86_400_000, "times": 1});
    let mut bench = five(own_faults, &silent);
    bench.file("a.txt", "alpha\n");
    bench.knows_agents(|agents| agents.rules.wait = None);
    let told = bench.run("@@lead").await;
    all_completed(&told, 5);
    assert!(told.news().iter().all(|news| field(news, "result") == Some("the whole of it")));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_stays_silent_ends_in_words_and_with_what_was_said() {
    // scenario 19, S-257
    let silent = json!({"text": "the first half of it", "chunk_chars": 4, "stall_after_events": 4, "stall_ms": 86_400_000});
    let mut bench = five(own_faults, &silent);
    bench.file("a.txt", "alpha\n");
    bench.retries = 2;
    bench.knows_agents(|agents| agents.rules.wait = None);
    let begun = Instant::now();
    let told = bench.run("@@lead").await;
    assert!(begun.elapsed() < Duration::from_hours(2), "{:?}", begun.elapsed());
    assert_eq!(told.news().len(), 5);
    for news in told.news() {
        assert!(["stalled", "api_error"].contains(&field(news, "outcome").unwrap()), "{news}");
        assert!(field(news, "result").unwrap().starts_with("the "), "{news}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_refuses_at_the_first_byte_is_asked_again() {
    // scenario 19: 500 at the first byte
    let broken = json!({"status": 500, "type": "api_error", "times": 3});
    let bench = five(own_faults, &json!({"error": broken, "text": "got through"}));
    bench.file("a.txt", "alpha\n");
    let told = bench.run("@@lead").await;
    all_completed(&told, 5);
    let errors: Vec<&Value> =
        told.of("system", Some("api_retry")).into_iter().map(|it| &it["error_status"]).collect();
    assert_eq!(errors, [&json!(500); 15]);
}

/// A world whose clock jumps by twenty minutes again and again, as after a sleep of the machine. The clock
/// that time limits are measured with does not.
struct Sleepy(SeededWorld, std::sync::atomic::AtomicI64);

impl World for Sleepy {
    fn now(&self) -> Timestamp {
        let jumps = self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.0.now() + jiff::SignedDuration::from_mins(20 * jumps)
    }

    fn random(&self) -> u64 {
        self.0.random()
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_slept_has_no_stalled_agents() {
    // scenario 19: suspended for 20 minutes
    let slow = json!({"text": "steadily on", "latency_ms": 5_000, "chunk_chars": 2, "chunk_delay_ms": 1_000});
    let mut bench = five(own_faults, &slow);
    bench.file("a.txt", "alpha\n");
    let before = std::mem::replace(&mut bench.adjust, Box::new(|_| {}));
    bench.adjust = Box::new(move |options| {
        before(options);
        options.base.world =
            Arc::new(Sleepy(SeededWorld::new(3), std::sync::atomic::AtomicI64::new(0)));
    });
    let told = bench.run("@@lead").await;
    all_completed(&told, 5);
    for news in told.news() {
        let millis: u64 = field(news, "duration_ms").unwrap().parse().unwrap();
        assert!(millis < 60_000, "time asleep is no time at work: {news}");
    }
}

/// Agents that report more than a model with a window of 128,000 tokens can read.
fn wordy(count: usize, call: fn(&str) -> Value) -> (Bench, String) {
    let long = format!("{}the end", "0123456789".repeat(4_000));
    let calls: Vec<Value> = (0..count).map(|_| call("@@wordy")).collect();
    let lead: Vec<Value> =
        [json!(calls)].into_iter().chain((0..count).map(|_| json!("read"))).collect();
    let scripts = json!({"lead": lead, "wordy": [{"text": long, "latency_ms": 1_000}]});
    let mut bench = Bench { model: "small-model", ..Bench::cast(&scripts) };
    // They must fit as they come.
    bench.also(|options| options.context.automatic = false);
    (bench, long)
}

fn size(asked: &Asked) -> usize {
    asked.texts().iter().map(|text| text.len()).sum()
}

#[tokio::test(start_paused = true)]
async fn reports_of_agents_that_end_together_fit_the_window_and_can_be_read_whole() {
    // scenario 21; context.md 8, 16: anthropics/claude-code#16209
    for count in [7, 40] {
        let (bench, long) = wordy(count, starts);
        let told = bench.run("@@lead").await;
        assert_eq!(told.outcome, Some(Outcome::Completed), "{count}: {}", told.result());
        assert_eq!(told.news().len(), count);
        let main = told.asked.iter().rfind(|asked| asked.agent.is_none()).unwrap();
        assert!(size(main) < 128_000 * 3, "{count}: there is room to go on: {}", size(main));
        for news in told.news() {
            let report = field(news, "result").unwrap();
            assert!(report.starts_with("0123456789") && report.contains("the whole report is in"));
            let file = field(news, "output-file").unwrap();
            assert!(std::fs::read_to_string(file).unwrap().contains(&long), "{file}");
        }
        let requests = told.asked.iter().filter(|asked| asked.agent.is_none()).count();
        assert!(requests < 2 + count, "those that ended together are told of together");
    }
}

#[tokio::test(start_paused = true)]
async fn reports_that_are_waited_for_together_fit_the_window_and_can_be_read_whole() {
    // scenario 21; context.md 8, 16: anthropics/claude-code#16209
    for count in [7, 40] {
        let (mut bench, long) = wordy(count, waits);
        bench.knows_agents(|agents| agents.rules.limits.running = 50);
        bench.also(|options| options.context.automatic = false);
        let told = bench.run("@@lead").await;
        assert_eq!(told.outcome, Some(Outcome::Completed), "{count}: {}", told.result());
        let main = told.asked.iter().rfind(|asked| asked.agent.is_none()).unwrap();
        assert!(size(main) < 128_000 * 3, "{count}: there is room to go on: {}", size(main));
        assert_eq!(told.agent_results().len(), count);
        let seen = main.texts().join("\n");
        for result in told.agent_results() {
            let file = result["outputFile"].as_str().unwrap();
            assert!(seen.contains(&format!("the whole report is in {file}")), "{file}");
            assert!(std::fs::read_to_string(file).unwrap().contains(&long), "{file}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_answer_is_not_counted_twice_against_the_window() {
    // More than half of the window: one has room, and two have none.
    let text = "word ".repeat(56_000);
    let large = |input_tokens: u64| {
        let usage = json!({"input_tokens": input_tokens, "output_tokens": 70_000});
        json!({"blocks": [{"text": text}, read()], "usage": usage})
    };
    for (steps, outcome) in [
        (json!([large(10), "went on"]), Outcome::Completed),
        (json!([large(10), large(70_100), "never said"]), Outcome::ContextOverflow),
    ] {
        let mut bench = Bench { model: "small-model", ..Bench::says(&steps) };
        bench.also(|options| options.context.allowed = false);
        bench.file("a.txt", "alpha\n");
        let told = bench.run("hi").await;
        assert_eq!(told.outcome, Some(outcome), "{}", told.result());
        assert_eq!(told.requests.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn with_nothing_left_to_spend_an_agent_sends_no_request() {
    // scenario 23: remainder 0
    let spend = json!({"blocks": [waits("@@child")], "usage": {"input_tokens": 10, "output_tokens": 40_000}});
    let mut bench = Bench::cast(&json!({"lead": [spend, "never said"], "child": ["never said"]}));
    bench.max_budget = Some(1.0);
    let told = bench.run("@@lead").await;
    assert!(told.asked_by("@@child").is_empty(), "no request is paid for");
    let result = told.agent_results()[0];
    assert_eq!((&result["status"], &result["outcome"]), (&json!("failed"), &json!("budget")));
    assert_eq!(told.outcome, Some(Outcome::Budget), "and its parent cannot go on either");
    assert_eq!(told.result()["subtype"], "error_max_budget_usd");
}
