//! The window that lines are shown in: how wide it is, and how they fit.
//!
//! Widths are in columns: a letter of some scripts takes two, and colours take none. Where there is no window,
//! such as in a file, everything fits.

use std::io::IsTerminal;

use unicode_width::UnicodeWidthChar;

/// The columns that are left for words in the narrowest of windows.
const LEAST: usize = 16;

/// The columns of the terminal that standard error goes to.
pub(super) fn width() -> Option<usize> {
    let stderr = std::io::stderr();
    if !stderr.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stderr).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// The number of columns of a plain text.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(|letter| letter.width().unwrap_or(0)).sum()
}

/// The beginning of a plain text that takes `most` columns at most, with a mark where something is missing.
pub(super) fn cut(text: &str, most: usize) -> String {
    if columns(text) <= most { text.to_owned() } else { fit(text, Some(most)) }
}

/// A line that may have colours, cut to what the window shows.
pub(super) fn fit(line: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return line.to_owned() };
    let (mut shown, mut taken, mut is_code, mut has_codes) = (String::new(), 0, false, false);
    // Up to where there is room for the mark as well.
    let mut safe = 0;
    for letter in line.chars() {
        if letter == '\x1b' || is_code {
            has_codes = true;
            // A colour ends with its letter: nothing else that commands a terminal gets here.
            is_code = letter != 'm';
            shown.push(letter);
            if taken < width {
                safe = shown.len();
            }
            continue;
        }
        taken += letter.width().unwrap_or(0);
        if taken > width {
            shown.truncate(safe);
            shown.push('…');
            if has_codes {
                shown.push_str("\x1b[0m");
            }
            return shown;
        }
        shown.push(letter);
        if taken < width {
            safe = shown.len();
        }
    }
    shown
}

/// A plain line in pieces that fit beside something that takes `beside` columns, cut between words where
/// there are some.
pub(super) fn wrap(line: &str, beside: usize, width: Option<usize>) -> Vec<String> {
    let Some(width) = width else { return vec![line.to_owned()] };
    let room = width.saturating_sub(beside).max(LEAST);
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for word in line.split_inclusive(' ') {
        let needed = columns(word.trim_end());
        // A word that is longer than a line begins where it stands.
        if columns(&piece) + needed > room && needed <= room && !piece.trim().is_empty() {
            pieces.push(std::mem::take(&mut piece).trim_end().to_owned());
        }
        for letter in word.chars() {
            if letter != ' ' && columns(&piece) + letter.width().unwrap_or(0) > room {
                pieces.push(std::mem::take(&mut piece).trim_end().to_owned());
            }
            piece.push(letter);
        }
    }
    pieces.push(piece.trim_end().to_owned());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_columns_and_its_colours_end_with_it() {
        assert_eq!(fit("abcdef", Some(6)), "abcdef");
        assert_eq!(fit("abcdefg", Some(6)), "abcde…");
        assert_eq!(fit("日本語日本", Some(6)), "日本…", "half a letter is none");
        assert_eq!(fit("日本語", Some(6)), "日本語");
        assert_eq!(fit("\x1b[31mabcdefg\x1b[0m", Some(6)), "\x1b[31mabcde…\x1b[0m");
        assert_eq!(fit("\x1b[31mabc\x1b[0mdef", Some(6)), "\x1b[31mabc\x1b[0mdef");
        assert_eq!(fit(&"x".repeat(500), None).len(), 500, "a file is as wide as it needs to be");
    }

    #[test]
    fn words_are_wrapped_and_what_has_none_is_cut_into_pieces() {
        let text = "one two three four five six";
        assert_eq!(wrap(text, 2, Some(18)), ["one two three", "four five six"]);
        assert_eq!(wrap(&"日".repeat(10), 2, Some(18)), ["日".repeat(8), "日".repeat(2)]);
        assert_eq!(wrap(&"x".repeat(20), 2, Some(18)), ["x".repeat(16), "x".repeat(4)]);
        let long = format!("- {}", "日".repeat(10));
        assert_eq!(wrap(&long, 2, Some(18)), [format!("- {}", "日".repeat(7)), "日".repeat(3)]);
        assert_eq!(wrap("", 2, Some(18)), [""]);
        assert_eq!(wrap(text, 2, None), [text]);
        assert_eq!(wrap("  - indented words here", 0, Some(16)), ["  - indented", "words here"]);
        let narrow = wrap(text, 30, Some(20));
        assert!(narrow.iter().all(|piece| columns(piece) <= LEAST), "{narrow:?}");
    }

    #[test]
    fn no_piece_is_wider_than_its_room_and_nothing_is_lost() {
        let text = "a 日本 bb ccc 👩‍👩‍👧 dddddddddddddddddddddd é e\u{301} f";
        for width in 16..60 {
            let pieces = wrap(text, 0, Some(width));
            assert!(pieces.iter().all(|piece| columns(piece) <= width), "{width}: {pieces:?}");
            let letters = |text: &str| text.chars().filter(|it| *it != ' ').collect::<String>();
            assert_eq!(letters(&pieces.concat()), letters(text));
            assert!(columns(&cut(text, width)) <= width);
        }
    }
}
