//! The mouse in the live region: presses do what keys do there, and answer nothing that a key would not answer.

use centurion_tui::{
    CommandHint, Effect, Fact, Happening, Input, KeyCode, Mouse, MouseEvent, Place, Scroll, Tui,
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
