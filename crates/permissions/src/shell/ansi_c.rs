//! The escapes of `$'…'`.

use std::iter::Peekable;
use std::str::Chars;

/// The decoded text, or `None` where an escape is not certainly one character.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut decoded = String::new();
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        decoded.push(if character == '\\' { escape(&mut rest)? } else { character });
    }
    Some(decoded)
}

fn escape(rest: &mut Peekable<Chars<'_>>) -> Option<char> {
    Some(match rest.next()? {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'e' | 'E' => '\u{1b}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        same @ ('\\' | '\'' | '"' | '?') => same,
        'x' => byte(number(rest, 16, 2, None)?)?,
        'u' => char::from_u32(number(rest, 16, 4, None)?)?,
        'U' => char::from_u32(number(rest, 16, 8, None)?)?,
        digit @ '0'..='7' => byte(number(rest, 8, 3, Some(digit))?)?,
        _ => return None,
    })
    .filter(|character| *character != '\0')
}

/// A byte above ASCII is only a part of a character.
fn byte(code: u32) -> Option<char> {
    char::from_u32(code).filter(char::is_ascii)
}

fn number(
    rest: &mut Peekable<Chars<'_>>,
    radix: u32,
    most: usize,
    first: Option<char>,
) -> Option<u32> {
    let mut digits: String = first.into_iter().collect();
    while digits.len() < most
        && let Some(digit) = rest.next_if(|c| c.is_digit(radix))
    {
        digits.push(digit);
    }
    u32::from_str_radix(&digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_as_the_shell_reads_them() {
        for (text, expected) in [
            ("curl", Some("curl")),
            (r"\x63url", Some("curl")),
            (r"\143url", Some("curl")),
            (r"\u0063url", Some("curl")),
            (r"\U00000063url", Some("curl")),
            (r"a\tb\n\'", Some("a\tb\n'")),
            (r"\xc3\xa9", None),
            (r"a\x", None),
            (r"\0", None),
            (r"\cA", None),
            (r"\q", None),
            ("\\", None),
        ] {
            assert_eq!(decode(text).as_deref(), expected, "{text}");
        }
    }
}
