//! Going back to an earlier prompt, from the command line and by a host.

use std::path::{Path, PathBuf};

use centurion_testkit::Reply;
use serde_json::{Value, json};

use crate::host::Host;
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

    let shown = program.run(&["sessions", "rewind", &id]).stdout;
    assert!(shown.contains("SECOND-PROMPT  (1 file changed since, taken back)"), "{shown}");

    let all = rewind(&program, &id, &listed[0], &["--files"]);
    assert_eq!(all.code, Some(0), "{}{}", all.stdout, all.stderr);
    assert_eq!(content(&program), "original\n");
    let unknown = program.run(&["sessions", "rewind", &id, "--to", &id]);
    assert_eq!(unknown.code, Some(1), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("there is no prompt"), "{}", unknown.stderr);
}

/// The copies of files below a directory.
fn copies(directory: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|it| it.path());
    let below = |path: PathBuf| if path.is_dir() { copies(&path) } else { vec![path] };
    paths.flat_map(below).filter(|path| path.to_string_lossy().contains("@v")).collect()
}

#[test]
fn where_a_file_cannot_be_brought_back_the_conversation_stays_unless_it_alone_is_meant() {
    // D-56: files and conversation are of one moment
    let (program, id) = two_prompts(Some("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"));
    let copies = copies(&program.scratch.home());
    assert_eq!(copies.len(), 2, "{copies:?}");
    for copy in &copies {
        std::fs::write(copy, "damaged").unwrap();
    }
    let listed = prompts(&program, &id);
    for more in [&["--dry-run"][..], &[]] {
        let refused = rewind(&program, &id, &listed[1], more);
        assert_eq!(refused.code == Some(0), !more.is_empty(), "{}", refused.stdout);
        assert!(refused.stdout.contains("not brought back: "), "{}", refused.stdout);
        assert!(refused.stdout.contains("the conversation stays as it is"), "{}", refused.stdout);
    }
    assert_eq!(content(&program), "second\n");
    let current = |listed: &[Value]| listed.iter().filter(|it| it["isCurrent"] == true).count();
    assert_eq!(current(&prompts(&program, &id)), 2);
    let alone = rewind(&program, &id, &listed[1], &["--conversation"]);
    assert_eq!(alone.code, Some(0), "{}{}", alone.stdout, alone.stderr);
    assert_eq!(current(&prompts(&program, &id)), 1);
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

#[test]
fn a_conversation_goes_back_over_a_compaction_to_what_was_said_before() {
    // D-56
    let program = Program::answering([
        Reply::text(&format!("FIRST-ANSWER {}", "word ".repeat(5_000))),
        Reply::text(&format!("SECOND-ANSWER {}", "word ".repeat(5_000))),
        Reply::text("<summary>SUMMARY-1</summary>"),
        Reply::text("third is done"),
    ]);
    for prompt in ["FIRST-PROMPT", "SECOND-PROMPT", "/compact"] {
        let more = (prompt != "FIRST-PROMPT").then_some("--continue");
        let ended =
            ended(program.command(["-p", prompt].into_iter().chain(more)).output().unwrap());
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    }
    let transcript = program.transcripts().remove(0);
    let before = std::fs::read(&transcript).unwrap();
    assert!(memchr::memmem::find(&before, b"compact_boundary").is_some());
    let id = transcript.file_stem().unwrap().to_str().unwrap().to_owned();
    let listed = prompts(&program, &id);
    let second = listed.iter().find(|it| it["text"] == "SECOND-PROMPT");
    let back = rewind(&program, &id, second.expect("prompts before it"), &["--conversation"]);
    assert_eq!(back.code, Some(0), "{}", back.stderr);
    let next = program.run(&["-p", "THIRD-PROMPT", "--continue"]);
    assert_eq!(next.code, Some(0), "{}", next.stderr);
    let sent = program.server().last().json()["messages"].to_string();
    for (text, is_sent) in [
        ("FIRST-PROMPT", true),
        ("FIRST-ANSWER", true),
        ("THIRD-PROMPT", true),
        ("SECOND-PROMPT", false),
        ("SUMMARY-1", false),
    ] {
        assert_eq!(sent.contains(text), is_sent, "{text}: {sent}");
    }
    assert!(
        std::fs::read(&transcript).unwrap().starts_with(&before),
        "nothing of the record is gone"
    );
}

/// Says something, and gives the id of the message behind the end of the turn.
fn say(host: &mut Host, text: &str) -> Value {
    host.say(text);
    let replayed = host.until(|event| event["type"] == "user" && event["isReplay"] == true);
    host.result();
    replayed.last().unwrap()["uuid"].clone()
}

#[test]
fn a_host_brings_files_back_and_can_try_it_first() {
    // D-56, context.md 6
    let write =
        |id: &str, text: &str| call(id, "Write", json!({"file_path": "a.txt", "content": text}));
    let replies = || {
        [
            call("t0", "Read", json!({"file_path": "a.txt"})),
            write("t1", "first\n"),
            Reply::text("first is done"),
            write("t2", "second\n"),
            Reply::text("second is done"),
        ]
    };
    let flags = ["--permission-mode", "acceptEdits", "--replay-user-messages"];
    let program = Program::answering(replies());
    program.scratch.write("a.txt", "original\n");
    let mut host = Host::start_with(&program, &flags, |command| {
        command.env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "1");
    });
    let (first, second) = (say(&mut host, "one"), say(&mut host, "two"));
    let mut rewind = |to: &Value, more: &Value| {
        let mut request = json!({"subtype": "rewind_files", "user_message_id": to});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        host.ask(&request)
    };
    let path = program.scratch.project().join("a.txt");
    let trial = rewind(&second, &json!({"dry_run": true}));
    assert_eq!(trial["subtype"], "success", "{trial}");
    let said = &trial["response"];
    assert_eq!(said["canRewind"], true, "{said}");
    assert_eq!(said["filesChanged"], json!([path.canonicalize().unwrap()]), "{said}");
    assert_eq!((&said["insertions"], &said["deletions"]), (&json!(1), &json!(1)), "{said}");
    assert!(said.get("skippedLinks").is_none(), "{said}");
    assert_eq!(content(&program), "second\n", "a trial changes nothing");

    let done = rewind(&second, &json!({}));
    assert_eq!(done["response"]["canRewind"], true, "{done}");
    assert_eq!(done["response"]["skippedLinks"], json!(0), "{done}");
    assert_eq!(content(&program), "first\n");
    rewind(&first, &json!({"dry_run": false}));
    assert_eq!(content(&program), "original\n");

    for unknown in [json!("00000000-0000-4000-8000-000000000000"), json!("no id"), json!(7)] {
        let refused = rewind(&unknown, &json!({}));
        assert_eq!(refused["subtype"], "error", "{refused}");
        assert!(refused["error"].as_str().is_some_and(|it| !it.is_empty()), "{refused}");
    }
    assert_eq!(content(&program), "original\n");
    assert_eq!(host.finish(), 0);

    let program = Program::answering(replies());
    program.scratch.write("a.txt", "original\n");
    let mut host = Host::start(&program, &flags);
    let first = say(&mut host, "one");
    let refused = host.ask(&json!({"subtype": "rewind_files", "user_message_id": first}));
    assert_eq!(refused["subtype"], "error", "without checkpoints: {refused}");
    assert_eq!(content(&program), "first\n");
    assert_eq!(host.finish(), 0);
}
