//! Servers and the run that has them: who starts and ends them, and who may use what.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use centurion_testkit::{Recorded, Reply};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::components::python_server;
use crate::processes::processes;
use crate::program::{Ended, Program, call, eventually};
use crate::real_servers::{calls, results, run, told, with};

/// The names of the tools that a request offers, in their order.
fn offered(request: &Recorded) -> Vec<String> {
    let tools = request.json()["tools"].as_array().unwrap().clone();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn of_server(request: &Recorded) -> Vec<String> {
    offered(request).into_iter().filter(|name| name.starts_with("mcp__")).collect()
}

fn python() -> Vec<String> {
    with("py", &python_server())
}

#[test]
fn a_server_of_an_untrusted_folder_is_shown_with_its_reason_and_not_started() {
    // D-58
    let program = Program::answering([Reply::text("hello"), Reply::text("hello")]);
    let mark = program.scratch.root().join("MARK");
    let server = json!({"command": "touch", "args": [mark]});
    program.scratch.write(".mcp.json", json!({"mcpServers": {"repo": server}}).to_string());
    let start = ["-p", "hi", "--output-format", "stream-json", "--verbose"];
    let init = |ended: &Ended| {
        let events = ended.events();
        let init = events.into_iter().find(|event| event["subtype"] == "init").unwrap();
        init["mcp_servers"].clone()
    };
    let untrusted = program.run(&start);
    let told = init(&untrusted);
    assert_eq!(told.as_array().unwrap().len(), 1, "{told}");
    assert_eq!((&told[0]["name"], &told[0]["status"]), (&json!("repo"), &json!("untrusted")));
    assert!(told[0]["reason"].as_str().unwrap().contains("not trusted"), "{told}");
    assert_eq!(told[0]["source"], "project");
    assert!(untrusted.stderr.contains("server `repo` was not started"), "{}", untrusted.stderr);
    assert!(!mark.exists());
    assert_eq!(program.run(&["trust", "grant"]).code, Some(0));
    let trusted = init(&program.run(&start));
    assert!(mark.exists() && trusted[0].get("reason").is_none(), "{trusted}");
}

#[test]
fn a_server_that_hangs_does_not_hold_the_run_up_and_the_run_says_so() {
    let program = Program::answering([Reply::text("hello")]);
    // It takes everything and answers nothing.
    let server = json!({"command": "sh", "args": ["-c", "cat > /dev/null"]});
    program.scratch.write(".mcp.json", json!({"mcpServers": {"mute": server}}).to_string());
    assert_eq!(program.run(&["trust", "grant"]).code, Some(0));
    let begun = Instant::now();
    let ended = program.run(&["-p", "hi", "--output-format", "stream-json", "--verbose"]);
    let waited = begun.elapsed();
    assert!(waited < Duration::from_secs(20), "{waited:?}");
    assert_eq!(ended.result()["result"], "hello");
    let events = ended.events();
    let init = events.iter().find(|event| event["subtype"] == "init").unwrap();
    let told = &init["mcp_servers"][0];
    assert_eq!((&told["name"], &told["status"]), (&json!("mute"), &json!("pending")), "{init}");
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.contains("`mute`")).collect();
    assert_eq!(lines.len(), 1, "{}", ended.stderr);
    assert!(lines[0].contains("still connecting"), "{lines:?}");
}

#[test]
fn sigkill_leaves_no_server_behind() {
    // I-13
    let program = Program::answering([call("toolu_1", "mcp__py__hang", json!({"mark": "98751"}))]);
    let mut server = python_server();
    // Something that no other process has in its command line.
    let mark = program.scratch.root().display().to_string();
    server["args"].as_array_mut().unwrap().push(json!(mark));
    let config = json!({"py": server}).to_string();
    let config = program.scratch.write("servers.json", config).display().to_string();
    let flags = ["-p", "go", "--allowedTools", "mcp__py", "--mcp-config"];
    let mut child = program.command(flags).arg(config.replace(&mark, "..")).spawn().unwrap();
    eventually("the server's own process runs", || {
        (!processes("sleep 98751").is_empty()).then_some(())
    });
    assert!(!processes(&mark).is_empty(), "the server runs");
    child.kill().unwrap();
    child.wait().unwrap();
    eventually("every process ended", || {
        (processes("sleep 98751").is_empty() && processes(&mark).is_empty()).then_some(())
    });
}

