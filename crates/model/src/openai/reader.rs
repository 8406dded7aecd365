//! Decodes the chunks of one streaming chat completion into events of the Messages API.
//!
//! Pure: bytes in, events or an error out. Blocks come one after another, as readers expect. Several calls may grow at
//! the same time here, so only the first is passed on as it grows; the others are held until the end and passed on
//! whole.

use std::collections::HashSet;

use centurion_protocol::{ReportedUsage, StopReason, ToolUseId, Usage};
use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, json};

use crate::failure::{self, ErrorBody, malformed};
use crate::limits::Tally;
use crate::sse::Decoder;
use crate::{BlockStart, Delta, ErrorKind, ModelError, StreamEvent};

/// The decoder of one answer.
#[derive(Debug)]
pub struct OpenAiReader {
    /// Makes the ids of calls that came without one differ from those of other answers.
    nonce: u64,
    request_id: Option<String>,
    has_started: bool,
    is_finished: bool,
    /// The number of the next block.
    next: usize,
    /// The text or thinking that is growing.
    open: Option<(usize, DeltaKind)>,
    calls: Vec<Call>,
    /// The block of the first call, once it has started.
    told: Option<usize>,
    /// Text after the start of the first call; passed on after the calls.
    late: Vec<(DeltaKind, String)>,
    /// The size of the held parts.
    held: Tally,
    finish_reason: Option<String>,
    usage: ReportedUsage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeltaKind {
    Text,
    Thinking,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk {
    id: Option<String>,
    model: Option<String>,
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    usage: Option<Counts>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Option<ChoiceDelta>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct ChoiceDelta {
    content: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    /// A piece of JSON text; some servers send the object itself.
    arguments: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Counts {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

impl OpenAiReader {
    pub fn new(nonce: u64) -> Self {
        Self {
            nonce,
            request_id: None,
            has_started: false,
            is_finished: false,
            next: 0,
            open: None,
            calls: Vec::new(),
            told: None,
            late: Vec::new(),
            held: Tally::default(),
            finish_reason: None,
            usage: ReportedUsage::default(),
        }
    }

    /// Decodes the data of one server-sent event.
    pub fn read(&mut self, data: &[u8]) -> Result<Vec<StreamEvent>, ModelError> {
        let mut events = Vec::new();
        if self.is_finished {
            return Ok(events);
        }
        if data.trim_ascii() == b"[DONE]" {
            self.finish(&mut events)?;
            return Ok(events);
        }
        if let Some(complaint) = complaint(data) {
            return Err(complaint.in_stream());
        }
        let chunk: Chunk = serde_json::from_slice(data)
            .map_err(|error| malformed(format!("a chunk of the answer is wrong: {error}")))?;
        self.start(&chunk, &mut events);
        if let Some(counts) = chunk.usage {
            self.usage = counts.reported();
        }
        // The request asks for one choice only.
        if let Some(choice) = chunk.choices.unwrap_or_default().into_iter().next() {
            if let Some(delta) = choice.delta {
                self.delta(delta, &mut events)?;
            }
            self.finish_reason = choice.finish_reason.or(self.finish_reason.take());
        }
        Ok(events)
    }

    fn start(&mut self, chunk: &Chunk, events: &mut Vec<StreamEvent>) {
        if self.has_started {
            return;
        }
        self.has_started = true;
        events.push(StreamEvent::Start {
            id: chunk.id.clone().unwrap_or_default(),
            model: chunk.model.clone().unwrap_or_default(),
            usage: ReportedUsage::default(),
            request_id: self.request_id.take(),
        });
    }

    fn delta(
        &mut self,
        delta: ChoiceDelta,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ModelError> {
        // A server that sends both repeats the same text.
        if let Some(piece) = delta.reasoning_content.or(delta.reasoning) {
            self.say(DeltaKind::Thinking, piece, events)?;
        }
        if let Some(piece) = delta.content {
            self.say(DeltaKind::Text, piece, events)?;
        }
        for call in delta.tool_calls.unwrap_or_default() {
            self.call(call, events)?;
        }
        Ok(())
    }

    fn say(
        &mut self,
        voice: DeltaKind,
        piece: String,
        events: &mut Vec<StreamEvent>,
    ) -> Result<(), ModelError> {
        if piece.is_empty() {
            return Ok(());
        }
        if self.told.is_some() {
            return self.hold_late(voice, &piece);
        }
        let index = match self.open {
            Some((index, open)) if open == voice => index,
            _ => {
                self.close(events);
                let block = match voice {
                    DeltaKind::Text => BlockStart::Text,
                    DeltaKind::Thinking => BlockStart::Thinking,
                };
                let index = self.begin(block, events);
                self.open = Some((index, voice));
                index
            }
        };
        let delta = match voice {
            DeltaKind::Text => Delta::Text(piece),
            DeltaKind::Thinking => Delta::Thinking(piece),
        };
        events.push(StreamEvent::Delta { index, delta });
        Ok(())
    }

    fn hold_late(&mut self, voice: DeltaKind, piece: &str) -> Result<(), ModelError> {
        self.held.add_bytes(piece.len())?;
        match self.late.last_mut() {
            Some((last, text)) if *last == voice => text.push_str(piece),
            _ => {
                self.held.add_block()?;
                self.late.push((voice, piece.to_owned()));
            }
        }
        Ok(())
    }

    fn begin(&mut self, block: BlockStart, events: &mut Vec<StreamEvent>) -> usize {
        let index = self.next;
        self.next += 1;
        events.push(StreamEvent::BlockStart { index, block });
        index
    }

    fn close(&mut self, events: &mut Vec<StreamEvent>) {
        if let Some((index, _)) = self.open.take() {
            events.push(StreamEvent::BlockStop { index });
        }
    }

    fn call(&mut self, delta: CallDelta, events: &mut Vec<StreamEvent>) -> Result<(), ModelError> {
        let at = self.place_of(&delta)?;
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        if let Some(id) = delta.id.filter(|_| call.id.is_empty()) {
            call.id = id;
        }
        let function = delta.function.unwrap_or(FunctionDelta { name: None, arguments: None });
        if let Some(name) = function.name.filter(|_| call.name.is_empty()) {
            call.name = name;
        }
        let piece = match function.arguments {
            Some(serde_json::Value::String(piece)) => piece,
            None | Some(serde_json::Value::Null) => String::new(),
            Some(whole) => whole.to_string(),
        };
        self.held.add_bytes(piece.len())?;
        call.arguments.push_str(&piece);
        if at == 0 {
            self.tell_first(piece, events);
        }
        Ok(())
    }

    /// The call that a delta continues, or the position of a new one. Servers number calls, or name them, or number all
    /// of them zero and name them, or do neither and send each in one piece.
    fn place_of(&mut self, delta: &CallDelta) -> Result<usize, ModelError> {
        let id = delta.id.as_deref().filter(|id| !id.is_empty());
        let names = delta
            .function
            .as_ref()
            .is_some_and(|function| function.name.as_deref().is_some_and(|name| !name.is_empty()));
        let known = self.calls.iter().rposition(|call| match (delta.index, id) {
            (Some(index), None) => call.index == Some(index) && !(names && call.is_complete()),
            (Some(index), Some(id)) => {
                call.index == Some(index) && (call.id.is_empty() || call.id == id)
            }
            (None, Some(id)) => call.id == id,
            (None, None) => !names,
        });
        if let Some(at) = known {
            return Ok(at);
        }
        self.held.add_block()?;
        self.calls.push(Call { index: delta.index, ..Call::default() });
        Ok(self.calls.len() - 1)
    }

    /// Passes the first call on as it grows, once its name is known.
    fn tell_first(&mut self, piece: String, events: &mut Vec<StreamEvent>) {
        let Some(first) = self.calls.first() else { return };
        if first.name.is_empty() {
            return;
        }
        let (index, piece) = if let Some(index) = self.told {
            (index, piece)
        } else {
            let (name, whole) = (first.name.clone(), first.arguments.clone());
            let id = self.id_of(0, &HashSet::new());
            self.close(events);
            let index = self.begin(BlockStart::ToolUse { id, name }, events);
            self.told = Some(index);
            (index, whole)
        };
        if !piece.is_empty() {
            events.push(StreamEvent::Delta { index, delta: Delta::InputJson(piece) });
        }
    }

    /// The id of a call: the server's, or a new one if the server gave none or gave one twice.
    fn id_of(&self, at: usize, taken: &HashSet<ToolUseId>) -> ToolUseId {
        let given = self.calls.get(at).map(|call| call.id.as_str()).filter(|id| !id.is_empty());
        given
            .map(ToolUseId::new)
            .filter(|id| !taken.contains(id))
            .unwrap_or_else(|| ToolUseId::new(format!("call_{:016x}_{at}", self.nonce)))
    }

    /// Ends the open block and passes on the held parts.
    fn tell_rest(&mut self, events: &mut Vec<StreamEvent>) -> Result<(), ModelError> {
        self.close(events);
        let mut taken = HashSet::new();
        for at in 0..self.calls.len() {
            let id = self.id_of(at, &taken);
            taken.insert(id.clone());
            if let (0, Some(index)) = (at, self.told) {
                events.push(StreamEvent::BlockStop { index });
                continue;
            }
            let Some(call) = self.calls.get_mut(at) else { continue };
            if call.name.is_empty() {
                return Err(malformed("a call in the answer names no tool"));
            }
            let (name, input) = (call.name.clone(), std::mem::take(&mut call.arguments));
            let index = self.begin(BlockStart::ToolUse { id, name }, events);
            events.push(StreamEvent::Delta { index, delta: Delta::InputJson(input) });
            events.push(StreamEvent::BlockStop { index });
        }
        self.told = None;
        for (voice, piece) in std::mem::take(&mut self.late) {
            self.say(voice, piece, events)?;
        }
        self.close(events);
        Ok(())
    }

    fn finish(&mut self, events: &mut Vec<StreamEvent>) -> Result<(), ModelError> {
        let reason = self.finish_reason.take();
        let reason = reason.ok_or_else(|| malformed("the answer ends without a reason"))?;
        self.tell_rest(events)?;
        let has_calls = !self.calls.is_empty();
        let stop_reason = match reason.as_str() {
            "stop" | "tool_calls" | "function_call" if has_calls => StopReason::ToolUse,
            "stop" | "tool_calls" | "function_call" => StopReason::EndTurn,
            "length" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refusal,
            _ => StopReason::Other(reason),
        };
        self.is_finished = true;
        events.push(StreamEvent::Finish { stop_reason, usage: self.usage.clone() });
        Ok(())
    }
}

impl Decoder for OpenAiReader {
    fn begin(&mut self, headers: &HeaderMap) {
        self.request_id = failure::request_id(headers);
    }

    fn read(&mut self, data: &[u8]) -> Result<Vec<StreamEvent>, ModelError> {
        self.read(data)
    }

    /// Some servers close without `[DONE]`; a finish reason is enough.
    fn end(&mut self) -> Result<Vec<StreamEvent>, ModelError> {
        let mut events = Vec::new();
        match (self.is_finished, self.has_started, &self.finish_reason) {
            (true, ..) => {}
            (false, true, Some(_)) => self.finish(&mut events)?,
            (false, true, None) => {
                let text = "the connection closed in the middle of the answer";
                return Err(ModelError::new(ErrorKind::Network, text));
            }
            (false, false, _) => return Err(malformed("the answer has no chunks")),
        }
        Ok(events)
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }
}

impl Call {
    /// Whether the arguments are complete, so that another name must belong to another call.
    fn is_complete(&self) -> bool {
        serde_json::from_str::<serde::de::IgnoredAny>(&self.arguments).is_ok()
    }
}

impl Counts {
    /// The counts as the rest of the program knows them. Tokens of reasoning are part of the answer.
    fn reported(self) -> ReportedUsage {
        let cached = self.prompt_tokens_details.and_then(|details| details.cached_tokens);
        let cached = cached.unwrap_or(0).min(self.prompt_tokens);
        let mut usage = ReportedUsage::from(Usage {
            input_tokens: self.prompt_tokens - cached,
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: cached,
            output_tokens: self.completion_tokens,
        });
        if let Some(tokens) = self.completion_tokens_details.and_then(|it| it.reasoning_tokens) {
            let details = json!({"thinking_tokens": tokens});
            usage.update(Map::from_iter([("output_tokens_details".to_owned(), details)]));
        }
        usage
    }
}

/// An error object in place of a chunk.
fn complaint(data: &[u8]) -> Option<ErrorBody> {
    #[derive(Deserialize)]
    struct Outline {
        error: Option<serde::de::IgnoredAny>,
        object: Option<String>,
    }
    let outline: Outline = serde_json::from_slice(data).ok()?;
    let is_error = outline.error.is_some() || outline.object.as_deref() == Some("error");
    is_error.then(|| ErrorBody::parse(data)).flatten()
}
