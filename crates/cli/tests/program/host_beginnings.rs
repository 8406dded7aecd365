//! Wishes of a host when it begins: plugins without their servers, servers, a title, and how thinking is shown.

use centurion_testkit::Reply;
use serde_json::{Value, json};

use crate::components::python_server;
use crate::host::Host;
use crate::program::Program;

/// Writes a plugin that brings a server and a command, and gives its directory.
fn plugin(program: &Program) -> String {
    let root = program.scratch.root().join("kit");
    for directory in [".claude-plugin", "commands"] {
        std::fs::create_dir_all(root.join(directory)).unwrap();
    }
    let write = |path: &str, text: &str| std::fs::write(root.join(path), text).unwrap();
    write(".claude-plugin/plugin.json", &json!({"name": "kit"}).to_string());
    write(".mcp.json", &json!({"mcpServers": {"desk": python_server()}}).to_string());
    write("commands/greet.md", "Say hello.");
    root.display().to_string()
}

/// The first event of a turn, and the number of servers.
fn init(host: &mut Host) -> (Value, usize) {
    host.say("hi");
    let seen = host.until(|event| event["type"] == "result");
    let init = seen.into_iter().find(|event| event["subtype"] == "init").unwrap();
    let servers = init["mcp_servers"].as_array().unwrap().len();
    (init, servers)
}

#[test]
fn a_plugin_can_be_brought_without_its_servers() {
    let program = Program::with_handler(|_| Reply::text("ok"));
    let path = plugin(&program);
    for (flag, most) in [("--plugin-dir", 1), ("--plugin-dir-no-mcp", 0)] {
        let mut host = Host::start(&program, &[&format!("{flag}={path}")]);
        let (init, servers) = init(&mut host);
        assert_eq!((&init["plugins"][0]["name"], servers), (&json!("kit"), most), "{flag}");
        let commands = init["slash_commands"].to_string();
        assert!(commands.contains("kit:greet"), "{commands}");
        let reloaded = host.ask(&json!({"subtype": "reload_plugins"}));
        let servers = reloaded["response"]["mcpServers"].as_array().unwrap().len();
        assert_eq!(servers, most, "{flag}");
        assert_eq!(host.finish(), 0);
    }
    for skips in [false, true] {
        let mut host = Host::start(&program, &["--await-initialize"]);
        let brought = json!([{"type": "local", "path": path, "skipMcpDiscovery": skips}]);
        let answer = host.ask(&json!({"subtype": "initialize", "plugins": brought}));
        assert_eq!(answer["response"]["plugins_applied"], true);
        assert_eq!(init(&mut host).1, usize::from(!skips));
        let other = json!([{"type": "local", "path": "/nowhere"}]);
        let answer = host.ask(&json!({"subtype": "initialize", "plugins": other}));
        assert_eq!(answer["response"]["plugins_applied"], false);
        assert_eq!(host.finish(), 0);
    }
}

#[test]
fn servers_of_a_hosts_first_request_are_there_where_the_start_waits_for_it() {
    let program = Program::with_handler(|_| Reply::text("ok"));
    let servers = json!({"desk": python_server(), "broken": {"type": "carrier-pigeon"}});
    let request = json!({"subtype": "initialize", "mcpServers": servers});
    for (flags, is_taken) in [(&["--await-initialize"][..], true), (&[], false)] {
        let mut host = Host::start(&program, flags);
        let answer = host.ask(&request);
        assert_eq!(answer["response"]["mcp_servers_applied"], is_taken);
        let status = host.ask(&json!({"subtype": "mcp_status"}));
        let names: Vec<Value> = status["response"]["mcpServers"].as_array().unwrap().clone();
        let names: Vec<&Value> = names.iter().map(|it| &it["name"]).collect();
        assert_eq!(names.contains(&&json!("desk")), is_taken, "{names:?}");
        let again = host.ask(&request);
        assert_eq!(again["response"]["mcp_servers_applied"], is_taken);
        assert_eq!(host.finish(), 0);
    }
}

