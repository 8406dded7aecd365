//! Text that arrives piece by piece: a credential may be cut anywhere between two pieces.

use std::borrow::Cow;

use memchr::{memmem, memrchr};

use crate::hint::find;
use crate::pem;
use crate::replace::redact;
use crate::scan::Scan;

/// The longest line, or block of a key, that is held back until its end is known.
const LONGEST: usize = 64 * 1024;

/// Redacts text line by line, and blocks of private keys as a whole.
#[derive(Debug, Default)]
pub struct Stream {
    held: Vec<u8>,
    has_redacted: bool,
}

impl Stream {
    /// Takes in what arrived, and adds to `out` what is known to be whole.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.held.extend_from_slice(piece);
        let whole = match memrchr(b'\n', &self.held) {
            Some(end) => {
                let lines = &self.held[..=end];
                block_start(lines).unwrap_or(lines.len()).min(pem::open_body(lines))
            }
            None => 0,
        };
        let whole =
            if self.held.len() - whole > LONGEST { self.held.len() - LONGEST / 2 } else { whole };
        if whole > 0 {
            self.release(whole, out);
        }
    }

    /// Adds what was held back.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.release(self.held.len(), out);
    }

    /// Whether anything was taken out so far.
    pub fn has_redacted(&self) -> bool {
        self.has_redacted
    }

    fn release(&mut self, end: usize, out: &mut Vec<u8>) {
        let end = before_credential(&self.held, end);
        let redacted = redact(&self.held[..end]);
        self.has_redacted |= matches!(redacted, Cow::Owned(_));
        out.extend_from_slice(&redacted);
        self.held.drain(..end);
    }
}

/// The start of an unfinished block of a private key.
fn block_start(text: &[u8]) -> Option<usize> {
    let key = memmem::rfind(text, b"PRIVATE KEY")?;
    let begin = memmem::rfind(&text[..key], b"-----BEGIN ")?;
    let is_open = key - begin < 64 && memmem::find(&text[key..], b"-----END ").is_none();
    is_open.then_some(begin)
}

/// The index, or the beginning of the credential that it would cut.
fn before_credential(text: &[u8], end: usize) -> usize {
    let (mut scan, mut from) = (Scan::new(text), 0);
    while let Some(found) = find(&mut scan, from).filter(|found| found.range.start < end) {
        if found.range.end > end && found.range.start > 0 {
            return found.range.start;
        }
        from = found.range.end.max(from + 1);
    }
    // One that begins the text is longer than anything that can be held.
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nabcdEFGH1234\n-----END RSA PRIVATE KEY-----\n";

    fn streamed(text: &str, size: usize) -> String {
        let (mut stream, mut out) = (Stream::default(), Vec::new());
        for piece in text.as_bytes().chunks(size) {
            stream.push(piece, &mut out);
        }
        stream.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_credential_is_found_wherever_it_is_cut() {
        let text = format!(
            "one\ntoken ghp_{} two\n{KEY}three\nlast sk-ant-api03-{}",
            "a1".repeat(18),
            "b2".repeat(20)
        );
        let whole = String::from_utf8(redact(text.as_bytes()).into_owned()).unwrap();
        assert!(
            !whole.contains("a1a1") && !whole.contains("MIIE") && !whole.contains("b2b2"),
            "{whole}"
        );
        for size in 1..text.len() {
            assert_eq!(streamed(&text, size), whole, "in pieces of {size}");
        }
    }

    #[test]
    fn a_key_without_its_beginning_is_held_until_its_end_is_known() {
        let lines = "MIIEowIBAAKCAQEAx0123456789abcdefghij\n".repeat(20);
        let text = format!("one\n{lines}-----END RSA PRIVATE KEY-----\ntwo\n");
        for size in [1, 7, 64, 1_000] {
            assert_eq!(streamed(&text, size), "one\n[redacted: private_key]\ntwo\n", "{size}");
        }
        let other = format!("one\n{lines}two\n");
        assert_eq!(streamed(&other, 7), other);
    }

    #[test]
    fn a_line_without_end_is_not_held_for_ever() {
        let (mut stream, mut out) = (Stream::default(), Vec::new());
        for _ in 0..100 {
            stream.push(&b"word ".repeat(1_000), &mut out);
            assert!(stream.held.len() <= LONGEST + 5_000, "{} bytes are held", stream.held.len());
        }
        stream.finish(&mut out);
        assert_eq!(out, b"word ".repeat(100_000));
    }

    #[test]
    fn a_block_that_never_ends_is_neither_shown_nor_held_for_ever() {
        let (mut stream, mut out) = (Stream::default(), Vec::new());
        stream.push(b"-----BEGIN PRIVATE KEY-----\nMIIEow\n", &mut out);
        assert_eq!(out, b"");
        stream.finish(&mut out);
        assert_eq!(out, b"[redacted: private_key]");
    }
}
