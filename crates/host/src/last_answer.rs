//! The answer of a run, for a reader who wants that alone.
//!
//! A run with agents in the background answers more than once, and only the last answer knows what came of
//! them. A turn that failed has no answer: what it says about that comes below the answer before it.

use centurion_protocol::sdk::RunResult;

/// The answer and the failure so far.
#[derive(Default)]
pub struct LastAnswer {
    answer: Option<String>,
    failure: Option<String>,
}

impl LastAnswer {
    /// Takes the result of a turn.
    pub fn take(&mut self, result: &RunResult) {
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

    /// The answer with a line end; `None` if no turn has ended.
    pub fn text(&self) -> Option<String> {
        let parts: Vec<&str> =
            [&self.answer, &self.failure].into_iter().flatten().map(String::as_str).collect();
        (!parts.is_empty()).then(|| format!("{}\n", parts.join("\n\n")))
    }
}
