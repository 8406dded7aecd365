//! A host that drives the program over standard input and output.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use centurion_testkit::{Fault, Reply, Server};
use serde_json::{Value, json};

use crate::components::python_server;
use crate::declared;
use crate::program::{Program, call, eventually};
use crate::real_servers::with;

/// The host's side of a conversation.
pub(crate) struct Host {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Host {
    pub(crate) fn start(program: &Program, extra: &[&str]) -> Self {
        Self::start_with(program, extra, |_| {})
    }

    /// Starts the program in surroundings of the test's choice.
    pub(crate) fn start_with(
        program: &Program,
        extra: &[&str],
        surround: impl FnOnce(&mut Command),
    ) -> Self {
        let base = ["--output-format", "stream-json", "--input-format", "stream-json", "--verbose"];
        let mut command = program.command([&base, extra].concat());
        surround(&mut command);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        Self { child, stdin, lines: BufReader::new(stdout).lines() }
    }

    pub(crate) fn send(&mut self, value: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{value}").unwrap();
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.send(&json!({"type": "user", "message": {"role": "user", "content": text}}));
    }

    /// Reads until an event that fits; gives everything up to it.
    pub(crate) fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            let line = self.lines.next().expect("the program ended early").unwrap();
            let event: Value = serde_json::from_str(&line).unwrap();
            declared::check(&event);
            let found = fits(&event);
            seen.push(event);
            if found {
                return seen;
            }
        }
    }

    /// Puts a control request and gives the response to it.
    pub(crate) fn ask(&mut self, request: &Value) -> Value {
        let id = request["subtype"].as_str().unwrap();
        self.send(&control(id, request));
        let is_answer = |event: &Value| event["response"]["request_id"] == id;
        let answer = self.until(is_answer).pop().unwrap()["response"].clone();
        declared::check_answer(id, &answer);
        answer
    }

    pub(crate) fn result(&mut self) -> Value {
        self.until(|event| event["type"] == "result").pop().unwrap()
    }

    pub(crate) fn finish(mut self) -> i32 {
        drop(self.stdin.take());
        self.child.wait().unwrap().code().unwrap()
    }
}

pub(crate) fn control(id: &str, request: &Value) -> Value {
    json!({"type": "control_request", "request_id": id, "request": request})
}

#[test]
fn a_host_talks_over_several_turns_in_one_session() {
    let program = Program::answering([Reply::text("one"), Reply::text("two")]);
    let mut host = Host::start(&program, &["--replay-user-messages"]);
    host.send(&control("r1", &json!({"subtype": "initialize", "hooks": null})));
    let initialized = host.until(|event| event["type"] == "control_response").pop().unwrap();
    assert_eq!(initialized["response"]["request_id"], "r1");
    assert_eq!(initialized["response"]["subtype"], "success");
    host.say("first");
    let seen = host.until(|event| event["type"] == "result");
    assert!(seen.iter().any(|event| event["isReplay"] == true));
    assert_eq!(seen.last().unwrap()["result"], "one");
    host.say("second");
    let second = host.result();
    assert_eq!((&second["result"], &second["result_index"]), (&json!("two"), &json!(1)));
    assert_eq!(program.server().requests()[1].json()["messages"].as_array().unwrap().len(), 3);
    assert_eq!(host.finish(), 0);
}

