//! Restrictions that a host lays down when it begins hold from then on: tools that mean others, rules for its own servers, hooks that
//! must succeed, and agents that no person could end.

use std::time::Duration;

use centurion_testkit::Reply;
use serde_json::{Value, json};

use crate::host::{Host, control};
use crate::program::{Program, call, eventually};

/// The events that a host saw until the turn ended.
#[derive(Default)]
struct Seen {
    /// The arguments of calls that reached its server.
    calls: Vec<Value>,
    /// The names of tools that it was asked about.
    asked: Vec<String>,
    /// The names of tools that its hooks saw.
    hooked: Vec<String>,
    result: Value,
}

/// The host's answers: whether calls may run, and what a hook returns. `None` fails.
struct Answers {
    permission: Value,
    hook: Option<Value>,
    /// Whether its server answers calls.
    serves: bool,
}

impl Default for Answers {
    fn default() -> Self {
        let permission = json!({"behavior": "deny", "message": "the host says no"});
        Self { permission, hook: Some(json!({})), serves: true }
    }
}

/// The reply of the host's server `desk`, which has the tools `add` and `look`.
fn desk(message: &Value, seen: &mut Seen, serves: bool) -> Option<Value> {
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": "desk", "version": "1"},
        }),
        "tools/list" => {
            let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
            json!({"tools": [tool("add"), tool("look")]})
        }
        "tools/call" => {
            seen.calls.push(message["params"]["arguments"].clone());
            if !serves {
                return None;
            }
            json!({"content": [{"type": "text", "text": "the desk did it"}]})
        }
        _ => json!({}),
    };
    Some(json!({"mcp_response": {"jsonrpc": "2.0", "id": message["id"], "result": result}}))
}

/// Answers as a host until the turn ends.
fn serve(host: &mut Host, answers: &Answers) -> Seen {
    let mut seen = Seen::default();
    loop {
        let is_due =
            |event: &Value| event["type"] == "control_request" || event["type"] == "result";
        let event = host.until(is_due).pop().unwrap();
        if event["type"] == "result" {
            seen.result = event;
            return seen;
        }
        let request = &event["request"];
        let tool = request["tool_name"].as_str().unwrap_or_default().to_owned();
        let response = match request["subtype"].as_str().unwrap() {
            "mcp_message" => match desk(&request["message"], &mut seen, answers.serves) {
                Some(response) => Some(response),
                None => continue,
            },
            "can_use_tool" => {
                seen.asked.push(tool);
                Some(answers.permission.clone())
            }
            _ => {
                seen.hooked.push(request["input"]["tool_name"].as_str().unwrap().to_owned());
                answers.hook.clone()
            }
        };
        let id = &event["request_id"];
        let response = match response {
            Some(response) => json!({"subtype": "success", "request_id": id, "response": response}),
            None => json!({"subtype": "error", "request_id": id, "error": "the callback threw"}),
        };
        host.send(&json!({"type": "control_response", "response": response}));
    }
}

/// Begins a session with a host whose server is `desk`.
fn begin(program: &Program, flags: &[&str], wishes: &Value) -> Host {
    let mut host = Host::start_with(program, flags, |command| {
        command.env("ENABLE_TOOL_SEARCH", "false").env("IS_SANDBOX", "1");
    });
    let mut request = json!({"subtype": "initialize", "sdkMcpServers": ["desk"]});
    let wishes = wishes.as_object().unwrap().clone();
    request.as_object_mut().unwrap().extend(wishes);
    host.send(&control("begin", &request));
    host
}

/// The text of the last result of a tool that the model was sent.
fn told(program: &Program) -> String {
    program.server().last().json()["messages"].to_string()
}

