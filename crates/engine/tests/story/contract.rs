//! What holds for every agent that another one starts: what is its own, what it passes through, and what is
//! left when it has ended.

use std::sync::Arc;

use centurion_engine::{Limit, Reply};
use centurion_permissions::Mode;
use centurion_protocol::{Block, SeededWorld, World};
use serde_json::{Value, json};

use crate::agent_stage::{LAST_AGENT, agent, field, starts, waits};
use crate::bench::{Bench, Told};
use crate::permissions::person;

fn read(file: &str) -> Value {
    json!({"tool": "Read", "input": {"file_path": file}})
}

fn edit(file: &str) -> Value {
    json!({"tool": "Edit", "input": {"file_path": file, "old_string": "alpha", "new_string": "beta"}})
}

fn write(file: &str) -> Value {
    json!({"tool": "Write", "input": {"file_path": file, "content": "y"}})
}

#[tokio::test(start_paused = true)]
async fn an_agent_knows_what_its_parent_has_read_and_the_parent_not_what_it_has() {
    // S-175, S-178
    let bench = Bench::cast(&json!({
        "lead": [[read("ours.txt")], [waits("@@child")], [edit("theirs.txt")], "done"],
        "child": [[edit("ours.txt")], [read("theirs.txt")], "done"],
    }));
    bench.file("ours.txt", "alpha\n");
    bench.file("theirs.txt", "alpha\n");
    let told = bench.run("@@lead").await;
    let text = |file: &str| std::fs::read_to_string(bench.project().join(file)).unwrap();
    assert_eq!(
        text("ours.txt"),
        "beta\n",
        "what the parent has read is known: {:?}",
        told.results()
    );
    assert_eq!(text("theirs.txt"), "alpha\n", "and nothing comes back from the copy");
    let (refusal, is_error) = told.results().pop().unwrap();
    assert!(is_error && refusal.contains("Read"), "{refusal}");
}

#[tokio::test(start_paused = true)]
async fn the_conversation_of_the_parent_grows_by_the_call_and_its_result_alone() {
    // S-178, S-319
    let bench = Bench::cast(&json!({
        "lead": [[waits("@@child")], "done"],
        "child": [["thinking aloud", read("a.txt")], [{"tool": "TodoWrite", "input": {"todos": []}}], "the report"],
    }));
    bench.file("a.txt", "alpha\n");
    let told = bench.run("@@lead").await;
    let main: Vec<&Value> =
        told.asked.iter().filter(|it| it.agent.is_none()).map(|it| &it.messages).collect();
    let [before, after] = main[..] else { panic!("{main:?}") };
    let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
    assert_eq!(after[..before.len()], before[..], "what was said stands");
    assert_eq!(after.len(), before.len() + 2, "a call and its result: {after:?}");
    assert!(!json!(after).to_string().contains("thinking aloud"), "{after:?}");
    assert!(!told.asked_by("@@child")[0].messages.to_string().contains("@@lead"));
}

