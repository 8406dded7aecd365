//! Decodes the events of one streaming answer of the Messages API.
//!
//! Pure: bytes in, events or an error out. Its output is well-formed: every delta belongs to a block that has started
//! and not stopped.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use centurion_protocol::{ReportedUsage, StopReason, ToolUseId};
use futures_util::Stream;
use reqwest::header::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::failure::{self, ErrorBody, malformed};
use crate::limits::Tally;
use crate::sse::{self, Decoder};
use crate::{BlockStart, Delta, ErrorKind, EventStream, ModelError, StreamEvent};

/// The decoder of one answer.
#[derive(Debug, Default)]
pub struct AnthropicReader {
    request_id: Option<String>,
    usage: ReportedUsage,
    stop_reason: Option<StopReason>,
    blocks: BTreeMap<usize, BlockState>,
    /// Complete inputs that are held until their blocks stop.
    held: Tally,
    progress: Progress,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    #[default]
    Waiting,
    Started,
    Finished,
}

#[derive(Debug)]
enum BlockState {
    /// In progress; with the complete input from the start, which counts if no other follows.
    Open {
        input: Option<String>,
    },
    Stopped,
}

/// Every field of any event. Raw, because an unknown event may use the same names for other things.
#[derive(Deserialize)]
struct AnyEvent<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageStart {
    #[serde(default)]
    id: String,
    #[serde(default)]
    model: String,
    usage: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct ContentBlock<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    data: Option<String>,
    id: Option<ToolUseId>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct BlockDelta<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
}

#[derive(Deserialize)]
struct MessageDelta {
    stop_reason: Option<StopReason>,
}

impl AnthropicReader {
    /// Decodes a whole answer from the bytes of its body, in chunks of any size.
    pub fn events(
        bytes: impl Stream<Item = Result<Bytes, ModelError>> + Send + 'static,
    ) -> EventStream {
        sse::decode(bytes, Self::default())
    }

    /// Decodes the data of one server-sent event.
    pub fn read(&mut self, data: &[u8]) -> Result<Vec<StreamEvent>, ModelError> {
        if self.progress == Progress::Finished {
            return Ok(Vec::new());
        }
        let event: AnyEvent<'_> = serde_json::from_slice(data)
            .map_err(|error| malformed(format!("an event of the answer is no JSON: {error}")))?;
        let kind: &str = &event.kind;
        if kind.starts_with("content_block_") || kind == "message_delta" || kind == "message_stop" {
            self.check_started(kind)?;
        }
        match kind {
            "message_start" => self.start(part("message", event.message)?),
            "content_block_start" => self.start_block(&event),
            "content_block_delta" => self.delta(&event),
            "content_block_stop" => self.stop_block(part("index", event.index)?),
            "message_delta" => self.message_delta(&event),
            "message_stop" => self.finish(),
            "ping" => Ok(vec![StreamEvent::Ping]),
            "error" => Err(ErrorBody::parse(data).map_or_else(
                || {
                    ModelError::new(
                        ErrorKind::Server,
                        "the provider reports an error and no reason",
                    )
                },
                ErrorBody::in_stream,
            )),
            _ => Ok(Vec::new()),
        }
    }

    fn check_started(&self, kind: &str) -> Result<(), ModelError> {
        match self.progress {
            Progress::Waiting => Err(malformed(format!("`{kind}` came before `message_start`"))),
            Progress::Started | Progress::Finished => Ok(()),
        }
    }

    fn start(&mut self, message: MessageStart) -> Result<Vec<StreamEvent>, ModelError> {
        if self.progress != Progress::Waiting {
            return Err(malformed("`message_start` came twice"));
        }
        self.progress = Progress::Started;
        self.usage.update(message.usage.unwrap_or_default());
        Ok(vec![StreamEvent::Start {
            id: message.id,
            model: message.model,
            usage: self.usage.clone(),
            request_id: self.request_id.take(),
        }])
    }

