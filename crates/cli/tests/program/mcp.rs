//! `centurion mcp`: servers are added, reached, shown and removed.

use std::os::unix::fs::PermissionsExt;

use centurion_testkit::{Reply, Server, closed_port};
use serde_json::{Value, json};

use crate::program::{Ended, Program};

/// A server in a few lines of shell: it has one tool.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"1.2"}}}\n' "$id" ;;
  *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
  esac
done
"#;

const OURS: &str = ".centurion/.claude.json";

fn ours(program: &Program) -> String {
    std::fs::read_to_string(program.scratch.home().join(OURS)).unwrap()
}

fn good(ended: Ended) -> String {
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    ended.stdout
}

fn project_key(program: &Program) -> String {
    program.scratch.project().canonicalize().unwrap().display().to_string()
}

/// The standing and the state of each server by name.
fn listed(program: &Program) -> Vec<(String, String, String)> {
    let text = good(program.run(&["mcp", "list", "--json"]));
    let servers: Vec<Value> = serde_json::from_str(&text).unwrap();
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    servers
        .iter()
        .map(|it| (word(&it["name"]), word(&it["standing"]), word(&it["state"])))
        .collect()
}

fn row(name: &str, standing: &str, state: &str) -> (String, String, String) {
    (name.to_owned(), standing.to_owned(), state.to_owned())
}

#[test]
fn a_server_is_added_reached_shown_and_removed() {
    let program = Program::alone();
    program.scratch.write("server.sh", SERVER);
    let key = project_key(&program);
    let before = format!(
        "{{\n\t\"tips\" : [1,  2],\n\t\"projects\": {{ \"{key}\": {{\"mcpServers\": {{}}}} }}\n}}"
    );
    program.scratch.write_home(OURS, &before);
    let added = good(program.run(&[
        "mcp",
        "add",
        "hello",
        "--env",
        "KEY=s3cret-value",
        "sh",
        "--",
        "server.sh",
    ]));
    assert!(added.contains("added server `hello`") && added.contains("is active"), "{added}");
    assert!(ours(&program).starts_with("{\n\t\"tips\" : [1,  2],\n\t\"projects\": { \""));
    let list = good(program.run(&["mcp", "list"]));
    assert_eq!(list, "hello: sh server.sh (stdio, local): connected, 1 tool\n");
    let get = good(program.run(&["mcp", "get", "hello"]));
    for part in
        ["(local)", "transport: stdio", "env: KEY\n", "server: shell 1.2", "mcp__hello__greet"]
    {
        assert!(get.contains(part), "{part}: {get}");
    }
    assert!(!get.contains("s3cret-value"));
    let values = good(program.run(&["mcp", "get", "hello", "--show-values"]));
    assert!(values.contains("KEY=s3cret-value"), "{values}");
    let again = program.run(&["mcp", "add", "hello", "sh"]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("there is a server `hello` already"), "{}", again.stderr);
    good(program.run(&["mcp", "remove", "hello"]));
    assert_eq!(ours(&program), before, "all is as it was");
    assert_eq!(program.run(&["mcp", "get", "hello"]).code, Some(1));
    assert_eq!(program.run(&["mcp", "remove", "hello"]).code, Some(1));
}

