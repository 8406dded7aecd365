//! Turns a step into the events of an answer, with its delays and faults.

use std::time::Duration;

use centurion_protocol::{ReportedUsage, StopReason, ToolUseId, Usage};
use futures_util::stream;
use serde_json::Value;

use super::select::ChosenStep;
use super::step::{FaultKind, Step};
use super::template::Source;
use super::view::View;
use crate::{BlockStart, Delta, ErrorKind, EventStream, ModelError, StreamEvent};

/// One action of a played answer.
enum Beat {
    Wait(Duration),
    Event(StreamEvent),
    /// The end of the answer, whatever was to follow.
    Fail(ModelError),
}

/// The values for placeholders.
struct PlaceholderValues<'a> {
    view: &'a View<'a>,
    argument: &'a str,
    number: u64,
}

impl Source for PlaceholderValues<'_> {
    fn history(&self) -> &str {
        self.view.history()
    }

    fn argument(&self) -> &str {
        self.argument
    }

    fn number(&self) -> u64 {
        self.number
    }
}

/// The answer to request `number`.
pub(super) fn play(chosen: &ChosenStep<'_>, view: &View<'_>, number: u64) -> EventStream {
    let step = chosen.step;
    let mut beats = vec![Beat::Wait(step.latency)];
    let strikes = |times: Option<u64>| times.is_none_or(|times| chosen.asked <= times);
    match &step.error {
        Some(failure) if strikes(failure.times.or(step.times)) => {
            beats.push(Beat::Fail(failure.to_error()));
        }
        _ => {
            let argument = chosen.argument.as_deref().unwrap_or_default();
            let asked = PlaceholderValues { view, argument, number };
            let events = events(step, &asked);
            for (count, event) in events.into_iter().enumerate() {
                if strikes(step.times) {
                    beats.extend(faults(step, count));
                }
                beats.push(Beat::Event(event));
                beats.push(Beat::Wait(step.chunk_delay));
            }
        }
    }
    perform(beats)
}

fn perform(beats: Vec<Beat>) -> EventStream {
    Box::pin(stream::unfold(beats.into_iter(), |mut beats| async move {
        loop {
            match beats.next()? {
                Beat::Wait(Duration::ZERO) => {}
                Beat::Wait(time) => tokio::time::sleep(time).await,
                Beat::Event(event) => return Some((Ok(event), beats)),
                Beat::Fail(error) => return Some((Err(error), Vec::new().into_iter())),
            }
        }
    }))
}

fn faults(step: &Step, sent: usize) -> impl Iterator<Item = Beat> {
    step.faults.iter().filter(move |fault| fault.after == sent).map(|fault| match fault.kind {
        FaultKind::Stall(time) => Beat::Wait(time),
        FaultKind::Reset => Beat::Fail(ModelError::new(
            ErrorKind::Network,
            "the scenario broke the connection in the middle of an answer",
        )),
        FaultKind::Malformed => Beat::Fail(ModelError::new(
            ErrorKind::Malformed,
            "the scenario sent an event that is no JSON",
        )),
        FaultKind::Overloaded => Beat::Fail(ModelError::new(
            ErrorKind::Overloaded,
            "the scenario reported overload in the middle of an answer",
        )),
    })
}

fn events(step: &Step, asked: &PlaceholderValues<'_>) -> Vec<StreamEvent> {
    let blocks: Vec<Value> = step.blocks.iter().map(|block| block.fill(asked)).collect();
    let calls = blocks.iter().any(|block| kind_of(block) == "tool_use");
    let written: usize = blocks.iter().map(|block| block.to_string().len()).sum();
    let request = asked.view.request;
    let read = request.prefix.system.wire().len()
        + request.prefix.tools.wire().len()
        + request.prefix.conversation.bytes();
    let usage = step.usage.or(Usage {
        input_tokens: tokens(read),
        output_tokens: tokens(written).max(1),
        ..Usage::default()
    });
    let stop_reason = step.stop_reason.clone().unwrap_or(if calls {
        StopReason::ToolUse
    } else {
        StopReason::EndTurn
    });

    let mut events = vec![StreamEvent::Start {
        id: format!("msg_script_{:06}", asked.number),
        model: request.model.clone(),
        // As a provider does: the answer is not written yet.
        usage: begun(&usage),
        request_id: Some(format!("req_script_{:06}", asked.number)),
    }];
    for (index, block) in blocks.iter().enumerate() {
        let (start, deltas) = block_events(block, step.chunk_chars, || {
            // The length of the conversation keeps ids apart when a later process resumes it.
            format!("toolu_script_{:06}_{}_{index}", asked.number, asked.view.messages())
        });
        events.push(StreamEvent::BlockStart { index, block: start });
        events.extend(deltas.into_iter().map(|delta| StreamEvent::Delta { index, delta }));
        events.push(StreamEvent::BlockStop { index });
    }
    events.push(StreamEvent::Finish { stop_reason, usage });
    events
}

/// The usage before the answer is written.
fn begun(usage: &ReportedUsage) -> ReportedUsage {
    let mut begun = usage.clone();
    begun.counts.output_tokens = begun.counts.output_tokens.min(1);
    begun
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(4) as u64
}

fn kind_of(block: &Value) -> &str {
    text_of(block, "type")
}

fn text_of<'v>(block: &'v Value, key: &str) -> &'v str {
    block.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn block_events(
    block: &Value,
    chunk: usize,
    fresh_id: impl FnOnce() -> String,
) -> (BlockStart, Vec<Delta>) {
    let cut = |text: &str, delta: fn(String) -> Delta| -> Vec<Delta> {
        chunks(text, chunk).into_iter().map(delta).collect()
    };
    match kind_of(block) {
        "text" => (BlockStart::Text, cut(text_of(block, "text"), Delta::Text)),
        "thinking" => {
            let mut deltas = cut(text_of(block, "thinking"), Delta::Thinking);
            deltas.push(Delta::Signature(text_of(block, "signature").to_owned()));
            (BlockStart::Thinking, deltas)
        }
        "redacted_thinking" => {
            let data = text_of(block, "data").to_owned();
            (BlockStart::RedactedThinking { data }, Vec::new())
        }
        "tool_use" => {
            let id = match text_of(block, "id") {
                "" => fresh_id(),
                id => id.to_owned(),
            };
            let name = text_of(block, "name").to_owned();
            let input = block.get("input").map(Value::to_string).unwrap_or_default();
            (BlockStart::ToolUse { id: ToolUseId::new(id), name }, cut(&input, Delta::InputJson))
        }
        _ => match serde_json::value::to_raw_value(block) {
            Ok(raw) => (BlockStart::Other(raw), Vec::new()),
            // A JSON value always has a text; otherwise the block would be empty.
            Err(_) => (BlockStart::Text, Vec::new()),
        },
    }
}

/// Cuts a text into pieces of `size` characters; an empty text is one empty piece.
fn chunks(text: &str, size: usize) -> Vec<String> {
    if size == 0 || text.is_empty() {
        return vec![text.to_owned()];
    }
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(size).map(|piece| piece.iter().collect()).collect()
}
