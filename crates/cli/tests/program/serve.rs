//! `centurion mcp serve`: tools and agents for other programs, line by line as they speak with it.

use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use centurion_testkit::{Reply, sse};
use serde_json::{Value, json};

use crate::program::{Program, call, eventually, signal};
use crate::stage::{Stage, agent, bash};

/// A program that uses the server.
pub(crate) struct Client {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    last: u64,
    /// Everything the server said.
    pub(crate) heard: Vec<Value>,
}

impl Client {
    /// Starts a server and shakes hands with it.
    fn start(program: &Program, extra: &[&str]) -> Self {
        Self::start_as(program, extra, &json!({}))
    }

    pub(crate) fn start_as(program: &Program, extra: &[&str], capabilities: &Value) -> Self {
        let arguments = [&["mcp", "serve"], extra].concat();
        let mut child = program.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let lines = BufReader::new(stdout).lines();
        let mut client = Self { child, stdin, lines, last: 0, heard: Vec::new() };
        let client_info = json!({"name": "test", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": client_info});
        let welcome = client.ask("initialize", &hello);
        assert_eq!(welcome["result"]["serverInfo"]["name"], "centurion", "{welcome}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    pub(crate) fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request; its id.
    pub(crate) fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Reads until a message that fits. Nothing but JSON-RPC may be on the way to it.
    pub(crate) fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.next().expect("the server ended early").unwrap();
            assert!(!line.contains(['\u{2028}', '\u{2029}']), "{line}");
            let message: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
            self.heard.push(message.clone());
            if fits(&message) {
                return message;
            }
        }
    }

    pub(crate) fn answer(&mut self, id: u64) -> Value {
        let fits = |message: &Value| message["id"] == id && message["method"].is_null();
        let heard = self.heard.iter().find(|message| fits(message)).cloned();
        heard.unwrap_or_else(|| self.until(fits))
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Begins a call; its id.
    pub(crate) fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        let meta = json!({"progressToken": format!("of {tool}")});
        self.request("tools/call", &json!({"name": tool, "arguments": arguments, "_meta": meta}))
    }

    /// Calls a tool; its result.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.begin(tool, arguments);
        self.answer(id)["result"].take()
    }

    fn cancel(&mut self, id: u64) {
        let params = json!({"requestId": id, "reason": "no longer needed"});
        self.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}),
        );
    }

    fn tools(&mut self) -> Vec<String> {
        let list = self.ask("tools/list", &json!({}));
        let tools = list["result"]["tools"].as_array().unwrap();
        assert!(tools.iter().all(|tool| tool["inputSchema"]["type"] == "object"), "{list}");
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Closes the input; how the server ends.
    pub(crate) fn finish(mut self) -> Option<i32> {
        drop(self.stdin.take());
        for line in self.lines.by_ref() {
            let line = line.unwrap();
            assert!(serde_json::from_str::<Value>(&line).is_ok(), "{line}");
        }
        self.child.wait().unwrap().code()
    }
}

pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

/// A denial or another failure; what it says.
pub(crate) fn failure(result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result}");
    text(result).to_owned()
}

pub(crate) fn success(result: &Value) -> String {
    assert_eq!(result["isError"], false, "{result}");
    text(result).to_owned()
}

/// A command that tells its process and then continues for longer than any test.
pub(crate) fn endless() -> Value {
    json!({"command": "echo $$ > pid.new; mv pid.new pid; exec sleep 98791"})
}

/// Waits for the process of [`endless`].
pub(crate) fn process(program: &Program) -> String {
    let path = program.scratch.project().join("pid");
    eventually("the command started", || std::fs::read_to_string(&path).ok())
}

pub(crate) fn gone(process: &str) {
    let path = format!("/proc/{}", process.trim());
    eventually("the command ended", || (!Path::new(&path).exists()).then_some(()));
}

