//! `--output-format text`: the last answer, when all is done.
//!
//! A run with agents in the background answers more than once, and only the last answer knows what came of
//! them. A turn that failed has no answer: what it says about that comes below the answer before it.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use centurion_engine::View;
use centurion_protocol::sdk::{Event, EventBody, RunResult};
use parking_lot::Mutex;

use super::{Output, note, without_commands};

pub(crate) struct TextView {
    output: Arc<Output>,
    /// Whether somebody else tells on standard error what went wrong.
    is_beside_lines: bool,
    last: Mutex<Last>,
}

/// What there is to print so far.
#[derive(Default)]
struct Last {
    answer: Option<String>,
    failure: Option<String>,
}

impl Last {
    fn take(&mut self, result: &RunResult) {
        let text = result.result.trim_end();
        if result.is_error {
            self.failure = Some(text.to_owned());
            return;
        }
        self.failure = None;
        // One that says nothing takes nothing away.
        if self.answer.is_none() || !text.is_empty() {
            self.answer = Some(text.to_owned());
        }
    }

    fn text(&self) -> Option<String> {
        let parts: Vec<&str> =
            [&self.answer, &self.failure].into_iter().flatten().map(String::as_str).collect();
        (!parts.is_empty()).then(|| format!("{}\n", parts.join("\n\n")))
    }
}

impl TextView {
    pub(crate) fn new(output: Arc<Output>) -> Self {
        Self { output, is_beside_lines: false, last: Mutex::default() }
    }

    /// The answer alone, where standard error shows everything that happens.
    pub(crate) fn beside_lines(output: Arc<Output>) -> Self {
        Self { output, is_beside_lines: true, last: Mutex::default() }
    }
}

impl View for TextView {
    fn show(&self, event: &Event) {
        self.output.look_for_reader();
        let EventBody::Result(result) = &event.body else { return };
        self.last.lock().take(result);
        if self.is_beside_lines {
            return;
        }
        if result.is_error {
            note(&format!("error: the run did not complete: {}", result.outcome));
        }
        if !result.unfinished_agents.is_empty() {
            let agents: Vec<String> =
                result.unfinished_agents.iter().map(ToString::to_string).collect();
            note(&format!("error: the run ended before these agents had: {}", agents.join(", ")));
        }
    }
}

impl Drop for TextView {
    fn drop(&mut self) {
        let last = self.last.get_mut();
        let Some(text) = last.text() else { return };
        // A file or a pipe gets the answer as it is; a terminal would obey what a model was talked into.
        let text = if io::stdout().is_terminal() { without_commands(&text) } else { text };
        self.output.write(text.as_bytes());
    }
}
