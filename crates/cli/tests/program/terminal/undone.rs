//! However the program ends, the terminal is as it was, and what was typed is there at the next start.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::talk::open;
use super::tty::Tty;
use crate::stage::{Stage, bash};

#[test]
fn a_kill_in_a_turn_leaves_the_terminal_as_it_was_and_the_draft_for_the_next_start() {
    // Failures 11 and 17.
    let stage = Stage::new(&json!({"lead": [[bash("touch begun; sleep 7653")], "never"]}));
    let mut tty = open(&stage, &["--allowedTools", "Bash"]);
    tty.send("@@lead\r");
    tty.see("● Bash touch begun");
    let pasted = "a pasted line\r".repeat(500);
    tty.send(&format!("half a prompt \x1b[200~{pasted}\x1b[201~ and more"));
    tty.see("and more");
    // It is kept 300 ms after the last key.
    let kept = crate::program::eventually("the kept draft", || {
        let projects =
            std::fs::read_dir(stage.program.scratch.home().join(".centurion/projects")).ok()?;
        let drafts = projects.flatten().map(|project| project.path().join("draft.json"));
        let kept = drafts.into_iter().find(|path| path.exists())?;
        std::fs::read_to_string(&kept).ok()?.contains("and more").then_some(kept)
    });
    let mode = std::fs::metadata(&kept).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    tty.signal("-KILL");
    tty.assert_restored();
    let screen = tty.wait("a screen without the live region", |it| !it.contains("half a prompt"));
    assert!(!screen.contains("manual"), "{screen}");
    let mut tty = open(&stage, &[]);
    let screen = tty.see("half a prompt [paste 1 · 501 lines");
    assert!(screen.contains("and more"), "{screen}");
    tty.signal("-TERM");
    tty.assert_restored();
}

#[test]
fn a_kill_after_commands_have_ended_leaves_the_terminal_as_it_was() {
    // Leftovers of commands are searched for and killed when the commands end. The keeper of the terminal is no leftover.
    let stage = Stage::new(&json!({
        "lead": [[bash("true")], [bash("sleep 1; touch begun; sleep 7654")], "never"],
    }));
    let begun = stage.program.scratch.project().join("begun");
    let mut tty = open(&stage, &["--allowedTools", "Bash"]);
    tty.send("@@lead\r");
    crate::program::eventually("the second command", || begun.exists().then_some(()));
    tty.signal("-KILL");
    tty.assert_restored();
}

#[test]
fn a_kill_while_a_transcript_is_read_leaves_no_live_region_on_the_first_screen() {
    let stage = Stage::new(&json!({"lead": ["never"]}));
    let mut tty = open(&stage, &[]);
    tty.send("half a prompt");
    tty.see("❯ half a prompt");
    tty.send("\x0f");
    tty.see("─ Transcript");
    tty.signal("-KILL");
    tty.assert_restored();
    let screen = tty.wait("the first screen", |it| !it.contains("Transcript"));
    assert!(!screen.contains("half a prompt") && !screen.contains("manual"), "{screen}");
}

#[test]
fn signals_leave_the_terminal_as_it_was_with_their_own_exit_codes() {
    // Failure 17.
    for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let stage = Stage::new(&json!({"lead": [[bash("touch begun; sleep 7652")], "never"]}));
        let mut tty = open(&stage, &["--allowedTools", "Bash"]);
        tty.send("@@lead\r");
        tty.see("● Bash touch begun");
        tty.send("a draft");
        tty.see("❯ a draft");
        tty.signal(signal);
        assert_eq!(tty.assert_restored(), Some(code), "{signal}");
        let mut tty = open(&stage, &[]);
        tty.see("❯ a draft");
        tty.send("\x04\x04");
        tty.signal("-TERM");
        tty.assert_restored();
    }
}

