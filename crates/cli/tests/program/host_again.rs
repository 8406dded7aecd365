//! Hosts that introduce themselves again or late, and the questions that they may have missed.

use centurion_testkit::{Reply, sse};
use serde_json::{Value, json};

use crate::host::{Host, control};
use crate::program::{Program, call};

/// Reads until the program asks the host something.
fn question(host: &mut Host) -> Value {
    host.until(|event| event["type"] == "control_request").pop().unwrap()
}

fn respond(host: &mut Host, question: &Value, response: &Value) {
    let response =
        json!({"subtype": "success", "request_id": question["request_id"], "response": response});
    host.send(&json!({"type": "control_response", "response": response}));
}

#[test]
fn questions_that_are_open_are_listed_for_a_host_that_introduces_itself_again() {
    let write =
        |id: &str, path: &str| call(id, "Write", json!({"file_path": path, "content": "a"}));
    let program = Program::answering([write("toolu_1", "x.txt"), Reply::text("done")]);
    let mut host = Host::start(&program, &["--permission-prompt-tool", "stdio"]);
    let initialize = json!({"subtype": "initialize"});
    let fields = [
        "pending_permission_requests",
        "pending_user_dialog_requests",
        "pending_elicitation_requests",
    ];
    let first = host.ask(&initialize);
    for field in fields {
        assert_eq!(first[field], json!([]), "{first}");
    }
    host.say("write");
    let asked = question(&mut host);
    let again = host.ask(&initialize);
    assert_eq!(again[fields[0]], json!([asked]));
    respond(&mut host, &again[fields[0]][0], &json!({"behavior": "allow"}));
    assert_eq!(host.result()["result"], "done");
    assert_eq!(program.scratch.read("x.txt"), "a");
    assert_eq!(host.ask(&initialize)[fields[0]], json!([]));
    assert_eq!(host.finish(), 0);
}

#[test]
fn functions_that_a_host_may_have_forgotten_let_nothing_pass() {
    let program = Program::answering([
        call("toolu_1", "Read", json!({"file_path": "a.txt"})),
        Reply::text("not read"),
    ]);
    program.scratch.write("a.txt", "the text of a file");
    let mut host = Host::start(&program, &[]);
    let hooks = json!({
        "UserPromptSubmit": [{"hookCallbackIds": ["prompt"]}],
        "PreToolUse": [{"hookCallbackIds": ["tool"]}],
    });
    let initialize = json!({"subtype": "initialize", "hooks": hooks});
    let begin_again = |host: &mut Host| {
        let asked = question(host);
        host.send(&control("again", &initialize));
        let seen = host.until(|event| event["response"]["request_id"] == "again");
        let withdrawn = seen.iter().find(|event| event["type"] == "control_cancel_request");
        assert_eq!(withdrawn.unwrap()["request_id"], asked["request_id"], "{seen:?}");
        asked["request"]["callback_id"].clone()
    };
    host.ask(&initialize);
    host.say("read");
    assert_eq!(begin_again(&mut host), "prompt");
    let blocked = host.result();
    assert!(blocked["errors"].to_string().contains("send the prompt again"), "{blocked}");
    assert!(program.server().requests().is_empty(), "the prompt was sent");
    host.say("read");
    let asked = question(&mut host);
    respond(&mut host, &asked, &json!({}));
    assert_eq!(begin_again(&mut host), "tool");
    assert_eq!(host.result()["result"], "not read");
    let told = program.server().last().json()["messages"].to_string();
    assert!(told.contains("call the tool again") && !told.contains("the text of a file"), "{told}");
    assert_eq!(host.finish(), 0);
}

