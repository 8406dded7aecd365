//! Questions that cross each other and a person's typing.

use centurion_engine::{Reply, SavedChange};
use centurion_tui::{
    AskKind, AskNumber, Asked, Effect, Happening, Key, KeyCode, Permission, Question,
};
use serde_json::{Value, json};

use super::stage::{Stage, command, started};

fn answers(effects: &[Effect]) -> Vec<&Value> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Answer { answer, .. } => Some(answer),
            _ => None,
        })
        .collect()
}

#[test]
fn random_typing_through_a_hundred_asks_answers_none_and_loses_no_letter() {
    // Failure 2: a dialog eats typing, and consents.
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut stage = Stage::new();
        let mut typed = String::new();
        for _ in 0..100 {
            stage.asks(None, &[], command("rm -rf build"));
            for _ in 0..random.usize(1..12) {
                let char =
                    *random.choice(&['y', 'n', '1', '2', '3', 'a', 's', 'e', 'x', ' ']).unwrap();
                typed.push(char);
                stage.press(KeyCode::Char(char));
                // Slow enough for a dialog to be tempted, and never as slow as someone who reads.
                stage.pass(random.u64(0..690));
            }
        }
        assert!(answers(&stage.take_effects()).is_empty(), "seed {seed}");
        stage.press(KeyCode::Enter);
        let sent = stage.take_effects().into_iter().find_map(|effect| match effect {
            Effect::Submit { text, .. } => Some(text),
            _ => None,
        });
        assert_eq!(sent.unwrap_or_default(), typed, "seed {seed}");
    }
}

#[test]
fn a_key_just_after_a_dialog_opened_is_for_the_draft() {
    let mut stage = Stage::new();
    stage.types("hello");
    stage.asks(None, &[], command("make"));
    assert!(stage.shown().contains("? main asks"), "the status says so until it opens");
    stage.pass(700);
    assert!(stage.shown().contains("1 of 1 · Bash · main"), "{}", stage.shown());
    stage.pass(399);
    stage.press(KeyCode::Char('y'));
    assert!(answers(&stage.take_effects()).is_empty());
    stage.pass(699);
    stage.press(KeyCode::Char('y'));
    assert!(answers(&stage.take_effects()).is_empty(), "it waits for quiet keys anew");
    stage.pass(1_100);
    stage.press(KeyCode::Char('y'));
    assert_eq!(answers(&stage.take_effects()), [&json!({"behavior": "allow"})]);
    stage.press(KeyCode::Enter);
    assert!(
        stage
            .take_effects()
            .iter()
            .any(|it| matches!(it, Effect::Submit { text, .. } if text == "helloyy"))
    );
}

#[test]
fn the_yes_for_one_ask_is_none_for_the_next() {
    let mut stage = Stage::new();
    stage.asks(None, &[], command("one"));
    stage.asks(None, &[], command("two"));
    stage.pass(1_200);
    stage.press(KeyCode::Char('y'));
    assert!(stage.shown().contains("1 of 1 · Bash"), "the next opens at once: {}", stage.shown());
    stage.press(KeyCode::Char('y'));
    assert_eq!(answers(&stage.take_effects()).len(), 1, "a double press answers one");
    stage.pass(1_200);
    stage.press(KeyCode::Char('n'));
    let effects = stage.take_effects();
    assert_eq!(answers(&effects)[0]["behavior"], "deny");
}

