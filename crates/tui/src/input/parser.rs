//! The parser of a terminal's bytes.
//!
//! Bytes come in pieces of any size, and the pieces make no difference: what is not whole waits for the rest. Every
//! sequence has a bound; one that is longer is dropped.

use super::{Input, sequence};

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// The longest paste that is one input. A longer one comes in several.
const LONGEST_PASTE: usize = 64 << 20;

/// The longest sequence that is not a paste.
const LONGEST_SEQUENCE: usize = 4096;

/// Reads bytes in pieces of any size.
#[derive(Debug, Default)]
pub struct InputParser {
    /// The bytes of something that has not come whole.
    pending: Vec<u8>,
    paste: Option<Vec<u8>>,
    /// A sequence that is too long is skipped up to its end.
    is_skipping: bool,
}

/// The beginning of some bytes.
pub(super) enum Begin {
    /// So many bytes are one input, or mean nothing.
    Whole(usize, Option<Input>),
    /// More bytes must come.
    Open,
}

impl InputParser {
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether something has begun that may be whole as it is, such as the Escape key.
    pub fn is_pending(&self) -> bool {
        !self.pending.is_empty() && self.paste.is_none()
    }

    /// Whether a paste has begun whose end has not come.
    pub fn is_pasting(&self) -> bool {
        self.paste.is_some()
    }

    /// Takes a paste as far as it has come: its end is lost. Keys are keys again.
    pub fn give_up_paste(&mut self, out: &mut Vec<Input>) {
        let Some(mut paste) = self.paste.take() else { return };
        // A mark that was cut off is no text.
        let cut = (1..PASTE_ENDS.len()).rfind(|length| paste.ends_with(&PASTE_ENDS[..*length]));
        paste.truncate(paste.len() - cut.unwrap_or(0));
        if !paste.is_empty() {
            out.push(Input::Paste(pasted(&paste)));
        }
    }

    /// Reads more bytes.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<Input>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = if self.paste.is_some() {
                self.feed_paste(rest, out)
            } else {
                let (byte, after) = (rest[0], &rest[1..]);
                self.feed_byte(byte, out);
                after
            };
        }
    }

    /// Takes what has come as it is. Call this when no more bytes came for 50 ms: a lone Escape is a key then.
    pub fn flush(&mut self, out: &mut Vec<Input>) {
        if self.paste.is_some() {
            return;
        }
        self.is_skipping = false;
        let pending = std::mem::take(&mut self.pending);
        out.extend(sequence::given_up(&pending));
    }

    fn feed_byte(&mut self, byte: u8, out: &mut Vec<Input>) {
        if self.is_skipping {
            self.is_skipping = !matches!(byte, 7 | 0x18 | 0x1a | b'\\');
            return;
        }
        self.pending.push(byte);
        loop {
            if self.pending == PASTE_BEGINS {
                self.pending.clear();
                self.paste = Some(Vec::new());
                return;
            }
            match sequence::begin(&self.pending) {
                Begin::Whole(used, input) => {
                    out.extend(input);
                    self.pending.drain(..used);
                    if self.pending.is_empty() {
                        return;
                    }
                }
                Begin::Open if self.pending.len() > LONGEST_SEQUENCE => {
                    self.pending.clear();
                    self.is_skipping = true;
                    return;
                }
                Begin::Open => return,
            }
        }
    }

    /// Takes bytes of a paste; returns those after its end.
    fn feed_paste<'a>(&mut self, bytes: &'a [u8], out: &mut Vec<Input>) -> &'a [u8] {
        let Some(paste) = &mut self.paste else { return bytes };
        let before = paste.len();
        paste.extend_from_slice(bytes);
        let from = before.saturating_sub(PASTE_ENDS.len() - 1);
        let found = paste[from..].windows(PASTE_ENDS.len()).position(|it| it == PASTE_ENDS);
        if let Some(at) = found.map(|at| from + at) {
            let used = at + PASTE_ENDS.len() - before;
            paste.truncate(at);
            out.push(Input::Paste(pasted(paste)));
            self.paste = None;
            return &bytes[used..];
        }
        if paste.len() > LONGEST_PASTE {
            // The end may have begun: its bytes stay.
            let rest = paste.split_off(paste.len() - PASTE_ENDS.len());
            out.push(Input::Paste(pasted(paste)));
            *paste = rest;
        }
        &[]
    }
}

/// The text of a paste: terminals send line ends as the Enter key does.
fn pasted(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", "\n").replace('\r', "\n")
}

/// Makes one paste of what one read brought from a terminal without bracketed paste: several characters with an Enter
/// between them were not typed, and that Enter is a line end.
pub fn unbracketed_paste(inputs: &mut Vec<Input>) {
    let text: Option<String> = inputs.iter().map(sequence::typed).collect();
    let Some(text) = text else { return };
    let body = text.trim_end_matches('\n');
    if body.contains('\n') && body.chars().count() > 2 {
        *inputs = vec![Input::Paste(text)];
    }
}
