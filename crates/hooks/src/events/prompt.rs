//! A person submits a prompt, in words or by the name of a command.

use serde::Serialize;

use super::Block;
use crate::event::Event;
use crate::input::{Common, EventInput};
use crate::reply::{self, Reply};

/// A prompt is about to be given to the model.
#[derive(Clone, Debug, Serialize)]
pub struct UserPromptSubmit<'a> {
    pub prompt: &'a str,
}

/// The verdict of hooks about a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptVerdict {
    /// The reason to block the prompt; it is left out of the conversation.
    pub block: Block,
    pub session_title: Option<String>,
    /// Whether the blocked prompt is not shown to the user again.
    pub suppress_original: bool,
}

impl EventInput for UserPromptSubmit<'_> {
    const EVENT: Event = Event::UserPromptSubmit;
    type Verdict = PromptVerdict;

    fn fold(&self, _: &Common, replies: &[Reply]) -> PromptVerdict {
        PromptVerdict {
            block: Block::of(replies),
            session_title: reply::last(replies, |it| it.session_title.clone()),
            suppress_original: reply::last(replies, |it| it.suppress_original_prompt)
                .unwrap_or(false),
        }
    }
}

/// A command is about to become a prompt.
#[derive(Clone, Debug, Serialize)]
pub struct UserPromptExpansion<'a> {
    /// `slash_command` or `mcp_prompt`.
    pub expansion_type: &'a str,
    pub command_name: &'a str,
    pub command_args: &'a str,
    pub command_source: &'a str,
    pub prompt: &'a str,
}

impl EventInput for UserPromptExpansion<'_> {
    const EVENT: Event = Event::UserPromptExpansion;
    type Verdict = Block;

    fn subject(&self) -> Option<&str> {
        Some(self.command_name)
    }

    fn fold(&self, _: &Common, replies: &[Reply]) -> Block {
        Block::of(replies)
    }
}
