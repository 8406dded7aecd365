//! `keybindings.json`: contexts, and in each the chords with their actions.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::action::ACTIONS;
use super::keystroke::chord;
use super::{Binding, Context};
use crate::input::{Key, KeyCode};

/// A part of `keybindings.json` that is not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyMistake {
    pub file: PathBuf,
    pub line: usize,
    pub message: String,
}

/// The bindings of a file, and its mistakes. What is right counts, whatever else is wrong.
pub(super) fn read(text: &str, file: &Path) -> (Vec<Binding>, Vec<KeyMistake>) {
    let mut reader = Reader { text, file, place: 0, bindings: Vec::new(), mistakes: Vec::new() };
    match serde_json::from_str::<Value>(text) {
        Ok(value) => reader.take(&value),
        Err(error) => reader.complain_at(error.line(), format!("not JSON: {error}")),
    }
    (reader.bindings, reader.mistakes)
}

struct Reader<'a> {
    text: &'a str,
    file: &'a Path,
    /// The place up to which the text was looked through for names: they are read in the order in which they stand there.
    place: usize,
    bindings: Vec<Binding>,
    mistakes: Vec<KeyMistake>,
}

impl Reader<'_> {
    fn take(&mut self, value: &Value) {
        let Some(blocks) = value["bindings"].as_array() else {
            return self.complain_at(1, "`bindings` is missing, or no list".to_owned());
        };
        for block in blocks {
            let name = block["context"].as_str().unwrap_or_default();
            let context = Context::ALL.iter().find(|(known, _)| *known == name);
            if context.is_none() {
                let line = self.line_of(name);
                self.complain_at(line, format!("context `{name}` is not known here"));
            }
            for (keys, action) in block["bindings"].as_object().into_iter().flatten() {
                let line = self.line_of(keys);
                if let Some((_, context)) = context {
                    self.bind(*context, keys, action, line);
                }
            }
        }
    }

    fn bind(&mut self, context: Context, keys: &str, action: &Value, line: usize) {
        let Some(chord) = chord(keys) else {
            return self.complain_at(line, format!("`{keys}` is no key that a terminal sends"));
        };
        if let [key] = chord.as_slice()
            && is_reserved(*key)
        {
            return self.complain_at(line, format!("`{keys}` always means the same"));
        }
        let action = match action {
            Value::Null => None,
            Value::String(name) => match ACTIONS.iter().find(|(known, _)| known == name) {
                Some((_, action)) => Some(*action),
                None => {
                    return self.complain_at(line, format!("action `{name}` is not known here"));
                }
            },
            _ => return self.complain_at(line, "an action is a name or null".to_owned()),
        };
        self.bindings.push(Binding { context, chord, action });
    }

    /// The line of the next place where a name stands in quotes.
    fn line_of(&mut self, name: &str) -> usize {
        let quoted = Value::from(name).to_string();
        if let Some(at) = self.text[self.place..].find(&quoted) {
            self.place += at + quoted.len();
        }
        self.text[..self.place].matches('\n').count() + 1
    }

    fn complain_at(&mut self, line: usize, message: String) {
        self.mistakes.push(KeyMistake { file: self.file.to_owned(), line, message });
    }
}

/// Keys with which a person leaves, whatever a file says.
fn is_reserved(key: Key) -> bool {
    key.ctrl && matches!(key.code, KeyCode::Char('c' | 'd'))
}
