//! Folds the events of a stream into an answer.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use centurion_protocol::{
    Block, ReportedUsage, StopReason, ToolUse, ToolUseId, escape_line_separators,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::failure::malformed;
use crate::limits;
use crate::{BlockStart, Delta, ModelError, StreamEvent};

/// The bytes of a malformed input that an error quotes.
const EXCERPT: usize = 200;

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub id: String,
    pub model: String,
    pub request_id: Option<String>,
    pub blocks: Vec<Block>,
    pub stop_reason: StopReason,
    pub usage: ReportedUsage,
    /// Calls whose input was no JSON object, and the problem. Their blocks have `{}` for input, so that history stays
    /// valid; they cannot be run.
    pub malformed_calls: Vec<(ToolUseId, String)>,
}

impl Answer {
    /// The calls, in the order in which the model made them.
    pub fn calls(&self) -> impl Iterator<Item = &ToolUse> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolUse(call) => Some(call),
            _ => None,
        })
    }

    /// All text of the answer.
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

/// An answer under construction. After a retry, start with a new one: earlier events are void.
#[derive(Clone, Debug, Default)]
pub struct AnswerBuilder {
    id: String,
    model: String,
    request_id: Option<String>,
    usage: ReportedUsage,
    stop_reason: Option<StopReason>,
    /// Blocks that have ended; the parts come behind them.
    ended: Vec<Block>,
    parts: BTreeMap<usize, PartialBlock>,
}

/// The part of an answer that will not be completed.
#[derive(Clone, Debug)]
pub struct CutOff {
    pub id: String,
    pub model: String,
    pub request_id: Option<String>,
    /// The blocks that had ended.
    pub ended: Vec<Block>,
    /// The text of the others.
    pub rest: String,
}

#[derive(Clone, Debug)]
struct PartialBlock {
    start: BlockStart,
    /// Text, thinking, or the JSON text of an input.
    text: String,
    signature: String,
    is_stopped: bool,
}

impl AnswerBuilder {
    pub fn push(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Start { id, model, usage, request_id } => {
                self.id.clone_from(id);
                self.model.clone_from(model);
                self.request_id.clone_from(request_id);
                self.usage.clone_from(usage);
            }
            StreamEvent::BlockStart { index, block } => {
                self.parts.insert(*index, PartialBlock::new(block.clone()));
            }
            StreamEvent::Delta { index, delta } => {
                if let Some(part) = self.parts.get_mut(index) {
                    part.push(delta);
                }
            }
            StreamEvent::BlockStop { index } => {
                if let Some(part) = self.parts.get_mut(index) {
                    part.is_stopped = true;
                }
            }
            StreamEvent::Finish { stop_reason, usage } => {
                self.stop_reason = Some(stop_reason.clone());
                self.usage.clone_from(usage);
            }
            StreamEvent::Ping => {}
        }
    }

    /// Takes note of the blocks that have ended since the last time, in their order: they will stand in the answer as
    /// they are. A call whose input is empty or wrong may be dropped at the end, and so waits for it, with all blocks
    /// behind it.
    pub fn take_ended(&mut self) -> &[Block] {
        let from = self.ended.len();
        while let Some(first) = self.parts.first_entry().filter(|it| it.get().has_ended()) {
            let block = first.remove().into_block(&self.ended, &mut Vec::new());
            self.ended.extend(block.ok().flatten());
        }
        self.ended.get(from..).unwrap_or_default()
    }

    /// The id of the answer, its model, and the id of its request.
    pub fn head(&self) -> (&str, &str, Option<&str>) {
        (&self.id, &self.model, self.request_id.as_deref())
    }

    /// Gives up the answer.
    pub fn cut_off(self) -> CutOff {
        let texts = self.parts.into_values().filter(|it| matches!(it.start, BlockStart::Text));
        CutOff {
            id: self.id,
            model: self.model,
            request_id: self.request_id,
            ended: self.ended,
            rest: texts.map(|part| part.text).collect(),
        }
    }

    /// The usage of the request, as far as it is known.
    pub fn usage(&self) -> &ReportedUsage {
        &self.usage
    }

    /// The answer, if it is complete.
    pub fn finish(self) -> Result<Answer, ModelError> {
        let stop_reason = self.stop_reason.ok_or_else(|| malformed("the answer has no end"))?;
        let was_cut = matches!(
            stop_reason,
            StopReason::MaxTokens | StopReason::ModelContextWindowExceeded | StopReason::Refusal
        );
        let last = self.parts.keys().next_back().copied();
        let mut answer = Answer {
            id: self.id,
            model: self.model,
            request_id: self.request_id,
            blocks: self.ended,
            stop_reason,
            usage: self.usage,
            malformed_calls: Vec::new(),
        };
        for (index, part) in self.parts {
            if was_cut && Some(index) == last && part.is_unfinished_call() {
                continue;
            }
            let block = part.into_block(&answer.blocks, &mut answer.malformed_calls)?;
            answer.blocks.extend(block);
        }
        Ok(answer)
    }
}

impl PartialBlock {
    fn new(start: BlockStart) -> Self {
        Self { start, text: String::new(), signature: String::new(), is_stopped: false }
    }

