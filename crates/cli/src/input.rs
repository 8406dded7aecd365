//! `--input-format stream-json`: what a host sends, one JSON object a line.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use centurion_engine::{Manner, Priority};
use centurion_host::{Control, OutputQueue, RequestId};
use centurion_protocol::sdk::{Event, EventBody, User, UserMessage};
use centurion_protocol::{Block, JsonShape, RecordId, World};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio_util::sync::CancellationToken;

use crate::initialize_request::Opening;
use crate::output::note;

/// A line of input. Unknown fields are the host's own business.
#[derive(Deserialize)]
#[serde(expecting = "an object with a `type`")]
struct InputLine {
    #[serde(rename = "type")]
    kind: String,
    request_id: Option<Value>,
    request: Option<Value>,
    response: Option<Value>,
}

/// A line with a message. A field of another shape than its own is told and left out: the host waits for an answer to
/// the message.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageLine {
    message: Option<InputMessage>,
    uuid: Option<Value>,
    /// The urgency: `now` also stops the run that is under way.
    priority: Option<Value>,
    /// The text was not typed: it is no command and mentions no files.
    #[serde(rename = "client_composed")]
    client_composed: Option<Value>,
    /// False if the message is only recorded, for the next turn.
    should_query: Option<Value>,
    /// A person did not write it.
    is_synthetic: Option<Value>,
    /// The writer, where that is not a person.
    origin: Option<Value>,
    /// Texts that were pasted and are not part of the message: each a text or a list of blocks.
    #[serde(rename = "pasted_content")]
    pasted_content: Option<Value>,
}

#[derive(Deserialize)]
#[serde(expecting = "a message with `content`")]
struct InputMessage {
    role: Option<String>,
    content: Box<RawValue>,
}

/// A field of a message, if it has the right shape.
fn field<T: DeserializeOwned>(name: &str, value: Option<&Value>) -> Option<T> {
    let read = serde_json::from_value(value?.clone());
    if let Err(error) = &read {
        note(&format!("warning: the `{name}` of a message does not count: {error}"));
    }
    read.ok()
}

impl MessageLine {
    fn manner(&self) -> Manner {
        let mut manner = Manner::default();
        let composed = self.client_composed.as_ref();
        // A value that is not understood frees nothing: such a text is no command.
        manner.is_verbatim =
            composed.is_some() && field("client_composed", composed) != Some(false);
        manner.is_quiet = field("shouldQuery", self.should_query.as_ref()) == Some(false);
        manner.is_synthetic = field("isSynthetic", self.is_synthetic.as_ref()) == Some(true);
        if let Some(origin) = &self.origin
            && !manner.declare(origin)
        {
            note("warning: the `origin` of a message is none that is known, and does not count");
        }
        manner
    }

    /// The texts that were pasted, in their order. Blocks that are no texts are left out, and so is a list that is too
    /// long.
    fn pastes(&self) -> Vec<Block> {
        let entries = self.pasted_content.as_ref().and_then(Value::as_array);
        let entries = entries.map(Vec::as_slice).unwrap_or_default();
        let parts = |entry: &Value| entry.as_array().map_or(0, Vec::len);
        if entries.len() + entries.iter().map(parts).sum::<usize>() > MOST_PASTES {
            note("warning: a message has too many pastes, and is taken without them");
            return Vec::new();
        }
        let text = |block: &Value| block.get("text")?.as_str().map(str::to_owned);
        let texts = entries.iter().map(|entry| match entry {
            Value::String(text) => text.clone(),
            other => {
                let blocks = other.as_array().into_iter().flatten();
                blocks.filter_map(text).collect::<Vec<_>>().join("\n")
            }
        });
        texts.filter(|text| !text.trim().is_empty()).map(Block::Text).collect()
    }
}

/// The most pastes of a message, with the blocks in them.
const MOST_PASTES: usize = 1_000;

