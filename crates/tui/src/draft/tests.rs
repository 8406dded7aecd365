//! The draft against a simple model, and what must never be lost.

use proptest::prelude::*;

use super::*;

fn type_in(draft: &mut Draft, text: &str) {
    for char in text.chars() {
        draft.insert(char);
    }
}

fn rows(draft: &Draft, width: u16) -> Vec<String> {
    draft.lines(width).0.iter().map(Line::text).collect()
}

#[test]
fn graphemes_are_one_step() {
    let mut draft = Draft::new();
    type_in(&mut draft, "e\u{301}👩\u{200d}👧日");
    assert_eq!(draft.cursor(), 3);
    draft.apply(EditAction::DeleteBackward);
    draft.apply(EditAction::DeleteBackward);
    assert_eq!(draft.text(), "e\u{301}");
}

#[test]
fn what_was_killed_in_a_row_is_yanked_as_one() {
    let mut draft = Draft::of("one two three");
    draft.apply(EditAction::DeleteWordBackward);
    draft.apply(EditAction::DeleteWordBackward);
    assert_eq!(draft.text(), "one ");
    draft.apply(EditAction::Left);
    draft.apply(EditAction::KillToLineStart);
    draft.apply(EditAction::Yank);
    assert_eq!(draft.text(), "one ");
    draft.apply(EditAction::YankOlder);
    assert_eq!(draft.text(), "two three ");
}

/// Failure 12: pastes are cut. What is sent has every byte, and the chip says how much that is.
#[test]
fn a_long_paste_is_a_chip_that_is_sent_whole() {
    let paste = "a line of the log\n".repeat(499) + "the end";
    let mut draft = Draft::of("see: ");
    draft.paste(&paste);
    assert_eq!(rows(&draft, 80), ["see: [paste 1 · 500 lines · 9 KB]"]);
    draft.apply(EditAction::DeleteBackward);
    assert_eq!(draft.text(), "see: ");
    draft.apply(EditAction::Undo);
    let sent = draft.take();
    assert_eq!(sent.text, format!("see: {paste}"));
    assert_eq!(sent.shown, "see: [paste 1 · 500 lines · 9 KB]");
}

#[test]
fn a_text_that_is_too_long_to_be_written_is_a_chip_wherever_it_comes_from() {
    let long = "word ".repeat(20_000);
    let mut set = Draft::new();
    set.set(&long);
    let mut pasted_again = Draft::new();
    pasted_again.paste(&long);
    pasted_again.paste(&long);
    for (draft, text) in
        [(Draft::of(&long), long.clone()), (set, long.clone()), (pasted_again, long.repeat(2))]
    {
        assert!(draft.units.len() <= 2 && draft.units.iter().all(Unit::is_chip));
        assert_eq!(draft.text(), text, "and it is whole");
    }
}

#[test]
fn pasting_again_expands_a_chip() {
    let paste = "line\n".repeat(20);
    let mut draft = Draft::new();
    draft.paste(&paste);
    draft.paste(&paste);
    assert_eq!((draft.text(), rows(&draft, 80).len()), (paste, 21));
}

#[test]
fn a_text_that_comes_back_from_an_editor_keeps_its_chips() {
    let mut draft = Draft::new();
    draft.paste(&"line\n".repeat(20));
    let shown = draft.clone().take().shown;
    draft.set(&format!("before {shown} after"));
    assert_eq!(draft.text(), format!("before {} after", "line\n".repeat(20)));
}

/// Failure 11: drafts vanish.
#[test]
fn what_was_sent_cleared_or_put_aside_comes_back() {
    let mut draft = Draft::of("long thought");
    draft.take();
    draft.apply(EditAction::Undo);
    assert_eq!(draft.text(), "long thought");
    assert!(draft.stash());
    type_in(&mut draft, "quick");
    draft.take();
    assert!(draft.stash());
    assert_eq!(draft.text(), "long thought");
}

#[test]
fn moves_between_rows_keep_their_column() {
    let mut draft = Draft::of("abcdef\nxy\nabcdef");
    assert!(draft.apply(EditAction::Up) && draft.apply(EditAction::Up));
    assert_eq!(draft.cursor(), 6);
    assert!(!draft.apply(EditAction::Up), "the first row has none above: history begins here");
}

