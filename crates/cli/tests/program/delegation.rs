//! The view of hosts and people on agents that work for another one.

use serde_json::{Value, json};

use crate::host::{Host, control};
use crate::program::eventually;
use crate::stage::{Stage, Told, agent, bash, keys, run_and, watch_and};

/// The kind of an event, and its agent.
fn outline(event: &Value) -> String {
    let block = &event["message"]["content"][0]["type"];
    let parts = [&event["type"], &event["subtype"], block];
    let words: Vec<&str> = parts.into_iter().filter_map(Value::as_str).collect();
    let whose = if event["parent_tool_use_id"].is_string() { " of a child" } else { "" };
    format!("{}{whose}", words.join("/"))
}

fn outlines(events: &[Value]) -> Vec<String> {
    events.iter().map(outline).collect()
}

/// An event has these fields, and those that every one of its type has.
fn assert_keys(event: &Value, own: &str) {
    let mut wanted: Vec<&str> = own.split(' ').collect();
    wanted.extend(["session_id", "subtype", "type", "uuid"]);
    wanted.sort_unstable();
    assert_eq!(keys(event), wanted);
}

#[test]
fn a_host_that_asks_for_it_sees_who_waits_for_what() {
    let stage = Stage::new(&json!({
        "lead": [[agent("look @@scout", &json!({"subagent_type": "general-purpose"}))], "all done"],
        "scout": ["I found 42."],
    }));
    let told = stage.run("@@lead", &["--include-wait-events"]);
    told.assert_code(0);
    let waits = told.of("agent_waiting");
    let shown: Vec<[&Value; 2]> =
        waits.iter().map(|wait| [&wait["waits_for"], &wait["is_over"]]).collect();
    assert_eq!(shown, [[&json!("agent"), &json!(false)], [&json!("agent"), &json!(true)]]);
    assert_keys(waits[0], "is_over waits_for");
}

#[test]
fn an_agent_that_is_waited_for_is_told_of_in_the_order_that_hosts_know() {
    // S-186, S-187, S-319, S-328
    let stage = Stage::new(&json!({
        "lead": [[agent("look @@scout", &json!({"subagent_type": "general-purpose"}))], "all done"],
        "scout": [["I look.", {"tool": "Read", "input": {"file_path": "notes.txt"}}], "I found 42."],
    }));
    stage.program.scratch.write("notes.txt", "42\n");
    let told = stage.run("@@lead", &[]);
    told.assert_code(0);
    assert_eq!(
        outlines(&told.events),
        [
            "system/init",
            "system/status",
            "assistant/tool_use",
            "system/task_started",
            "user/text of a child",
            "assistant/tool_use of a child",
            "system/task_progress",
            "user/tool_result of a child",
            "system/task_updated",
            "system/task_notification",
            "user/tool_result",
            "system/status",
            "assistant/text",
            "result/success",
        ]
    );
    let (started, call) =
        (told.of("task_started")[0], &told.events[2]["message"]["content"][0]["id"]);
    assert_keys(
        started,
        "color description is_backgrounded prompt run_id spawn_depth subagent_type task_id task_type tool_use_id",
    );
    assert_eq!(started["tool_use_id"], *call);
    assert_eq!(
        [&started["is_backgrounded"], &started["spawn_depth"], &started["task_type"]],
        [&json!(false), &json!(1), &json!("local_agent")]
    );
    let progress = told.of("task_progress")[0];
    assert_keys(
        progress,
        "description last_tool_name run_id subagent_type task_id tool_use_id usage",
    );
    assert_eq!(progress["description"], "Reading notes.txt");
    assert_eq!(keys(&progress["usage"]), ["duration_ms", "tool_uses", "total_tokens"]);
    let updated = told.of("task_updated")[0];
    assert_keys(updated, "patch run_id task_id");
    assert_eq!(updated["patch"]["status"], "completed");
    assert!(updated["patch"]["end_time"].is_i64());
    let notification = told.of("task_notification")[0];
    assert_keys(notification, "output_file run_id status summary task_id tool_use_id usage");
    assert_eq!(notification["summary"], "I found 42.");
    for event in [progress, updated, notification] {
        assert_eq!(
            [&event["task_id"], &event["run_id"]],
            [&started["task_id"], &started["run_id"]]
        );
    }
    for event in &told.events[4..8] {
        if event["type"] == "system" {
            continue;
        }
        assert_eq!(event["parent_tool_use_id"], *call);
        assert_eq!(event["agent_id"], started["task_id"]);
        assert_eq!(event["subagent_type"], "general-purpose");
        assert_eq!(event["task_description"], "a job");
    }
    assert!(
        told.events[10].get("agent_id").is_none(),
        "the result of the call is the main agent's"
    );
    assert_eq!(
        told.ended.result()["subagent_stats"],
        json!({
            "spawned": 1, "requested": {"background": 0, "foreground": 0, "unset": 1},
            "started_in_background": 0, "max_depth": 1, "spawned_by_subagents": 0,
            "completed": 1, "failed": 0, "killed": {"parent": 0, "user": 0, "system": 0},
            "refused": {"depth_limit": 0, "concurrency_limit": 0, "budget": 0},
            "by_type": {"general-purpose": 1},
        })
    );
}