/// Reads a host's lines and acts on them.
pub(crate) struct Input {
    pub(crate) control: Control,
    pub(crate) output: Arc<OutputQueue>,
    pub(crate) world: Arc<dyn World>,
    /// Whether accepted messages are printed back.
    pub(crate) replay: bool,
    /// Whether something came that was not understood.
    pub(crate) has_garbage: AtomicBool,
}

/// The wait for a host's first line before its session begins without one. Hosts write `initialize` as soon as they have
/// started the program; the session of a silent host must still hear other sessions and continue its agents.
const FIRST_LINE: Duration = Duration::from_secs(3);

/// The lines of a host. The first one is read before its session begins, unless the host is silent.
pub(crate) struct HostLines {
    lines: Lines<tokio::io::Stdin>,
    first: Option<std::io::Result<HostLine>>,
}

impl HostLines {
    /// Waits for the first line, within a bound.
    pub(crate) async fn open() -> Self {
        let mut lines = Lines::new(tokio::io::stdin());
        let first = tokio::time::timeout(FIRST_LINE, lines.next()).await.ok();
        Self { lines, first }
    }

    /// Waits for the request that begins a session, however long that takes; it has to come first.
    pub(crate) async fn open_with_request() -> anyhow::Result<Self> {
        let mut lines = Lines::new(tokio::io::stdin());
        let first = Some(lines.next().await);
        let lines = Self { lines, first };
        let is_asked = lines.opening().is_some();
        anyhow::ensure!(is_asked, "--await-initialize: the host's first line is not `initialize`");
        Ok(lines)
    }

    /// The wishes of the first line, if it begins a session.
    pub(crate) fn opening(&self) -> Option<Opening> {
        opening_of(self.first.as_ref()?.as_ref().ok()?)
    }

    async fn next(&mut self) -> std::io::Result<HostLine> {
        match self.first.take() {
            Some(first) => first,
            None => self.lines.next().await,
        }
    }
}

/// The wishes of a line, if it begins a session.
fn opening_of(line: &HostLine) -> Option<Opening> {
    match line {
        HostLine::Whole(line) if JsonShape::of(line).values <= MOST_VALUES => Opening::read(line),
        _ => None,
    }
}

impl Input {
    /// Reads until the end of input, then closes the session's queue.
    pub(crate) async fn pump(&self, lines: &mut HostLines) {
        let mut number = 0_u64;
        // Some requests take time, and need the lines that come after them.
        let mut answering = FuturesUnordered::new();
        let mut open = HashMap::new();
        loop {
            let line = tokio::select! {
                line = self.next(lines) => line,
                Some(id) = answering.next() => {
                    open.remove(&id);
                    continue;
                }
            };
            number += 1;
            let problem = match line {
                Ok(HostLine::End) => break,
                Ok(HostLine::Whole(line)) if line.trim_ascii().is_empty() => continue,
                Ok(HostLine::Whole(line)) => match self.take(&line) {
                    Ok(LineEffect::Done) => continue,
                    Ok(LineEffect::Request { id, .. }) if answering.len() >= MOST_OPEN_REQUESTS => {
                        self.control.turn_away(&id);
                        continue;
                    }
                    Ok(LineEffect::Request { id, request }) => {
                        let withdraw = CancellationToken::new();
                        let mut answer =
                            Box::pin(self.answer(id.clone(), request, withdraw.clone()));
                        // Begun at once: what a line asks for is under way before the next line counts.
                        if futures_util::poll!(&mut answer).is_pending() {
                            open.insert(id, withdraw);
                            answering.push(answer);
                        }
                        continue;
                    }
                    Ok(LineEffect::Withdrawal { id }) => {
                        open.get(&id).into_iter().for_each(CancellationToken::cancel);
                        continue;
                    }
                    Err(error) => error.to_string(),
                },
                Ok(HostLine::TooLong) => format!("it has more than {LONGEST_LINE} bytes"),
                Err(error) => {
                    self.has_garbage.store(true, Ordering::Relaxed);
                    note(&format!("error: standard input cannot be read: {error}"));
                    break;
                }
            };
            self.has_garbage.store(true, Ordering::Relaxed);
            note(&format!("error: line {number} of the input was not understood: {problem}"));
        }
        // Open requests are answered before the session may end. No answer waits for a host that says nothing more.
        self.control.disconnect();
        while answering.next().await.is_some() {}
        self.control.handle.close();
    }

