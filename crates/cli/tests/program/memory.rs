//! Memory of the main agent from session to session, as people meet it.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc::{self, Receiver, Sender};

use centurion_testkit::{Recorded, Reply};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::program::{Program, signal};

/// A model that answers what it is asked at the end of a session.
fn model() -> Program {
    Program::with_handler(|request: &Recorded| {
        let last = request.json()["messages"].as_array().unwrap().last().unwrap().to_string();
        let text = if last.contains("Write a note on it") {
            "About tea\n\nThe user likes green tea.".to_owned()
        } else if last.contains("worth keeping") {
            let note =
                json!({"file": "tea.md", "type": "user", "description": "tea", "text": "NO-SUGAR"});
            json!({ "notes": [note] }).to_string()
        } else {
            "hello".to_owned()
        };
        Reply::text(&text)
    })
}

/// The directory of the project's notes, as the program tells it.
fn directory(program: &Program) -> PathBuf {
    let ended = program.run(&["-p", "hi", "--output-format", "stream-json", "--verbose"]);
    let init: Value = ended.events()[0].clone();
    PathBuf::from(init["memory_paths"]["auto"].as_str().unwrap())
}

#[test]
fn a_note_of_one_session_is_known_in_the_next_and_off_is_off() {
    // D-34
    let program = model();
    let notes = directory(&program);
    assert!(
        notes.is_dir() && notes.starts_with(program.scratch.home().join(".centurion/projects"))
    );
    std::fs::write(notes.join("MEMORY.md"), "- [tea](tea.md): NO-SUGAR").unwrap();
    let asked = |arguments: &[&str], variable: Option<&str>| {
        let mut command = program.command([&["-p", "hi"], arguments].concat());
        command.envs(variable.map(|name| (name, "1")));
        assert!(command.output().unwrap().status.success(), "{arguments:?}");
        program.server().last().json().to_string()
    };
    let told = asked(&[], None);
    assert!(told.contains("# Your memory of this project") && told.contains("NO-SUGAR"), "{told}");
    let settings = json!({"autoMemoryEnabled": false}).to_string();
    let off = Some("CLAUDE_CODE_DISABLE_AUTO_MEMORY");
    for (arguments, variable) in [(&["--settings", &settings][..], None), (&[], off)] {
        let told = asked(arguments, variable);
        assert!(
            !told.contains("Your memory") && !told.contains("NO-SUGAR"),
            "{arguments:?} {variable:?}"
        );
    }
    // Instruction files can be off by themselves.
    let told = asked(&[], Some("CLAUDE_CODE_DISABLE_CLAUDE_MDS"));
    assert!(told.contains("NO-SUGAR"), "{told}");
    // No environment of a repository switches on what the user's own switches off.
    program
        .scratch
        .write(".claude/settings.json", r#"{"env": {"CLAUDE_CODE_DISABLE_AUTO_MEMORY": ""}}"#);
    assert!(!asked(&[], off).contains("NO-SUGAR"));
    let chosen = json!({"autoMemoryDirectory": "~/notes"}).to_string();
    asked(&["--settings", &chosen], None);
    assert!(program.scratch.home().join("notes").is_dir());
    let home = json!({"autoMemoryDirectory": "~/"}).to_string();
    let ended = program.run(&["-p", "hi", "--settings", &home]);
    assert!(ended.stderr.contains("`autoMemoryDirectory` is not used"), "{}", ended.stderr);
    assert_eq!(ended.code, Some(0));
}

#[test]
fn the_settings_of_the_user_say_what_is_made_of_a_session_and_those_of_a_repository_do_not() {
    // S-289
    let program = model();
    let notes = directory(&program);
    let wanted = json!({"memory": {
        "session": {"enabled": true, "model": "haiku"}, "extraction": {"enabled": true, "maxBudgetUsd": 0.2},
    }}).to_string();
    let project = program.scratch.project().join(".claude");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::write(project.join("settings.json"), &wanted).unwrap();
    let ended = program.run(&["-p", "hi"]);
    assert_eq!((ended.code, ended.stdout.trim()), (Some(0), "hello"), "{}", ended.stderr);
    assert!(!notes.join("sessions").exists(), "a repository turns nothing on");
    std::fs::remove_dir_all(project).unwrap();

    let ended = program.run(&["-p", "hi", "--settings", &wanted]);
    assert_eq!((ended.code, ended.stdout.trim()), (Some(0), "hello"), "{}", ended.stderr);
    let session = std::fs::read_dir(notes.join("sessions")).unwrap().next().unwrap().unwrap();
    assert!(std::fs::read_to_string(session.path()).unwrap().contains("green tea"));
    assert!(std::fs::read_to_string(notes.join("tea.md")).unwrap().contains("NO-SUGAR"));
    assert_eq!(std::fs::read_to_string(notes.join("MEMORY.md")).unwrap(), "- [tea](tea.md): tea\n");
    // A session that keeps nothing leaves no note either.
    let count = || std::fs::read_dir(notes.join("sessions")).unwrap().count();
    let before = count();
    let ended = program.run(&["-p", "hi", "--settings", &wanted, "--no-session-persistence"]);
    assert_eq!((ended.code, count()), (Some(0), before), "{}", ended.stderr);
    let checked =
        program.run(&["-p", "hi", "--settings", r#"{"memory": {"session": {"enabled": "yes"}}}"#]);
    assert!(checked.stderr.contains("memory.session.enabled"), "{}", checked.stderr);
}

/// A note between a slow model and its test.
struct Note {
    is_asked_for: Receiver<()>,
    lets_go: Sender<()>,
}

/// A model that writes no note before it is let go.
fn slow_model() -> (Program, Note) {
    let (asks, is_asked_for) = mpsc::channel();
    let (lets_go, is_free) = mpsc::channel();
    let waiting = Mutex::new((asks, is_free));
    let program = Program::with_handler(move |request: &Recorded| {
        let last = request.json()["messages"].as_array().unwrap().last().unwrap().to_string();
        if !last.contains("Write a note on it") {
            return Reply::text("hello");
        }
        let waiting = waiting.lock();
        // The test may be over.
        let _ = waiting.0.send(());
        let _ = waiting.1.recv();
        Reply::text("About tea\n\nNO-SUGAR")
    });
    (program, Note { is_asked_for, lets_go })
}

/// A run whose answer has been read, while the model is asked for a note.
fn answered(program: &Program) -> Child {
    let wanted = json!({"memory": {"session": {"enabled": true}}}).to_string();
    let mut child = program.command(["-p", "hi", "--settings", &wanted]).spawn().unwrap();
    let mut answer = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"hello\n");
    child
}

#[test]
fn an_answer_does_not_wait_for_what_is_made_of_its_session() {
    let (program, note) = slow_model();
    let mut child = answered(&program);
    // The session is free for another process, which locks it.
    let sessions = program.run(&["sessions", "--json"]).stdout;
    let sessions: Value = serde_json::from_str(&sessions).unwrap();
    let listed = program.run(&["sessions", "rewind", sessions[0]["id"].as_str().unwrap()]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    note.lets_go.send(()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_signal_ends_what_is_made_of_a_session_and_changes_nothing_else() {
    let (program, note) = slow_model();
    let mut child = answered(&program);
    note.is_asked_for.recv().unwrap();
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(0), "the run was a success");
    note.lets_go.send(()).unwrap();
}