#[test]
fn each_scope_has_its_file_and_its_mode() {
    let program = Program::alone();
    let http = ["--header", "X-Key: s3cret-value", "https://mcp.example.com/mcp"];
    good(program.run(&[&["mcp", "add", "--scope", "user", "far"], &http[..]].concat()));
    let shared =
        program.run(&[&["mcp", "add", "-s", "project", "-t", "sse", "near"], &http[..]].concat());
    assert!(shared.stderr.contains("everybody who has the project"), "{}", shared.stderr);
    good(program.run(&[
        "mcp",
        "add-json",
        "mine",
        r#"{"type": "http", "url": "https://h/", "timeout": 5000}"#,
    ]));
    let state: Value = serde_json::from_str(&ours(&program)).unwrap();
    let expected = json!({"type": "http", "url": "https://mcp.example.com/mcp", "headers": {"X-Key": "s3cret-value"}});
    assert_eq!(state["mcpServers"]["far"], expected);
    assert_eq!(state["projects"][project_key(&program)]["mcpServers"]["mine"]["timeout"], 5000);
    let project: Value = serde_json::from_str(&program.scratch.read(".mcp.json")).unwrap();
    assert_eq!(project["mcpServers"]["near"]["type"], "sse");
    let mode =
        |path: std::path::PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(program.scratch.home().join(OURS)), 0o600);
    let usual = mode(program.scratch.write("usual", ""));
    assert_eq!(mode(program.scratch.project().join(".mcp.json")), usual);
    assert!(!program.scratch.home().join(".claude.json").exists());
    for bad in [
        &["mcp", "add-json", "x", r#"{"url": "https://h/"}"#][..],
        &["mcp", "add-json", "x", "{"],
        &["mcp", "add", "../x", "sh"],
        &["mcp", "add", "x", "--env", "KEY", "sh"],
        &["mcp", "add", "x", "--env", "K=V", "https://h/"],
        &["mcp", "add", "x", "--header", "K: V", "sh"],
        &["mcp", "add", "-t", "http", "x", "no-address"],
    ] {
        let ended = program.run(bad);
        assert_eq!(ended.code, Some(1), "{bad:?}");
        assert!(ended.stderr.starts_with("error: "), "{}", ended.stderr);
    }
}

#[test]
fn a_repositorys_server_runs_when_it_is_trusted_or_enabled() {
    let program = Program::alone();
    program.scratch.write("server.sh", SERVER);
    program.scratch.write(".mcp.json", r#"{"repo": {"command": "sh", "args": ["server.sh"]}}"#);
    assert_eq!(listed(&program), [row("repo", "untrusted", "-")]);
    let doctor = program.run(&["doctor"]);
    assert!(doctor.stdout.contains("repo (project) sh server.sh: untrusted"), "{}", doctor.stdout);
    good(program.run(&["mcp", "enable", "repo"]));
    assert_eq!(listed(&program), [row("repo", "active", "connected")]);
    good(program.run(&["mcp", "disable", "repo"]));
    good(program.run(&["trust", "grant"]));
    assert_eq!(listed(&program), [row("repo", "disabled", "-")]);
    good(program.run(&["mcp", "reset-project-choices"]));
    assert_eq!(listed(&program), [row("repo", "active", "connected")]);
    let strict = good(program.run(&["mcp", "list", "--strict-mcp-config"]));
    assert!(strict.contains("disabled: --strict-mcp-config"), "{strict}");
    let missing = program.run(&["mcp", "list", "--mcp-config", "none.json"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.stderr.contains("there is no file"), "{}", missing.stderr);
}

#[test]
fn what_cannot_be_reached_says_why_and_keeps_secrets() {
    let program = Program::alone();
    let closed = Server::start_with(|_| Reply::status(401));
    // Each failure has a secret to tell: a value, an address, a header that the server repeats.
    let repeats = Server::start_with(|_| Reply::status(403).body("no key is s3cret-value"));
    let away = format!("127.0.0.1:{}/mcp", closed_port());
    let config = json!({
        "dies": {"command": "sh", "args": ["-c", "echo broken $KEY >&2; exit 3"], "env": {"KEY": "s3cret-value"}},
        "away": {"type": "http", "url": format!("http://s3cret-user:s3cret-word@{away}?key=s3cret-value")},
        "locked": {"type": "http", "url": closed.url(), "headers": {"X-Key": "s3cret-value"}},
        "repeats": {"type": "http", "url": repeats.url(), "headers": {"X-Key": "s3cret-value"}},
        "wrong": {"command": 1},
    });
    let config = config.to_string();
    let reasons = [
        ("dies", "failed", "it ended with code 3; it last said: broken …".to_owned()),
        ("away", "failed", format!("(http://{away}?…): client error (Connect)")),
        ("locked", "needs authentication", "run `centurion mcp login locked`".to_owned()),
        ("repeats", "failed", "no key is …".to_owned()),
    ];
    let run = |arguments: &[&str]| {
        let ended = program.run(&[&["mcp"], arguments, &["--mcp-config", &config]].concat());
        let left_out = "--mcp-config:1: server `wrong` is left out";
        assert!(ended.stderr.contains(left_out), "{}", ended.stderr);
        let all = ended.stdout.clone() + &ended.stderr;
        assert!(!all.contains("s3cret"), "{arguments:?}: {all}");
        ended.stdout
    };
    let list = run(&["list"]);
    let as_json: Value = serde_json::from_str(&run(&["list", "--json"])).unwrap();
    assert_eq!((list.lines().count(), as_json.as_array().unwrap().len()), (4, 4), "{list}");
    for (n, (name, state, reason)) in reasons.iter().enumerate() {
        let line = list.lines().nth(n).unwrap();
        let (_, why) = line.split_once(&format!("{state}: ")).unwrap_or_else(|| panic!("{line}"));
        assert!(why.contains(reason), "{name}: {line}");
        let why = as_json[n]["stateReason"].as_str().unwrap();
        assert!(as_json[n]["name"] == *name && why.contains(reason), "{name}: {as_json}");
    }
    let details = run(&["get", "dies"]);
    assert!(details.contains(&format!("state: failed: {}", reasons[0].2)), "{details}");
}

#[test]
fn doctor_tells_what_is_wrong_with_servers() {
    let program = Program::alone();
    program.scratch.write(".mcp.json", "{\n\"mcpServers\": {\n\"x\": {\"url\": \"https://h/\"}}}");
    let doctor = program.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1));
    assert!(doctor.stdout.contains(".mcp.json:3: server `x` is left out"), "{}", doctor.stdout);
    let get = program.run(&["mcp", "get", "x"]);
    assert!(get.stderr.contains(".mcp.json:3: server `x` is left out"), "{}", get.stderr);
}