#[test]
fn a_server_that_dies_in_a_call_fails_the_call_and_the_run_continues() {
    let program = Program::answering([
        call("toolu_1", "mcp__py__die", json!({})),
        call("toolu_2", "mcp__py__add", json!({"a": 1, "b": 2})),
        Reply::text("done"),
    ]);
    let ended = run(&program, "go", &python());
    let results = results(&ended);
    assert!(results[0].contains("the MCP server py went away during the call"), "{}", results[0]);
    assert!(results[1].contains("The server py cannot be asked: it is failed"), "{}", results[1]);
    assert_eq!(ended.result()["result"], "done");
}

#[test]
fn a_repositorys_server_waits_for_trust_and_the_run_says_so() {
    let program =
        Program::answering([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    let server = python_server();
    let mut words = vec![server["command"].as_str().unwrap()];
    words.extend(server["args"].as_array().unwrap().iter().filter_map(Value::as_str));
    let line = format!("touch started; exec {}", words.join(" "));
    let config = json!({"repo": {"command": "sh", "args": ["-c", line]}}).to_string();
    program.scratch.write(".mcp.json", &config);
    let started = program.scratch.project().join("started");

    let untrusted = run(&program, "hi", &[]);
    assert!(!started.exists() && of_server(&program.server().last()).is_empty());
    assert!(untrusted.stderr.contains("`repo`"), "{}", untrusted.stderr);
    assert!(untrusted.stderr.contains("trust"), "{}", untrusted.stderr);

    assert_eq!(program.run(&["trust", "grant"]).code, Some(0));
    let strict =
        ["--strict-mcp-config", "--mcp-config", &json!({"py": python_server()}).to_string()];
    run(&program, "hi", &strict.map(str::to_owned));
    assert!(!started.exists(), "another file's server");
    assert!(of_server(&program.server().last()).iter().all(|name| name.starts_with("mcp__py__")));

    // An agent that lists the server's tools waits for it, however slow the machine is.
    let agents = json!({"adder": {"description": "d", "prompt": "p", "tools": ["mcp__repo__add"]}});
    let flags = ["--agents", &agents.to_string(), "--agent", "adder"];
    let trusted = run(&program, "hi", &flags.map(str::to_owned));
    assert!(started.exists() && !trusted.stderr.contains("was not started"), "{}", trusted.stderr);
    assert!(of_server(&program.server().last()).contains(&"mcp__repo__add".to_owned()));
}

#[test]
fn rules_and_modes_hold_for_the_tools_of_servers() {
    let both = || {
        let add = ("mcp__py__add", json!({"a": 1, "b": 2}));
        [calls([add, ("mcp__py__note", json!({"text": "x"}))]), Reply::text("done")]
    };
    let config = json!({"py": python_server()}).to_string();
    let flags = |more: &[&str]| -> Vec<String> {
        ["--mcp-config", &config].iter().chain(more).map(|flag| (*flag).to_owned()).collect()
    };

    let program = Program::answering(both());
    let ended = run(&program, "go", &flags(&["--allowedTools", "mcp__py__a*"]));
    let by_wildcard = results(&ended);
    assert_eq!(by_wildcard[0], "3");
    assert!(by_wildcard[1].contains("not allowed"), "{}", by_wildcard[1]);
    assert_eq!(ended.result()["permission_denials"][0]["tool_name"], "mcp__py__note");

    let program = Program::answering(both());
    let plan = ["--permission-mode", "plan", "--allowedTools", "mcp__py"];
    let planning = results(&run(&program, "go", &flags(&plan)));
    assert_eq!(planning[0], "3", "it only reads, as the server says");
    assert!(planning[1].contains("plan"), "{}", planning[1]);
    assert!(!program.scratch.project().join("note.txt").exists());

    let program = Program::answering(both());
    let hidden = results(&run(&program, "go", &flags(&["--disallowedTools", "mcp__py"])));
    assert!(of_server(&program.server().last()).is_empty());
    assert!(hidden[0].contains("mcp__py__add"), "{}", hidden[0]);
    assert!(!program.scratch.project().join("note.txt").exists());
}

#[test]
fn tools_are_found_by_a_search_and_the_others_stay_where_they_are() {
    let program = Program::answering([
        call("toolu_1", "mcp__py__add", json!({"a": 1, "b": 2})),
        call("toolu_2", "ToolSearch", json!({"query": "select:mcp__py__note,mcp__py__add"})),
        call("toolu_3", "mcp__py__add", json!({"a": 1, "b": 2})),
        call("toolu_4", "ToolSearch", json!({"query": "says very much"})),
        Reply::text("done"),
    ]);
    let base = ["-p", "go", "--output-format", "stream-json", "--verbose"];
    let ended =
        program.command(base).args(python()).env("ENABLE_TOOL_SEARCH", "true").output().unwrap();
    let results = results(&crate::program::ended(ended));
    assert!(
        results[0].contains("ToolSearch") && results[0].contains("select:mcp__py__add"),
        "{}",
        results[0]
    );
    assert!(results[1].contains("mcp__py__note"), "{}", results[1]);
    assert_eq!(results[2], "3");

    let requests = program.server().requests();
    let offers: Vec<Vec<String>> = requests.iter().map(offered).collect();
    assert_eq!(offers[0].iter().filter(|name| *name == "ToolSearch").count(), 1);
    assert!(of_server(&requests[0]).is_empty(), "{:?}", offers[0]);
    let first = requests[0].json()["messages"].to_string();
    assert!(first.contains("mcp__py__note\\n") && first.contains("ToolSearch can load"), "{first}");
    assert_eq!(
        of_server(&requests[2]),
        ["mcp__py__note", "mcp__py__add"],
        "as they were asked for"
    );
    assert_eq!(of_server(&requests[4])[..2], ["mcp__py__note", "mcp__py__add"]);
    assert!(of_server(&requests[4]).contains(&"mcp__py__big".to_owned()));
    // Caches hold as long as what a request begins with stays the same, byte for byte.
    let tools = |n: usize| {
        let body: HashMap<String, Box<RawValue>> =
            serde_json::from_slice(&requests[n].body).unwrap();
        body["tools"].get().strip_suffix(']').unwrap().to_owned()
    };
    assert_eq!(tools(0), tools(1));
    assert!(tools(2).starts_with(&tools(1)));
    assert_eq!(tools(2), tools(3));
    assert!(tools(4).starts_with(&tools(3)));
    // A tool that was announced is announced once.
    assert_eq!(told(&program).matches("ToolSearch can load").count(), 1);
}

/// The events of a run in which a tool of a server works until its sign of life was seen.
fn signs_of_life(replies: impl IntoIterator<Item = Reply>) -> Vec<Value> {
    let program = Program::answering(replies);
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/mcp/server.py");
    let config = json!({"slow": {"command": "python3", "args": [server, "signs"]}}).to_string();
    let flags = ["-p", "go", "--allowedTools", "mcp__slow", "--output-format", "stream-json"];
    let mut command = program.command(flags);
    command.args(["--verbose", "--mcp-config", &config]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mark = program.scratch.project().join("heard");
    let mut events = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap) {
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["type"] == "tool_progress" {
            // The tool ends when its sign was seen.
            std::fs::write(&mark, "").unwrap();
        }
        events.push(event);
    }
    assert!(child.wait().unwrap().success());
    events
}

fn only<'a>(events: &'a [Value], key: &str, value: &str) -> &'a Value {
    let found: Vec<&Value> = events.iter().filter(|event| event[key] == value).collect();
    assert_eq!(found.len(), 1, "{key} {value}: {found:?}");
    found[0]
}

