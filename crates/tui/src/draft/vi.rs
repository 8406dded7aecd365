//! vi keys: moves and changes of a draft in normal mode.

use std::ops::Range;

use super::Draft;
use super::unit::{Unit, units};

/// The most that a count repeats something.
const MOST_COUNTED: usize = 1_000;

/// The mode in which letters are written or are commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ViMode {
    #[default]
    Insert,
    Normal,
}

/// The state of vi keys: the mode, and a command that is not whole yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vi {
    pub(crate) mode: ViMode,
    count: usize,
    operator: Option<char>,
    /// The letter that a further one completes: `f`, `r`, `g`, `i`.
    begun: Option<char>,
    /// The last search in a line, for `;` and `,`.
    found: Option<(char, char)>,
}

impl Vi {
    /// Leaves the writing of text; the cursor stands on the last letter that was written.
    pub(crate) fn enter_normal(&mut self, draft: &mut Draft) {
        *self = Self { mode: ViMode::Normal, found: self.found, ..Self::default() };
        if draft.cursor > draft.line_start() {
            draft.cursor -= 1;
        }
    }

    /// Forgets a command that is not whole; whether there was one.
    pub(crate) fn forget(&mut self) -> bool {
        let had_begun = self.operator.is_some() || self.begun.is_some() || self.count > 0;
        *self = Self { mode: self.mode, found: self.found, ..Self::default() };
        had_begun
    }

    /// Takes a letter in normal mode.
    pub(crate) fn key(&mut self, draft: &mut Draft, letter: char) {
        draft.begin();
        if let Some(begun) = self.begun.take() {
            self.complete(draft, begun, letter);
            return;
        }
        match letter {
            '1'..='9' => return self.add_digit(letter),
            '0' if self.count > 0 => return self.add_digit(letter),
            'f' | 'F' | 't' | 'T' | 'r' | 'g' => return self.begun = Some(letter),
            'i' | 'a' if self.operator.is_some() => return self.begun = Some(letter),
            'd' | 'c' | 'y' if self.operator.is_none() => return self.operator = Some(letter),
            _ => {}
        }
        let count = self.count.clamp(1, MOST_COUNTED);
        if let Some(operator) = self.operator {
            if letter == operator {
                let range = draft.lines_from(draft.cursor, count);
                self.operate(draft, operator, range);
            } else if let Some(target) = self.target(draft, letter, count) {
                let range = draft.span(target, is_inclusive(letter));
                self.operate(draft, operator, range);
            }
            self.forget();
            return;
        }
        if let Some(target) = self.target(draft, letter, count) {
            draft.cursor = target;
        } else {
            self.command(draft, letter, count);
        }
        self.forget();
        if self.mode == ViMode::Normal {
            draft.stay_in_line();
        }
    }

    fn add_digit(&mut self, digit: char) {
        let digit = digit.to_digit(10).unwrap_or_default() as usize;
        self.count = (self.count * 10 + digit).min(MOST_COUNTED);
    }

    /// Does what two letters mean together.
    fn complete(&mut self, draft: &mut Draft, begun: char, letter: char) {
        let count = self.count.clamp(1, MOST_COUNTED);
        match begun {
            'r' => {
                let end = (draft.cursor + 1).min(draft.units.len());
                let at = draft.cursor;
                draft.replace(at..end, units(&letter.to_string()), false);
                draft.cursor = at;
            }
            'i' | 'a' if letter == 'w' => {
                if let Some(operator) = self.operator {
                    let range = draft.word_at(begun == 'a');
                    self.operate(draft, operator, range);
                }
            }
            'g' if letter == 'g' => self.go(draft, 0, false),
            'f' | 'F' | 't' | 'T' => {
                self.found = Some((begun, letter));
                if let Some(target) = draft.find(begun, letter, count) {
                    self.go(draft, target, matches!(begun, 'f' | 't'));
                }
            }
            _ => {}
        }
        self.forget();
    }

