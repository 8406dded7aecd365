//! What others bring: names, texts and sizes that are made to do harm. They are shown, and do nothing.

use std::time::{Duration, Instant};

use centurion_tui::{
    Effect, Fact, Happening, Input, InputParser, KeyCode, Table, TableOf, TableRow, Tone, lines_of,
};

use super::stage::{Stage, command, ended, init, progress, started, streamed};

/// Names that are markup, escapes, paths, or no name at all.
const NAMES: [&str; 14] = [
    "\u{1b}[2J\u{1b}]0;owned\u{7}",
    "\u{9b}31m\u{90}payload\u{9c}",
    "a\r\n❯ rm -rf ~\n",
    "\u{202e}gnp.exe\u{2066}",
    "../../../../etc/passwd",
    "/etc/shadow",
    "$(touch /tmp/x) `id` ; | & > <",
    "**bold** [link](javascript:alert(1)) <script>",
    "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
    "\u{200b}\u{feff}\u{2060}",
    "日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語日本語",
    "",
    "\0\u{7f}\u{85}",
    "member a1",
];

const TABLES: [TableOf; 13] = [
    TableOf::Sessions,
    TableOf::Points,
    TableOf::Costs,
    TableOf::Contexts,
    TableOf::Rules,
    TableOf::Settings,
    TableOf::Agents,
    TableOf::AgentFields,
    TableOf::Team,
    TableOf::Servers,
    TableOf::Hooks,
    TableOf::Skills,
    TableOf::Memory,
];