    /// Adds a piece that fits the kind of block; ignores others.
    fn push(&mut self, delta: &Delta) {
        match (&self.start, delta) {
            (BlockStart::Text, Delta::Text(piece))
            | (BlockStart::Thinking, Delta::Thinking(piece))
            | (BlockStart::ToolUse { .. } | BlockStart::Other(_), Delta::InputJson(piece)) => {
                self.text.push_str(piece);
            }
            (BlockStart::Thinking, Delta::Signature(piece)) => self.signature.push_str(piece),
            _ => {}
        }
    }

    /// Whether this call may be incomplete because the answer was cut off: a complete input proves that it is not.
    fn is_unfinished_call(&self) -> bool {
        matches!(self.start, BlockStart::ToolUse { .. })
            && (!self.is_stopped || self.text.trim().is_empty() || parse_input(&self.text).is_err())
    }

    /// Whether the block stands in the answer as it is, however that continues.
    fn has_ended(&self) -> bool {
        self.is_stopped
            && match &self.start {
                BlockStart::ToolUse { .. } => !self.is_unfinished_call(),
                BlockStart::Other(raw) => {
                    limits::check_block(&with_input(raw.clone(), &self.text)).is_ok()
                }
                _ => true,
            }
    }

    /// The block, if it holds anything. `before` are those in front of it.
    fn into_block(
        self,
        before: &[Block],
        malformed_calls: &mut Vec<(ToolUseId, String)>,
    ) -> Result<Option<Block>, ModelError> {
        let block = match self.start {
            BlockStart::Text if self.text.is_empty() => return Ok(None),
            BlockStart::Text => Block::Text(self.text),
            BlockStart::Thinking if self.text.is_empty() && self.signature.is_empty() => {
                return Ok(None);
            }
            BlockStart::Thinking => {
                Block::Thinking { thinking: self.text, signature: self.signature }
            }
            BlockStart::RedactedThinking { data } => Block::RedactedThinking { data },
            BlockStart::ToolUse { id, name } => {
                let id = unused(id, before);
                let input = parse_input(&self.text).unwrap_or_else(|problem| {
                    malformed_calls.push((id.clone(), problem.to_string()));
                    empty_object()
                });
                Block::ToolUse(ToolUse { id, name, input })
            }
            BlockStart::Other(raw) => {
                let raw = with_input(raw, &self.text);
                limits::check_block(&raw)?;
                Block::Other(as_recorded(raw))
            }
        };
        Ok(Some(block))
    }
}

/// The id of a call, or a new one where it has none or that of an earlier call of the answer: some servers number
/// badly, and a result must belong to one call.
fn unused(id: ToolUseId, before: &[Block]) -> ToolUseId {
    let is_used = |id: &ToolUseId| {
        let has_it = |block: &Block| matches!(block, Block::ToolUse(call) if call.id == *id);
        id.as_str().is_empty() || before.iter().any(has_it)
    };
    if !is_used(&id) {
        return id;
    }
    let mut numbered = (2_usize..).map(|number| ToolUseId::new(format!("{id}-{number}")));
    numbered.find(|other| !is_used(other)).unwrap_or(id)
}

/// The input of a call is no JSON object.
#[derive(Debug, thiserror::Error)]
#[error("the input is no JSON object ({problem}): {shown}")]
struct InputError {
    problem: String,
    /// The beginning of the input.
    shown: String,
}

/// The input of a call, with its original bytes. An empty text is an empty input.
fn parse_input(text: &str) -> Result<Box<RawValue>, InputError> {
    if text.trim().is_empty() {
        return Ok(empty_object());
    }
    // Escaped as records escape it, so that a resumed session sends the same bytes.
    let problem = match RawValue::from_string(escape_line_separators(text).into_owned()) {
        Ok(raw) if let Some(problem) = limits::problem_of(&raw) => problem,
        Ok(raw) if raw.get().starts_with('{') => return Ok(raw),
        Ok(_) => "it is another kind of JSON value".to_owned(),
        Err(error) => error.to_string(),
    };
    let shown: String = text.chars().take(EXCERPT).collect();
    let dots = if shown.len() < text.len() { "…" } else { "" };
    Err(InputError { problem, shown: format!("{shown}{dots}") })
}

fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).expect("invariant: `{}` is JSON")
}

/// A block in the form of records.
fn as_recorded(raw: Box<RawValue>) -> Box<RawValue> {
    match escape_line_separators(raw.get()) {
        Cow::Borrowed(_) => raw,
        Cow::Owned(escaped) => RawValue::from_string(escaped).unwrap_or(raw),
    }
}

/// Puts a streamed input into a block of an unknown kind.
fn with_input(raw: Box<RawValue>, input: &str) -> Box<RawValue> {
    #[derive(Deserialize)]
    struct Fields<'a> {
        #[serde(borrow)]
        input: Option<&'a RawValue>,
    }
    let spliced = || {
        let text = raw.get();
        RawValue::from_string(input.to_owned()).ok()?;
        let fields: Fields<'_> = serde_json::from_str(text).ok()?;
        // The old input is a slice of the block's own text, so its offset is known.
        let whole = match fields.input.map(RawValue::get) {
            Some(old) => {
                let start = (old.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
                format!("{}{input}{}", text.get(..start)?, text.get(start + old.len()..)?)
            }
            None => format!("{},\"input\":{input}}}", text.trim_end().strip_suffix('}')?),
        };
        RawValue::from_string(whole).ok()
    };
    if input.trim().is_empty() {
        return raw;
    }
    spliced().unwrap_or(raw)
}
