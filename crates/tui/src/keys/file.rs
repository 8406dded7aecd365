//! `keybindings.json`: contexts, and in each the chords with their actions.

use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;

use super::action::ACTIONS;
use super::keystroke::chord;
use super::{Action, Binding, CommandNumber, Context};
use crate::input::{Key, KeyCode};
use crate::text::foreign_text;

/// A part of `keybindings.json` that is not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyMistake {
    pub file: PathBuf,
    pub line: usize,
    pub message: String,
}

/// The beginning of an action that is a command.
const COMMAND: &str = "command:";

/// The bindings of a file, and its mistakes. What is right counts, whatever else is wrong. Commands join the others.
pub(super) fn read(
    text: &str,
    file: &Path,
    commands: &mut Vec<String>,
) -> (Vec<Binding>, Vec<KeyMistake>) {
    let (bindings, mistakes) = (Vec::new(), Vec::new());
    let mut reader = Reader { text, file, place: 0, commands, bindings, mistakes };
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
    commands: &'a mut Vec<String>,
    bindings: Vec<Binding>,
    mistakes: Vec<KeyMistake>,
}

impl Reader<'_> {
    fn take(&mut self, value: &Value) {
        let Some(blocks) = value["bindings"].as_array() else {
            return self.complain_at(1, "`bindings` is missing, or no list".to_owned());
        };
        for block in blocks {
            self.take_block(block);
        }
    }

    fn take_block(&mut self, block: &Value) {
        let context = self.context_of(block);
        let Some(bindings) = block["bindings"].as_object() else {
            let line = self.line();
            let what = "a block has no `bindings`, or what is there is no object of keys";
            return self.complain_at(line, what.to_owned());
        };
        for (keys, action) in bindings {
            let line = self.line_of(keys);
            if let Some(context) = context {
                self.bind(context, keys, action, line);
            }
        }
    }

    /// The context of a block, if it names one that there is.
    fn context_of(&mut self, block: &Value) -> Option<Context> {
        let Some(name) = block["context"].as_str() else {
            let line = self.line();
            self.complain_at(line, "a block has no `context`, or one that is no text".to_owned());
            return None;
        };
        let line = self.line_of(name);
        let known = Context::ALL.iter().find(|(known, _)| *known == name);
        if known.is_none() {
            let all: Vec<&str> = Context::ALL.iter().map(|(known, _)| *known).collect();
            let (name, all) = (foreign_text(name), all.join(", "));
            self.complain_at(line, format!("context `{name}` is not known here; there are {all}"));
        }
        known.map(|(_, context)| *context)
    }

    fn bind(&mut self, context: Context, keys: &str, action: &Value, line: usize) {
        let Some(chord) = chord(keys) else {
            let keys = foreign_text(keys);
            return self.complain_at(line, format!("`{keys}` is no key that a terminal sends"));
        };
        if let [key] = chord.as_slice()
            && is_reserved(*key)
        {
            return self.complain_at(line, format!("`{keys}` always means the same"));
        }
        let action = match action {
            Value::Null => None,
            Value::String(name) if name.starts_with(COMMAND) => {
                match self.command(context, &name[COMMAND.len()..]) {
                    Ok(action) => Some(action),
                    Err(mistake) => return self.complain_at(line, mistake.to_string()),
                }
            }
            Value::String(name) => {
                let known = ACTIONS.iter().find(|(known, _)| known == name);
                let Some((_, action)) = known else {
                    let name = foreign_text(name);
                    return self.complain_at(line, format!("action `{name}` is not known here"));
                };
                Some(*action)
            }
            _ => return self.complain_at(line, "an action is a name or null".to_owned()),
        };
        self.bindings.push(Binding { context, chord, action });
    }

    /// The action of a command, with or without its slash and with words behind it.
    fn command(&mut self, context: Context, typed: &str) -> Result<Action, CommandMistake> {
        let typed = typed.trim().trim_start_matches('/');
        let name = typed.split(' ').next().unwrap_or_default();
        let is_name = name.starts_with(char::is_alphanumeric)
            && name.chars().all(|it| it.is_alphanumeric() || "-_:.".contains(it));
        if !is_name || typed.contains(char::is_control) {
            return Err(CommandMistake::NoName(foreign_text(typed)));
        }
        if context != Context::Chat {
            return Err(CommandMistake::Context);
        }
        self.commands.push(typed.to_owned());
        Ok(Action::Command(CommandNumber(self.commands.len() - 1)))
    }

    /// The line of the next place where a name stands in quotes.
    fn line_of(&mut self, name: &str) -> usize {
        let quoted = Value::from(name).to_string();
        if let Some(at) = self.text[self.place..].find(&quoted) {
            self.place += at + quoted.len();
        }
        self.line()
    }

    /// The line of what was looked for last.
    fn line(&self) -> usize {
        self.text[..self.place].matches('\n').count() + 1
    }

    fn complain_at(&mut self, line: usize, message: String) {
        self.mistakes.push(KeyMistake { file: self.file.to_owned(), line, message });
    }
}

/// The reason why no key is bound to a command.
#[derive(Debug, Error)]
enum CommandMistake {
    #[error("`{COMMAND}{0}` names no command")]
    NoName(String),
    #[error("a command can be bound in the context Chat alone")]
    Context,
}

/// Keys with which a person leaves, whatever a file says.
fn is_reserved(key: Key) -> bool {
    key.ctrl && matches!(key.code, KeyCode::Char('c' | 'd'))
}
