//! The inline surface: finished lines go into the terminal's own scrollback, the live region stands below them.
//!
//! A printed line is never touched again, and the screen is never cleared. All moves are relative to the live region,
//! so the surface works without knowing where on the screen that is. Once the terminal has said where, lines are
//! appended with a scroll region, which leaves the live region as it is.

use std::io::Write as _;

use super::row::Row;
use super::writer::Writer;
use super::{Capabilities, Surface};
use crate::frame::{Frame, Line, Place, Size, Wrap};
use crate::input::TerminalReply;
use crate::look::{Look, Theme};
use crate::text::wrapped;

/// The most answers for another size that are waited through.
const MOST_STRAYS: u8 = 4;

/// Writes frames at the end of what the terminal shows already.
#[derive(Debug)]
pub struct InlineSurface {
    size: Size,
    look: Look,
    can: Capabilities,
    /// The rows of the live region as the terminal shows them: one at least.
    shown: Vec<Row>,
    /// The cursor's place in the live region.
    row: u16,
    column: Option<u16>,
    is_cursor_hidden: bool,
    /// The row of the screen at which the live region begins.
    top: Option<u16>,
    /// Questions for the cursor's place that have no answer yet.
    asked: u32,
    /// The row of the cursor when the last one was asked.
    asked_row: u16,
    is_waiting: bool,
    /// The size that the terminal told with its last answer.
    told_size: Option<Size>,
    /// The times that its answer was for another size than the one that we know.
    strays: u8,
    is_forgotten: bool,
    /// The columns before the window changed.
    old_columns: u16,
    /// Rows of earlier live regions that a smaller window has pushed out at its top, each with the cells that are out. They
    /// stand right above the live region, and come back with a larger window.
    pushed_out: Vec<(Row, u16)>,
    /// Lines to print that came while the surface was waiting.
    held: Vec<Line>,
    title: Option<String>,
}

impl InlineSurface {
    /// A surface that begins at the cursor, which stands in the first column.
    pub fn new(size: Size, look: Look, can: Capabilities) -> Self {
        Self {
            size,
            look,
            can,
            shown: vec![Row::default()],
            row: 0,
            column: Some(0),
            is_cursor_hidden: false,
            top: None,
            asked: 0,
            asked_row: 0,
            is_waiting: false,
            told_size: None,
            strays: 0,
            is_forgotten: false,
            old_columns: size.columns,
            pushed_out: Vec::new(),
            held: Vec::new(),
            title: None,
        }
    }

    /// The most rows of the live region: a row of what was printed stays above it.
    pub fn live_rows(size: Size) -> u16 {
        size.rows.saturating_sub(1).max(1)
    }

    /// Keeps lines to print at the next draw.
    pub(super) fn hold(&mut self, lines: &[Line]) {
        self.held.extend(lines.iter().cloned());
    }

    /// The window has another size, and nothing of ours is in it.
    pub(super) fn set_size(&mut self, size: Size) {
        (self.size, self.old_columns) = (size, size.columns);
    }

    /// Takes note that the cursor was made visible.
    pub(super) fn cursor_is_shown(&mut self) {
        self.is_cursor_hidden = false;
    }

    fn ask(&mut self, out: &mut Vec<u8>) {
        self.asked += 1;
        self.asked_row = self.row;
        out.extend_from_slice(b"\x1b[6n");
    }

    /// Asks for the size, too: the window may have changed again, and the news of that be on its way.
    fn ask_with_size(&mut self, out: &mut Vec<u8>) {
        self.told_size = None;
        out.extend_from_slice(b"\x1b[18t");
        self.ask(out);
    }

    /// Tells whether the last answer was for another size. Some versions of tmux tell columns before rows.
    fn is_stray(&self) -> bool {
        let Size { columns, rows } = self.size;
        let turned = Size { columns: rows, rows: columns };
        self.told_size.is_some_and(|told| told != self.size && told != turned)
    }

    fn height(&self) -> u16 {
        u16::try_from(self.shown.len()).unwrap_or(u16::MAX)
    }

    /// The rows of lines to print, where they and the live region can be written as one: rows that are there already, such
    /// as those of an answer that was open, stay as they are. `None` where a scroll region does more, or the terminal is to
    /// break a line itself.
    fn rows_above(&self, lines: &[Line], live: usize) -> Option<Vec<Line>> {
        let columns = self.size.columns;
        let is_long = |line: &Line| line.wrap == Wrap::Flush && line.width() > usize::from(columns);
        let has_region = self.can.region_feeds_scrollback && self.top.is_some();
        if lines.is_empty() || has_region || lines.iter().any(is_long) {
            return None;
        }
        let rows: Vec<Line> = lines.iter().flat_map(|line| wrapped(line, columns)).collect();
        let most = usize::from(self.size.rows);
        let fits = rows.len() + live.max(1) <= most && self.shown.len() <= most;
        fits.then_some(rows)
    }

