//! The client side of the protocol's public conformance suite, with this program as the client.

use std::process::Command;

use centurion_testkit::{Recorded, Reply, Scratch, Server, sse};
use serde_json::{Map, Value, json};

use crate::components::{conformance, node, python, script};

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

/// Runs what a revision of the protocol requires of clients. The suite runs some more and says which of
/// them count.
fn conforms(revision: &str) {
    let scratch = Scratch::new();
    let model = Server::start_with(curious);
    let client = format!("{} {}", python().display(), script("conformance_client.py").display());
    let output = Command::new(node())
        .arg(conformance())
        // Scenarios run side by side, so that one alone says little about how long it takes.
        .args(["client", "--requirements", revision, "--command", &client, "--timeout", "120000"])
        .arg("--output-dir")
        .arg(scratch.root().join("results"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("CENTURION", env!("CARGO_BIN_EXE_centurion"))
        .env("SCRATCH", scratch.project())
        .env("ANTHROPIC_BASE_URL", model.url())
        .env("ANTHROPIC_API_KEY", "test-key")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let summary = told.split("=== SUITE SUMMARY ===").nth(1);
    assert!(output.status.success() && summary.is_some(), "{told}");
}

#[test]
fn the_client_conforms_to_the_revision_with_sessions() {
    conforms("2025-11-25");
}

#[test]
fn the_client_conforms_to_the_revision_without_sessions() {
    conforms("2026-07-28");
}
