//! Lines in words, for screen readers and terminals that can do nothing else.

use centurion_tui::{
    Effect, Fact, Frame, Happening, Input, Look, PickFor, PickRow, Picker, PlainSurface, Size,
    Surface,
};

use super::stage::{Stage, command, ended, init, progress, started, streamed, turn_end};

const SIZE: Size = Size { columns: 80, rows: 24 };

fn stage() -> (Stage, PlainSurface) {
    let mut stage = Stage::new();
    stage.model.set_plain();
    (stage, PlainSurface::new(Look::default()))
}

/// What the surface writes for the present state.
fn written(stage: &Stage, surface: &mut PlainSurface) -> String {
    let mut out = Vec::new();
    let frame = Frame { print: Vec::new(), ..stage.frame(80, 24) };
    surface.draw(&frame, SIZE, &mut out);
    String::from_utf8(out).unwrap()
}

fn types(stage: &mut Stage, line: &str) {
    stage.happens(Happening::Input(&Input::Line(line.to_owned())));
}

#[test]
fn who_asks_and_what_is_said_once_with_numbered_answers() {
    let (mut stage, mut surface) = stage();
    stage.event(&init());
    stage.event(&started("a1", "prover", "Run examples", None));
    stage.asks(Some("a1"), &["prover"], command("make check"));
    stage.pass(1_200);
    let said = written(&stage, &mut surface);
    assert!(said.contains("agent prover: asks, Bash make check\n"), "{said}");
    for line in ["question 1 of 1 · Bash · main ▸ prover", "make check", "1 y once", "3 n no"] {
        assert!(said.lines().any(|it| it.starts_with(line)), "{line}: {said}");
    }
    assert_eq!(written(&stage, &mut surface), "", "nothing is written again");
    stage.pass(60_000);
    stage.event(&progress("a1", "Bash make check", 1, 900));
    assert_eq!(written(&stage, &mut surface), "", "no clock and no spinner speaks");
    assert_eq!(stage.model.next_tick(), None, "and none wakes the program");
    types(&mut stage, "3 use just");
    let effects = stage.take_effects();
    let answer = effects.iter().find_map(|it| match it {
        Effect::Answer { answer, .. } => Some(answer.clone()),
        _ => None,
    });
    assert_eq!(answer.unwrap()["message"], "the user said no: use just");
}

#[test]
fn a_number_that_was_typed_before_the_question_was_read_answers_nothing() {
    let (mut stage, _) = stage();
    stage.asks(None, &[], command("rm -rf build"));
    types(&mut stage, "1");
    assert!(stage.take_effects().is_empty());
    stage.pass(1_200);
    types(&mut stage, "build it");
    let sent = |it: &Effect| matches!(it, Effect::Submit { text, .. } if text == "build it");
    assert!(stage.take_effects().iter().any(sent), "words are a prompt");
    stage.pass(1_200);
    types(&mut stage, "1");
    assert!(stage.take_effects().iter().any(|it| matches!(it, Effect::Answer { .. })));
}

#[test]
fn marks_are_words_and_a_list_is_chosen_from_by_number() {
    let (mut stage, mut surface) = stage();
    for event in streamed(&["Hello *you*."]) {
        stage.event(&event);
    }
    stage.event(&started("a1", "scout", "Look", None));
    stage.event(&ended("a1", "completed", "found it"));
    stage.event(&turn_end());
    types(&mut stage, "hi");
    let row = |text: &str| PickRow {
        text: text.to_owned(),
        hint: String::new(),
        value: format!("/model {text}"),
    };
    let rows = vec![row("opus"), row("haiku")];
    stage.fact(Fact::Pick(Picker::new("Model", PickFor::Command, rows)));
    let said = written(&stage, &mut surface);
    assert!(said.contains("1 opus") && said.contains("2 haiku"), "{said}");
    types(&mut stage, "2");
    let sent = |it: &Effect| matches!(it, Effect::Submit { text, .. } if text == "/model haiku");
    assert!(stage.take_effects().iter().any(sent));
}

#[test]
fn printed_lines_have_words_in_the_place_of_marks() {
    let (mut stage, _) = stage();
    let mut said = Vec::new();
    let mut note = |stage: &Stage| {
        said.extend(stage.frame(80, 24).print.iter().map(centurion_tui::Line::text));
    };
    // The stage takes lines out after each happening: the model is looked at before.
    for event in [started("a1", "scout", "Look", None), ended("a1", "completed", "found it")] {
        centurion_tui::fold(&mut stage.model, stage.now, Happening::Event(&event));
    }
    note(&stage);
    assert!(said.iter().any(|line| line.starts_with("agent starts: scout")), "{said:?}");
    assert!(said.iter().any(|line| line.starts_with("done: scout")), "{said:?}");
    assert!(said.iter().any(|line| line.starts_with("  result: found it")), "{said:?}");
}

#[test]
fn a_screen_reader_hears_each_statement_once_and_the_cursor_never_moves() {
    // Failure 18: what is drawn again is read again, and what moves the cursor is not read at all.
    let (mut stage, mut surface) = stage();
    let mut all = Vec::new();
    let mut draw = |stage: &Stage| surface.draw(&stage.frame(80, 24), SIZE, &mut all);
    stage.event(&init());
    draw(&stage);
    for number in 0..5 {
        let id = format!("a{number}");
        stage.event(&started(&id, &format!("scout{number}"), "Look \u{1b}[2J around", None));
        draw(&stage);
        stage.event(&progress(&id, "Bash make", 1, 900));
        stage.pass(3_000);
        draw(&stage);
        stage.asks(Some(&id), &[&format!("scout{number}")], command("make check"));
        draw(&stage);
        stage.pass(3_000);
        draw(&stage);
        types(&mut stage, "1");
        draw(&stage);
        stage.event(&ended(&id, "completed", "found it"));
        draw(&stage);
    }
    stage.event(&turn_end());
    draw(&stage);
    let text = String::from_utf8(all).unwrap();
    assert!(!text.contains(|char: char| char.is_control() && char != '\n'), "{text:?}");
    assert_eq!(text.matches("agent scout3: asks").count(), 1, "{text}");
}
