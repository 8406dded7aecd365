//! Surfaces: what writes frames to a terminal.
//!
//! A surface makes bytes and writes none itself: the caller writes what one call made with one `write`.

mod capabilities;
mod inline;
mod plain;
mod row;
mod whole;
mod writer;

pub use capabilities::Capabilities;
pub use inline::InlineSurface;
pub use plain::PlainSurface;
pub use whole::TwoScreens;

use crate::frame::{Frame, Size};
use crate::input::TerminalReply;
use crate::look::Theme;

/// Turns frames into bytes for a terminal.
pub trait Surface {
    /// Shows a frame: prints its finished lines once, and makes the live region look as it says.
    fn draw(&mut self, frame: &Frame, size: Size, out: &mut Vec<u8>);

    /// Learns that the terminal has another size. Call this 50 ms after the last signal.
    ///
    /// A surface may ask the terminal for the cursor's place; [`is_waiting`](Self::is_waiting) is then true, and draws
    /// only remember what to print until [`reply`](Self::reply) brings the answer.
    fn resized(&mut self, size: Size, out: &mut Vec<u8>);

    /// Learns what the terminal answered; `None` says that it did not answer in time.
    fn reply(&mut self, reply: Option<&TerminalReply>, out: &mut Vec<u8>);

    /// Whether the surface waits for an answer of the terminal.
    fn is_waiting(&self) -> bool;

    /// The rows of the live region above the cursor; `None` where nothing is to be erased after a kill.
    fn rows_above_cursor(&self) -> Option<u16> {
        None
    }

    /// Writes the whole live region again at the next draw: after Ctrl+L, an editor or a suspension.
    fn forget(&mut self);

    /// Shows everything from now on in the colours of a theme.
    fn restyle(&mut self, theme: Theme);

    /// Leaves the terminal to what comes after us: the live region is gone, the cursor below what was printed.
    fn leave(&mut self, out: &mut Vec<u8>);
}

#[cfg(test)]
mod tests;