#[tokio::test(start_paused = true)]
async fn each_agent_has_its_own_tools_prompt_and_model() {
    // S-180, S-182
    let bench = Bench::cast(&json!({
        "lead": [[agent("one", "@@one", &json!({})), agent("two", "@@two", &json!({}))], "done"],
        "one": ["there"],
        "two": ["there"],
    }));
    bench.agent("one", "tools: Read, Grep\nmodel: claude-haiku-5-5\n", "You are the first.");
    bench.agent(
        "two",
        "tools: Write\nmodel: claude-sonnet-5-5\neffort: low\n",
        "You are the second.",
    );
    let told = bench.run("@@lead").await;
    let of = |prompt: &str| {
        let asked = told.asked_by(prompt)[0];
        let whose = asked.system.join("\n");
        (
            asked.model.clone(),
            asked.tools.clone(),
            whose.contains("first"),
            whose.contains("second"),
        )
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(of("@@one"), ("claude-haiku-5-5".into(), names(&["Grep", "Read"]), true, false));
    assert_eq!(of("@@two"), ("claude-sonnet-5-5".into(), names(&["Write"]), false, true));
    let main = &told.asked[0];
    assert_eq!(main.model, "claude-opus-5-5");
    assert!(main.tools.len() > 5 && !main.system.join("\n").contains("You are the"));
}

#[tokio::test(start_paused = true)]
async fn an_agent_decides_by_its_mode_and_one_that_bubbles_asks_those_above() {
    // S-167, S-170; members of teams ask their lead, when there are teams
    let mut bench = Bench::cast(&json!({
        "lead": [[agent("doer", "@@doer", &json!({}))], [agent("asker", "@@asker", &json!({}))], "done"],
        "doer": [[write("done.txt")], "done"],
        "asker": [[write("asked.txt")], "done"],
    }));
    bench.agent("doer", "", "x");
    bench.agent("asker", "permissionMode: bubble\n", "x");
    let person = person(|_| Reply::Denied { reason: "not today".to_owned(), interrupt: false });
    bench.answerer = Some(Arc::clone(&person) as _);
    let told = bench.run("@@lead").await;
    assert!(bench.project().join("done.txt").exists(), "{:?}", told.results());
    assert!(!bench.project().join("asked.txt").exists(), "the one above said no");
    assert_eq!(*person.asked.lock(), ["Write"], "only one of them asks");
}

/// What hosts are shown of tasks, in order.
fn stations(told: &Told) -> Vec<&str> {
    let shown = told.events.iter().filter_map(|event| event["subtype"].as_str());
    shown.filter(|subtype| subtype.contains("task")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_life_in_the_background_passes_its_stations_in_order() {
    // S-198, S-206, S-212, S-225, S-255, S-323, S-325
    let bench = Bench::cast(&json!({
        "lead": [[starts("@@child")], "meanwhile", "heard"],
        "child": [
            {"blocks": [read("a.txt")], "latency_ms": 1_000},
            {"blocks": [read("a.txt")], "latency_ms": 1_000},
            {"text": "the report", "latency_ms": 1_000},
        ],
    }));
    bench.file("a.txt", "alpha\n");
    let told = bench.run("@@lead").await;
    let expected = [
        "task_started",
        "background_tasks_changed",
        "task_progress",
        "task_progress",
        "task_updated",
        "task_notification",
        "background_tasks_changed",
    ];
    assert_eq!(stations(&told), expected);
    let lists = told.of("system", Some("background_tasks_changed"));
    let counts: Vec<usize> = lists.iter().map(|it| it["tasks"].as_array().unwrap().len()).collect();
    assert_eq!(counts, [1, 0], "it is in the list while it works");
    let shown = told.of("system", Some("task_notification"))[0];
    let [news] = told.news()[..] else { panic!("{:?}", told.news()) };
    assert_eq!((&shown["status"], field(news, "status")), (&json!("completed"), Some("completed")));
    let counted =
        ["subagent_tokens", "tool_uses", "duration_ms"].map(|name| field(news, name).unwrap());
    let usage = &shown["usage"];
    let of = |name: &str| usage[name].as_u64().unwrap().to_string();
    assert_eq!(counted, [of("total_tokens"), of("tool_uses"), of("duration_ms")]);
    assert_eq!(counted[1..], ["2", "3000"], "{news}");
    let last =
        told.asked.iter().rfind(|it| it.agent.is_none()).unwrap().messages.as_array().unwrap();
    let bearer = last.iter().find(|it| it.to_string().contains("<task-notification>")).unwrap();
    assert_eq!(bearer["role"], "user");
    // The record has the beginning first and the end once, after all that was said.
    let record = std::fs::read_to_string(told.agent_transcript(&told.agent_ids()[0])).unwrap();
    let lines: Vec<Value> =
        record.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let at = |subtype: &str| lines.iter().position(|line| line["subtype"] == subtype);
    let said = lines.iter().rposition(|line| line["type"] == "assistant");
    assert!(at("agent_spawn") == Some(0) && at("agent_end") > said, "{record}");
    // The recipient is told of it under the id that stands in the record of the end.
    let owed = &lines.last().unwrap()["data"]["end"]["notification"];
    let told_of = |line: &Value| {
        line["queueItem"] == *owed && line.to_string().contains("<task-notification>")
    };
    assert_eq!(told.lines().iter().filter(|line| told_of(line)).count(), 1, "{owed}");
}

#[tokio::test(start_paused = true)]
async fn how_far_an_agent_is_can_be_seen_at_any_time() {
    // S-245, S-324
    let look = json!({"tool": "TaskOutput", "input": {"task_id": LAST_AGENT, "block": false}});
    let later = |blocks: Value, latency: u64| json!({"blocks": blocks, "latency_ms": latency});
    let bench = Bench::cast(&json!({
        "lead": [[starts("@@child")], later(json!([look]), 10_000), later(json!([look]), 30_000), "seen", "heard"],
        "child": [[read("a.txt")], later(json!([read("b.txt")]), 30_000), later(json!(["done"]), 30_000)],
    }));
    bench.file("a.txt", "alpha\n");
    bench.file("b.txt", "beta\n");
    let told = bench.run("@@lead").await;
    let main = told.of("user", None).into_iter().map(|it| &it["tool_use_result"]["task"]);
    let seen: Vec<&Value> = main.filter(|task| task["task_type"] == "local_agent").collect();
    let outputs: Vec<&Value> = seen.iter().map(|task| &task["output"]).collect();
    assert_eq!(outputs, ["Reading a.txt", "Reading b.txt"]);
    assert!(seen.iter().all(|task| task["status"] == "running"), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_of_an_agent_that_was_waited_for() {
    // S-189, S-254, S-323
    let slow = json!([{"text": "never", "latency_ms": 3_600_000}]);
    let broken = json!([{"error": {"status": 500, "type": "api_error"}, "blocks": []}]);
    for (child, status) in [(json!(["there"]), "completed"), (broken, "failed"), (slow, "stopped")]
    {
        let bench = Bench {
            retries: 0,
            ..Bench::cast(&json!({"lead": [[waits("@@child")], "went on"], "child": child}))
        };
        let told = bench
            .live("@@lead", |handle, watcher| async move {
                watcher.until(|_, asked| asked.iter().any(|it| it.agent.is_some())).await;
                let id = watcher.asked.lock().iter().find_map(|it| it.agent.clone()).unwrap();
                if status == "stopped" {
                    handle.interrupt();
                }
                watcher.until(|events, _| events.iter().any(|it| it["type"] == "result")).await;
                assert_eq!(handle.background_all(), 0, "no call waits any more");
                assert!(handle.stop_task(&id).await.is_err(), "no agent is left to stop");
            })
            .await;
        assert_eq!(told.of("system", Some("task_started"))[0]["is_backgrounded"], false);
        assert_eq!(
            stations(&told),
            ["task_started", "task_updated", "task_notification"],
            "{status}"
        );
        assert_eq!(told.of("system", Some("task_notification"))[0]["status"], status);
        assert!(told.news().is_empty(), "the call has told it: {:?}", told.news());
    }
}

#[tokio::test(start_paused = true)]
async fn news_begins_a_turn_by_itself_without_input() {
    // S-209, S-223; what a terminal shows meanwhile comes with the terminal
    let bench = Bench::cast(&json!({
        "lead": [[starts("@@child")], "meanwhile", "heard of it"],
        "child": [{"text": "the report", "latency_ms": 60_000}],
    }));
    let results = |events: &[Value]| events.iter().filter(|it| it["type"] == "result").count();
    let told = bench
        .live("@@lead", |_, watcher| async move {
            watcher.until(|events, _| results(events) == 1).await;
            assert!(
                !watcher.asked.lock().iter().any(|it| it.messages.to_string().contains("<task-"))
            );
            watcher.until(|events, _| results(events) == 2).await;
        })
        .await;
    assert_eq!(told.result()["result"], "heard of it");
    assert_eq!(told.result()["origin"]["kind"], "task-notification");
}

#[tokio::test(start_paused = true)]
async fn task_output_sends_to_the_file_and_is_the_main_agents() {
    // S-248, D-19
    let bench = Bench::cast(&json!({"lead": [[waits("@@child")], "done"], "child": ["there"]}));
    let told = bench.run("@@lead").await;
    let offer = told.asked[0].offer("TaskOutput")["description"].as_str().unwrap();
    assert!(offer.contains("Read the task's output file"), "{offer}");
    let child = told.asked_by("@@child")[0];
    assert!(!child.tools.contains(&"TaskOutput".to_owned()), "{:?}", child.tools);
}

#[tokio::test(start_paused = true)]
async fn several_that_are_due_are_told_in_one_turn() {
    // S-210, S-223
    let three: Vec<Value> = (0..3).map(|_| starts("@@child")).collect();
    let bench = Bench::cast(&json!({
        "lead": [three, {"text": "a long speech", "latency_ms": 60_000}, "heard"],
        "child": [{"text": "the report", "latency_ms": 1_000}],
    }));
    let told = bench.run("@@lead").await;
    assert_eq!(told.news().len(), 3, "{:?}", told.news());
    assert_eq!(told.of("result", None).len(), 2, "one for the prompt, one for all the news");
    assert_eq!(told.asked.iter().filter(|it| it.agent.is_none()).count(), 3);
}

#[tokio::test(start_paused = true)]
async fn those_beyond_the_number_wait_their_turn_and_all_of_them_work() {
    // D-12
    let five: Vec<Value> = (0..5).map(|_| waits("@@child")).collect();
    let mut bench = Bench::cast(&json!({
        "lead": [five, "done"],
        "child": [{"text": "there", "latency_ms": 10_000}],
    }));
    bench.knows_agents(|agents| agents.rules.limits.running = 2);
    let begun = tokio::time::Instant::now();
    let told = bench.run("@@lead").await;
    let statuses: Vec<&Value> = told.agent_results().iter().map(|it| &it["status"]).collect();
    assert_eq!(statuses, ["completed"; 5]);
    let rounds = begun.elapsed().as_secs() / 10;
    assert_eq!(rounds, 3, "two, two and one: {:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn agents_are_listed_with_how_they_stand() {
    let list = json!({"tool": "ListAgents", "input": {}});
    let named = |prompt: &str, name: &str| {
        agent("general-purpose", prompt, &json!({"run_in_background": true, "name": name}))
    };
    let bench = Bench::cast(&json!({
        "lead": [
            [list], [named("@@quick", "ann"), named("@@slow", "bob")],
            {"blocks": [list], "latency_ms": 5_000}, "seen", "heard", "heard",
        ],
        "quick": [[waits("@@deep")], "there"],
        "deep": [{"blocks": [], "latency_ms": 1_000}],
        "slow": [{"text": "there", "latency_ms": 60_000}],
    }));
    let told = bench.run("@@lead").await;
    let main = told.of("user", None).into_iter().map(|it| &it["tool_use_result"]["agents"]);
    let [none, some] = main.filter(|it| it.is_array()).collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!(none, &json!([]));
    let of =
        |key: &str| some.as_array().unwrap().iter().map(|it| it[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("name"), [json!("ann"), json!("bob"), Value::Null]);
    assert_eq!(of("status"), ["completed", "running", "failed"]);
    assert_eq!(of("depth"), [1, 1, 2]);
    assert_eq!(of("parent"), [Value::Null, Value::Null, some[0]["agentId"].clone()]);
    assert_eq!(of("agentId"), told.agent_ids().into_iter().map(Value::String).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn an_agent_in_the_background_lives_no_longer_than_its_budget() {
    // S-253
    let step = json!([{"text": "so far"}, read("a.txt")]);
    let mut bench = Bench::cast(&json!({
        "lead": [[starts("@@child")], "meanwhile", "heard"],
        "child": vec![step; 50],
    }));
    bench.file("a.txt", "alpha\n");
    bench.knows_agents(|agents| {
        agents.rules.limits.budget = Limit { dollars: None, tokens: Some(30_000) }
    });
    let told = bench.run("@@lead").await;
    let [news] = told.news()[..] else { panic!("{:?}", told.news()) };
    assert_eq!((field(news, "status"), field(news, "outcome")), (Some("failed"), Some("budget")));
    assert_eq!(field(news, "result"), Some("so far"), "what it had is handed over: {news}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_defined_during_a_session_is_offered_and_can_be_started() {
    // S-050
    let file = "---\nname: newcomer\ndescription: is new\ntools: Read\n---\nYou are new.\n";
    let define = json!({"tool": "Write", "input": {"file_path": ".claude/agents/newcomer.md", "content": file}});
    let mut bench = Bench::cast(&json!({
        "lead": [[define], [agent("newcomer", "@@child", &json!({}))], "done"],
        "child": ["there"],
        "next": ["fine"],
    }));
    bench.mode = Mode::BypassPermissions;
    std::fs::create_dir_all(bench.project().join(".claude/agents")).unwrap();
    let told = bench
        .live("@@lead", |handle, watcher| async move {
            watcher.until(|events, _| events.iter().any(|it| it["type"] == "result")).await;
            handle.submit(SeededWorld::new(900).record_id(), vec![Block::text("@@next")]);
        })
        .await;
    assert_eq!(told.agent_results()[0]["agentType"], "newcomer", "{:?}", told.results());
    let main = told.asked.iter().filter(|it| it.agent.is_none());
    let line = "- newcomer: is new (Tools: Read)";
    let lists: Vec<bool> = main.map(|it| it.listing.as_ref().unwrap().contains(line)).collect();
    // What stands before a conversation stays as it is until a person speaks again: it is cached.
    assert_eq!(lists, [false, false, false, true]);
}