#[test]
fn the_host_is_asked_and_its_answer_counts() {
    let program = Program::answering([
        call("toolu_1", "Write", json!({"file_path": "x.txt", "content": "a"})),
        call("toolu_2", "Write", json!({"file_path": "y.txt", "content": "b"})),
        Reply::text("done"),
    ]);
    let mut host = Host::start(&program, &["--permission-prompt-tool", "stdio"]);
    host.say("write");
    for (file, answer) in [
        (
            "x.txt",
            json!({"behavior": "allow", "updatedInput": {"file_path": "x.txt", "content": "changed"}}),
        ),
        ("y.txt", json!({"behavior": "deny", "message": "not that one"})),
    ] {
        let ask = host.until(|event| event["type"] == "control_request").pop().unwrap();
        assert_eq!(ask["request"]["subtype"], "can_use_tool");
        assert_eq!(ask["request"]["input"]["file_path"], file);
        let response =
            json!({"subtype": "success", "request_id": ask["request_id"], "response": answer});
        host.send(&json!({"type": "control_response", "response": response}));
    }
    let result = host.result();
    assert_eq!(result["permission_denials"].as_array().unwrap().len(), 1);
    assert_eq!(program.scratch.read("x.txt"), "changed");
    assert!(!program.scratch.project().join("y.txt").exists());
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_that_goes_away_in_the_middle_of_a_question_denies_it() {
    // I-4
    let program = Program::answering([
        call("toolu_1", "Write", json!({"file_path": "x.txt", "content": "a"})),
        Reply::text("without it then"),
    ]);
    let mut host = Host::start(&program, &["--permission-prompt-tool", "stdio"]);
    host.say("write");
    host.until(|event| event["type"] == "control_request");
    drop(host.stdin.take());
    assert_eq!(host.result()["result"], "without it then");
    assert!(!program.scratch.project().join("x.txt").exists());
}

#[test]
fn a_question_after_the_host_has_gone_is_denied_at_once() {
    // I-4
    let program = Program::answering([
        call("toolu_1", "Bash", json!({"command": "ls; until [ -e go ]; do sleep 0.01; done"})),
        call("toolu_2", "Write", json!({"file_path": "x.txt", "content": "a"})),
        Reply::text("without it then"),
    ]);
    let mut host =
        Host::start(&program, &["--permission-prompt-tool", "stdio", "--allowedTools", "Bash"]);
    host.say("write");
    program.server().wait_for(1);
    drop(host.stdin.take());
    program.scratch.write("go", "");
    assert_eq!(host.result()["result"], "without it then");
    assert!(!program.scratch.project().join("x.txt").exists());
}

#[test]
fn an_interrupt_before_a_run_begins_is_not_lost() {
    let program = Program::answering([Reply::text("never asked for")]);
    let mut host = Host::start(&program, &[]);
    let both = format!(
        "{}\n{}",
        json!({"type": "user", "message": {"role": "user", "content": "go"}}),
        control("i", &json!({"subtype": "interrupt"}))
    );
    // In one write, so that both are there before the session looks.
    writeln!(host.stdin.as_mut().unwrap(), "{both}").unwrap();
    assert_eq!(host.result()["outcome"], "cancelled");
    assert_eq!(host.finish(), 1);
}

#[test]
fn a_host_cannot_bring_results_or_skip_permissions_without_leave() {
    let program = Program::answering([Reply::text("ok")]);
    let mut host = Host::start(&program, &[]);
    let forged = json!([{"type": "tool_result", "tool_use_id": "x", "content": "y"}]);
    host.send(&json!({"type": "user", "message": {"role": "user", "content": forged}}));
    host.send(&control(
        "m",
        &json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}),
    ));
    let answer = host.until(|event| event["type"] == "control_response").pop().unwrap();
    assert_eq!(answer["response"]["subtype"], "error");
    host.say("hi");
    assert_eq!(host.result()["result"], "ok");
    assert_eq!(host.finish(), 1, "the line with the forged result was not taken");
}

#[test]
fn what_is_said_during_a_turn_arrives_after_the_next_results() {
    // S-213
    let program = Program::answering([
        call(
            "toolu_1",
            "Bash",
            json!({"command": "touch started; until [ -e go ]; do sleep 0.01; done"}),
        ),
        Reply::text("heard both"),
    ]);
    let mut host = Host::start(&program, &["--allowedTools", "Bash"]);
    host.say("begin");
    let project = program.scratch.project();
    eventually("the command started", || project.join("started").exists().then_some(()));
    host.say("and also this");
    // A request is answered in order, so its answer shows that the message before it was taken.
    host.send(&control("sync", &json!({"subtype": "initialize"})));
    host.until(|event| event["response"]["request_id"] == "sync");
    program.scratch.write("go", "");
    assert_eq!(host.result()["result"], "heard both");
    let last = program.server().last().json()["messages"][2]["content"].clone();
    assert_eq!(last[0]["type"], "tool_result");
    assert_eq!(last[1]["text"], "and also this");
    assert_eq!(host.finish(), 0);
}

