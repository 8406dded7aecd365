//! The character classes of bash: the one definition of blanks, separators and names.
//!
//! Bash separates words at spaces and tabs, ends commands at newlines, and gives no meaning to any other white space: a
//! carriage return, a form feed or a no-break space is a part of a word. No function of the standard library has the
//! same classes, so nothing here uses `trim` or `is_whitespace`. Characters that a reader cannot see are refused
//! altogether.

use centurion_protocol::is_hidden;

/// Whether the byte separates words.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Whether the byte separates words or commands.
pub(crate) fn is_blank_or_newline(byte: u8) -> bool {
    is_blank(byte) || byte == b'\n'
}

/// Whether the byte, outside quotes, ends a word.
pub(crate) fn is_metacharacter(byte: u8) -> bool {
    is_blank_or_newline(byte) || matches!(byte, b'|' | b'&' | b';' | b'(' | b')' | b'<' | b'>')
}

/// Whether the text is a name of a variable.
pub(crate) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(starts_name) && bytes.all(continues_name)
}

pub(crate) fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub(crate) fn continues_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The words between blanks and newlines.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', '\t', '\n']).filter(|word| !word.is_empty())
}

/// Whether the text contains a blank or a newline.
pub(crate) fn has_blank(text: &str) -> bool {
    text.bytes().any(is_blank_or_newline)
}

/// The text that reaches bash: the program reads the script with `$(<file)`, which drops newlines at its end.
pub(crate) fn as_run(text: &str) -> &str {
    text.trim_end_matches('\n')
}

/// Whether bash and a person may read the character differently: control characters, white space other than space, tab
/// and newline, and characters without width or with a direction.
pub(crate) fn is_unreadable(character: char) -> bool {
    match character {
        '\t' | '\n' | ' '..='~' => false,
        other => other.is_control() || other.is_whitespace() || is_hidden(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_cannot_see_is_unreadable() {
        let controls = (0..0x20).chain(0x7f..0xa0).filter(|code| ![0x9, 0xa].contains(code));
        let blanks = [0xa0, 0x1680, 0x2000, 0x2003, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000];
        let hidden = [0xad, 0x200b, 0x200f, 0x202e, 0x2060, 0x2066, 0xfeff, 0xe0041];
        for code in controls.chain(blanks).chain(hidden) {
            let character = char::from_u32(code).unwrap();
            assert!(is_unreadable(character), "U+{code:X}");
        }
        for character in "\t\n az~äß€漢😀\u{200d}\u{fe0f}".chars() {
            assert!(!is_unreadable(character), "{character:?}");
        }
    }

    #[test]
    fn words_stand_between_blanks_only() {
        let found: Vec<&str> = words(" a\tb\nc\rd\u{a0}e\u{b}f ").collect();
        assert_eq!(found, ["a", "b", "c\rd\u{a0}e\u{b}f"]);
    }
}
