//! The end of a prompt.

use centurion_protocol::Outcome as EngineOutcome;
use centurion_protocol::sdk::RunResult;
use serde_json::Value;

use crate::{Error, ErrorKind};

/// The way in which a prompt ended. Only [`Outcome::Completed`] is success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The model ended with an answer.
    Completed,
    /// The model said nothing.
    Empty,
    /// The answer was cut off at its largest size.
    CutOff,
    /// The model declined.
    Refused,
    /// The most requests or the most money was reached.
    LimitReached,
    /// The conversation no longer fits the model's window.
    TooLong,
    /// The provider failed and did not recover.
    ProviderFailed,
    /// A hook ended the run.
    Stopped,
    /// It ended right after a call that was denied.
    Denied,
    /// It was interrupted.
    Interrupted,
    /// The transcript could not be written, or the program failed.
    Failed,
}

impl Outcome {
    fn of(outcome: EngineOutcome) -> Self {
        match outcome {
            EngineOutcome::Completed => Self::Completed,
            EngineOutcome::Empty => Self::Empty,
            EngineOutcome::MaxTokens => Self::CutOff,
            EngineOutcome::Refusal => Self::Refused,
            EngineOutcome::MaxTurns | EngineOutcome::Budget => Self::LimitReached,
            EngineOutcome::ContextOverflow | EngineOutcome::CompactionFailed => Self::TooLong,
            EngineOutcome::ApiError => Self::ProviderFailed,
            EngineOutcome::HookStopped
            | EngineOutcome::Deferred
            | EngineOutcome::DeferredUnavailable => Self::Stopped,
            EngineOutcome::Denied => Self::Denied,
            EngineOutcome::Interrupted | EngineOutcome::Cancelled => Self::Interrupted,
            EngineOutcome::CommandFailed
            | EngineOutcome::GoalMissed
            | EngineOutcome::SchemaMismatch
            | EngineOutcome::JournalFailed
            | EngineOutcome::Stalled
            | EngineOutcome::Fault => Self::Failed,
        }
    }
}

/// A call that did not run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Denial {
    pub tool: String,
    pub input: Value,
}

/// The answer to a prompt, when all that it set going has ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The last words of the main agent.
    pub text: String,
    pub outcome: Outcome,
    /// The reasons of an outcome that is no success.
    pub errors: Vec<String>,
    /// The calls of the main agent that were denied.
    pub denials: Vec<Denial>,
    /// The requests of the main agent.
    pub turns: u32,
    /// The cost of the session so far, in dollars.
    pub session_cost_usd: f64,
}

impl Answer {
    /// The text of a success; everything else is an error that says how the prompt ended.
    pub fn into_text(self) -> Result<String, Error> {
        if self.outcome == Outcome::Completed {
            return Ok(self.text);
        }
        let reasons = if self.errors.is_empty() { self.text } else { self.errors.join("; ") };
        let message = format!("the run ended as {:?}: {reasons}", self.outcome);
        Err(Error::new(ErrorKind::Unsuccessful, message))
    }

    /// Folds the result of a run into the answer. Agents in the background have the main agent run again.
    pub(crate) fn fold(earlier: Option<Self>, result: &RunResult) -> Self {
        let denials = result.permission_denials.iter().map(|denial| Denial {
            tool: denial.tool_name.clone(),
            input: serde_json::from_str(denial.tool_input.get()).unwrap_or_default(),
        });
        let (turns, mut all) = earlier.map_or((0, Vec::new()), |it| (it.turns, it.denials));
        all.extend(denials);
        Self {
            text: result.result.clone(),
            outcome: Outcome::of(result.outcome),
            errors: result.errors.clone().unwrap_or_default(),
            denials: all,
            turns: turns.saturating_add(result.num_turns),
            session_cost_usd: result.total_cost_usd,
        }
    }
}
