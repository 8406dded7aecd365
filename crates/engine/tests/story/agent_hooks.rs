//! Hooks around agents that others start, and hooks that agents bring themselves.

use std::sync::Arc;

use centurion_hooks::Event;
use centurion_protocol::Outcome;
use serde_json::{Value, json};

use crate::agent_stage::{agent, starts, waits};
use crate::bench::{Bench, Told};
use crate::hook_stage::Stage;

fn read() -> Value {
    json!({"tool": "Read", "input": {"file_path": "a.txt"}})
}

/// A hook in frontmatter: a tool of a server that answers what the hook wants it to.
fn frontmatter(event: &str, matcher: &str, verdict: &Value) -> String {
    let hook = json!({"type": "mcp_tool", "server": "desk", "tool": "judge", "input": {"verdict": verdict}});
    format!("hooks:\n  {event}:\n    - matcher: \"{matcher}\"\n      hooks:\n        - {hook}\n")
}

fn denial(reason: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                                  "permissionDecisionReason": reason}})
}

fn ids(stage: &Stage, event: Event) -> Vec<String> {
    let heard = stage.heard(event);
    heard.iter().map(|told| told["agent_id"].as_str().unwrap().to_owned()).collect()
}

fn informed(told: &Told, text: &str) -> usize {
    let events = told.of("system", Some("informational"));
    events.iter().filter(|event| event["content"].as_str().unwrap().contains(text)).count()
}

