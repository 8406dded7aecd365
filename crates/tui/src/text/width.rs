//! The cells that text takes, grapheme by grapheme.

use bstr::ByteSlice as _;
use unicode_width::UnicodeWidthStr as _;

/// The graphemes of a text, each with its width in cells.
pub(crate) fn graphemes(text: &str) -> impl Iterator<Item = (&str, u16)> {
    text.as_bytes().graphemes().map(|grapheme| (grapheme, width(grapheme)))
}

/// The cells of one grapheme: two at most.
fn width(grapheme: &str) -> u16 {
    if let [byte] = grapheme.as_bytes() {
        return u16::from((0x20..0x7f).contains(byte));
    }
    u16::try_from(grapheme.width().min(2)).unwrap_or(2)
}

/// The cells of a text on one row.
pub(crate) fn text_width(text: &str) -> usize {
    graphemes(text).map(|(_, width)| usize::from(width)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_cells_and_marks_none() {
        for (text, expected) in
            [("abc", 3), ("日本", 4), ("e\u{301}x", 2), ("", 0), ("👩\u{200d}👧", 2), ("é", 1)]
        {
            assert_eq!(text_width(text), expected, "{text}");
        }
    }
}
