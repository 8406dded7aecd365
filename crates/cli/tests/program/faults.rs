//! Faults on a real connection: the same story ends with the same answer and the same files.

use centurion_testkit::{Fault, Reply, closed_port, sse};
use serde_json::{Value, json};

use crate::program::{Program, call};

/// The second answer of the story: some words and a change.
fn change() -> Reply {
    let input = json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
    Reply::blocks([sse::text("now the change"), sse::tool_use("toolu_2", "Edit", input)])
}

/// The story: reads, changes, says so; `faulty` comes in the place of the change once.
fn replies(faulty: Reply) -> Vec<Reply> {
    let read = call("toolu_1", "Read", json!({"file_path": "a.txt"}));
    vec![read, faulty, change(), Reply::text("done")]
}

fn broken(fault: Fault) -> Reply {
    change().fault(fault)
}

#[test]
fn the_same_story_under_every_fault_ends_the_same() {
    let faults: Vec<(&str, Reply)> = vec![
        ("429 with Retry-After", Reply::rate_limit("0")),
        ("529", Reply::overloaded()),
        ("500", Reply::error(500, "api_error", "internal")),
        ("503", Reply::error(503, "api_error", "unavailable")),
        ("reset before the first byte", broken(Fault::Reset { after: 0 })),
        ("reset in mid-stream", broken(Fault::Reset { after: 4 })),
        ("malformed event", broken(Fault::Malformed { after: 3 })),
        ("bytes that are no text", broken(Fault::Garbage { after: 3 })),
        ("in-stream error", broken(Fault::StreamError { after: 4 })),
        ("cut off", broken(Fault::End { after: 5 })),
        ("silence in mid-stream", broken(Fault::Silence { after: 4 })),
        ("black hole", broken(Fault::BlackHole)),
    ];
    for (name, reply) in faults {
        let program = Program::answering(replies(reply));
        program.scratch.write("a.txt", "one\n");
        let mut command = program.command([
            "-p",
            "change it",
            "--output-format",
            "stream-json",
            "--verbose",
            "--permission-mode",
            "acceptEdits",
        ]);
        let ended = crate::program::ended(command.env("API_TIMEOUT_MS", "1500").output().unwrap());
        assert_eq!(
            (ended.code, ended.result()["result"].clone()),
            (Some(0), json!("done")),
            "{name}"
        );
        assert_eq!(program.scratch.read("a.txt"), "two\n", "{name}");
        let events = ended.events();
        let count =
            |look: &dyn Fn(&Value) -> bool| events.iter().filter(|event| look(event)).count();
        assert_eq!(
            count(&|event| event["message"]["content"][0]["text"] == "now the change"),
            1,
            "{name}"
        );
        assert_eq!(count(&|event| event["type"] == "user"), 2, "each call ran once: {name}");
        assert!(count(&|event| event["subtype"] == "api_retry") >= 1, "{name}");
    }
}

#[test]
fn a_refused_connection_is_retried_and_then_reported() {
    let program = Program::alone();
    let mut command = program.command(["-p", "hi", "--output-format", "json"]);
    command
        .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", closed_port()))
        .env("ANTHROPIC_API_KEY", "k")
        .env("CLAUDE_CODE_MAX_RETRIES", "1");
    let ended = crate::program::ended(command.output().unwrap());
    assert_eq!(ended.code, Some(1));
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&result["outcome"], &result["is_error"]), (&json!("api_error"), &json!(true)));
}
