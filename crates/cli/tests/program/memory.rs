//! What the main agent remembers from session to session, as people meet it.

use std::path::PathBuf;

use centurion_testkit::{Recorded, Reply};
use serde_json::{Value, json};

use crate::program::Program;

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
    let chosen = json!({"autoMemoryDirectory": "~/notes"}).to_string();
    asked(&["--settings", &chosen], None);
    assert!(program.scratch.home().join("notes").is_dir());
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
    assert_eq!(std::fs::read_dir(&notes).unwrap().count(), 0, "a repository turns nothing on");
    std::fs::remove_dir_all(project).unwrap();

    let ended = program.run(&["-p", "hi", "--settings", &wanted]);
    assert_eq!((ended.code, ended.stdout.trim()), (Some(0), "hello"), "{}", ended.stderr);
    let session = std::fs::read_dir(notes.join("sessions")).unwrap().next().unwrap().unwrap();
    assert!(std::fs::read_to_string(session.path()).unwrap().contains("green tea"));
    assert!(std::fs::read_to_string(notes.join("tea.md")).unwrap().contains("NO-SUGAR"));
    assert_eq!(std::fs::read_to_string(notes.join("MEMORY.md")).unwrap(), "- [tea](tea.md): tea\n");
    // Retention keeps notes, and checks of the settings know the keys.
    let checked =
        program.run(&["-p", "hi", "--settings", r#"{"memory": {"session": {"enabled": "yes"}}}"#]);
    assert!(checked.stderr.contains("memory.session.enabled"), "{}", checked.stderr);
}
