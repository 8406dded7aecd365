//! A list to choose from: earlier prompts, models, points to go back to, tasks.

use crate::keys::Context;

/// The most rows of a list.
pub(crate) const MOST_ROWS: usize = 1_000;

/// The use that is made of the row that is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PickFor {
    /// Its value is put in the place of the draft.
    Draft,
    /// Its value is a command, which is sent as if it was typed.
    Command,
    /// Its value begins a command, which the person completes.
    Begin,
    /// The rows are for reading.
    #[default]
    Reading,
    /// The rows are agents and shells: they are viewed, stopped or focused.
    Tasks,
}

/// A row of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PickRow {
    pub text: String,
    pub hint: String,
    pub value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picker {
    pub title: String,
    pub purpose: PickFor,
    pub rows: Vec<PickRow>,
    /// The words that a row must hold.
    pub(crate) typed: String,
    pub(crate) selected: usize,
    /// Tells whether it is the search through earlier prompts.
    pub(crate) is_history: bool,
}

impl Picker {
    pub fn new(title: impl Into<String>, purpose: PickFor, rows: Vec<PickRow>) -> Self {
        let mut rows = rows;
        rows.truncate(MOST_ROWS);
        Self { title: title.into(), purpose, rows, ..Self::default() }
    }

    /// The place that its keys have in `keybindings.json`.
    pub(crate) fn context(&self) -> Context {
        if self.is_history { Context::HistorySearch } else { Context::Select }
    }

    /// True if letters are words to look for.
    pub(crate) fn is_typed(&self) -> bool {
        self.purpose != PickFor::Tasks
    }

    /// The rows that hold all words that were typed.
    pub(crate) fn fitting(&self) -> Vec<&PickRow> {
        let words: Vec<String> = self.typed.split_whitespace().map(str::to_lowercase).collect();
        let fits = |row: &&PickRow| {
            let text = format!("{} {}", row.text, row.hint).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        self.rows.iter().filter(fits).collect()
    }

    pub(crate) fn keys(&self) -> &'static str {
        match self.purpose {
            PickFor::Draft => "typing searches · enter puts it into the prompt · esc closes",
            PickFor::Command => "typing searches · enter takes it · esc closes",
            PickFor::Begin => "typing searches · enter begins it · esc closes",
            PickFor::Reading => "typing searches · esc closes",
            PickFor::Tasks => {
                "enter view · m message · f wait for it, or not · x x stop · esc closes"
            }
        }
    }
}
