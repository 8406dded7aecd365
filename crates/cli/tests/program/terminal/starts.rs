//! The first minutes: without a model, before a folder that wants trust, the demo, the first CLAUDE.md.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::tty::Tty;
use crate::program::Program;
use crate::stage::Stage;

#[test]
fn without_a_key_it_says_what_to_set_and_offers_the_demo() {
    let program = Program::alone();
    let mut tty = Tty::start(&program.command([""; 0]));
    let screen = tty.see("play the demo");
    assert!(screen.contains("ANTHROPIC_API_KEY"), "{screen}");
    tty.read_dialog();
    // Esc continues without a model, and what was said stays.
    tty.send("\x1b");
    tty.wait("the prompt", |screen| !screen.contains("play the demo"));
    assert!(tty.everything().contains("ANTHROPIC_API_KEY"));
    tty.send("keys are heard\x04");
    tty.see("❯ keys are heard");
}

#[test]
fn without_a_key_the_demo_is_played_from_the_first_question() {
    let program = Program::alone();
    let mut tty = Tty::start(&program.command([""; 0]));
    tty.see("play the demo");
    tty.read_dialog();
    tty.send("2");
    tty.wait("the first agent", |screen| screen.contains("writer") && screen.contains("scout"));
    tty.send("\x03\x03\x04");
    tty.assert_restored();
}

#[test]
fn a_folder_that_loosens_rules_asks_for_trust_at_the_first_start_only() {
    let stage = Stage::new(&json!({}));
    let project = stage.program.scratch.project();
    std::fs::create_dir_all(project.join(".claude")).unwrap();
    let settings = json!({"permissions": {"allow": ["Bash(make *)"]}});
    std::fs::write(project.join(".claude/settings.json"), settings.to_string()).unwrap();
    let start = || Tty::start(&stage.program.command(["--model", stage.model()]));
    let explain = |tty: &mut Tty, expected: &str| {
        tty.see("script:");
        tty.send("/permissions Bash(make check)\r");
        tty.see(expected);
    };
    let mut tty = start();
    let screen = tty.see("Trust this folder?");
    assert!(screen.contains(".claude/settings.json, permissions.allow"), "{screen}");
    assert!(screen.contains("Bash(make *)"), "what the rule allows is shown: {screen}");
    tty.read_dialog();
    // Enter takes the marked choice, which is the harmless one.
    tty.send("\r");
    explain(&mut tty, "Bash(make check): asked about");
    drop(tty);
    let mut tty = start();
    tty.see("Trust this folder?");
    tty.read_dialog();
    tty.send("2");
    explain(&mut tty, "Bash(make check): allowed");
    drop(tty);
    let mut tty = start();
    explain(&mut tty, "Bash(make check): allowed");
    assert!(!tty.everything().contains("Trust this folder?"));
}

#[test]
fn settings_that_cannot_be_read_are_mended_in_the_editor_before_anything_runs() {
    let stage = Stage::new(&json!({}));
    let (project, home) = (stage.program.scratch.project(), stage.program.scratch.home());
    std::fs::create_dir_all(home.join(".claude")).unwrap();
    let settings = home.join(".claude/settings.json");
    std::fs::write(&settings, "{\n  \"permissions\": {\"deny\": [}\n}").unwrap();
    let editor = project.join("editor.sh");
    let script = "#!/bin/sh\necho \"$@\" > opened\necho '{}' > \"$HOME/.claude/settings.json\"\n";
    std::fs::write(&editor, script).unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let start = || {
        let mut command = stage.program.command(["--model", stage.model()]);
        command.env("EDITOR", &editor);
        Tty::start(&command)
    };
    let mut tty = start();
    let screen = tty.see("read it again");
    assert!(screen.contains("settings.json:2"), "{screen}");
    tty.read_dialog();
    // Enter takes the marked choice: nothing is changed, and the error is that of every run.
    tty.send("\r");
    assert_eq!(tty.assert_restored(), Some(1));
    assert!(tty.everything().contains("so nothing runs"), "{}", tty.everything());
    let mut tty = start();
    tty.see("read it again");
    tty.read_dialog();
    tty.send("2");
    tty.see("script:");
    let opened = std::fs::read_to_string(project.join("opened")).unwrap();
    assert!(opened.contains("settings.json"), "{opened}");
    tty.send("\x04");
    tty.assert_restored();
}

/// A person accepts what they were shown, whatever stands in the files when they answer.
#[test]
fn what_comes_while_a_person_reads_is_not_trusted_with_the_rest() {
    let stage = Stage::new(&json!({}));
    let project = stage.program.scratch.project();
    std::fs::create_dir_all(project.join(".claude")).unwrap();
    let rules = |rules: &[&str]| {
        let settings = json!({"permissions": {"allow": rules}});
        std::fs::write(project.join(".claude/settings.json"), settings.to_string()).unwrap();
    };
    rules(&["Bash(make *)"]);
    let mut tty = Tty::start(&stage.program.command(["--model", stage.model()]));
    tty.see("Bash(make *)");
    rules(&["Bash(make *)", "Bash(rm *)"]);
    tty.read_dialog();
    tty.send("2");
    tty.see("script:");
    tty.send("/permissions Bash(rm -rf src)\r");
    tty.see("Bash(rm -rf src): asked about");
}

#[test]
fn the_end_of_a_session_that_is_resumed_is_there_with_the_first_prompt() {
    let stage = Stage::new(&json!({"lead": ["an answer to be read again"]}));
    let told = stage.program.run(&["-p", "say @@lead", "--model", stage.model()]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    for resumes in [&["--continue"][..], &["--resume"]] {
        let id = stage.program.transcripts()[0].file_stem().unwrap().to_str().unwrap().to_owned();
        let more = if resumes == ["--resume"] { vec!["--resume", &id] } else { resumes.to_vec() };
        let tty =
            Tty::start(&stage.program.command([&["--model", stage.model()], &more[..]].concat()));
        let screen = tty.see("❯");
        assert!(screen.contains("an answer to be read again"), "{screen}");
        tty.see("script:");
        assert_eq!(tty.everything().matches("an answer to be read again").count(), 1);
    }
}

#[test]
fn the_demo_plays_in_the_terminal() {
    let program = Program::alone();
    let mut tty = Tty::start(&program.command(["demo", "--interactive"]));
    tty.wait("the first agent", |screen| screen.contains("writer") && screen.contains("scout"));
    crate::program::eventually("the end of the demo", || {
        let all = tty.everything();
        (all.contains("✓ writer") && all.contains("✓ scout")).then_some(())
    });
    tty.wait("rest", |screen| !screen.contains("esc stops"));
    tty.send("\x04");
    tty.assert_restored();
}

#[test]
fn a_first_claude_md_is_written_only_when_it_is_wanted_and_there_is_none() {
    let program = Program::alone();
    let file = program.scratch.project().join("CLAUDE.md");
    std::fs::write(program.scratch.project().join("Cargo.toml"), "[package]\n").unwrap();
    let trial = program.run(&["init", "--dry-run"]);
    assert_eq!(trial.code, Some(0), "{}", trial.stderr);
    assert!(trial.stdout.contains("cargo test"), "{}", trial.stdout);
    assert!(!file.exists(), "a trial writes nothing");
    let written = program.run(&["init"]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    assert!(std::fs::read_to_string(&file).unwrap().contains("cargo test"));
    std::fs::write(&file, "my own words\n").unwrap();
    let again = program.run(&["init"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "my own words\n", "{}", again.stdout);
    assert!(again.stdout.contains("CLAUDE.md"), "{}", again.stdout);
}
