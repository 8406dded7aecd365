//! Blocks of private keys: PEM, OpenSSH and PGP, also where the beginning or the end was cut off.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use memchr::memmem;

use crate::FoundSecret;
use crate::scan::{Class, Scan, work};

const KIND: &str = "private_key";
const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";

/// A shorter line may be a word.
const SHORT: usize = 24;

/// The longest name of a kind of key, with its dashes.
const LONGEST_LABEL: usize = 64;

/// The longest line before a label, and the longest line that is looked at as a whole.
const LONGEST_MARGIN: usize = 1024;
const LONGEST_LINE: usize = 4 * 1024;

/// Reads the block that `PRIVATE KEY` at the index belongs to: the label of its beginning, or of its end
/// if nothing of the beginning is there.
pub(crate) fn block(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    let text = scan.text;
    let before = &text[at.saturating_sub(LONGEST_LABEL)..at];
    let offset = at - before.len();
    work::count(2 * LONGEST_LABEL);
    let label_end = label_end(text, at)?;
    if let Some(begin) = memmem::rfind(before, BEGIN) {
        return Some(FoundSecret { kind: KIND, range: offset + begin..body_end(scan, label_end) });
    }
    let label = offset + memmem::rfind(before, END)?;
    let line = margin_start(text, label)?;
    // Other labels of the same line have the same lines before them.
    if scan.rejected_line == Some(line) {
        return None;
    }
    let start = lines_start(text, line, label, 1);
    if start < label {
        return Some(FoundSecret { kind: KIND, range: start..label_end });
    }
    scan.rejected_line = Some(line);
    None
}

/// The start of the last lines that may belong to a key whose end has not arrived; the length of the text if its
/// last line is not one.
pub(crate) fn open_body(text: &[u8]) -> usize {
    let end = text.len();
    margin_start(text, end).map_or(end, |line| lines_start(text, line, end, SHORT))
}

/// The end of a label that has `PRIVATE KEY` at the index or behind it.
fn label_end(text: &[u8], at: usize) -> Option<usize> {
    let dashes = text[at..].windows(5).take(LONGEST_LABEL).position(|five| five == b"-----")?;
    Some(at + dashes + 5)
}

/// The end of the key material, with the label of its end if that is there.
fn body_end(scan: &mut Scan, from: usize) -> usize {
    let text = scan.text;
    let (mut at, mut end) = (from, from);
    loop {
        let looked_at = &text[at..text.len().min(at + LONGEST_LINE)];
        let line = &looked_at[..line_length(looked_at)];
        work::count(line.len() + 1);
        if let Some(label) = memmem::find(line, END).filter(|label| is_margin(&line[..*label])) {
            return label_end(text, at + label + END.len()).unwrap_or(at + line.len());
        }
        if line.len() == LONGEST_LINE || (!line.is_empty() && !is_material(line, 1)) {
            // The last line may have something else behind it.
            let head = scan.run(Class::Base64, at);
            let is_whole = line.len() == LONGEST_LINE && line_end(&text[at + head..]) > 0;
            if head < SHORT || !is_whole {
                return if head < SHORT { end } else { at + head };
            }
            end = at + head;
        } else {
            end = at + line.len();
        }
        match line_end(&text[end..]) {
            0 => return end,
            length => at = end + length,
        }
    }
}

/// The start of a label's line, if only a margin precedes the label.
fn margin_start(text: &[u8], label: usize) -> Option<usize> {
    let offset = label.saturating_sub(LONGEST_MARGIN);
    let start = offset + line_start(&text[offset..label]);
    work::count(label - start);
    let is_whole = start > offset || offset == 0;
    (is_whole && is_margin(&text[start..label])).then_some(start)
}

/// The start of the key material before a line; `end` if there is none.
fn lines_start(text: &[u8], line: usize, end: usize, shortest: usize) -> usize {
    let (mut at, mut start) = (line, end);
    loop {
        let line_end = at - line_end_before(&text[..at]);
        if line_end == at {
            return start;
        }
        at = line_start(&text[..line_end]);
        let line = &text[at..line_end];
        work::count(line.len() + 1);
        if !is_material(line, shortest) {
            // The first line may stand behind something else.
            let tail = line.iter().rev().take_while(|byte| is_base64(**byte)).count();
            return if tail < SHORT { start } else { line_end - tail };
        }
        start = at;
    }
}