#[test]
fn a_tool_that_a_host_redirects_does_not_run() {
    let touch = |id: &str, tool: &str, name: &str| {
        call(id, tool, json!({"command": format!("touch {name}"), "description": "Touch it"}))
    };
    let program = Program::answering([
        touch("t1", "Bash", "first"),
        touch("t2", "mcp__desk__add", "second"),
        touch("t3", "Task", "third"),
        Reply::text("done"),
    ]);
    let aliases = json!({
        "Bash": "mcp__desk__add", "mcp__desk__add": "Bash", "Agent": "mcp__desk__gone",
    });
    let hooks = json!({"PreToolUse": [{"hookCallbackIds": ["see"]}]});
    let flags = ["--allowedTools", "Bash,mcp__desk__add,Agent"];
    let wishes = json!({"toolAliases": aliases, "hooks": hooks});
    let mut host = begin(&program, &flags, &wishes);
    host.say("go");
    let seen = serve(&mut host, &Answers::default());
    assert_eq!(seen.result["result"], "done");
    assert_eq!(seen.calls, [json!({"command": "touch first", "description": "Touch it"})]);
    // An alias leads one step: what the target's name is redirected to does not count.
    assert_eq!(seen.hooked, ["mcp__desk__add", "Bash"]);
    let project = program.scratch.project();
    assert!(!project.join("first").exists() && project.join("second").exists());
    let told = told(&program);
    assert!(told.contains("No such tool available: mcp__desk__gone"), "{told}");
    // The conversation has the call as the model made it.
    assert!(told.contains("\"name\":\"Task\""), "{told}");
    assert_eq!(host.finish(), 0);
}

#[test]
fn rules_are_about_the_tool_that_a_redirected_call_runs() {
    let program = Program::answering([
        call("t1", "Bash", json!({"command": "touch first"})),
        Reply::text("done"),
    ]);
    let flags = ["--allowedTools", "Bash", "--disallowedTools", "mcp__desk__add"];
    let wishes = json!({"toolAliases": {"Bash": "mcp__desk__add"}});
    let mut host = begin(&program, &flags, &wishes);
    host.say("go");
    let seen = serve(&mut host, &Answers::default());
    assert!(seen.calls.is_empty());
    assert!(!program.scratch.project().join("first").exists());
    assert_eq!(host.finish(), 0);
}

/// Has the model call both tools of the host's server, under rules of the host.
fn call_both(flags: &[&str], tools: &Value, answers: &Answers) -> (Program, Seen) {
    let program = Program::answering([
        call("t1", "mcp__desk__add", json!({"a": 1})),
        call("t2", "mcp__desk__look", json!({"b": 2})),
        Reply::text("done"),
    ]);
    let wishes = json!({"sdkMcpServerConfigs": {"desk": {"tools": tools}}});
    let mut host = begin(&program, flags, &wishes);
    host.say("go");
    let seen = serve(&mut host, answers);
    assert_eq!(host.finish(), 0);
    (program, seen)
}

#[test]
fn a_host_denies_tools_of_its_own_server() {
    let tools = json!([{"name": "add", "permission_policy": "always_deny"}]);
    for mode in ["default", "bypassPermissions"] {
        let flags = ["--allowedTools", "mcp__desk__*", "--permission-mode", mode];
        let (program, seen) = call_both(&flags, &tools, &Answers::default());
        assert_eq!(seen.calls, [json!({"b": 2})], "{mode}");
        let offered = program.server().last().json()["tools"].to_string();
        assert!(!offered.contains("mcp__desk__add") && offered.contains("mcp__desk__look"));
    }
}

