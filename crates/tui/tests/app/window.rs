//! What a person sees in a real window: the view through the inline surface on a terminal, and keys for what is seen alone.

use std::num::NonZeroU16;

use centurion_tui::{
    Capabilities, Effect, Fact, Happening, InlineSurface, Input, Key, KeyCode, Look, Permission,
    PickFor, PickRow, Picker, Size, Surface as _, Table, TableOf,
};
use serde_json::{Value, json};

use super::stage::{Stage, command, init, started};

/// A window with a shell's line in it, in which the program has just been started.
struct Window {
    terminal: vt100::Parser,
    surface: InlineSurface,
    size: Size,
}

impl Window {
    fn open(stage: &mut Stage, columns: u16, rows: u16) -> Self {
        let size = Size { columns, rows };
        stage.resize(columns, rows);
        let cells = |number| NonZeroU16::new(number).unwrap();
        let mut terminal = vt100::Parser::new(cells(rows), cells(columns), 1_000);
        terminal.process(b"$ centurion\r\n");
        let surface = InlineSurface::new(size, Look::default(), Capabilities::default());
        Self { terminal, surface, size }
    }

    /// The rows of the screen.
    fn rows(&mut self, stage: &Stage) -> Vec<String> {
        let mut bytes = Vec::new();
        let frame = stage.frame(self.size.columns, self.size.rows);
        self.surface.draw(&frame, self.size, &mut bytes);
        self.terminal.process(&bytes);
        let rows = self.terminal.screen().rows(0, self.size.columns);
        rows.map(|row| row.trim_end().to_owned()).collect()
    }

    fn shown(&mut self, stage: &Stage) -> String {
        self.rows(stage).join("\n")
    }
}

fn answers(stage: &mut Stage) -> Vec<Value> {
    let answer = |effect| match effect {
        Effect::Answer { answer, .. } => Some(answer),
        _ => None,
    };
    stage.take_effects().into_iter().filter_map(answer).collect()
}

/// A question with everything that a permission can have.
fn full(text: &str) -> Permission {
    let rules: Vec<Value> = (0..4)
        .map(|number| json!({"toolName": "Bash", "ruleContent": format!("a-long-program-{number} with-its-subcommand *")}))
        .collect();
    Permission {
        because: format!(
            "no rule or mode lets `{text}` run, and so a person is asked about it first"
        ),
        rule: Some("`Bash(make *)` from /home/person/project/.claude/settings.json:7".to_owned()),
        suggestions: vec![json!({
            "type": "addRules", "behavior": "allow", "destination": "localSettings", "rules": rules,
        })],
        ..command(text)
    }
}

#[test]
fn who_asks_and_the_whole_command_are_seen_before_a_yes_in_every_window() {
    for rows in [24, 30, 40] {
        let mut stage = Stage::new();
        let mut window = Window::open(&mut stage, 80, rows);
        stage.event(&init());
        stage.event(&started("a1", "prover", "Run examples", None));
        let script: Vec<String> = (0..60).map(|number| format!("step {number} ;")).collect();
        stage.asks(Some("a1"), &["prover"], full(&script.join("\n")));
        stage.pass(2_000);
        let shown = window.shown(&stage);
        assert!(shown.contains("1 of 1 · Bash · main ▸ prover"), "{rows}: {shown}");
        assert!(shown.contains("step 0 ;"), "{rows}: {shown}");
        assert!(shown.contains("1 y once") && shown.contains("3 n no"), "{rows}: {shown}");
        assert!(shown.contains("more lines below"), "{rows}: {shown}");
        let mut seen = String::new();
        for _ in 0..40 {
            seen.push_str(&window.shown(&stage));
            stage.press(KeyCode::PageDown);
        }
        for line in &script {
            assert!(seen.contains(line.as_str()), "{rows}: {line} is never shown");
        }
        for words in ["settings.json:7", "a-long-program-3", "first"] {
            assert!(seen.contains(words), "{rows}: {words} is never shown:\n{shown}");
        }
        let last = window.shown(&stage);
        assert!(last.contains("(the end)"), "{rows}: {last}");
        stage.press(KeyCode::PageUp);
        assert_ne!(window.shown(&stage), last, "{rows}: the scroll is bounded at the end");
    }
}

