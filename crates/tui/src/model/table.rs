//! A table: rows of what a session or this machine has, and below them all that is known of the marked row.
//!
//! Sessions, agents, settings, rules, servers and the like are all tables. Each has a file of its own in `fold/tables`, which
//! says what its keys do; the program around the terminal brings the rows.

use std::collections::{HashMap, HashSet};

use crate::draft::Draft;
use crate::frame::{Line, Style};
use crate::text::foreign;

/// The most rows of a table.
const MOST_ROWS: usize = 20_000;
/// The most rows whose details are kept.
const MOST_DETAILS: usize = 64;

/// The things that the rows of a table are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TableOf {
    /// The sessions that can be resumed.
    Sessions,
    /// The prompts to which one can go back.
    Points,
    /// The spending of each agent.
    Costs,
    /// The window of each agent.
    Contexts,
    /// The permission rules.
    Rules,
    #[default]
    Settings,
    /// The definitions of agents.
    Agents,
    /// The fields of one definition, whose file is the subject.
    AgentFields,
    /// Members, tasks and mail of the team.
    Team,
    /// The MCP servers.
    Servers,
    Hooks,
    Skills,
    /// The instruction files, and the notes.
    Memory,
}

/// The look of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    #[default]
    Plain,
    /// A title above other rows, which cannot be marked.
    Head,
    Good,
    Bad,
    /// Waits for a person, or is worth a look.
    Notable,
    Faint,
}

/// A line of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileLine {
    pub path: String,
    /// Counted from one.
    pub line: usize,
}

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableRow {
    /// The name by which effects mean it.
    pub id: String,
    pub name: String,
    /// Short facts in columns. A narrow window shows the first alone.
    pub cells: Vec<String>,
    /// Words behind the columns, as far as there is room.
    pub hint: String,
    pub tone: Tone,
    /// The number of rows that it is below.
    pub depth: usize,
    /// The text that a change of it begins with.
    pub value: String,
    pub file: Option<FileLine>,
    /// All that is known of it; `None` if it has to be asked for.
    pub detail: Option<Vec<Line>>,
}

impl TableRow {
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), ..Self::default() }
    }

    /// A title above other rows.
    pub fn head(name: impl Into<String>) -> Self {
        Self { name: name.into(), tone: Tone::Head, detail: Some(Vec::new()), ..Self::default() }
    }

    /// The row with its detail.
    #[must_use]
    pub fn with_detail(mut self, text: &str) -> Self {
        self.detail = Some(lines_of(text));
        self
    }
}

/// The lines of a text from elsewhere.
pub fn lines_of(text: &str) -> Vec<Line> {
    text.lines().map(|line| Line::from(foreign(line, Style::PLAIN))).collect()
}

/// Words that are written for a key of a table, such as a new value.
#[derive(Clone, Debug)]
pub(crate) struct TableWords {
    /// The key that they are for.
    pub(crate) key: char,
    /// The row that was marked then.
    pub(crate) row: String,
    pub(crate) prompt: String,
    pub(crate) draft: Draft,
}

/// The state of a table on the screen.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableState {
    /// The words that a row must hold.
    pub(crate) typed: String,
    /// True while letters are words to look for, in a table whose letters are keys.
    pub(crate) is_searching: bool,
    /// The place of the marked row among those that fit.
    pub(crate) marked: usize,
    /// The first row of the detail that is shown.
    pub(crate) scroll: usize,
    /// True if the detail has all rows.
    pub(crate) is_wide: bool,
    pub(crate) words: Option<TableWords>,
    /// Details that came later, by row.
    pub(crate) details: HashMap<String, Vec<Line>>,
    pub(crate) asked: HashSet<String>,
    /// The rows in which words were found elsewhere, each with the place.
    pub(crate) found: Option<(String, HashMap<String, Vec<Line>>)>,
}

/// Rows of one kind, with the state of the screen that shows them.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub of: TableOf,
    pub title: String,
    /// The thing that all rows are parts of, such as the file of an agent.
    pub subject: String,
    pub rows: Vec<TableRow>,
    pub(crate) state: TableState,
}

impl Table {
    pub fn new(of: TableOf, title: impl Into<String>, rows: Vec<TableRow>) -> Self {
        let mut rows = rows;
        rows.truncate(MOST_ROWS);
        let mut table = Self { of, title: title.into(), rows, ..Self::default() };
        table.mark_first();
        table
    }

