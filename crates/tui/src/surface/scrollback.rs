//! A scrollback of our own: the lines that were printed, as rows of a window.

use std::collections::VecDeque;

use super::Scroll;
use crate::frame::{Line, Wrap};
use crate::text::{graphemes, wrapped};

/// The most lines that are kept.
const MOST_LINES: usize = 20_000;

/// A place in what was printed: a line by its number, a row of it, and a column of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) line: u64,
    pub(super) row: u16,
    pub(super) column: u16,
}

/// A line with the rows that it takes at the present width, once they were counted.
#[derive(Clone, Debug)]
struct PrintedLine {
    line: Line,
    rows: Option<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Scrollback {
    lines: VecDeque<PrintedLine>,
    /// The number of the first line that is kept.
    first: u64,
    /// The first line that was printed here: what is before it stands elsewhere too.
    own: u64,
    columns: u16,
    /// The rows below the window.
    up: usize,
    /// The rows of the window that was made last, with its height.
    window: Option<(usize, Vec<(Point, Line)>)>,
}

impl Scrollback {
    pub(super) fn new(columns: u16) -> Self {
        Self { lines: VecDeque::new(), first: 0, own: 0, columns, up: 0, window: None }
    }

    /// Adds lines at the end. A window that is not there stays where it is.
    pub(super) fn add(&mut self, lines: &[Line]) {
        if lines.is_empty() {
            return;
        }
        self.window = None;
        for line in lines {
            let rows = (self.up > 0).then(|| wrapped(line, self.columns).len());
            self.up += rows.unwrap_or_default();
            self.lines.push_back(PrintedLine { line: line.clone(), rows });
        }
        while self.lines.len() > MOST_LINES {
            self.lines.pop_front();
            self.first += 1;
        }
    }

    /// Puts lines before everything else that stand elsewhere already.
    pub(super) fn recall(&mut self, lines: &[Line]) {
        self.add(lines);
        self.own = self.end();
    }

    fn end(&self) -> u64 {
        self.first + self.lines.len() as u64
    }

    pub(super) fn resize(&mut self, columns: u16) {
        self.window = None;
        self.columns = columns;
        self.lines.iter_mut().for_each(|kept| kept.rows = None);
    }

    /// The rows below the window.
    pub(super) fn below(&self) -> usize {
        self.up
    }

    fn height(&mut self, at: usize) -> usize {
        let columns = self.columns;
        let Some(kept) = self.lines.get_mut(at) else { return 0 };
        *kept.rows.get_or_insert_with(|| wrapped(&kept.line, columns).len())
    }

    /// All rows.
    fn total(&mut self) -> usize {
        (0..self.lines.len()).map(|at| self.height(at)).sum()
    }

    /// The rows of a window of a height, each with its place.
    pub(super) fn window(&mut self, room: usize) -> &[(Point, Line)] {
        if self.window.as_ref().is_none_or(|(made_for, _)| *made_for != room) {
            let mut rows = self.rows(room);
            if rows.len() < room && self.up > 0 {
                // The window was moved beyond the first row.
                self.up = self.up.min(self.total().saturating_sub(room));
                rows = self.rows(room);
            }
            self.window = Some((room, rows));
        }
        self.window.as_ref().map_or(&[], |(_, rows)| rows)
    }

    fn rows(&mut self, room: usize) -> Vec<(Point, Line)> {
        let mut rows: Vec<(Point, Line)> = Vec::with_capacity(room);
        let mut skip = self.up;
        for at in (0..self.lines.len()).rev() {
            if rows.len() >= room {
                break;
            }
            let height = self.height(at);
            if height <= skip {
                skip -= height;
                continue;
            }
            let line = self.first + at as u64;
            let Some(kept) = self.lines.get(at) else { break };
            let broken = wrapped(&kept.line, self.columns).into_iter().enumerate();
            let shown: Vec<(usize, Line)> =
                broken.take(height - std::mem::take(&mut skip)).collect();
            let place =
                |row| Point { line, row: u16::try_from(row).unwrap_or(u16::MAX), column: 0 };
            rows.extend(shown.into_iter().rev().map(|(row, shown)| (place(row), shown)));
        }
        rows.truncate(room);
        rows.reverse();
        rows
    }

    /// Moves the window.
    pub(super) fn scroll(&mut self, scroll: Scroll, room: usize) {
        let page = isize::try_from(room.saturating_sub(2).max(1)).unwrap_or(isize::MAX);
        let before = self.up;
        self.up = match scroll {
            Scroll::Rows(rows) => self.up.saturating_add_signed(-rows),
            Scroll::Pages(pages) => self.up.saturating_add_signed(pages.saturating_mul(-page)),
            Scroll::Top => usize::MAX,
            Scroll::Bottom => 0,
        };
        if self.up != before {
            self.window = None;
            self.window(room);
        }
    }

