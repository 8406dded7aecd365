//! Events that tell hosts how things stand: each is there when its cause is, and as the SDK declares it.

use std::process::Command;

use centurion_testkit::{Reply, sse};
use serde_json::{Value, json};

use crate::host::Host;
use crate::program::{Program, call};

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
    // It goes on when the host has seen its first words.
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
