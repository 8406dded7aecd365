//! Turns the terminal output of a program into plain text.

/// Plain text: replaces bytes that are not UTF-8, drops escape sequences and control characters, and keeps only the
/// last state of a line that was overwritten.
pub(super) fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain =
        PlainWriter { done: String::with_capacity(text.len()), line: 0, returned: false };
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\x1b' => skip_escape(&mut characters),
            // The one-character form of `ESC [`.
            '\u{9b}' => skip_control_sequence(&mut characters),
            '\r' => plain.carriage_return(),
            '\n' => plain.newline(),
            '\x08' => plain.backspace(),
            '\t' => plain.push('\t'),
            character if character.is_control() => {}
            character => plain.push(character),
        }
    }
    plain.done
}

type Characters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

struct PlainWriter {
    done: String,
    /// The start of the present line.
    line: usize,
    /// Whether a carriage return came last: the next text replaces the line.
    returned: bool,
}

impl PlainWriter {
    fn push(&mut self, character: char) {
        if std::mem::take(&mut self.returned) {
            self.done.truncate(self.line);
        }
        self.done.push(character);
    }

    fn carriage_return(&mut self) {
        self.returned = true;
    }

    fn newline(&mut self) {
        // A carriage return directly before it is the other half of a line end.
        self.returned = false;
        self.done.push('\n');
        self.line = self.done.len();
    }

    fn backspace(&mut self) {
        if !self.returned && self.done.len() > self.line {
            self.done.pop();
        }
    }
}

/// Skips an escape sequence, up to the end of its line: a sequence that is cut off must not swallow the rest of the
/// output.
fn skip_escape(characters: &mut Characters<'_>) {
    match characters.peek() {
        Some('[') => {
            characters.next();
            skip_control_sequence(characters);
        }
        // Titles, hyperlinks and the like: up to a bell or `ESC \`.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(character) = characters.next_if(|character| *character != '\n') {
                match character {
                    '\x07' | '\u{9c}' => return,
                    '\x1b' => {
                        characters.next_if_eq(&'\\');
                        return;
                    }
                    _ => {}
                }
            }
        }
        _ => {
            while characters.next_if(|character| (' '..='/').contains(character)).is_some() {}
            characters.next_if(|character| ('0'..='~').contains(character));
        }
    }
}

/// Skips parameters and the letter that ends them.
fn skip_control_sequence(characters: &mut Characters<'_>) {
    while characters.next_if(|character| (' '..='?').contains(character)).is_some() {}
    characters.next_if(|character| ('@'..='~').contains(character));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_show_is_kept() {
        for (raw, expected) in [
            (&b"\x1b[1;31mred\x1b[0m plain\n"[..], "red plain\n"),
            (b"\x1b]0;title\x07text", "text"),
            (b"\x1b]8;;https://e.x\x1b\\link\x1b]8;;\x1b\\", "link"),
            (b"\x1b(B\x1b=a", "a"),
            ("\u{9b}2Kx".as_bytes(), "x"),
            (b"dos\r\nlines\r\n", "dos\nlines\n"),
            (b" 10%\r 50%\r100%\ndone", "100%\ndone"),
            (b"stays\r", "stays"),
            (b"stays\r\r\nnext", "stays\nnext"),
            (b"first\nold\rnew\n", "first\nnew\n"),
            (b"abc\x08\x08x", "ax"),
            (b"\x08a\n\x08b", "a\nb"),
            (b"n\0u\0l\tl\x01", "nul\tl"),
            (b"bad \xff\xfe bytes", "bad \u{fffd}\u{fffd} bytes"),
            (b"\x1b]never ends\nnext line", "\nnext line"),
            (b"cut off \x1b[3", "cut off "),
            (b"cut off \x1b", "cut off "),
        ] {
            assert_eq!(plain(raw), expected, "{:?}", String::from_utf8_lossy(raw));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_become_text_without_control_characters(bytes: Vec<u8>) {
            let text = plain(&bytes);
            let dirty = |character: char| character.is_control() && !"\n\t".contains(character);
            proptest::prop_assert!(!text.contains(dirty));
        }

        #[test]
        fn ordinary_text_stays_as_it_is(text in "[a-zA-Zäöü€ \n\t.,]*") {
            proptest::prop_assert_eq!(plain(text.as_bytes()), text);
        }
    }
}