#[test]
fn a_run_waits_for_its_background_agents_and_hears_of_them_in_turns_of_their_own() {
    // S-197, S-208, S-210, S-223
    let stage = Stage::new(&json!({
        "lead": [
            [agent("@@slow", &json!({"run_in_background": true, "name": "bob"}))],
            "meanwhile",
            "heard of it",
        ],
        "slow": [["I wait.", bash("until [ -e go ]; do sleep 0.01; done")], "slow result"],
    }));
    // The agent continues when the first turn has its answer, and not before.
    let mut command = stage.command("@@lead", &["--allowedTools", "Bash"]);
    let go = || drop(stage.program.scratch.write("go", ""));
    let told = Told::new(run_and(&mut command, |line| line.contains("\"meanwhile\""), go));
    told.assert_code(0);
    let started = told.of("task_started")[0];
    assert_eq!([&started["is_backgrounded"], &started["name"]], [&json!(true), &json!("bob")]);
    let background = told.of("background_tasks_changed");
    let [first, last] = background[..] else { panic!("{background:?}") };
    assert_eq!(
        keys(&first["tasks"][0]),
        ["description", "run_id", "subagent_type", "task_id", "task_type"]
    );
    assert_eq!(last["tasks"], json!([]));
    assert_eq!(told.of("init").len(), 2, "one at the start of each turn");
    let results = told.of("result");
    let [first, second] = results[..] else { panic!("{results:?}") };
    assert_eq!([&first["result"], &first["result_index"]], [&json!("meanwhile"), &json!(0)]);
    assert!(first.get("origin").is_none());
    assert_eq!([&second["result"], &second["result_index"]], [&json!("heard of it"), &json!(1)]);
    assert_eq!(
        second["origin"],
        json!({"kind": "task-notification", "producer": "session-task", "runId": started["run_id"]})
    );
    assert_eq!(background[0]["tasks"][0]["run_id"], started["run_id"]);
    assert_eq!(second["subagent_stats"]["started_in_background"], 1);
    assert_eq!(second["subagent_stats"]["completed"], 1);
    // An agent in the background is heard; what it was asked is not shown.
    let of_child = |event: &&Value| event["agent_id"] == started["task_id"];
    let of_child: Vec<String> = told.events.iter().filter(of_child).map(outline).collect();
    assert_eq!(
        of_child,
        [
            "assistant/text of a child",
            "assistant/tool_use of a child",
            "user/tool_result of a child",
            "assistant/text of a child",
        ]
    );
    // The first result is not shown as if it were the last: it waits until nothing is owed.
    let tail = outlines(&told.events[told.events.len() - 8..]);
    assert_eq!(
        tail,
        [
            "system/task_updated",
            "system/task_notification",
            "system/background_tasks_changed",
            "system/init",
            "system/status",
            "assistant/text",
            "result/success",
            "result/success",
        ]
    );
}