/// The bytes up to the next line end or quote.
fn line_length(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\n' | b'\r' | b'"' | b'\'' => break,
            b'\\' => match escaped(&text[at..]) {
                Some((b't', length)) => at += length,
                _ => break,
            },
            _ => at += 1,
        }
    }
    at
}

/// The bytes of a line end that the text begins with: as it is written in text, in JSON and in JSON inside JSON.
fn line_end(text: &[u8]) -> usize {
    match (text.first(), escaped(text)) {
        (Some(b'\n' | b'\r'), _) => 1,
        (_, Some((b'n' | b'r', length))) => length,
        _ => 0,
    }
}

/// The letter that backslashes make something else of, and the length of it all.
fn escaped(text: &[u8]) -> Option<(u8, usize)> {
    let backslashes = text.iter().take_while(|byte| **byte == b'\\').count();
    let letter = text.get(backslashes).filter(|_| backslashes > 0)?;
    Some((*letter, backslashes + 1))
}

/// The bytes of a line end that the text ends with.
fn line_end_before(text: &[u8]) -> usize {
    match text {
        [.., b'\n' | b'\r'] => 1,
        [rest @ .., b'n' | b'r'] => match backslashes_before(rest) {
            0 => 0,
            count => count + 1,
        },
        _ => 0,
    }
}

/// The start of the last line of a text.
fn line_start(text: &[u8]) -> usize {
    let mut at = text.len();
    while at > 0 {
        let is_end = match text[at - 1] {
            b'\n' | b'\r' | b'"' | b'\'' => true,
            b't' | b'\\' => false,
            _ => backslashes_before(&text[..at - 1]) > 0,
        };
        if is_end {
            break;
        }
        at -= 1;
    }
    at
}

fn backslashes_before(text: &[u8]) -> usize {
    text.iter().rev().take_while(|byte| **byte == b'\\').count()
}

/// Whether a line is of a key: base64, or a header such as `Proc-Type: 4,ENCRYPTED`. A short line may be
/// the last of a key, or a word.
fn is_material(line: &[u8], shortest: usize) -> bool {
    let line = line.trim_ascii_end();
    let length = line.iter().rev().take_while(|byte| is_base64(**byte)).count();
    let (margin, body) = line.split_at(line.len() - length);
    // The letter of an escaped tab is no part of the key.
    let (margin, body) = match (margin, body) {
        ([.., b'\\'], [b't', ..]) => line.split_at(margin.len() + 1),
        both => both,
    };
    let is_word = || body.len() < SHORT && body.iter().all(u8::is_ascii_lowercase);
    (body.len() >= shortest && is_margin(margin) && !is_word())
        || HEADERS.iter().any(|header| line.trim_ascii_start().starts_with(header))
}

/// Headers of a block of a key.
const HEADERS: [&[u8]; 7] =
    [b"Proc-Type:", b"DEK-Info:", b"Version:", b"Comment:", b"Charset:", b"Hash:", b"MessageID:"];

/// Whether this is what tools put before the lines that they show: blanks, `12`, `12:`, `12-`, `12|`, `12→`, a path
/// before these, or the sign of a change or a quotation.
fn is_margin(text: &[u8]) -> bool {
    let text = without_blanks_at_end(text);
    let signs: [&[u8]; 6] = [b":", b"-", b"|", b">", b"+", "→".as_bytes()];
    let text = signs.into_iter().find_map(|sign| text.strip_suffix(sign)).unwrap_or(text);
    let text = without_blanks_at_end(text);
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = without_blanks_at_end(&text[..text.len() - digits]);
    rest.is_empty() || (digits > 0 && matches!(rest, [.., b':' | b'-']))
}

/// The text without blanks at its end, and without tabs that are written `\t`.
fn without_blanks_at_end(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_end();
        match text {
            [rest @ .., b't'] if rest.ends_with(b"\\") => {
                text = &rest[..rest.len() - backslashes_before(rest)];
            }
            _ => return text,
        }
    }
}

fn is_base64(byte: u8) -> bool {
    Class::Base64.contains(byte)
}

/// A whole block in base64, as in `client-key-data` of a cluster's configuration. The hint is how
/// `-----BEGIN ` begins there.
pub(crate) fn encoded_block(scan: &mut Scan, at: usize) -> Option<FoundSecret> {
    let length = scan.run(Class::Base64, at);
    // The label is in the first bytes.
    let head = scan.text.get(at..at + length.min(80) / 4 * 4)?;
    let label = STANDARD.decode(head).ok()?;
    memmem::find(&label, b"PRIVATE KEY")?;
    Some(FoundSecret { kind: KIND, range: at..at + length })
}
