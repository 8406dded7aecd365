//! The words and acts of the main agent: the open block, the calls that run, and finished lines until they are printed.

use std::collections::{HashSet, VecDeque};

use centurion_protocol::ToolUseId;

use super::Moment;
use super::call::Call;
use crate::frame::Line;
use crate::text::MarkdownStream;

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Clone, Debug, Default)]
pub(crate) struct TurnState {
    pub(crate) is_busy: bool,
    /// The beginning of the turn.
    pub(crate) since: Moment,
    pub(crate) stream: Option<AnswerStream>,
    /// The texts of the present answer that were shown while they came.
    pub(crate) streamed: usize,
    pub(crate) is_thinking: bool,
    pub(crate) running: Vec<Call>,
    /// Calls that start or resume an agent: its row says more than they do.
    pub(crate) started: HashSet<ToolUseId>,
    /// The tokens that came down in this turn.
    pub(crate) received: u64,
    /// True if the turn has said or done something.
    pub(crate) has_answered: bool,
    /// True if the turn has said something in words.
    pub(crate) has_spoken: bool,
    pub(crate) todos: Vec<Todo>,
    /// The commands of the person's own that run.
    pub(crate) shells: Vec<OwnShell>,
    /// The number of the last one.
    pub(crate) last_shell: u64,
    pub(crate) waits: Option<centurion_protocol::sdk::WaitsFor>,
    /// The calls that were denied lately, newest first.
    pub(crate) denied: VecDeque<String>,
    /// The last answers, newest first.
    pub(crate) answers: VecDeque<String>,
    /// Finished lines that are not printed yet.
    pub(crate) print: Vec<Line>,
    /// True if the last finished line was empty or there was none.
    pub(crate) is_apart: bool,
}

/// A command of the person's own that runs.
#[derive(Clone, Debug)]
pub(crate) struct OwnShell {
    pub(crate) number: u64,
    pub(crate) command: String,
    pub(crate) began: Moment,
    /// The last line that it printed.
    pub(crate) last_line: String,
    /// True if a person has stopped it.
    pub(crate) is_stopping: bool,
}

/// A text that streams in.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerStream {
    pub(crate) index: u64,
    pub(crate) text: MarkdownStream,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Todo {
    pub(crate) text: String,
    pub(crate) state: TodoState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TodoState {
    Pending,
    Active,
    Done,
}

/// The most answers that are remembered, to be copied.
const MOST_ANSWERS: usize = 20;

impl TurnState {
    /// Remembers an answer.
    pub(crate) fn remember(&mut self, answer: &str) {
        if !answer.trim().is_empty() {
            self.answers.push_front(answer.trim().to_owned());
            self.answers.truncate(MOST_ANSWERS);
        }
    }

    /// Prints lines with an empty one before them.
    pub(crate) fn print_apart(&mut self, lines: impl IntoIterator<Item = Line>) {
        let mut lines = lines.into_iter().peekable();
        if lines.peek().is_none() {
            return;
        }
        if !self.is_apart {
            self.print.push(Line::default());
        }
        self.print.extend(lines);
        self.is_apart = false;
    }

    /// Prints the lines of an answer as they are finished.
    pub(crate) fn print_text(&mut self, lines: Vec<Line>) {
        for line in lines {
            let is_empty = line.spans.is_empty();
            if is_empty && self.is_apart {
                continue;
            }
            self.is_apart = is_empty;
            self.print.push(line);
        }
    }
}
