//! Sessions with a person before them, in a real terminal.

use centurion_testkit::Reply;
use serde_json::json;

use crate::program::{Program, call, eventually};
use crate::pseudo_terminal::Person;

/// Waits for this many requests of the conversation itself; gives the last one.
fn asked(program: &Program, count: usize) -> String {
    eventually(&format!("request {count}"), || {
        let requests = program.server().requests();
        (requests.len() >= count).then(|| requests[count - 1].json().to_string())
    })
}

#[test]
fn forks_are_offered_to_the_model_of_a_person_who_wants_them() {
    // D-11, S-262
    let wanted = json!({"subagents": {"fork": "interactive"}}).to_string();
    for (variable, settings, coordinator, is_on) in [
        ("0", wanted.as_str(), false, true),
        ("1", "{}", false, true),
        ("0", "{}", false, false),
        ("1", wanted.as_str(), true, false),
    ] {
        let program = Program::answering([Reply::text("hello")]);
        let mut command = program.command(["hi", "--settings", settings]);
        command.env("FEATURE_FORK_SUBAGENT", variable);
        if coordinator {
            command.arg("--coordinator");
        }
        let person = Person::before(&mut command);
        let request = asked(&program, 1);
        assert_eq!(request.contains("- fork: "), is_on, "{variable} {settings}");
        person.sees("hello");
        assert_eq!(person.leaves(), Some(0));
    }
}

#[test]
fn a_person_takes_a_prompt_back_with_its_files_and_its_words() {
    // D-56, context.md 6: copies are kept without a setting
    let write =
        |id: &str, text: &str| call(id, "Write", json!({"file_path": "a.txt", "content": text}));
    let program = Program::answering([
        call("t0", "Read", json!({"file_path": "a.txt"})),
        write("t1", "first\n"),
        Reply::text("FIRST-DONE"),
        write("t2", "second\n"),
        Reply::text("SECOND-DONE"),
        Reply::text("THIRD-DONE"),
    ]);
    program.scratch.write("a.txt", "original\n");
    let content = || std::fs::read_to_string(program.scratch.project().join("a.txt")).unwrap();
    let mut command = program.command(["FIRST-PROMPT", "--permission-mode", "acceptEdits"]);
    let mut person = Person::before(&mut command);
    person.sees("FIRST-DONE");
    person.types("SECOND-PROMPT\r");
    person.sees("SECOND-DONE");
    assert_eq!(content(), "second\n");
    person.types("/rewind\r\r");
    person.sees("1 file since");
    // The newest prompt is the first of the list, and is in the draft afterwards.
    person.types("\r");
    person.sees("taken back");
    assert_eq!(content(), "first\n");
    person.types("\x15THIRD-PROMPT\r");
    person.sees("THIRD-DONE");
    let sent = asked(&program, 6);
    assert!(sent.contains("FIRST-PROMPT") && sent.contains("THIRD-PROMPT"), "{sent}");
    assert!(!sent.contains("SECOND-PROMPT") && !sent.contains("SECOND-DONE"), "{sent}");
    assert_eq!(person.leaves(), Some(0));
}

#[test]
fn no_copies_are_kept_for_a_person_who_does_not_want_them() {
    let program = Program::answering([
        call("t1", "Write", json!({"file_path": "n.txt", "content": "n"})),
        Reply::text("FIRST-DONE"),
    ]);
    let settings = json!({"fileCheckpointingEnabled": false}).to_string();
    let arguments = ["FIRST-PROMPT", "--permission-mode", "acceptEdits", "--settings", &settings];
    let mut person = Person::before(&mut program.command(arguments));
    person.sees("FIRST-DONE");
    person.types("/rewind 1\r");
    person.sees("not enabled");
    assert!(program.scratch.project().join("n.txt").exists());
    assert_eq!(person.leaves(), Some(0));
}
