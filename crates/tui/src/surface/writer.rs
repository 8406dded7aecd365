//! The writer of cells: the shortest bytes that move the cursor, set a look and change a row.

use std::io::Write as _;

use super::row::{BLANK, Row};
use crate::frame::{Colour, Style};

/// The most rows that the cursor goes down by feeding lines. That is short, and in a window that has become smaller without
/// our knowing it scrolls where a move would stop: the rows keep their distances, and no row is written over one above it.
const MOST_FEEDS: u16 = 12;

/// Frames of fewer bytes are not put between the marks of mode 2026, which are 16 bytes: one write shows them at once.
const SMALL: usize = 100;

/// Erases from the beginning of a row that may be the first one of the screen. Where a whole screen is erased from its first
/// cell on, tmux moves what it showed into the scrollback: so the row goes first, and then the rest from its second cell on.
pub(crate) const ERASE_FROM_TOP: &[u8] = b"\x1b[K\x1b[C\x1b[J\r";

/// Writes below a row that it calls 0, with relative moves only: it need not know where on the screen that is.
#[derive(Debug)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    row: u16,
    /// Not known after the last column was written: the terminal may be about to wrap.
    column: Option<u16>,
    style: Style,
    columns: u16,
}

impl Writer {
    pub(crate) fn new(row: u16, column: Option<u16>, columns: u16) -> Self {
        Self { bytes: Vec::new(), row, column, style: Style::PLAIN, columns }
    }

    /// Everything that was written, with the plain look at its end, and the place of the cursor.
    pub(crate) fn finish(mut self) -> (Vec<u8>, u16, Option<u16>) {
        self.set_style(Style::PLAIN);
        (self.bytes, self.row, self.column)
    }

