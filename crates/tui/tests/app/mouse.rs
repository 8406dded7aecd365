//! The mouse in the live region: presses do what keys do there, and answer nothing that a key would not answer.

use centurion_tui::{
    CommandHint, Effect, Fact, Happening, Input, KeyCode, Mouse, MouseEvent, Place, Scroll, Table,
    TableOf, TableRow, Tui,
};

use super::stage::{Stage, command, started};

/// The row of the live region that has some words, and their column.
fn place_of(stage: &Stage, words: &str) -> Place {
    let rows = stage.rows(100, 40);
    let row = rows.iter().position(|row| row.contains(words));
    let row = row.unwrap_or_else(|| panic!("no {words} in {rows:#?}"));
    let column = rows[row].find(words).map(|at| rows[row][..at].chars().count()).unwrap();
    Place { row: u16::try_from(row).unwrap(), column: u16::try_from(column).unwrap() }
}

fn mouse(stage: &mut Stage, event: MouseEvent, place: Place) {
    let mouse = Mouse { event, place, ctrl: false, alt: false, shift: false };
    stage.happens(Happening::Input(&Input::Mouse(mouse)));
}

fn press(stage: &mut Stage, words: &str) {
    let place = place_of(stage, words);
    mouse(stage, MouseEvent::Pressed, place);
}

fn answers(stage: &mut Stage) -> Vec<Effect> {
    stage.take_effects().into_iter().filter(|it| matches!(it, Effect::Answer { .. })).collect()
}

#[test]
fn a_press_puts_the_cursor_between_the_letters_of_the_draft() {
    let mut stage = Stage::new();
    stage.types("fix the sum");
    let place = place_of(&stage, "the");
    mouse(&mut stage, MouseEvent::Pressed, place);
    stage.types("all ");
    assert!(stage.shown().contains("❯ fix all the sum"), "{}", stage.shown());
    mouse(&mut stage, MouseEvent::Pressed, Place { column: 90, ..place });
    stage.types("s");
    assert!(stage.shown().contains("❯ fix all the sums"), "behind the end is the end");
}

#[test]
fn a_press_on_an_agent_focuses_it_and_one_on_an_entry_of_the_menu_writes_it() {
    let mut stage = Stage::new();
    stage.event(&started("a1", "writer", "Write", None));
    stage.event(&started("a2", "linter", "Lint", None));
    press(&mut stage, "linter");
    assert!(stage.shown().contains("main ▸ linter · Lint"), "{}", stage.shown());
    stage.press(KeyCode::Escape);
    let hint = |name: &str| CommandHint {
        name: name.to_owned(),
        about: "does it".to_owned(),
        arguments: "[words]".to_owned(),
    };
    stage.fact(Fact::Commands(vec![hint("cost"), hint("context")]));
    stage.types("/co");
    press(&mut stage, "/cost");
    assert!(stage.shown().contains("❯ /cost"), "{}", stage.shown());
    assert!(!stage.take_effects().iter().any(|it| matches!(it, Effect::Submit { .. })));
}

#[test]
fn a_press_answers_only_where_an_answer_stands_and_only_when_a_key_would() {
    // Failure 2: a dialog eats typing, and consents.
    let mut stage = Stage::new();
    // The subject looks like an answer.
    stage.asks(None, &[], command("1 y once\n  1 y twice\n› 1 y thrice"));
    press(&mut stage, "1 y once");
    assert_eq!(answers(&mut stage), [], "it was shown just now, and that is the subject");
    stage.pass(2_000);
    for words in ["1 y once", "1 y twice", "1 y thrice", "because"] {
        press(&mut stage, words);
        assert_eq!(answers(&mut stage), [], "{words}");
    }
    stage.pass(2_000);
    press(&mut stage, "3 n no");
    let said = answers(&mut stage);
    assert!(format!("{said:?}").contains("deny"), "{said:?}");
    stage.asks(None, &[], command("make"));
    stage.pass(2_000);
    press(&mut stage, "1 y once");
    let said = answers(&mut stage);
    assert!(format!("{said:?}").contains("allow"), "{said:?}");
}

#[test]
fn a_list_is_chosen_from_with_a_second_press_and_the_wheel_moves_what_is_shown() {
    let mut stage = Stage::new();
    stage.says("/theme");
    let place = place_of(&stage, "no-colour");
    mouse(&mut stage, MouseEvent::Pressed, place);
    assert!(stage.shown().contains("❯ no-colour"), "{}", stage.shown());
    stage.take_effects();
    press(&mut stage, "no-colour");
    let effects = stage.take_effects();
    assert!(effects.iter().any(|it| matches!(it, Effect::Restyle(_))), "{effects:?}");
    mouse(&mut stage, MouseEvent::WheelUp, Place::default());
    assert_eq!(stage.take_effects(), [Effect::Scroll(Scroll::Rows(-3))]);
    let text = (0..200).map(|number| format!("row {number}\n")).collect::<Vec<_>>().concat();
    stage.fact(Fact::Shown { title: "/x".to_owned(), text });
    mouse(&mut stage, MouseEvent::WheelDown, Place::default());
    assert!(stage.shown().contains("row 3\n") && !stage.shown().contains("row 2\n"));
}