#[test]
fn a_short_command_stands_with_its_reason_and_every_answer_at_twenty_four_rows() {
    let mut stage = Stage::new();
    let mut window = Window::open(&mut stage, 80, 24);
    stage.asks(None, &[], full("make check"));
    stage.pass(2_000);
    let rows = window.rows(&stage);
    let at = |words: &str| {
        rows.iter()
            .position(|row| row.contains(words))
            .unwrap_or_else(|| panic!("{words}: {rows:#?}"))
    };
    let order = [
        "1 of 1 · Bash · main",
        "make check",
        "because:",
        "settings.json:7",
        "1 y once",
        "2 a always",
        "3 n no",
    ];
    assert!(order.map(at).is_sorted(), "{rows:#?}");
}

#[test]
fn a_window_without_room_for_the_question_hears_no_yes() {
    for rows in 6..9 {
        let mut stage = Stage::new();
        let mut window = Window::open(&mut stage, 80, rows);
        stage.asks(None, &[], full("rm -rf build\nmake"));
        stage.pass(2_000);
        let shown = window.shown(&stage);
        if shown.contains("make the window larger") {
            for key in ['y', '1', 'a', '2', 's'] {
                stage.press(KeyCode::Char(key));
            }
            stage.press(KeyCode::Enter);
            assert!(answers(&mut stage).is_empty(), "{rows}: {shown}");
            stage.press(KeyCode::Escape);
            assert_eq!(answers(&mut stage)[0]["behavior"], "deny");
        } else {
            assert!(
                shown.contains("rm -rf build") && shown.contains("1 y once"),
                "{rows}: {shown}"
            );
        }
    }
    let mut stage = Stage::new();
    stage.resize(80, 5);
    stage.asks(None, &[], command("make"));
    stage.pass(2_000);
    stage.types("y");
    assert!(answers(&mut stage).is_empty(), "nothing of the question is shown");
    assert_eq!(stage.rows(80, 5), ["❯ y"]);
}

#[test]
fn keys_in_a_screen_answer_no_question_behind_it() {
    let mut stage = Stage::new();
    let mut window = Window::open(&mut stage, 80, 24);
    stage.asks(None, &[], command("rm -rf build"));
    stage.pass(2_000);
    assert!(window.shown(&stage).contains("1 y once"));
    // What was asked for earlier comes now, over the dialog.
    stage.fact(Fact::Shown { title: "/cost".to_owned(), text: "Total cost: $0.11".to_owned() });
    let shown = window.shown(&stage);
    assert!(shown.contains("Total cost") && !shown.contains("1 y once"), "{shown}");
    assert!(shown.contains("? main asks"), "the screen says that someone asks: {shown}");
    for key in ['y', '1', 'a', 's'] {
        stage.press(KeyCode::Char(key));
    }
    stage.pass(5_000);
    stage.press(KeyCode::Char('y'));
    assert!(answers(&mut stage).is_empty(), "a dialog that is not seen hears nothing");
    stage.press(KeyCode::Escape);
    stage.press(KeyCode::Char('y'));
    assert!(answers(&mut stage).is_empty(), "it is not open yet");
    stage.pass(2_000);
    assert!(window.shown(&stage).contains("1 y once"));
    stage.press(KeyCode::Char('y'));
    assert_eq!(answers(&mut stage).len(), 1);
}

#[test]
fn a_list_of_sessions_that_comes_over_a_dialog_keeps_what_was_written_in_it() {
    let mut stage = Stage::new();
    stage.asks(None, &[], command("make"));
    stage.pass(2_000);
    stage.press(KeyCode::Tab);
    stage.types("use just");
    let table = Table::new(TableOf::Sessions, "Resume", Vec::new());
    stage.fact(Fact::Table { table: Box::new(table), is_again: false });
    stage.press(KeyCode::Enter);
    assert!(answers(&mut stage).is_empty());
    stage.press(KeyCode::Escape);
    stage.pass(2_000);
    stage.press(KeyCode::Enter);
    assert_eq!(answers(&mut stage)[0]["message"], "the user said no: use just");
}

