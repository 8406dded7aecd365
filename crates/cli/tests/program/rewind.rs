//! Going back to an earlier prompt, from the command line and by a host.

use centurion_testkit::Reply;
use serde_json::{Value, json};

use crate::program::{Ended, Program, call, ended};

/// A session of two prompts, each of which changes the same file.
fn two_prompts(variable: Option<&str>) -> (Program, String) {
    let write =
        |id: &str, text: &str| call(id, "Write", json!({"file_path": "a.txt", "content": text}));
    let program = Program::answering([
        call("t0", "Read", json!({"file_path": "a.txt"})),
        write("t1", "first\n"),
        Reply::text("first is done"),
        write("t2", "second\n"),
        Reply::text("second is done"),
        Reply::text("third is done"),
    ]);
    program.scratch.write("a.txt", "original\n");
    for (prompt, more) in [("FIRST-PROMPT", None), ("SECOND-PROMPT", Some("--continue"))] {
        let arguments = ["-p", prompt, "--permission-mode", "acceptEdits"].into_iter().chain(more);
        let mut command = program.command(arguments);
        if let Some(name) = variable {
            command.env(name, "1");
        }
        let ended = ended(command.output().unwrap());
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    let sessions: Value =
        serde_json::from_str(&program.run(&["sessions", "--json"]).stdout).unwrap();
    let id = sessions[0]["id"].as_str().unwrap().to_owned();
    (program, id)
}

fn content(program: &Program) -> String {
    std::fs::read_to_string(program.scratch.project().join("a.txt")).unwrap()
}

fn prompts(program: &Program, session: &str) -> Vec<Value> {
    let listed = program.run(&["sessions", "rewind", session, "--json"]);
    serde_json::from_str::<Vec<Value>>(&listed.stdout)
        .unwrap_or_else(|_| panic!("{}", listed.stderr))
}

fn rewind(program: &Program, session: &str, to: &Value, more: &[&str]) -> Ended {
    let to = to["id"].as_str().unwrap();
    program.run(&[&["sessions", "rewind", session, "--to", to][..], more].concat())
}

#[test]
fn a_session_goes_back_to_a_prompt_with_its_files_and_its_conversation() {
    // D-56
    let (program, id) = two_prompts(Some("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"));
    let listed = prompts(&program, &id);
    assert_eq!((listed.len(), &listed[1]["text"]), (2, &json!("SECOND-PROMPT")), "{listed:?}");
    assert_eq!((&listed[0]["filesChanged"], &listed[1]["filesChanged"]), (&json!(1), &json!(1)));
    let shown = program.run(&["sessions", "rewind", &id]).stdout;
    assert!(shown.contains("SECOND-PROMPT  (1 file changed since)"), "{shown}");

    let trial = rewind(&program, &id, &listed[1], &["--dry-run"]);
    assert!(
        trial.stdout.contains("would be brought back") && trial.stdout.contains("(+1 -1)"),
        "{}",
        trial.stdout
    );
    assert_eq!(content(&program), "second\n");

    let record = std::fs::read(&program.transcripts()[0]).unwrap();
    let done = rewind(&program, &id, &listed[1], &[]);
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    assert_eq!(content(&program), "first\n");
    let now = std::fs::read(&program.transcripts()[0]).unwrap();
    assert!(now.starts_with(&record), "nothing is deleted");

    let third = program.run(&["-p", "THIRD-PROMPT", "--continue"]);
    assert_eq!(third.code, Some(0), "{}", third.stderr);
    let sent = program.server().last().json()["messages"].to_string();
    assert!(sent.contains("FIRST-PROMPT") && sent.contains("THIRD-PROMPT"), "{sent}");
    assert!(!sent.contains("SECOND-PROMPT") && !sent.contains("second is done"), "{sent}");

    let all = rewind(&program, &id, &listed[0], &["--files"]);
    assert_eq!(all.code, Some(0), "{}{}", all.stdout, all.stderr);
    assert_eq!(content(&program), "original\n");
    let unknown = program.run(&["sessions", "rewind", &id, "--to", &id]);
    assert_eq!(unknown.code, Some(1), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("there is no prompt"), "{}", unknown.stderr);
}

#[test]
fn without_checkpoints_only_the_conversation_goes_back() {
    let (program, id) = two_prompts(None);
    let listed = prompts(&program, &id);
    assert_eq!(listed[0]["filesChanged"], 0);
    let done = rewind(&program, &id, &listed[1], &["--conversation"]);
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    assert_eq!(content(&program), "second\n");
    assert_eq!(program.run(&["-p", "THIRD-PROMPT", "--continue"]).code, Some(0));
    let sent = program.server().last().json()["messages"].to_string();
    assert!(!sent.contains("SECOND-PROMPT"), "{sent}");
}
