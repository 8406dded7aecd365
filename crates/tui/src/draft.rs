//! The draft: the text that a person is writing. Pure: no clock, no file, no terminal.
//!
//! It is made of graphemes and chips. Every change is a replacement of a range, which undo turns around.

mod change;
mod completion;
mod history;
mod kept;
mod layout;
mod movement;
#[cfg(test)]
mod tests;
mod unit;
mod vi;

pub use completion::Completion;
pub use history::History;
pub use kept::{DraftError, load_draft, save_draft};

use crate::frame::{Line, Place};
use change::Changes;
use unit::{Chip, Unit, units};
pub(crate) use vi::{Vi, ViMode};

/// A change of the draft or of the cursor's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EditAction {
    NewLine,
    DeleteBackward,
    DeleteForward,
    DeleteWordBackward,
    DeleteWordForward,
    KillToLineStart,
    KillToLineEnd,
    Yank,
    /// Replaces what was yanked by what was killed before it.
    YankOlder,
    Undo,
    Redo,
    Left,
    Right,
    Up,
    Down,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    Start,
    End,
    Transpose,
}

/// A prompt as it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    /// The whole text, pastes included.
    pub text: String,
    /// The text as the draft showed it, with chips.
    pub shown: String,
    /// The attachments, in order.
    pub attachments: Vec<u64>,
}

/// A paste of more lines or characters is a chip.
const MOST_PASTED_LINES: usize = 10;
const MOST_PASTED_CHARACTERS: usize = 1000;

/// The longest text that is written letter by letter: a longer one is a chip, wherever it comes from.
const MOST_WRITTEN: usize = 32 * 1024;

/// The most texts in the ring of what was killed.
const MOST_KILLED: usize = 30;

/// The text that a person is writing.
#[derive(Clone, Debug)]
pub struct Draft {
    units: Vec<Unit>,
    cursor: usize,
    changes: Changes,
    killed: Vec<Vec<Unit>>,
    /// The last action killed: the next one adds to it.
    is_killing: bool,
    /// The text that the last action yanked: its place in the draft, and its number, from the newest.
    yanked: Option<(usize, usize)>,
    /// The column that a move between rows keeps.
    goal: Option<u16>,
    width: u16,
    chips: usize,
    stash: Option<Vec<Unit>>,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            units: Vec::new(),
            cursor: 0,
            changes: Changes::default(),
            killed: Vec::new(),
            is_killing: false,
            yanked: None,
            goal: None,
            width: 80,
            chips: 0,
            stash: None,
        }
    }
}

/// Drafts are the same if they read the same, with the cursor at the same place: how they came about is left out.
impl PartialEq for Draft {
    fn eq(&self, other: &Self) -> bool {
        (&self.units, self.cursor, &self.stash) == (&other.units, other.cursor, &other.stash)
    }
}

impl Draft {
    pub fn new() -> Self {
        Self::default()
    }

    /// The part of the draft that is kept: without what can be undone and yanked.
    pub(crate) fn kept(&self) -> Self {
        let Self { units, cursor, chips, stash, .. } = self;
        Self {
            units: units.clone(),
            cursor: *cursor,
            chips: *chips,
            stash: stash.clone(),
            ..Self::default()
        }
    }

    /// A draft of a text, with the cursor at its end.
    pub fn of(text: &str) -> Self {
        let mut draft = Self::default();
        draft.units = draft.units_of(text);
        draft.cursor = draft.units.len();
        draft
    }

    /// The units of a text. Pastes of it that are there already stay chips, and so does what is too long.
    fn units_of(&mut self, text: &str) -> Vec<Unit> {
        if text.len() > MOST_WRITTEN {
            self.chips += 1;
            return vec![Unit::chip(Chip::pasted(self.chips, text))];
        }
        unit::with_chips(text, &self.units)
    }

    /// The whole text, pastes included.
    pub fn text(&self) -> String {
        self.units.iter().map(Unit::text).collect()
    }

    /// The text before the cursor, chips left out: what a completion looks at.
    pub fn before_cursor(&self) -> String {
        self.units[..self.cursor].iter().map(Unit::typed).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// The place of the cursor, in graphemes and chips.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    pub fn insert(&mut self, char: char) {
        self.begin();
        let mut bytes = [0; 4];
        self.insert_text(char.encode_utf8(&mut bytes), true);
    }

    /// Inserts a paste: a long one as a chip. The same paste again, right behind its chip, expands it.
    pub fn paste(&mut self, text: &str) {
        self.begin();
        let is_long = text.split('\n').count() > MOST_PASTED_LINES
            || text.chars().count() > MOST_PASTED_CHARACTERS;
        if !is_long {
            return self.insert_text(text, false);
        }
        if let Some(before) = self.cursor.checked_sub(1)
            && self.units[before].text() == text
            && self.units[before].is_chip()
            && text.len() <= MOST_WRITTEN
        {
            return self.replace(before..self.cursor, units(text), false);
        }
        self.chips += 1;
        let chip = Unit::chip(Chip::pasted(self.chips, text));
        self.replace(self.cursor..self.cursor, vec![chip], false);
    }

