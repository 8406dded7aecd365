//! What came of an agent, in words: why it failed, and as much of its report as fits.

use centurion_protocol::Outcome;

use crate::agent::task::{End, Task};

/// How much of a report enters its recipient's conversation; the output file has all of it.
pub(crate) const REPORT_BOUND: usize = 32_000;

/// Why an agent did not do what it was asked to, for its parent.
pub(crate) fn failure(end: &End) -> String {
    let reasons = end.errors.join("; ");
    let with = |what: &str| {
        if reasons.is_empty() { format!("{what}.") } else { format!("{what}: {reasons}.") }
    };
    match end.outcome {
        Outcome::Completed => String::new(),
        Outcome::Empty => with("The agent ended without a report"),
        Outcome::MaxTokens => with("The agent's answer was cut off"),
        Outcome::Refusal => with("The agent's model declined"),
        Outcome::MaxTurns => {
            format!("The agent was stopped after {} requests, the most it may make.", end.turns)
        }
        Outcome::Budget => with("The agent was stopped: its budget is used up"),
        Outcome::ContextOverflow => with("The agent's conversation outgrew its model's window"),
        Outcome::CompactionFailed => with("The agent's conversation could not be made shorter"),
        Outcome::GoalMissed => with("The agent's goal was given up"),
        Outcome::CommandFailed => with("The agent was given a command that cannot be carried out"),
        Outcome::ApiError => with("The agent terminated early due to an API error"),
        Outcome::SchemaMismatch => with("The agent did not hand over data of the required shape"),
        Outcome::JournalFailed => with("The agent's transcript could not be written"),
        Outcome::Stalled => with("The agent was stopped: nothing came of it for too long"),
        Outcome::Denied => with("The agent was not allowed to do what it needed"),
        Outcome::Interrupted => {
            "The agent was interrupted: the program ended before it did. What it had done stands."
                .to_owned()
        }
        Outcome::Fault => with("The agent was ended by a fault of the program"),
        Outcome::HookStopped => with("A hook ended the agent"),
        Outcome::Deferred | Outcome::DeferredUnavailable => {
            with("A call of the agent was put off, which only the main agent's can be")
        }
        Outcome::Cancelled => with("The agent was stopped"),
    }
}

/// How it ended and what it said.
pub(crate) fn whole_result(task: &Task, end: &End) -> String {
    if end.outcome.is_success() {
        return bounded_result(task, end);
    }
    format!("{}\n{}", failure(end), bounded_result(task, end)).trim_end().to_owned()
}

/// The report as its recipient reads it: all of it, or its beginning and where the rest is.
pub(crate) fn bounded_result(task: &Task, end: &End) -> String {
    result_within(task, end, REPORT_BOUND)
}

/// The report up to a bound, and where the rest is.
pub(crate) fn result_within(task: &Task, end: &End, bound: usize) -> String {
    let text = match &end.structured {
        Some(structured) => structured.to_string(),
        None => end.text.clone(),
    };
    if text.len() <= bound {
        return text;
    }
    let cut = text.floor_char_boundary(bound);
    let (more, file) = (text.len() - cut, task.output.path().display());
    format!("{}\n[{more} more bytes: the whole report is in {file}]", &text[..cut])
}