    /// Moves, or does what an operator does up to there.
    fn go(&mut self, draft: &mut Draft, target: usize, is_inclusive: bool) {
        match self.operator {
            Some(operator) => {
                let range = draft.span(target, is_inclusive);
                self.operate(draft, operator, range);
            }
            None => draft.cursor = target,
        }
    }

    /// The place to which a letter leads, if it is a move.
    fn target(&self, draft: &Draft, letter: char, count: usize) -> Option<usize> {
        let mut copy = draft.clone();
        let step = |copy: &mut Draft| match letter {
            'h' => copy.cursor = copy.cursor.saturating_sub(1).max(copy.line_start()),
            'l' | ' ' => copy.cursor = (copy.cursor + 1).min(copy.line_end()),
            'j' => copy.move_row(true),
            'k' => copy.move_row(false),
            'w' | 'W' => copy.cursor = copy.next_word(),
            'b' | 'B' => copy.cursor = copy.previous_word(),
            'e' | 'E' => copy.cursor = copy.word_end(),
            _ => {}
        };
        match letter {
            '0' => return Some(draft.line_start()),
            '$' => return Some(draft.line_end()),
            '^' => return Some(draft.first_letter()),
            'G' => return Some(draft.units.len()),
            ';' | ',' => {
                let (kind, sought) = self.found?;
                let turned = match kind {
                    'f' => 'F',
                    'F' => 'f',
                    't' => 'T',
                    _ => 't',
                };
                return draft.find(if letter == ';' { kind } else { turned }, sought, count);
            }
            'h' | 'l' | ' ' | 'j' | 'k' | 'w' | 'W' | 'b' | 'B' | 'e' | 'E' => {}
            _ => return None,
        }
        (0..count).for_each(|_| step(&mut copy));
        Some(copy.cursor)
    }

    /// Deletes, changes or copies a range.
    fn operate(&mut self, draft: &mut Draft, operator: char, range: Range<usize>) {
        let start = range.start;
        match operator {
            'y' => draft.copy(range),
            'c' => {
                // A line that is changed stays a line.
                let keeps_end = range.end > range.start && draft.units[range.end - 1].is_line_end();
                draft.kill(range.start..range.end - usize::from(keeps_end), false);
                self.mode = ViMode::Insert;
            }
            _ => draft.kill(range, false),
        }
        draft.cursor = start.min(draft.units.len());
        if self.mode == ViMode::Normal {
            draft.stay_in_line();
        }
    }

    /// Does what a letter means that is no move.
    fn command(&mut self, draft: &mut Draft, letter: char, count: usize) {
        let (at, end) = (draft.cursor, draft.line_end());
        let mut insert = |draft: &mut Draft, cursor: usize| {
            draft.cursor = cursor;
            self.mode = ViMode::Insert;
        };
        match letter {
            'i' => insert(draft, at),
            'a' => insert(draft, (at + 1).min(end)),
            'I' => insert(draft, draft.first_letter()),
            'A' => insert(draft, end),
            'o' => {
                draft.replace(end..end, units("\n"), false);
                insert(draft, end + 1);
            }
            'O' => {
                let start = draft.line_start();
                draft.replace(start..start, units("\n"), false);
                insert(draft, start);
            }
            'x' => draft.kill(at..(at + count).min(end), false),
            'X' => draft.kill(at.saturating_sub(count).max(draft.line_start())..at, false),
            's' => {
                draft.kill(at..(at + count).min(end), false);
                insert(draft, at);
            }
            'D' => draft.kill(at..end, false),
            'C' => {
                draft.kill(at..end, false);
                insert(draft, at);
            }
            'S' => {
                let start = draft.line_start();
                draft.kill(start..end, false);
                insert(draft, start);
            }
            'Y' => draft.copy(draft.lines_from(at, count)),
            'p' => draft.put(true),
            'P' => draft.put(false),
            'u' => draft.undo(),
            _ => {}
        }
    }
}

/// Tells whether a move takes the letter along on which it ends.
fn is_inclusive(letter: char) -> bool {
    matches!(letter, 'e' | 'E')
}

