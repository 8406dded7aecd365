//! One row of cells.

use crate::frame::{Line, Style};
use crate::look::Look;
use crate::text::graphemes;

/// The cells of one row, without plain blanks at its end. A cell that nothing was written to is a plain blank.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    text: String,
    cells: Vec<Cell>,
}

/// One cell: a range of the row's text. The second cell of a wide character has no text and no width.
#[derive(Clone, Copy, Debug)]
struct Cell {
    start: usize,
    end: usize,
    width: u16,
    style: Style,
}

/// A cell as it is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VisibleCell<'a> {
    pub(crate) text: &'a str,
    pub(crate) width: u16,
    pub(crate) style: Style,
}

/// The cell that nothing was written to.
pub(crate) const BLANK: VisibleCell<'static> =
    VisibleCell { text: " ", width: 1, style: Style::PLAIN };

impl Row {
    /// The row of a line, cut where the terminal ends.
    pub(crate) fn new(line: &Line, columns: u16, look: Look) -> Self {
        let columns = usize::from(columns);
        let mut row = Self::default();
        for span in &line.spans {
            let style = look.style(span.style);
            for (grapheme, width) in graphemes(&span.text) {
                if row.cells.len() + usize::from(width) > columns {
                    row.cut(columns, look);
                    row.trim();
                    return row;
                }
                row.push(look.glyph(grapheme, width), width, style);
            }
        }
        row.trim();
        row
    }

    /// Whether the rows look the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let cells = self.len().max(other.len());
        (0..cells).all(|column| self.seen(column) == other.seen(column))
    }

    /// Whether most cells of the longer row look the same in the other one.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        let cells = self.len().max(other.len());
        let same = (0..cells).filter(|column| self.seen(*column) == other.seen(*column)).count();
        same * 2 > usize::from(cells) || cells == 0
    }

    /// The cells that the row has.
    pub(crate) fn len(&self) -> u16 {
        u16::try_from(self.cells.len()).unwrap_or(u16::MAX)
    }

    pub(crate) fn seen(&self, column: u16) -> VisibleCell<'_> {
        self.cells.get(usize::from(column)).map_or(BLANK, |cell| VisibleCell {
            text: &self.text[cell.start..cell.end],
            width: cell.width,
            style: cell.style,
        })
    }

    fn push(&mut self, text: &str, width: u16, style: Style) {
        let start = self.text.len();
        self.text.push_str(text);
        let end = self.text.len();
        match (width, self.cells.last_mut()) {
            // A mark without a character before it belongs to the cell before it, which may be wide.
            (0, Some(last)) if last.end == start && last.width > 0 => last.end = end,
            (0, _) => self.text.truncate(start),
            _ => {
                self.cells.push(Cell { start, end, width, style });
                if width == 2 {
                    self.cells.push(Cell { start: end, end, width: 0, style });
                }
            }
        }
    }

    /// Ends the row with a mark that says that more would follow.
    fn cut(&mut self, columns: usize, look: Look) {
        while self.cells.len() >= columns.max(1) {
            self.cells.pop();
        }
        // Half of a wide character is not shown.
        if self.cells.last().is_some_and(|cell| cell.width == 2) {
            self.cells.pop();
        }
        if columns > 0 {
            self.text.truncate(self.cells.last().map_or(0, |cell| cell.end));
            self.push(look.glyph("…", 1), 1, Style::PLAIN);
        }
    }

    fn trim(&mut self) {
        while let Some(last) = self.cells.last()
            && last.style == Style::PLAIN
            && &self.text[last.start..last.end] == " "
        {
            self.cells.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str, columns: u16) -> Row {
        Row::new(&Line::from(text), columns, Look::default())
    }

    fn text(row: &Row) -> String {
        (0..row.len()).map(|column| row.seen(column).text).collect()
    }

    #[test]
    fn a_row_is_cut_with_a_mark() {
        assert_eq!(text(&row("abcdef", 6)), "abcdef");
        assert_eq!(text(&row("abcdefg", 6)), "abcde…");
        assert_eq!(text(&row("日本語", 5)), "日本…");
        assert_eq!(text(&row("日本語", 4)), "日…");
        assert_eq!(row("日本語", 4).len(), 3);
        assert_eq!(text(&row("ab  ", 9)), "ab");
        assert_eq!(text(&row("ab", 0)), "");
    }

    #[test]
    fn marks_belong_to_the_character_before_them() {
        let row = row("e\u{301}x", 9);
        assert_eq!((row.len(), row.seen(0).text), (2, "e\u{301}"));
    }
}
