//! Every screen at 40, 80 and 120 columns: what a terminal shows is what the view made, and no row of it is cut by the terminal.

use std::num::NonZeroU16;

use centurion_tui::{
    AskKind, AskNumber, Asked, Capabilities, CommandHint, Fact, FieldKind, FormField, Happening,
    InlineSurface, Key, KeyCode, Line, Look, PromptNumber, Question, Size, Style, Surface as _,
    Table, TableOf, TableRow, Theme, TwoScreens, foreign,
};
use serde_json::json;

use super::stage::{Stage, call, command, ended, init, progress, started, streamed};

/// Text that terminals and editors have trouble with: joined emoji, right to left, marks, wide and no width.
const HARD: &str = "👩‍👩‍👧‍👦 family 🇩🇪 e\u{301}\u{302} שלום עולם مرحبا 日本語 ｆｕｌｌ नमस्ते \u{202e}turned\u{202c} z\u{200b}w";

fn team() -> Stage {
    let mut stage = Stage::new();
    stage.event(&init());
    stage.event(&started("a1", "writer", HARD, None));
    stage.event(&started("a2", "prover", "Run examples", Some("a1")));
    stage.event(&progress("a1", &format!("Bash {HARD}"), 2, 3_900));
    stage.event(&call("t1", "Edit", &json!({"file_path": HARD})));
    stage
}

fn asked(kind: AskKind) -> Stage {
    let mut stage = team();
    let path = vec!["writer".to_owned(), "prover".to_owned()];
    let asked = Asked { number: AskNumber(7), call: None, agent: None, path, kind };
    stage.happens(Happening::Asked(Box::new(asked)));
    stage.pass(2_000);
    stage
}

fn permission() -> Stage {
    let mut stage = team();
    stage.asks(Some("a2"), &["writer", "prover"], command(&format!("echo {HARD}\nmake")));
    stage.pass(2_000);
    stage
}

fn questions() -> AskKind {
    let option = |label: &str| (label.to_owned(), HARD.to_owned());
    AskKind::Questions(vec![Question {
        question: format!("{HARD}?"),
        header: "Head".to_owned(),
        options: vec![option("red"), option("blue")],
        many: true,
    }])
}

fn form() -> AskKind {
    let field = |name: &str, kind| FormField {
        name: name.to_owned(),
        about: HARD.to_owned(),
        kind,
        is_required: true,
    };
    let choices = FieldKind::OneOf(vec!["one".to_owned(), "two".to_owned()]);
    AskKind::Form {
        server: "tickets".to_owned(),
        message: HARD.to_owned(),
        fields: vec![field("kind", choices), field("text", FieldKind::Text)],
    }
}

/// Every screen with words that it must have.
fn screens() -> Vec<(&'static str, Stage)> {
    let mut all = vec![("writer", team()), ("Bash", permission())];
    let plan = (0..50).map(|number| format!("{number}. {HARD}\n")).collect::<Vec<_>>().concat();
    all.push(("Plan", asked(AskKind::Plan { text: plan, is_edited: false })));
    all.push(("Question", asked(questions())));
    all.push(("tickets", asked(form())));
    let choices = vec!["no".to_owned(), format!("yes {HARD}")];
    let (title, lines) = ("Trust this folder?".to_owned(), vec![HARD.to_owned()]);
    all.push(("Trust", asked(AskKind::Choice { title, lines, choices })));
    let (server, message) = ("web".to_owned(), HARD.to_owned());
    let url = "https://example.org/a/long/way".to_owned();
    all.push(("example.org", asked(AskKind::Visit { server, message, url })));
    let mut words = permission();
    words.press(KeyCode::Tab);
    words.types(HARD);
    all.push(("why not", words));
    let mut text = team();
    text.fact(Fact::Shown { title: "/context".to_owned(), text: format!("{HARD}\n").repeat(60) });
    all.push(("/context", text));
    all.extend(tables());
    let mut viewer = team();
    viewer.ctrl('o');
    let lines = (0..80).map(|_| Line::from(foreign(HARD, Style::PLAIN))).collect();
    viewer.fact(Fact::Page { agent: None, lines, start: 9 });
    all.push(("Transcript", viewer));
    let mut tasks = team();
    tasks.ctrl('t');
    all.push(("Tasks", tasks));
    let mut history = team();
    history.says(HARD);
    history.ctrl('r');
    all.push(("Earlier prompts", history));
    let mut focus = team();
    focus.press(KeyCode::Down);
    focus.press(KeyCode::Enter);
    all.push(("main ▸ writer", focus));
    let mut tree = team();
    tree.press(KeyCode::Down);
    all.push(("writer", tree));
    let mut menu = team();
    let hint =
        CommandHint { name: "cost".to_owned(), about: HARD.to_owned(), arguments: String::new() };
    menu.fact(Fact::Commands(vec![hint]));
    menu.types("/co");
    all.push(("/cost", menu));
    let mut queue = team();
    queue.says(HARD);
    queue.types(HARD);
    queue.fact(Fact::Held(vec![PromptNumber(1)]));
    all.push(("next: ", queue));
    let mut answer = team();
    let events = streamed(&[HARD]);
    events[..events.len() - 1].iter().for_each(|event| answer.event(event));
    all.push(("family", answer));
    let mut shell = team();
    shell.says(&format!("!echo {HARD}"));
    shell.fact(Fact::ShellPrinted { number: 1, text: HARD.to_owned() });
    all.push(("esc stops it", shell));
    all
}