    /// Inserts a chip for an attachment, such as an image.
    pub fn attach(&mut self, id: u64, label: &str) {
        self.begin();
        let chip = Unit::chip(Chip::attachment(id, label));
        self.replace(self.cursor..self.cursor, vec![chip], false);
    }

    /// Replaces so many graphemes before the cursor: a completion.
    pub fn complete(&mut self, graphemes: usize, text: &str) {
        self.begin();
        let start = self.cursor.saturating_sub(graphemes);
        self.replace(start..self.cursor, units(text), false);
    }

    /// Replaces everything: a text of the history, or of an editor. Undo brings back what was there.
    pub fn set(&mut self, text: &str) {
        self.begin();
        let units = self.units_of(text);
        self.replace(0..self.units.len(), units, false);
    }

    /// Does an action; returns whether it changed something.
    pub fn apply(&mut self, action: EditAction) -> bool {
        let (was_killing, yanked, goal) = (self.is_killing, self.yanked, self.goal);
        let before = (self.cursor, self.changes.count());
        self.begin();
        match action {
            EditAction::NewLine => self.insert_text("\n", false),
            EditAction::DeleteBackward => {
                self.delete(self.cursor.saturating_sub(1)..self.cursor);
            }
            EditAction::DeleteForward => {
                self.delete(self.cursor..(self.cursor + 1).min(self.units.len()));
            }
            EditAction::DeleteWordBackward => {
                self.kill(self.word_left()..self.cursor, was_killing);
            }
            EditAction::DeleteWordForward => self.kill(self.cursor..self.word_right(), was_killing),
            EditAction::KillToLineStart => {
                // At its start already: the line end before it.
                let start = self.line_start();
                let start = if start == self.cursor { start.saturating_sub(1) } else { start };
                self.kill(start..self.cursor, was_killing);
            }
            EditAction::KillToLineEnd => {
                let end = self.line_end();
                let end = if end == self.cursor { (end + 1).min(self.units.len()) } else { end };
                self.kill(self.cursor..end, was_killing);
            }
            EditAction::Yank => self.yank(0, None),
            EditAction::YankOlder => {
                if let Some((start, index)) = yanked {
                    self.yank(index + 1, Some(start));
                }
            }
            EditAction::Undo => self.undo(),
            EditAction::Redo => self.redo(),
            EditAction::Transpose => self.transpose(),
            EditAction::Up | EditAction::Down => {
                self.goal = goal;
                self.move_row(action == EditAction::Down);
            }
            movement => self.cursor = self.target(movement),
        }
        before != (self.cursor, self.changes.count())
    }

    /// Says how wide the draft is shown: moves between rows follow its rows.
    pub fn set_width(&mut self, width: u16) {
        self.width = width;
    }

    /// The rows of the draft at a width, and the place of the cursor in them.
    pub fn lines(&self, width: u16) -> (Vec<Line>, Place) {
        let layout = layout::DraftLayout::new(&self.units, width);
        (layout.lines(&self.units), layout.place(&self.units, self.cursor))
    }

    /// Puts the draft aside, or brings back what was put aside; returns whether something moved.
    pub fn stash(&mut self) -> bool {
        self.begin();
        if self.units.is_empty() {
            let Some(units) = self.stash.take() else { return false };
            self.replace(0..0, units, false);
        } else {
            let units = self.units.clone();
            self.replace(0..self.units.len(), Vec::new(), false);
            self.stash = Some(units);
        }
        true
    }

    /// Takes the draft to send it. Undo brings it back.
    pub fn take(&mut self) -> Submission {
        self.begin();
        let submission = Submission {
            text: self.text(),
            shown: self.units.iter().map(Unit::shown).collect(),
            attachments: self.units.iter().filter_map(Unit::attachment).collect(),
        };
        self.replace(0..self.units.len(), Vec::new(), false);
        submission
    }

    /// Forgets what the last action left for the next one.
    fn begin(&mut self) {
        self.is_killing = false;
        self.yanked = None;
        self.goal = None;
    }

    fn insert_text(&mut self, text: &str, is_typed: bool) {
        // A mark joins the grapheme before it.
        let start = self.cursor.saturating_sub(1);
        if let Some(before) = self.units.get(start).filter(|it| self.cursor > 0 && !it.is_chip()) {
            let joined = units(&format!("{}{text}", before.typed()));
            if joined.first() != Some(before) {
                return self.replace(start..self.cursor, joined, false);
            }
        }
        self.replace(self.cursor..self.cursor, units(text), is_typed);
    }
}
