//! Keys and their effects: the keys of the design as a table, and the keys of a person's own file in every place.

use std::path::Path;

use centurion_protocol::AgentId;
use centurion_tui::{
    AskKind, AskNumber, Asked, Bindings, Effect, Happening, Key, KeyCode, Model, Question, When,
};

use super::stage::{Stage, command, init, started};

/// Presses the keys of a text such as `ctrl+x ctrl+k x`.
fn press(stage: &mut Stage, keys: &str) {
    for word in keys.split_whitespace() {
        let (modifiers, name) = word.rsplit_once('+').unwrap_or(("", word));
        let code = match name {
            "enter" => KeyCode::Enter,
            "esc" => KeyCode::Escape,
            "tab" => KeyCode::Tab,
            "up" => KeyCode::Up,
            "down" => KeyCode::Down,
            "left" => KeyCode::Left,
            "right" => KeyCode::Right,
            "backspace" => KeyCode::Backspace,
            "space" => KeyCode::Char(' '),
            name => KeyCode::Char(name.chars().next().unwrap()),
        };
        let mut key = Key::plain(code);
        key.ctrl = modifiers.contains("ctrl");
        key.alt = modifiers.contains("alt");
        key.shift = modifiers.contains("shift");
        stage.key(key);
    }
}

/// The effects of keys on a stage with two agents at work, without those that keep a draft.
fn effects(keys: &str) -> Vec<Effect> {
    let mut stage = Stage::new();
    stage.event(&init());
    stage.event(&started("a1", "scout", "Look", None));
    stage.event(&started("a2", "judge", "Weigh", None));
    press(&mut stage, keys);
    let is_kept = |it: &Effect| {
        !matches!(it, Effect::SaveDraft { .. } | Effect::Remember(_) | Effect::FindFiles(_))
    };
    stage.take_effects().into_iter().filter(is_kept).collect()
}

#[test]
fn each_key_of_the_design_has_its_effect() {
    let agent = |id: &str| AgentId::new(id);
    let sent = |text: &str, when| vec![(text.to_owned(), when)];
    for (keys, expected) in [
        ("h i enter", sent("hi", When::Next)),
        ("h i ctrl+enter", sent("hi", When::Now)),
        ("h i ctrl+x ctrl+s", sent("hi", When::Now)),
        ("h \\ enter i enter", sent("h\ni", When::Next)),
        ("h alt+enter i enter", sent("h\ni", When::Next)),
        ("h ctrl+j i enter", sent("h\ni", When::Next)),
        ("a b ctrl+a ctrl+k c ctrl+y enter", sent("cab", When::Next)),
        ("a b ctrl+_ c enter", sent("c", When::Next)),
        ("a ctrl+s b enter", sent("b", When::Next)),
    ] {
        let found: Vec<(String, When)> = effects(keys)
            .into_iter()
            .filter_map(|it| match it {
                Effect::Submit { text, when, .. } => Some((text, when)),
                _ => None,
            })
            .collect();
        assert_eq!(found, expected, "{keys}");
    }
    let show = |command: &str| Effect::Show { command: command.to_owned() };
    let page = |agent| Effect::Page { agent, before: None };
    for (keys, expected) in [
        ("h i ctrl+x enter", vec![]),
        ("esc", vec![Effect::Interrupt]),
        ("ctrl+c", vec![Effect::Interrupt]),
        ("ctrl+c ctrl+c", vec![Effect::Interrupt, Effect::Exit]),
        ("ctrl+d", vec![Effect::Exit]),
        ("ctrl+z", vec![Effect::Suspend]),
        ("ctrl+l", vec![Effect::Redraw]),
        ("a ctrl+g", vec![Effect::Editor("a".to_owned())]),
        ("a ctrl+x ctrl+e", vec![Effect::Editor("a".to_owned())]),
        ("ctrl+v", vec![Effect::PasteImage]),
        ("alt+t", vec![Effect::ToggleThinking]),
        // The draft stays: it is no place for a command of a key.
        ("a alt+p", vec![show("model")]),
        ("ctrl+b", vec![Effect::Background(None)]),
        ("ctrl+x ctrl+b", vec![Effect::Background(None)]),
        ("ctrl+x ctrl+k", vec![]),
        ("ctrl+x ctrl+k ctrl+x ctrl+k", vec![Effect::StopAll]),
        ("ctrl+o", vec![page(None)]),
        ("ctrl+o q", vec![page(None)]),
        ("shift+tab", vec![Effect::SetMode("acceptEdits".to_owned())]),
        // Two presses in one read are two steps.
        (
            "shift+tab shift+tab",
            ["acceptEdits", "plan"].map(|mode| Effect::SetMode(mode.to_owned())).to_vec(),
        ),
        ("?", vec![show("keys")]),
        // They are in the background: the key brings them back.
        ("down b", vec![Effect::Foreground(agent("a1"))]),
        ("down down b", vec![Effect::Foreground(agent("a2"))]),
        ("down ctrl+b", vec![Effect::Background(Some(agent("a1")))]),
        ("ctrl+x down x", vec![]),
        ("ctrl+x down x x", vec![Effect::StopTask(agent("a1"))]),
        ("down ctrl+o", vec![page(Some(agent("a1")))]),
        ("down ctrl+l", vec![Effect::Redraw]),
        ("down enter ctrl+o", vec![page(Some(agent("a1")))]),
        ("down enter ctrl+x right ctrl+o", vec![page(Some(agent("a2")))]),
        ("down enter esc", vec![]),
        ("ctrl+t down enter", vec![page(Some(agent("a2")))]),
        ("ctrl+t x x", vec![Effect::StopTask(agent("a1"))]),
        ("ctrl+t f", vec![Effect::Foreground(agent("a1"))]),
        ("ctrl+t m ctrl+o", vec![page(Some(agent("a1")))]),
        ("! l s enter", vec![Effect::Shell { number: 1, command: "ls".to_owned() }]),
    ] {
        assert_eq!(effects(keys), expected, "{keys}");
    }
}