/// The name in the marked row of a table.
fn marked(stage: &Stage, columns: u16, rows: u16) -> Option<String> {
    let all = stage.rows(columns, rows);
    let row = all.iter().find_map(|row| row.strip_prefix("❯ "))?;
    row.split_whitespace().next().map(str::to_owned)
}

#[test]
fn a_press_on_a_row_of_a_table_marks_that_row_in_every_window() {
    let row = |number: usize| match number % 5 {
        0 => TableRow::head(format!("Title {number}")),
        1 => TableRow::new(format!("row{number}"), format!("row{number}")).with_detail("a\nb\nc"),
        _ => TableRow::new(format!("row{number}"), format!("row{number}")).with_detail(""),
    };
    for (columns, rows) in [(100, 40), (80, 24), (60, 12), (40, 9), (30, 6), (24, 7)] {
        for (count, has_notice) in [(4, false), (30, false), (30, true), (4, true)] {
            let mut stage = Stage::new();
            stage.resize(columns, rows);
            let all = (0..count).map(row).collect();
            let table = Table::new(TableOf::Servers, "Servers", all);
            stage.fact(Fact::Table { table: Box::new(table), is_again: false });
            let ends = (0..2 * count).step_by(3);
            for (downs, shown_row) in ends.flat_map(|downs| (0..rows).map(move |row| (downs, row)))
            {
                (0..downs).for_each(|_| stage.press(KeyCode::Down));
                if has_notice {
                    stage.fact(Fact::Notice("something was done".to_owned()));
                }
                let shown = stage.rows(columns, rows);
                let Some(text) = shown.get(usize::from(shown_row)) else { continue };
                let name = text.trim_start_matches("❯ ").trim_start();
                let name = name.split_whitespace().next().unwrap_or_default().to_owned();
                let before = marked(&stage, columns, rows);
                mouse(&mut stage, MouseEvent::Pressed, Place { row: shown_row, column: 3 });
                let after = marked(&stage, columns, rows);
                if name.starts_with("row") {
                    assert_eq!(after, Some(name), "{columns}x{rows}: {shown:#?}");
                } else {
                    assert_eq!(after, before, "{columns}x{rows}, row {shown_row}: {shown:#?}");
                }
                (0..count).for_each(|_| stage.press(KeyCode::Up));
            }
        }
    }
}

#[test]
fn a_second_press_on_a_row_does_what_enter_does_and_the_wheel_marks_others() {
    let mut stage = Stage::new();
    let row = |id: &str| TableRow {
        value: format!("/p/{id}.md"),
        ..TableRow::new(id, id).with_detail("")
    };
    let rows = ["one", "two", "three", "four", "five"].map(row).into();
    let table = Table::new(TableOf::Agents, "Agents · 5", rows);
    stage.fact(Fact::Table { table: Box::new(table), is_again: false });
    press(&mut stage, "three");
    assert!(stage.shown().contains("❯ three"), "{}", stage.shown());
    assert_eq!(stage.take_effects(), []);
    press(&mut stage, "three");
    let subject = "/p/three.md".to_owned();
    let fields = Effect::Table { of: TableOf::AgentFields, subject, is_again: false };
    assert_eq!(stage.take_effects(), [fields]);
    mouse(&mut stage, MouseEvent::WheelUp, Place::default());
    assert!(stage.shown().contains("❯ one"), "{}", stage.shown());
    mouse(&mut stage, MouseEvent::WheelDown, Place::default());
    assert!(stage.shown().contains("❯ four"), "{}", stage.shown());
    // While words are written, a press marks nothing and loses no word.
    stage.types("n");
    stage.types("checker");
    press(&mut stage, "checker");
    assert!(stage.shown().contains("checker"), "{}", stage.shown());
}

#[test]
fn page_keys_scroll_and_those_of_a_draft_stay_its_own() {
    let mut stage = Stage::new();
    stage.press(KeyCode::PageUp);
    assert_eq!(stage.take_effects(), [Effect::Scroll(Scroll::Pages(-1))]);
    let top = centurion_tui::Key::plain(KeyCode::Home).ctrl();
    stage.key(top);
    assert_eq!(stage.take_effects(), [Effect::Scroll(Scroll::Top)]);
    stage.types("words");
    stage.key(top);
    assert!(!stage.take_effects().iter().any(|it| matches!(it, Effect::Scroll(_))));
    stage.types("my ");
    assert!(stage.shown().contains("❯ my words"), "{}", stage.shown());
}

#[test]
fn the_screen_is_chosen_by_a_command_and_kept() {
    let mut stage = Stage::new();
    stage.says("/tui fullscreen");
    let effects = stage.take_effects();
    assert!(effects.contains(&Effect::Use(Tui::Fullscreen)), "{effects:?}");
    let kept = Effect::KeepSetting { key: "tui", value: "fullscreen".to_owned() };
    assert!(effects.contains(&kept), "{effects:?}");
    stage.says("/tui sideways");
    assert!(!stage.take_effects().iter().any(|it| matches!(it, Effect::Use(_))));
}