#[test]
fn agents_of_agents_say_whose_they_are_and_speak_only_where_that_is_asked_for() {
    // S-186
    let stage = Stage::new(&json!({
        "lead": [[agent("@@middle", &json!({}))], "top"],
        "middle": [["I delegate.", agent("@@bottom", &json!({}))], "middle"],
        "bottom": ["bottom"],
    }));
    let said = |told: &Told| -> Vec<String> {
        let texts =
            told.of("assistant").into_iter().filter(|event| event.get("agent_id").is_some());
        let texts = texts.filter_map(|event| event["message"]["content"][0]["text"].as_str());
        texts.map(str::to_owned).collect()
    };
    let told = stage.run("@@lead", &[]);
    told.assert_code(0);
    let started = told.of("task_started");
    assert_eq!(started[0].get("parent_task_id"), None);
    assert_eq!(
        [&started[1]["parent_task_id"], &started[1]["spawn_depth"]],
        [&started[0]["task_id"], &json!(2)]
    );
    let prompt =
        told.of("user").into_iter().find(|event| event["agent_id"] == started[1]["task_id"]);
    assert_eq!(prompt.unwrap()["parent_tool_use_id"], started[1]["tool_use_id"]);
    assert_eq!(told.ended.result()["subagent_stats"]["max_depth"], 2);
    assert_eq!(said(&told), Vec::<String>::new(), "what they say is for those who wait");
    let told = stage.run("@@lead", &["--forward-subagent-text"]);
    assert_eq!(said(&told), ["I delegate.", "bottom", "middle"]);
}

#[test]
fn an_agent_that_continues_is_the_same_task_in_another_run() {
    // S-230, S-233
    let stage = Stage::new(&json!({
        "lead": [
            [agent("@@worker", &json!({"name": "bob"}))],
            [{"tool": "SendMessage", "input": {"to": "bob", "message": "@@more", "summary": "go on"}}],
            "waiting",
            "done",
        ],
        "worker": ["first"],
        "more": ["second"],
    }));
    let told = stage.run("@@lead", &[]);
    told.assert_code(0);
    let started = told.of("task_started");
    let [first, again] = started[..] else { panic!("{started:?}") };
    assert_eq!(first["task_id"], again["task_id"]);
    assert_ne!(first["run_id"], again["run_id"]);
    assert_eq!([&again["prompt"], &again["is_backgrounded"]], [&json!("@@more"), &json!(true)]);
    let call = told.of("assistant").into_iter().find(|it| it.to_string().contains("SendMessage"));
    assert_eq!(again["tool_use_id"], call.unwrap()["message"]["content"][0]["id"]);
    let summaries: Vec<&Value> =
        told.of("task_notification").into_iter().map(|event| &event["summary"]).collect();
    assert_eq!(summaries, ["first", "second"]);
    assert_eq!(told.ended.result()["subagent_stats"]["spawned"], 1, "going on is no new agent");
    assert_eq!(told.data()[1]["resumedAgentId"], first["task_id"]);
}