/// Failure 16: wide text is askew. The cursor stands where the next character will.
#[test]
fn the_cursor_stands_behind_wide_characters() {
    let mut draft = Draft::of("日本語");
    assert_eq!(draft.lines(80).1, Place { row: 0, column: 6 });
    draft.apply(EditAction::Left);
    assert_eq!(draft.lines(80).1, Place { row: 0, column: 4 });
    assert_eq!(rows(&draft, 5), ["日本", "語"]);
}

#[test]
fn a_kept_draft_is_its_users_alone_and_comes_back_with_its_chips() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("main.json");
    let mut draft = Draft::of("see ");
    draft.paste(&"line\n".repeat(20));
    save_draft(&draft, &path).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let found = load_draft(&path).unwrap();
    assert_eq!((found.text(), found.lines(80)), (draft.text(), draft.lines(80)));
    save_draft(&Draft::new(), &path).unwrap();
    assert!(load_draft(&path).unwrap().is_empty() && !path.exists());
}

#[derive(Clone, Debug)]
enum Step {
    Insert(char),
    Paste(String),
    Do(EditAction),
}

fn step() -> impl Strategy<Value = Step> {
    use EditAction as E;
    let actions = vec![
        E::NewLine,
        E::DeleteBackward,
        E::DeleteForward,
        E::DeleteWordBackward,
        E::DeleteWordForward,
        E::KillToLineStart,
        E::KillToLineEnd,
        E::Yank,
        E::YankOlder,
        E::Undo,
        E::Redo,
        E::Left,
        E::Right,
        E::Up,
        E::Down,
        E::WordLeft,
        E::WordRight,
        E::LineStart,
        E::LineEnd,
        E::Start,
        E::End,
        E::Transpose,
    ];
    prop_oneof![
        prop::char::ranges(vec!['a'..='e', ' '..=' ', '日'..='日', '\u{301}'..='\u{301}'].into())
            .prop_map(Step::Insert),
        prop_oneof!["[a-z \n]{0,12}", Just("long\n".repeat(30))].prop_map(Step::Paste),
        prop::sample::select(actions).prop_map(Step::Do),
    ]
}

proptest! {
    #[test]
    fn simple_edits_are_those_of_a_string(steps in prop::collection::vec(step(), 0..60)) {
        // The model: letters before and after the cursor, without marks.
        let (mut draft, mut before, mut after) = (Draft::new(), String::new(), String::new());
        for step in steps {
            match step {
                Step::Insert(char) if char != '\u{301}' => {
                    draft.insert(char);
                    before.push(char);
                }
                Step::Do(EditAction::DeleteBackward) => {
                    draft.apply(EditAction::DeleteBackward);
                    before.pop();
                }
                Step::Do(EditAction::Left) => {
                    draft.apply(EditAction::Left);
                    if let Some(char) = before.pop() {
                        after.insert(0, char);
                    }
                }
                Step::Do(EditAction::LineEnd) => {
                    draft.apply(EditAction::LineEnd);
                    before.push_str(&std::mem::take(&mut after));
                }
                _ => {}
            }
            prop_assert_eq!(draft.text(), format!("{before}{after}"));
            prop_assert_eq!(draft.before_cursor(), before.clone());
        }
    }

    #[test]
    fn undo_goes_back_to_nothing_and_redo_to_the_end(
        steps in prop::collection::vec(step(), 0..60)
    ) {
        let mut draft = Draft::new();
        for step in steps {
            match step {
                Step::Insert(char) => draft.insert(char),
                Step::Paste(text) => draft.paste(&text),
                Step::Do(EditAction::Undo | EditAction::Redo) => {}
                Step::Do(action) => {
                    draft.apply(action);
                }
            }
            prop_assert!(draft.cursor() <= draft.units.len());
            let (lines, place) = draft.lines(12);
            prop_assert!(usize::from(place.row) < lines.len());
        }
        let end = draft.text();
        while draft.apply(EditAction::Undo) {}
        prop_assert_eq!(draft.text(), "");
        while draft.apply(EditAction::Redo) {}
        prop_assert_eq!(draft.text(), end);
    }
}
