//! Keys: the defaults as the design lists them, chords, and files of people.

use std::collections::HashSet;

use super::action::ACTIONS;
use super::defaults::DEFAULTS;
use super::keystroke::chord;
use super::*;
use crate::draft::EditAction;

fn press(bindings: &mut Bindings, context: Context, keys: &str) -> Meaning {
    let mut meaning = Meaning::None;
    for key in chord(keys).unwrap() {
        meaning = bindings.meaning(context, key);
    }
    meaning
}

/// Failure 24: keys do not do what is written. Each default key does what the table of the design says.
#[test]
fn every_default_key_has_its_meaning() {
    let mut bindings = Bindings::defaults();
    for (context, keys, action) in DEFAULTS {
        assert_eq!(press(&mut bindings, context, keys), Meaning::Action(action), "{keys}");
    }
    for (keys, action) in [
        ("enter", Action::Submit),
        ("ctrl+x enter", Action::SubmitLater),
        ("ctrl+enter", Action::SubmitNow),
        ("ctrl+x ctrl+s", Action::SubmitNow),
        ("shift+enter", Action::NewLine),
        ("alt+enter", Action::NewLine),
        ("ctrl+j", Action::NewLine),
        ("ctrl+g", Action::Editor),
        ("ctrl+x ctrl+e", Action::Editor),
        ("ctrl+s", Action::Stash),
        ("ctrl+v", Action::PasteImage),
        ("ctrl+r", Action::HistorySearch),
        ("esc", Action::Interrupt),
        ("ctrl+c", Action::Clear),
        ("ctrl+d", Action::Exit),
        ("ctrl+z", Action::Suspend),
        ("ctrl+l", Action::Redraw),
        ("ctrl+x down", Action::FocusTree),
        ("alt+a", Action::OldestAsk),
        ("ctrl+b", Action::Background),
        ("ctrl+x ctrl+b", Action::Background),
        ("ctrl+x ctrl+k", Action::StopAll),
        ("ctrl+t", Action::Tasks),
        ("ctrl+o", Action::Viewer),
        ("shift+tab", Action::CycleMode),
        ("alt+p", Action::PickModel),
        ("alt+t", Action::ToggleThinking),
        ("ctrl+w", Action::Edit(EditAction::DeleteWordBackward)),
    ] {
        assert_eq!(press(&mut bindings, Context::Chat, keys), Meaning::Action(action), "{keys}");
    }
}

#[test]
fn no_default_key_stands_twice_and_every_action_has_a_name() {
    let mut seen = HashSet::new();
    for (context, keys, action) in DEFAULTS {
        assert!(seen.insert((context, chord(keys).unwrap())), "{keys} stands twice");
        assert!(ACTIONS.iter().any(|(_, known)| *known == action), "{action:?} has no name");
    }
    let names: HashSet<&str> = ACTIONS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), ACTIONS.len());
}

#[test]
fn letters_are_written_and_a_broken_chord_writes_nothing() {
    let mut bindings = Bindings::defaults();
    assert_eq!(press(&mut bindings, Context::Chat, "x"), Meaning::Insert('x'));
    assert_eq!(press(&mut bindings, Context::Chat, "ctrl+x"), Meaning::ChordBegun);
    assert_eq!(press(&mut bindings, Context::Chat, "q"), Meaning::None);
    assert_eq!(press(&mut bindings, Context::Chat, "q"), Meaning::Insert('q'));
}

#[test]
fn a_file_changes_keys_and_its_mistakes_show_their_lines() {
    let text = r#"{ "bindings": [
  { "context": "Chat", "bindings": {
    "ctrl+e": "chat:externalEditor",
    "ctrl+s": null,
    "ctrl+x ctrl+e": null,
    "cmd+k": "chat:submit",
    "alt+m": "chat:dance",
    "ctrl+c": "chat:submit"
  } },
  { "context": "Nowhere", "bindings": { "a": "chat:submit" } },
  { "context": "Global", "bindings": { "K": "app:help" } }
] }"#;
    let (mut bindings, mistakes) = Bindings::read(text, Path::new("keybindings.json"));
    let lines: Vec<usize> = mistakes.iter().map(|mistake| mistake.line).collect();
    assert_eq!(lines, [6, 7, 8, 10], "{mistakes:#?}");
    let chat = Context::Chat;
    assert_eq!(press(&mut bindings, chat, "ctrl+e"), Meaning::Action(Action::Editor));
    assert_eq!(press(&mut bindings, chat, "ctrl+s"), Meaning::None);
    assert_eq!(press(&mut bindings, chat, "shift+k"), Meaning::Action(Action::Help));
    assert_eq!(press(&mut bindings, chat, "ctrl+c"), Meaning::Action(Action::Clear));
    assert_eq!(bindings.shown(chat, Action::Editor).as_deref(), Some("ctrl+e"));
    assert_eq!(bindings.shown(chat, Action::Stash), None);
}

