//! Lines that are too long for a row, broken between words.

use crate::frame::{Line, Span, Style, Wrap};
use crate::text::width::{graphemes, text_width};

/// The widest that prose is set.
pub const PROSE_COLUMNS: u16 = 100;

/// The rows of a line at a width. Prose is broken between words, a flush line where the row ends.
pub fn wrapped(line: &Line, columns: u16) -> Vec<Line> {
    let columns = match line.wrap {
        Wrap::Prose => usize::from(columns.clamp(1, PROSE_COLUMNS)),
        Wrap::Flush => usize::from(columns.max(1)),
    };
    if line.width() <= columns {
        return vec![line.clone()];
    }
    // A wide character fits after it.
    let hang = usize::from(line.hang).min(columns / 2).min(columns.saturating_sub(2));
    let mut rows = Rows { done: Vec::new(), open: Line::flush(), used: 0, columns, hang };
    for piece in pieces(line) {
        rows.take(&piece);
    }
    rows.done.push(rows.open);
    rows.done
}

/// A word with the look of each part, or the blanks between words.
struct WrapWord<'a> {
    parts: Vec<(&'a str, Style)>,
    width: usize,
    is_blank: bool,
}

struct Rows {
    done: Vec<Line>,
    open: Line,
    used: usize,
    columns: usize,
    hang: usize,
}

impl Rows {
    fn take(&mut self, piece: &WrapWord<'_>) {
        let is_start = self.used == if self.done.is_empty() { 0 } else { self.hang };
        if self.used + piece.width <= self.columns {
            // Blanks at which a row was broken are gone.
            if !(piece.is_blank && is_start && !self.done.is_empty()) {
                self.add(piece);
            }
        } else if piece.is_blank {
            self.next_row();
        } else if piece.width <= self.columns - self.hang && !is_start {
            self.next_row();
            self.add(piece);
        } else {
            self.add_broken(piece);
        }
    }

    fn add(&mut self, piece: &WrapWord<'_>) {
        for (text, style) in &piece.parts {
            push(&mut self.open, text, *style);
        }
        self.used += piece.width;
    }

    /// Breaks a word that is longer than a row.
    fn add_broken(&mut self, piece: &WrapWord<'_>) {
        for (text, style) in &piece.parts {
            for (grapheme, width) in graphemes(text) {
                if self.used + usize::from(width) > self.columns && self.used > self.hang {
                    self.next_row();
                }
                push(&mut self.open, grapheme, *style);
                self.used += usize::from(width);
            }
        }
    }

    fn next_row(&mut self) {
        let mut next = Line::flush();
        next.push(" ".repeat(self.hang), Style::PLAIN);
        let mut row = std::mem::replace(&mut self.open, next);
        trim_end(&mut row);
        self.done.push(row);
        self.used = self.hang;
    }
}

/// Takes plain blanks off the end of a row.
fn trim_end(row: &mut Line) {
    while let Some(last) = row.spans.last_mut() {
        if last.style.reversed || last.style.underline {
            return;
        }
        last.text.truncate(last.text.trim_end_matches(' ').len());
        if !last.text.is_empty() {
            return;
        }
        row.spans.pop();
    }
}

fn push(line: &mut Line, text: &str, style: Style) {
    match line.spans.last_mut() {
        Some(last) if last.style == style => last.text.push_str(text),
        _ => line.spans.push(Span::new(text, style)),
    }
}

fn pieces(line: &Line) -> Vec<WrapWord<'_>> {
    let by_words = line.wrap == Wrap::Prose;
    let mut pieces: Vec<WrapWord<'_>> = Vec::new();
    for span in &line.spans {
        let mut rest = span.text.as_str();
        while let Some(first) = rest.chars().next() {
            let is_blank = by_words && first == ' ';
            let end = if by_words {
                rest.find(|char| (char == ' ') != is_blank).unwrap_or(rest.len())
            } else {
                rest.len()
            };
            let (text, after) = rest.split_at(end);
            rest = after;
            let width = text_width(text);
            match pieces.last_mut() {
                Some(last) if last.is_blank == is_blank => {
                    last.parts.push((text, span.style));
                    last.width += width;
                }
                _ => pieces.push(WrapWord { parts: vec![(text, span.style)], width, is_blank }),
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(text: &str, columns: u16) -> Vec<String> {
        wrapped(&Line::from(text), columns).iter().map(Line::text).collect()
    }

    #[test]
    fn prose_is_broken_between_words() {
        assert_eq!(rows("one two three", 8), ["one two", "three"]);
        assert_eq!(rows("a abcdefghij b", 4), ["a ab", "cdef", "ghij", "b"]);
        assert_eq!(rows("日本語 日本", 5), ["日本", "語", "日本"]);
        let hanging = Line { hang: 2, ..Line::from("- one two three") };
        let rows: Vec<String> = wrapped(&hanging, 9).iter().map(Line::text).collect();
        assert_eq!(rows, ["- one two", "  three"]);
    }

    #[test]
    fn prose_is_never_wider_than_a_hundred_columns() {
        let text = "word ".repeat(100);
        assert!(wrapped(&Line::from(text.trim()), 300).iter().all(|row| row.width() <= 100));
    }

    proptest! {
        #[test]
        fn every_letter_is_there_once_and_no_row_is_too_wide(
            text in "[a-z 日]{0,80}", columns in 2_u16..40, hang in 0_u16..6
        ) {
            let line = Line { hang, ..Line::from(text.as_str()) };
            let rows = wrapped(&line, columns);
            prop_assert!(rows.len() == 1 || rows.iter().all(|row| row.width() <= usize::from(columns)));
            let letters = |text: &str| text.replace(' ', "");
            let found: String = rows.iter().map(|row| letters(&row.text())).collect();
            prop_assert_eq!(found, letters(&text));
        }
    }
}