/// Every table with rows, a title, words that are written, and a wide detail.
fn tables() -> Vec<(&'static str, Stage)> {
    let kinds = [
        (TableOf::Sessions, "Resume"),
        (TableOf::Points, "Go back"),
        (TableOf::Costs, "Cost"),
        (TableOf::Contexts, "Context"),
        (TableOf::Rules, "Permissions"),
        (TableOf::Settings, "Settings"),
        (TableOf::Agents, "Agents"),
        (TableOf::AgentFields, "Fields"),
        (TableOf::Team, "Team"),
        (TableOf::Servers, "Servers"),
        (TableOf::Hooks, "Hooks"),
        (TableOf::Skills, "Skills"),
        (TableOf::Memory, "Memory"),
    ];
    let row = |number: usize| TableRow {
        cells: vec![HARD.to_owned(), "7".to_owned(), "$0.31".to_owned()],
        hint: HARD.to_owned(),
        depth: number % 3,
        ..TableRow::new(number.to_string(), HARD).with_detail(&format!("{HARD}\n").repeat(50))
    };
    let table = |of, title: &str, count| {
        let rows = std::iter::once(TableRow::head(HARD)).chain((0..count).map(row)).collect();
        Fact::Table {
            table: Box::new(Table::new(of, format!("{title} {HARD}"), rows)),
            is_again: false,
        }
    };
    let mut all = Vec::new();
    for (of, title) in kinds {
        for count in [0, 3, 60] {
            let mut stage = team();
            stage.fact(table(of, title, count));
            all.push((title, stage));
        }
        let mut wide = team();
        wide.fact(table(of, title, 3));
        wide.press(KeyCode::Tab);
        all.push((title, wide));
    }
    let mut words = team();
    words.fact(table(TableOf::Team, "Team", 3));
    words.types("m");
    words.types(&HARD.repeat(3));
    all.push(("Team", words));
    all
}

#[test]
fn every_screen_is_on_the_terminal_as_the_view_made_it() {
    for (number, (words, mut stage)) in screens().into_iter().enumerate() {
        for (columns, rows) in [(40, 24), (80, 24), (120, 40)] {
            let size = Size { columns, rows };
            stage.resize(columns, rows);
            let cells = |number| NonZeroU16::new(number).unwrap();
            let mut terminal = vt100::Parser::new(cells(rows), cells(columns), 100);
            let first = InlineSurface::new(size, Look::default(), Capabilities::default());
            let mut surface = TwoScreens::new(first, Look::default(), size);
            let mut bytes = Vec::new();
            let frame = stage.frame(columns, rows);
            surface.draw(&frame, size, &mut bytes);
            terminal.process(&bytes);
            let screen = terminal.screen().contents();
            assert!(screen.contains(words), "{number} at {columns}: no {words} in\n{screen}");
            // A transcript has the other screen; a row of what was printed stays above everything else.
            let most = usize::from(rows) - usize::from(!frame.is_whole);
            assert!(frame.live.len() <= most, "{number} at {columns}:\n{screen}");
            assert_eq!(terminal.screen().alternate_screen(), frame.is_whole);
            for line in &frame.live {
                let text = line.text();
                assert!(line.width() <= usize::from(columns), "{number} at {columns}: {text}");
                let is_unsafe = |it: char| it.is_control() || matches!(it, '\u{202a}'..='\u{202e}');
                assert!(!text.contains(is_unsafe), "{number} at {columns}: {text:?}");
            }
            let (row, column) = terminal.screen().cursor_position();
            if let Some(place) = frame.cursor {
                assert_eq!(
                    (row, column),
                    (place.row, place.column.min(columns - 1)),
                    "{number} at {columns}:\n{screen}"
                );
            }
        }
    }
}

