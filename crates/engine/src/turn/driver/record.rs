//! Recording: each step of the driver goes to the journal first, and is then shown.

use std::borrow::Cow;

use centurion_model::Answer;
use centurion_protocol::sdk::{Assistant, AssistantMessage, EventBody, User, UserMessage};
use centurion_protocol::transcript::{
    AssistantBody, AttachmentBody, Body, RecordedAnswer, UserBody, UserContent,
};
use centurion_protocol::{Block, RecordId, ReportedUsage, Role, StopReason, ToolUse};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Driver;
use super::request::CUT_OFF;
use crate::agent::progress::show_progress;
use crate::message::life_records::ENTERED;
use crate::message::queue::{Item, Origin};
use centurion_journal::JournalError;

impl Driver {
    /// Records the blocks of an answer at these indices, shows those that observers have not seen yet, and
    /// adds them to the conversation. Returns the last record.
    pub(super) fn record_answer(
        &mut self,
        answer: &Answer,
        places: &[usize],
    ) -> Result<Option<RecordId>, JournalError> {
        let mut last = None;
        let seen = self.early.take_seen();
        let blocks: Vec<Block> = places.iter().map(|at| answer.blocks[*at].clone()).collect();
        for (n, (block, place)) in blocks.iter().zip(places).enumerate() {
            let is_last = n + 1 == blocks.len();
            let seen = seen.get(*place).copied().flatten();
            let body = Body::Assistant(AssistantBody {
                message: RecordedAnswer {
                    id: &answer.id,
                    kind: "message",
                    role: "assistant",
                    model: &answer.model,
                    content: [block],
                    stop_reason: is_last.then_some(&answer.stop_reason),
                    stop_sequence: None,
                    usage: &answer.usage,
                },
                request_id: answer.request_id.as_deref(),
            });
            let record = match seen {
                Some(seen) => self.journal.append_under(seen, body)?,
                None => self.journal.append(body)?,
            };
            last = Some(record);
            if seen.is_none() && self.shows(block) {
                let is_cut =
                    matches!(&answer.stop_reason, StopReason::Other(why) if why == CUT_OFF);
                let message =
                    shown_message((&answer.id, &answer.model), block.clone(), answer.usage.clone());
                let request_id = answer.request_id.clone();
                let shown = Assistant { request_id, aborted: is_cut, ..self.shown(message) };
                self.shared.show_as(record, EventBody::Assistant(Box::new(shown)));
            }
        }
        if let Some(task) = self.task() {
            task.stall.note_activity();
            task.output.answer(&blocks);
            let counts = answer.usage.counts;
            task.advance(|progress| {
                progress.tokens = counts.total();
                progress.cached += counts.cache_read_input_tokens;
            });
        }
        self.push(Role::Assistant, &blocks);
        Ok(last)
    }

    /// A message of this agent for observers, which replaces what no answer came of.
    pub(super) fn shown(&mut self, message: AssistantMessage) -> Assistant {
        let prompts = self.early.take_prompts();
        Assistant {
            message,
            parent_tool_use_id: self.identity().call.clone(),
            agent: self.identity().tag(),
            timestamp: self.shared.world.now().into(),
            request_id: None,
            error: None,
            supersedes: self.early.take_void(),
            aborted: false,
            user_message_uuid: prompts.last().copied(),
            user_message_uuids: prompts,
        }
    }

    /// Records the result of a call.
    pub(super) fn record_result(
        &self,
        block: &Block,
        source: Option<RecordId>,
        data: &Value,
    ) -> Result<(), JournalError> {
        let record = self.journal.append(Body::User(UserBody {
            tool_use_result: Some(data).filter(|data| !data.is_null()),
            source,
            ..UserBody::new(UserContent::Blocks(std::slice::from_ref(block)))
        }))?;
        self.show_input(record, block, Some(data).filter(|data| !data.is_null()), false);
        Ok(())
    }

    /// Records what the first message of a fork begins with, in one piece: it is there whole or not at all.
    pub(super) fn record_opening(&self, opening: &[Block]) -> Result<(), JournalError> {
        let description = &self.identity().description;
        let entered = json!({"status": ENTERED, "description": description});
        self.journal.append(Body::User(UserBody {
            tool_use_result: Some(&entered),
            is_meta: true,
            ..UserBody::new(UserContent::Blocks(opening))
        }))?;
        Ok(())
    }

    /// Records a queue item. The record is what makes it delivered. What a person says is known to its host by the
    /// id of the item, so the record gets that id.
    pub(super) fn record_item(&self, item: &Item) -> Result<RecordId, JournalError> {
        let content = match item.content.as_slice() {
            [Block::Text(text)] => UserContent::Text(text),
            blocks => UserContent::Blocks(blocks),
        };
        let origin = item.recorded_origin();
        let is_said = matches!(item.origin, Origin::Person);
        let body = Body::User(UserBody {
            is_meta: !is_said || item.manner.is_synthetic,
            queue_item: Some(item.id),
            origin: origin.as_ref(),
            ..UserBody::new(content)
        });
        let record = if is_said {
            self.journal.append_as(item.id, body)?
        } else {
            self.journal.append(body)?
        };
        // Observers see what a call asks of an agent; people know what they say themselves.
        if matches!(item.origin, Origin::Delegation) && !self.is_background() {
            for block in &item.content {
                self.show_input(record, block, None, false);
            }
        }
        Ok(record)
    }

