//! The viewer of a transcript: every row can be reached, and a search goes through all pages.

use centurion_tui::{Effect, Fact, KeyCode, Line};

use super::stage::Stage;

/// The pages that are asked for: the offset before which each ends.
fn asked(stage: &mut Stage) -> Vec<Option<u64>> {
    let page = |effect| match effect {
        Effect::Page { before, .. } => Some(before),
        _ => None,
    };
    stage.take_effects().into_iter().filter_map(page).collect()
}

fn page(stage: &mut Stage, lines: &[String], start: u64) {
    let lines = lines.iter().map(|line| Line::from(line.as_str())).collect();
    stage.fact(Fact::Page { agent: None, lines, start });
}

/// A line of so many words, each with its number.
fn words(name: &str, count: usize) -> String {
    (0..count).map(|number| format!("{name}{number} ")).collect::<Vec<_>>().concat()
}

#[test]
fn every_row_of_a_line_that_is_taller_than_the_pane_can_be_seen() {
    let mut stage = Stage::new();
    stage.resize(40, 12);
    stage.ctrl('o');
    page(&mut stage, &["before".to_owned(), words("w", 400), "after".to_owned()], 0);
    let mut seen = stage.rows(40, 12).join("\n");
    for _ in 0..200 {
        stage.press(KeyCode::Up);
        seen.push_str(&stage.rows(40, 12).join("\n"));
    }
    for number in 0..400 {
        assert!(
            seen.contains(&format!("w{number} ")) || seen.contains(&format!("w{number}\n")),
            "{number}"
        );
    }
    assert!(stage.rows(40, 12)[1].contains("before"), "{:#?}", stage.rows(40, 12));
    let top = stage.rows(40, 12);
    stage.press(KeyCode::Char('g'));
    assert_eq!(stage.rows(40, 12), top, "the top is the top, however it is reached");
    stage.press(KeyCode::PageDown);
    assert_ne!(stage.rows(40, 12), top);
    stage.press(KeyCode::Char('G'));
    assert!(stage.rows(40, 12).iter().any(|row| row == "after"));
}

#[test]
fn a_search_goes_through_all_pages_and_says_if_it_found_nothing() {
    let mut stage = Stage::new();
    stage.ctrl('o');
    assert_eq!(asked(&mut stage), [None]);
    let many: Vec<String> = (0..300).map(|number| format!("line {number}")).collect();
    page(&mut stage, &many, 2_000);
    stage.types("/needle");
    stage.press(KeyCode::Enter);
    assert_eq!(asked(&mut stage), [Some(2_000)]);
    assert!(stage.shown().contains("is sought in older pages"), "{}", stage.shown());
    page(&mut stage, &many, 1_000);
    assert_eq!(asked(&mut stage), [Some(1_000)], "that page has none either");
    let mut oldest = many.clone();
    oldest[7] = "the needle".to_owned();
    page(&mut stage, &oldest, 0);
    assert_eq!(asked(&mut stage), []);
    assert!(stage.shown().contains("the needle"), "{}", stage.shown());
    stage.press(KeyCode::Char('n'));
    assert!(stage.shown().contains("/needle is not there"), "{}", stage.shown());
}

#[test]
fn a_found_line_that_is_taller_than_the_pane_is_shown_from_its_beginning() {
    let mut stage = Stage::new();
    stage.resize(40, 12);
    stage.ctrl('o');
    page(&mut stage, &[format!("needle {}", words("w", 400)), words("after", 30)], 0);
    stage.types("/needle");
    stage.press(KeyCode::Enter);
    assert!(stage.rows(40, 12).join(" ").contains("needle w0"), "{:#?}", stage.rows(40, 12));
}