    /// Waits for a line, and before it for room: a host that does not read is not listened to for ever.
    async fn next(&self, lines: &mut HostLines) -> std::io::Result<HostLine> {
        if let Some(room) = self.output.wait_for_room() {
            room.await;
        }
        lines.next().await
    }

    /// Whether something came that was not understood.
    pub(crate) fn has_garbage(&self) -> bool {
        self.has_garbage.load(Ordering::Relaxed)
    }

    /// Answers a request, and returns its id. A request that the host withdraws is cancelled.
    async fn answer(
        &self,
        id: RequestId,
        request: Value,
        withdraw: CancellationToken,
    ) -> RequestId {
        tokio::select! {
            biased;
            () = self.control.answer(&id, &request) => {}
            () = withdraw.cancelled() => self.control.withdraw(&id),
        }
        id
    }

    /// Acts on a line; a request that it is, is for the caller to have answered.
    fn take(&self, line: &[u8]) -> Result<LineEffect, LineError> {
        if line.len() > MOST_VALUES && JsonShape::of(line).values > MOST_VALUES {
            return Err(LineError::TooManyValues);
        }
        let text = line;
        let line: InputLine = serde_json::from_slice(text)?;
        let kind = line.kind;
        match (kind.as_str(), RequestId::read(line.request_id)) {
            ("user", _) => {
                let line: MessageLine = serde_json::from_slice(text)?;
                self.take_message(&line)?;
                Ok(LineEffect::Done)
            }
            // One without a request is answered, too: the host waits for that.
            ("control_request", Some(id)) => {
                Ok(LineEffect::Request { id, request: line.request.unwrap_or_default() })
            }
            ("control_response", _) => {
                // Requests of the program have texts as ids.
                let has_id = |it: &Value| it.get("request_id").is_some_and(Value::is_string);
                let response = line.response.filter(has_id);
                self.control.take_response(response.ok_or(LineError::Response)?);
                Ok(LineEffect::Done)
            }
            ("keep_alive", _) => Ok(LineEffect::Done),
            ("control_cancel_request", Some(id)) => Ok(LineEffect::Withdrawal { id }),
            ("control_request" | "control_cancel_request", None) => {
                Err(LineError::RequestId(kind.clone()))
            }
            // A host may be newer than we are: what it says besides is no garbage.
            (kind, _) => {
                let kind: String = kind.chars().take(100).collect();
                note(&format!(
                    "warning: lines of the type `{kind}` are not known here and do nothing"
                ));
                Ok(LineEffect::Done)
            }
        }
    }

    /// Hands what a host says to the session.
    fn take_message(&self, line: &MessageLine) -> Result<(), LineError> {
        let message = line.message.as_ref().ok_or(LineError::NoMessage)?;
        if let Some(role) = message.role.as_ref().filter(|role| *role != "user") {
            return Err(LineError::Role(role.clone()));
        }
        let mut blocks = blocks(&message.content)?;
        let mut manner = line.manner();
        let pastes = line.pastes();
        manner.pastes = pastes.len();
        blocks.extend(pastes);
        if blocks.is_empty() {
            return Err(LineError::Empty);
        }
        let priority = field("priority", line.priority.as_ref()).unwrap_or(Priority::Next);
        let id = field("uuid", line.uuid.as_ref()).unwrap_or_else(|| self.world.record_id());
        if self.replay {
            self.print_back(id, blocks.clone(), manner.is_synthetic);
        }
        self.control.handle.submit_in(id, blocks, priority, manner);
        if priority == Priority::Now {
            self.control.handle.interrupt();
        }
        Ok(())
    }

