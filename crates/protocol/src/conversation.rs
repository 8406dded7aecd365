//! The history of one agent: a persistent list of messages that is valid at every moment.
//!
//! Cloning shares everything but the last few messages, so that handing a conversation to a request
//! or starting an agent from another's history costs next to nothing. `push` refuses whatever a
//! provider would refuse: history cannot become invalid.

use std::sync::Arc;

use thiserror::Error;

use crate::{Message, Role, ToolUseId};

/// The most messages whose pointers a clone copies.
const SEGMENT: usize = 128;

#[derive(Clone, Debug, Default)]
pub struct Conversation {
    frozen: Option<Arc<Segment>>,
    tail: Vec<Message>,
    length: usize,
    tokens: usize,
}

#[derive(Debug)]
struct Segment {
    before: Option<Arc<Self>>,
    messages: Vec<Message>,
}

/// The reason that a message cannot follow the history.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum InvalidHistory {
    #[error("a conversation starts with a user message")]
    StartsWithAssistant,
    #[error("a message has no content")]
    EmptyMessage,
    #[error("call {0} has no result")]
    MissingResult(ToolUseId),
    #[error("a result answers {0}, which is no open call")]
    UnknownCall(ToolUseId),
    #[error("call {0} is answered or made twice")]
    RepeatedCall(ToolUseId),
}

impl Conversation {
    /// Adds a message. What the user says twice in a row becomes one message, which is how a provider
    /// takes it anyway and how it is read back from a transcript.
    pub fn push(&mut self, message: Message) -> Result<(), InvalidHistory> {
        self.check(&message)?;
        self.tokens += message.tokens();
        match self.tail.last_mut() {
            Some(last) if last.role() == Role::User && message.role() == Role::User => {
                *last = last.joined(&message);
                return Ok(());
            }
            _ => self.tail.push(message),
        }
        self.length += 1;
        // A user message may still grow, so that a segment ends with an answer.
        if self.tail.len() >= SEGMENT && self.open_calls().is_empty() && self.ends_with_answer() {
            let messages = std::mem::take(&mut self.tail);
            self.frozen = Some(Arc::new(Segment { before: self.frozen.take(), messages }));
        }
        Ok(())
    }

    fn check(&self, message: &Message) -> Result<(), InvalidHistory> {
        if message.wire().ends_with(b"[]}") {
            return Err(InvalidHistory::EmptyMessage);
        }
        let calls = message.calls();
        if let Some(twice) = calls.iter().enumerate().find(|(n, id)| calls[..*n].contains(id)) {
            return Err(InvalidHistory::RepeatedCall(twice.1.clone()));
        }
        let open = self.open_calls();
        match message.role() {
            Role::Assistant if self.is_empty() => Err(InvalidHistory::StartsWithAssistant),
            Role::Assistant => open.first().map_or(Ok(()), |id| Err(missing(id))),
            Role::User => match (
                open.iter().find(|id| !calls.contains(id)),
                calls.iter().find(|id| !open.contains(id)),
            ) {
                (Some(id), _) => Err(missing(id)),
                (_, Some(id)) => Err(InvalidHistory::UnknownCall(id.clone())),
                _ => Ok(()),
            },
        }
    }

    /// The calls that wait for results: those of a last assistant message.
    pub fn open_calls(&self) -> &[ToolUseId] {
        match self.last() {
            Some(last) if last.role() == Role::Assistant => last.calls(),
            _ => &[],
        }
    }

    pub fn last(&self) -> Option<&Message> {
        self.tail.last().or_else(|| self.frozen.as_ref().and_then(|frozen| frozen.messages.last()))
    }

    pub fn len(&self) -> usize {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    fn ends_with_answer(&self) -> bool {
        self.last().is_some_and(|last| last.role() == Role::Assistant)
    }

    /// The size of all messages in their wire form.
    pub fn bytes(&self) -> usize {
        self.iter().map(|message| message.wire().len()).sum()
    }

    /// About how many tokens all messages have.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// The messages, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Message> {
        let mut segments = Vec::new();
        let mut next = self.frozen.as_ref();
        while let Some(segment) = next {
            segments.push(segment.messages.as_slice());
            next = segment.before.as_ref();
        }
        segments.into_iter().rev().flatten().chain(&self.tail)
    }
}

fn missing(id: &ToolUseId) -> InvalidHistory {
    InvalidHistory::MissingResult(id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, ToolResult, ToolUse};

    fn call(id: &str) -> Message {
        let input = serde_json::value::to_raw_value(&serde_json::json!({})).unwrap();
        let call = ToolUse { id: ToolUseId::new(id), name: "Read".into(), input };
        Message::new(Role::Assistant, &[Block::ToolUse(call)])
    }

    fn result(id: &str) -> Message {
        let result = ToolResult::text(ToolUseId::new(id), "ok");
        Message::new(Role::User, &[Block::ToolResult(result)])
    }

    #[test]
    fn history_cannot_become_invalid() {
        let mut history = Conversation::default();
        assert_eq!(history.push(call("a")), Err(InvalidHistory::StartsWithAssistant));
        history.push(Message::user("hi")).unwrap();
        assert_eq!(
            history.push(result("a")),
            Err(InvalidHistory::UnknownCall(ToolUseId::new("a")))
        );
        history.push(call("a")).unwrap();
        assert_eq!(
            history.push(Message::user("?")),
            Err(InvalidHistory::MissingResult(ToolUseId::new("a")))
        );
        assert_eq!(
            history.push(call("b")),
            Err(InvalidHistory::MissingResult(ToolUseId::new("a")))
        );
        history.push(result("a")).unwrap();
        assert!(history.open_calls().is_empty());
        assert_eq!(history.push(Message::new(Role::User, &[])), Err(InvalidHistory::EmptyMessage));
    }

    #[test]
    fn what_a_user_says_twice_in_a_row_is_one_message() {
        let mut history = Conversation::default();
        for text in ["one", "two"] {
            history.push(Message::user(text)).unwrap();
        }
        history.push(call("a")).unwrap();
        history.push(result("a")).unwrap();
        history.push(Message::user("three")).unwrap();
        assert_eq!(history.len(), 3);
        assert_eq!(history.iter().count(), 3);
        assert_eq!(history.last().unwrap().blocks().len(), 2);
    }

    #[test]
    fn a_clone_shares_history_and_grows_on_its_own() {
        let mut one = Conversation::default();
        for n in 0..150 {
            one.push(Message::user(n.to_string())).unwrap();
            one.push(Message::new(Role::Assistant, &[Block::text("ok")])).unwrap();
        }
        let mut two = one.clone();
        two.push(Message::user("more")).unwrap();
        assert_eq!((one.len(), two.len()), (300, 301));
        assert_eq!(two.iter().count(), 301);
        let first = one.iter().next().unwrap().wire().as_ptr();
        assert_eq!(first, two.iter().next().unwrap().wire().as_ptr());
    }
}