#[test]
fn one_ask_hides_no_other_and_one_that_is_withdrawn_closes_its_own_dialog_alone() {
    // Failure 22: an ask hides another.
    let mut stage = Stage::new();
    let first = stage.asks(None, &[], command("one"));
    stage.asks(None, &["scout"], command("two"));
    stage.asks(None, &["scout", "prover"], command("three"));
    stage.pass(1_200);
    assert!(stage.shown().contains("1 of 3") && stage.shown().contains("one"), "{}", stage.shown());
    stage.happens(Happening::Withdrawn(first));
    stage.pass(1_200);
    assert!(stage.shown().contains("1 of 2 · Bash · main ▸ scout"), "{}", stage.shown());
    stage.ctrl('n');
    assert!(stage.shown().contains("2 of 2 · Bash · main ▸ scout ▸ prover"), "{}", stage.shown());
    stage.pass(500);
    stage.press(KeyCode::Char('1'));
    stage.pass(500);
    assert!(stage.shown().contains("1 of 1 · Bash · main ▸ scout"), "{}", stage.shown());
    assert_eq!(answers(&stage.take_effects()).len(), 1);
}

#[test]
fn the_dialog_says_who_asks_the_whole_command_why_and_which_rule() {
    // Failure 14: who asks, and why?
    let mut stage = Stage::new();
    stage.event(&started("a1", "writer", "Document sum.sh", None));
    stage.event(&started("a2", "prover", "Run examples", Some("a1")));
    let long = format!("make check {}", "-j4 ".repeat(60));
    let permission = Permission {
        because:
            "the rule `Bash(make *)` from /p/.claude/settings.json:7 asks for approval each time"
                .to_owned(),
        rule: Some("`Bash(make *)` from /p/.claude/settings.json:7".to_owned()),
        suggestions: Vec::new(),
        ..command(long.trim())
    };
    stage.asks(Some("a2"), &["writer", "prover"], permission);
    stage.pass(1_200);
    let shown = stage.shown();
    assert!(shown.contains("main ▸ writer ▸ prover · Run examples"), "{shown}");
    let words = shown.matches("-j4").count();
    assert_eq!(words, 60, "nothing of the command is cut:\n{shown}");
    assert!(shown.contains("rule: `Bash(make *)` from /p/.claude/settings.json:7"), "{shown}");
    assert!(shown.contains("changes this folder · sandbox on, no network"), "{shown}");
    stage.press(KeyCode::Char('2'));
    stage.press(KeyCode::Char('a'));
    assert!(
        answers(&stage.take_effects()).is_empty(),
        "where always is not offered, its key is dead"
    );
}

#[test]
fn the_rule_that_is_shown_is_the_rule_that_is_written() {
    // Failure 15: "don't ask again" asks again.
    let mut stage = Stage::new();
    stage.asks(None, &[], command("cargo test -p x"));
    stage.pass(1_200);
    let shown = stage.shown();
    assert!(
        shown.contains("always: Bash(cargo test -p x) → .claude/settings.local.json"),
        "{shown}"
    );
    stage.press(KeyCode::Char('a'));
    let effects = stage.take_effects();
    let Reply::Allowed { remember, .. } = centurion_host::reply(answers(&effects)[0]) else {
        panic!("{effects:?}")
    };
    let [remember] = remember.as_slice() else { panic!("{remember:?}") };
    let SavedChange::Rules { texts, .. } = &remember.what else { panic!("{remember:?}") };
    assert_eq!(texts, &["Bash(cargo test -p x)"]);
    assert_eq!(format!("{:?}", remember.destination), "LocalSettings");
}

#[test]
fn a_no_with_words_carries_them_and_a_changed_command_runs_as_changed() {
    let mut stage = Stage::new();
    stage.asks(None, &[], command("make"));
    stage.pass(1_200);
    stage.press(KeyCode::Tab);
    stage.types("use just");
    stage.press(KeyCode::Enter);
    let effects = stage.take_effects();
    assert_eq!(answers(&effects)[0]["message"], "the user said no: use just");
    stage.asks(None, &[], command("make"));
    stage.pass(1_200);
    stage.press(KeyCode::Char('e'));
    stage.types(" -n");
    stage.press(KeyCode::Enter);
    let effects = stage.take_effects();
    assert_eq!(answers(&effects)[0]["updatedInput"]["command"], "make -n");
}