    /// Prints lines above the live region.
    fn print(&mut self, lines: &[Line], writer: &mut Writer) {
        let is_long =
            |line: &Line| line.wrap == Wrap::Flush && line.width() > usize::from(self.size.columns);
        // A line that the terminal breaks is kept whole by it only where the whole screen scrolls.
        if self.can.region_feeds_scrollback
            && let Some(top) = self.top
            && !lines.iter().any(is_long)
        {
            let rows: Vec<Line> =
                lines.iter().flat_map(|line| wrapped(line, self.size.columns)).collect();
            if self.print_in_region(top, &rows, writer) {
                return;
            }
        }
        self.print_over(lines, writer);
    }

    /// Inserts rows above the live region, which moves down as far as there is room; then the rows above it scroll.
    fn print_in_region(&mut self, top: u16, rows: &[Line], writer: &mut Writer) -> bool {
        let count = u16::try_from(rows.len()).unwrap_or(u16::MAX);
        let free = self.size.rows.saturating_sub(top + self.height());
        let inserted = count.min(free);
        let top = top + inserted;
        if count == u16::MAX || (count > inserted && top < 2) {
            return false;
        }
        let (now, later) = rows.split_at(usize::from(inserted));
        if inserted > 0 {
            writer.move_to(0, 0);
            writer.insert_rows(inserted);
            for line in now {
                writer.whole_row(&Row::new(line, self.size.columns, self.look));
                writer.next_row();
            }
        }
        if !later.is_empty() {
            writer.set_style(crate::frame::Style::PLAIN);
            let mut region = Vec::new();
            let _ = write!(region, "\x1b[1;{top}r\x1b[{top}H");
            writer.raw(&region);
            for line in later {
                writer.next_row();
                writer.whole_row(&Row::new(line, self.size.columns, self.look));
            }
            writer.set_style(crate::frame::Style::PLAIN);
            let mut back = Vec::new();
            let _ = write!(back, "\x1b[r\x1b[{}H", top + 1);
            writer.raw(&back);
        }
        writer.stands_at(0, 0);
        self.top = Some(top);
        true
    }

    /// Erases the live region and prints in its place: it is written again below.
    fn print_over(&mut self, lines: &[Line], writer: &mut Writer) {
        writer.move_to(0, 0);
        writer.erase_below();
        let mut count = 0_usize;
        for line in lines {
            if line.wrap == Wrap::Flush {
                count += rows_of(line, self.size.columns);
                for span in &line.spans {
                    self.write_text(&span.text, span.style, writer);
                }
                writer.next_row();
                continue;
            }
            for row in wrapped(line, self.size.columns) {
                count += 1;
                writer.whole_row(&Row::new(&row, self.size.columns, self.look));
                writer.next_row();
            }
        }
        writer.stands_at(0, 0);
        self.shown = vec![Row::default()];
        let last = usize::from(self.size.rows.saturating_sub(1));
        let top = self.top.map(|top| (usize::from(top) + count).min(last));
        self.top = top.and_then(|top| u16::try_from(top).ok());
    }

    fn write_text(&self, text: &str, style: crate::frame::Style, writer: &mut Writer) {
        let style = self.look.style(style);
        if self.look.unicode {
            return writer.text(text, style);
        }
        let ascii: String = crate::text::graphemes(text)
            .map(|(grapheme, width)| self.look.glyph(grapheme, width))
            .collect();
        writer.text(&ascii, style);
    }

