//! Foreign text made safe: what a model, a command or a repository wrote cannot drive the terminal.
//!
//! Every control character becomes a visible mark: escapes, C0 and C1, those that turn the direction of writing, and
//! those that are not seen at all. What makes graphemes (joiners, variants) stays.

use unicode_width::UnicodeWidthChar as _;

use crate::frame::{Span, Style};

/// Columns between tab stops.
const TAB: usize = 4;

/// The most marks without a width on one character: more of them are one mark of ours.
const MOST_COMBINED: usize = 8;

/// Foreign text as safe spans. Line ends are marks too: split the text into lines before.
pub fn foreign(text: &str, style: Style) -> Vec<Span> {
    let mut made = ForeignWriter { spans: Vec::new(), style, column: 0, combined: 0 };
    for char in text.chars() {
        made.take(char);
    }
    made.spans
}

/// Foreign text as one safe text: for titles and notifications, which have no look.
pub fn foreign_text(text: &str) -> String {
    foreign(text, Style::PLAIN).into_iter().map(|span| span.text).collect()
}

struct ForeignWriter {
    spans: Vec<Span>,
    style: Style,
    column: usize,
    /// Characters without a width since the last one that has one.
    combined: usize,
}

impl ForeignWriter {
    fn take(&mut self, char: char) {
        if char == '\t' {
            let blanks = TAB - self.column % TAB;
            (0..blanks).for_each(|_| self.push(' ', self.style));
            return;
        }
        let Some(mark) = mark(char) else {
            if char.width() == Some(0) {
                self.combined += 1;
                if self.combined > MOST_COMBINED {
                    return;
                }
            }
            return self.push(char, self.style);
        };
        // A mark is told from the same characters in the text by its look.
        let style = Style { reversed: !self.style.reversed, ..self.style };
        mark.chars().for_each(|char| self.push(char, style));
    }

    fn push(&mut self, char: char, style: Style) {
        let width = char.width().unwrap_or_default();
        self.column += width;
        if width > 0 {
            self.combined = 0;
        }
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.text.push(char),
            _ => self.spans.push(Span::new(char, style)),
        }
    }
}

/// The visible mark of a character that must not reach the terminal.
fn mark(char: char) -> Option<String> {
    let code = u32::from(char);
    match char {
        // The pictures of control characters.
        '\0'..='\u{1f}' => char::from_u32(0x2400 + code).map(String::from),
        '\u{7f}' => Some("\u{2421}".to_owned()),
        '\u{80}'..='\u{9f}' => Some(format!("<{code:02x}>")),
        _ if is_unseen(char) => Some(format!("<U+{code:04X}>")),
        _ => None,
    }
}

/// Whether a character turns the direction of writing, ends a line, or says something that is not seen.
fn is_unseen(char: char) -> bool {
    matches!(char,
        '\u{ad}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'
        | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn foreign_text_does_not_drive_the_terminal() {
        for (text, expected) in [
            ("a\u{1b}[2Jb", "a␛[2Jb"),
            ("\u{9b}31m", "<9b>31m"),
            ("\u{1b}]0;owned\u{7}", "␛]0;owned␇"),
            ("x\ry\n", "x␍y␊"),
            ("a\u{202e}b", "a<U+202E>b"),
            ("\u{e0041}", "<U+E0041>"),
            ("a\tb", "a   b"),
            ("日本\u{7f}", "日本␡"),
        ] {
            assert_eq!(foreign_text(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_mark_looks_unlike_the_same_characters_in_the_text() {
        let spans = foreign("␛\u{1b}", Style::PLAIN);
        assert_eq!(spans.len(), 2);
        assert!(!spans[0].style.reversed && spans[1].style.reversed);
    }

    #[test]
    fn a_tower_of_marks_is_cut() {
        let text = format!("a{}b", "\u{301}".repeat(1000));
        assert!(foreign_text(&text).chars().count() < 12);
    }

    proptest! {
        #[test]
        fn no_control_character_is_left(text in "\\PC*|.*|[\u{0}-\u{2ff}\u{2000}-\u{2070}]*") {
            let safe = foreign_text(&text);
            prop_assert!(!safe.chars().any(|char| char.is_control() || is_unseen(char)), "{safe:?}");
        }

        #[test]
        fn harmless_text_stays_as_it_is(text in "[ -~äöü日本語]*") {
            prop_assert_eq!(foreign_text(&text), text);
        }
    }
}
