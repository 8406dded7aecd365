//! Frames that take the whole window, on the terminal's other screen: a transcript, while it is read. What stood on the
//! first screen is there again afterwards, and so is its scrollback.

use super::row::Row;
use super::writer::Writer;
use super::{Capabilities, InlineSurface, Surface};
use crate::frame::{Frame, Line, Size};
use crate::input::TerminalReply;
use crate::look::{Look, Theme};

/// Goes to the other screen, with the cursor at its beginning and hidden.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[H\x1b[?25l";
/// Erases the other screen from its beginning on.
const ERASE: &[u8] = b"\x1b[H\x1b[J";
/// Goes back to the first screen and to the place of its cursor.
const LEAVE: &[u8] = b"\x1b[?1049l\x1b[?25h";

/// A surface with a second screen for frames that want all of it.
#[derive(Debug)]
pub struct TwoScreens {
    first: InlineSurface,
    look: Look,
    size: Size,
    /// The rows of the other screen, while it is shown.
    other: Option<Vec<Row>>,
    /// The place of its cursor.
    place: (u16, Option<u16>),
    /// True if the next frame writes every row of it anew.
    is_forgotten: bool,
}

impl TwoScreens {
    pub fn new(first: InlineSurface, look: Look, size: Size) -> Self {
        Self { first, look, size, other: None, place: (0, Some(0)), is_forgotten: false }
    }

    fn show_whole(&mut self, live: &[Line], out: &mut Vec<u8>) {
        let blank = || vec![Row::default(); usize::from(self.size.rows)];
        if self.other.is_none() {
            out.extend_from_slice(ENTER);
            self.place = (0, Some(0));
        } else if std::mem::take(&mut self.is_forgotten) {
            out.extend_from_slice(ERASE);
            self.place = (0, Some(0));
            self.other = Some(blank());
        }
        let shown = self.other.take().unwrap_or_else(blank);
        let mut rows: Vec<Row> = live
            .iter()
            .take(shown.len())
            .map(|line| Row::new(line, self.size.columns, self.look))
            .collect();
        rows.resize(shown.len(), Row::default());
        let mut writer = Writer::new(self.place.0, self.place.1, self.size.columns);
        for (at, (old, new)) in shown.iter().zip(&rows).enumerate() {
            writer.change(u16::try_from(at).unwrap_or(u16::MAX), old, new);
        }
        self.other = Some(rows);
        if !writer.is_empty() {
            let (bytes, row, column) = writer.finish();
            self.place = (row, column);
            out.extend_from_slice(&bytes);
        }
    }

    fn show_first(&mut self, out: &mut Vec<u8>) {
        if self.other.take().is_some() {
            out.extend_from_slice(LEAVE);
            self.first.cursor_is_shown();
        }
    }
}

impl Surface for TwoScreens {
    fn draw(&mut self, frame: &Frame, size: Size, out: &mut Vec<u8>) {
        if frame.is_whole && size == self.size {
            self.first.hold(&frame.print);
            self.show_whole(&frame.live, out);
            return;
        }
        self.show_first(out);
        self.first.draw(frame, size, out);
    }

    fn resized(&mut self, size: Size, out: &mut Vec<u8>) {
        // The first screen is measured anew: the next frame comes back to the other one.
        self.show_first(out);
        self.size = size;
        self.first.resized(size, out);
    }

    fn reply(&mut self, reply: Option<&TerminalReply>, out: &mut Vec<u8>) {
        self.show_first(out);
        self.first.reply(reply, out);
    }

    fn is_waiting(&self) -> bool {
        self.first.is_waiting()
    }

    /// The rows of the first screen: whatever ends the program goes back there.
    fn rows_above_cursor(&self) -> Option<u16> {
        self.first.rows_above_cursor()
    }

    fn is_on_other_screen(&self) -> bool {
        self.other.is_some()
    }

    fn forget(&mut self) {
        self.is_forgotten = self.other.is_some();
        if self.other.is_none() {
            self.first.forget();
        }
    }

    fn restyle(&mut self, theme: Theme) {
        self.look.theme = theme;
        self.first.restyle(theme);
    }

    fn leave(&mut self, out: &mut Vec<u8>) {
        self.show_first(out);
        self.first.leave(out);
    }

    fn capabilities(&self) -> Capabilities {
        self.first.capabilities()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Place, Style};

    const SIZE: Size = Size { columns: 30, rows: 10 };

    fn line(text: &str) -> Line {
        Line::flush().with(text, Style::PLAIN)
    }

    fn whole(rows: usize, first: usize) -> Frame {
        let live = (first..first + rows).map(|number| line(&format!("row {number}"))).collect();
        Frame { live, is_whole: true, ..Frame::default() }
    }

    fn prompt(printed: &[&str]) -> Frame {
        Frame {
            print: printed.iter().map(|text| line(text)).collect(),
            live: vec![line("> draft")],
            cursor: Some(Place { row: 0, column: 7 }),
            ..Frame::default()
        }
    }

    #[test]
    fn a_transcript_takes_the_whole_window_and_leaves_no_trace() {
        let look = Look::default();
        let first = InlineSurface::new(SIZE, look, Capabilities::default());
        let mut surface = TwoScreens::new(first, look, SIZE);
        let mut terminal = vt100::Parser::new(10.try_into().unwrap(), 30.try_into().unwrap(), 100);
        let mut show = |surface: &mut TwoScreens, frame: &Frame| {
            let mut out = Vec::new();
            surface.draw(frame, SIZE, &mut out);
            terminal.process(&out);
            (terminal.screen().contents(), terminal.screen().alternate_screen(), out.len())
        };
        let (before, ..) = show(&mut surface, &prompt(&["one", "two"]));
        let (shown, is_other, _) = show(&mut surface, &whole(10, 1));
        assert!(is_other && shown.starts_with("row 1\n") && shown.ends_with("row 10"), "{shown}");
        let (shown, _, bytes) = show(&mut surface, &whole(10, 2));
        assert!(shown.starts_with("row 2\n") && shown.ends_with("row 11"), "{shown}");
        assert!(bytes < 120, "rows that are right already are not written again: {bytes}");
        let printed_meanwhile = Frame { print: vec![line("three")], ..whole(10, 2) };
        show(&mut surface, &printed_meanwhile);
        surface.forget();
        assert_eq!(show(&mut surface, &whole(10, 2)).0, shown);
        let (after, is_other, _) = show(&mut surface, &prompt(&[]));
        assert!(!is_other);
        assert_eq!(before, "one\ntwo\n> draft");
        assert_eq!(after, "one\ntwo\nthree\n> draft", "what was printed meanwhile stands below");
    }
}