    /// Makes the live region look as it should. Its first rows may be finished ones, which are printed by this: those are
    /// written whole, unless they are there already.
    fn show(&mut self, live: &[Line], finished: u16, cursor: Option<Place>, writer: &mut Writer) {
        let mut rows: Vec<Row> =
            live.iter().map(|line| Row::new(line, self.size.columns, self.look)).collect();
        if rows.is_empty() {
            rows.push(Row::default());
        }
        self.shift_rows(&rows, writer);
        for (index, row) in rows.iter().enumerate() {
            let at = u16::try_from(index).unwrap_or(u16::MAX);
            if let Some(old) = self.shown.get(index) {
                if at < finished && !old.is_same(row) {
                    writer.replace(at, row);
                } else {
                    writer.change(at, old, row);
                }
            } else {
                writer.move_to(at - 1, 0);
                writer.next_row();
                writer.whole_row(row);
                self.reach_down(at);
            }
        }
        if self.shown.len() > rows.len() {
            writer.move_to(u16::try_from(rows.len()).unwrap_or(u16::MAX), 0);
            writer.erase_below();
        }
        self.shown = rows;
        let last = self.height() - 1;
        match cursor {
            Some(place) => {
                let column = place.column.min(self.size.columns.saturating_sub(1));
                writer.move_to(place.row.min(last), column);
            }
            // An input method or a screen reader follows the cursor, hidden or not.
            None => writer.move_to(last, 0),
        }
        if cursor.is_none() != self.is_cursor_hidden {
            self.is_cursor_hidden = cursor.is_none();
            writer.raw(if self.is_cursor_hidden { b"\x1b[?25l" } else { b"\x1b[?25h" });
        }
    }

    /// The screen has scrolled if the live region has a row at its end that was below it.
    fn reach_down(&mut self, last: u16) {
        self.top = self.top.map(|top| top.min(self.size.rows.saturating_sub(last + 1)));
    }

    /// Moves the rows that are the same, seen from the end: a region that grows or shrinks above them.
    fn shift_rows(&mut self, new: &[Row], writer: &mut Writer) {
        let (before, after) = (self.shown.len(), new.len());
        if before == after {
            return;
        }
        let old = &self.shown;
        let least = before.min(after);
        let kept = old.iter().zip(new).take_while(|(old, new)| old.is_same(new)).count();
        let is_alike_end = |end: &usize| old[before - end].is_alike(&new[after - end]);
        let ends: Vec<usize> = (1..=least - kept).filter(is_alike_end).collect();
        let starts = (kept..least).filter(|at| old[*at].is_alike(&new[*at])).count();
        let Some(end) = ends.last().filter(|_| ends.len() > starts) else { return };
        let short = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        if after > before {
            let (at, count) = (before - end, after - before);
            writer.move_to(short(before - 1), 0);
            (0..count).for_each(|_| writer.next_row());
            self.reach_down(short(after - 1));
            writer.move_to(short(at), 0);
            writer.insert_rows(short(count));
            self.shown.splice(at..at, std::iter::repeat_n(Row::default(), count));
        } else {
            let (at, count) = (after - end, before - after);
            // Some terminals keep rows that are deleted at the top of the screen, as if they had scrolled.
            if at == 0 && self.top.is_none_or(|top| top == 0) {
                return;
            }
            writer.move_to(short(at), 0);
            writer.delete_rows(short(count));
            self.shown.drain(at..at + count);
        }
    }

    /// Takes the rows that stand at the beginning of the live region already: they are printed without being written.
    fn promote(&mut self, lines: &mut Vec<Line>) {
        let columns = self.size.columns;
        let (mut promoted, mut count, mut rest) = (0, 0, Vec::new());
        for line in &*lines {
            if line.wrap == Wrap::Flush && line.width() > usize::from(columns) {
                break;
            }
            let rows = wrapped(line, columns);
            // The cursor stays in the live region.
            let open = &self.shown[promoted..usize::from(self.row).max(promoted)];
            let is_there =
                |(row, old): &(&Line, &Row)| Row::new(row, columns, self.look).is_same(old);
            let same = rows.iter().zip(open).take_while(is_there).count();
            promoted += same;
            count += 1;
            if same < rows.len() {
                rest = rows.into_iter().skip(same).collect();
                break;
            }
        }
        let rows = u16::try_from(promoted).unwrap_or(u16::MAX);
        self.shown.drain(..promoted);
        self.row -= rows;
        self.top = self.top.map(|top| top + rows);
        // Rows that are broken already fit: they are not broken again.
        lines.splice(..count, rest.into_iter().map(|row| Line { wrap: Wrap::Flush, ..row }));
    }

    fn set_title(&mut self, title: Option<&String>, writer: &mut Writer) {
        let Some(title) = title.filter(|title| self.title.as_ref() != Some(title)) else { return };
        writer.raw(&super::title(title));
        self.title = Some(title.clone());
    }

    /// The rows from the first one of the live region to the cursor, if the terminal broke what was too long for it.
    fn rewrapped_rows(&self, columns: u16) -> (u16, u16) {
        let columns = columns.max(1);
        let above = self.shown.iter().take(usize::from(self.row));
        let rows: u16 = above.map(|row| broken_rows(row, columns)).sum();
        let column = self.column.unwrap_or(self.old_columns.saturating_sub(1));
        let own = self.shown.get(usize::from(self.row));
        let place = own.map_or((0, column), |row| broken_place(row, column, columns));
        (rows + place.0, place.1)
    }