#[test]
fn the_cursor_stands_where_the_next_letter_goes_in_text_of_every_kind() {
    // Failure 16: input methods open at the cursor.
    for (text, column) in [
        ("ab", 2),
        ("日本", 4),
        ("e\u{301}", 1),
        ("שלום", 4),
        ("👩‍👩‍👧‍👦", 2),
        ("🇩🇪", 2),
        ("a\u{200d}b", 2),
        ("ｆ", 2),
    ] {
        let mut stage = Stage::new();
        stage.types(text);
        let place = stage.frame(80, 24).cursor.unwrap();
        assert_eq!(place.column, 2 + column, "{text}");
        // One key deletes what is one to a person.
        stage.press(KeyCode::Backspace);
        let marks = text.chars().count();
        stage.key(Key::plain(KeyCode::Char('e')).ctrl());
        let left = stage.rows(80, 24)[0].clone();
        assert!(left.chars().count() < "❯ ".chars().count() + marks.max(2), "{text}: {left}");
    }
}

/// The sequences that set colours in some bytes.
fn colours(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let sequences = text.split("\u{1b}[").skip(1).filter_map(|rest| {
        let end = rest.find(|char: char| !char.is_ascii_digit() && char != ';')?;
        rest[end..].starts_with('m').then(|| rest[..end].to_owned())
    });
    sequences.flat_map(|codes| codes.split(';').map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn unreadable_colours_are_never_set_and_none_is_without_them() {
    // Failure 19: on both backgrounds the terminal's own colours are readable; no background and no bright black is set.
    for (colours_allowed, theme) in [
        (true, Theme::Terminal),
        (true, Theme::Daltonized),
        (true, Theme::Plain),
        (false, Theme::Terminal),
    ] {
        let look = Look { colours: colours_allowed, theme, ..Look::default() };
        for (_, mut stage) in screens() {
            stage.event(&started("a9", "painter", "Paint", None));
            stage.resize(80, 24);
            let size = Size { columns: 80, rows: 24 };
            let mut bytes = Vec::new();
            InlineSurface::new(size, look, Capabilities::default()).draw(
                &stage.frame(80, 24),
                size,
                &mut bytes,
            );
            for code in colours(&bytes) {
                let number: u32 = code.parse().unwrap_or_default();
                let is_look = matches!(number, 0..=9 | 22..=29 | 39);
                let is_colour = matches!(number, 31..=36);
                let may_colour = colours_allowed && theme != Theme::Plain;
                assert!(is_look || (is_colour && may_colour), "{code} with {look:?}");
                let is_pair = matches!(number, 31 | 32);
                assert!(theme != Theme::Daltonized || !is_pair, "{code} with {look:?}");
            }
        }
    }
}

#[test]
fn states_differ_by_more_than_their_colours() {
    // Failure 19: what a colour says, a glyph or a word says too.
    let mut stage = Stage::new();
    for (id, status) in [("a1", "completed"), ("a2", "failed"), ("a3", "killed")] {
        stage.event(&started(id, "scout", "Look", None));
        stage.event(&ended(id, status, "over"));
    }
    let marks: Vec<char> = stage
        .printed
        .iter()
        .filter(|line| line.contains("scout  Look ·"))
        .filter_map(|line| line.chars().next())
        .filter(|mark| *mark != '▶')
        .collect();
    assert_eq!(marks, ['✓', '✗', '■'], "{:?}", stage.printed);
}
