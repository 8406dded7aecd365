//! The fullscreen surface: the terminal's other screen, with a scrollback of our own and the mouse.
//!
//! The printed lines stand above the live region, which keeps its place at the bottom. The wheel and keys move through
//! them, and a selection copies lines as they were printed, not as the window breaks them. On leaving, the last lines go
//! to the first screen.

use std::io::Write as _;

use super::inline::fitting;
use super::row::Row;
use super::scrollback::{Point, Scrollback};
use super::writer::Writer;
use super::{Capabilities, InlineSurface, MouseEffect, Scroll, Surface, title};
use crate::frame::{Frame, Line, Place, Size, Style};
use crate::input::{Mouse, MouseEvent, TerminalReply};
use crate::look::{Look, Theme};

/// Goes to the other screen, with the cursor at its beginning. No blank of it is anyone else's.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[H\x1b[J";
/// Tells of buttons, of moves while one is pressed, and of the wheel.
const MOUSE_ON: &[u8] = b"\x1b[?1002h\x1b[?1006h";
const MOUSE_OFF: &[u8] = b"\x1b[?1006l\x1b[?1002l";
const LEAVE: &[u8] = b"\x1b[?1049l\x1b[?25h";
/// Erases the screen from its beginning on.
const ERASE: &[u8] = b"\x1b[H\x1b[J";

/// The lines that are printed on the first screen at the end.
const LAST_LINES: usize = 200;
/// The rows that the wheel moves.
const WHEEL: isize = 3;
/// The most rows by which a picture is looked for in the one before it.
const MOST_SHIFTED: usize = 24;

#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
/// Shows frames on the terminal's other screen.
#[derive(Debug)]
pub struct FullscreenSurface {
    /// The first screen, for the end.
    first: InlineSurface,
    look: Look,
    size: Size,
    can: Capabilities,
    has_mouse: bool,
    /// True while the other screen is shown.
    is_shown: bool,
    is_forgotten: bool,
    scrollback: Scrollback,
    /// The rows of the screen as the terminal shows them.
    rows: Vec<Row>,
    /// The row of the screen at which the live region begins.
    top: u16,
    /// The first row of the frame's live region that is shown.
    live_from: u16,
    cursor: (u16, Option<u16>),
    is_cursor_hidden: bool,
    title: Option<String>,
    /// The ends of what is selected: where it began, and where the mouse is.
    selected: Option<(Point, Point)>,
    is_dragged: bool,
}

impl FullscreenSurface {
    pub fn new(size: Size, look: Look, can: Capabilities, has_mouse: bool) -> Self {
        Self {
            first: InlineSurface::new(size, look, can),
            look,
            size,
            can,
            has_mouse,
            is_shown: false,
            is_forgotten: false,
            scrollback: Scrollback::new(size.columns),
            rows: Vec::new(),
            top: 0,
            live_from: 0,
            cursor: (0, Some(0)),
            is_cursor_hidden: false,
            title: None,
            selected: None,
            is_dragged: false,
        }
    }

    /// The rows above the live region.
    fn room(&self) -> usize {
        usize::from(self.top)
    }

    /// The rows of the whole screen.
    fn picture(&mut self, live: &[Line]) -> Vec<Row> {
        let room = self.room();
        let (columns, look) = (self.size.columns, self.look);
        let mut rows: Vec<Row> = Vec::with_capacity(usize::from(self.size.rows));
        for (point, line) in self.scrollback.window(room) {
            let marked = self.selected.and_then(|ends| marked(*point, ends, columns));
            let shown = match marked {
                Some((from, to)) => reversed(line, from, to),
                None => line.clone(),
            };
            rows.push(Row::new(&shown, columns, look));
        }
        rows.resize(room, Row::default());
        let below = self.scrollback.below();
        if let Some(last) = rows.last_mut().filter(|_| below > 0) {
            let words = format!("↓ {below} more rows · ctrl+end ");
            *last = Row::new(&Line::flush().with(words, Style::PLAIN.reversed()), columns, look);
        }
        rows.extend(live.iter().map(|line| Row::new(line, columns, look)));
        rows.resize(usize::from(self.size.rows), Row::default());
        rows
    }

