//! Records that stay in a conversation word for word when its earlier part is left out.

use centurion_protocol::transcript::{LineKind, LineView};
use centurion_protocol::{Block, RecordId};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::history::is_text;

/// The kind of the attachments that an agent begins with.
pub const SESSION_CONTEXT: &str = "session_context";

/// The origin of an agent's task, as records spell it.
pub const TASK_ORIGIN: &str = "coordinator";

/// A record that stays as it is.
#[derive(Clone, Debug)]
pub struct KeptRecord {
    pub record: RecordId,
    pub blocks: Vec<Block>,
}

/// Instructions that an agent must not lose.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// The context that came with its task, such as the texts of skills.
    pub context: Vec<KeptRecord>,
    /// The task that it was started for.
    pub task: Vec<KeptRecord>,
    /// The prompt that it works on now.
    pub prompt: Vec<KeptRecord>,
    /// The records of all prompts of people that the conversation holds, oldest first.
    pub turns: Vec<RecordId>,
}

impl Standing {
    /// All records, in the order in which a conversation has them.
    pub fn all(&self) -> impl Iterator<Item = &KeptRecord> {
        self.context.iter().chain(&self.task).chain(&self.prompt)
    }

    /// Keeps the records that satisfy a condition.
    pub fn retain(&mut self, keeps: impl Fn(&KeptRecord) -> bool) {
        for records in [&mut self.context, &mut self.task, &mut self.prompt] {
            records.retain(|it| keeps(it));
        }
    }

    /// The same, to be changed.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut KeptRecord> {
        self.context.iter_mut().chain(&mut self.task).chain(&mut self.prompt)
    }
}

/// The same as it is found in a transcript.
#[derive(Default)]
pub(super) struct StandingView<'a> {
    context: Vec<(RecordId, &'a RawValue)>,
    task: Vec<(RecordId, &'a RawValue)>,
    prompt: Option<(RecordId, &'a RawValue)>,
    turns: Vec<RecordId>,
}

impl<'a> StandingView<'a> {
    pub(super) fn take(&mut self, view: &LineView<'a>) {
        let Some(record) = view.uuid else { return };
        match view.kind {
            LineKind::Attachment => {
                if let Some(rendered) = view.rendered
                    && view.attachment_kind().as_deref() == Some(SESSION_CONTEXT)
                {
                    self.context.push((record, rendered));
                }
            }
            LineKind::User => {
                let Some(message) = &view.message else { return };
                let is_task =
                    view.origin.is_some_and(|origin| kind(origin) == Some(TASK_ORIGIN.to_owned()));
                if is_task {
                    self.task.push((record, message.content));
                } else if !view.is_meta
                    && !view.is_compact_summary
                    && view.tool_use_result.is_none()
                    && !holds_result(message.content)
                {
                    self.prompt = Some((record, message.content));
                    self.turns.push(record);
                }
            }
            LineKind::Assistant | LineKind::Other => {}
        }
    }

    pub(super) fn read(self) -> Standing {
        let context = self.context.iter().filter_map(|(record, rendered)| {
            let parts: Vec<Value> = serde_json::from_str(rendered.get()).ok()?;
            let text = |part: &Value| Some(Block::Text(part.get("content")?.as_str()?.to_owned()));
            Some(KeptRecord { record: *record, blocks: parts.iter().filter_map(text).collect() })
        });
        let said = |(record, content): &(RecordId, &RawValue)| {
            Some(KeptRecord { record: *record, blocks: blocks(content)? })
        };
        Standing {
            context: context.collect(),
            task: self.task.iter().filter_map(said).collect(),
            prompt: self.prompt.iter().filter_map(said).collect(),
            turns: self.turns,
        }
    }
}

/// Whether blocks answer a call; a text cannot.
fn holds_result(content: &RawValue) -> bool {
    !is_text(content) && content.get().contains("\"tool_result\"")
}

fn kind(origin: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    serde_json::from_str::<Kind>(origin.get()).ok().map(|it| it.kind)
}

fn blocks(content: &RawValue) -> Option<Vec<Block>> {
    if is_text(content) {
        return serde_json::from_str(content.get()).ok().map(|text| vec![Block::Text(text)]);
    }
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    blocks.into_iter().map(|block| Block::parse(block).ok()).collect()
}
