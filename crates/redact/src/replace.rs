//! Text with its credentials replaced by `[redacted: kind]`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use memchr::memmem;

use crate::hint::find;
use crate::scan::Scan;

/// The most passes over a text: a removal may join two parts to a new credential.
const TURNS: usize = 8;

/// The same bytes with every credential replaced by `[redacted: kind]`. What is left has none: redacting it again
/// changes nothing.
pub fn redact(text: &[u8]) -> Cow<'_, [u8]> {
    let mut redacted = replaced_once(text);
    for _ in 1..TURNS {
        let Cow::Owned(before) = &redacted else { break };
        match replaced_once(before) {
            Cow::Owned(after) if after != *before => redacted = Cow::Owned(after),
            _ => break,
        }
    }
    redacted
}

fn replaced_once(text: &[u8]) -> Cow<'_, [u8]> {
    let redacted = replaced(text);
    let has_escapes = memmem::find(&redacted, ESCAPE).is_some();
    if !has_escapes && memchr::memchr(b'\x1b', &redacted).is_none() {
        return redacted;
    }
    // Programs may put a colour into the middle of a key.
    let plain = match without_colours(&redacted) {
        Cow::Owned(plain) => match replaced(&plain) {
            Cow::Owned(redacted) => Some(redacted),
            Cow::Borrowed(_) => None,
        },
        Cow::Borrowed(_) => None,
    };
    let redacted = plain.map_or(redacted, Cow::Owned);
    if !has_escapes {
        return redacted;
    }
    // JSON may write any letter of a key as an escape.
    match replaced(&without_escapes(&redacted)) {
        Cow::Owned(redacted) => Cow::Owned(redacted),
        Cow::Borrowed(_) => redacted,
    }
}

/// The same text with every credential replaced by `[redacted: kind]`.
pub fn redact_text(text: &str) -> Cow<'_, str> {
    match redact(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // Credentials are made of whole characters.
        Cow::Owned(redacted) => Cow::Owned(String::from_utf8_lossy(&redacted).into_owned()),
    }
}

const MARK: &[u8] = b"[redacted: ";

/// Whether a text begins with what stands in the place of a credential.
fn is_mark(text: &[u8]) -> bool {
    let kind = text.strip_prefix(MARK).unwrap_or_default();
    let length = kind.iter().take_while(|byte| byte.is_ascii_lowercase() || **byte == b'_').count();
    length > 0 && kind.get(length) == Some(&b']')
}

fn replaced(text: &[u8]) -> Cow<'_, [u8]> {
    let mut redacted = Vec::new();
    let (mut copied, mut from) = (0, 0);
    let mut scan = Scan::new(text);
    while let Some(found) = find(&mut scan, from) {
        from = found.range.end.max(from + 1);
        // A match that reaches back into removed text is part of it.
        let start = found.range.start.max(copied);
        if start >= found.range.end || is_mark(&text[start..]) {
            continue;
        }
        redacted.extend_from_slice(&text[copied..start]);
        redacted.extend_from_slice(MARK);
        redacted.extend_from_slice(found.kind.as_bytes());
        redacted.push(b']');
        copied = found.range.end;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    redacted.extend_from_slice(&text[copied..]);
    Cow::Owned(redacted)
}

/// The text without what tells a terminal to change its colour or to erase, in text and in JSON.
fn without_colours(text: &[u8]) -> Cow<'_, [u8]> {
    let mut plain = Vec::new();
    let mut copied = 0;
    for (at, length) in STARTS
        .iter()
        .flat_map(|start| memmem::find_iter(text, start).map(|at| (at, start.len())))
        .collect::<BTreeMap<_, _>>()
    {
        let rest = text.get(at + length..).unwrap_or_default();
        let parameters = rest.iter().take_while(|byte| matches!(byte, b'0'..=b'?')).count();
        if at < copied || !rest.get(parameters).is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        plain.extend_from_slice(&text[copied..at]);
        copied = at + length + parameters + 1;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    plain.extend_from_slice(&text[copied..]);
    Cow::Owned(plain)
}

/// The prefix of every escape of an ASCII character in JSON.
const ESCAPE: &[u8] = b"\\u00";

/// The starts of a terminal sequence.
const STARTS: [&[u8]; 3] = [b"\x1b[", b"\\u001b[", b"\\u001B["];

/// JSON with escapes of printable characters written as those characters. It means the same.
fn without_escapes(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let digits = text.get(at + 4..at + 6).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits
            .filter(|_| text[at..].starts_with(b"\\u00"))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .filter(|byte| (b' '..127).contains(byte) && !b"\"\\".contains(byte));
        if let Some(byte) = escaped {
            plain.push(byte);
            at += 6;
            continue;
        }
        plain.push(text[at]);
        at += 1;
        // The second of two backslashes begins no escape.
        if text[at - 1] == b'\\' && at < text.len() && text[at] == b'\\' {
            plain.push(b'\\');
            at += 1;
        }
    }
    plain
}

#[cfg(test)]
mod tests;