    /// Takes note that so many rows of the live region are above the window; whether the first row of the window continues
    /// the last of them.
    fn push_out(&mut self, mut rows: u16) -> bool {
        for row in self.shown.iter().take(usize::from(self.row) + 1) {
            if rows == 0 {
                break;
            }
            let whole = broken_rows(row, self.size.columns);
            let height = whole.min(rows);
            self.pushed_out.push((row.clone(), first_cell(row, height, self.size.columns)));
            rows -= height;
            if height < whole {
                return true;
            }
        }
        false
    }

    /// The rows, of at most so many above the live region, that were pushed out and are in the window again.
    fn come_back(&mut self, room: u16) -> u16 {
        let mut back = 0;
        while let Some((row, cells)) = self.pushed_out.pop() {
            let height = broken_place(&row, cells.saturating_sub(1), self.size.columns).0 + 1;
            if back + height > room {
                let out = first_cell(&row, back + height - room, self.size.columns);
                self.pushed_out.push((row, out));
                return room;
            }
            back += height;
        }
        back
    }

    /// Erases the live region of before the window changed, whose cursor is at this place now.
    fn begin_again(&mut self, at: Option<Place>, out: &mut Vec<u8>) {
        let columns = self.size.columns;
        let cut = (self.row, self.column.unwrap_or(u16::MAX).min(columns.saturating_sub(1)));
        let broken = self.rewrapped_rows(columns);
        if let Some(at) = at.filter(|_| broken.1 != cut.1) {
            if at.column == broken.1 {
                self.can.rewraps = true;
            } else if at.column == cut.1 {
                self.can.rewraps = false;
            }
        }
        let own = if self.can.rewraps { broken.0 } else { cut.0 };
        let is_above = self.can.rewraps && at.is_some_and(|at| own > at.row);
        let up = at.map_or(own, |at| own.min(at.row));
        // Text in a first row that continues one above the screen would belong to that.
        let mut continues = false;
        let up = match at {
            Some(at) if is_above => {
                continues = self.push_out(own - at.row);
                up
            }
            Some(at) => up + self.come_back(at.row - up),
            None => {
                self.pushed_out.clear();
                up
            }
        };
        let mut writer = Writer::new(up, None, columns);
        writer.move_to(0, 0);
        writer.erase_below();
        if continues {
            writer.next_row();
        }
        out.extend(writer.finish().0);
        self.shown = vec![Row::default()];
        (self.row, self.column) = (0, Some(0));
        let last = self.size.rows.saturating_sub(1);
        self.top = at.map(|at| (at.row - up + u16::from(continues)).min(last));
        self.old_columns = columns;
        self.is_waiting = false;
    }
}

impl Surface for InlineSurface {
    fn draw(&mut self, frame: &Frame, size: Size, out: &mut Vec<u8>) {
        self.held.extend(frame.print.iter().cloned());
        if self.is_waiting || size != self.size {
            return;
        }
        let height = self.height();
        let mut lines = std::mem::take(&mut self.held);
        let is_printed = !lines.is_empty();
        let is_moved = is_printed || self.is_forgotten;
        let (live, cursor) = fitting(frame, Self::live_rows(self.size));
        let above = self.rows_above(&lines, live.len());
        if !self.is_forgotten && above.is_none() {
            self.promote(&mut lines);
        }
        let mut writer = Writer::new(self.row, self.column, self.size.columns);
        if std::mem::take(&mut self.is_forgotten) {
            writer.move_to(0, 0);
            writer.erase_below();
            self.shown = vec![Row::default()];
            self.top = None;
        }
        if is_printed {
            self.pushed_out.clear();
        }
        let printed = above.as_ref().map_or(0, Vec::len);
        if let Some(above) = above {
            let printed = u16::try_from(printed).unwrap_or(u16::MAX);
            let cursor = cursor.map(|it| Place { row: it.row + printed, ..it });
            self.show(&[above, live.to_vec()].concat(), printed, cursor, &mut writer);
            self.shown.drain(..usize::from(printed));
            self.top = self.top.map(|top| top + printed);
        } else {
            if !lines.is_empty() {
                self.print(&lines, &mut writer);
            }
            self.show(live, 0, cursor, &mut writer);
        }
        self.set_title(frame.title.as_ref(), &mut writer);
        let is_moved = is_moved || height != self.height();
        if writer.is_empty() && self.top.is_some() && printed == 0 {
            return;
        }
        let (row, column) = writer.print_to(out, self.can.synchronized);
        (self.row, self.column) = (row - u16::try_from(printed).unwrap_or(u16::MAX), column);
        if self.can.region_feeds_scrollback && self.top.is_none() && (is_moved || self.asked == 0) {
            self.ask(out);
        }
    }