#[test]
fn a_host_sees_that_a_call_of_a_server_is_alive() {
    let events = signs_of_life([
        call("toolu_1", "mcp__slow__progress", json!({"mark": "heard"})),
        Reply::text("done"),
    ]);
    let beat = only(&events, "type", "tool_progress");
    assert_eq!(beat["tool_use_id"], "toolu_1");
    assert_eq!(beat["tool_name"], "mcp__slow__progress");
    assert_eq!(beat["parent_tool_use_id"], Value::Null);
    assert_eq!(beat.get("agent_id"), None);
    assert!(beat["elapsed_time_seconds"].is_u64(), "{beat}");
}

#[test]
fn a_host_sees_whose_call_of_a_server_is_alive() {
    let wish = json!({"description": "ask", "prompt": "ask", "run_in_background": false});
    let events = signs_of_life([
        call("toolu_1", "Agent", wish),
        call("toolu_2", "mcp__slow__progress", json!({"mark": "heard"})),
        Reply::text("it answered"),
        Reply::text("done"),
    ]);
    let beat = only(&events, "type", "tool_progress");
    assert_eq!(beat["tool_use_id"], "toolu_2");
    assert_eq!(beat["parent_tool_use_id"], "toolu_1");
    assert_eq!(beat["agent_id"], only(&events, "subtype", "task_started")["task_id"]);
}