    /// The last lines that were printed here.
    pub(super) fn last(&self, count: usize) -> Vec<Line> {
        let own = usize::try_from(self.own.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let from = self.lines.len().saturating_sub(count).max(own);
        self.lines.iter().skip(from).map(|kept| kept.line.clone()).collect()
    }

    /// The text between two places, without the breaks of the window.
    pub(super) fn text(&self, from: Point, to: Point) -> String {
        let (from, to) = if from <= to { (from, to) } else { (to, from) };
        if from == to {
            return String::new();
        }
        let mut lines: Vec<String> = Vec::new();
        for number in from.line..=to.line {
            let at = number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
            let Some(kept) = at.and_then(|at| self.lines.get(at)) else { continue };
            let is_selected = |row: u16, column: u16| {
                let here = Point { line: number, row, column };
                from <= here && here <= to
            };
            let text = match kept.line.wrap {
                Wrap::Flush => flush_text(&kept.line, self.columns, is_selected),
                Wrap::Prose => prose_text(&kept.line, self.columns, is_selected),
            };
            lines.push(text.trim_end().to_owned());
        }
        lines.join("\n")
    }
}

/// The selected text of a line that is broken where rows end: every blank counts.
fn flush_text(line: &Line, columns: u16, is_selected: impl Fn(u16, u16) -> bool) -> String {
    let (mut row, mut column) = (0, 0);
    let mut text = String::new();
    for span in &line.spans {
        for (grapheme, width) in graphemes(&span.text) {
            if column + width > columns && column > 0 {
                (row, column) = (row + 1, 0);
            }
            if is_selected(row, column) {
                text.push_str(grapheme);
            }
            column += width;
        }
    }
    text
}

/// The selected text of a line that is broken between words, with one blank for each break.
fn prose_text(line: &Line, columns: u16, is_selected: impl Fn(u16, u16) -> bool) -> String {
    let mut text = String::new();
    for (row, broken) in wrapped(line, columns).iter().enumerate() {
        let row = u16::try_from(row).unwrap_or(u16::MAX);
        let hang = if row > 0 { line.hang } else { 0 };
        let mut column = 0;
        let mut part = String::new();
        for span in &broken.spans {
            for (grapheme, width) in graphemes(&span.text) {
                if column >= hang && is_selected(row, column) {
                    part.push_str(grapheme);
                }
                column += width;
            }
        }
        if !text.is_empty() && !part.is_empty() {
            text.push(' ');
        }
        text.push_str(&part);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Style;

    fn line(text: &str) -> Line {
        Line::flush().with(text, Style::PLAIN)
    }

    fn shown(scrollback: &mut Scrollback, room: usize) -> Vec<String> {
        scrollback.window(room).iter().map(|(_, row)| row.text()).collect()
    }

    #[test]
    fn a_window_stays_where_it_is_while_lines_come_and_ends_at_the_first_row() {
        let mut scrollback = Scrollback::new(10);
        let lines: Vec<Line> = (0..20).map(|number| line(&format!("line {number}"))).collect();
        scrollback.add(&lines);
        assert_eq!(shown(&mut scrollback, 3), ["line 17", "line 18", "line 19"]);
        scrollback.scroll(Scroll::Rows(-4), 3);
        assert_eq!(shown(&mut scrollback, 3), ["line 13", "line 14", "line 15"]);
        scrollback.add(&[line("a line of more than one row")]);
        assert_eq!(shown(&mut scrollback, 3), ["line 13", "line 14", "line 15"]);
        assert_eq!(scrollback.below(), 4 + 3);
        scrollback.scroll(Scroll::Top, 3);
        assert_eq!(shown(&mut scrollback, 3), ["line 0", "line 1", "line 2"]);
        scrollback.scroll(Scroll::Pages(-9), 3);
        assert_eq!(shown(&mut scrollback, 3), ["line 0", "line 1", "line 2"]);
        scrollback.scroll(Scroll::Bottom, 3);
        assert_eq!(shown(&mut scrollback, 3), ["a line of", "more than", "one row"]);
    }

    #[test]
    fn a_copy_has_the_breaks_of_the_text_and_none_of_the_window() {
        // Failure 13: copies have false breaks.
        let mut scrollback = Scrollback::new(10);
        let command = "cargo test --workspace --no-fail-fast";
        let prose = Line { hang: 2, ..Line::from("- some words that are broken") };
        scrollback.add(&[line(command), prose, line("end")]);
        let begin = Point::default();
        let end = Point { line: 2, row: 0, column: 9 };
        let expected = format!("{command}\n- some words that are broken\nend");
        assert_eq!(scrollback.text(begin, end), expected);
        assert_eq!(scrollback.text(end, begin), expected, "also from below");
        let part =
            scrollback.text(Point { column: 6, ..begin }, Point { row: 1, column: 0, ..begin });
        assert_eq!(part, "test ".trim_end());
    }

    #[test]
    fn lines_are_bounded_and_the_last_own_ones_are_those_that_were_printed_here() {
        let mut scrollback = Scrollback::new(10);
        scrollback.recall(&[line("elsewhere")]);
        scrollback.add(&[line("here")]);
        assert_eq!(scrollback.last(200), [line("here")]);
        assert_eq!(shown(&mut scrollback, 5), ["elsewhere", "here"]);
        for _ in 0..MOST_LINES {
            scrollback.add(&[line("x")]);
        }
        assert_eq!(scrollback.lines.len(), MOST_LINES);
        assert_eq!(scrollback.last(200).len(), 200);
    }
}