/// A terminal that takes nothing holds up no agent and no end, and gets what it is owed when it takes bytes again.
#[test]
fn behind_a_connection_that_stalls_agents_work_and_signals_end_the_program() {
    for signal in ["-TERM", "-HUP", "-KILL"] {
        let loud = bash("head -c 60000 /dev/zero | tr '\\0' x; echo; touch done");
        let mut steps: Vec<serde_json::Value> = Vec::new();
        for _ in 0..4 {
            steps.push(json!(["many words here.\n\n".repeat(600), loud.clone()]));
        }
        steps.push(json!([bash("touch finished")]));
        steps.push(json!("all of it is done"));
        let stage = Stage::new(&json!({ "lead": steps }));
        let finished = stage.program.scratch.project().join("finished");
        let mut tty = open(&stage, &["--allowedTools", "Bash"]);
        tty.send("@@lead\r");
        tty.see("many words");
        tty.stalled(|child| {
            crate::program::eventually("the last call", || finished.exists().then_some(()));
            crate::program::signal(child, signal);
            crate::program::eventually("the end", || child.try_wait().unwrap());
        });
        tty.assert_restored();
    }
}

#[test]
fn an_editor_has_the_terminal_as_it_was_and_its_text_comes_back() {
    let stage = Stage::new(&json!({}));
    let project = stage.program.scratch.project();
    let editor = project.join("editor.sh");
    let script =
        "#!/bin/sh\nstty -a < /dev/tty > \"$PWD/settings\"\nprintf ' and edited' >> \"$1\"\n";
    std::fs::write(&editor, script).unwrap();
    std::fs::set_permissions(&editor, std::fs::Permissions::from_mode(0o755)).unwrap();
    let model = ["--model", stage.model()];
    let mut command = stage.program.command(model);
    command.env("EDITOR", &editor);
    let mut tty = Tty::start(&command);
    tty.see("script:");
    tty.send("typed");
    tty.see("❯ typed");
    tty.send("\x07");
    tty.see("❯ typed and edited");
    assert!(tty.is_raw());
    let settings = std::fs::read_to_string(project.join("settings")).unwrap();
    assert!(settings.contains(" icanon") && settings.contains(" echo "), "{settings}");
    tty.signal("-TERM");
    tty.assert_restored();
}

#[test]
fn a_kill_leaves_the_first_prompt_of_a_shell_without_a_line_editor() {
    // Failure 17. Such a shell keeps the settings of the terminal, and prompts while the keeper restores it.
    let stage = Stage::new(&json!({}));
    let mut shell = std::process::Command::new("sh");
    shell.arg("-i").current_dir(stage.program.scratch.project());
    shell.env("HOME", stage.program.scratch.home()).env("PATH", std::env::var_os("PATH").unwrap());
    shell.env("PS1", "shell> ");
    let mut tty = Tty::start(&shell);
    let is_prompted =
        |screen: &str| screen.trim_end().lines().last().is_some_and(|it| it.ends_with("shell>"));
    tty.wait("the shell", is_prompted);
    for round in 0..8 {
        let program = env!("CARGO_BIN_EXE_centurion");
        tty.send(&format!("{program} --model '{}'\r", stage.model()));
        tty.see("manual");
        tty.send("a draft");
        tty.see("❯ a draft");
        let children = std::process::Command::new("pgrep")
            .args(["-P", &tty.child.id().to_string()])
            .output()
            .unwrap();
        let children = String::from_utf8(children.stdout).unwrap();
        let prompts = tty.count(b"shell> ");
        let killed = std::process::Command::new("kill").args(["-KILL", children.trim()]).status();
        assert!(killed.unwrap().success(), "{children}");
        crate::program::eventually("the shell and the keeper", || {
            (tty.count(b"shell> ") > prompts && tty.count(b"\x1b[23;2t") > round).then_some(())
        });
        crate::program::eventually("the settings", || (!tty.is_raw()).then_some(()));
        // Its prompt stays, or it prompts again if it wrote in the very moment between the keeper's look and its write.
        tty.wait("the prompt", is_prompted);
        tty.send(&format!("clear; echo round {round} \"is over\"\r"));
        tty.see(&format!("round {round} is over"));
        tty.wait("the shell", is_prompted);
    }
}