    /// Records and shows what is said to the model in a person's place.
    pub(super) fn record_said(&self, block: &Block) -> Result<(), JournalError> {
        let record = self.journal.append(Body::User(UserBody {
            is_meta: true,
            ..UserBody::new(UserContent::Blocks(std::slice::from_ref(block)))
        }))?;
        self.show_input(record, block, None, true);
        Ok(())
    }

    pub(super) fn show_input(
        &self,
        record: RecordId,
        block: &Block,
        data: Option<&Value>,
        is_synthetic: bool,
    ) {
        let user = User {
            message: UserMessage { role: "user", content: vec![block.clone()] },
            parent_tool_use_id: self.identity().call.clone(),
            agent: self.identity().tag(),
            timestamp: self.shared.world.now().into(),
            tool_use_result: data.cloned(),
            is_synthetic,
            is_replay: false,
        };
        self.shared.show_as(record, EventBody::User(user));
    }

    /// Tells whether no call waits for this agent.
    fn is_background(&self) -> bool {
        self.task().is_some_and(|task| task.is_background())
    }

    /// Tells whether observers see a block of an answer. What an agent says and thinks while a call waits for it is for
    /// that call.
    pub(super) fn shows(&self, block: &Block) -> bool {
        let is_said = !matches!(block, Block::ToolUse(_));
        let forwards = || self.shared.delegation.forwards_text();
        self.identity().is_main() || !is_said || self.is_background() || forwards()
    }

    /// Notes what an agent is about to do.
    pub(super) fn tell_call(&self, call: &ToolUse) {
        let Some(task) = self.task() else { return };
        task.stall.note_activity();
        let activity = activity(call);
        task.advance(|progress| {
            progress.tool_uses += 1;
            progress.last_tool = Some(call.name.clone());
            progress.activity = activity;
        });
        show_progress(&self.shared, task);
    }

    /// Notes that a call of an agent has ended.
    pub(super) fn tell_progress(&self) {
        if let Some(task) = self.task() {
            task.stall.note_activity();
        }
    }

    /// Records text that the runtime puts before the model.
    pub(super) fn record_attachment(
        &self,
        kind: &str,
        text: &str,
    ) -> Result<RecordId, JournalError> {
        self.journal.append(Body::Attachment(AttachmentBody::new(kind, text)))
    }
}

/// A block of the answer with this id and model as observers see it. The result tells how the whole
/// answer ended.
pub(super) fn shown_message(
    (id, model): (&str, &str),
    block: Block,
    usage: ReportedUsage,
) -> AssistantMessage {
    AssistantMessage {
        id: id.to_owned(),
        kind: "message",
        role: "assistant",
        model: model.to_owned(),
        content: vec![block],
        stop_reason: None,
        stop_sequence: None,
        usage,
    }
}

/// Describes a call in a few words for people.
fn activity(call: &ToolUse) -> String {
    #[derive(Deserialize)]
    struct Input<'a> {
        #[serde(borrow, alias = "notebook_path", alias = "path")]
        file_path: Option<Cow<'a, str>>,
        #[serde(borrow)]
        description: Option<Cow<'a, str>>,
        #[serde(borrow)]
        command: Option<Cow<'a, str>>,
        #[serde(borrow)]
        pattern: Option<Cow<'a, str>>,
        #[serde(borrow)]
        url: Option<Cow<'a, str>>,
    }
    let Ok(input) = serde_json::from_str::<Input<'_>>(call.input.get()) else {
        return call.name.clone();
    };
    let file = || input.file_path.as_deref().map(|path| path.rsplit('/').next().unwrap_or(path));
    let text = match call.name.as_str() {
        "Read" => file().map(|name| format!("Reading {name}")),
        "Edit" | "NotebookEdit" => file().map(|name| format!("Editing {name}")),
        "Write" => file().map(|name| format!("Writing {name}")),
        "Grep" | "Glob" => input.pattern.as_deref().map(|text| format!("Searching {text}")),
        "WebFetch" => input.url.as_deref().map(|url| format!("Fetching {url}")),
        _ => {
            let what = input.description.as_deref().or(input.command.as_deref());
            what.map(|what| format!("{}: {what}", call.name))
        }
    };
    let text = text.unwrap_or_else(|| call.name.clone());
    let line = text.lines().next().unwrap_or_default();
    line[..line.floor_char_boundary(80)].to_owned()
}