    fn print_back(&self, uuid: RecordId, content: Vec<Block>, is_synthetic: bool) {
        let user = User {
            message: UserMessage { role: "user", content },
            parent_tool_use_id: None,
            agent: None,
            timestamp: self.world.now().into(),
            tool_use_result: None,
            is_synthetic,
            is_replay: true,
        };
        self.output.json_line(&Event {
            body: EventBody::User(user),
            session_id: self.control.handle.id(),
            uuid,
        });
    }
}

/// The most requests of the other side that may be under way at once; more are answered with an error.
pub(crate) const MOST_OPEN_REQUESTS: usize = 256;

/// The longest line that is taken: a prompt with all its pictures.
const LONGEST_LINE: usize = 64 * 1024 * 1024;

/// The most values of a line: each takes far more memory than text.
const MOST_VALUES: usize = 200_000;

/// The reason that a line of the host is left out.
#[derive(Debug, Error)]
enum LineError {
    #[error("it has more than {MOST_VALUES} values")]
    TooManyValues,
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("a {0} needs a request_id that is a text or a number")]
    RequestId(String),
    #[error("a control_response needs a response with a request_id")]
    Response,
    #[error("a user line needs a message with content")]
    NoMessage,
    #[error("a user line cannot have a message of the role `{0}`")]
    Role(String),
    #[error("content is neither a text nor a list: {0}")]
    Content(serde_json::Error),
    #[error("a block was not understood: {0}")]
    Block(serde_json::Error),
    #[error("a user message may hold text, image and document blocks (base64) only")]
    Kind,
    #[error("the message is empty")]
    Empty,
}

/// The kind of a line.
enum LineEffect {
    /// Acted on.
    Done,
    /// A request, to be answered.
    Request { id: RequestId, request: Value },
    /// The host no longer wants the answer to this request.
    Withdrawal { id: RequestId },
}

enum HostLine {
    Whole(Vec<u8>),
    /// It was read past, to its end.
    TooLong,
    End,
}

/// Lines of bounded length. Whatever was read stays when a reading is dropped while it waits.
struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    is_too_long: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(reader: R) -> Self {
        Self { reader: BufReader::new(reader), line: Vec::new(), is_too_long: false }
    }

    async fn next(&mut self) -> std::io::Result<HostLine> {
        loop {
            let bytes = self.reader.fill_buf().await?;
            if bytes.is_empty() {
                let is_rest = self.is_too_long || !self.line.is_empty();
                return Ok(if is_rest { self.taken() } else { HostLine::End });
            }
            let end = memchr::memchr(b'\n', bytes);
            let piece = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            let taken = piece.len() + usize::from(end.is_some());
            if self.line.len() + piece.len() > LONGEST_LINE {
                self.is_too_long = true;
                self.line = Vec::new();
            }
            if !self.is_too_long {
                self.line.extend_from_slice(piece);
            }
            self.reader.consume(taken);
            if end.is_some() {
                return Ok(self.taken());
            }
        }
    }

    fn taken(&mut self) -> HostLine {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            HostLine::TooLong
        } else {
            HostLine::Whole(line)
        }
    }
}

/// The content of a message: a text, or blocks that a person can bring.
fn blocks(content: &RawValue) -> Result<Vec<Block>, LineError> {
    let parts: Vec<Block> = if let Ok(text) = serde_json::from_str::<String>(content.get()) {
        vec![Block::Text(text)]
    } else {
        let parts: Vec<Box<RawValue>> =
            serde_json::from_str(content.get()).map_err(LineError::Content)?;
        let parsed: Result<_, _> = parts.iter().map(|part| Block::parse(part)).collect();
        parsed.map_err(LineError::Block)?
    };
    let is_blank = |block: &Block| matches!(block, Block::Text(text) if text.trim().is_empty());
    let blocks: Vec<Block> = parts.into_iter().filter(|block| !is_blank(block)).collect();
    let is_a_persons = |block: &Block| {
        matches!(block, Block::Text(_) | Block::Image { .. } | Block::Document { .. })
    };
    if !blocks.iter().all(is_a_persons) {
        return Err(LineError::Kind);
    }
    Ok(blocks)
}
