//! A screen: a text that is read, or a list to choose from, a table, over the lower half of the terminal.

use super::Addressee;
use super::picker::Picker;
use super::table::Table;
use crate::frame::Line;

#[derive(Clone, Debug)]
pub(crate) enum Screen {
    Text(TextScreen),
    Table(Box<Table>),
    Viewer(Viewer),
    Picker(Picker),
}

/// A text of several lines.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextScreen {
    pub(crate) title: String,
    pub(crate) lines: Vec<Line>,
    pub(crate) scroll: usize,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
/// A transcript, read page by page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Viewer {
    pub(crate) agent: Addressee,
    /// The lines that were read, oldest first.
    pub(crate) lines: Vec<Line>,
    /// The offset before which the next older page ends; 0 at the beginning.
    pub(crate) start: Option<u64>,
    pub(crate) is_loading: bool,
    /// Lines below the last one that is shown: 0 is the end.
    pub(crate) scroll: usize,
    /// Rows of that line which are below the pane.
    pub(crate) below: usize,
    /// True while older pages are searched.
    pub(crate) is_seeking: bool,
    /// True if the last search found nothing.
    pub(crate) is_missed: bool,
    /// The words that are sought, while and after they are typed.
    pub(crate) sought: String,
    pub(crate) is_typing: bool,
}

/// The most lines that a viewer keeps.
pub(crate) const MOST_VIEWED: usize = 50_000;
