//! Denials that a host is told of, and those that it said itself.

use centurion_testkit::Reply;
use serde_json::{Value, json};

use crate::host::{Host, control};
use crate::program::{Program, call};

/// Has the model write a file once, and answers every request of the program with `answer`, until the result is there.
fn events(flags: &[&str], wishes: &Value, answer: impl Fn(&Value) -> Value) -> Vec<Value> {
    let write = call("toolu_1", "Write", json!({"file_path": "x.txt", "content": "a"}));
    let program = Program::answering([write, Reply::text("without it then")]);
    let mut host = Host::start(&program, flags);
    host.send(&control("begin", wishes));
    host.until(|event| event["response"]["request_id"] == "begin");
    host.say("write");
    let mut seen = Vec::new();
    loop {
        let told = host.until(|it| it["type"] == "control_request" || it["type"] == "result");
        let last = told.last().unwrap().clone();
        seen.extend(told);
        if last["type"] == "result" {
            break;
        }
        let mut response = answer(&last["request"]);
        response["request_id"] = last["request_id"].clone();
        host.send(&json!({"type": "control_response", "response": response}));
    }
    assert_eq!(host.finish(), 0);
    assert!(!program.scratch.project().join("x.txt").exists());
    let result = seen.last().unwrap();
    assert_eq!(result["permission_denials"][0]["tool_use_id"], "toolu_1", "{result}");
    seen
}

fn told(events: &[Value]) -> usize {
    events.iter().filter(|event| event["subtype"] == "permission_denied").count()
}

fn success(response: &Value) -> Value {
    json!({"subtype": "success", "response": response})
}

#[test]
fn a_host_is_not_told_of_a_denial_that_is_its_own() {
    const ASKED: [&str; 2] = ["--permission-prompt-tool", "stdio"];
    let plain = json!({"subtype": "initialize"});
    for answer in [
        success(&json!({"behavior": "deny", "message": "no"})),
        success(&json!({"behavior": "perhaps"})),
        success(&json!("no")),
        json!({"subtype": "error", "error": "the callback failed"}),
    ] {
        let events = events(&ASKED, &plain, |_| answer.clone());
        assert_eq!(told(&events), 0, "{answer}: {events:?}");
    }
    let hooked = |event: &str| json!({"subtype": "initialize", "hooks": {event: [{"hookCallbackIds": ["h"]}]}});
    let before = json!({"hookEventName": "PreToolUse", "permissionDecision": "deny"});
    let instead = json!({"hookEventName": "PermissionRequest", "decision": {"behavior": "deny"}});
    for (event, output) in [("PreToolUse", before), ("PermissionRequest", instead)] {
        let events =
            events(&[], &hooked(event), |_| success(&json!({"hookSpecificOutput": output})));
        assert_eq!(told(&events), 0, "{event}: {events:?}");
    }
}

#[test]
fn a_host_is_told_of_a_denial_by_a_rule_or_without_an_answerer() {
    let plain = json!({"subtype": "initialize"});
    for flags in [&["--disallowedTools", "Write(//**)"][..], &["--permission-mode", "dontAsk"], &[]]
    {
        let events = events(flags, &plain, |_| success(&json!({})));
        assert_eq!(told(&events), 1, "{flags:?}: {events:?}");
    }
}

#[test]
fn a_wrong_field_of_the_first_request_takes_no_other_along() {
    let program = Program::with_handler(|_| Reply::text("done"));
    let mut host = Host::start(&program, &[]);
    let wishes = json!({
        "subtype": "initialize", "systemPrompt": ["You are a parrot."], "appendSystemPrompt": 7,
        "agents": {"scout": {"description": "Looks.", "prompt": "Look."}, "broken": {"prompt": 7}},
        "plugins": "none", "promptSuggestions": "yes", "sdkMcpServers": [7], "title": ["A title"],
    });
    let answer = host.ask(&wishes)["response"].clone();
    let problems = answer["problems"].as_array().unwrap();
    let names =
        ["agents", "appendSystemPrompt", "plugins", "promptSuggestions", "sdkMcpServers", "title"];
    for name in names {
        let is_about = |it: &Value| it.as_str().unwrap().starts_with(&format!("`{name}`"));
        assert!(problems.iter().any(is_about), "{name}: {problems:?}");
    }
    assert!(answer["agents"].as_array().unwrap().iter().any(|it| it["name"] == "scout"));
    host.say("hi");
    host.result();
    let sent = program.server().last().json();
    assert!(sent["system"].to_string().contains("You are a parrot."), "{}", sent["system"]);
    let ended = host.finish();
    assert_eq!(ended, 0);
}