#[test]
fn a_key_is_bound_to_a_command_and_what_names_none_is_told() {
    let text = r#"{ "bindings": [
  { "context": "Chat", "bindings": {
    "alt+c": "command:compact",
    "alt+h": "command:/effort high",
    "alt+n": "command:",
    "alt+o": "command:a\nb"
  } },
  { "context": "Tree", "bindings": { "alt+c": "command:compact" } }
] }"#;
    let (mut bindings, mistakes) = Bindings::read(text, Path::new("keybindings.json"));
    let lines: Vec<usize> = mistakes.iter().map(|mistake| mistake.line).collect();
    assert_eq!(lines, [5, 6, 8], "{mistakes:#?}");
    let mut command = |context, keys: &str| match press(&mut bindings, context, keys) {
        Meaning::Action(Action::Command(number)) => Some(bindings.command(number).to_owned()),
        _ => None,
    };
    assert_eq!(command(Context::Chat, "alt+c").as_deref(), Some("compact"));
    assert_eq!(command(Context::Chat, "alt+h").as_deref(), Some("effort high"));
    assert_eq!(command(Context::Focus, "alt+c").as_deref(), Some("compact"));
    assert_eq!(command(Context::Chat, "alt+n"), None);
    assert_eq!(command(Context::Tree, "alt+c"), None);
}

/// The draft of an agent in focus has the keys of the chat too, as a person has changed them.
#[test]
fn a_changed_key_of_the_chat_is_changed_in_the_focus_of_an_agent() {
    let text = r#"{ "bindings": [
  { "context": "Focus", "bindings": { "ctrl+s": "chat:stash" } },
  { "context": "Chat", "bindings": {
    "ctrl+e": "chat:externalEditor", "ctrl+s": null, "esc": null, "ctrl+x up": "app:help"
  } }
] }"#;
    let (mut bindings, mistakes) = Bindings::read(text, Path::new("keybindings.json"));
    assert!(mistakes.is_empty(), "{mistakes:#?}");
    for (keys, meaning) in [
        ("ctrl+e", Meaning::Action(Action::Editor)),
        ("ctrl+s", Meaning::Action(Action::Stash)),
        ("esc", Meaning::Action(Action::Back)),
        ("ctrl+x up", Meaning::Action(Action::Parent)),
    ] {
        assert_eq!(press(&mut bindings, Context::Focus, keys), meaning, "{keys}");
    }
    assert_eq!(press(&mut bindings, Context::Chat, "esc"), Meaning::None);
}

#[test]
fn what_no_block_can_be_is_told_with_its_line_and_the_rest_counts() {
    let text = r#"{ "bindings": [
  { "context": "Chta", "bindings": { "ctrl+e": "chat:externalEditor" } },
  { "bindings": { "ctrl+e": "chat:submit" } },
  { "context": 7, "bindings": { "ctrl+e": "chat:submit" } },
  { "context": "Chat" },
  { "context": "Chat", "bindings": ["ctrl+e"] },
  "Chat",
  { "context": "Chat", "bindings": { "ctrl+e": ["chat:submit"], "alt+m": "/compact" } },
  { "context": "Chat", "bindings": { "alt+e": "chat:externalEditor" } }
] }"#;
    let (mut bindings, mistakes) = Bindings::read(text, Path::new("keybindings.json"));
    let told: Vec<(usize, &str)> =
        mistakes.iter().map(|it| (it.line, it.message.as_str())).collect();
    let has = |line: usize, words: &str| {
        assert!(told.iter().any(|it| it.0 == line && it.1.contains(words)), "{words}: {told:#?}");
    };
    has(2, "context `Chta` is not known here; there are Global, Chat,");
    // A block that names nothing is told at the last name before it.
    has(2, "has no `context`");
    has(3, "has no `context`");
    has(5, "has no `bindings`");
    has(6, "has no `bindings`");
    has(8, "an action is a name or null");
    has(8, "action `/compact` is not known here");
    assert_eq!(press(&mut bindings, Context::Chat, "alt+e"), Meaning::Action(Action::Editor));
    assert_eq!(
        press(&mut bindings, Context::Chat, "ctrl+e"),
        Meaning::Action(Action::Edit(EditAction::LineEnd)),
        "what is wrong changes nothing"
    );
}

#[test]
fn a_file_that_is_no_json_says_where() {
    let (_, mistakes) = Bindings::read("{\n  oops", Path::new("k.json"));
    assert_eq!(mistakes.len(), 1);
    assert_eq!(mistakes[0].line, 2);
}
