//! Every event about an agent names it, whatever happens to that agent.

use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicUsize, Ordering};

use centurion_testkit::{Recorded, Reply, sse};
use serde_json::{Value, json};

use crate::declared;
use crate::program::{Program, call};

/// The kinds of events that are about one agent.
const OF_AGENTS: [&str; 7] = [
    "assistant",
    "user",
    "tool_progress",
    "api_retry",
    "permission_denied",
    "compact_boundary",
    "status",
];

fn kind(event: &Value) -> &str {
    let name = if event["type"] == "system" { &event["subtype"] } else { &event["type"] };
    name.as_str().unwrap()
}

/// The main agent starts an agent, which is refused by its provider, asks a server that takes its time, is denied a
/// command, and reads until its conversation has to be compacted.
fn model() -> impl Fn(&Recorded) -> Reply {
    let asked = AtomicUsize::new(0);
    move |request| {
        let messages = request.json()["messages"].to_string();
        if messages.contains("toolu_main") {
            return Reply::text("done");
        }
        if messages.contains("about to leave its window") {
            return Reply::text("<summary>It read a long file.</summary>");
        }
        if !messages.contains("child work") {
            let wish = json!({
                "description": "d", "prompt": "child work", "subagent_type": "general-purpose",
                "run_in_background": false,
            });
            return call("toolu_main", "Agent", wish);
        }
        let usage = sse::usage(request.body.len() as u64 / 4, 0, 0, 5);
        let block = match asked.fetch_add(1, Ordering::SeqCst) {
            0 => return Reply::overloaded(),
            1 => sse::tool_use("toolu_1", "mcp__slow__progress", json!({"mark": "heard"})),
            2 => sse::tool_use("toolu_2", "Bash", json!({"command": "rm x"})),
            n @ 3..=16 => {
                sse::tool_use(&format!("toolu_{n}"), "Read", json!({"file_path": "long.txt"}))
            }
            _ => sse::text("all read"),
        };
        let blocks = [block];
        Reply::events(sse::answer_with(&blocks, sse::natural_stop(&blocks), &usage))
    }
}

#[test]
fn whatever_happens_to_an_agent_its_events_name_it() {
    // Issue 13, point 4.
    let program = Program::with_handler(model());
    program.scratch.write("long.txt", "0123456789abcde\n".repeat(500));
    let settings = json!({"permissions": {"deny": ["Bash(rm *)"]}});
    program.scratch.write_home(".claude/settings.json", settings.to_string());
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/../mcp/tests/mcp/server.py");
    let config = json!({"slow": {"command": "python3", "args": [server, "signs"]}}).to_string();
    let flags = ["-p", "go", "--allowedTools", "mcp__slow", "--output-format", "stream-json"];
    let more = ["--verbose", "--include-partial-messages", "--mcp-config", &config];
    let mut command = program.command([&flags[..], &more].concat());
    let mut child = command.env("CENTURION_CONTEXT_WINDOW", "30000").spawn().unwrap();
    let mark = program.scratch.project().join("heard");
    let mut events: Vec<Value> = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap) {
        let event: Value = serde_json::from_str(&line).unwrap();
        declared::check(&event);
        if event["type"] == "tool_progress" {
            // The tool ends when its sign was seen.
            std::fs::write(&mark, "").unwrap();
        }
        events.push(event);
    }
    assert!(child.wait().unwrap().success(), "{events:?}");
    let at =
        |kind_wanted: &str| events.iter().position(|event| kind(event) == kind_wanted).unwrap();
    let (begin, end) = (at("task_started"), at("task_notification"));
    let id = &events[begin]["task_id"];
    let between = &events[begin + 1..end];
    for wanted in OF_AGENTS {
        let found: Vec<&Value> = between.iter().filter(|event| kind(event) == wanted).collect();
        assert!(!found.is_empty(), "there is no {wanted}");
        for event in found {
            assert_eq!(event["agent_id"], *id, "{event}");
        }
    }
    let is_piece = |event: &&Value| kind(event) == "stream_event";
    assert!(between.iter().filter(is_piece).all(|piece| piece["agent_id"] == *id));
    for event in &events[end + 1..] {
        assert_eq!(event.get("agent_id"), None, "the main agent goes on: {event}");
    }
}