    fn resized(&mut self, size: Size, out: &mut Vec<u8>) {
        if !self.is_waiting {
            self.old_columns = self.size.columns;
        }
        self.size = size;
        self.is_waiting = true;
        self.strays = 0;
        self.ask_with_size(out);
    }

    fn reply(&mut self, reply: Option<&TerminalReply>, out: &mut Vec<u8>) {
        let place = match reply {
            None if self.is_waiting && self.strays > 0 && self.strays < MOST_STRAYS => {
                (self.asked, self.strays) = (0, self.strays + 1);
                return self.ask_with_size(out);
            }
            None => {
                self.asked = 0;
                None
            }
            Some(TerminalReply::Size(size)) => {
                self.told_size = Some(*size);
                return;
            }
            Some(TerminalReply::Cursor(place)) if self.asked > 0 => {
                self.asked -= 1;
                if self.asked > 0 {
                    return;
                }
                Some(*place)
            }
            Some(reply) => return self.can.learn(reply),
        };
        if self.is_waiting && place.is_some() && self.is_stray() {
            // The rows of the live region are those of another window: its size will come.
            self.strays = self.strays.max(1);
        } else if self.is_waiting {
            self.begin_again(place, out);
        } else if let Some(place) = place {
            self.top = place.row.checked_sub(self.asked_row);
        }
    }

    fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    fn rows_above_cursor(&self) -> Option<u16> {
        Some(self.row)
    }

    fn forget(&mut self) {
        self.is_forgotten = true;
    }

    fn restyle(&mut self, theme: Theme) {
        if self.look.theme != theme {
            self.look.theme = theme;
            self.forget();
        }
    }

    fn capabilities(&self) -> Capabilities {
        self.can
    }

    fn leave(&mut self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(self.row, self.column, self.size.columns);
        writer.move_to(0, 0);
        writer.erase_below();
        let lines = std::mem::take(&mut self.held);
        if !lines.is_empty() {
            self.print_over(&lines, &mut writer);
        }
        if std::mem::take(&mut self.is_cursor_hidden) {
            writer.raw(b"\x1b[?25h");
        }
        out.extend(writer.finish().0);
        self.shown = vec![Row::default()];
        self.pushed_out.clear();
        (self.row, self.column, self.top) = (0, Some(0), None);
        self.is_waiting = false;
    }
}

/// The rows of a frame that fit: those around the cursor, else the last ones.
pub(super) fn fitting(frame: &Frame, most: u16) -> (&[Line], Option<Place>) {
    let most = usize::from(most);
    let count = frame.live.len();
    if count <= most {
        return (&frame.live, frame.cursor);
    }
    let last = count - most;
    let first = frame.cursor.map_or(last, |place| usize::from(place.row).min(last));
    let cursor = frame.cursor.map(|place| Place {
        row: place.row.saturating_sub(u16::try_from(first).unwrap_or(u16::MAX)),
        ..place
    });
    (&frame.live[first..first + most], cursor)
}

/// The rows that a line takes which the terminal breaks.
fn rows_of(line: &Line, columns: u16) -> usize {
    let (mut rows, mut used) = (1, 0);
    for span in &line.spans {
        for (_, width) in crate::text::graphemes(&span.text) {
            if used + width > columns.max(1) {
                rows += 1;
                used = 0;
            }
            used += width;
        }
    }
    rows
}

/// The rows that a row becomes in a narrower window.
fn broken_rows(row: &Row, columns: u16) -> u16 {
    broken_place(row, row.len().saturating_sub(1), columns).0 + 1
}

/// The number of the cells in the first rows of what a row becomes in a narrower window.
fn first_cell(row: &Row, rows: u16, columns: u16) -> u16 {
    (0..row.len()).find(|cell| broken_place(row, *cell, columns).0 >= rows).unwrap_or(row.len())
}

/// The place that a column of a row gets in a narrower window.
fn broken_place(row: &Row, column: u16, columns: u16) -> (u16, u16) {
    let (mut at, mut used, mut now) = (0, 0, 0);
    loop {
        let width = row.seen(now).width.max(1);
        if used + width > columns {
            at += 1;
            used = 0;
        }
        // The column may be the second one of a wide character.
        if now + width > column {
            return (at, used + column - now);
        }
        used += width;
        now += width;
    }
}