/// The class of a unit: blanks, words, and what stands between them.
fn class(unit: &Unit) -> u8 {
    match unit {
        unit if unit.is_word() => 1,
        unit if unit.is_blank() || unit.is_line_end() => 0,
        _ => 2,
    }
}

impl Draft {
    /// Keeps the cursor on a letter of its line.
    fn stay_in_line(&mut self) {
        if self.cursor == self.line_end() && self.cursor > self.line_start() {
            self.cursor -= 1;
        }
    }

    fn span(&self, target: usize, is_inclusive: bool) -> Range<usize> {
        let end = self.cursor.max(target) + usize::from(is_inclusive);
        self.cursor.min(target)..end.min(self.units.len())
    }

    /// The whole lines from that of a place, with their line ends.
    fn lines_from(&self, at: usize, count: usize) -> Range<usize> {
        let start = self.units[..at].iter().rposition(Unit::is_line_end).map_or(0, |at| at + 1);
        let ends = self.units.iter().enumerate().skip(at).filter(|(_, unit)| unit.is_line_end());
        let end = ends.map(|(at, _)| at + 1).nth(count.saturating_sub(1));
        start..end.unwrap_or(self.units.len())
    }

    fn first_letter(&self) -> usize {
        let (start, end) = (self.line_start(), self.line_end());
        (start..end).find(|at| !self.units[*at].is_blank()).unwrap_or(end)
    }

    fn next_word(&self) -> usize {
        let Some(here) = self.units.get(self.cursor).map(class) else { return self.cursor };
        let mut rest =
            (self.cursor..self.units.len()).skip_while(|at| class(&self.units[*at]) == here);
        rest.find(|at| class(&self.units[*at]) != 0).unwrap_or(self.units.len())
    }

    fn previous_word(&self) -> usize {
        let Some(last) = (0..self.cursor).rev().find(|at| class(&self.units[*at]) != 0) else {
            return 0;
        };
        let kind = class(&self.units[last]);
        (0..last).rev().take_while(|at| class(&self.units[*at]) == kind).last().unwrap_or(last)
    }

    fn word_end(&self) -> usize {
        let after = self.cursor + 1..self.units.len();
        let Some(first) = after.clone().find(|at| class(&self.units[*at]) != 0) else {
            return self.units.len().saturating_sub(1);
        };
        let kind = class(&self.units[first]);
        (first..after.end).take_while(|at| class(&self.units[*at]) == kind).last().unwrap_or(first)
    }

    /// The word, or the blanks, at the cursor; with the blanks behind it.
    fn word_at(&self, with_blanks: bool) -> Range<usize> {
        let Some(kind) = self.units.get(self.cursor).map(class) else {
            return self.cursor..self.cursor;
        };
        let is_same = |at: &usize| class(&self.units[*at]) == kind;
        let start = (0..self.cursor).rev().take_while(is_same).last().unwrap_or(self.cursor);
        let mut end =
            (self.cursor..self.units.len()).take_while(is_same).last().map_or(start, |at| at + 1);
        while with_blanks && self.units.get(end).is_some_and(Unit::is_blank) {
            end += 1;
        }
        start..end
    }

    /// The place of a letter in the line, seen from the cursor.
    fn find(&self, kind: char, sought: char, count: usize) -> Option<usize> {
        let mut bytes = [0; 4];
        let sought = &*sought.encode_utf8(&mut bytes);
        let is_it = |at: &usize| self.units[*at].typed() == sought;
        let nth = count.saturating_sub(1);
        match kind {
            'f' => (self.cursor + 1..self.line_end()).filter(is_it).nth(nth),
            't' => (self.cursor + 1..self.line_end()).filter(is_it).nth(nth).map(|at| at - 1),
            'F' => (self.line_start()..self.cursor).rev().filter(is_it).nth(nth),
            _ => (self.line_start()..self.cursor).rev().filter(is_it).nth(nth).map(|at| at + 1),
        }
    }

