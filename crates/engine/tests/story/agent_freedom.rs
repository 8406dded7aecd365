//! No agent is freer than the one that starts it, however it comes into being or continues.

use std::sync::Arc;

use centurion_engine::{Answerer, Ask, ElicitFuture, Reply, ReplyFuture};
use centurion_hooks::Event;
use centurion_mcp::Elicitation;
use centurion_permissions::Mode;
use centurion_protocol::Outcome;
use serde_json::{Value, json};

use crate::agent_stage::{agent, message, starts, waits};
use crate::bench::{Bench, Told};
use crate::hook_stage::Stage;

fn write(file: &str) -> Value {
    json!({"tool": "Write", "input": {"file_path": file, "content": "y"}})
}

fn bash(command: &str) -> Value {
    json!({"tool": "Bash", "input": {"command": command}})
}

/// Says yes to everything.
struct Trusting;

impl Answerer for Trusting {
    fn answer(&self, _: Ask) -> ReplyFuture<'_> {
        Box::pin(std::future::ready(Ok(Reply::Allowed { input: None, remember: Vec::new() })))
    }

    fn elicit(&self, _: Elicitation) -> ElicitFuture<'_> {
        unreachable!("no server is there to ask")
    }
}

/// The calls of agents that were not allowed, by their tools.
fn denied(told: &Told) -> Vec<&str> {
    let events = told.of("system", Some("permission_denied"));
    events.iter().map(|event| event["tool_name"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn delegating_is_no_way_to_edits_that_the_main_agent_may_not_make() {
    // D-5a
    let scripts = json!({
        "lead": [[waits("@@child")], [starts("@@beside")], "meanwhile", "done"],
        "child": [[write("one.txt")], [waits("@@deeper")], "tried"],
        "deeper": [[write("two.txt")], "tried too"],
        "beside": [[write("three.txt")], "tried as well"],
    });
    for (mode, usual, expected) in [
        (Mode::Default, None, false),
        (Mode::DontAsk, None, false),
        (Mode::Plan, None, false),
        (Mode::AcceptEdits, None, true),
        // What the user chose for all agents.
        (Mode::Default, Some(Mode::AcceptEdits), true),
        (Mode::DontAsk, Some(Mode::AcceptEdits), false),
        (Mode::Plan, Some(Mode::AcceptEdits), false),
    ] {
        let mut bench = Bench::cast(&scripts);
        bench.knows_agents(move |agents| agents.rules.child_mode = usual);
        bench.mode = mode;
        let told = bench.run("@@lead").await;
        assert_eq!(told.outcome, Some(Outcome::Completed));
        for file in ["one.txt", "two.txt", "three.txt"] {
            let exists = bench.project().join(file).exists();
            assert_eq!(exists, expected, "{file} in {mode}, agents in {usual:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_gives_more_only_where_the_user_brings_it() {
    // D-5a
    let scripts = json!({
        "lead": [[agent("builder", "@@child", &json!({}))], "done"],
        "child": [[write("one.txt")], "tried"],
    });
    for (mode, trusts, expected) in [
        (Mode::Default, true, true),
        (Mode::Default, false, false),
        (Mode::DontAsk, true, false),
        (Mode::Plan, true, false),
        (Mode::AcceptEdits, false, true),
    ] {
        let mut bench = Bench::cast(&scripts);
        bench.agent("builder", "permissionMode: acceptEdits\n", "Build.");
        if !trusts {
            bench.knows_strangers_agents(|_| {});
        }
        bench.mode = mode;
        bench.run("@@lead").await;
        let exists = bench.project().join("one.txt").exists();
        assert_eq!(exists, expected, "{mode}, trusted: {trusts}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_repository_defined_is_worth_nothing_to_an_agent_of_earlier_once_it_is_not_trusted()
{
    // D-5a, D-9
    let mut bench = Bench::cast(&json!({
        "lead": [[agent("builder", "@@child", &json!({"name": "bob"}))], "done"],
        "child": [[write("one.txt")], "written"],
        "later": [[message("bob", "@@again")], "waiting", "heard"],
        "again": [[write("two.txt")], "tried"],
    }));
    bench.agent("builder", "permissionMode: acceptEdits\n", "Build.");
    bench.mode = Mode::Default;
    let told = bench.run("@@lead").await;
    assert!(bench.project().join("one.txt").exists(), "{:?}", told.results());
    bench.knows_strangers_agents(|_| {});
    let told = bench.resume(&told, "@@later").await;
    assert!(told.main_texts().concat().contains("tried"), "{:?}", told.main_texts());
    assert!(!bench.project().join("two.txt").exists(), "{:?}", told.results());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_continues_has_what_its_definition_says_now() {
    // D-5a, D-9
    let scripts = json!({
        "lead": [[agent("builder", "@@child", &json!({"name": "bob"}))], "done"],
        "child": [[write("one.txt")], "written"],
        "later": [[message("bob", "@@again")], "waiting", "heard"],
        "again": [[write("two.txt")], "tried"],
    });
    let deny = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                                             "permissionDecisionReason": "a hook"}});
    let hook =
        json!({"type": "mcp_tool", "server": "desk", "tool": "judge", "input": {"verdict": deny}});
    let hooked = format!(
        "permissionMode: acceptEdits\nhooks:\n  PreToolUse:\n    - matcher: Write\n      hooks:\n        - {hook}\n"
    );
    // What the definition said first and says then (`None`: it is gone), and whether each file may be written.
    for (first, then, expected) in [
        ("permissionMode: acceptEdits\n", Some("permissionMode: acceptEdits\n"), (true, true)),
        ("permissionMode: acceptEdits\n", Some(""), (true, false)),
        ("permissionMode: acceptEdits\n", None, (true, false)),
        ("", Some("permissionMode: acceptEdits\n"), (false, true)),
        (&hooked, Some("permissionMode: acceptEdits\n"), (false, true)),
        ("permissionMode: acceptEdits\n", Some(&hooked), (true, false)),
    ] {
        let mut bench = Bench::cast(&scripts);
        bench.agent("builder", first, "Build.");
        bench.mode = Mode::Default;
        let bench = Stage::silent().set(bench);
        let told = bench.run("@@lead").await;
        match then {
            Some(front) => bench.agent("builder", front, "Build."),
            None => {
                std::fs::remove_file(bench.project().join(".claude/agents/builder.md")).unwrap();
            }
        }
        bench.resume(&told, "@@later").await;
        let exists = |name: &str| bench.project().join(name).exists();
        assert_eq!((exists("one.txt"), exists("two.txt")), expected, "{first:?}, then {then:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_never_accepted_gives_an_agent_that_continues_no_more_than_the_session_has() {
    // D-5a
    let mut bench = Bench::cast(&json!({
        "lead": [[agent("builder", "@@child", &json!({"name": "bob"}))], "done"],
        "child": [[write("one.txt")], "written"],
        "later": [[message("bob", "@@again")], "waiting", "heard"],
        "again": [[write("two.txt")], "tried"],
    }));
    bench.agent("builder", "permissionMode: acceptEdits\n", "Build.");
    bench.knows_strangers_agents(|_| {});
    bench.mode = Mode::AcceptEdits;
    let told = bench.run("@@lead").await;
    assert!(bench.project().join("one.txt").exists(), "{:?}", told.results());
    bench.mode = Mode::Default;
    bench.resume(&told, "@@later").await;
    assert!(!bench.project().join("two.txt").exists());
}

#[tokio::test(start_paused = true)]
async fn a_strangers_explore_changes_as_little_as_the_one_whose_place_it_takes() {
    let scripts = json!({
        "lead": [[agent("Explore", "@@child", &json!({"name": "bob"}))], [message("bob", "@@again")], "done", "heard"],
        "child": [[write("one.txt")], "tried"],
        "again": [[write("two.txt")], "tried"],
    });
    for (name, trusts, may_write) in [
        ("Explore", true, true),
        ("Explore", false, false),
        ("explore", false, false),
        ("EXPLORE", false, false),
    ] {
        let mut bench = Bench::cast(&scripts);
        bench.agent(name, "", "Do as you are told.");
        if !trusts {
            bench.knows_strangers_agents(|agents| agents.rules.limits.depth = 3);
        }
        bench.mode = Mode::AcceptEdits;
        bench.run("@@lead").await;
        for file in ["one.txt", "two.txt"] {
            assert_eq!(bench.project().join(file).exists(), may_write, "{file}: {name} {trusts}");
        }
    }
}

/// What an agent that only reads tries, and how many of these calls are refused.
fn attempts() -> (Vec<Value>, usize) {
    let commands = [
        "touch one.txt",
        "echo x > one.txt",
        "git log > one.txt",
        "cp -r a b",
        "sed -i s/a/b/ a.txt",
        "cat a.txt | tee one.txt",
        "mkdir one.txt",
    ];
    let mut calls: Vec<Value> =
        commands.into_iter().map(|command| json!([bash(command)])).collect();
    calls.push(json!([{"tool": "mcp__desk__greet", "input": {}}]));
    let count = calls.len();
    calls.extend([json!([write("one.txt")]), json!("looked around")]);
    (calls, count)
}

#[tokio::test(start_paused = true)]
async fn explore_and_plan_change_nothing_in_any_mode_under_any_rule() {
    let (calls, count) = attempts();
    let granting = json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "allow", "permissionDecisionReason": "x",
    }});
    for mode in
        [Mode::Default, Mode::AcceptEdits, Mode::BypassPermissions, Mode::Auto, Mode::DontAsk]
    {
        for kind in ["Explore", "Plan"] {
            let mut bench = Bench::cast(&json!({
                "lead": [
                    [agent(kind, "@@scout", &json!({"name": "bob"}))],
                    [message("bob", "@@again")],
                    "meanwhile", "done",
                ],
                "scout": calls,
                "again": calls,
            }));
            bench.file("a.txt", "alpha\n");
            bench.mode = mode;
            bench.allow = "Bash Edit Write mcp__desk";
            bench.answerer = Some(Arc::new(Trusting));
            let stage = Stage::at(Event::PreToolUse, granting.clone());
            let bench = stage.set(bench);
            let told = bench.run("@@lead").await;
            assert_eq!(denied(&told).len(), 2 * count, "{kind} in {mode}: {:?}", denied(&told));
            assert!(!bench.project().join("one.txt").exists(), "{kind} in {mode}");
            assert!(stage.desk.calls.lock().is_empty(), "{kind} in {mode}");
            let offered = &told.asked_by("@@scout")[0].tools;
            for tool in ["Agent", "Edit", "Write", "NotebookEdit", "SendMessage", "TaskStop"] {
                assert!(!offered.iter().any(|it| it == tool), "{kind} has {tool}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_runs_as_explore_changes_nothing_and_neither_does_what_it_starts() {
    let (mut calls, count) = attempts();
    let speech = calls.pop().unwrap();
    // Workers who could write, were they started: by the known name, the old one, and in the background.
    let mut old = waits("@@worker");
    old["tool"] = json!("Task");
    calls.extend([json!([waits("@@worker")]), json!([starts("@@worker")]), json!([old]), speech]);
    let mut bench = Bench::cast(&json!({
        "lead": calls,
        "worker": [[write("one.txt")], [{"tool": "mcp__desk__greet", "input": {}}], "written"],
    }));
    bench.file("a.txt", "alpha\n");
    bench.knows_agents(|agents| agents.main = Some("Explore".to_owned()));
    bench.mode = Mode::BypassPermissions;
    bench.allow = "Bash Edit Write Agent mcp__desk";
    bench.answerer = Some(Arc::new(Trusting));
    let stage = Stage::silent();
    let bench = stage.set(bench);
    let told = bench.run("@@lead").await;
    assert_eq!(denied(&told).len(), count, "{:?}", told.results());
    assert!(told.results().iter().all(|(_, is_error)| *is_error), "{:?}", told.results());
    assert_eq!(told.asked_by("@@worker").len(), 0, "nobody is started");
    assert!(stage.desk.calls.lock().is_empty(), "no tool of a server is called");
    let left: Vec<_> = std::fs::read_dir(bench.project()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(std::fs::read_to_string(bench.project().join("a.txt")).unwrap(), "alpha\n");
}

#[tokio::test(start_paused = true)]
async fn a_file_of_the_users_in_the_place_of_explore_is_the_users_own() {
    let bench = Bench::cast(&json!({
        "lead": [[agent("Explore", "@@scout", &json!({}))], "done"],
        "scout": [[write("one.txt")], "written"],
    }));
    bench.agent("Explore", "", "Write what you find.");
    let told = bench.run("@@lead").await;
    assert!(bench.project().join("one.txt").exists(), "{:?}", told.results());
}

#[tokio::test(start_paused = true)]
async fn an_agent_at_work_follows_the_mode_of_the_session() {
    // D-5a
    let slow = |file: &str| json!({"blocks": [write(file)], "latency_ms": 10_000});
    let mut bench = Bench::cast(&json!({
        "lead": [[waits("@@child")], "done"],
        "child": [[waits("@@deeper")], "done"],
        "deeper": [slow("one.txt"), slow("two.txt"), slow("three.txt"), "tried"],
    }));
    bench.mode = Mode::BypassPermissions;
    let told = bench
        .live("@@lead", |handle, watcher| async move {
            let answers = |count: usize| {
                watcher.until(move |_, asked| {
                    let own =
                        asked.iter().filter(|it| it.messages[0].to_string().contains("@@deeper"));
                    own.count() > count
                })
            };
            answers(1).await;
            handle.set_mode(Mode::Default).unwrap();
            answers(2).await;
            handle.set_mode(Mode::AcceptEdits).unwrap();
        })
        .await;
    let found = ["one.txt", "two.txt", "three.txt"].map(|it| bench.project().join(it).exists());
    assert_eq!(found, [true, false, true], "{:?}", told.results());
}
