//! Sessions across processes: continue, resume, fork, list, show.

use std::os::unix::fs::PermissionsExt;

use centurion_testkit::{Reply, sse};
use serde_json::{Value, json};

use crate::program::{Program, call, ended};

const ID: &str = "7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11";
const OTHER: &str = "11111111-2222-4333-8444-555555555555";

fn texts(program: &Program, request: usize) -> String {
    program.server().requests()[request].json()["messages"].to_string()
}

#[test]
fn continue_takes_the_newest_session_and_resume_a_named_one() {
    let program = Program::answering(["one", "two", "three"].map(Reply::text));
    assert_eq!(program.run(&["-p", "first", "--session-id", ID]).code, Some(0));
    assert_eq!(program.run(&["-p", "second", "--continue"]).code, Some(0));
    assert_eq!(program.run(&["-p", "third", "--resume", ID]).code, Some(0));
    for word in ["first", "one", "second", "two", "third"] {
        assert!(texts(&program, 2).contains(word), "{word}");
    }
    let transcripts = program.transcripts();
    assert_eq!(transcripts.len(), 1);
    assert!(transcripts[0].ends_with(format!("{ID}.jsonl")));
    assert_eq!(transcripts[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_fork_continues_in_a_copy() {
    let program = Program::answering(["one", "two"].map(Reply::text));
    program.run(&["-p", "first", "--session-id", ID]);
    let before = std::fs::read(&program.transcripts()[0]).unwrap();
    let ended = program.run(&[
        "-p",
        "second",
        "--resume",
        ID,
        "--fork-session",
        "--session-id",
        OTHER,
        "--output-format",
        "json",
    ]);
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["session_id"], OTHER);
    let mut transcripts = program.transcripts();
    transcripts.sort();
    assert_eq!(transcripts.len(), 2);
    assert_eq!(std::fs::read(&transcripts[1]).unwrap(), before);
}

#[test]
fn without_persistence_nothing_is_written() {
    let program = Program::answering([Reply::text("one")]);
    assert_eq!(program.run(&["-p", "first", "--no-session-persistence"]).code, Some(0));
    assert!(program.transcripts().is_empty());
}

#[test]
fn an_id_that_exists_is_not_overwritten() {
    let program = Program::answering(["one", "two"].map(Reply::text));
    program.run(&["-p", "first", "--session-id", ID]);
    let again = program.run(&["-p", "second", "--session-id", ID]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("--resume"), "{}", again.stderr);
}

#[test]
fn sessions_are_listed_and_shown() {
    let program = Program::answering([
        call("toolu_1", "Read", json!({"file_path": "a.txt"})),
        Reply::text("it says alpha"),
    ]);
    program.scratch.write("a.txt", "alpha\n");
    program.run(&["-p", "please read a.txt", "--session-id", ID]);
    let list = program.run(&["sessions"]);
    assert!(
        list.stdout.contains(ID) && list.stdout.contains("please read a.txt"),
        "{}",
        list.stdout
    );
    let json: Value = serde_json::from_str(&program.run(&["sessions", "--json"]).stdout).unwrap();
    assert_eq!(json[0]["id"], ID);
    let show = program.run(&["sessions", "show", ID]);
    for line in
        ["> please read a.txt", "● Read {\"file_path\":\"a.txt\"}", "  1 alpha", "it says alpha"]
    {
        assert!(show.stdout.contains(line), "{line}: {}", show.stdout);
    }
    assert_eq!(program.run(&["sessions", "show", OTHER]).code, Some(1));
}

#[test]
fn a_session_is_listed_under_the_name_that_a_hook_gave_it() {
    let program = Program::answering(["one", "two", "three"].map(Reply::text));
    let named = |event: &str, title: &str| {
        let output = json!({"hookSpecificOutput": {"hookEventName": event, "sessionTitle": title}});
        let hook = json!({"type": "command", "command": format!("echo '{output}'")});
        json!({"hooks": {event: [{"hooks": [hook]}]}}).to_string()
    };
    let title = || -> Value {
        let list = program.run(&["sessions", "--json"]).stdout;
        serde_json::from_str::<Value>(&list).unwrap()[0]["title"].clone()
    };
    let start = named("SessionStart", "Fix the parser");
    program.run(&["-p", "first", "--session-id", ID, "--settings", &start]);
    assert_eq!(title(), "Fix the parser");
    program.run(&["-p", "second", "--resume", ID]);
    assert_eq!(title(), "Fix the parser");
    let prompt = named("UserPromptSubmit", "Fix the lexer");
    program.run(&["-p", "third", "--resume", ID, "--settings", &prompt]);
    assert_eq!(title(), "Fix the lexer");
}

#[test]
fn a_file_that_was_read_before_can_be_edited_after_a_resume() {
    let edit = json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
    let program = Program::answering([
        call("toolu_1", "Read", json!({"file_path": "a.txt"})),
        Reply::text("read"),
        call("toolu_2", "Edit", edit.clone()),
        Reply::text("edited"),
    ]);
    program.scratch.write("a.txt", "one\n");
    program.run(&["-p", "read", "--session-id", ID]);
    program.run(&["-p", "edit", "--resume", ID, "--permission-mode", "acceptEdits"]);
    assert_eq!(program.scratch.read("a.txt"), "two\n");
    // The file has changed since: by content, not by time.
    let program = Program {
        server: Program::answering([call("toolu_3", "Edit", edit), Reply::text("no")]).server,
        ..program
    };
    program.scratch.write("a.txt", "one again\n");
    program.run(&["-p", "edit", "--resume", ID, "--permission-mode", "acceptEdits"]);
    assert_eq!(program.scratch.read("a.txt"), "one again\n");
}

#[test]
fn keys_that_a_tool_prints_do_not_reach_the_disk() {
    let key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";
    let program = Program::answering([
        call("toolu_1", "Read", json!({"file_path": "secret.txt"})),
        Reply::blocks([sse::text("seen")]),
    ]);
    program.scratch.write("secret.txt", key);
    program.run(&["-p", "read it"]);
    let transcript = std::fs::read_to_string(&program.transcripts()[0]).unwrap();
    assert!(
        !transcript.contains("abcdefghijklmnop")
            && transcript.contains("[redacted: anthropic_key]")
    );
    assert!(texts(&program, 1).contains(key), "the model sees what is there");
}

#[test]
fn sessions_of_directories_with_one_name_are_kept_apart() {
    // D-51, D-72: the layout has one directory for all of them.
    let program = Program::answering((1..=9).map(|n| Reply::text(&format!("answer {n}"))));
    let at = |directory: &str, arguments: &[&str]| {
        let place = program.scratch.project().join(directory);
        std::fs::create_dir_all(&place).unwrap();
        ended(program.command(arguments).current_dir(place).output().unwrap())
    };
    assert_eq!(
        at("bank-app", &["-p", "SECRET-OF-BANK", "--session-id", ID, "-n", "one"]).code,
        Some(0)
    );
    let theirs = std::fs::read(&program.transcripts()[0]).unwrap();
    for other in ["bank/app", "bank app", "bank.app", "bank_app"] {
        let listed = at(other, &["sessions"]);
        assert!(!listed.stdout.contains(ID), "{other}: {}", listed.stdout);
        let named = at(other, &["-p", "x", "--resume", "one"]);
        assert!(named.stderr.contains("no session named `one`"), "{other}: {}", named.stderr);
        let which = at(other, &["-p", "x", "--resume"]);
        assert!(!which.stderr.contains(ID), "{other}: {}", which.stderr);
    }
    assert_eq!(at("bank/app", &["-p", "hello", "--continue"]).code, Some(0));
    let sent = program.server().last().json().to_string();
    assert!(!sent.contains("SECRET-OF-BANK"), "{sent}");
    let mut transcripts = program.transcripts();
    transcripts.sort();
    assert_eq!(transcripts[0].parent(), transcripts[1].parent(), "they have one directory");
    assert!(transcripts.iter().any(|it| std::fs::read(it).unwrap() == theirs));

    // The one that began here is continued, although another was written later.
    at("bank-app", &["-p", "again", "--continue"]);
    let sent = program.server().last().json().to_string();
    assert!(sent.contains("SECRET-OF-BANK") && !sent.contains("hello"), "{sent}");
    assert!(at("bank-app", &["sessions"]).stdout.contains(ID));
    // By its id a session is resumed from anywhere.
    at("bank/app", &["-p", "by id", "--resume", ID]);
    assert!(program.server().last().json().to_string().contains("SECRET-OF-BANK"));
    // A fork of it here belongs here from then on.
    at(
        "elsewhere",
        &[
            "-p",
            "forked",
            "--resume",
            ID,
            "--fork-session",
            "--session-id",
            "22222222-3333-4444-8555-666666666666",
        ],
    );
    at("elsewhere", &["-p", "more", "--continue"]);
    assert!(program.server().last().json().to_string().contains("forked"));
}