    /// Copies a range into the ring of what was killed.
    fn copy(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.killed.push(self.units[range].to_vec());
        }
    }

    /// Puts what was killed last behind or before the cursor: whole lines below or above its line.
    fn put(&mut self, is_behind: bool) {
        let Some(mut text) = self.killed.last().cloned() else { return };
        let is_lines = text.last().is_some_and(Unit::is_line_end);
        let end = self.line_end();
        if is_lines && is_behind && end == self.units.len() {
            // The last line has no end that could stand before the new one.
            text.rotate_right(1);
            self.replace(end..end, text, false);
            self.cursor = end + 1;
            return;
        }
        let at = match (is_lines, is_behind) {
            (true, true) => (self.line_end() + 1).min(self.units.len()),
            (true, false) => self.line_start(),
            (false, true) => (self.cursor + 1).min(self.line_end()),
            (false, false) => self.cursor,
        };
        let count = text.len();
        self.replace(at..at, text, false);
        self.cursor = if is_lines { at } else { at + count.saturating_sub(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text and the cursor after letters in normal mode, from a text with the cursor at its beginning.
    fn after(text: &str, letters: &str) -> (String, usize) {
        let mut draft = Draft::of(text);
        draft.cursor = 0;
        let mut vi = Vi { mode: ViMode::Normal, ..Vi::default() };
        for letter in letters.chars() {
            match vi.mode {
                ViMode::Normal => vi.key(&mut draft, letter),
                ViMode::Insert if letter == '!' => vi.enter_normal(&mut draft),
                ViMode::Insert => draft.insert(letter),
            }
        }
        (draft.text(), draft.cursor())
    }

    #[test]
    fn moves_changes_and_counts_are_those_of_vi() {
        for (text, letters, expected, cursor) in [
            ("one two, three", "w", "one two, three", 4),
            ("one two, three", "ww", "one two, three", 7),
            ("one two, three", "3w", "one two, three", 9),
            ("one two", "e", "one two", 2),
            ("one two", "$b", "one two", 4),
            ("one two", "dw", "two", 0),
            ("one two three", "2dw", "three", 0),
            ("one two", "wD", "one ", 3),
            ("one two", "cwsix!", "sixtwo", 2),
            ("one two", "ciwsix!", "six two", 2),
            ("one two", "daw", "two", 0),
            ("one two", "x", "ne two", 0),
            ("one two", "3x", " two", 0),
            ("one two", "xu", "one two", 0),
            ("a\nb\nc", "jdd", "a\nc", 2),
            ("a\nb", "ddp", "b\na", 2),
            ("a\nb", "yyjp", "a\nb\na", 4),
            ("a\nb", "yyP", "a\na\nb", 0),
            ("abc", "A!", "abc", 2),
            ("abc", "ox!", "abc\nx", 4),
            ("abc", "Ox!", "x\nabc", 0),
            ("a.b.c", "f.", "a.b.c", 1),
            ("a.b.c", "f.;", "a.b.c", 3),
            ("a.b.c", "dt.", ".b.c", 0),
            ("a.b.c", "df.", "b.c", 0),
            ("abc", "rz", "zbc", 0),
            ("ab", "xp", "ba", 1),
            ("a\nb", "G", "a\nb", 2),
            ("a\nb", "Ggg", "a\nb", 0),
        ] {
            assert_eq!(after(text, letters), (expected.to_owned(), cursor), "{text:?} {letters}");
        }
    }

    #[test]
    fn random_letters_never_leave_the_text() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let alphabet: Vec<char> =
                "hjklwbeGg0$^dcyxXpPuiaIAoO!fFtT;,rsSDCY123 ab.\n".chars().collect();
            let letters: String =
                (0..60).filter_map(|_| random.choice(&alphabet).copied()).collect();
            let (text, cursor) = after("one two\nthree, four\n\nfive", &letters);
            let count = crate::text::graphemes(&text).count();
            assert!(cursor <= count, "{letters:?}: {cursor} in {text:?}");
        }
    }
}
