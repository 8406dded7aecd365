//! Helpers for the tests of this crate: requests, a provider that plays from memory, and readable forms of events.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use centurion_protocol::{
    Block, Conversation, Message, Role, SeededWorld, Thinking, ToolResult, ToolSpec, ToolSpecs,
    ToolUse, ToolUseId, World,
};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use serde_json::value::RawValue;

use crate::sse::{self, Decoder};
use crate::{
    Answer, AnswerBuilder, EventStream, ModelError, Prefix, Provider, Request, StreamEvent,
    SystemPrompt,
};

pub(crate) fn world() -> Arc<dyn World> {
    Arc::new(SeededWorld::new(1))
}

pub(crate) fn raw(json: &str) -> Box<RawValue> {
    serde_json::from_str(json).unwrap()
}

pub(crate) fn call(id: &str, name: &str, input: &str) -> Block {
    Block::ToolUse(ToolUse { id: ToolUseId::new(id), name: name.into(), input: raw(input) })
}

pub(crate) fn result(id: &str, text: &str) -> Block {
    Block::ToolResult(ToolResult::text(ToolUseId::new(id), text))
}

pub(crate) fn request(model: &str, messages: impl IntoIterator<Item = Message>) -> Request {
    let mut conversation = Conversation::default();
    for message in messages {
        conversation.push(message).unwrap();
    }
    let tool = ToolSpec {
        name: "Read".into(),
        description: "reads a file".into(),
        input_schema: raw(r#"{"type":"object","properties":{"n":{"maximum":1e2}}}"#),
    };
    Request {
        model: model.into(),
        prefix: Prefix {
            system: SystemPrompt::new(vec!["one".into(), "two".into()]),
            tools: ToolSpecs::new(vec![tool]),
            conversation,
        },
        max_tokens: 32_000,
        thinking: Thinking::Auto,
        effort: None,
        session: SeededWorld::new(9).session_id(),
        agent: None,
        parent_agent: None,
    }
}

/// A user's words, a call with an input that a careless program would change, and its result.
pub(crate) fn exchange() -> [Message; 3] {
    let input = r#"{"n":1e2, "path":"a\/b"}"#;
    [
        Message::user("hi"),
        Message::new(Role::Assistant, &[Block::text("I look"), call("t1", "Read", input)]),
        Message::new(Role::User, &[result("t1", "found")]),
    ]
}

/// Decodes an answer that comes in the given pieces.
pub(crate) async fn decode<D: Decoder>(
    pieces: Vec<Vec<u8>>,
    decoder: D,
) -> Result<Vec<StreamEvent>, ModelError> {
    let bytes = stream::iter(pieces.into_iter().map(|piece| Ok(Bytes::from(piece))));
    let events: Vec<_> = sse::decode(bytes, decoder).collect().await;
    events.into_iter().collect()
}

/// The answer of a list of events.
pub(crate) fn fold(events: &[StreamEvent]) -> Answer {
    let mut builder = AnswerBuilder::default();
    for event in events {
        builder.push(event);
    }
    builder.finish().unwrap()
}

/// The blocks of an answer as JSON.
pub(crate) fn blocks(answer: &Answer) -> serde_json::Value {
    serde_json::to_value(&answer.blocks).unwrap()
}

/// A provider that gives each request the next answer from memory.
pub(crate) struct Memory {
    answers: Mutex<VecDeque<Vec<Result<StreamEvent, ModelError>>>>,
    pub(crate) requests: Mutex<Vec<Request>>,
}

impl Memory {
    pub(crate) fn new(
        answers: impl IntoIterator<Item = Vec<Result<StreamEvent, ModelError>>>,
    ) -> Arc<Self> {
        let answers = Mutex::new(answers.into_iter().collect());
        Arc::new(Self { answers, requests: Mutex::default() })
    }

    pub(crate) fn asked(&self) -> usize {
        self.requests.lock().len()
    }
}

impl Provider for Memory {
    fn stream(&self, request: Request) -> EventStream {
        self.requests.lock().push(request);
        stream::iter(self.answers.lock().pop_front().unwrap()).boxed()
    }

    fn credential(&self) -> &'static str {
        "memory"
    }
}