/// Nothing that a terminal obeys, and no row that is wider than the window.
#[track_caller]
fn assert_harmless(stage: &Stage, columns: u16, rows: u16) {
    let frame = stage.frame(columns, rows);
    assert!(frame.live.len() <= usize::from(rows), "{} rows of {rows}", frame.live.len());
    for line in frame.live.iter().chain(&frame.print) {
        let text = line.text();
        let is_bad = |char: char| {
            char.is_control()
                || matches!(char, '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        };
        assert!(!text.contains(is_bad), "{text:?}");
    }
    assert!(frame.live.iter().all(|line| line.width() <= usize::from(columns)));
    let title = frame.title.unwrap_or_default();
    assert!(!title.contains(char::is_control), "{title:?}");
}

fn hostile_row(at: usize) -> TableRow {
    let name = |offset: usize| NAMES[(at + offset) % NAMES.len()];
    TableRow {
        cells: vec![name(1).to_owned(), name(2).repeat(20)],
        hint: name(3).to_owned(),
        tone: [Tone::Plain, Tone::Bad, Tone::Faint, Tone::Notable][at % 4],
        depth: at % 3,
        value: name(4).to_owned(),
        ..TableRow::new(name(5), name(0)).with_detail(&format!("{}\n{}", name(6), name(7)))
    }
}

#[test]
fn rows_of_hostile_names_are_shown_and_do_nothing_in_every_table_and_window() {
    for of in TABLES {
        for (columns, rows) in [(20, 6), (40, 12), (80, 24), (120, 40)] {
            let mut stage = Stage::new();
            stage.resize(columns, rows);
            let all = (0..NAMES.len()).map(hostile_row).collect();
            let table = Table::new(of, NAMES[2], all).about(NAMES[4]);
            stage.fact(Fact::Table { table: Box::new(table), is_again: false });
            stage.fact(Fact::Notice(NAMES[0].repeat(3)));
            assert_harmless(&stage, columns, rows);
            for _ in 0..NAMES.len() {
                stage.press(KeyCode::Down);
                assert_harmless(&stage, columns, rows);
            }
            stage.press(KeyCode::Tab);
            assert_harmless(&stage, columns, rows);
            for effect in stage.take_effects() {
                // What is only looked at asks for details, and for nothing else.
                assert!(matches!(effect, Effect::Detail { .. }), "{of:?}: {effect:?}");
            }
        }
    }
}

#[test]
fn a_name_of_a_row_never_becomes_a_file_to_open() {
    for of in TABLES {
        let mut stage = Stage::new();
        let all = (0..NAMES.len()).map(hostile_row).collect();
        let table = Table::new(of, "Table", all).about("/subject.md");
        stage.fact(Fact::Table { table: Box::new(table), is_again: false });
        for _ in 0..NAMES.len() {
            for key in ['e', 'g', 'i', 't', 'x', 'r'] {
                stage.ctrl(key);
                stage.press(KeyCode::Char(key));
                stage.press(KeyCode::Escape);
            }
            stage.press(KeyCode::Down);
        }
        let opened =
            stage.take_effects().into_iter().filter(|it| matches!(it, Effect::OpenFile(_)));
        assert_eq!(opened.count(), 0, "{of:?}: only a row with a file of its own opens one");
    }
}

#[test]
fn hostile_words_of_agents_commands_and_sessions_are_shown_and_do_nothing() {
    for name in NAMES {
        let mut stage = Stage::new();
        stage.event(&init());
        stage.event(&started("a1", name, name, None));
        stage.event(&progress("a1", name, 1, 900));
        stage.asks(
            Some("a1"),
            &[name],
            centurion_tui::Permission {
                because: name.to_owned(),
                rule: Some(name.to_owned()),
                reach: Some(name.to_owned()),
                server: Some(name.to_owned()),
                ..command(name)
            },
        );
        for (columns, rows) in [(24, 8), (40, 12), (80, 24), (120, 40)] {
            assert_harmless(&stage, columns, rows);
        }
        stage.pass(2_000);
        for (columns, rows) in [(24, 8), (40, 12), (80, 24), (120, 40)] {
            assert_harmless(&stage, columns, rows);
        }
        stage.press(KeyCode::Escape);
        for event in streamed(&[name, "\n\n", name]) {
            stage.event(&event);
        }
        stage.event(&ended("a1", "failed", name));
        stage.fact(Fact::Shown { title: name.to_owned(), text: format!("{name}\n{name}") });
        assert_harmless(&stage, 80, 24);
        stage.press(KeyCode::Escape);
        stage.fact(Fact::Earlier(lines_of(name)));
        stage.fact(Fact::ShellEnded {
            number: 1,
            command: name.to_owned(),
            output: name.to_owned(),
            is_success: false,
        });
        let is_bad = |line: &String| line.contains(char::is_control);
        assert!(!stage.printed.iter().any(is_bad), "{:?}", stage.printed);
    }
}

/// A megabyte, pasted: it is there at once, typing goes on as before, and taking it back is no burden either.
#[test]
fn a_paste_of_a_megabyte_holds_up_no_key() {
    let mut stage = Stage::new();
    let pasted = "some words of a line\n".repeat(50_000);
    let mut parser = InputParser::new();
    let mut inputs = Vec::new();
    parser.feed(b"\x1b[200~", &mut inputs);
    for piece in pasted.replace('\n', "\r").as_bytes().chunks(4_000) {
        parser.feed(piece, &mut inputs);
    }
    parser.feed(b"\x1b[201~", &mut inputs);
    assert_eq!(inputs, [Input::Paste(pasted.clone())]);
    stage.happens(Happening::Input(&inputs[0]));
    assert!(stage.shown().contains("[paste 1 · 50001 lines"), "{}", stage.shown());
    stage.types(" and go");
    stage.press(KeyCode::Enter);
    let sent = stage.take_effects().into_iter().find_map(|it| match it {
        Effect::Submit { text, .. } => Some(text),
        _ => None,
    });
    let text = format!("{pasted} and go");
    assert_eq!(sent.as_deref(), Some(text.as_str()), "bytes sent are bytes pasted");
    // Taken back, it is a chip as before: each key makes a frame, and a frame is made in a moment.
    stage.press(KeyCode::Up);
    assert!(stage.shown().contains("[paste"), "{}", stage.shown());
    let began = Instant::now();
    for _ in 0..20 {
        stage.types("x");
        stage.press(KeyCode::Backspace);
        let _ = stage.frame(100, 40);
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    stage.press(KeyCode::Enter);
    let sent = stage.take_effects().into_iter().find_map(|it| match it {
        Effect::Submit { text, .. } => Some(text),
        _ => None,
    });
    assert_eq!(sent, Some(text));
}
