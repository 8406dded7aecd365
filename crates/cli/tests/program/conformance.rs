//! The protocol's public conformance suite, with this program as the client and as the server.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use centurion_testkit::{Recorded, Reply, Scratch, Server, sse};
use serde_json::{Map, Value, json};

use crate::components::{conformance, node, older_conformance, python, script};

/// A model that calls whatever the server has, once: first what the scenario asks for, then every tool.
fn curious(request: &Recorded) -> Reply {
    let request = request.json();
    let messages = request["messages"].as_array().unwrap();
    if messages.len() > 1 {
        return Reply::text("done");
    }
    let told = messages[0]["content"].as_array().unwrap();
    let context = told.iter().filter_map(|block| block["text"].as_str());
    let context: Value =
        context.filter_map(|text| serde_json::from_str(text).ok()).next_back().unwrap();
    let asked = context["toolCalls"].as_array().into_iter().flatten().map(|call| {
        let name = format!("mcp__tried__{}", call["name"].as_str().unwrap());
        (name, call["arguments"].clone())
    });
    let tools = request["tools"].as_array().unwrap().iter();
    let of_server = tools.filter_map(|tool| {
        let name = tool["name"].as_str().filter(|name| name.starts_with("mcp__"))?;
        Some((name.to_owned(), arguments(&tool["input_schema"])))
    });
    let calls = asked.chain(of_server).enumerate();
    let calls: Vec<Value> = calls
        .map(|(n, (name, input))| sse::tool_use(&format!("toolu_{n}"), &name, input))
        .collect();
    if calls.is_empty() { Reply::text("there is nothing to call") } else { Reply::blocks(calls) }
}

/// Something of the right type for every field that is required.
fn arguments(schema: &Value) -> Value {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let value = |name: &str| {
        let field = &schema["properties"][name];
        match (field["enum"].get(0), field["type"].as_str()) {
            (Some(first), _) => first.clone(),
            (_, Some("number" | "integer")) => json!(5),
            (_, Some("boolean")) => json!(true),
            (_, Some("array")) => json!([]),
            (_, Some("object")) => json!({}),
            _ => json!("text"),
        }
    };
    let fields: Map<String, Value> = required.map(|name| (name.to_owned(), value(name))).collect();
    Value::Object(fields)
}

/// Runs a suite on the program as a client. Scenarios run side by side, so that one alone says little about how long it
/// takes.
fn suite_of_clients(suite: &Path, words: &[&str]) -> Output {
    let scratch = Scratch::new();
    let model = Server::start_with(curious);
    let client = format!("{} {}", python().display(), script("conformance_client.py").display());
    Command::new(node())
        .arg(suite)
        .args(["client", "--command", &client, "--timeout", "120000"])
        .args(words)
        .arg("--output-dir")
        .arg(scratch.root().join("results"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("CENTURION", env!("CARGO_BIN_EXE_centurion"))
        .env("SCRATCH", scratch.project())
        .env("ANTHROPIC_BASE_URL", model.url())
        .env("ANTHROPIC_API_KEY", "test-key")
        .output()
        .unwrap()
}

/// The summary of a suite that has passed.
fn passed(output: &Output, summary: &str) -> String {
    let told = String::from_utf8_lossy(&output.stdout);
    let summary = told.split(summary).nth(1);
    assert!(output.status.success() && summary.is_some(), "{told}");
    summary.unwrap().to_owned()
}

/// Runs what a revision of the protocol requires of clients. The suite runs some more and says which of
/// them count.
fn conforms(revision: &str) {
    let output = suite_of_clients(&conformance(), &["--requirements", revision]);
    passed(&output, "=== SUITE SUMMARY ===");
}

#[test]
fn the_client_conforms_to_the_revision_with_sessions() {
    conforms("2025-11-25");
}

#[test]
fn the_client_conforms_to_the_revision_without_sessions() {
    conforms("2026-07-28");
}

/// The scenarios of the older suite that fail, with the reasons.
fn known_failures() -> PathBuf {
    script("conformance_failures.yaml")
}

#[test]
fn the_client_passes_the_older_suite_but_for_logins_without_a_person() {
    let failures = known_failures();
    let words = ["--suite", "all", "--expected-failures", failures.to_str().unwrap()];
    let summary = passed(&suite_of_clients(&older_conformance(), &words), "=== SUITE SUMMARY ===");
    let count = |mark: &str| summary.lines().filter(|line| line.starts_with(mark)).count();
    assert_eq!((count("✓"), count("✗")), (23, 3), "{summary}");
}

/// `centurion mcp serve` behind HTTP, until this is dropped.
struct Bridge {
    child: Child,
    url: String,
    scratch: Scratch,
}

impl Bridge {
    fn start() -> Self {
        let scratch = Scratch::new();
        let mut child = Command::new(node())
            .arg(script("conformance_bridge.mjs"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", scratch.home())
            .env("CENTURION", env!("CARGO_BIN_EXE_centurion"))
            .env("ANTHROPIC_API_KEY", "test-key")
            .current_dir(scratch.project())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { child, url: url.trim().to_owned(), scratch }
    }

    fn run(&self, suite: &Path, words: &[&str]) -> String {
        let output = Command::new(node())
            .arg(suite)
            .args(["server", "--url", &self.url])
            .args(words)
            .current_dir(self.scratch.root())
            .output()
            .unwrap();
        passed(&output, "Test Results:")
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Most scenarios call tools that only a server made for the suite has. These are for all servers.
#[test]
fn the_server_conforms_where_the_suites_ask_for_no_tools_of_their_own() {
    let bridge = Bridge::start();
    for scenario in ["server-initialize", "ping", "tools-list"] {
        bridge.run(&older_conformance(), &["--scenario", scenario]);
    }
    for scenario in ["server-initialize", "server-session-lifecycle", "ping", "tools-list"] {
        bridge.run(&conformance(), &["--scenario", scenario, "--spec-version", "2025-11-25"]);
    }
    for scenario in ["tools-list", "caching"] {
        bridge.run(&conformance(), &["--scenario", scenario, "--spec-version", "2026-07-28"]);
    }
}