#[test]
fn people_watch_a_tree_of_agents() {
    // S-186, S-193
    let stage = Stage::new(&json!({
        "lead": [
            ["I delegate.", agent("@@scout", &json!({"name": "scout", "subagent_type": "Explore"}))],
            [agent("@@slow", &json!({"run_in_background": true, "description": "take long"}))],
            "meanwhile",
            "heard of it",
        ],
        "scout": [[{"tool": "Read", "input": {"file_path": "notes.txt"}}], "I found 42."],
        "slow": [["hidden words", bash("until [ -e go ]; do sleep 0.01; done")], "slow result"],
    }));
    stage.program.scratch.write("notes.txt", "42\n");
    let arguments =
        ["-p", "@@lead", "--model", stage.model(), "--verbose", "--allowedTools", "Bash"];
    let go = || drop(stage.program.scratch.write("go", ""));
    let waits = |line: &str| line.starts_with("◌ still at work");
    let ended = watch_and(&mut stage.program.command(arguments), waits, go);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stdout, "heard of it\n", "the last answer alone");
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let wanted = [
        "│ I delegate.",
        "  ▶ scout  a job [Explore]",
        "  ● scout  Read notes.txt · 1 call · ",
        "  ✓ scout  done · 1 call · ",
        "    └ I found 42.",
        "  ▶ general-purpose  take long (in the background)",
        "│ meanwhile",
        "◌ still at work in the background: general-purpose (take long)",
        "  ✓ general-purpose  done · 1 call · ",
        "    └ slow result",
        "│ heard of it",
    ];
    let mut from = 0;
    for line in wanted {
        let found = lines[from..].iter().position(|it| it.starts_with(line));
        from += found.unwrap_or_else(|| panic!("`{line}` is missing: {}", ended.stderr)) + 1;
    }
    assert!(
        !ended.stderr.contains("hidden words") && !ended.stderr.contains('\x1b'),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_host_that_asks_for_it_is_told_when_nothing_is_owed() {
    let stage = Stage::new(&json!({
        "lead": [
            [agent("@@slow", &json!({"run_in_background": true}))],
            "meanwhile",
            "heard of it",
        ],
        "slow": [[bash("until [ -e go ]; do sleep 0.01; done")], "slow result"],
    }));
    let mut command = stage.command("@@lead", &["--allowedTools", "Bash"]);
    command.env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1");
    let go = || drop(stage.program.scratch.write("go", ""));
    let told = Told::new(run_and(&mut command, |line| line.contains("\"meanwhile\""), go));
    told.assert_code(0);
    let what = |event: &Value| match (&event["type"], &event["subtype"]) {
        (kind, _) if kind == "result" => Some("(result)".to_owned()),
        (_, subtype) if subtype == "session_state_changed" => {
            Some(event["state"].as_str().unwrap().to_owned())
        }
        _ => None,
    };
    let states: Vec<String> = told.events.iter().filter_map(what).collect();
    assert_eq!(states, ["running", "running", "(result)", "(result)", "idle"]);
    assert_eq!(told.events[0]["subtype"], "session_state_changed", "before the first init");
    let silent = stage.run("@@lead", &["--allowedTools", "Bash"]);
    assert!(silent.of("session_state_changed").is_empty(), "others are not told");
}

#[test]
fn lines_about_agents_at_work_are_off_until_a_host_or_a_setting_wants_them() {
    // S-327
    let wanted = |flags: &[&str], more: &Value| {
        let stage = Stage::new(&json!({}));
        let mut host = Host::start(&stage.program, &[&["--model", stage.model()], flags].concat());
        let mut request = json!({"subtype": "initialize"});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        host.send(&control("i", &request));
        let seen = host.until(|event| event["type"] == "control_response").pop().unwrap();
        assert_eq!(host.finish(), 0);
        seen["response"]["response"]["agent_progress_summaries"].as_bool().unwrap()
    };
    assert!(!wanted(&[], &json!({})));
    assert!(wanted(&[], &json!({"agentProgressSummaries": true})));
    let setting = ["--settings", "{\"subagents\": {\"summaries\": true}}"];
    assert!(wanted(&setting, &json!({})));
    assert!(!wanted(&setting, &json!({"agentProgressSummaries": false})));
}

#[test]
fn a_host_moves_a_waiting_call_to_the_background_and_ends_one_agent() {
    // S-190, S-191, S-200, D-31
    let stage = Stage::new(&json!({
        "lead": [[agent("@@stuck", &json!({}))], "not waiting", "sorry to hear it"],
        "stuck": [[bash("touch started; sleep 98811")], "never"],
    }));
    let mut host =
        Host::start(&stage.program, &["--model", stage.model(), "--allowedTools", "Bash"]);
    host.say("@@lead");
    let seen = host.until(|event| event["subtype"] == "task_started");
    let id = seen.last().unwrap()["task_id"].clone();
    let started = stage.program.scratch.project().join("started");
    eventually("the agent is at work", || started.exists().then_some(()));
    host.send(&control("b", &json!({"subtype": "background_tasks"})));
    let seen = host.until(|event| event["type"] == "result");
    let patch = seen.iter().find(|event| event["subtype"] == "task_updated").unwrap();
    assert_eq!([&patch["task_id"], &patch["patch"]], [&id, &json!({"is_backgrounded": true})]);
    let listed = seen.iter().find(|event| event["subtype"] == "background_tasks_changed").unwrap();
    assert_eq!(listed["tasks"][0]["task_id"], id);
    assert_eq!(seen.last().unwrap()["result"], "not waiting");
    host.send(&control("n", &json!({"subtype": "stop_task", "task_id": "nobody"})));
    host.send(&control("s", &json!({"subtype": "stop_task", "task_id": id})));
    let seen = host.until(|event| event["type"] == "result");
    let answers: Vec<&Value> = seen
        .iter()
        .filter(|it| it["type"] == "control_response")
        .map(|it| &it["response"]["subtype"])
        .collect();
    assert_eq!(answers, ["error", "success"], "one that is unknown is no success");
    let updated = seen.iter().find(|event| event["subtype"] == "task_updated").unwrap();
    assert_eq!(updated["patch"]["status"], "killed");
    let told = seen.iter().find(|event| event["subtype"] == "task_notification").unwrap();
    assert_eq!(told["status"], "stopped");
    let result = seen.last().unwrap();
    assert_eq!(result["result"], "sorry to hear it");
    assert_eq!(result["subagent_stats"]["killed"], json!({"parent": 0, "user": 1, "system": 0}));
    assert_eq!(host.finish(), 0);
    let ends = stage.agent_transcripts();
    assert!(ends[0].contains("\"status\":\"killed\""), "{}", ends[0]);
    eventually("its command ended", || {
        crate::processes::processes("sleep 98811").is_empty().then_some(())
    });
}

#[test]
fn a_host_ends_the_shell_of_an_agent_at_work() {
    let shell =
        json!({"tool": "Bash", "input": {"command": "sleep 98812", "run_in_background": true}});
    let stage = Stage::new(&json!({
        "lead": [[agent("@@child", &json!({}))], "done"],
        "child": [[shell], [bash("until [ -e go ]; do sleep 0.01; done")], "waited"],
    }));
    let mut host =
        Host::start(&stage.program, &["--model", stage.model(), "--allowedTools", "Bash"]);
    host.say("@@lead");
    let is_shell = |event: &Value| event["task_type"] == "local_bash";
    let seen = host.until(|event| event["subtype"] == "task_started" && is_shell(event));
    let id = seen.last().unwrap()["task_id"].clone();
    let mut stop = |name: &str| {
        host.send(&control(name, &json!({"subtype": "stop_task", "task_id": id})));
        let seen = host.until(|event| event["type"] == "control_response");
        let answer = seen.last().unwrap()["response"].clone();
        let told = seen.iter().find(|event| event["subtype"] == "task_notification");
        (answer, told.map(|it| [it["task_id"].clone(), it["status"].clone()]))
    };
    let (answer, told) = stop("a");
    assert_eq!(answer["subtype"], "success", "{answer}");
    assert_eq!(told, Some([id.clone(), json!("stopped")]));
    let (answer, _) = stop("b");
    assert!(answer["error"].as_str().unwrap().contains("not running any more"), "{answer}");
    stage.program.scratch.write("go", "");
    assert_eq!(host.result()["result"], "done");
    assert_eq!(host.finish(), 0);
}

#[test]
fn what_a_hook_says_after_its_agent_has_ended_is_told_to_the_agent_above() {
    let late = "until [ -e go ]; do sleep 0.01; done; echo 'late words' >&2; exit 2";
    let hook = json!([{"hooks": [{"type": "command", "asyncRewake": true, "command": late}]}]);
    let settings = json!({"hooks": {"SubagentStop": hook}}).to_string();
    let stage = Stage::new(&json!({
        "lead": [[agent("@@child", &json!({}))], "first", "woken"],
        "child": ["there"],
    }));
    let mut host =
        Host::start(&stage.program, &["--model", stage.model(), "--settings", &settings]);
    host.say("@@lead");
    assert_eq!(host.result()["result"], "first");
    stage.program.scratch.write("go", "");
    let woken = host.result();
    assert_eq!(
        (&woken["result"], &woken["origin"]["kind"]),
        (&json!("woken"), &json!("auto-continuation"))
    );
    assert_eq!(host.finish(), 0);
    let [transcript] = &stage.program.transcripts()[..] else { panic!("one session") };
    assert!(std::fs::read_to_string(transcript).unwrap().contains("late words"));
}