    /// Moves rows that are there already, if many of them only stand some rows higher or lower than before.
    fn shift(&mut self, new: &[Row], room: usize, writer: &mut Writer) {
        let old = &self.rows;
        let same = |at: usize, other: usize| old[at].len() > 0 && old[at].is_same(&new[other]);
        let up = |by: usize| (by..room).filter(|at| same(*at, at - by)).count();
        let down = |by: usize| (0..room - by).filter(|at| same(*at, at + by)).count();
        let stay = (0..room).filter(|at| same(*at, *at)).count();
        let shifts =
            (1..room.min(MOST_SHIFTED)).flat_map(|by| [(up(by), by, true), (down(by), by, false)]);
        let Some((kept, by, is_up)) = shifts.max_by_key(|(kept, by, _)| (*kept, room - by)) else {
            return;
        };
        if kept <= stay + 1 {
            return;
        }
        writer.set_style(Style::PLAIN);
        let mut bytes = Vec::new();
        let letter = if is_up { 'S' } else { 'T' };
        let _ = write!(bytes, "\x1b[1;{room}r\x1b[{by}{letter}\x1b[r");
        writer.raw(&bytes);
        writer.stands_at(0, 0);
        let part = &mut self.rows[..room];
        if is_up {
            part.rotate_left(by);
            part[room - by..].fill(Row::default());
        } else {
            part.rotate_right(by);
            part[..by].fill(Row::default());
        }
    }

    fn show(&mut self, live: &[Line], cursor: Option<Place>, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.is_shown, true) {
            out.extend_from_slice(ENTER);
            if self.has_mouse {
                out.extend_from_slice(MOUSE_ON);
            }
            self.blank();
        } else if std::mem::take(&mut self.is_forgotten) {
            out.extend_from_slice(ERASE);
            self.blank();
        }
        let new = self.picture(live);
        let mut writer = Writer::new(self.cursor.0, self.cursor.1, self.size.columns);
        let room = self.room();
        if room > 2 {
            self.shift(&new, room, &mut writer);
        }
        for (at, (old, new)) in self.rows.iter().zip(&new).enumerate() {
            writer.change(u16::try_from(at).unwrap_or(u16::MAX), old, new);
        }
        self.rows = new;
        let last = self.size.rows.saturating_sub(1);
        let place = cursor.map(|place| Place {
            row: (place.row + self.top).min(last),
            column: place.column.min(self.size.columns.saturating_sub(1)),
        });
        match place {
            Some(place) => writer.move_to(place.row, place.column),
            None => writer.move_to(last, 0),
        }
        if place.is_none() != self.is_cursor_hidden {
            self.is_cursor_hidden = place.is_none();
            writer.raw(if self.is_cursor_hidden { b"\x1b[?25l" } else { b"\x1b[?25h" });
        }
        let (row, column) = writer.print_to(out, self.can.synchronized);
        self.cursor = (row, column);
    }

    /// Nothing is on the screen.
    fn blank(&mut self) {
        self.is_forgotten = false;
        self.rows = vec![Row::default(); usize::from(self.size.rows)];
        self.cursor = (0, Some(0));
    }

    /// Goes back to the first screen.
    fn hide(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_shown) {
            if self.has_mouse {
                out.extend_from_slice(MOUSE_OFF);
            }
            out.extend_from_slice(LEAVE);
            self.is_cursor_hidden = false;
        }
    }

    /// The place of what was printed below a place of the screen.
    fn point(&mut self, place: Place) -> Option<Point> {
        let row = usize::from(place.row.min(self.top.saturating_sub(1)));
        let room = self.room();
        let window = self.scrollback.window(room);
        let point = window.get(row).or(window.last()).map(|(point, _)| *point)?;
        Some(Point { column: place.column, ..point })
    }

    /// Extends a selection.
    fn drag(&mut self, place: Place) {
        if place.row == 0 {
            self.scroll(Scroll::Rows(-1));
        } else if place.row >= self.top {
            self.scroll(Scroll::Rows(1));
        }
        let point = self.point(place);
        if let (Some((_, end)), Some(point)) = (&mut self.selected, point) {
            *end = point;
        }
    }
}

