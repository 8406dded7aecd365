//! `--input-format stream-json`: what a host sends, one JSON object a line.

use std::sync::Arc;

use centurion_engine::{Handle, Priority};
use centurion_protocol::sdk::{Event, EventBody, User, UserMessage};
use centurion_protocol::{Block, RecordId, SessionId, World};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::control::Control;
use crate::output::{Output, note};

/// A line of input. Unknown fields are the host's own business.
#[derive(Deserialize)]
struct InputLine {
    #[serde(rename = "type")]
    kind: String,
    message: Option<InputMessage>,
    uuid: Option<RecordId>,
    /// How soon: `now` also stops the run that is under way.
    priority: Option<Priority>,
    request_id: Option<String>,
    request: Option<Value>,
    response: Option<Value>,
}

#[derive(Deserialize)]
struct InputMessage {
    content: Box<RawValue>,
}

/// Reads a host's lines and acts on them.
pub(crate) struct Input {
    pub(crate) handle: Handle,
    pub(crate) control: Arc<Control>,
    pub(crate) output: Arc<Output>,
    pub(crate) world: Arc<dyn World>,
    pub(crate) session: SessionId,
    /// Whether accepted messages are printed back.
    pub(crate) replay: bool,
}

impl Input {
    /// Reads until the end of input, then closes the session's queue.
    pub(crate) async fn pump(&self) {
        let mut lines = BufReader::new(tokio::io::stdin()).split(b'\n');
        let mut number = 0;
        // Some requests take time, and need the lines that come after them.
        let mut answering = FuturesUnordered::new();
        loop {
            let line = tokio::select! {
                line = lines.next_segment() => line,
                Some(()) = answering.next() => continue,
            };
            number += 1;
            match line {
                Ok(Some(line)) if line.trim_ascii().is_empty() => {}
                Ok(Some(line)) => match self.take(&line) {
                    Ok(None) => {}
                    Ok(Some((id, request))) => answering.push(self.answer(id, request)),
                    Err(problem) => note(&format!(
                        "error: line {number} of the input was not understood: {problem}"
                    )),
                },
                Ok(None) => break,
                Err(error) => {
                    note(&format!("error: standard input cannot be read: {error}"));
                    break;
                }
            }
        }
        self.handle.close();
    }

    async fn answer(&self, id: String, request: Value) {
        self.control.request(&self.handle, &id, &request).await;
    }

    /// Acts on a line; a request that it is, is for the caller to have answered.
    fn take(&self, line: &[u8]) -> Result<Option<(String, Value)>, String> {
        let line: InputLine = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let kind = line.kind.clone();
        match (kind.as_str(), line) {
            ("user", InputLine { message: Some(message), uuid, priority, .. }) => {
                let blocks = blocks(&message.content)?;
                let id = uuid.unwrap_or_else(|| self.world.record_id());
                if self.replay {
                    self.print_back(id, blocks.clone());
                }
                let priority = priority.unwrap_or(Priority::Next);
                self.handle.submit_with(id, blocks, priority);
                if priority == Priority::Now {
                    self.handle.interrupt();
                }
                Ok(None)
            }
            ("control_request", InputLine { request_id: Some(id), request: Some(request), .. }) => {
                Ok(Some((id, request)))
            }
            ("control_response", InputLine { response: Some(response), .. }) => {
                self.control.response(&self.handle, response);
                Ok(None)
            }
            ("keep_alive" | "control_cancel_request", _) => Ok(None),
            ("user", _) => Err("a user line needs a message with content".to_owned()),
            (kind, _) => Err(format!(
                "`{kind}` is no line of this kind; user, control_request and control_response are"
            )),
        }
    }

    fn print_back(&self, uuid: RecordId, content: Vec<Block>) {
        let user = User {
            message: UserMessage { role: "user", content },
            parent_tool_use_id: None,
            agent: None,
            timestamp: self.world.now(),
            tool_use_result: None,
            is_synthetic: false,
            is_replay: true,
        };
        self.output.json_line(&Event {
            body: EventBody::User(user),
            session_id: self.session,
            uuid,
        });
    }
}

/// The content of a message: a text, or blocks that a person can bring.
fn blocks(content: &RawValue) -> Result<Vec<Block>, String> {
    let parts: Vec<Block> = if let Ok(text) = serde_json::from_str::<String>(content.get()) {
        vec![Block::Text(text)]
    } else {
        let parts: Vec<Box<RawValue>> = serde_json::from_str(content.get())
            .map_err(|error| format!("content is neither a text nor a list: {error}"))?;
        let parsed: Result<_, _> = parts.iter().map(|part| Block::parse(part)).collect();
        parsed.map_err(|error| format!("a block was not understood: {error}"))?
    };
    let is_blank = |block: &Block| matches!(block, Block::Text(text) if text.trim().is_empty());
    let blocks: Vec<Block> = parts.into_iter().filter(|block| !is_blank(block)).collect();
    let is_a_persons = |block: &Block| {
        matches!(block, Block::Text(_) | Block::Image { .. } | Block::Document { .. })
    };
    match blocks.iter().all(is_a_persons) {
        _ if blocks.is_empty() => Err("the message is empty".to_owned()),
        false => {
            Err("a user message may hold text, image and document blocks (base64) only".to_owned())
        }
        true => Ok(blocks),
    }
}
