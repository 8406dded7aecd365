//! A screen: a text that is read, or a list to choose from, over the lower half of the terminal.

use centurion_protocol::SessionId;

use super::Addressee;
use super::picker::Picker;
use crate::frame::Line;

#[derive(Clone, Debug)]
pub(crate) enum Screen {
    Text(TextScreen),
    Sessions(SessionList),
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

/// The sessions that can be resumed.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionList {
    /// Newest first.
    pub(crate) sessions: Vec<SessionEntry>,
    pub(crate) typed: String,
    pub(crate) selected: usize,
    /// The ids of the sessions in which the typed words were said.
    pub(crate) found: Option<(String, Vec<SessionId>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionEntry {
    pub id: SessionId,
    pub title: String,
    /// Words such as `4 m`.
    pub age: String,
    pub bytes: u64,
}

impl SessionList {
    /// The sessions that fit what was typed.
    pub(crate) fn fitting(&self) -> Vec<&SessionEntry> {
        let typed = self.typed.to_lowercase();
        let found =
            self.found.as_ref().filter(|(words, _)| *words == self.typed).map(|(_, ids)| ids);
        let fits = |entry: &&SessionEntry| {
            entry.title.to_lowercase().contains(&typed)
                || entry.id.to_string().starts_with(&typed)
                || found.is_some_and(|ids| ids.contains(&entry.id))
        };
        self.sessions.iter().filter(fits).collect()
    }
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
