//! Input: what a terminal sends, as keys, pastes, mouse events and replies.

mod parser;
mod sequence;
#[cfg(test)]
mod tests;

pub use parser::{InputParser, unbracketed_paste};

use crate::frame::{Place, Size};

/// One thing that came from the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    Key(Key),
    /// A whole line, where the terminal edits lines itself; without its end.
    Line(String),
    /// Pasted text, as it was pasted; line ends are `\n`.
    Paste(String),
    Resized(Size),
    /// The window gained or lost the focus.
    Focus(bool),
    Mouse(Mouse),
    Reply(TerminalReply),
}

/// A key with its modifiers. Shift is not set for a character that it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub code: KeyCode,
    pub ctrl: bool,
    pub alt: bool,
    pub shift: bool,
}

impl Key {
    /// The key alone.
    pub const fn plain(code: KeyCode) -> Self {
        Self { code, ctrl: false, alt: false, shift: false }
    }

    pub const fn ctrl(self) -> Self {
        Self { ctrl: true, ..self }
    }

    pub const fn alt(self) -> Self {
        Self { alt: true, ..self }
    }

    pub const fn shift(self) -> Self {
        Self { shift: true, ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyCode {
    Char(char),
    Enter,
    Escape,
    Tab,
    Backspace,
    Delete,
    Insert,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    F(u8),
}

/// An event of the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mouse {
    pub event: MouseEvent,
    /// The place on the screen.
    pub place: Place,
    pub ctrl: bool,
    pub alt: bool,
    pub shift: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MouseEvent {
    Pressed,
    Released,
    Dragged,
    Moved,
    WheelUp,
    WheelDown,
}

/// An answer of the terminal to a question of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalReply {
    /// The place of the cursor.
    Cursor(Place),
    /// The size of the window, as the terminal itself has it.
    Size(Size),
    /// Whether a mode is known to the terminal (`DECRPM`).
    Mode { mode: u16, known: bool },
    /// The flags of kitty keys in force: the terminal knows them.
    KittyKeys(u8),
    /// Name and version of the terminal.
    Version(String),
    /// The terminal's attributes: every terminal answers this, so what was asked before is answered or never will be.
    Attributes,
}