#[test]
fn what_some_readers_take_for_the_end_of_a_line_is_escaped() {
    let program = Program::answering([]);
    program.scratch.write("separated", "one\u{2028}two\u{2029}three");
    let mut client = Client::start(&program, &[]);
    let read = client.call("Read", &json!({"file_path": "separated"}));
    assert!(success(&read).contains("one\u{2028}two\u{2029}three"), "{read}");
    assert_eq!(client.finish(), Some(0));
}

const OFFERED: [&str; 13] = [
    "Bash",
    "Edit",
    "Glob",
    "Grep",
    "NotebookEdit",
    "Read",
    "TaskOutput",
    "TaskStop",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
    "Write",
    "centurion",
];

#[test]
fn the_tools_are_listed_always_in_the_same_order() {
    let program = Program::answering([]);
    let mut client = Client::start(&program, &[]);
    assert_eq!(client.tools(), OFFERED);
    assert_eq!(client.tools(), OFFERED);
    assert_eq!(client.finish(), Some(0));
    let flags = ["--tools", "Write,Read", "--disallowedTools", "centurion"];
    let mut narrow = Client::start(&program, &flags);
    assert_eq!(narrow.tools(), ["Read", "Write"]);
    let refused = narrow.ask("tools/call", &json!({"name": "centurion"}));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(narrow.finish(), Some(0));
    assert!(program.transcripts().is_empty(), "tools have no conversation");
}

#[test]
fn calls_run_or_say_why_not() {
    let program = Program::answering([]);
    program.scratch.write("a.txt", "first line\n");
    let mut client = Client::start(&program, &["--allowedTools", "Bash(echo *)"]);
    let read = success(&client.call("Read", &json!({"file_path": "a.txt"})));
    assert!(read.contains("first line"), "{read}");
    assert_eq!(success(&client.call("Bash", &json!({"command": "echo hi"}))).trim(), "hi");
    let denied = failure(&client.call("Bash", &json!({"command": "touch b.txt"})));
    assert!(denied.contains("not allowed") && denied.contains("touch b.txt"), "{denied}");
    assert!(denied.contains("no user can be asked"), "{denied}");
    assert!(!program.scratch.project().join("b.txt").exists());
    let bad = failure(&client.call("Read", &json!({"path": 7})));
    assert!(bad.contains("file_path"), "{bad}");
    let unknown = client.ask("tools/call", &json!({"name": "Frobnicate", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let told = unknown["error"]["message"].as_str().unwrap();
    assert!(told.contains("Frobnicate") && told.contains("Read"), "{unknown}");
    assert!(told.contains(", centurion."), "the tool that runs agents is one, too: {unknown}");
    let nobody = client.ask("tools/call", &json!({"name": "AskUserQuestion", "arguments": {}}));
    assert!(nobody["error"]["message"].as_str().unwrap().contains("not available"), "{nobody}");
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn hooks_see_the_calls_and_the_server_begins_and_ends_like_a_session() {
    let program = Program::answering([]);
    program.scratch.write("a.txt", "x");
    let command = |text: &str| json!([{"hooks": [{"type": "command", "command": text}]}]);
    let settings = json!({"hooks": {
        "SessionStart": command("echo start >> log"),
        "PreToolUse": command("echo call >> log; grep -q secret && { echo 'keep out' >&2; exit 2; } || true"),
        "PostToolUse": command(r#"echo done >> log; echo '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "read it twice"}}'"#),
        "SessionEnd": command("echo end >> log"),
    }});
    let mut client = Client::start(&program, &["--settings", &settings.to_string()]);
    let read = client.call("Read", &json!({"file_path": "a.txt"}));
    success(&read);
    assert!(read["content"][1]["text"].as_str().unwrap().contains("read it twice"), "{read}");
    let kept_out = failure(&client.call("Read", &json!({"file_path": "secret.txt"})));
    assert!(kept_out.contains("keep out"), "{kept_out}");
    assert_eq!(client.finish(), Some(0));
    assert_eq!(program.scratch.read("log"), "start\ncall\ndone\ncall\nend\n");
}

#[test]
fn a_cancelled_call_is_cut_and_the_server_continues() {
    let program = Program::answering([]);
    let mut client = Client::start(&program, &["--allowedTools", "Bash"]);
    let id = client.begin("Bash", &endless());
    let process = process(&program);
    client.cancel(id);
    gone(&process);
    assert_eq!(success(&client.call("Bash", &json!({"command": "echo on"}))).trim(), "on");
    assert!(client.heard.iter().all(|message| message["id"] != id), "{:?}", client.heard);
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn calls_run_side_by_side() {
    let program = Program::answering([]);
    program.scratch.write("a.txt", "here");
    let mut client = Client::start(&program, &["--allowedTools", "Bash"]);
    let command = "until [ -e go ]; do sleep 0.01; done; echo went";
    let slow = client.begin("Bash", &json!({"command": command}));
    assert!(success(&client.call("Read", &json!({"file_path": "a.txt"}))).contains("here"));
    program.scratch.write("go", "");
    assert_eq!(success(&client.answer(slow)["result"]).trim(), "went");
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn calls_that_may_change_something_take_turns() {
    let program = Program::answering([]);
    program.scratch.write("a.txt", "here");
    let mut client = Client::start(&program, &["--allowedTools", "Bash"]);
    let command = "touch begun; until [ -e go ]; do sleep 0.01; done; ls second* || echo none yet";
    let first = client.begin("Bash", &json!({"command": command}));
    let begun = program.scratch.project().join("begun");
    eventually("the first began", || begun.exists().then_some(()));
    let second = client.begin("Bash", &json!({"command": "touch second"}));
    let cancelled = client.begin("Bash", &json!({"command": "touch third"}));
    client.cancel(cancelled);
    // The server has those now, since it has done what came after them.
    success(&client.call("Read", &json!({"file_path": "a.txt"})));
    program.scratch.write("go", "");
    let said = success(&client.answer(first)["result"]);
    assert!(said.contains("none yet"), "{said}");
    success(&client.answer(second)["result"]);
    assert!(!program.scratch.project().join("third").exists());
    assert_eq!(client.finish(), Some(0));
}

/// An MCP server in a few lines of shell, whose tool denies whatever it is asked about.
const JUDGE: &str = r#"
touch "started-$1"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"judge","version":"1"}}}\n' "$id" ;;
  *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"judge","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
  *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"{\\"decision\\": \\"block\\", \\"reason\\": \\"the judge says no\\"}"}]}}\n' "$id" ;;
  esac