#[tokio::test(start_paused = true)]
async fn an_agent_at_any_depth_works_on_the_prompt_of_its_parent() {
    // S-159
    let bench = Bench::cast(&json!({
        "lead": [[waits("@@child")], [read()], "done"],
        "child": [[waits("@@grandchild")], [read()], "found"],
        "grandchild": [[read()], "found"],
    }));
    bench.file("a.txt", "alpha\n");
    let stage = Stage::silent();
    stage.set(bench).run("@@lead").await;
    let heard = stage.heard(Event::PreToolUse);
    let reads: Vec<&Value> = heard.iter().filter(|told| told["tool_name"] == "Read").collect();
    let agents = reads.iter().filter(|told| told["agent_id"].is_string()).count();
    assert_eq!((reads.len(), agents), (3, 2), "{heard:?}");
    let prompt = &reads[0]["prompt_id"];
    assert!(
        prompt.is_string() && reads.iter().all(|told| told["prompt_id"] == *prompt),
        "{reads:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_shown_of_hooks_names_the_agent_in_which_they_ran() {
    let bench = Bench::cast(&json!({
        "lead": [[read()], [waits("@@child")], "done"],
        "child": [[read()], "found"],
    }));
    bench.file("a.txt", "alpha\n");
    let stage = Stage::at(Event::PostToolUse, json!({"systemMessage": "seen"}));
    let mut bench = stage.set(bench);
    let before = bench.adjust;
    bench.adjust = Box::new(move |options| {
        before(options);
        options.extensions.shows_hooks = true;
    });
    let told = bench.run("@@lead").await;
    let child = told.of("system", Some("task_started"))[0]["task_id"].clone();
    for subtype in ["informational", "hook_started", "hook_response"] {
        let events = told.of("system", Some(subtype));
        let reads = events
            .iter()
            .filter(|event| event["content"] == "seen" || event["hook_name"] == "PostToolUse:Read");
        let mut agents: Vec<&Value> = reads.map(|event| &event["agent_id"]).collect();
        // The call that started the child is the lead's, too.
        agents.dedup();
        assert!(agents.starts_with(&[&Value::Null, &child]), "{subtype}: {agents:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_hear_of_the_stop_of_every_started_agent_however_it_ended() {
    // scenario 28, S-333; killed, out of turns, without a provider, denied, stalled
    let stop = json!({"tool": "TaskStop", "input": {"task_id": "${re:agentId: (a[0-9a-f]+)}"}});
    let slow = json!([{"text": "never", "latency_ms": 3_600_000}]);
    let broken = json!([{"error": {"status": 500, "type": "api_error"}, "blocks": []}]);
    let silent = json!([{"text": "half", "stall_after_events": 2, "stall_ms": 86_400_000}]);
    let short = agent("general-purpose", "@@child", &json!({"max_turns": 1}));
    for (name, lead, child, outcome) in [
        (
            "killed",
            json!([[starts("@@child")], {"blocks": [stop], "latency_ms": 1_000}, "stopped", "heard"]),
            slow,
            "stopped",
        ),
        ("out of turns", json!([[short], "done"]), json!([[read()], [read()]]), "failed"),
        ("no provider", json!([[waits("@@child")], "done"]), broken, "failed"),
        ("stalled", json!([[starts("@@child")], "meanwhile", "heard"]), silent, "failed"),
        ("done", json!([[waits("@@child")], "done"]), json!(["found"]), "completed"),
    ] {
        let mut bench = Bench { retries: 0, ..Bench::cast(&json!({"lead": lead, "child": child})) };
        bench.file("a.txt", "alpha\n");
        bench.knows_agents(|agents| agents.rules.stall = Some(std::time::Duration::from_secs(20)));
        let stage = Stage::silent();
        let told = stage.set(bench).run("@@lead").await;
        assert_eq!(told.outcome, Some(Outcome::Completed), "{name}");
        assert_eq!(told.of("system", Some("task_notification"))[0]["status"], outcome, "{name}");
        assert_eq!(ids(&stage, Event::SubagentStart), told.agent_ids(), "{name}");
        assert_eq!(ids(&stage, Event::SubagentStop), told.agent_ids(), "{name}");
        let failures = stage.heard(Event::StopFailure);
        assert_eq!(failures.len(), usize::from(name == "no provider"), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_never_began_is_not_told_to_have_stopped() {
    let stop = json!({"tool": "TaskStop", "input": {"task_id": "${re:agentId: (a[0-9a-f]+)}"}});
    let mut bench = Bench::cast(&json!({
        "lead": [[starts("@@child")], [starts("@@child")], [stop], "done", "heard", "heard"],
        "child": [{"text": "found", "latency_ms": 60_000}],
    }));
    bench.knows_agents(|agents| agents.rules.limits.running = 1);
    let stage = Stage::silent();
    let told = stage.set(bench).run("@@lead").await;
    assert_eq!(told.agent_ids().len(), 2);
    assert_eq!(ids(&stage, Event::SubagentStart), told.agent_ids()[..1]);
    assert_eq!(ids(&stage, Event::SubagentStop), told.agent_ids()[..1]);
}

#[tokio::test(start_paused = true)]
async fn hooks_at_the_start_add_context_and_stop_no_agent() {
    // S-333, D-47
    let context = json!({"hookEventName": "SubagentStart", "additionalContext": "mind the gap"});
    for (answer, is_told) in [
        (json!({"hookSpecificOutput": context}), true),
        (json!({"continue": false, "stopReason": "no agents today"}), false),
        (json!({"decision": "block", "reason": "no agents today"}), false),
    ] {
        let bench = Bench::cast(
            &json!({"lead": [[waits("@@child")], "done"], "child": [[read()], "found"]}),
        );
        bench.file("a.txt", "alpha\n");
        let stage = Stage::at(Event::SubagentStart, answer.clone());
        let told = stage.set(bench).run("@@lead").await;
        assert_eq!(told.agent_results()[0]["status"], "completed", "{answer}");
        let child = told.asked_by("@@child");
        let texts = child.last().unwrap().texts().join("\n");
        assert_eq!(
            texts.matches("mind the gap").count(),
            usize::from(is_told),
            "{answer}: {texts}"
        );
        assert!(
            !told.main_texts().join("\n").contains("mind the gap"),
            "it is for the agent alone"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_give_an_agent_another_turn_and_not_for_ever() {
    // scenario 28: at most eight times in a row
    for (most, expected) in [(2, 3), (u64::MAX, 9)] {
        let bench = Bench::cast(&json!({
            "lead": [[waits("@@child")], "done"],
            "child": vec!["done yet?"; 30],
        }));
        let blocked = Arc::new(std::sync::atomic::AtomicU64::new(0));
        let stage = Stage::new(move |told| {
            let is_it = told["hook_event_name"] == "SubagentStop";
            let may = is_it && blocked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < most;
            Some(if may { json!({"decision": "block", "reason": "look again"}) } else { json!({}) })
        });
        let told = stage.set(bench).run("@@lead").await;
        assert_eq!(told.asked_by("@@child").len(), expected);
        assert_eq!(stage.heard(Event::SubagentStop).len(), expected);
        assert_eq!(told.agent_results()[0]["status"], "completed");
        let texts = told.asked_by("@@child").last().unwrap().texts().join("\n");
        assert!(texts.contains("look again"), "{texts}");
        assert_eq!(informed(&told, "too often in a row"), usize::from(most > 2));
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_deny_calls_of_agents_at_any_depth() {
    // scenario 28: a deny works in every kind of agent
    let bench = Bench::cast(&json!({
        "lead": [[read()], [waits("@@child")], [starts("@@child")], "meanwhile", "heard"],
        "child": [[read()], [waits("@@grandchild")], "found"],
        "grandchild": [[read()], "found"],
    }));
    bench.file("a.txt", "alpha\n");
    let stage = Stage::new(|told| {
        let is_it = told["hook_event_name"] == "PreToolUse"
            && told["tool_name"] == "Read"
            && told.get("agent_id").is_some();
        Some(if is_it { denial("not for agents") } else { json!({}) })
    });
    let told = stage.set(bench).run("@@lead").await;
    let denied: Vec<Value> = stage.heard(Event::PreToolUse);
    let denied = denied.iter().filter(|it| it["tool_name"] == "Read" && it["depth"] != 0).count();
    assert_eq!(denied, 4, "child and grandchild, waited for and not");
    for asked in told.asked_by("@@grandchild").iter().skip(1).step_by(2) {
        assert!(asked.texts().join("\n").contains("not for agents"));
    }
    let ended = stage.heard(Event::PostToolUse);
    let ended = ended.iter().filter(|it| it["tool_name"] == "Read").count();
    assert_eq!(ended, 1, "only the main agent's went through");
}

#[tokio::test(start_paused = true)]
async fn hooks_of_a_definition_count_for_its_agent_alone_and_end_with_it() {
    // S-260, S-334, S-336
    let bench = Bench::cast(&json!({
        "lead": [[read()], [agent("guarded", "@@guarded", &json!({}))], [waits("@@free")], [read()], "done"],
        "guarded": [[read()], [waits("@@free")], "could not"],
        "free": [[read()], "could"],
    }));
    bench.file("a.txt", "alpha\n");
    bench.agent("guarded", &frontmatter("PreToolUse", "Read", &denial("guarded")), "Be careful.");
    let stage = Stage::silent();
    let told = stage.set(bench).run("@@lead").await;
    assert_eq!(stage.desk.calls.lock().len(), 1, "once, for the one call of the one agent");
    let guarded = told.asked_by("@@guarded")[1].texts().join("\n");
    assert!(guarded.contains("guarded") && !guarded.contains("alpha"), "{guarded}");
    let free = told.asked_by("@@free");
    assert_eq!(free.len(), 4);
    assert!(free[1].texts().join("\n").contains("alpha"), "one below it is free of them");
    assert!(told.main_texts().join("\n").matches("alpha").count() >= 2);
}

#[tokio::test(start_paused = true)]
async fn hooks_of_a_definition_come_back_when_the_agent_continues() {
    // S-334, scenario 14
    let bench = Bench::cast(&json!({
        "lead": [
            [agent("guarded", "@@first", &json!({}))],
            [{"tool": "SendMessage", "input": {"to": "${re:agentId: (a[0-9a-f]+)}", "message": "@@more"}}],
            "waiting", "heard",
        ],
        "first": ["nothing read"],
        "more": [[read()], "could not"],
    }));
    bench.file("a.txt", "alpha\n");
    bench.agent("guarded", &frontmatter("PreToolUse", "Read", &denial("guarded")), "Be careful.");
    let stage = Stage::silent();
    let told = stage.set(bench).run("@@lead").await;
    assert_eq!(stage.desk.calls.lock().len(), 1);
    assert!(!told.asked_by("@@first").last().unwrap().texts().join("\n").contains("alpha"));
}

#[tokio::test(start_paused = true)]
async fn a_stop_hook_of_a_definition_is_for_main_agent_and_sub_agent_alike() {
    // S-335
    let said = |name: &str| json!({"systemMessage": format!("{name} stops")});
    let define = |bench: &Bench| {
        bench.agent("boss", &frontmatter("Stop", "", &said("boss")), "Direct.");
        bench.agent("worker", &frontmatter("Stop", "", &said("worker")), "Work.");
    };
    let scripts =
        json!({"lead": [[agent("worker", "@@child", &json!({}))], "done"], "child": ["found"]});
    let mut bench = Bench::cast(&scripts);
    define(&bench);
    bench.knows_agents(|agents| agents.main = Some("boss".to_owned()));
    let stage = Stage::silent();
    let told = stage.set(bench).run("@@lead").await;
    assert_eq!((informed(&told, "boss stops"), informed(&told, "worker stops")), (1, 1));
    let [stopped] = &stage.heard(Event::SubagentStop)[..] else { panic!() };
    assert_eq!(stopped["agent_type"], "worker");
    let [stopped] = &stage.heard(Event::Stop)[..] else { panic!() };
    assert_eq!(stopped["agent_type"], "boss", "hooks know what the session runs as");
    assert!(stopped.get("agent_id").is_none());
}

#[tokio::test(start_paused = true)]
async fn hooks_that_may_not_run_are_said_not_to() {
    // D-9 for files of the repository; managed settings
    for reason in ["not trusted", "leave hooks to plugins"] {
        let mut bench = Bench::cast(&json!({
            "lead": [[agent("guarded", "@@guarded", &json!({}))], "done"],
            "guarded": [[read()], "could"],
        }));
        bench.file("a.txt", "alpha\n");
        bench.agent(
            "guarded",
            &frontmatter("PreToolUse", "Read", &denial("guarded")),
            "Be careful.",
        );
        match reason {
            "not trusted" => bench.knows_strangers_agents(|_| {}),
            _ => bench.knows_agents(|agents| agents.only_plugin_hooks = true),
        }
        let stage = Stage::silent();
        let told = stage.set(bench).run("@@lead").await;
        assert!(stage.desk.calls.lock().is_empty());
        assert_eq!(informed(&told, "`hooks` is not in force"), 1, "{reason}");
        assert_eq!(informed(&told, reason), 1, "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_of_a_skill_count_for_the_agent_that_knows_it_alone() {
    // S-260, S-334
    let bench = Bench::cast(&json!({
        "lead": [[agent("skilled", "@@child", &json!({}))], [read()], "done"],
        "child": [[read()], "tried"],
    }));
    bench.file("a.txt", "alpha\n");
    let skill = bench.project().join(".claude/skills/care");
    std::fs::create_dir_all(&skill).unwrap();
    let front = frontmatter("PreToolUse", "Read", &denial("the skill says no"));
    let text = format!("---\nname: care\ndescription: careful\n{front}---\nBe careful.\n");
    std::fs::write(skill.join("SKILL.md"), text).unwrap();
    bench.agent("skilled", "skills: care\n", "Work.");
    let stage = Stage::silent();
    let told = stage.set(bench).run("@@lead").await;
    assert_eq!(stage.desk.calls.lock().len(), 1, "once, for the agent's one call");
    let child = told.asked_by("@@child")[1].texts().join("\n");
    assert!(child.contains("the skill says no") && !child.contains("alpha"), "{child}");
    assert!(told.main_texts().join("\n").contains("alpha"));
}