    /// Adds everything that was written to `out`, as one picture if the terminal can show it so. Returns the place of
    /// the cursor.
    pub(super) fn print_to(self, out: &mut Vec<u8>, is_synchronized: bool) -> (u16, Option<u16>) {
        let (bytes, row, column) = self.finish();
        let is_marked = is_synchronized && bytes.len() > SMALL;
        if is_marked {
            out.extend_from_slice(b"\x1b[?2026h");
        }
        out.extend_from_slice(&bytes);
        if is_marked {
            out.extend_from_slice(b"\x1b[?2026l");
        }
        (row, column)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Inserts blank rows at the cursor's row: it and those below it move down.
    pub(crate) fn insert_rows(&mut self, count: u16) {
        self.set_style(Style::PLAIN);
        self.sequence(count, 'L');
    }

    /// Deletes the cursor's row and those below it: what is below them moves up.
    pub(crate) fn delete_rows(&mut self, count: u16) {
        self.set_style(Style::PLAIN);
        self.sequence(count, 'M');
    }

    /// Writes bytes that do not move the cursor.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Says where the cursor is after bytes that moved it.
    pub(crate) fn stands_at(&mut self, row: u16, column: u16) {
        (self.row, self.column) = (row, Some(column));
    }

    pub(crate) fn move_to(&mut self, row: u16, column: u16) {
        match row.cmp(&self.row) {
            std::cmp::Ordering::Less => self.sequence(self.row - row, 'A'),
            std::cmp::Ordering::Greater if row - self.row <= MOST_FEEDS => {
                self.bytes.extend(std::iter::repeat_n(b'\n', usize::from(row - self.row)));
            }
            std::cmp::Ordering::Greater => self.sequence(row - self.row, 'B'),
            std::cmp::Ordering::Equal => {}
        }
        self.row = row;
        if self.column == Some(column) {
            return;
        }
        match self.column {
            _ if column == 0 => self.bytes.push(b'\r'),
            Some(now) if now > column && now - column <= 3 => {
                self.bytes.extend(std::iter::repeat_n(8, usize::from(now - column)));
            }
            Some(now) if column > now && digits(column - now) <= digits(column + 1) => {
                self.sequence(column - now, 'C');
            }
            _ => self.sequence(column + 1, 'G'),
        }
        self.column = Some(column);
    }

    /// Begins the next row; at the end of the screen everything moves up.
    pub(crate) fn next_row(&mut self) {
        self.set_style(Style::PLAIN);
        self.bytes.extend_from_slice(b"\r\n");
        self.row += 1;
        self.column = Some(0);
    }

    /// Erases all cells from the cursor on, which stands in the first column, to the end of the screen.
    pub(crate) fn erase_below(&mut self) {
        self.set_style(Style::PLAIN);
        self.bytes.extend_from_slice(if self.row == 0 { ERASE_FROM_TOP } else { b"\x1b[J" });
    }

    /// Writes text that stays where it is: the terminal breaks it where it likes.
    pub(crate) fn text(&mut self, text: &str, style: Style) {
        self.set_style(style);
        self.bytes.extend_from_slice(text.as_bytes());
        self.column = None;
    }

    /// Writes all cells of a row, from its first column on.
    pub(crate) fn whole_row(&mut self, row: &Row) {
        for column in 0..row.len() {
            self.cell(row, column);
        }
    }

    /// Changes a row to another one.
    pub(crate) fn change(&mut self, at: u16, old: &Row, new: &Row) {
        for column in 0..new.len() {
            let seen = new.seen(column);
            if seen == old.seen(column) || seen.width == 0 {
                continue;
            }
            self.reach(at, column, new);
            self.cell(new, column);
        }
        let rest = (new.len()..old.len()).find(|column| old.seen(*column) != BLANK);
        if let Some(column) = rest {
            self.move_to(at, column);
            self.set_style(Style::PLAIN);
            self.bytes.extend_from_slice(b"\x1b[K");
        }
    }

    /// Writes a row anew, whatever is there.
    pub(crate) fn replace(&mut self, at: u16, row: &Row) {
        self.move_to(at, 0);
        self.whole_row(row);
        if row.len() < self.columns {
            self.set_style(Style::PLAIN);
            self.bytes.extend_from_slice(b"\x1b[K");
        }
    }

    /// Moves right by writing again what is there, if that is shorter.
    fn reach(&mut self, at: u16, column: u16, row: &Row) {
        if self.row == at
            && let Some(now) = self.column
            && now < column
            && column - now <= 4
            && (now..column).all(|it| row.seen(it).style == self.style)
            && (now..column).map(|it| row.seen(it).text.len()).sum::<usize>() <= 3
            && row.seen(now).width > 0
        {
            (now..column).for_each(|it| self.cell(row, it));
        }
        self.move_to(at, column);
    }

    fn cell(&mut self, row: &Row, column: u16) {
        let seen = row.seen(column);
        if seen.width == 0 {
            return;
        }
        self.set_style(seen.style);
        self.bytes.extend_from_slice(seen.text.as_bytes());
        let next = column + seen.width;
        // Terminals do not agree on the width of graphemes of several characters: say where the next one stands.
        let is_certain = seen.text.chars().nth(1).is_none();
        self.column = (next < self.columns && is_certain).then_some(next);
        if !is_certain && next < self.columns {
            self.sequence(next + 1, 'G');
            self.column = Some(next);
        }
    }

    pub(crate) fn set_style(&mut self, style: Style) {
        if style == self.style {
            return;
        }
        let old = std::mem::replace(&mut self.style, style);
        if style == Style::PLAIN {
            self.bytes.extend_from_slice(b"\x1b[m");
            return;
        }
        let is_set_only = (!old.bold || style.bold)
            && (!old.dim || style.dim)
            && (!old.italic || style.italic)
            && (!old.underline || style.underline)
            && (!old.reversed || style.reversed);
        let old = if is_set_only { old } else { Style::PLAIN };
        let mut codes: Vec<&str> = Vec::new();
        if !is_set_only {
            codes.push("0");
        }
        for (before, after, code) in [
            (old.bold, style.bold, "1"),
            (old.dim, style.dim, "2"),
            (old.italic, style.italic, "3"),
            (old.underline, style.underline, "4"),
            (old.reversed, style.reversed, "7"),
        ] {
            if after && !before {
                codes.push(code);
            }
        }
        if style.colour != old.colour {
            codes.push(colour_code(style.colour));
        }
        self.bytes.extend_from_slice(b"\x1b[");
        self.bytes.extend_from_slice(codes.join(";").as_bytes());
        self.bytes.push(b'm');
    }

    fn sequence(&mut self, count: u16, letter: char) {
        if count == 1 {
            self.bytes.extend_from_slice(b"\x1b[");
        } else {
            // A write into memory cannot fail.
            let _ = write!(self.bytes, "\x1b[{count}");
        }
        self.bytes.push(letter as u8);
    }
}

fn digits(number: u16) -> u32 {
    if number == 1 { 0 } else { number.ilog10() + 1 }
}

const fn colour_code(colour: Colour) -> &'static str {
    match colour {
        Colour::Default => "39",
        Colour::Red => "31",
        Colour::Green => "32",
        Colour::Yellow => "33",
        Colour::Blue => "34",
        Colour::Magenta => "35",
        Colour::Cyan => "36",
    }
}
