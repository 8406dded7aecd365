//! The one form of a line of JSON: no reader takes anything but its end for the end of a line.
//!
//! U+2028 and U+2029 are allowed inside JSON text, and many readers of lines split there. They are written
//! as escapes, which mean the same.

use std::borrow::Cow;

/// The first two bytes of both characters in UTF-8; the third byte is one of two.
const BEGINNING: &[u8] = b"\xe2\x80";

/// Makes a line of one JSON text.
pub fn end_json_line(json: &mut Vec<u8>) {
    if let Cow::Owned(escaped) = escape(json) {
        *json = escaped;
    }
    json.push(b'\n');
}

/// The same JSON without characters that some readers take for the end of a line.
pub fn escape_line_separators(json: &str) -> Cow<'_, str> {
    match escape(json.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(json),
        Cow::Owned(escaped) => String::from_utf8(escaped).map_or(Cow::Borrowed(json), Cow::Owned),
    }
}

pub(crate) fn escape(json: &[u8]) -> Cow<'_, [u8]> {
    let mut escaped = Vec::new();
    let mut rest = 0;
    for at in memchr::memmem::find_iter(json, BEGINNING) {
        let escape: &[u8] = match json.get(at + BEGINNING.len()) {
            Some(0xa8) => b"\\u2028",
            Some(0xa9) => b"\\u2029",
            _ => continue,
        };
        escaped.extend_from_slice(json.get(rest..at).unwrap_or_default());
        escaped.extend_from_slice(escape);
        rest = at + BEGINNING.len() + 1;
    }
    if rest == 0 {
        return Cow::Borrowed(json);
    }
    escaped.extend_from_slice(json.get(rest..).unwrap_or_default());
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_are_escaped_and_mean_the_same() {
        // D-61
        let text = "a\u{2028}\u{2029}\u{2026}\u{2014}b\u{2028}";
        let mut line = serde_json::to_vec(text).unwrap();
        end_json_line(&mut line);
        let line = String::from_utf8(line).unwrap();
        assert_eq!(line, "\"a\\u2028\\u2029\u{2026}\u{2014}b\\u2028\"\n");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
        assert!(matches!(escape_line_separators("\"\u{2026}\""), Cow::Borrowed(_)));
        assert_eq!(escape(b"\xe2\x80"), b"\xe2\x80".as_slice());
    }
}
