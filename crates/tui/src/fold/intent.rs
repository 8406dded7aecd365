//! The meaning of keys where a text is written.

use crate::draft::{Draft, EditAction};
use crate::input::Key;
use crate::keys::{Action, Context, Meaning};
use crate::model::{Focus, Model};

/// The meaning of a key at the prompt, or at that of an agent in focus.
pub(super) fn meaning(model: &mut Model, key: Key) -> Meaning {
    let context = match model.focus {
        Focus::Agent(_) => Context::Focus,
        Focus::Prompt | Focus::Tree(_) => Context::Chat,
    };
    model.bindings.meaning(context, key)
}

/// The change of a text that is the meaning of a key.
pub(super) fn change_of(meaning: Meaning) -> Option<TextChange> {
    match meaning {
        Meaning::Insert(char) => Some(TextChange::Insert(char)),
        Meaning::Action(Action::NewLine) => Some(TextChange::Insert('\n')),
        Meaning::Action(Action::Edit(action)) => Some(TextChange::Edit(action)),
        Meaning::Action(_) | Meaning::ChordBegun | Meaning::None => None,
    }
}

/// A change of a text.
#[derive(Clone, Copy, Debug)]
pub(super) enum TextChange {
    Insert(char),
    Edit(EditAction),
}

impl TextChange {
    pub(super) fn apply(self, draft: &mut Draft) {
        match self {
            Self::Insert(char) => draft.insert(char),
            Self::Edit(action) => drop(draft.apply(action)),
        }
    }
}
