//! The plain surface: lines, one below the other, for screen readers and terminals that can do nothing else.
//!
//! It never moves the cursor. A line of the live region is written when it appears, and not again while it stands.

use super::Surface;
use crate::frame::{Frame, Line, Size};
use crate::input::TerminalReply;

/// Writes lines only.
#[derive(Debug, Default)]
pub struct PlainSurface {
    shown: Vec<String>,
}

impl PlainSurface {
    pub fn new() -> Self {
        Self::default()
    }
}

impl Surface for PlainSurface {
    fn draw(&mut self, frame: &Frame, _size: Size, out: &mut Vec<u8>) {
        for line in &frame.print {
            write(&line.text(), out);
        }
        let live: Vec<String> = frame.live.iter().map(Line::text).collect();
        for line in live.iter().filter(|line| !self.shown.contains(line)) {
            write(line, out);
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

    fn leave(&mut self, _out: &mut Vec<u8>) {}
}

fn write(line: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(line.trim_end().as_bytes());
    out.extend_from_slice(b"\r\n");
}
