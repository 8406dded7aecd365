//! The terminal: events and keys become a model, the model becomes a [`Frame`], and a [`Surface`] writes the frame.
//!
//! The terminal side knows no session, file or task:
//!
//! - `frame`: what a view makes: lines to print once, and lines of the live region.
//! - `look`: what the surroundings allow: colours, glyphs, motion.
//! - `notify`: tells a person who looks elsewhere.
//! - `surface`: turns frames into bytes for a terminal.
//! - `input`: turns a terminal's bytes into keys, pastes and replies.
//! - `keys`: the meaning of keys, from defaults and `keybindings.json`.
//! - `draft`: the text that a person is writing.
//! - `attachment`: images that go along with a prompt.
//! - `terminal`: the modes of the terminal, and its bytes; `keeper` restores it after a kill.
//! - `text`: foreign text, Markdown, code and diffs as lines.
//!
//! The application side knows a session by its events, questions and handle:
//!
//! - `model`, `fold`: all that is known of it, and the pure step from one happening to the next model and to effects.
//! - `view`: the pure way from a model to a frame.
//! - `front`, `app`: the front of a session, and the loop that carries effects out and draws.

mod app;
mod attachment;
mod draft;
mod effect;
mod fold;
mod frame;
mod front;
mod input;
mod keeper;
mod keys;
mod look;
mod model;
mod notify;
mod surface;
mod terminal;
mod text;
mod view;

pub use app::{App, Desk, DeskFuture, ExitChoice, page_lines};
pub use attachment::{Attachment, NoImage};
pub use draft::{
    Completion, Draft, DraftError, EditAction, History, Submission, load_draft, save_draft,
};
pub use effect::{Effect, SettingLevel, TableChange};
pub use fold::{Fact, Happening, fold};
pub use frame::{Colour, Frame, Line, Place, Size, Span, Style, Wrap};
pub use front::TerminalFront;
pub use input::{
    Input, InputParser, Key, KeyCode, Mouse, MouseEvent, TerminalReply, unbracketed_paste,
};
pub use keeper::{KEEPER_ARGUMENT, KeeperProgram, run as run_keeper};
pub use keys::{Action, Bindings, CommandNumber, Context, KeyMistake, Meaning};
pub use look::{Look, Theme};
pub use model::asks::{AskKind, AskNumber, Asked, FieldKind, FormField, Permission, Question};
pub use model::picker::{PickFor, PickRow, Picker};
pub use model::prompts::{PromptNumber, When};
pub use model::table::{FileLine, Table, TableOf, TableRow, Tone, lines_of};
pub use model::{CommandHint, Model, Moment};
pub use surface::{
    Capabilities, FullscreenSurface, InlineSurface, MouseEffect, PlainSurface, Scroll, Surface,
    Surfaces, Tui, TwoScreens,
};
pub use terminal::{Terminal, TerminalOptions};
pub use text::{MarkdownStream, PROSE_COLUMNS, diff, foreign, foreign_text, highlighted, wrapped};
pub use view::view;