#[test]
fn questions_are_answered_by_choice_several_choices_and_own_words() {
    let mut stage = Stage::new();
    let option = |label: &str| (label.to_owned(), String::new());
    let question = |text: &str, many: bool| Question {
        question: text.to_owned(),
        header: "H".to_owned(),
        options: vec![option("red"), option("blue")],
        many,
    };
    stage.happens(Happening::Asked(Box::new(Asked {
        number: AskNumber(9),
        call: None,
        agent: None,
        path: Vec::new(),
        kind: AskKind::Questions(vec![
            question("One?", false),
            question("Many?", true),
            question("Own?", false),
        ]),
    })));
    stage.pass(1_200);
    stage.press(KeyCode::Char('2'));
    stage.press(KeyCode::Char('1'));
    stage.press(KeyCode::Char('2'));
    stage.press(KeyCode::Enter);
    stage.press(KeyCode::Char('3'));
    stage.types("green");
    stage.press(KeyCode::Enter);
    assert!(answers(&stage.take_effects()).is_empty(), "several answers are looked at once more");
    assert!(stage.shown().contains("1 One?: blue"), "{}", stage.shown());
    stage.press(KeyCode::Char('1'));
    stage.press(KeyCode::Char('1'));
    stage.press(KeyCode::Right);
    stage.press(KeyCode::Right);
    assert!(stage.shown().contains("1 One?: red"), "{}", stage.shown());
    stage.press(KeyCode::Char('1'));
    stage.press(KeyCode::Char('2'));
    stage.press(KeyCode::Right);
    stage.press(KeyCode::Right);
    stage.press(KeyCode::Enter);
    let effects = stage.take_effects();
    let expected = json!({"One?": "blue", "Many?": "red, blue", "Own?": "green"});
    assert_eq!(answers(&effects)[0]["updatedInput"]["answers"], expected, "{effects:?}");
}

#[test]
fn an_agent_that_asks_is_marked_in_the_tree_until_it_is_answered() {
    let mut stage = Stage::new();
    stage.event(&started("a1", "writer", "Document", None));
    stage.types("x");
    stage.asks(Some("a1"), &["writer"], command("make"));
    assert!(stage.shown().contains("? asks: Bash make"), "{}", stage.shown());
    stage.key(Key::plain(KeyCode::Char('a')).alt());
    stage.press(KeyCode::Char('y'));
    assert_eq!(answers(&stage.take_effects()).len(), 1, "alt+a opens it for an answer at once");
    assert!(!stage.shown().contains("asks"), "{}", stage.shown());
}

#[test]
fn escape_takes_the_harmless_choice_and_trusts_no_folder() {
    let mut stage = Stage::new();
    let kind = AskKind::Choice {
        title: "Trust this folder?".to_owned(),
        lines: vec!["it brings rules".to_owned()],
        choices: vec!["go on without it".to_owned(), "trust it".to_owned()],
    };
    let asked = Asked { number: AskNumber(9), call: None, agent: None, path: Vec::new(), kind };
    stage.happens(Happening::Asked(Box::new(asked)));
    stage.pass(2_000);
    stage.press(KeyCode::Escape);
    let effects = stage.take_effects();
    assert_eq!(answers(&effects), [&json!({"chosen": 0})]);
}

#[test]
fn an_ask_that_is_put_off_waits_for_its_person() {
    let mut stage = Stage::new();
    stage.asks(None, &[], command("make"));
    stage.pass(1_200);
    stage.ctrl('c');
    stage.pass(5_000);
    assert!(stage.shown().contains("? main asks: alt+a"), "{}", stage.shown());
    assert_eq!(stage.model.next_tick(), None, "nothing moves meanwhile");
    stage.key(Key::plain(KeyCode::Char('a')).alt());
    stage.press(KeyCode::Char('y'));
    assert_eq!(answers(&stage.take_effects()).len(), 1);
}
