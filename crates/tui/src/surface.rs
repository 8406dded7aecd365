//! Surfaces: what writes frames to a terminal.
//!
//! A surface makes bytes and writes none itself: the caller writes what one call made with one `write`.

mod capabilities;
mod fullscreen;
mod inline;
mod plain;
mod row;
mod scrollback;
mod whole;
mod writer;

pub use capabilities::Capabilities;
pub use fullscreen::FullscreenSurface;
pub use inline::InlineSurface;
pub use plain::PlainSurface;
pub use whole::TwoScreens;
pub(crate) use writer::ERASE_FROM_TOP;

use crate::frame::{Frame, Line, Size};
use crate::input::{Mouse, TerminalReply};
use crate::look::{Look, Theme};
use crate::text::foreign_text;

/// The longest title of a window.
const LONGEST_TITLE: usize = 120;

/// The screen of the terminal that is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tui {
    /// The first one: finished lines go into the terminal's own scrollback.
    #[default]
    Inline,
    /// The other one, whole, with the mouse.
    Fullscreen,
}

impl Tui {
    /// The screen that the setting `tui` names.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "default" | "inline" => Some(Self::Inline),
            "fullscreen" => Some(Self::Fullscreen),
            _ => None,
        }
    }
}

/// A move through what was printed, where the terminal's own scrollback does not have it. Up is negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scroll {
    Rows(isize),
    Pages(isize),
    Top,
    Bottom,
}

/// The result of an event of the mouse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MouseEffect {
    /// Nothing else is to be done.
    None,
    /// It is for the live region, whose rows its place counts.
    Live(Mouse),
    /// A text was selected.
    Copied(String),
}

/// The makings of surfaces for one terminal.
#[derive(Clone, Copy, Debug)]
pub struct Surfaces {
    pub look: Look,
    /// Lines in words, one below the other.
    pub is_plain: bool,
    /// False leaves the mouse to the terminal.
    pub has_mouse: bool,
    /// The abilities of the terminal, until it tells of them.
    pub can: Capabilities,
}

impl Surfaces {
    pub fn make(&self, tui: Tui, size: Size, can: Capabilities) -> Box<dyn Surface> {
        match tui {
            _ if self.is_plain => Box::new(PlainSurface::new(self.look)),
            Tui::Inline => {
                let first = InlineSurface::new(size, self.look, can);
                Box::new(TwoScreens::new(first, self.look, size))
            }
            Tui::Fullscreen => {
                Box::new(FullscreenSurface::new(size, self.look, can, self.has_mouse))
            }
        }
    }
}

/// The bytes that set the title of the window. The text may be foreign.
fn title(text: &str) -> Vec<u8> {
    let safe: String = foreign_text(text).chars().take(LONGEST_TITLE).collect();
    format!("\x1b]2;{safe}\x07").into_bytes()
}

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

    /// Whether the terminal shows its other screen.
    fn is_on_other_screen(&self) -> bool {
        false
    }

    /// Writes the whole live region again at the next draw: after Ctrl+L, an editor or a suspension.
    fn forget(&mut self);

    /// Shows everything from now on in the colours of a theme.
    fn restyle(&mut self, theme: Theme);

    /// Leaves the terminal to what comes after us: the live region is gone, the cursor below what was printed.
    fn leave(&mut self, out: &mut Vec<u8>);

    /// Leaves the terminal to another program for a while; call [`forget`](Self::forget) when it is ours again.
    fn lend(&mut self, out: &mut Vec<u8>) {
        self.leave(out);
    }

    /// Takes lines that stand elsewhere already into a scrollback of its own, if it has one.
    fn recall(&mut self, _lines: &[Line]) {}

    /// Moves through a scrollback of its own, if it has one.
    fn scroll(&mut self, _scroll: Scroll) {}

    /// Learns of the mouse, where it is ours.
    fn mouse(&mut self, _mouse: &Mouse) -> MouseEffect {
        MouseEffect::None
    }

    /// The abilities of the terminal, as far as they are known.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
}

#[cfg(test)]
mod tests;