    fn start_block(&mut self, event: &AnyEvent<'_>) -> Result<Vec<StreamEvent>, ModelError> {
        let index = part("index", event.index)?;
        let raw = event.content_block.ok_or_else(|| missing("content_block"))?;
        if self.blocks.contains_key(&index) {
            return Err(malformed(format!("block {index} starts twice")));
        }
        let fields: ContentBlock<'_> = part("content_block", Some(raw))?;
        let mut deltas = Vec::new();
        let mut input = None;
        let block = match &*fields.kind {
            "text" => {
                deltas.extend(fields.text.map(Delta::Text));
                BlockStart::Text
            }
            "thinking" => {
                deltas.extend(fields.thinking.map(Delta::Thinking));
                deltas.extend(fields.signature.map(Delta::Signature));
                BlockStart::Thinking
            }
            "redacted_thinking" => {
                BlockStart::RedactedThinking { data: fields.data.ok_or_else(|| missing("data"))? }
            }
            "tool_use" => {
                input = fields.input.map(RawValue::get).filter(|text| !is_empty_object(text));
                BlockStart::ToolUse {
                    id: fields.id.ok_or_else(|| missing("id"))?,
                    name: fields.name.ok_or_else(|| missing("name"))?,
                }
            }
            _ => BlockStart::Other(raw.to_owned()),
        };
        self.held.add_bytes(input.map_or(0, str::len))?;
        self.blocks.insert(index, BlockState::Open { input: input.map(str::to_owned) });
        let mut events = vec![StreamEvent::BlockStart { index, block }];
        let deltas = deltas.into_iter().filter(|delta| !delta.is_empty());
        events.extend(deltas.map(|delta| StreamEvent::Delta { index, delta }));
        Ok(events)
    }

    fn delta(&mut self, event: &AnyEvent<'_>) -> Result<Vec<StreamEvent>, ModelError> {
        let index = part("index", event.index)?;
        let fields: BlockDelta<'_> = part("delta", event.delta)?;
        let Some(BlockState::Open { input }) = self.blocks.get_mut(&index) else {
            return Err(malformed(format!("a delta belongs to block {index}, which is not open")));
        };
        let delta = match &*fields.kind {
            "text_delta" => Delta::Text(fields.text.ok_or_else(|| missing("text"))?),
            "thinking_delta" => {
                Delta::Thinking(fields.thinking.ok_or_else(|| missing("thinking"))?)
            }
            "signature_delta" => {
                Delta::Signature(fields.signature.ok_or_else(|| missing("signature"))?)
            }
            "input_json_delta" => {
                let json = fields.partial_json.ok_or_else(|| missing("partial_json"))?;
                if !json.is_empty() {
                    *input = None;
                }
                Delta::InputJson(json)
            }
            _ => return Ok(Vec::new()),
        };
        Ok(vec![StreamEvent::Delta { index, delta }])
    }

    fn stop_block(&mut self, index: usize) -> Result<Vec<StreamEvent>, ModelError> {
        let Some(BlockState::Open { input }) = self.blocks.insert(index, BlockState::Stopped)
        else {
            return Err(malformed(format!("block {index} stops and was not open")));
        };
        let whole = input.map(|text| StreamEvent::Delta { index, delta: Delta::InputJson(text) });
        Ok(whole.into_iter().chain([StreamEvent::BlockStop { index }]).collect())
    }

    fn message_delta(&mut self, event: &AnyEvent<'_>) -> Result<Vec<StreamEvent>, ModelError> {
        if event.delta.is_some() {
            let delta: MessageDelta = part("delta", event.delta)?;
            self.stop_reason = delta.stop_reason.or(self.stop_reason.take());
        }
        if event.usage.is_some() {
            let sent: Option<Map<String, Value>> = part("usage", event.usage)?;
            self.usage.update(sent.unwrap_or_default());
        }
        Ok(Vec::new())
    }

    fn finish(&mut self) -> Result<Vec<StreamEvent>, ModelError> {
        let stop_reason = self.stop_reason.take();
        let stop_reason =
            stop_reason.ok_or_else(|| malformed("the answer ends without a reason"))?;
        self.progress = Progress::Finished;
        Ok(vec![StreamEvent::Finish { stop_reason, usage: self.usage.clone() }])
    }
}

impl Decoder for AnthropicReader {
    fn begin(&mut self, headers: &HeaderMap) {
        self.request_id = failure::request_id(headers);
    }

    fn read(&mut self, data: &[u8]) -> Result<Vec<StreamEvent>, ModelError> {
        self.read(data)
    }

    fn end(&mut self) -> Result<Vec<StreamEvent>, ModelError> {
        match self.progress {
            Progress::Finished => Ok(Vec::new()),
            Progress::Waiting => Err(malformed("the answer has no events")),
            Progress::Started => {
                let text = "the connection closed in the middle of the answer";
                Err(ModelError::new(ErrorKind::Network, text))
            }
        }
    }

    fn is_finished(&self) -> bool {
        self.progress == Progress::Finished
    }
}

fn part<'a, T: Deserialize<'a>>(name: &str, raw: Option<&'a RawValue>) -> Result<T, ModelError> {
    let raw = raw.ok_or_else(|| missing(name))?;
    serde_json::from_str(raw.get())
        .map_err(|error| malformed(format!("`{name}` of an event of the answer is wrong: {error}")))
}

fn missing(name: &str) -> ModelError {
    malformed(format!("an event of the answer lacks `{name}`"))
}

fn is_empty_object(json: &str) -> bool {
    json.bytes().filter(|byte| !byte.is_ascii_whitespace()).eq(*b"{}")
}