#[test]
fn ctrl_r_searches_earlier_prompts_and_enter_puts_one_into_the_draft() {
    let mut stage = Stage::new();
    stage.model.set_history(vec![
        "fix the sum".to_owned(),
        "write the docs\nall of them".to_owned(),
        "fix the test".to_owned(),
    ]);
    press(&mut stage, "ctrl+r f i x");
    let shown = stage.shown();
    assert!(shown.contains("fix the sum") && !shown.contains("write the docs"), "{shown}");
    press(&mut stage, "ctrl+r enter");
    assert!(stage.take_effects().iter().all(|it| !matches!(it, Effect::Submit { .. })));
    press(&mut stage, "enter");
    let sent = |it: &Effect| matches!(it, Effect::Submit { text, .. } if text == "fix the sum");
    assert!(
        stage.take_effects().iter().any(sent),
        "the first Enter sends nothing, the second does"
    );
    stage.types("half");
    press(&mut stage, "ctrl+r esc");
    assert!(stage.shown().contains("❯ half"), "what was typed is there: {}", stage.shown());
}

/// The model with changes of a file.
fn bound(text: &str) -> Stage {
    let mut stage = Stage::new();
    let (bindings, mistakes) = Bindings::read(text, Path::new("keybindings.json"));
    assert!(mistakes.is_empty(), "{mistakes:?}");
    Model::set_bindings(&mut stage.model, bindings);
    stage
}

#[test]
fn a_file_changes_the_keys_of_every_place() {
    let mut stage = bound(
        r#"{"bindings": [
        {"context": "Tree", "bindings": {"x": null, "ctrl+w": "tree:stop"}},
        {"context": "Confirmation", "bindings": {"y": null, "1": null, "ctrl+y": "confirm:yes"}},
        {"context": "Transcript", "bindings": {"q": null, "w": "transcript:exit"}},
        {"context": "Autocomplete", "bindings": {"enter": null, "ctrl+y": "autocomplete:accept"}},
        {"context": "Select", "bindings": {"ctrl+j": "select:next"}}]}"#,
    );
    stage.event(&started("a1", "scout", "Look", None));
    press(&mut stage, "down x x");
    assert!(stage.take_effects().iter().all(|it| !matches!(it, Effect::StopTask(_))));
    press(&mut stage, "ctrl+w ctrl+w esc");
    assert!(stage.take_effects().iter().any(|it| matches!(it, Effect::StopTask(_))));

    stage.asks(None, &[], command("make"));
    stage.pass(1_200);
    press(&mut stage, "y 1");
    assert!(stage.take_effects().iter().all(|it| !matches!(it, Effect::Answer { .. })));
    press(&mut stage, "ctrl+y");
    assert!(stage.take_effects().iter().any(|it| matches!(it, Effect::Answer { .. })));

    press(&mut stage, "ctrl+o q");
    assert!(stage.shown().contains("Transcript"), "{}", stage.shown());
    press(&mut stage, "w");
    assert!(!stage.shown().contains("Transcript"), "{}", stage.shown());

    press(&mut stage, "@ s c o ctrl+y");
    assert!(stage.shown().contains("❯ @scout"), "{}", stage.shown());
}