#[test]
fn wishes_that_come_after_the_start_are_named() {
    let program = Program::with_handler(|_| Reply::text("ok"));
    let wishes = json!({
        "subtype": "initialize", "systemPrompt": "Be brief.", "title": "A title", "promptSuggestions": false,
        "jsonSchema": null, "plugins": [],
    });
    let problems = |answer: &Value| answer["response"].get("problems").cloned().unwrap_or_default();
    // The session begins with them, and the same words again change nothing.
    let mut host = Host::start(&program, &[]);
    assert_eq!(problems(&host.ask(&wishes)), Value::Null);
    assert_eq!(problems(&host.ask(&wishes)), Value::Null);
    let mut others = wishes.clone();
    others["systemPrompt"] = json!("Be long.");
    let named = problems(&host.ask(&others));
    assert!(named[0].as_str().unwrap().starts_with("`systemPrompt` came after"), "{named}");
    assert_eq!(named.as_array().unwrap().len(), 1);
    host.say("hi");
    host.result();
    let system = program.server().last().json()["system"].to_string();
    assert!(system.contains("Be brief.") && !system.contains("Be long."), "{system}");
    assert_eq!(host.finish(), 0);
    // Another line came first.
    let mut host = Host::start(&program, &[]);
    host.say("hi");
    let named = problems(&host.ask(&wishes));
    assert_eq!(named.as_array().unwrap().len(), 2, "{named}");
    host.result();
    assert_eq!(host.finish(), 0);
}

#[test]
fn requests_with_numbers_as_ids_are_answered_under_them() {
    let program = Program::answering([]);
    let mut host = Host::start(&program, &[]);
    for id in [json!(7), json!(-1), json!(1.5), json!("7")] {
        for (subtype, expected) in [("get_binary_version", "success"), ("dance", "error")] {
            let request = json!({"subtype": subtype});
            host.send(&json!({"type": "control_request", "request_id": id, "request": request}));
            let is_answer = |event: &Value| event["response"]["request_id"] == id;
            let answer = host.until(is_answer).pop().unwrap();
            assert_eq!(answer["response"]["subtype"], expected, "{answer}");
        }
    }
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_sees_what_the_first_request_will_hold() {
    // A provider that counts about as we guess.
    let program = Program::with_handler(|request| {
        let usage = sse::usage(request.body.len() as u64 / 4, 0, 0, 5);
        Reply::events(sse::answer_with(&[sse::text("ok")], "end_turn", &usage))
    });
    program.scratch.write("CLAUDE.md", "Use tabs, and say so. ".repeat(200));
    let ask = json!({"subtype": "get_context_usage"});
    let part = |usage: &Value, id: &str| {
        let all = usage["categories"].as_array().unwrap();
        all.iter().find(|part| part["id"] == id).unwrap()["tokens"].as_u64().unwrap()
    };
    let id = "5e8f3c1e-3c37-4c51-9f43-0f4a7e3a6a12";
    let mut host = Host::start(&program, &["--session-id", id]);
    let before = host.ask(&ask)["response"].clone();
    host.say(&"many words ".repeat(2_000));
    host.result();
    let after = host.ask(&ask)["response"].clone();
    assert!(part(&before, "system_prompt") > 500 && part(&before, "system_tools") > 1_000);
    for id in ["system_prompt", "system_tools", "mcp_tools"] {
        assert_eq!(part(&before, id), part(&after, id), "{id}");
    }
    assert_eq!(before["memoryFiles"], after["memoryFiles"]);
    assert!(part(&before, "messages") > 1_000, "the instructions: {before}");
    assert!(part(&after, "messages") > part(&before, "messages") + 4_000, "{after}");
    assert_eq!((&before["apiUsage"], &before["model"]), (&Value::Null, &after["model"]));
    assert_eq!(host.finish(), 0);
    // The conversation of a resumed session is there before it continues, for questions beside it, too.
    let mut host = Host::start(&program, &["--resume", id]);
    let resumed = host.ask(&ask)["response"].clone();
    assert!(part(&resumed, "messages") + 100 > part(&after, "messages"), "{resumed}");
    let aside = host.ask(&json!({"subtype": "side_question", "question": "What was said?"}));
    assert_eq!(aside["response"]["response"], "ok", "{aside}");
    assert!(program.server().last().json()["messages"].to_string().contains("many words"));
    // A model that is chosen before the request has its own window.
    host.ask(&json!({"subtype": "set_model", "model": "haiku"}));
    assert_eq!(host.ask(&ask)["response"]["model"], "claude-haiku-5-5");
    assert_eq!(host.finish(), 0);
}