    /// The table with the thing that its rows are parts of.
    #[must_use]
    pub fn about(mut self, subject: impl Into<String>) -> Self {
        self.subject = subject.into();
        self
    }

    /// The rows that hold all words that were typed, or in which they were found.
    pub(crate) fn fitting(&self) -> Vec<&TableRow> {
        let typed = self.state.typed.to_lowercase();
        let words: Vec<&str> = typed.split_whitespace().collect();
        if words.is_empty() {
            return self.rows.iter().collect();
        }
        let found = self.state.found.as_ref().filter(|(of, _)| *of == self.state.typed);
        let fits = |row: &&TableRow| {
            let text = format!("{} {} {} {}", row.name, row.cells.join(" "), row.hint, row.id);
            let text = text.to_lowercase();
            row.tone != Tone::Head
                && (words.iter().all(|word| text.contains(word))
                    || found.is_some_and(|(_, rows)| rows.contains_key(&row.id)))
        };
        self.rows.iter().filter(fits).collect()
    }

    /// The marked row.
    pub(crate) fn marked(&self) -> Option<&TableRow> {
        self.fitting().get(self.state.marked).copied().filter(|row| row.tone != Tone::Head)
    }

    /// The detail of a row, as far as it is known: first the place where the typed words were found.
    pub(crate) fn detail(&self, row: &TableRow) -> Option<Vec<Line>> {
        let found = self.state.found.as_ref().filter(|(of, _)| *of == self.state.typed);
        let found = found.and_then(|(_, rows)| rows.get(&row.id)).cloned();
        let own = row.detail.as_ref().or_else(|| self.state.details.get(&row.id)).cloned();
        match (found, own) {
            (Some(found), Some(own)) => Some([found, vec![Line::default()], own].concat()),
            (found, own) => found.or(own),
        }
    }

    /// Marks another row; titles are passed over.
    pub(crate) fn move_by(&mut self, step: isize) {
        let is_head: Vec<bool> = self.fitting().iter().map(|it| it.tone == Tone::Head).collect();
        let mut at = self.state.marked;
        loop {
            let next = at.saturating_add_signed(step).min(is_head.len().saturating_sub(1));
            if next == at {
                break;
            }
            at = next;
            if !is_head.get(at).copied().unwrap_or_default() {
                self.state.marked = at;
                self.state.scroll = self.first_scroll();
                break;
            }
        }
    }

    /// Marks the row of a place among those that fit; a title cannot be marked.
    pub(crate) fn mark_place(&mut self, place: usize) {
        if self.fitting().get(place).is_some_and(|row| row.tone != Tone::Head) {
            self.state.marked = place;
            self.state.scroll = self.first_scroll();
        }
    }

    /// Marks the first row that is no title.
    pub(crate) fn mark_first(&mut self) {
        let first = self.fitting().iter().position(|row| row.tone != Tone::Head);
        self.state.marked = first.unwrap_or(0);
        self.state.scroll = self.first_scroll();
    }

    /// The place at which a detail is read first: of a session its end, unless something was found in it.
    fn first_scroll(&self) -> usize {
        let from_end = self.of == TableOf::Sessions && self.state.typed.is_empty();
        if from_end { usize::MAX } else { 0 }
    }

    /// Marks the row of an id; whether it is there.
    pub(crate) fn mark(&mut self, id: &str) -> bool {
        let found = self.fitting().iter().position(|row| row.id == id);
        self.state.marked = found.unwrap_or(self.state.marked);
        found.is_some()
    }

    /// Keeps the detail of a row.
    pub(crate) fn add_detail(&mut self, id: String, lines: Vec<Line>) {
        if self.state.details.len() >= MOST_DETAILS {
            self.state.details.clear();
            self.state.asked.clear();
        }
        self.state.details.insert(id, lines);
    }

    /// Takes over the state of the same table as it was shown before: rows may have come and gone.
    pub(crate) fn restore_view_of(&mut self, before: Self) {
        let marked = before.marked().map(|row| row.id.clone());
        let place = before.state.marked;
        // Details may have changed with their rows.
        self.state = TableState { details: HashMap::new(), asked: HashSet::new(), ..before.state };
        if let Some(id) = marked.filter(|id| self.rows.iter().any(|row| row.id == *id)) {
            self.mark(&id);
            return;
        }
        self.state.marked = place.min(self.fitting().len().saturating_sub(1));
        if self.marked().is_none() {
            self.mark_first();
        }
    }
}
