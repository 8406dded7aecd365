//! A question beside the main agent's conversation: it is answered from all that was said, and leaves no trace there.

use thiserror::Error;

use crate::agent::fork_point::ForkPoint;
use crate::agent::shared::Shared;
use crate::turn::internal_fork::{InternalFork, InternalForkError};

/// The rules that the model reads with the question.
const RULES: &str = "<system-reminder>\nThe user asks the following beside the work at hand. Answer from what you know \
    already, in a few sentences of text. Call no tools, and do not continue the work: the conversation will not \
    contain this exchange.\n</system-reminder>";

/// The reason why a question beside the conversation has no answer.
#[derive(Debug, Error)]
pub enum AsideError {
    #[error("the question is empty")]
    NoQuestion,
    #[error("nothing has been said yet: ask the agent itself")]
    NoConversation,
    #[error(transparent)]
    Request(#[from] InternalForkError),
}

pub(super) async fn ask(shared: &Shared, question: &str) -> Result<String, AsideError> {
    if question.trim().is_empty() {
        return Err(AsideError::NoQuestion);
    }
    let (sent, start) = shared.sent_or_start();
    // A resumed session has a conversation before its first request.
    let point = sent.as_deref().or_else(|| start.as_deref().map(|start| &start.point));
    let has_conversation = |point: &&ForkPoint| {
        let conversation = &point.prefix.conversation;
        !conversation.is_empty() && conversation.open_calls().is_empty()
    };
    let point = point.filter(has_conversation).ok_or(AsideError::NoConversation)?;
    let fork = InternalFork::after_conversation(
        shared,
        point,
        "side_question",
        format!("{RULES}\n\n{question}"),
    );
    Ok(fork.ask(shared).await?)
}
