//! Sessions with a person before them, in a real terminal.

use centurion_testkit::Reply;
use serde_json::json;

use crate::program::{Program, eventually};
use crate::terminal::Person;

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
