//! `--output-format text`: the last answer, when all is done.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use centurion_engine::{ENDED_BEFORE, View};
use centurion_host::{FinishFuture, Front, LastAnswer, OutputQueue};
use centurion_protocol::sdk::{Event, EventBody, System};
use parking_lot::Mutex;

use super::{note, without_commands};

pub(crate) struct TextView {
    output: Arc<OutputQueue>,
    /// Whether another view tells on standard error what went wrong.
    is_beside_lines: bool,
    last: Mutex<LastAnswer>,
}

impl TextView {
    pub(crate) fn new(output: Arc<OutputQueue>) -> Self {
        Self { output, is_beside_lines: false, last: Mutex::default() }
    }

    /// The answer alone, where standard error shows everything that happens.
    pub(crate) fn beside_lines(output: Arc<OutputQueue>) -> Self {
        Self { output, is_beside_lines: true, last: Mutex::default() }
    }
}

impl View for TextView {
    fn show(&self, event: &Event) {
        if let EventBody::System(System::Informational(told)) = &event.body
            && (told.level, &told.agent_id, self.is_beside_lines) == ("warning", &None, false)
            && !told.content.starts_with(ENDED_BEFORE)
        {
            note(&format!("warning: {}", told.content));
        }
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

impl Front for TextView {
    fn finish(&self) -> FinishFuture<'_> {
        if let Some(text) = std::mem::take(&mut *self.last.lock()).text() {
            // A file or a pipe gets the answer as it is; a terminal would obey what a model was talked into.
            let text = if io::stdout().is_terminal() { without_commands(&text) } else { text };
            self.output.write(text.as_bytes());
        }
        Box::pin(self.output.finish())
    }
}