#[test]
fn a_list_that_comes_over_a_dialog_hears_the_keys_and_a_paste_alone() {
    let mut stage = Stage::new();
    stage.event(&init());
    stage.asks(None, &[], command("make"));
    stage.pass(2_000);
    let row = |name: &str| PickRow { text: name.to_owned(), ..PickRow::default() };
    let rows = vec![row("yellow"), row("blue")];
    stage.fact(Fact::Pick(Picker::new("Colours", PickFor::Reading, rows)));
    let mut window = Window::open(&mut stage, 80, 24);
    stage.types("y");
    let shown = window.shown(&stage);
    assert!(shown.contains("yellow") && !shown.contains("blue"), "{shown}");
    stage.happens(Happening::Input(&Input::Paste("ello".to_owned())));
    assert!(window.shown(&stage).contains("yellow"));
    assert_eq!(answers(&mut stage), Vec::<Value>::new());
    stage.press(KeyCode::Escape);
    assert!(!window.shown(&stage).contains("❯ ello"), "a paste for a list is not in the draft");
    stage.pass(2_000);
    stage.types("y");
    assert_eq!(answers(&mut stage), [json!({"behavior": "allow"})]);
}

#[test]
fn words_for_a_question_that_is_withdrawn_go_to_the_prompt_and_allow_nothing() {
    let mut stage = Stage::new();
    let first = stage.asks(None, &[], command("one"));
    stage.asks(None, &[], command("two"));
    stage.pass(2_000);
    stage.press(KeyCode::Tab);
    stage.types("not toda");
    stage.happens(Happening::Withdrawn(first));
    for char in "y, say".chars() {
        stage.press(KeyCode::Char(char));
        stage.pass(500);
    }
    assert!(answers(&mut stage).is_empty(), "the next question opens when the keys are quiet");
    stage.press(KeyCode::Enter);
    let is_sent =
        |it: &Effect| matches!(it, Effect::Submit { text, .. } if text == "not today, say");
    assert!(stage.take_effects().iter().any(is_sent), "no letter is lost");
}

#[test]
fn words_that_were_left_for_the_choices_are_there_when_one_comes_back() {
    let mut stage = Stage::new();
    stage.asks(None, &[], command("make"));
    stage.pass(2_000);
    stage.press(KeyCode::Tab);
    stage.types("use just");
    stage.press(KeyCode::Escape);
    stage.press(KeyCode::Tab);
    stage.press(KeyCode::Enter);
    assert_eq!(answers(&mut stage)[0]["message"], "the user said no: use just");
}

#[test]
fn suspend_and_redraw_work_in_the_tree_in_dialogs_and_in_screens() {
    let presses = |stage: &mut Stage| {
        stage.take_effects();
        stage.ctrl('z');
        stage.ctrl('l');
        assert_eq!(stage.take_effects(), [Effect::Suspend, Effect::Redraw]);
    };
    let mut stage = Stage::new();
    presses(&mut stage);
    stage.event(&started("a1", "scout", "Look", None));
    stage.press(KeyCode::Down);
    presses(&mut stage);
    stage.press(KeyCode::Enter);
    presses(&mut stage);
    stage.fact(Fact::Shown { title: "/cost".to_owned(), text: "x".to_owned() });
    presses(&mut stage);
    stage.press(KeyCode::Escape);
    stage.asks(None, &[], command("make"));
    stage.key(Key::plain(KeyCode::Char('a')).alt());
    stage.pass(2_000);
    presses(&mut stage);
    stage.press(KeyCode::Char('y'));
    assert_eq!(answers(&mut stage).len(), 1, "the dialog is still there");
}

#[test]
fn a_terminal_that_tells_nothing_of_its_focus_is_not_called() {
    let mut stage = Stage::without_focus();
    stage.event(&init());
    stage.asks(None, &[], command("make"));
    assert!(!stage.take_effects().iter().any(|it| matches!(it, Effect::Notify(_))));
}