#[test]
fn a_host_is_asked_about_tools_of_its_own_server_whatever_frees_them() {
    let tools = json!([
        {"name": "add", "permission_policy": "always_ask"}, {"name": "look", "permission_policy": "always_allow"},
    ]);
    let allow = json!({"behavior": "allow", "updatedInput": {"a": 1}});
    for mode in ["default", "bypassPermissions"] {
        let flags = [
            "--allowedTools",
            "mcp__desk__*",
            "--permission-mode",
            mode,
            "--permission-prompt-tool",
            "stdio",
        ];
        let (_, denied) = call_both(&flags, &tools, &Answers::default());
        assert_eq!(denied.asked, ["mcp__desk__add"], "{mode}");
        assert_eq!(denied.calls, [json!({"b": 2})], "{mode}");
        let answers = Answers { permission: allow.clone(), ..Answers::default() };
        let (_, allowed) = call_both(&flags, &tools, &answers);
        assert_eq!((allowed.asked.len(), allowed.calls.len()), (1, 2), "{mode}");
    }
    // `always_allow` frees nothing of a server that lives in the host, and a mode that never asks denies.
    let flags = ["--permission-mode", "dontAsk", "--permission-prompt-tool", "stdio"];
    let free = ["--allowedTools", "mcp__desk__add"];
    let (_, seen) = call_both(&[&flags[..], &free].concat(), &tools, &Answers::default());
    assert!(seen.asked.is_empty() && seen.calls.is_empty(), "{:?}", seen.calls);
}