#[test]
fn a_host_is_told_that_the_handshakes_of_its_servers_are_not_used() {
    let program = Program::with_handler(|_| Reply::text("ok"));
    let mut host = Host::start(&program, &[]);
    let manifests = json!({"a": {"initializeResult": {}}, "b": {"initializeResult": 7}, "d": {}});
    let answer = host.ask(&json!({
        "subtype": "initialize", "sdkMcpServers": ["a", "b", "c"], "sdkMcpServerManifests": manifests,
    }));
    let expected = json!({"a": "not_honoured", "b": "malformed"});
    assert_eq!(answer["response"]["sdk_mcp_manifests_parked"], expected);
    let plain = host.ask(&json!({"subtype": "initialize"}));
    for field in ["sdk_mcp_manifests_parked", "plugins_applied", "mcp_servers_applied"] {
        assert!(plain["response"].get(field).is_none(), "{field}");
    }
}

#[test]
fn a_host_names_a_new_session_and_no_resumed_one() {
    let program = Program::with_handler(|_| Reply::text("ok"));
    let id = "5e8f3c1e-3c37-4c51-9f43-0f4a7e3a6a12";
    for (flag, title) in [("--session-id", "The first name"), ("--resume", "Another name")] {
        let mut host = Host::start(&program, &[flag, id]);
        host.ask(&json!({"subtype": "initialize", "title": title}));
        init(&mut host);
        assert_eq!(host.finish(), 0);
    }
    let listed = program.run(&["sessions"]);
    assert!(listed.stdout.contains("The first name"), "{}", listed.stdout);
    assert!(!listed.stdout.contains("Another name"), "{}", listed.stdout);
}

#[test]
fn a_host_says_how_thinking_is_shown() {
    let program = Program::with_handler(|_| Reply::text("ok"));
    let flags =
        ["--model", "claude-opus-4-6", "--thinking", "adaptive", "--thinking-display=highlights"];
    let mut host = Host::start(&program, &flags);
    let mut shown = |wanted: Option<Value>| {
        let mut answer = json!("success");
        if let Some(wanted) = wanted {
            let request = json!({"subtype": "set_max_thinking_tokens", "thinking_display": wanted});
            answer = host.ask(&request)["subtype"].clone();
        }
        host.say("hi");
        host.result();
        let sent = program.server().last().json()["thinking"]["display"].clone();
        (answer, sent)
    };
    let (success, error) = (json!("success"), json!("error"));
    // Titles are for sessions that the provider hosts: nothing is shown instead.
    assert_eq!(shown(None), (success.clone(), json!("omitted")));
    assert_eq!(shown(Some(json!("summarized"))), (success.clone(), json!("summarized")));
    assert_eq!(shown(Some(json!("highlights"))), (error.clone(), json!("summarized")));
    assert_eq!(shown(Some(json!("loud"))), (error.clone(), json!("summarized")));
    assert_eq!(shown(Some(json!(7))), (error, json!("summarized")));
    assert_eq!(shown(Some(json!("omitted"))), (success.clone(), json!("omitted")));
    assert_eq!(shown(Some(Value::Null)), (success, Value::Null));
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_says_how_to_plan_and_it_is_told_once_each_time_that_a_plan_begins() {
    let program = Program::with_handler(|_| Reply::text("ok"));
    let mut host = Host::start(&program, &["--permission-mode", "plan"]);
    host.ask(&json!({"subtype": "initialize", "planModeInstructions": "Name the tests first."}));
    let times_told = |host: &mut Host| {
        host.say("hi");
        host.result();
        let messages = program.server().last().json()["messages"].to_string();
        messages.matches("Name the tests first.").count()
    };
    assert_eq!((times_told(&mut host), times_told(&mut host)), (1, 1));
    for (mode, count) in [("default", 1), ("plan", 2), ("plan", 2)] {
        host.ask(&json!({"subtype": "set_permission_mode", "mode": mode}));
        assert_eq!(times_told(&mut host), count, "{mode}");
    }
    assert_eq!(host.finish(), 0);
}