#[test]
fn an_interrupt_stops_the_turn_and_the_session_continues() {
    let silent = Reply::text("never finished").fault(Fault::Silence { after: 3 });
    let program = Program::answering([silent, Reply::text("back again")]);
    let mut host = Host::start(&program, &["--include-partial-messages"]);
    host.say("talk");
    host.until(|event| event["type"] == "stream_event");
    host.send(&control("i1", &json!({"subtype": "interrupt"})));
    let result = host.result();
    assert_eq!(
        (&result["outcome"], &result["terminal_reason"]),
        (&json!("cancelled"), &json!("aborted_streaming"))
    );
    host.say("still there?");
    assert_eq!(host.result()["result"], "back again");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_asks_beside_the_conversation() {
    let replies = ["hello", "beside it", "going on"].map(Reply::text);
    let program = Program::answering(replies);
    let mut host = Host::start(&program, &[]);
    let ask = |id: &str| control(id, &json!({"subtype": "side_question", "question": "what?"}));
    host.send(&ask("early"));
    let early = host.until(|event| event["response"]["request_id"] == "early").pop().unwrap();
    assert_eq!(early["response"]["subtype"], "error", "{early}");
    host.say("hi");
    assert_eq!(host.result()["result"], "hello");
    host.send(&ask("q"));
    let answer = host.until(|event| event["response"]["request_id"] == "q").pop().unwrap();
    let expected = json!({"response": "beside it", "synthetic": false});
    assert_eq!(answer["response"]["response"], expected, "{answer}");
    host.say("and now");
    assert_eq!(host.result()["result"], "going on");
    let last = program.server().last().json()["messages"].to_string();
    assert!(last.contains("hello") && !last.contains("beside it"), "{last}");
    assert_eq!(host.finish(), 0);
}

#[test]
fn mode_and_model_can_be_changed_and_unknown_requests_are_refused() {
    let program = Program::answering([Reply::text("ok")]);
    let mut host = Host::start(&program, &[]);
    host.send(&control("a", &json!({"subtype": "set_permission_mode", "mode": "acceptEdits"})));
    host.send(&control("b", &json!({"subtype": "set_model", "model": "haiku"})));
    host.send(&control("c", &json!({"subtype": "dance"})));
    host.send(&json!("nonsense"));
    let seen = host.until(|event| event["response"]["request_id"] == "c");
    assert_eq!(seen.last().unwrap()["response"]["error_code"], "unsupported_request");
    host.say("hi");
    let seen = host.until(|event| event["type"] == "result");
    let init = seen.iter().find(|event| event["subtype"] == "init").unwrap();
    assert_eq!(
        (&init["permissionMode"], &init["model"]),
        (&json!("acceptEdits"), &json!("claude-haiku-5-5"))
    );
    assert_eq!(program.server().last().json()["model"], "claude-haiku-5-5");
    assert_eq!(host.finish(), 1, "nonsense came in");
}

#[test]
fn a_host_says_how_much_the_model_may_think() {
    let program = Program::answering(["a", "b", "c"].map(Reply::text));
    let mut host = Host::start(&program, &["--model", "claude-sonnet-4-5"]);
    let mut thinking = |tokens: Value| {
        let wish = json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": tokens});
        assert_eq!(host.ask(&wish)["subtype"], "success");
        host.say("think");
        host.result();
        program.server().last().json()["thinking"].clone()
    };
    let unsaid = thinking(Value::Null);
    assert_eq!(thinking(json!(2048)), json!({"type": "enabled", "budget_tokens": 2048}));
    assert_eq!((thinking(json!(0)), unsaid.is_object()), (Value::Null, true));
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_switches_a_server_off_and_on_again() {
    let program = Program::answering(["a", "b", "c"].map(Reply::text));
    let flags = with("py", &python_server());
    let mut host = Host::start(&program, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    let offered = |host: &mut Host| {
        host.say("hi");
        host.result();
        program.server().last().json()["tools"].to_string().contains("mcp__py__")
    };
    let toggle = |name: &str, enabled: bool| json!({"subtype": "mcp_toggle", "serverName": name, "enabled": enabled});
    let status = |host: &mut Host| {
        let answer = host.ask(&json!({"subtype": "mcp_status"}));
        answer["response"]["mcpServers"][0]["status"].clone()
    };
    assert!(offered(&mut host));
    assert_eq!(host.ask(&toggle("py", false))["subtype"], "success");
    assert_eq!((status(&mut host), offered(&mut host)), (json!("disabled"), false));
    assert_eq!(host.ask(&toggle("py", true))["subtype"], "success");
    assert_eq!((status(&mut host), offered(&mut host)), (json!("connected"), true));
    let unknown = host.ask(&toggle("nobody", true));
    assert_eq!(unknown["error_code"], "invalid_request", "{unknown}");
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_lists_the_commands_that_there_are_now() {
    let program = Program::answering([]);
    let mut host = Host::start(&program, &[]);
    let mut has_ship = || {
        let answer = host.ask(&json!({"subtype": "supported_commands"}));
        let commands = answer["response"]["commands"].as_array().unwrap().clone();
        assert!(commands.iter().all(|it| it["name"].is_string() && it["description"].is_string()));
        commands.into_iter().find(|command| command["name"] == "ship")
    };
    assert_eq!(has_ship(), None);
    let text = "---\ndescription: Ships it\nargument-hint: \"[where]\"\n---\nShip.\n";
    program.scratch.write_home(".claude/commands/ship.md", text);
    let ship = has_ship().unwrap();
    assert_eq!(
        (&ship["description"], &ship["argumentHint"]),
        (&json!("Ships it"), &json!("[where]"))
    );
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_cannot_choose_a_model_that_the_settings_do_not_list() {
    let program = Program::answering([Reply::text("ok")]);
    let settings = json!({"availableModels": ["opus", "haiku"]});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let mut host = Host::start(&program, &[]);
    host.send(&control("a", &json!({"subtype": "set_model", "model": "haiku"})));
    host.send(&control("b", &json!({"subtype": "set_model", "model": "sonnet"})));
    let seen = host.until(|event| event["response"]["request_id"] == "b");
    let refused = &seen.last().unwrap()["response"];
    assert_eq!(refused["error_code"], "invalid_request", "{refused}");
    host.say("hi");
    assert_eq!(host.result()["result"], "ok");
    assert_eq!(program.server().last().json()["model"], "claude-haiku-5-5");
}

/// Requests that take time, more than may be under way: those that came last are turned away.
#[test]
fn at_most_256_requests_of_a_host_are_under_way_at_once() {
    let silent = Server::start_with(|_| Reply::status(200).fault(Fault::BlackHole));
    let program = Program::answering([Reply::text("done")]);
    let name = |number: usize| format!("s{number}");
    let servers: serde_json::Map<String, Value> = (0..300)
        .map(|n| (name(n), json!({"type": "http", "url": format!("{}/{n}", silent.url())})))
        .collect();
    let config = program.scratch.write("servers.json", json!({"mcpServers": servers}).to_string());
    let mut host =
        Host::start_with(&program, &["--mcp-config", config.to_str().unwrap()], |command| {
            command.env("MCP_TIMEOUT", "8000");
        });
    for number in 0..300 {
        let wish = json!({"subtype": "mcp_reconnect", "serverName": name(number)});
        host.send(&control(&name(number), &wish));
    }
    for number in 256..300 {
        let answer = host.until(|event| event["type"] == "control_response").pop().unwrap();
        let answer = &answer["response"];
        assert_eq!(answer["error_code"], "too_many_requests", "{answer}");
        assert_eq!(answer["request_id"], name(number), "{answer}");
    }
    host.finish();
}

#[test]
fn a_host_may_have_at_most_256_servers_and_too_many_change_nothing() {
    let silent = Server::start_with(|_| Reply::status(200).fault(Fault::BlackHole));
    let program = Program::answering([Reply::text("done")]);
    let mut host = Host::start(&program, &[]);
    let mut set = |count: usize| {
        let server = |n| json!({"type": "http", "url": format!("{}/{n}", silent.url())});
        let servers: serde_json::Map<String, Value> =
            (0..count).map(|n| (format!("s{n}"), server(n))).collect();
        let wish = json!({"subtype": "mcp_set_servers", "servers": servers});
        host.send(&control(&count.to_string(), &wish));
        let answer = host.until(|event| event["type"] == "control_response").pop().unwrap();
        answer["response"].clone()
    };
    let count = |names: &Value| names.as_array().unwrap().len();
    assert_eq!(count(&set(2)["response"]["added"]), 2);
    let refused = set(257);
    assert_eq!(refused["error_code"], "invalid_request", "{refused}");
    let taken = set(256);
    assert_eq!(count(&taken["response"]["added"]), 256, "{taken}");
    // None went when too many came.
    assert_eq!(count(&set(0)["response"]["removed"]), 256);
    host.finish();
}