#[test]
fn logging_out_needs_a_remote_server() {
    let program = Program::alone();
    good(program.run(&["mcp", "add", "far", "https://mcp.example.com/mcp"]));
    good(program.run(&["mcp", "add", "near", "sh"]));
    assert!(good(program.run(&["mcp", "logout", "far"])).contains("there was no login"));
    assert_eq!(program.run(&["mcp", "logout", "near"]).code, Some(1));
    assert!(program.run(&["mcp", "login", "near"]).stderr.contains("not a remote server"));
    good(program.run(&["mcp", "disable", "far"]));
    assert!(program.run(&["mcp", "login", "far"]).stderr.contains("is disabled"));
}

#[test]
fn a_link_of_an_untrusted_repository_shows_nothing_from_outside() {
    let program = Program::answering([Reply::text("done"), Reply::text("done")]);
    let secret = json!({"mcpServers": {"secret-name": {"command": "secret-command"}}});
    let outside = program.scratch.write_home("private.json", secret.to_string());
    let rules =
        json!({"permissions": {"deny": [{"secret-key": 1}]}, "env": {"A": 1}, "secret-key": 1});
    let settings = program.scratch.write_home("settings.json", rules.to_string());
    program.scratch.write(".claude/keep", "");
    let project = program.scratch.project();
    std::os::unix::fs::symlink(&outside, project.join(".mcp.json")).unwrap();
    std::os::unix::fs::symlink(&settings, project.join(".claude/settings.json")).unwrap();
    for command in [&["mcp", "list"][..], &["doctor"], &["-p", "go"]] {
        let ended = program.run(command);
        let shown = ended.stdout + &ended.stderr;
        assert!(!shown.contains("secret-"), "{command:?}: {shown}");
        assert!(shown.contains("is a link out of the project"), "{command:?}: {shown}");
    }
    // In a trusted folder, it is followed.
    program.run(&["trust", "grant"]);
    assert!(program.run(&["mcp", "list"]).stdout.contains("secret-name"));
}
