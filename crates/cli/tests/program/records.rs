//! Properties of our files that readers rely on: the form of times and of lines, in everything that a run writes.

use std::path::{Path, PathBuf};

use centurion_testkit::{Reply, sse};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::program::{Program, call};

const ID: &str = "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11";

/// Every file below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() && !path.is_symlink() => files(&path),
            path => vec![path],
        })
        .collect()
}

/// The times in a text, each from its year to the letter that ends it.
fn times(text: &str) -> Vec<&str> {
    let is_like = |form: &str, found: &str| {
        form.len() == found.len()
            && form.bytes().zip(found.bytes()).all(|(form, found)| match form {
                b'0' => found.is_ascii_digit(),
                other => found == other,
            })
    };
    let begins = text.char_indices().map(|(at, _)| at).filter(|at| {
        text.get(*at..at + 19).is_some_and(|found| is_like("0000-00-00T00:00:00", found))
    });
    begins
        .map(|at| {
            let rest = &text[at..];
            let end = rest.char_indices().skip(19).find(|(_, c)| !c.is_ascii_digit() && *c != '.');
            &rest[..end.map_or(rest.len(), |(end, c)| end + c.len_utf8())]
        })
        .collect()
}

fn assert_form(name: &str, text: &str) -> usize {
    assert!(!text.contains(['\u{2028}', '\u{2029}']), "{name} has a line separator");
    let times = times(text);
    for time in &times {
        let (digits, end) = time.split_at(time.len() - 1);
        assert!(end == "Z" && digits.len() == "2026-11-16T10:34:33.083".len(), "{name}: {time}");
    }
    times.len()
}

#[test]
fn every_time_has_three_digits_and_no_line_has_a_separator_wherever_a_run_writes() {
    // D-61
    let agent = json!({
        "description": "a job", "prompt": "look \u{2028} there", "subagent_type": "general-purpose",
    });
    let program = Program::with_handler(move |request| {
        let messages = request.json()["messages"].to_string();
        if messages.contains("look \u{2028} there") && !messages.contains("toolu_1") {
            return Reply::text("found \u{2029} it");
        }
        if messages.contains("toolu_2") {
            return Reply::text("all \u{2028} done");
        }
        if messages.contains("toolu_1") {
            return call("toolu_2", "Bash", json!({"command": "printf 'a\u{2028}b'"}));
        }
        Reply::blocks([
            sse::thinking("hm \u{2028}", "sig"),
            sse::tool_use("toolu_1", "Agent", agent.clone()),
        ])
    });
    let mut seen = 0;
    for round in ["first \u{2028}", "second \u{2029}"] {
        let mut flags = vec!["-p", round, "--output-format", "stream-json", "--verbose", "--debug"];
        flags.extend(["--include-partial-messages", "--allowedTools", "Bash"]);
        flags.extend(if round.starts_with("first") {
            ["--session-id", ID]
        } else {
            ["--resume", ID]
        });
        let ended = program.run(&flags);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        seen += assert_form("stdout", &ended.stdout);
        assert!(times(&ended.stderr).len() > 3, "the log has times");
        for time in times(&ended.stderr) {
            assert_eq!(time.len(), "2026-11-16T10:34:33.083Z".len(), "the log: {time}");
        }
        assert!(ended.events().iter().any(|event| event["type"] == "result"));
    }
    let written: Vec<PathBuf> = files(&program.scratch.home().join(".centurion"))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|kind| kind == "jsonl" || kind == "json"))
        .collect();
    assert!(written.len() >= 2, "a transcript for each agent: {written:?}");
    for path in &written {
        seen += assert_form(&path.display().to_string(), &std::fs::read_to_string(path).unwrap());
    }
    assert!(seen > 20, "{seen} times were seen");
}

#[derive(Deserialize)]
struct Body {
    messages: Vec<Box<RawValue>>,
}

#[test]
fn a_resumed_session_sends_the_bytes_that_it_sent_before_separators_and_all() {
    // D-61
    let raw = "{\"command\":\"printf \u{2028}\",\"description\":\"\\u2029 and \u{2029}\"}";
    let delta = json!({"type": "input_json_delta", "partial_json": raw});
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}});
    let mut events =
        sse::answer(&[sse::thinking("hm \u{2028}", "sig"), sse::text("a\u{2029}b")], "tool_use");
    let end = events.split_off(events.len() - 2);
    events.extend([
        sse::event(&json!({"type": "content_block_start", "index": 2, "content_block": call})),
        sse::event(&json!({"type": "content_block_delta", "index": 2, "delta": delta})),
        sse::event(&json!({"type": "content_block_stop", "index": 2})),
    ]);
    events.extend(end);
    let program =
        Program::answering([Reply::events(events), Reply::text("one"), Reply::text("two")]);
    let flags = ["-p", "first", "--allowedTools", "Bash", "--session-id", ID];
    assert_eq!(program.run(&flags).code, Some(0));
    assert_eq!(program.run(&["-p", "second", "--resume", ID]).code, Some(0));
    let requests = program.server().requests();
    let message = |request: usize| {
        let body: Body = serde_json::from_slice(&requests[request].body).unwrap();
        body.messages[1].get().to_owned()
    };
    assert_eq!(message(1), message(2), "the model's answer goes back as the same bytes");
    let input: Value = serde_json::from_str(&message(2)).unwrap();
    let called = &input["content"].as_array().unwrap().last().unwrap()["input"];
    assert_eq!(called["command"], "printf \u{2028}");
    assert_eq!(called["description"], "\u{2029} and \u{2029}");
}