#[test]
fn rules_for_a_server_are_added_by_initialize_and_replaced_when_servers_are_set() {
    let add = |id: &str| [call(id, "mcp__desk__add", json!({"a": 1})), Reply::text("done")];
    let program = Program::answering(["t1", "t2", "t3"].into_iter().flat_map(add));
    let flags = ["--allowedTools", "mcp__desk__*", "--permission-prompt-tool", "stdio"];
    let rules = |policy: &str| json!({"tools": [{"name": "add", "permission_policy": policy}]});
    let wishes = json!({"sdkMcpServerConfigs": {"desk": rules("always_ask")}});
    let mut host = begin(&program, &flags, &wishes);
    let turn = |host: &mut Host| {
        host.say("go");
        let seen = serve(host, &Answers::default());
        (seen.asked.len(), seen.calls.len())
    };
    assert_eq!(turn(&mut host), (1, 0));
    // A second request that says nothing takes nothing away, and neither does an answer.
    host.send(&control("again", &json!({"subtype": "initialize", "sdkMcpServers": ["desk"]})));
    assert_eq!(turn(&mut host), (1, 0));
    let servers = json!({"desk": {"type": "sdk", "name": "desk"}});
    host.send(&control("set", &json!({"subtype": "mcp_set_servers", "servers": servers})));
    assert_eq!(turn(&mut host), (0, 1));
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_call_of_a_hosts_server_ends_when_the_time_that_the_host_gave_it_is_over() {
    let program =
        Program::answering([call("t1", "mcp__desk__add", json!({"a": 1})), Reply::text("done")]);
    let flags = ["--allowedTools", "mcp__desk__*"];
    let wishes = json!({"sdkMcpServerConfigs": {"desk": {"timeout": 1_000}}});
    let mut host = begin(&program, &flags, &wishes);
    host.say("go");
    let seen = serve(&mut host, &Answers { serves: false, ..Answers::default() });
    assert_eq!((seen.calls.len(), &seen.result["result"]), (1, &json!("done")));
    assert!(told(&program).contains("1s"), "{}", told(&program));
    assert!(Duration::from_millis(seen.result["duration_ms"].as_u64().unwrap()).as_secs() < 60);
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_function_of_the_host_that_must_succeed_keeps_a_call_from_running() {
    for (on_failure, answer, runs) in [
        ("block", None, false),
        ("block", Some(json!("not an object")), false),
        ("block", Some(json!({})), true),
        ("continue", None, true),
    ] {
        let program = Program::answering([
            call("t1", "Write", json!({"file_path": "x.txt", "content": "y"})),
            Reply::text("done"),
        ]);
        let matcher =
            json!({"matcher": "Write", "hookCallbackIds": ["guard"], "onFailure": on_failure});
        let wishes = json!({"hooks": {"PreToolUse": [matcher]}});
        let mut host = begin(&program, &["--permission-mode", "acceptEdits"], &wishes);
        host.say("write");
        let seen = serve(&mut host, &Answers { hook: answer.clone(), ..Answers::default() });
        assert_eq!(seen.hooked, ["Write"]);
        let is_there = program.scratch.project().join("x.txt").exists();
        assert_eq!(is_there, runs, "{on_failure} {answer:?}");
        assert_eq!(host.finish(), 0);
    }
}

#[test]
fn a_function_that_takes_too_long_blocks_where_it_must_succeed() {
    let program = Program::answering([
        call("t1", "Write", json!({"file_path": "x.txt", "content": "y"})),
        Reply::text("done"),
    ]);
    let mut host = Host::start(&program, &["--permission-mode", "acceptEdits"]);
    let matcher = json!({"hookCallbackIds": ["guard"], "onFailure": "block", "timeout": 0.2});
    let hooks = json!({"PreToolUse": [matcher]});
    let answer = host.ask(&json!({"subtype": "initialize", "hooks": hooks}));
    assert_eq!(answer["response"]["hook_on_failure_supported"], true);
    host.say("write");
    assert_eq!(host.result()["result"], "done");
    assert!(!program.scratch.project().join("x.txt").exists());
    assert_eq!(host.finish(), 0);
}

#[test]
fn an_interrupt_spares_agents_in_the_background_only_where_they_can_be_ended_one_by_one() {
    // D-49
    for declared in [None, Some(false), Some(true)] {
        let program = Program::with_handler(|request| {
            let messages = request.json()["messages"].clone();
            let said = messages.to_string();
            let is_child = request.header("x-claude-code-agent-id").is_some();
            match (is_child, messages.as_array().unwrap().len()) {
                (true, 1) => call(
                    "c1",
                    "Bash",
                    json!({"command": "touch ready; until [ -e go ]; do sleep 0.01; done"}),
                ),
                (true, _) => Reply::text("the child is done"),
                (false, 1) => call(
                    "t1",
                    "Agent",
                    json!({"description": "a job", "prompt": "work", "run_in_background": true}),
                ),
                (false, _) if said.contains("next") || said.contains("task-notification") => {
                    Reply::text("heard")
                }
                (false, _) => call(
                    "t2",
                    "Bash",
                    json!({"command": "until [ -e never ]; do sleep 0.01; done"}),
                ),
            }
        });
        let mut host = Host::start(&program, &["--allowedTools", "Bash,Agent"]);
        let request = json!({"subtype": "initialize", "perTaskStopAffordance": declared});
        host.ask(&request);
        // A later request changes nothing.
        host.send(&control(
            "later",
            &json!({"subtype": "initialize", "perTaskStopAffordance": declared.is_none()}),
        ));
        host.say("begin");
        let ready = program.scratch.project().join("ready");
        eventually("the agent is at work", || ready.exists().then_some(()));
        host.until(|event| event["message"]["content"][0]["id"] == "t2");
        host.send(&control("stop", &json!({"subtype": "interrupt"})));
        let mut seen = host.until(|event| event["type"] == "result");
        let is_told = |event: &Value| event["subtype"] == "task_notification";
        if declared == Some(true) {
            assert!(!seen.iter().any(is_told));
            program.scratch.write("go", "");
            seen.extend(host.until(|event| event["type"] == "result"));
        } else if !seen.iter().any(is_told) {
            // The result does not wait for the agent and its command to end.
            seen.extend(host.until(is_told));
        }
        // An interrupt that ends agents begins no turn: the next result is that of the next prompt.
        host.say("next");
        seen.extend(host.until(|event| event["type"] == "result"));
        let ends: Vec<&Value> = seen.iter().filter(|it| is_told(it)).collect();
        let status = if declared == Some(true) { "completed" } else { "stopped" };
        assert_eq!((ends.len(), &ends[0]["status"]), (1, &json!(status)), "{declared:?}");
        let is_result = |event: &&Value| event["type"] == "result";
        let count = if declared == Some(true) { 3 } else { 2 };
        assert_eq!(seen.iter().filter(is_result).count(), count, "{declared:?}");
        eventually("the main agent is told", || {
            let told = program.server().last().json()["messages"].to_string();
            if !told.contains("task-notification") {
                host.say("next");
                host.result();
            }
            told.contains("task-notification").then_some(())
        });
        assert_eq!(host.finish(), 0);
    }
}
