//! Stop reasons of answers, and outcomes of runs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reason that the model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    EndTurn,
    ToolUse,
    MaxTokens,
    StopSequence,
    PauseTurn,
    Refusal,
    ModelContextWindowExceeded,
    /// A reason this program does not know; never taken for a good end.
    #[serde(untagged)]
    Other(String),
}

impl StopReason {
    pub fn as_str(&self) -> &str {
        match self {
            Self::EndTurn => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::StopSequence => "stop_sequence",
            Self::PauseTurn => "pause_turn",
            Self::Refusal => "refusal",
            Self::ModelContextWindowExceeded => "model_context_window_exceeded",
            Self::Other(reason) => reason,
        }
    }
}

/// The outcome of a run: a closed set. Only [`Outcome::Completed`] is success, and it is never given to
/// an empty answer, a cut-off answer or a trailing call (invariant I-10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The model ended its turn with an answer.
    Completed,
    /// The model ended its turn and said nothing.
    Empty,
    /// The answer was cut off at the largest answer the model may give.
    MaxTokens,
    /// The model declined to answer.
    Refusal,
    /// The limit on model requests was reached.
    MaxTurns,
    /// The money or tokens allowed are used up.
    Budget,
    /// The conversation no longer fits the model's window.
    ContextOverflow,
    /// The conversation was to become shorter, and did not.
    CompactionFailed,
    /// A command that a person typed does not exist, or failed.
    CommandFailed,
    /// A goal that a person set was given up.
    GoalMissed,
    /// The provider failed and did not recover.
    ApiError,
    /// The model kept failing to give output of the required shape.
    SchemaMismatch,
    /// The transcript could not be written, so nothing more was done.
    JournalFailed,
    /// A hook put a call off: the run ends here and continues with that call when the session is resumed.
    Deferred,
    /// The call that was put off is of a tool that is no longer there.
    DeferredUnavailable,
    /// A hook ended the run, or kept the input from the model.
    HookStopped,
    /// Nothing came of it for too long.
    Stalled,
    /// It ended right after a call that it was not allowed to make.
    Denied,
    /// Its process ended before it did.
    Interrupted,
    /// The program itself failed in the middle of it.
    Fault,
    /// The run was interrupted from outside.
    Cancelled,
}

impl Outcome {
    pub fn is_success(self) -> bool {
        self == Self::Completed
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Empty => "empty",
            Self::MaxTokens => "max_tokens",
            Self::Refusal => "refusal",
            Self::MaxTurns => "max_turns",
            Self::Budget => "budget",
            Self::ContextOverflow => "context_overflow",
            Self::CompactionFailed => "compaction_failed",
            Self::GoalMissed => "goal_missed",
            Self::CommandFailed => "command_failed",
            Self::ApiError => "api_error",
            Self::SchemaMismatch => "schema_mismatch",
            Self::JournalFailed => "journal_failed",
            Self::Deferred => "deferred",
            Self::DeferredUnavailable => "deferred_unavailable",
            Self::HookStopped => "hook_stopped",
            Self::Stalled => "stalled",
            Self::Denied => "denied",
            Self::Interrupted => "interrupted",
            Self::Fault => "fault",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_stop_reason_survives() {
        let reason: StopReason = serde_json::from_str("\"cosmic_ray\"").unwrap();
        assert_eq!(reason, StopReason::Other("cosmic_ray".into()));
        assert_eq!(serde_json::to_string(&reason).unwrap(), "\"cosmic_ray\"");
        let known: StopReason = serde_json::from_str("\"pause_turn\"").unwrap();
        assert_eq!(known, StopReason::PauseTurn);
    }
}
