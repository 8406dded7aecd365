//! Moves of the cursor.

use super::layout::DraftLayout;
use super::unit::Unit;
use super::{Draft, EditAction};
use crate::frame::Place;

impl Draft {
    /// The place to which a move leads.
    pub(super) fn target(&self, action: EditAction) -> usize {
        match action {
            EditAction::Left => self.cursor.saturating_sub(1),
            EditAction::Right => (self.cursor + 1).min(self.units.len()),
            EditAction::WordLeft => self.word_left(),
            EditAction::WordRight => self.word_right(),
            EditAction::LineStart => self.line_start(),
            EditAction::LineEnd => self.line_end(),
            EditAction::Start => 0,
            EditAction::End => self.units.len(),
            _ => self.cursor,
        }
    }

    /// Moves the cursor to a place of the draft's rows, or to the end of the row.
    pub(crate) fn go_to(&mut self, place: Place) {
        self.begin();
        let layout = DraftLayout::new(&self.units, self.width);
        let last = u16::try_from(layout.len().saturating_sub(1)).unwrap_or(u16::MAX);
        self.cursor = layout.unit_at(&self.units, place.row.min(last), place.column);
    }

    pub(super) fn word_left(&self) -> usize {
        let before = &self.units[..self.cursor];
        let word = before.iter().rposition(Unit::is_word).map_or(0, |at| at + 1);
        before[..word].iter().rposition(|unit| !unit.is_word()).map_or(0, |at| at + 1)
    }

    pub(super) fn word_right(&self) -> usize {
        let len = self.units.len();
        let after = self.units.iter().enumerate().skip(self.cursor);
        let word = after.clone().find(|(_, unit)| unit.is_word()).map_or(len, |it| it.0);
        after.skip(word - self.cursor).find(|(_, unit)| !unit.is_word()).map_or(len, |it| it.0)
    }

    pub(super) fn line_start(&self) -> usize {
        self.units[..self.cursor].iter().rposition(Unit::is_line_end).map_or(0, |at| at + 1)
    }

    pub(super) fn line_end(&self) -> usize {
        let after = self.units[self.cursor..].iter().position(Unit::is_line_end);
        after.map_or(self.units.len(), |at| self.cursor + at)
    }

    /// Moves to the row above or below, to the column from which the moves began.
    pub(super) fn move_row(&mut self, is_down: bool) {
        let layout = DraftLayout::new(&self.units, self.width);
        let place = layout.place(&self.units, self.cursor);
        let goal = self.goal.unwrap_or(place.column);
        let row = if is_down { Some(place.row + 1) } else { place.row.checked_sub(1) };
        if let Some(row) = row.filter(|row| usize::from(*row) < layout.len()) {
            self.cursor = layout.unit_at(&self.units, row, goal);
            self.goal = Some(goal);
        }
    }
}
