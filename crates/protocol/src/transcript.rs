//! The lines of a transcript, in the layout that existing readers of such files know.
//!
//! A line is written from [`Line`] and read through [`LineView`], which borrows from the file and leaves the
//! message unread until its caller needs it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{AgentId, Block, RecordId, SessionId, StopReason, Timestamp, Usage};

/// One line. Fields that do not apply are left out.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line<'a> {
    /// The record before this one in the conversation; `null` at its start.
    pub parent_uuid: Option<RecordId>,
    pub is_sidechain: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<&'a AgentId>,
    #[serde(flatten)]
    pub body: Body<'a>,
    pub uuid: RecordId,
    pub timestamp: Timestamp,
    pub user_type: &'static str,
    pub entrypoint: &'a str,
    pub cwd: &'a str,
    pub session_id: SessionId,
    pub version: &'static str,
    pub git_branch: &'a str,
}

/// What a line says.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Body<'a> {
    User(UserBody<'a>),
    Assistant(AssistantBody<'a>),
    Attachment(AttachmentBody<'a>),
    System(SystemBody<'a>),
    #[serde(rename = "queue-operation")]
    QueueOperation(QueueOperationBody<'a>),
}

impl Body<'_> {
    /// Whether the line holds thinking, which its provider has signed.
    pub fn is_thinking(&self) -> bool {
        matches!(self, Self::Assistant(answer) if matches!(
            answer.message.content,
            [Block::Thinking { .. } | Block::RedactedThinking { .. }]
        ))
    }
}

/// What a person, a tool or the runtime said to the model.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserBody<'a> {
    pub message: UserMessage<'a>,
    /// The structured form of a tool's result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_result: Option<&'a Value>,
    #[serde(rename = "sourceToolAssistantUUID", skip_serializing_if = "Option::is_none")]
    pub source: Option<RecordId>,
    /// Not typed by a person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_meta: bool,
    /// The queue item that this line delivers: once it is here, it is no longer owed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_item: Option<RecordId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<&'a Value>,
}

#[derive(Serialize)]
pub struct UserMessage<'a> {
    pub role: &'static str,
    pub content: UserContent<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub enum UserContent<'a> {
    Text(&'a str),
    Blocks(&'a [Block]),
}

/// One content block of an answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantBody<'a> {
    pub message: AssistantMessage<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a str>,
}

/// The answer that a block belongs to, with that one block.
#[derive(Serialize)]
pub struct AssistantMessage<'a> {
    pub id: &'a str,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub role: &'static str,
    pub model: &'a str,
    pub content: [&'a Block; 1],
    pub stop_reason: Option<&'a StopReason>,
    pub stop_sequence: Option<&'a str>,
    pub usage: Usage,
}

/// Text that the runtime puts before the model beside what people say.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentBody<'a> {
    pub attachment: Attachment<'a>,
    pub rendered: [Rendered<'a>; 1],
    pub rendered_role: &'static str,
}

#[derive(Serialize)]
pub struct Attachment<'a> {
    #[serde(rename = "type")]
    pub kind: &'a str,
}

#[derive(Serialize)]
pub struct Rendered<'a> {
    pub content: &'a str,
}

/// A fact about the run that is no part of the conversation.
#[derive(Serialize)]
pub struct SystemBody<'a> {
    pub subtype: &'a str,
    pub data: &'a RawValue,
}

/// Something was put into the queue for the model. It waits until a line of the conversation has its id.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueOperationBody<'a> {
    pub operation: QueueOperation,
    pub content: &'a str,
    pub queue_item: RecordId,
    pub origin: &'a Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueOperation {
    Enqueue,
}

/// The subtype of the line that names the session.
pub const SESSION_TITLE: &str = "session_title";

/// The name that a line of this subtype gives the session, if it is one that does.
fn session_title(subtype: Option<&str>, data: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        title: String,
    }
    let data = data.filter(|_| subtype == Some(SESSION_TITLE))?;
    serde_json::from_str::<Named>(data.get()).ok().map(|named| named.title)
}

/// The kinds of lines that make up a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LineKind {
    User,
    Assistant,
    Attachment,
    #[serde(other)]
    Other,
}

/// A line as it is read back for its conversation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LineView<'a> {
    #[serde(rename = "type")]
    pub kind: LineKind,
    #[serde(default)]
    pub uuid: Option<RecordId>,
    #[serde(default)]
    pub parent_uuid: Option<RecordId>,
    #[serde(default)]
    pub is_sidechain: bool,
    #[serde(borrow, default)]
    pub message: Option<MessageView<'a>>,
    #[serde(borrow, default)]
    pub tool_use_result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub rendered: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub rendered_role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    subtype: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

impl LineView<'_> {
    /// The name that the line gives the session.
    pub fn title(&self) -> Option<String> {
        session_title(self.subtype.as_deref(), self.data)
    }
}

/// A line as it is read back for a list of sessions.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeadView<'a> {
    #[serde(rename = "type")]
    pub kind: LineKind,
    #[serde(default)]
    pub is_sidechain: bool,
    #[serde(default)]
    pub is_meta: bool,
    #[serde(borrow, default)]
    pub cwd: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub message: Option<MessageView<'a>>,
    #[serde(borrow, default)]
    subtype: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

impl HeadView<'_> {
    /// The name that the line gives the session.
    pub fn title(&self) -> Option<String> {
        session_title(self.subtype.as_deref(), self.data)
    }
}

/// The message of a line: `content` is a string or a list of blocks.
#[derive(Debug, Deserialize)]
pub struct MessageView<'a> {
    #[serde(borrow, default)]
    pub id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub content: &'a RawValue,
    #[serde(default)]
    pub usage: Option<Usage>,
}
