//! Events that tell hosts how things stand: each is there when its cause is, and as the SDK declares it.

use std::process::{Command, Stdio};

use centurion_testkit::{Lack, Reply, skip, sse};
use serde_json::{Value, json};

use crate::host::{Host, control};
use crate::program::{Program, call, ended, eventually};

/// The events of a kind.
fn of<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let is_it = |event: &&Value| event["type"] == kind || event["subtype"] == kind;
    events.iter().filter(is_it).collect()
}

/// One turn of a conversation.
fn turn(host: &mut Host, prompt: &str) -> Vec<Value> {
    host.say(prompt);
    host.until(|event| event["type"] == "result")
}

#[test]
fn each_request_of_the_main_agent_is_told_before_it_is_answered() {
    let program = Program::with_handler(|request| match request.json()["messages"].to_string() {
        text if text.contains("child work") => Reply::text("worked"),
        text if text.contains("tool_result") => Reply::text("done"),
        _ => call(
            "toolu_1",
            "Agent",
            json!({"description": "d", "prompt": "child work", "subagent_type": "general-purpose"}),
        ),
    });
    let mut host = Host::start(&program, &[]);
    let events = turn(&mut host, "go");
    let order: Vec<&str> = events
        .iter()
        .filter(|event| event["parent_tool_use_id"].is_null())
        .filter_map(|event| match (event["type"].as_str()?, event["status"].as_str()) {
            ("system", Some("requesting")) => Some("requesting"),
            ("assistant", _) => Some("assistant"),
            ("result", _) => Some("result"),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["requesting", "assistant", "requesting", "assistant", "result"]);
    assert_eq!(program.server().requests().len(), 3, "the child's is not told");
    assert_eq!(host.finish(), 0);
}

#[test]
fn the_limits_of_a_subscription_are_told_when_they_change() {
    let limited = |status: &str, used: &str| {
        Reply::text("ok")
            .header("anthropic-ratelimit-unified-status", status)
            .header("anthropic-ratelimit-unified-reset", "1794773960")
            .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
            .header("anthropic-ratelimit-unified-5h-utilization", used)
    };
    let program = Program::answering([
        limited("allowed", "0.1"),
        limited("allowed", "0.2"),
        limited("allowed_warning", "0.93"),
        Reply::text("ok"),
    ]);
    let mut host = Host::start(&program, &[]);
    let told: Vec<Vec<Value>> = (0..4)
        .map(|_| {
            let events = turn(&mut host, "go");
            of(&events, "rate_limit_event").iter().map(|it| it["rate_limit_info"].clone()).collect()
        })
        .collect();
    let info = |status: &str, used: f64| {
        json!({
            "status": status, "resetsAt": 1_794_773_960, "rateLimitType": "five_hour", "utilization": used,
        })
    };
    let expected =
        [vec![info("allowed", 0.1)], vec![], vec![info("allowed_warning", 0.93)], vec![]];
    assert_eq!(told, expected);
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_rejected_request_of_a_key_is_told_with_the_end_of_its_limit_and_later_that_it_is_over() {
    let program = Program::answering([
        Reply::rate_limit("0")
            .header("anthropic-ratelimit-requests-limit", "50")
            .header("anthropic-ratelimit-requests-remaining", "0")
            .header("anthropic-ratelimit-requests-reset", "2026-01-01T00:00:09Z"),
        Reply::text("ok"),
    ]);
    let mut host = Host::start(&program, &[]);
    let events = turn(&mut host, "go");
    let told: Vec<&Value> =
        of(&events, "rate_limit_event").iter().map(|it| &it["rate_limit_info"]).collect();
    let rejected = json!({"status": "rejected", "resetsAt": 1_767_225_609});
    assert_eq!(told, [&rejected, &json!({"status": "allowed"})]);
    assert_eq!(host.finish(), 0);
}

#[test]
fn thinking_is_told_in_tokens_as_it_comes() {
    let thought = sse::thinking(&"thought ".repeat(100), "sig");
    let program = Program::answering([Reply::blocks([thought, sse::text("done")])]);
    let mut host = Host::start(&program, &[]);
    let id = "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11";
    let message = json!({"role": "user", "content": "think"});
    host.send(&json!({"type": "user", "uuid": id, "message": message}));
    let events = host.until(|event| event["type"] == "result");
    let told = of(&events, "thinking_tokens");
    let last = told.last().unwrap();
    assert_eq!((&last["estimated_tokens"], &last["user_message_uuid"]), (&json!(200), &json!(id)));
    let sum: u64 = told.iter().map(|it| it["estimated_tokens_delta"].as_u64().unwrap()).sum();
    assert_eq!(sum, 200);
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_running_hook_tells_what_it_has_printed_where_hooks_are_shown() {
    let program = Program::with_handler(|_| Reply::text("ok"));
    // It continues when the host has seen its first words.
    let command = "echo first; echo aside >&2; until [ -e go ]; do sleep 0.01; done; echo last";
    let hook = json!({"matcher": "", "hooks": [{"type": "command", "command": command}]});
    let settings = json!({"hooks": {"UserPromptSubmit": [hook]}});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let mut host = Host::start(&program, &["--include-hook-events"]);
    host.say("go");
    let seen = host.until(|event| event["subtype"] == "hook_progress");
    let (started, progress) = (of(&seen, "hook_started")[0], seen.last().unwrap());
    for field in ["hook_id", "hook_name", "hook_event"] {
        assert_eq!(progress[field], started[field]);
    }
    assert_eq!((&progress["stdout"], &progress["stderr"]), (&json!("first\n"), &json!("aside\n")));
    assert_eq!(progress["output"], "first\naside\n");
    program.scratch.write("go", "");
    let seen = host.until(|event| event["type"] == "result");
    let response = of(&seen, "hook_response")[0];
    assert_eq!(response["stdout"], "first\nlast\n", "{response}");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_stop_hook_that_keeps_the_agent_at_work_is_a_notification() {
    let program = Program::with_handler(|_| Reply::text("ok"));
    let command = "if [ -e held ]; then exit 0; fi; touch held; echo 'not yet' >&2; exit 2";
    let settings =
        json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let mut host = Host::start(&program, &[]);
    let events = turn(&mut host, "go");
    let told = of(&events, "notification");
    assert_eq!(told.len(), 1, "{events:?}");
    assert_eq!(
        (&told[0]["key"], &told[0]["priority"]),
        (&json!("stop-hook-error"), &json!("immediate"))
    );
    assert_eq!(program.server().requests().len(), 2);
    assert_eq!(host.finish(), 0);
}

/// A host that wants to know what calls did, or does not.
fn summarised(program: &Program, is_wanted: bool) -> Vec<Value> {
    let surround = |command: &mut Command| {
        if is_wanted {
            command.env("CLAUDE_CODE_EMIT_TOOL_USE_SUMMARIES", "1");
        }
    };
    let mut host = Host::start_with(program, &["--allowedTools", "Bash"], surround);
    let events = turn(&mut host, "go");
    assert_eq!(host.finish(), 0);
    events
}

#[test]
fn what_calls_did_is_told_in_a_line_only_to_a_host_that_asks_for_it() {
    let answers = || {
        Program::with_handler(|request| {
            let body = request.json();
            match body["messages"].to_string() {
                _ if body["tools"].as_array().is_none_or(Vec::is_empty) => {
                    assert!(body["messages"].to_string().contains("echo said"), "{body}");
                    Reply::text("Said something\nand more")
                }
                text if text.contains("tool_result") => Reply::text("done"),
                _ => Reply::blocks([
                    sse::tool_use("toolu_1", "Bash", json!({"command": "echo said"})),
                    sse::tool_use("toolu_2", "Bash", json!({"command": "echo more"})),
                ]),
            }
        })
    };
    let program = answers();
    let events = summarised(&program, true);
    let told = of(&events, "tool_use_summary");
    assert_eq!(told.len(), 1, "{events:?}");
    assert_eq!(told[0]["summary"], "Said something");
    assert_eq!(told[0]["preceding_tool_use_ids"], json!(["toolu_1", "toolu_2"]));
    assert_eq!(program.server().requests().len(), 3);
    let program = answers();
    assert!(of(&summarised(&program, false), "tool_use_summary").is_empty());
    assert_eq!(program.server().requests().len(), 2);
}

#[test]
fn a_command_of_the_program_tells_hosts_what_it_said() {
    let program = Program::answering([Reply::text("ok")]);
    let mut host = Host::start(&program, &[]);
    assert_eq!(of(&turn(&mut host, "go"), "local_command_output").len(), 0);
    let events = turn(&mut host, "/cost");
    let [said] = of(&events, "local_command_output")[..] else { panic!("{events:?}") };
    assert!(said["content"].as_str().unwrap().contains("input"), "{said}");
    assert_eq!(said["content"], events.last().unwrap()["result"]);
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_goal_is_told_when_it_is_set_missed_and_reached() {
    let asked = "Decide whether the goal below is reached";
    let program = Program::with_handler(move |request| {
        let text = request.json()["messages"].to_string();
        let is_question = text.rfind(asked).is_some_and(|at| at > text.len() / 2);
        match (is_question, text.contains("one test is red")) {
            (true, false) => Reply::text("NO: one test is red"),
            (true, true) => Reply::text("YES: all are green"),
            (false, _) => Reply::text("working"),
        }
    });
    let mut host = Host::start(&program, &[]);
    let events = turn(&mut host, "/goal the tests pass");
    let told: Vec<&Value> = of(&events, "active_goal").iter().map(|it| &it["value"]).collect();
    let [set, missed, reached] = told[..] else { panic!("{told:?}") };
    assert_eq!((&set["condition"], &set["iterations"]), (&json!("the tests pass"), &json!(0)));
    assert!(set["set_at"].as_i64().unwrap() > 0 && set.get("last_reason").is_none(), "{set}");
    assert_eq!(
        (&missed["iterations"], &missed["last_reason"]),
        (&json!(1), &json!("one test is red"))
    );
    assert_eq!(*reached, Value::Null);
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_question_beside_the_conversation_is_told_to_have_begun() {
    let program = Program::answering([Reply::text("ok"), Reply::text("forty-two")]);
    let mut host = Host::start(&program, &[]);
    turn(&mut host, "go");
    host.send(&control("aside-1", &json!({"subtype": "side_question", "question": "how many?"})));
    let events = host.until(|event| event["type"] == "control_response");
    let [begun] = of(&events, "control_request_progress")[..] else { panic!("{events:?}") };
    assert_eq!((&begun["request_id"], &begun["status"]), (&json!("aside-1"), &json!("started")));
    assert_eq!(events.last().unwrap()["response"]["response"]["response"], "forty-two");
    assert_eq!(host.finish(), 0);
}

#[test]
fn hooks_at_the_start_of_a_session_are_shown_without_asking_for_it() {
    let program = Program::answering([Reply::text("ok")]);
    let hook = json!([{"hooks": [{"type": "command", "command": "echo hello"}]}]);
    let settings = json!({"hooks": {"SessionStart": hook, "Stop": hook}});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let mut host = Host::start(&program, &[]);
    let events = turn(&mut host, "go");
    let [started] = of(&events, "hook_started")[..] else { panic!("{events:?}") };
    let [ended] = of(&events, "hook_response")[..] else { panic!("{events:?}") };
    assert_eq!(started["hook_name"], "SessionStart:startup");
    assert_eq!((&ended["hook_id"], &ended["stdout"]), (&started["hook_id"], &json!("hello\n")));
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_denial_names_its_kind_and_a_result_the_moments_of_its_turn() {
    let hook = json!([{"matcher": "Glob", "hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}]);
    let settings = json!({
        "permissions": {"deny": ["Bash(rm *)"]}, "hooks": {"PreToolUse": hook},
    });
    let program = Program::answering([
        Reply::blocks([
            sse::tool_use("toolu_1", "Bash", json!({"command": "rm x"})),
            sse::tool_use("toolu_2", "Glob", json!({"pattern": "*"})),
            sse::tool_use("toolu_3", "Write", json!({"file_path": "/elsewhere/x", "content": "a"})),
        ]),
        Reply::text("ok"),
    ]);
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let mut host = Host::start(&program, &["--effort", "low", "--betas", "one-2026-01-01"]);
    let events = turn(&mut host, "go");
    let denied = of(&events, "permission_denied");
    let kinds: Vec<_> = denied.iter().map(|it| &it["decision_reason_type"]).collect();
    assert_eq!(kinds, ["rule", "hook", "other"], "{denied:?}");
    let result = events.last().unwrap();
    let moments = ["time_to_request_ms", "ttft_stream_ms", "ttft_ms", "first_content_frame_ms"];
    let moments = moments.map(|name| result[name].as_u64().unwrap_or_else(|| panic!("{result}")));
    assert!(moments.is_sorted(), "{moments:?}");
    let [init] = of(&events, "init")[..] else { panic!("{events:?}") };
    assert_eq!((&init["effort"], &init["betas"]), (&json!("low"), &json!(["one-2026-01-01"])));
    assert_eq!(init.get("plugin_errors"), None);
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_plugin_that_cannot_be_loaded_is_told_with_its_directory() {
    let program = Program::answering([Reply::text("ok")]);
    program.scratch.write("broken/.claude-plugin/plugin.json", "{\"name\": 7}");
    let mut host = Host::start(&program, &["--plugin-dir", "broken"]);
    let events = turn(&mut host, "go");
    let [init] = of(&events, "init")[..] else { panic!("{events:?}") };
    let error = &init["plugin_errors"][0];
    assert!(error["message"].as_str().unwrap().contains("name"), "{init}");
    assert!(error["path"].as_str().unwrap().contains("broken"), "{error}");
    assert_eq!(init["plugins"], json!([]));
    assert_eq!(host.finish(), 0);
}

/// Runs the same command where transcripts are on a disk of their own, of this size, and a script beside it. `None`
/// where the machine does not let it.
fn on_small_disk(command: &Command, size: &str, beside: &str) -> Option<Command> {
    let apart = |program: &str| {
        let mut apart = Command::new("unshare");
        apart.args(["--user", "--map-root-user", "--mount", "sh", "-c"]).arg(program);
        apart
    };
    let mut probe = apart("mount -t tmpfs tmpfs /mnt");
    if !probe.output().is_ok_and(|probe| probe.status.success()) {
        return None;
    }
    let mut limited = apart(&format!(
        "mount -t tmpfs -o size={size} tmpfs \"$HOME/.centurion/projects\" && {{ {beside} & exec \"$0\" \"$@\"; }}"
    ));
    limited.arg(command.get_program()).args(command.get_args()).env_clear();
    limited.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited.current_dir(command.get_current_dir().unwrap());
    limited.stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(limited)
}

#[test]
fn records_that_find_no_room_on_the_disk_are_told_of() {
    let program = Program::answering([
        call("toolu_1", "Bash", json!({"command": "true", "description": "y".repeat(60_000)})),
        Reply::text("done"),
    ]);
    std::fs::create_dir_all(program.scratch.home().join(".centurion/projects")).unwrap();
    let flags =
        ["-p", "go", "--allowedTools", "Bash", "--output-format", "stream-json", "--verbose"];
    let command = program.command(flags);
    let Some(mut limited) = on_small_disk(&command, "32k", "true") else {
        return skip(Lack::Namespaces);
    };
    let ended = ended(limited.output().unwrap());
    let events = ended.events();
    let [lost] = of(&events, "session_writes_lost")[..] else { panic!("{}", ended.stdout) };
    assert_eq!((&lost["error_code"], &lost["lost"]), (&json!("ENOSPC"), &json!(["transcript"])));
    assert_eq!(lost["transcript_session_ids"], json!([lost["session_id"]]));
    assert_eq!(ended.result()["outcome"], "journal_failed");
}

#[test]
fn a_disk_with_no_room_for_a_new_transcript_leaves_the_session_that_was_to_be_cleared() {
    let program = Program::answering([Reply::text("FIRST-WORDS"), Reply::text("two")]);
    std::fs::create_dir_all(program.scratch.home().join(".centurion/projects")).unwrap();
    let mut has_disk = false;
    // The transcript of the session may still grow; nothing else fits.
    let fill = "(until [ -e fill-it ]; do sleep 0.05; done
        cd \"$HOME\"/.centurion/projects/*/ && fallocate -n -l 100000 *.jsonl && cat /dev/zero > fill
        touch \"$HOME/filled\") 2> /dev/null";
    let mut host = Host::start_with(&program, &[], |command| {
        if let Some(limited) = on_small_disk(command, "400k", fill) {
            (*command, has_disk) = (limited, true);
        }
    });
    if !has_disk {
        return skip(Lack::Namespaces);
    }
    let session = turn(&mut host, "go")[0]["session_id"].clone();
    program.scratch.write("fill-it", "");
    let filled = program.scratch.home().join("filled");
    eventually("the disk is full", || filled.exists().then_some(()));
    let cleared = turn(&mut host, "/clear");
    let result = cleared.last().unwrap();
    assert_eq!((&result["outcome"], &result["session_id"]), (&json!("command_failed"), &session));
    assert!(result["errors"].to_string().contains("No space left"), "{result}");
    assert!(of(&cleared, "session_writes_lost").is_empty(), "{cleared:?}");
    assert!(of(&cleared, "conversation_reset").is_empty(), "{cleared:?}");
    let next = turn(&mut host, "and now?");
    assert_eq!(next.last().unwrap()["result"], "two", "{next:?}");
    assert_eq!(next.last().unwrap()["session_id"], session);
    let sent = program.server().requests().pop().unwrap().json()["messages"].to_string();
    assert!(sent.contains("FIRST-WORDS"), "the conversation is the one that it was: {sent}");
    assert_eq!(host.finish(), 0);
}
