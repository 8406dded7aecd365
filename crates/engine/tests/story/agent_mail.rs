//! What agents say to each other, and who is told what came of it: also over processes that died.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use centurion_engine::{Extensions, HookHost, Limit};
use centurion_hooks::{DelegateFuture, Event};
use centurion_protocol::ToolUseId;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::agent_ends::dies_when;
use crate::agent_stage::{LAST_AGENT, agent, field, message, starts, waits};
use crate::bench::{Asked, Bench, Told};
use crate::hook_stage::{Stage, every_event};

fn named(prompt: &str, name: &str, in_background: bool) -> Value {
    let more = json!({"run_in_background": in_background, "name": name});
    agent("general-purpose", prompt, &more)
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What an agent's conversation has of what others said to it, in order.
pub(crate) fn read_mail(path: &Path) -> Vec<String> {
    let lines = lines(path).into_iter();
    let mail = lines.filter(|it| it["type"] == "user" && it["origin"]["kind"] == "peer");
    let text = |line: Value| line["message"]["content"].as_str().unwrap().to_owned();
    mail.map(|line| text(line).lines().last().unwrap().to_owned()).collect()
}

pub(crate) fn later<F: Future>(future: F) -> F::Output {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().unwrap().block_on(future)
}

/// The news that an agent has read.
fn news_of(asked: &Asked) -> Vec<&str> {
    asked.texts().into_iter().filter(|text| text.starts_with("<task-notification>")).collect()
}

#[test]
fn mail_that_was_accepted_before_a_crash_is_read_once_and_in_order() {
    // scenario 25, scenario 18, S-229, S-231
    let mut bench = Bench::cast(&json!({
        "lead": [
            [named("@@slow", "bob", true)],
            [message("bob", "one"), message("bob", "two")],
            "meanwhile",
        ],
        "slow": [{"text": "never", "latency_ms": 3_600_000}],
        "look": ["seen"],
        "poke": [[message("${arg}", "@@more")], "waiting", "heard"],
        "more": ["read it all"],
    }));
    let has_receipts = |asked: &Asked| {
        asked.agent.is_none() && asked.messages.to_string().matches("Queued: bob").count() == 2
    };
    let died = dies_when(&bench, |_, asked| asked.iter().any(has_receipts));
    let [id] = &died.agent_ids()[..] else { panic!() };
    let path = died.agent_transcript(id);
    assert!(read_mail(&path).is_empty(), "it had no time to read");
    bench.seed = 40;
    let looked = later(bench.resume(&died, "@@look"));
    let [news] = looked.news()[..] else { panic!("{:?}", looked.news()) };
    assert_eq!(field(news, "outcome"), Some("interrupted"), "{news}");
    assert_eq!(field(news, "unread-messages"), Some("2"), "{news}");
    assert!(news.contains("2 messages are unread"), "{news}");
    assert!(read_mail(&path).is_empty(), "nothing runs again by itself");
    for (seed, expected) in
        [(80, vec!["one", "two", "@@more"]), (120, vec!["one", "two", "@@more", "@@more"])]
    {
        bench.seed = seed;
        let told = later(bench.resume(&died, &format!("@@poke:{id}")));
        assert_eq!(read_mail(&path), expected);
        assert_eq!(field(told.news().last().unwrap(), "unread-messages"), None);
        let first = told.asked_by("@@slow")[0].texts().join("\n");
        assert!(first.find("one").unwrap() < first.find("two").unwrap(), "{first}");
    }
}

#[test]
fn a_message_that_set_an_agent_to_work_is_read_though_the_process_died() {
    // S-230, S-231
    let mut bench = Bench::cast(&json!({
        "lead": [
            [named("@@first", "bob", false)],
            [starts("@@long")],
            [message("bob", "@@more")],
            "meanwhile",
        ],
        "first": ["first report"],
        "long": [{"text": "never", "latency_ms": 3_600_000}],
        "look": ["seen"],
        "poke": [[message("${arg}", "@@again")], "waiting", "heard"],
        "again": ["read it all"],
    }));
    // One place, and another agent has it: the message cannot have been read.
    bench.knows_agents(|agents| agents.rules.limits.running = 1);
    let is_resumed = |asked: &Asked| asked.messages.to_string().contains("had ended and resumes");
    let died = dies_when(&bench, |_, asked| asked.iter().any(is_resumed));
    let id = &died.agent_ids()[0];
    let path = died.agent_transcript(id);
    assert!(read_mail(&path).is_empty());
    bench.seed = 40;
    let looked = later(bench.resume(&died, "@@look"));
    let news = looked.news().into_iter().find(|it| field(it, "task-id") == Some(id)).unwrap();
    assert_eq!(field(news, "unread-messages"), Some("1"), "{news}");
    let sent = lines(&died.transcript);
    let call =
        sent.iter().map(|it| &it["message"]["content"][0]).rfind(|it| it["name"] == "SendMessage");
    assert_eq!(field(news, "tool-use-id"), call.unwrap()["id"].as_str(), "the call that asked");
    bench.seed = 80;
    later(bench.resume(&died, &format!("@@poke:{id}")));
    assert_eq!(read_mail(&path), ["@@more", "@@again"]);
}

#[tokio::test(start_paused = true)]
async fn mail_for_an_agent_that_failed_waits_and_is_read_before_what_comes_next() {
    // scenario 25, S-229
    let mut bench = Bench::cast(&json!({
        "lead": [
            [named("@@broken", "bob", true)],
            [message("bob", "one")],
            "meanwhile",
            [message("bob", "@@more")],
            "waiting", "heard",
        ],
        "broken": [{"error": {"status": 400, "type": "invalid_request_error"}, "latency_ms": 60_000, "blocks": []}],
        "more": ["read it all"],
    }));
    bench.retries = 0;
    let told = bench.run("@@lead").await;
    let news = told.news();
    assert_eq!(field(news[0], "unread-messages"), Some("1"), "{}", news[0]);
    assert_eq!(field(news[1], "unread-messages"), None, "{}", news[1]);
    assert_eq!(read_mail(&told.agent_transcript(&told.agent_ids()[0])), ["one", "@@more"]);
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_keeps_news_out_keeps_no_message_out() {
    // scenario 25, S-229
    let slow = json!({"blocks": [{"tool": "Read", "input": {"file_path": "a.txt"}}], "latency_ms": 60_000});
    let bench = Bench::cast(&json!({
        "lead": [
            [named("@@worker", "bob", true)],
            {"blocks": [message("bob", "one")], "latency_ms": 30_000},
            "meanwhile", "heard", "heard",
        ],
        "worker": [[starts("@@quick")], slow, "done", "done", "done"],
        "quick": ["there"],
    }));
    bench.file("a.txt", "alpha\n");
    let stage = Stage::new(|told| {
        let is_it = told["hook_event_name"] == "UserPromptSubmit" && told.get("agent_id").is_some();
        let stop = json!({"continue": false, "stopReason": "no news here"});
        Some(if is_it { stop } else { json!({}) })
    });
    let bench = stage.set(bench);
    let told = bench.run("@@lead").await;
    let heard = stage.heard(Event::UserPromptSubmit);
    assert_eq!(heard.iter().filter(|it| it.get("agent_id").is_some()).count(), 1, "{heard:?}");
    assert_eq!(read_mail(&told.agent_transcript(&told.agent_ids()[0])), ["one"]);
}

#[tokio::test(start_paused = true)]
async fn the_agent_that_resumes_another_is_told_of_its_end_and_not_the_parent() {
    // S-230, S-211
    for stays in [true, false] {
        let asker = if stays {
            json!([[message("bob", "@@more")], {"text": "waited", "latency_ms": 60_000}, "heard"])
        } else {
            json!([[message("bob", "@@more")], "left"])
        };
        let bench = Bench::cast(&json!({
            "lead": [
                [named("@@parent", "pat", true)],
                {"blocks": [waits("@@asker")], "latency_ms": 10_000},
                "done", "heard", "heard",
            ],
            "parent": [[named("@@worker", "bob", false)], {"text": "stayed", "latency_ms": 600_000}, "more"],
            "worker": ["first report"],
            "asker": asker,
            "more": [{"text": "second report", "latency_ms": 20_000}],
        }));
        let told = bench.run("@@lead").await;
        let heard = |news: Vec<&str>| news.iter().filter(|it| it.contains("second report")).count();
        let parent = news_of(told.asked_by("@@parent").last().unwrap());
        let asker = news_of(told.asked_by("@@asker").last().unwrap());
        assert_eq!(heard(parent), 0, "it did not ask for this");
        assert_eq!(heard(asker), usize::from(stays), "it was promised to be told");
        assert_eq!(
            heard(told.news()),
            usize::from(!stays),
            "the main agent hears what else nobody would"
        );
        let receipt = told.asked_by("@@asker")[1].texts().join("\n");
        assert!(receipt.contains("You are told when it ends"), "{receipt}");
    }
}

/// How many requests an agent has sent.
fn requests(told: &Told, prompt: &str) -> usize {
    told.asked_by(prompt).len()
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_spent_stays_spent_when_the_agent_continues() {
    // scenario 23, S-230
    let read = json!([{"text": "so far"}, {"tool": "Read", "input": {"file_path": "a.txt"}}]);
    let mut bench = Bench::cast(&json!({
        "lead": [[waits("@@spender")], [message(LAST_AGENT, "go on")], "waiting", "heard"],
        "poke": [[message("${arg}", "go on")], "waiting", "heard"],
        "spender": vec![read; 50],
    }));
    bench.file("a.txt", "alpha\n");
    bench.knows_agents(|agents| {
        agents.rules.limits.budget = Limit { dollars: None, tokens: Some(30_000) };
    });
    let told = bench.run("@@lead").await;
    let id = told.agent_ids()[0].clone();
    let first = told.agent_results()[0];
    let spent: u64 =
        first["cumulativeUsage"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    let reason = format!("of 30000 tokens does not pay for another request: {spent} tokens spent");
    let is_after = |asked: &&&Asked| asked.texts().join("\n").contains("go on");
    let after = told.asked_by("@@spender").iter().filter(is_after).count();
    assert_eq!(after, 0, "it ends before it asks for anything");
    let [news] = told.news()[..] else { panic!("{:?}", told.news()) };
    assert_eq!(field(news, "outcome"), Some("budget"), "{news}");
    assert!(news.contains(&reason), "{news}");
    bench.seed = 40;
    let later = bench.resume(&told, &format!("@@poke:{id}")).await;
    assert_eq!(requests(&later, "@@spender"), 0, "in another process as well");
    let news = *later.news().last().unwrap();
    assert_eq!(field(news, "outcome"), Some("budget"), "{news}");
    assert!(news.contains(&reason), "{news}");
}

#[test]
fn what_an_interrupted_agent_had_spent_counts_when_it_continues() {
    // scenario 23, scenario 18
    let read = json!([{"text": "so far"}, {"tool": "Read", "input": {"file_path": "a.txt"}}]);
    let slow = json!([[waits("@@below")], {"text": "never", "latency_ms": 3_600_000}]);
    let mut bench = Bench::cast(&json!({
        "lead": [[starts("@@above")], "meanwhile"],
        "above": slow,
        "below": [read, read, "enough"],
        "poke": [[message("${arg}", "go on")], "waiting", "heard", "heard"],
    }));
    bench.file("a.txt", "alpha\n");
    let of =
        |prompt: &'static str| move |asked: &&Asked| asked.messages[0].to_string().contains(prompt);
    let died = dies_when(&bench, |_, asked| asked.iter().filter(of("@@above")).count() == 2);
    let id = died.agent_ids()[0].clone();
    let usage = |path: &Path| -> u64 {
        let answers = lines(path).into_iter().filter(|it| it["type"] == "assistant");
        let mut seen = std::collections::BTreeMap::new();
        for answer in answers {
            seen.insert(answer["message"]["id"].to_string(), answer["message"]["usage"].clone());
        }
        let total = |usage: &Value| -> u64 {
            usage.as_object().unwrap().values().filter_map(Value::as_u64).sum()
        };
        seen.values().map(total).sum()
    };
    let paths = died.agent_ids().into_iter().map(|id| died.agent_transcript(&id));
    let spent: u64 = paths.map(|path| usage(&path)).sum();
    assert!(spent > 0);
    // So much that nothing of it is left.
    bench.knows_agents(move |agents| {
        agents.rules.limits.budget = Limit { dollars: None, tokens: Some(spent + 1) };
    });
    bench.seed = 40;
    let told = later(bench.resume(&died, &format!("@@poke:{id}")));
    let news = told.news();
    let last = news.iter().rfind(|it| field(it, "task-id") == Some(&id)).unwrap();
    let reason = format!("another request: {spent} tokens spent");
    assert!(last.contains(&reason), "its own and what those below it spent, {spent}: {last}");
    assert_eq!(requests(&told, "@@above"), 0);
}

/// A host whose hooks take their time when an agent stops.
#[derive(Default)]
struct Slow {
    heard: Mutex<Vec<String>>,
}

impl HookHost for Slow {
    fn call<'a>(
        &'a self,
        id: &'a str,
        _: &'a Value,
        _: Option<&'a ToolUseId>,
    ) -> DelegateFuture<'a, Value> {
        self.heard.lock().push(id.to_owned());
        Box::pin(async move {
            if id == "SubagentStop" {
                tokio::time::sleep(Duration::from_mins(1)).await;
            }
            Ok(json!({}))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_spoken_to_while_its_stop_hooks_run_starts_and_stops_once_more() {
    // S-333, S-229: every stop belongs to a start
    let mut bench = Bench::cast(&json!({
        "lead": [
            [named("@@worker", "bob", true)],
            {"blocks": [message("bob", "one more thing")], "latency_ms": 30_000},
            "told it", "heard",
        ],
        "worker": ["first report", "second report"],
    }));
    let host = Arc::new(Slow::default());
    let (before, hooks) = (bench.adjust, Arc::clone(&host));
    bench.adjust = Box::new(move |options| {
        before(options);
        options.extensions = Extensions {
            hooks: every_event(),
            hook_host: Some(Arc::clone(&hooks) as Arc<dyn HookHost>),
            ..Extensions::default()
        };
    });
    let told = bench.run("@@lead").await;
    let heard = host.heard.lock().clone();
    let around: Vec<&String> = heard.iter().filter(|it| it.starts_with("Subagent")).collect();
    assert_eq!(around, ["SubagentStart", "SubagentStop", "SubagentStart", "SubagentStop"]);
    let [news] = told.news()[..] else { panic!("one end: {:?}", told.news()) };
    assert!(news.contains("second report"), "{news}");
    assert_eq!(read_mail(&told.agent_transcript(&told.agent_ids()[0])), ["one more thing"]);
}
