//! Fullscreen: the terminal's other screen, the mouse, and everything as it was at the end.

use serde_json::json;

use super::talk::open;
use super::tty::Tty;
use crate::stage::{Stage, bash};

/// A stage whose person wants the whole window.
fn stage() -> Stage {
    let lines =
        (0..60).map(|number| format!("line <{number}> of it\n\n")).collect::<Vec<_>>().concat();
    let stage = Stage::new(&json!({
        "lead": [{"blocks": [lines]}],
        "ask": [[bash("echo it ran > made")], "done with it"],
    }));
    let home = stage.program.scratch.home().join(".centurion");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("settings.json"), r#"{"tui": "fullscreen"}"#).unwrap();
    stage
}

/// Starts a session and waits for the other screen.
fn open_whole(stage: &Stage) -> Tty {
    let tty = open(stage, &[]);
    crate::program::eventually("the other screen", || tty.is_on_other_screen().then_some(()));
    tty
}

#[test]
fn the_whole_window_scrolls_with_keys_and_wheel_and_leaves_its_last_lines_on_the_first_screen() {
    let stage = stage();
    let mut tty = open_whole(&stage);
    tty.send("@@lead\r");
    let screen = tty.see("<59>");
    assert!(!screen.contains("<30>"), "{screen}");
    let rows: Vec<&str> = screen.lines().collect();
    assert!(rows[rows.len() - 1].contains("manual"), "the prompt stands at the bottom: {screen}");
    tty.send("\x1b[5~\x1b[5~");
    tty.see("<35>");
    tty.see("more rows");
    // Back with the wheel.
    tty.send(&"\x1b[<65;10;3M".repeat(30));
    tty.wait("the end", |screen| screen.contains("<59>") && !screen.contains("more rows"));
    tty.resize(16, 50);
    tty.wait("the new size", |screen| screen.contains("<59>") && !screen.contains("<45>"));
    tty.send("\x04");
    assert_eq!(tty.assert_restored(), Some(0));
    assert!(!tty.is_on_other_screen() && !tty.has_mouse());
    let all = tty.everything();
    for number in [0, 30, 59] {
        assert_eq!(all.matches(&format!("<{number}>")).count(), 1, "{all}");
    }
}

#[test]
fn a_press_answers_a_question_that_was_read() {
    let stage = stage();
    let made = stage.program.scratch.project().join("made");
    let mut tty = open_whole(&stage);
    tty.send("@@ask\r");
    let screen = tty.see("1 y once");
    let row = screen.lines().position(|row| row.contains("1 y once")).unwrap() + 1;
    tty.read_dialog();
    tty.send(&format!("\x1b[<0;6;{row}M\x1b[<0;6;{row}m"));
    tty.see("done with it");
    assert!(made.exists());
}

#[test]
fn what_is_selected_with_the_mouse_is_copied_as_it_was_printed() {
    let stage = stage();
    let mut tty = open_whole(&stage);
    tty.send("@@lead\r");
    let screen = tty.see("<59>");
    let row = |words: &str| screen.lines().position(|row| row.contains(words)).unwrap() + 1;
    let (first, last) = (row("<58>"), row("<59>"));
    tty.send(&format!("\x1b[<0;1;{first}M\x1b[<32;17;{last}M\x1b[<0;17;{last}m"));
    tty.see("copied 3 lines");
    // `line <58> of it`, an empty line and `line <59> of it`.
    tty.wait_bytes(b"\x1b]52;c;bGluZSA8NTg+IG9mIGl0CgpsaW5lIDw1OT4gb2YgaXQ=\x07");
}

#[test]
fn a_kill_in_the_whole_window_leaves_the_first_screen_without_mouse_and_modes() {
    // Failure 17.
    let stage = stage();
    let mut tty = open_whole(&stage);
    tty.send("half a prompt");
    tty.see("❯ half a prompt");
    assert!(tty.has_mouse());
    tty.signal("-KILL");
    tty.assert_restored();
    assert!(!tty.is_on_other_screen() && !tty.has_mouse());
}

#[test]
fn the_screen_changes_in_a_running_session_and_is_kept() {
    let stage = Stage::new(&json!({"lead": ["an answer"], "other": ["another one"]}));
    let mut tty = open(&stage, &[]);
    assert!(!tty.is_on_other_screen());
    tty.send("@@lead\r");
    tty.see("an answer");
    tty.send("/tui fullscreen\r");
    crate::program::eventually("the other screen", || tty.is_on_other_screen().then_some(()));
    tty.see("an answer");
    tty.send("@@other\r");
    tty.see("another one");
    tty.send("/tui default\r");
    crate::program::eventually("the first screen", || (!tty.is_on_other_screen()).then_some(()));
    tty.see("another one");
    let all = tty.everything();
    assert_eq!(all.matches("an answer").count(), 1, "{all}");
    assert_eq!(all.matches("another one").count(), 1, "{all}");
    let settings = stage.program.scratch.home().join(".centurion/settings.json");
    let written = crate::program::eventually("the setting", || {
        std::fs::read_to_string(&settings).ok().filter(|it| it.contains("default"))
    });
    assert!(written.contains("\"tui\""), "{written}");
}
