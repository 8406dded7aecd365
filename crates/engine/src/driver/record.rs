//! Recording: each step of the driver goes to the journal first, and is then shown.

use centurion_model::Answer;
use centurion_protocol::sdk::{Assistant, AssistantMessage, EventBody, User, UserMessage};
use centurion_protocol::transcript::{
    AssistantBody, AssistantMessage as RecordedAnswer, Attachment, AttachmentBody, Body, Rendered,
    UserBody, UserContent, UserMessage as RecordedInput,
};
use centurion_protocol::{Block, RecordId, Role};
use serde_json::Value;

use super::Driver;
use crate::journal::JournalError;
use crate::queue::{Item, Origin};

impl Driver {
    /// Records an answer block by block and adds it to the conversation. Returns the last record.
    pub(super) fn record_answer(
        &mut self,
        answer: &Answer,
        blocks: &[Block],
    ) -> Result<Option<RecordId>, JournalError> {
        let mut last = None;
        for (n, block) in blocks.iter().enumerate() {
            let is_last = n + 1 == blocks.len();
            let record = self.journal.append(Body::Assistant(AssistantBody {
                message: RecordedAnswer {
                    id: &answer.id,
                    kind: "message",
                    role: "assistant",
                    model: &answer.model,
                    content: [block],
                    stop_reason: is_last.then_some(&answer.stop_reason),
                    stop_sequence: None,
                    usage: answer.usage,
                },
                request_id: answer.request_id.as_deref(),
            }))?;
            last = Some(record);
            self.shared.show_as(
                record,
                EventBody::Assistant(Assistant {
                    message: AssistantMessage {
                        id: answer.id.clone(),
                        kind: "message",
                        role: "assistant",
                        model: answer.model.clone(),
                        content: vec![block.clone()],
                        stop_reason: is_last.then(|| answer.stop_reason.clone()),
                        stop_sequence: None,
                        usage: answer.usage,
                    },
                    parent_tool_use_id: None,
                    timestamp: self.shared.world.now(),
                    request_id: answer.request_id.clone(),
                    error: None,
                }),
            );
        }
        self.push(Role::Assistant, blocks);
        Ok(last)
    }

    /// Records the result of a call.
    pub(super) fn record_result(
        &self,
        block: &Block,
        source: Option<RecordId>,
        data: &Value,
    ) -> Result<(), JournalError> {
        let record = self.journal.append(Body::User(UserBody {
            message: RecordedInput {
                role: "user",
                content: UserContent::Blocks(std::slice::from_ref(block)),
            },
            tool_use_result: Some(data).filter(|data| !data.is_null()),
            source,
            is_meta: false,
            queue_item: None,
            origin: None,
        }))?;
        self.show_input(record, block, Some(data).filter(|data| !data.is_null()), false);
        Ok(())
    }

    /// Records a queue item. The record is what makes it delivered.
    pub(super) fn record_item(&self, item: &Item) -> Result<(), JournalError> {
        let content = match item.content.as_slice() {
            [Block::Text(text)] => UserContent::Text(text),
            blocks => UserContent::Blocks(blocks),
        };
        let origin = item.origin.to_value();
        self.journal.append(Body::User(UserBody {
            message: RecordedInput { role: "user", content },
            tool_use_result: None,
            source: None,
            is_meta: !matches!(item.origin, Origin::Person),
            queue_item: Some(item.id),
            origin: origin.as_ref(),
        }))?;
        Ok(())
    }

    /// Records and shows what is said to the model in a person's place.
    pub(super) fn record_said(&self, block: &Block) -> Result<(), JournalError> {
        let content = std::slice::from_ref(block);
        let record = self.journal.append(Body::User(UserBody {
            message: RecordedInput { role: "user", content: UserContent::Blocks(content) },
            tool_use_result: None,
            source: None,
            is_meta: true,
            queue_item: None,
            origin: None,
        }))?;
        self.show_input(record, block, None, true);
        Ok(())
    }

    fn show_input(
        &self,
        record: RecordId,
        block: &Block,
        data: Option<&Value>,
        is_synthetic: bool,
    ) {
        let user = User {
            message: UserMessage { role: "user", content: vec![block.clone()] },
            parent_tool_use_id: None,
            timestamp: self.shared.world.now(),
            tool_use_result: data.cloned(),
            is_synthetic,
            is_replay: false,
        };
        self.shared.show_as(record, EventBody::User(user));
    }

    /// Records text that the runtime puts before the model.
    pub(super) fn record_attachment(&self, kind: &str, text: &str) -> Result<(), JournalError> {
        self.journal.append(Body::Attachment(AttachmentBody {
            attachment: Attachment { kind },
            rendered: [Rendered { content: text }],
            rendered_role: "user",
        }))?;
        Ok(())
    }
}
