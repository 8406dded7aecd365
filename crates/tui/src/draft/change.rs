//! Changes of a draft, and how they are undone.

use std::ops::Range;

use super::unit::Unit;
use super::{Draft, MOST_KILLED};

/// The most changes that can be undone.
const MOST_CHANGES: usize = 500;

/// One replacement: what stood there, and how much stands there now.
#[derive(Clone, Debug)]
struct Change {
    at: usize,
    removed: Vec<Unit>,
    inserted: usize,
    cursor: usize,
    /// Letters that were typed one after the other are one change.
    is_typed: bool,
}

/// The changes that were made, and those that were undone.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    done: Vec<Change>,
    undone: Vec<Change>,
    count: u64,
}

impl Changes {
    /// Grows with every change.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

impl Draft {
    /// The one place where the text changes.
    pub(super) fn replace(&mut self, range: Range<usize>, new: Vec<Unit>, is_typed: bool) {
        if range.is_empty() && new.is_empty() {
            return;
        }
        self.changes.undone.clear();
        let is_end_of_word = new.last().is_some_and(|unit| !unit.is_word());
        let change = self.exchange(range, new, is_typed && !is_end_of_word);
        match self.changes.done.last_mut() {
            Some(last)
                if is_typed
                    && last.is_typed
                    && change.removed.is_empty()
                    && last.at + last.inserted == change.at =>
            {
                last.inserted += change.inserted;
                last.is_typed = change.is_typed;
            }
            _ => self.changes.done.push(change),
        }
        if self.changes.done.len() > MOST_CHANGES {
            self.changes.done.remove(0);
        }
    }

    fn exchange(&mut self, range: Range<usize>, new: Vec<Unit>, is_typed: bool) -> Change {
        self.changes.count += 1;
        let (at, inserted, cursor) = (range.start, new.len(), self.cursor);
        let removed: Vec<Unit> = self.units.splice(range, new).collect();
        self.cursor = at + inserted;
        Change { at, removed, inserted, cursor, is_typed }
    }

    pub(super) fn undo(&mut self) {
        let Some(change) = self.changes.done.pop() else { return };
        let back = self.exchange(change.at..change.at + change.inserted, change.removed, false);
        self.cursor = change.cursor;
        self.changes.undone.push(back);
    }

    pub(super) fn redo(&mut self) {
        let Some(change) = self.changes.undone.pop() else { return };
        let back = self.exchange(change.at..change.at + change.inserted, change.removed, false);
        self.changes.done.push(back);
    }

    pub(super) fn delete(&mut self, range: Range<usize>) {
        self.replace(range, Vec::new(), false);
    }

    /// Deletes a range, which can be yanked. What is killed in a row is one text.
    pub(super) fn kill(&mut self, range: Range<usize>, was_killing: bool) {
        if range.is_empty() {
            return;
        }
        self.is_killing = true;
        let killed = self.units[range.clone()].to_vec();
        let is_before = range.end == self.cursor;
        self.delete(range);
        match self.killed.last_mut().filter(|_| was_killing) {
            Some(last) if is_before => {
                last.splice(0..0, killed);
            }
            Some(last) => last.extend(killed),
            None => self.killed.push(killed),
        }
        if self.killed.len() > MOST_KILLED {
            self.killed.remove(0);
        }
    }

    /// Inserts a killed text, counted from the newest, in place of what was yanked before.
    pub(super) fn yank(&mut self, index: usize, replaced: Option<usize>) {
        let Some(last) = self.killed.len().checked_sub(1) else { return };
        let index = index % self.killed.len();
        let text = self.killed[last - index].clone();
        let start = replaced.unwrap_or(self.cursor);
        self.replace(start..self.cursor, text, false);
        self.yanked = Some((start, index));
    }

    /// Exchanges the graphemes before and at the cursor.
    pub(super) fn transpose(&mut self) {
        let at = self.cursor.min(self.units.len().saturating_sub(1));
        if at == 0 {
            return;
        }
        let pair = vec![self.units[at].clone(), self.units[at - 1].clone()];
        self.replace(at - 1..at + 1, pair, false);
    }
}