#[test]
fn a_key_carries_out_a_command_and_leaves_the_draft_alone() {
    let mut stage = bound(
        r#"{"bindings": [{"context": "Chat", "bindings": {
            "alt+c": "command:compact", "alt+k": "command:theme", "alt+n": "command:nowhere"}}]}"#,
    );
    let hint = |name: &str| centurion_tui::CommandHint {
        name: name.to_owned(),
        about: String::new(),
        arguments: String::new(),
    };
    stage.model.set_commands(vec![hint("compact"), hint("theme")]);
    stage.types("half a thought");
    stage.take_effects();
    press(&mut stage, "alt+c");
    let effects = stage.take_effects();
    let [Effect::Submit { text, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(text, "/compact");
    assert!(stage.shown().contains("❯ half a thought"), "{}", stage.shown());
    press(&mut stage, "alt+n");
    assert!(stage.take_effects().is_empty());
    assert!(stage.shown().contains("there is no command /nowhere"), "{}", stage.shown());
    press(&mut stage, "alt+k");
    assert!(stage.shown().contains("─ Theme "), "{}", stage.shown());
}

#[test]
fn a_command_in_the_focus_of_an_agent_is_not_said_to_it_by_a_slip() {
    let mut stage = bound(r#"{"bindings": []}"#);
    let hint = centurion_tui::CommandHint {
        name: "cost".to_owned(),
        about: String::new(),
        arguments: String::new(),
    };
    stage.model.set_commands(vec![hint]);
    stage.event(&started("a1", "scout", "Look", None));
    press(&mut stage, "down enter");
    stage.says("/cost");
    let tells = |stage: &mut Stage| {
        let effects = stage.take_effects().into_iter();
        effects.filter(|it| matches!(it, Effect::Tell { .. } | Effect::Table { .. })).count()
    };
    assert_eq!(tells(&mut stage), 0);
    assert!(stage.shown().contains("/cost is for the main prompt"), "{}", stage.shown());
    press(&mut stage, "enter");
    assert_eq!(tells(&mut stage), 1, "it is said when that was meant");
    stage.says("/etc/passwd is a path");
    assert_eq!(tells(&mut stage), 1);
}

#[test]
fn letters_answer_no_question_of_an_agent_by_chance() {
    let mut stage = Stage::new();
    let option = |label: &str| (label.to_owned(), String::new());
    let question = Question {
        question: "Which?".to_owned(),
        header: "H".to_owned(),
        options: vec![option("red"), option("blue")],
        many: false,
    };
    stage.happens(Happening::Asked(Box::new(Asked {
        number: AskNumber(9),
        call: None,
        agent: None,
        path: Vec::new(),
        kind: AskKind::Questions(vec![question]),
    })));
    stage.pass(1_200);
    press(&mut stage, "y a n s e x");
    assert!(stage.take_effects().iter().all(|it| !matches!(it, Effect::Answer { .. })));
    press(&mut stage, "2");
    assert!(stage.take_effects().iter().any(|it| matches!(it, Effect::Answer { .. })));
}

#[test]
fn a_plan_is_changed_in_the_editor_and_approved_as_changed() {
    let mut stage = Stage::new();
    let text = "# Plan\n\n1. **Edit** `main.rs`".to_owned();
    stage.happens(Happening::Asked(Box::new(Asked {
        number: AskNumber(3),
        call: None,
        agent: None,
        path: vec!["architect".to_owned()],
        kind: AskKind::Plan { text: text.clone(), is_edited: false },
    })));
    stage.pass(1_200);
    let shown = stage.shown();
    assert!(shown.contains("1. Edit main.rs") && !shown.contains("**"), "as Markdown: {shown}");
    press(&mut stage, "ctrl+g");
    assert_eq!(stage.take_effects(), [Effect::EditPlan { number: AskNumber(3), text }]);
    stage.fact(centurion_tui::Fact::PlanEdited {
        number: AskNumber(3),
        text: "1. Edit lib.rs".to_owned(),
    });
    press(&mut stage, "1");
    let effects = stage.take_effects();
    let [Effect::Answer { answer, .. }] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(answer["updatedInput"]["plan"], "1. Edit lib.rs");
}
