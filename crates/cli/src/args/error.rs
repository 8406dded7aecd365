//! Errors of single flags and of flags together, in words for the person who typed them.

use thiserror::Error;

/// The reason that the value of a flag was not understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum ValueError {
    #[error("`{0}` is neither `stdio` nor a tool such as mcp__server__tool")]
    PromptTool(String),
    #[error("the name of a model is missing")]
    ModelName,
    #[error(
        "an id such as 7b5e1e6e-8d6c-4c54-9d0c-6a2b0f0b8f11 is needed; `centurion sessions` lists them"
    )]
    SessionId,
    #[error("a name on one line is needed")]
    SessionName,
    #[error("the id of a message is needed, as events and transcripts have it")]
    RecordId,
    #[error("tokens are needed, such as 200k, or auto")]
    Window,
    #[error("an amount in dollars is needed, such as 2.50")]
    Money,
    #[error("one of in-process, process, tmux and auto is needed")]
    TeammateMode,
}

/// Flags that contradict each other, or that lack one that they need.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub(crate) struct FlagConflict(pub(super) &'static str);