impl Surface for FullscreenSurface {
    fn draw(&mut self, frame: &Frame, size: Size, out: &mut Vec<u8>) {
        self.scrollback.add(&frame.print);
        if size != self.size {
            return;
        }
        let (live, cursor) = fitting(frame, self.size.rows);
        let height = u16::try_from(live.len()).unwrap_or(u16::MAX);
        self.live_from = u16::try_from(frame.live.len() - live.len()).unwrap_or(u16::MAX);
        self.top = self.size.rows - height;
        self.show(live, cursor, out);
        if let Some(new) = frame.title.as_ref().filter(|new| self.title.as_ref() != Some(new)) {
            out.extend_from_slice(&title(new));
            self.title = Some(new.clone());
        }
    }

    fn resized(&mut self, size: Size, out: &mut Vec<u8>) {
        self.size = size;
        self.scrollback.resize(size.columns);
        self.first.set_size(size);
        self.selected = None;
        self.is_forgotten = true;
        // A frame of the old size is not shown, and the terminal may have moved anything.
        let _ = out;
    }

    fn reply(&mut self, reply: Option<&TerminalReply>, _out: &mut Vec<u8>) {
        if let Some(reply) = reply {
            self.can.learn(reply);
        }
    }

    fn is_waiting(&self) -> bool {
        false
    }

    fn is_on_other_screen(&self) -> bool {
        self.is_shown
    }

    fn forget(&mut self) {
        self.is_forgotten = true;
    }

    fn restyle(&mut self, theme: Theme) {
        self.look.theme = theme;
        self.first.restyle(theme);
    }

    fn lend(&mut self, out: &mut Vec<u8>) {
        self.hide(out);
    }

    fn leave(&mut self, out: &mut Vec<u8>) {
        self.hide(out);
        self.first.hold(&self.scrollback.last(LAST_LINES));
        self.scrollback = Scrollback::new(self.size.columns);
        self.first.leave(out);
    }

    fn recall(&mut self, lines: &[Line]) {
        self.scrollback.recall(lines);
    }

    fn scroll(&mut self, scroll: Scroll) {
        let room = self.room();
        self.scrollback.scroll(scroll, room);
    }

    fn mouse(&mut self, mouse: &Mouse) -> MouseEffect {
        let is_live = mouse.place.row >= self.top;
        match mouse.event {
            MouseEvent::Dragged if self.is_dragged => self.drag(mouse.place),
            MouseEvent::Released if self.is_dragged => {
                self.is_dragged = false;
                let text = self.selected.map(|(from, to)| self.scrollback.text(from, to));
                match text.filter(|text| !text.is_empty()) {
                    Some(text) => return MouseEffect::Copied(text),
                    None => self.selected = None,
                }
            }
            _ if is_live => {
                self.selected = None;
                let row = mouse.place.row - self.top + self.live_from;
                return MouseEffect::Live(Mouse { place: Place { row, ..mouse.place }, ..*mouse });
            }
            MouseEvent::WheelUp => self.scroll(Scroll::Rows(-WHEEL)),
            MouseEvent::WheelDown => self.scroll(Scroll::Rows(WHEEL)),
            MouseEvent::Pressed => {
                self.selected = self.point(mouse.place).map(|point| (point, point));
                self.is_dragged = self.selected.is_some();
            }
            _ => {}
        }
        MouseEffect::None
    }

    fn capabilities(&self) -> Capabilities {
        self.can
    }
}

/// The columns of a row that are selected; none where nothing is, as after a click.
fn marked(row: Point, (from, to): (Point, Point), columns: u16) -> Option<(u16, u16)> {
    if from == to {
        return None;
    }
    let (from, to) = if from <= to { (from, to) } else { (to, from) };
    let is_between =
        (from.line, from.row) <= (row.line, row.row) && (row.line, row.row) <= (to.line, to.row);
    let begins = (from.line, from.row) == (row.line, row.row);
    let ends = (to.line, to.row) == (row.line, row.row);
    let first = if begins { from.column } else { 0 };
    let last = if ends { to.column } else { columns };
    is_between.then_some((first, last))
}

/// A row with the cells from one column to another reversed.
fn reversed(row: &Line, from: u16, to: u16) -> Line {
    let mut line = Line::flush();
    let mut at = 0;
    for span in &row.spans {
        for (grapheme, width) in crate::text::graphemes(&span.text) {
            let is_in = (from..=to).contains(&at);
            let style = if is_in { span.style.reversed() } else { span.style };
            match line.spans.last_mut().filter(|last| last.style == style) {
                Some(last) => last.text.push_str(grapheme),
                None => line.push(grapheme, style),
            }
            at += width;
        }
    }
    line
}
