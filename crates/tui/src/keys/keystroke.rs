//! Keystrokes as people write them: `ctrl+x ctrl+k`, `shift+tab`.

use crate::input::{Key, KeyCode};

/// The names of keys, the first of each key is the one that is shown.
const NAMES: [(&str, KeyCode); 20] = [
    ("enter", KeyCode::Enter),
    ("return", KeyCode::Enter),
    ("esc", KeyCode::Escape),
    ("escape", KeyCode::Escape),
    ("tab", KeyCode::Tab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("space", KeyCode::Char(' ')),
    ("plus", KeyCode::Char('+')),
    ("minus", KeyCode::Char('-')),
    ("comma", KeyCode::Char(',')),
];

/// The keys of a chord; `None` if one is no key that a terminal sends.
pub(super) fn chord(text: &str) -> Option<Vec<Key>> {
    let keys: Option<Vec<Key>> = text.split_whitespace().map(keystroke).collect();
    keys.filter(|keys| !keys.is_empty())
}

fn keystroke(text: &str) -> Option<Key> {
    let (modifiers, name) = match text.rsplit_once('+') {
        Some((modifiers, "")) => (modifiers.trim_end_matches('+'), "+"),
        Some(parts) => parts,
        None => ("", text),
    };
    let mut key = Key::plain(code(name)?);
    for modifier in modifiers.split('+').filter(|it| !it.is_empty()) {
        match modifier.to_ascii_lowercase().as_str() {
            "ctrl" | "control" => key.ctrl = true,
            "alt" | "opt" | "option" | "meta" => key.alt = true,
            "shift" => key.shift = true,
            _ => return None,
        }
    }
    if let KeyCode::Char(char) = key.code {
        if key.shift && !key.ctrl && char.is_alphabetic() {
            key = Key { code: KeyCode::Char(char.to_ascii_uppercase()), shift: false, ..key };
        } else if key.ctrl {
            key.code = KeyCode::Char(char.to_ascii_lowercase());
        }
    }
    Some(key)
}

fn code(name: &str) -> Option<KeyCode> {
    let mut chars = name.chars();
    if let (Some(char), None) = (chars.next(), chars.next()) {
        return Some(KeyCode::Char(char));
    }
    let name = name.to_ascii_lowercase();
    if let Some(number) = name.strip_prefix('f').and_then(|number| number.parse().ok()) {
        return (1..=24).contains(&number).then_some(KeyCode::F(number));
    }
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, code)| *code)
}

/// The keystroke as it is shown.
pub(super) fn shown(key: Key) -> String {
    let name = match key.code {
        KeyCode::F(number) => format!("f{number}"),
        code => match (NAMES.iter().find(|(_, known)| *known == code), code) {
            (Some((name, _)), _) => (*name).to_owned(),
            (None, KeyCode::Char(char)) => char.to_string(),
            (None, _) => String::new(),
        },
    };
    let modifiers = [(key.ctrl, "ctrl+"), (key.alt, "alt+"), (key.shift, "shift+")];
    let modifiers = modifiers.iter().filter(|it| it.0).map(|it| it.1);
    modifiers.chain([name.as_str()]).collect()
}
