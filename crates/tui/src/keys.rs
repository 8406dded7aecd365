//! Keys: the meaning of a key in a context, from defaults and `keybindings.json`.

mod action;
mod defaults;
mod file;
mod keystroke;
#[cfg(test)]
mod tests;

pub use action::{Action, CommandNumber, Context};
pub use file::KeyMistake;

use std::path::Path;

use crate::input::{Key, KeyCode};

/// The meaning of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    Action(Action),
    /// The key begins a chord: the next one decides.
    ChordBegun,
    /// The key writes a character.
    Insert(char),
    None,
}

/// A chord in a context. Without an action it does nothing.
#[derive(Clone, Debug)]
struct Binding {
    context: Context,
    chord: Vec<Key>,
    action: Option<Action>,
}

/// All bindings, of which later ones go before earlier ones, and the chord that has begun.
#[derive(Clone, Debug)]
pub struct Bindings {
    all: Vec<Binding>,
    /// The commands that keys are bound to.
    commands: Vec<String>,
    begun: Vec<Key>,
}

impl Bindings {
    pub fn defaults() -> Self {
        Self { all: defaults::bindings(), commands: Vec::new(), begun: Vec::new() }
    }

    /// The defaults with the changes of a `keybindings.json`.
    pub fn read(text: &str, file: &Path) -> (Self, Vec<KeyMistake>) {
        let mut bindings = Self::defaults();
        let mistakes = bindings.add(text, file);
        (bindings, mistakes)
    }

    /// Adds the changes of one more `keybindings.json`; returns what is not in force of it.
    pub fn add(&mut self, text: &str, file: &Path) -> Vec<KeyMistake> {
        let (changes, mistakes) = file::read(text, file, &mut self.commands);
        // The draft of an agent in focus has the keys of the chat too; what the file says of it goes before.
        let of_chat = changes.iter().filter(|it| it.context == Context::Chat);
        let of_focus = of_chat.filter(|it| !defaults::is_own_key_of_focus(&it.chord)).cloned();
        let of_focus: Vec<Binding> =
            of_focus.map(|it| Binding { context: Context::Focus, ..it }).collect();
        self.all.extend(of_focus);
        self.all.extend(changes);
        self.begun.clear();
        mistakes
    }

    /// The words of a command that a key is bound to, without the slash.
    pub fn command(&self, number: CommandNumber) -> &str {
        self.commands.get(number.0).map_or("", String::as_str)
    }

    /// The meaning of a key; remembers a chord that has begun.
    pub fn meaning(&mut self, context: Context, key: Key) -> Meaning {
        self.begun.push(key);
        for context in [context, Context::Global] {
            if let Some(action) = self.bound(context, &self.begun).map(|it| it.action) {
                self.begun.clear();
                return action.map_or(Meaning::None, Meaning::Action);
            }
            if self.begins_chord(context) {
                return Meaning::ChordBegun;
            }
        }
        let is_alone = self.begun.len() == 1;
        self.begun.clear();
        match key {
            Key { code: KeyCode::Char(char), ctrl: false, alt: false, .. } if is_alone => {
                Meaning::Insert(char)
            }
            _ => Meaning::None,
        }
    }

    /// The action of one key in a place itself. No chord begins or continues by this.
    pub(crate) fn own(&self, context: Context, key: Key) -> Option<Action> {
        let is_alone = self.begun.is_empty();
        self.bound(context, &[key]).filter(|_| is_alone)?.action
    }

    /// Forgets a chord that has begun: another place has the focus.
    pub fn forget_chord(&mut self) {
        self.begun.clear();
    }

    /// The chord of an action, as it is shown to a person.
    pub fn shown(&self, context: Context, action: Action) -> Option<String> {
        let found = self.all.iter().rev().find(|it| {
            it.action == Some(action)
                && (it.context == context || it.context == Context::Global)
                && self.bound(it.context, &it.chord).is_some_and(|last| last.action == it.action)
        });
        let keys: Vec<String> = found?.chord.iter().map(|key| keystroke::shown(*key)).collect();
        Some(keys.join(" "))
    }

    fn bound(&self, context: Context, chord: &[Key]) -> Option<&Binding> {
        let mut all = self.all.iter().rev();
        all.find(|it| it.context == context && it.chord == chord)
    }

    fn begins_chord(&self, context: Context) -> bool {
        self.all.iter().any(|it| {
            it.context == context
                && it.chord.len() > self.begun.len()
                && it.chord.starts_with(&self.begun)
                && self.bound(context, &it.chord).is_some_and(|last| last.action.is_some())
        })
    }
}
