//! The plain surface: lines, one below the other, for screen readers and terminals that can do nothing else.
//!
//! It never moves the cursor. A line of the live region is written when it appears, and not again while it stands.

use super::Surface;
use crate::frame::{Frame, Line, Size};
use crate::input::TerminalReply;
use crate::look::{Look, Theme};
use crate::text::graphemes;

/// Writes lines only.
#[derive(Debug, Default)]
pub struct PlainSurface {
    shown: Vec<String>,
    look: Look,
}

impl PlainSurface {
    pub fn new(look: Look) -> Self {
        Self { shown: Vec::new(), look }
    }

    fn write(&self, line: &str, out: &mut Vec<u8>) {
        for (grapheme, width) in graphemes(line.trim_end()) {
            out.extend_from_slice(self.look.glyph(grapheme, width).as_bytes());
        }
        // The terminal edits lines, and begins each at its left end by itself.
        out.push(b'\n');
    }
}

impl Surface for PlainSurface {
    fn draw(&mut self, frame: &Frame, _size: Size, out: &mut Vec<u8>) {
        for line in &frame.print {
            self.write(&line.text(), out);
        }
        let live: Vec<String> = frame.live.iter().map(Line::text).collect();
        for line in live.iter().filter(|line| !self.shown.contains(line)) {
            self.write(line, out);
        }
        self.shown = live;
    }

    fn resized(&mut self, _size: Size, _out: &mut Vec<u8>) {}

    fn reply(&mut self, _reply: Option<&TerminalReply>, _out: &mut Vec<u8>) {}

    fn is_waiting(&self) -> bool {
        false
    }

    fn forget(&mut self) {
        self.shown.clear();
    }

    fn restyle(&mut self, _theme: Theme) {}

    fn leave(&mut self, _out: &mut Vec<u8>) {}
}