done
"#;

#[test]
fn only_servers_that_hooks_call_are_started_for_the_tools() {
    let program = Program::answering([]);
    program.scratch.write("judge.sh", JUDGE);
    program.scratch.write("a.txt", "here");
    let server = |name: &str| json!({"command": "sh", "args": ["judge.sh", name]});
    let servers = json!({"mcpServers": {"judge": server("judge"), "other": server("other")}});
    let hook = json!({"type": "mcp_tool", "server": "judge", "tool": "judge", "input": {}});
    let settings = json!({"hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [hook]}]}});
    let (servers, settings) = (servers.to_string(), settings.to_string());
    let flags = ["--mcp-config", &servers, "--settings", &settings];
    let mut client = Client::start(&program, &flags);
    assert_eq!(client.tools(), OFFERED, "tools of servers are not passed on");
    let said = failure(&client.call("Read", &json!({"file_path": "a.txt"})));
    assert!(said.contains("the judge says no"), "{said}");
    assert_eq!(client.finish(), Some(0));
    let started = |name: &str| program.scratch.project().join(format!("started-{name}")).exists();
    assert!(started("judge") && !started("other"));
}

#[test]
fn questions_go_to_a_client_that_can_ask() {
    let program = Program::answering([]);
    let mut client = Client::start_as(&program, &[], &json!({"elicitation": {}}));
    for (file, action) in [("yes.txt", "accept"), ("no.txt", "decline")] {
        let id = client.begin("Bash", &json!({"command": format!("touch {file}")}));
        let asked = client.until(|message| message["method"] == "elicitation/create");
        assert!(asked["params"]["message"].as_str().unwrap().contains(file), "{asked}");
        let answer = json!({"action": action, "content": {}});
        client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
        let result = &client.answer(id)["result"];
        assert_eq!(result["isError"], action == "decline", "{result}");
        assert_eq!(program.scratch.project().join(file).exists(), action == "accept");
    }
    assert!(client.heard.last().unwrap().to_string().contains("said no"));
    // A question dies with its call, which does not wait for the answer.
    let id = client.begin("Bash", &json!({"command": "touch never.txt"}));
    let asked = |message: &Value| message["method"] == "elicitation/create";
    client.until(|message| asked(message) && message.to_string().contains("never.txt"));
    client.cancel(id);
    success(&client.call("Bash", &json!({"command": "ls"})));
    assert!(!program.scratch.project().join("never.txt").exists());
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn an_agent_asks_the_client_too() {
    let program = Program::answering([
        call("toolu_1", "Write", json!({"file_path": "b.txt", "content": "b"})),
        Reply::text("written"),
    ]);
    let mut client = Client::start_as(&program, &[], &json!({"elicitation": {"form": {}}}));
    let id = client.begin("centurion", &json!({"prompt": "write b.txt"}));
    let asked = client.until(|message| message["method"] == "elicitation/create");
    assert!(asked["params"]["message"].as_str().unwrap().starts_with("May Write run?"), "{asked}");
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}}));
    let result = &client.answer(id)["result"];
    assert_eq!(success(result), "written");
    assert_eq!(result["structuredContent"]["permission_denials"], json!([]));
    assert_eq!(program.scratch.read("b.txt"), "b");
    let offered = &program.server().last().json()["tools"];
    let asks = |tool: &Value| tool["name"] == "AskUserQuestion";
    assert!(!offered.as_array().unwrap().iter().any(asks), "a yes or no is all that is asked");
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn an_agent_that_leaves_others_unfinished_has_not_succeeded() {
    let behind = json!({"run_in_background": true, "name": "bob", "description": "take long"});
    let stage = Stage::new(&json!({
        "lead": [[agent("@@stuck", &behind)], "meanwhile"],
        "stuck": [[bash("sleep 98792")], "never"],
    }));
    let settings = json!({"env": {"CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS": "300"}}).to_string();
    let flags = ["--model", stage.model(), "--settings", &settings, "--allowedTools", "Bash"];
    let mut client = Client::start(&stage.program, &flags);
    let result = client.call("centurion", &json!({"prompt": "@@lead"}));
    assert_eq!(failure(&result), "meanwhile");
    let told = &result["content"][1]["text"];
    assert_eq!(told, "The run ended before these agents had: bob (take long)");
    assert_eq!(result["structuredContent"]["unfinished_agents"][0]["name"], "bob");
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn an_agent_runs_and_continues_later() {
    let program = Program::answering([
        call("toolu_1", "Read", json!({"file_path": "a.txt"})),
        call("toolu_2", "Write", json!({"file_path": "b.txt", "content": "b"})),
        Reply::text("it says here"),
        Reply::text("as I said"),
    ]);
    program.scratch.write("a.txt", "here");
    let mut client = Client::start(&program, &[]);
    let result = client.call("centurion", &json!({"prompt": "what does a.txt say?"}));
    assert_eq!(success(&result), "it says here");
    let data = &result["structuredContent"];
    assert_eq!((&data["outcome"], &data["num_turns"]), (&json!("completed"), &json!(3)));
    assert_eq!(data["permission_denials"][0]["tool_name"], "Write", "{data}");
    assert!(data["usage"]["output_tokens"].as_u64().unwrap() > 0, "{data}");
    assert!(data["total_cost_usd"].as_f64().unwrap() > 0.0, "{data}");
    let steps = client.heard.iter().filter(|it| it["method"] == "notifications/progress");
    let steps: Vec<(&Value, &Value)> =
        steps.map(|it| (&it["params"]["progressToken"], &it["params"]["message"])).collect();
    let token = json!("of centurion");
    assert_eq!(steps, [(&token, &json!("Read")), (&token, &json!("Write"))]);
    let id = data["session_id"].clone();
    let again = client.call("centurion", &json!({"prompt": "again", "session_id": id}));
    assert_eq!(success(&again), "as I said");
    assert_eq!(again["structuredContent"]["session_id"], id);
    let last = program.server().last().json().to_string();
    assert!(last.contains("what does a.txt say?"), "{last}");
    let [transcript] = &program.transcripts()[..] else { panic!("one session") };
    assert!(transcript.to_str().unwrap().contains(id.as_str().unwrap()));
    assert!(std::fs::read_to_string(transcript).unwrap().contains(r#""entrypoint":"mcp""#));
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn an_agent_that_runs_again_for_a_background_command_is_reported_as_one() {
    let program = Program::answering([
        call("toolu_1", "Write", json!({"file_path": "b.txt", "content": "b"})),
        call(
            "toolu_2",
            "Bash",
            json!({"command": "until [ -e go ]; do sleep 0.01; done", "run_in_background": true}),
        ),
        Reply::text("waiting"),
        Reply::text("it has ended"),
    ]);
    let mut client = Client::start(&program, &["--allowedTools", "Bash"]);
    let id = client.begin("centurion", &json!({"prompt": "go"}));
    program.server().wait_for(3);
    program.scratch.write("go", "");
    let result = &client.answer(id)["result"];
    assert_eq!(success(result), "it has ended");
    assert_eq!(result["structuredContent"]["num_turns"], 4, "{result}");
    assert_eq!(result["structuredContent"]["permission_denials"][0]["tool_name"], "Write");
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn an_agent_gets_no_more_than_the_server_has() {
    let program = Program::answering([]);
    program.scratch.write_home("file", "");
    let mut client = Client::start(&program, &[]);
    for (input, why) in [
        (json!({}), "prompt"),
        (json!({"prompt": " "}), "empty"),
        (json!({"prompt": "go", "temperature": 1}), "temperature"),
        (json!({"prompt": "go", "permission_mode": "bypassPermissions"}), "would allow more"),
        (json!({"prompt": "go", "cwd": "../home"}), "outside the directories"),
        (json!({"prompt": "go", "model": "script:x.yaml"}), "no model"),
        (
            json!({"prompt": "go", "session_id": "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11"}),
            "no session",
        ),
    ] {
        let said = failure(&client.call("centurion", &input));
        assert!(said.contains(why), "{input}: {said}");
    }
    assert!(program.server().requests().is_empty() && program.transcripts().is_empty());
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn wherever_an_agent_works_the_rules_and_hooks_are_the_servers() {
    let program = Program::alone();
    program.scratch.write("sub/.keep", "");
    program.scratch.write(".env", "the secret");
    let hook = json!({"type": "command", "command": "echo no >&2; exit 2"});
    let settings = json!({
        "permissions": {"deny": ["Read(.env)"]},
        "hooks": {"PreToolUse": [{"matcher": "Write", "hooks": [hook]}]},
    });
    program.scratch.write(".claude/settings.json", settings.to_string());
    assert_eq!(program.run(&["trust", "grant"]).code, Some(0));
    let root = program.scratch.project().canonicalize().unwrap();
    let path = |name: &str| root.join(name).display().to_string();
    let script = json!({"scripts": {
        "env": [{"tool": "Read", "input": {"file_path": path(".env")}}, "read: ${re:(the secret)}"],
        "below": [{"tool": "Edit", "input": {"file_path": path("sub/out/f"), "old_string": "", "new_string": "x"}}, "done"],
        "write": [{"tool": "Write", "input": {"file_path": path("sub/new"), "content": "x"}}, "done"],
    }});
    program.scratch.write("model.yaml", script.to_string());
    let model = format!("script:{}", path("model.yaml"));
    let rules = ["--model", &model, "--allowedTools", "Read", "Write", "Edit(out/**)"];
    for cwd in [".", "sub"] {
        let mut client = Client::start(&program, &rules);
        for prompt in ["@@env", "@@below", "@@write"] {
            let result = client.call("centurion", &json!({"prompt": prompt, "cwd": cwd}));
            assert!(!result.to_string().contains("the secret"), "{cwd} {prompt}: {result}");
        }
        assert_eq!(client.finish(), Some(0));
        for name in ["sub/out/f", "sub/new"] {
            assert!(!root.join(name).exists(), "{cwd}: {name}");
        }
    }
}

#[test]
fn a_run_that_is_no_success_is_an_error() {
    let program = Program::answering([Reply::error(401, "authentication_error", "wrong key")]);
    let mut client = Client::start(&program, &[]);
    let result = client.call("centurion", &json!({"prompt": "go"}));
    assert!(failure(&result).contains("wrong key"), "{result}");
    assert_eq!(result["structuredContent"]["outcome"], "api_error");
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn all_agents_together_spend_no_more_than_the_server_may() {
    let usage = sse::usage(1_000_000, 0, 0, 100_000);
    let dear = Reply::events(sse::answer_with(&[sse::text("dear")], "end_turn", &usage));
    let program = Program::answering([dear, Reply::text("never asked for")]);
    let mut client = Client::start(&program, &["--max-budget-usd", "3"]);
    assert_eq!(success(&client.call("centurion", &json!({"prompt": "go"}))), "dear");
    let second = client.call("centurion", &json!({"prompt": "go"}));
    failure(&second);
    assert_eq!(second["structuredContent"]["outcome"], "budget", "{second}");
    assert_eq!(program.server().requests().len(), 1);
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn agents_of_a_scripted_model_work_side_by_side_in_their_own_directories() {
    let program = Program::alone();
    let script = r#"
scripts:
  scout:
    - {tool: Bash, input: {command: "pwd; touch ${arg}; until [ -e ../one/a -a -e ../two/b ]; do sleep 0.01; done"}}
    - "in ${re:project/(one|two)}"
"#;
    program.scratch.write("model.yaml", script);
    program.scratch.write("one/.keep", "");
    program.scratch.write("two/.keep", "");
    let model = format!("script:{}", program.scratch.project().join("model.yaml").display());
    let mut client = Client::start(&program, &["--model", &model, "--allowedTools", "Bash"]);
    let first = client.begin("centurion", &json!({"prompt": "@@scout:a", "cwd": "one"}));
    let second = client.begin("centurion", &json!({"prompt": "@@scout:b", "cwd": "two"}));
    for (id, said) in [(first, "in one"), (second, "in two")] {
        assert_eq!(success(&client.answer(id)["result"]), said);
    }
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn a_cancelled_agent_stops_and_its_session_can_continue() {
    let program = Program::answering([call("toolu_1", "Bash", endless()), Reply::text("fine")]);
    let mut client = Client::start(&program, &["--allowedTools", "Bash"]);
    let id = client.begin("centurion", &json!({"prompt": "go"}));
    let process = process(&program);
    client.cancel(id);
    gone(&process);
    // The run may still be ending: what comes next waits for it.
    let transcript = program.transcripts().pop().unwrap();
    let session = transcript.file_stem().unwrap().to_str().unwrap();
    let again = client.call("centurion", &json!({"prompt": "go on", "session_id": session}));
    assert_eq!(success(&again), "fine");
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn the_end_of_the_input_ends_the_server_and_all_it_started() {
    let program = Program::answering([]);
    let mut client = Client::start(&program, &["--allowedTools", "Bash"]);
    let background = json!({"command": "echo $$ > pid.new; mv pid.new pid; exec sleep 98792", "run_in_background": true});
    success(&client.call("Bash", &background));
    let left = process(&program);
    std::fs::remove_file(program.scratch.project().join("pid")).unwrap();
    client.begin("Bash", &endless());
    let running = process(&program);
    assert_eq!(client.finish(), Some(0));
    gone(&left);
    gone(&running);
}

#[test]
fn a_signal_ends_the_server_and_what_runs() {
    let program = Program::answering([call("toolu_1", "Bash", endless())]);
    let mut client = Client::start(&program, &["--allowedTools", "Bash"]);
    client.begin("centurion", &json!({"prompt": "go"}));
    let running = process(&program);
    signal(&client.child, "-TERM");
    assert_eq!(client.child.wait().unwrap().code(), Some(143));
    gone(&running);
}

#[test]
fn the_tools_need_no_model() {
    let program = Program::alone();
    program.scratch.write("a.txt", "here");
    let flags = ["--model", "script:missing.yaml"];
    let mut client = Client::start(&program, &flags);
    assert!(success(&client.call("Read", &json!({"file_path": "a.txt"}))).contains("here"));
    let said = failure(&client.call("centurion", &json!({"prompt": "go"})));
    assert!(said.contains("missing.yaml"), "{said}");
    assert_eq!(client.finish(), Some(0));
}

#[test]
fn who_does_not_speak_the_protocol_is_told_on_standard_error() {
    let program = Program::answering([]);
    let nothing = program.run(&["mcp", "serve"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), ""), "{}", nothing.stderr);
    let wrong = program.run_with_input(
        &["mcp", "serve"],
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n",
    );
    assert_eq!((wrong.code, wrong.stdout.as_str()), (Some(1), ""));
    assert!(wrong.stderr.contains("initialize"), "{}", wrong.stderr);
    let asked = program.run(&["mcp", "serve", "--permission-prompt-tool", "mcp__a__b"]);
    assert_eq!(asked.code, Some(1));
    assert!(asked.stderr.contains("the program that calls is asked"), "{}", asked.stderr);
}

#[test]
fn our_own_client_uses_our_own_server() {
    let program = Program::answering([
        call("toolu_1", "mcp__inner__Read", json!({"file_path": "a.txt"})),
        Reply::text("done"),
    ]);
    program.scratch.write("a.txt", "through both ends");
    let server = json!({"command": env!("CARGO_BIN_EXE_centurion"), "args": ["mcp", "serve"]});
    program.scratch.write(".mcp.json", json!({"inner": server}).to_string());
    let enabled = program.run(&["mcp", "enable", "inner"]);
    assert_eq!(enabled.code, Some(0), "{}", enabled.stderr);
    let get = program.run(&["mcp", "get", "inner"]);
    for part in ["connected", "server: centurion", "mcp__inner__Read", "mcp__inner__centurion"] {
        assert!(get.stdout.contains(part), "{part}: {}{}", get.stdout, get.stderr);
    }
    let run = program.run(&["-p", "read it", "--allowedTools", "mcp__inner__Read"]);
    assert_eq!((run.code, run.stdout.trim()), (Some(0), "done"), "{}", run.stderr);
    let last = program.server().last().json().to_string();
    assert!(last.contains("through both ends"), "{last}");
}

#[test]
fn a_client_that_asks_without_reading_waits_and_a_signal_still_ends_the_server() {
    let program = Program::answering([]);
    let mut client = Client::start(&program, &[]);
    let mut stdin = client.stdin.take().unwrap();
    let (asked, total) = (Arc::new(AtomicUsize::new(0)), 30_000);
    let counted = Arc::clone(&asked);
    let asking = std::thread::spawn(move || {
        for id in 100..100 + total {
            let line = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
            if writeln!(stdin, "{line}").is_err() {
                break;
            }
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    // It reads no further while its answers are not read.
    let last = Cell::new((0, Instant::now()));
    eventually("a client that has to wait", || {
        let now = asked.load(Ordering::Relaxed);
        if now != last.get().0 {
            last.set((now, Instant::now()));
        }
        assert!(now < total, "all questions were taken");
        (now > 0 && last.get().1.elapsed() > Duration::from_secs(1)).then_some(())
    });
    signal(&client.child, "-TERM");
    let child = RefCell::new(client.child);
    let status = eventually("the end", || child.borrow_mut().try_wait().unwrap());
    assert_eq!(status.code(), Some(143));
    asking.join().unwrap();
}
