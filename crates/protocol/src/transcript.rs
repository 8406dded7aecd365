//! The lines of a transcript, in the layout that existing readers of such files know.
//!
//! A line is written from [`Line`] and read through [`LineView`], which borrows from the file and leaves the
//! message unread until its caller needs it.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{AgentId, Block, RecordId, ReportedUsage, SessionId, StopReason, Timestamp, Usage};

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

/// The content of a line.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Body<'a> {
    User(UserBody<'a>),
    Assistant(AssistantBody<'a>),
    Attachment(AttachmentBody<'a>),
    System(SystemBody<'a>),
    #[serde(rename = "system")]
    Boundary(Boundary<'a>),
    #[serde(rename = "queue-operation")]
    QueueOperation(QueueOperationBody<'a>),
    #[serde(rename = "file-history-snapshot")]
    FileHistory(FileHistory<'a>),
    #[serde(rename = "custom-title")]
    CustomTitle(CustomTitle<'a>),
}

impl Body<'_> {
    /// The answer that the line belongs to, as its provider calls it.
    pub fn answer(&self) -> Option<&str> {
        match self {
            Self::Assistant(answer) => Some(answer.message.id),
            _ => None,
        }
    }

    /// Whether the line holds thinking, which its provider has signed.
    pub fn is_thinking(&self) -> bool {
        matches!(self, Self::Assistant(answer) if matches!(
            answer.message.content,
            [Block::Thinking { .. } | Block::RedactedThinking { .. }]
        ))
    }
}

/// A message of a person, a tool or the runtime to the model.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserBody<'a> {
    pub message: RecordedUserMessage<'a>,
    /// The structured form of a tool's result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_result: Option<&'a Value>,
    #[serde(rename = "sourceToolAssistantUUID", skip_serializing_if = "Option::is_none")]
    pub source: Option<RecordId>,
    /// Not typed by a person.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_meta: bool,
    /// The queue item that this line delivers: with this line, it is no longer pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_item: Option<RecordId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<&'a Value>,
    /// It stands for what was said before a boundary.
    #[serde(flatten)]
    pub summary: Option<SummaryMark<'a>>,
}

impl<'a> UserBody<'a> {
    /// Makes a message of a person, a tool or the runtime to the model.
    pub fn new(content: UserContent<'a>) -> Self {
        Self {
            message: RecordedUserMessage { role: "user", content },
            tool_use_result: None,
            source: None,
            is_meta: false,
            queue_item: None,
            origin: None,
            summary: None,
        }
    }
}

/// The mark of a summary that replaces the earlier part of a conversation.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryMark<'a> {
    is_compact_summary: bool,
    is_visible_in_transcript_only: bool,
    /// The records of people's prompts that the summary stands for.
    summarized_turn_prompt_uuids: &'a [RecordId],
}

impl<'a> SummaryMark<'a> {
    pub fn new(summarized_turn_prompt_uuids: &'a [RecordId]) -> Self {
        Self {
            is_compact_summary: true,
            is_visible_in_transcript_only: true,
            summarized_turn_prompt_uuids,
        }
    }
}

#[derive(Serialize)]
pub struct RecordedUserMessage<'a> {
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
    pub message: RecordedAnswer<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a str>,
}

/// The answer that a block belongs to, with that one block.
#[derive(Serialize)]
pub struct RecordedAnswer<'a> {
    pub id: &'a str,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub role: &'static str,
    pub model: &'a str,
    pub content: [&'a Block; 1],
    pub stop_reason: Option<&'a StopReason>,
    pub stop_sequence: Option<&'a str>,
    pub usage: &'a ReportedUsage,
}

/// Text that the runtime puts before the model beside what people say.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentBody<'a> {
    pub attachment: Attachment<'a>,
    pub rendered: Vec<Rendered<'a>>,
    pub rendered_role: &'static str,
}

impl<'a> AttachmentBody<'a> {
    /// A text for the model.
    pub fn new(kind: &'a str, content: &'a str) -> Self {
        let rendered = vec![Rendered { content }];
        Self { attachment: Attachment { kind }, rendered, rendered_role: "user" }
    }

    /// The kind of the attachment by which a conversation continues from an earlier record.
    pub const BRANCH: &'static str = "rewind";

    /// Nothing for the model: the conversation continues from the record that this line follows.
    pub fn branch() -> Self {
        let attachment = Attachment { kind: Self::BRANCH };
        Self { attachment, rendered: Vec::new(), rendered_role: "user" }
    }
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

/// From here on a conversation is sent without what came before: a summary stands for that.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Boundary<'a> {
    pub subtype: &'static str,
    /// The last record before.
    pub logical_parent_uuid: Option<RecordId>,
    pub content: &'static str,
    pub level: &'static str,
    pub compact_metadata: &'a BoundaryData,
}

impl<'a> Boundary<'a> {
    pub const SUBTYPE: &'static str = "compact_boundary";

    pub fn new(logical_parent_uuid: Option<RecordId>, compact_metadata: &'a BoundaryData) -> Self {
        let content = "Conversation compacted";
        Self {
            subtype: Self::SUBTYPE,
            logical_parent_uuid,
            content,
            level: "info",
            compact_metadata,
        }
    }
}

/// The data of a boundary: the size of the part that was left out, and the earlier records that are still sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BoundaryData {
    #[serde(default)]
    pub trigger: String,
    /// Whether a rule has made the summary, because no model could.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_rule: bool,
    #[serde(default)]
    pub pre_tokens: u64,
    #[serde(default)]
    pub post_tokens: u64,
    #[serde(default)]
    pub cumulative_dropped_tokens: u64,
    #[serde(default)]
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserved_segment: Option<PreservedSegment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preserved_messages: Option<PreservedMessages>,
    /// The last record that was written together with the boundary. Without it the boundary does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_uuid: Option<RecordId>,
    /// The list of things to do, as it was. Earlier records may belong to another branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub todos: Option<Value>,
    /// The plan that was approved last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// The newest round, which is still sent as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreservedSegment {
    pub head_uuid: RecordId,
    pub anchor_uuid: RecordId,
    pub tail_uuid: RecordId,
}

/// The earlier records that are still sent as they are, in this order, behind the anchor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreservedMessages {
    pub anchor_uuid: RecordId,
    pub uuids: Vec<RecordId>,
    #[serde(default)]
    pub all_uuids: Vec<RecordId>,
}

/// A file is about to be changed: where its content before is kept.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileHistory<'a> {
    /// The prompt that was being worked on.
    pub message_id: RecordId,
    pub snapshot: FileSnapshot<'a>,
    pub is_snapshot_update: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileSnapshot<'a> {
    pub message_id: RecordId,
    pub tracked_file_backups: &'a FileBackups,
    pub timestamp: Timestamp,
}

/// Files by their paths.
pub type FileBackups = std::collections::BTreeMap<String, FileBackup>;

/// The backup of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileBackup {
    /// `null` where there was no file.
    pub backup_file_name: Option<String>,
    pub version: u32,
    #[serde(default)]
    pub backup_time: Option<Timestamp>,
    /// The mode of the file before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
    /// The beginning of a digest of the path, by which a path that redaction changed is known.
    #[serde(default)]
    pub path_digest: String,
    /// A digest of the content before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// A copy of what others made of the file since we last wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<String>,
    /// A digest of what is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// The agent that makes the change, by the names from the main agent's children down to it; none is the main agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The reason that the old content could not be kept, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_kept: Option<String>,
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

/// The name of the session from here on. Helpers of SDKs write such lines, too.
#[derive(Serialize)]
pub struct CustomTitle<'a> {
    #[serde(rename = "customTitle")]
    pub title: &'a str,
}

/// The field of a line that names the session.
pub const TITLE_FIELD: &str = "\"customTitle\":";

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

/// A text that is borrowed from the line where nothing in it is escaped: `serde` itself copies what may be missing.
fn borrowed<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    Ok(Option::<Text<'de>>::deserialize(reader)?.map(|text| text.0))
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
    #[serde(borrow, default, deserialize_with = "borrowed")]
    pub rendered_role: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    attachment: Option<&'a RawValue>,
    /// Not typed by a person.
    #[serde(default)]
    pub is_meta: bool,
    #[serde(default)]
    pub is_compact_summary: bool,
    /// The speaker, unless it is a person.
    #[serde(borrow, default)]
    pub origin: Option<&'a RawValue>,
    #[serde(borrow, default)]
    compact_metadata: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "borrowed")]
    subtype: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "borrowed")]
    custom_title: Option<Cow<'a, str>>,
}

impl<'a> LineView<'a> {
    /// The data of a note of this subtype, if the line is one.
    pub fn note<T: Deserialize<'a>>(&self, subtype: &str) -> Option<T> {
        let data = self.data.filter(|_| self.subtype.as_deref() == Some(subtype))?;
        serde_json::from_str(data.get()).ok()
    }

    /// The name that the line gives the session.
    pub fn title(&self) -> Option<&str> {
        self.custom_title.as_deref()
    }

    /// Whether a conversation begins anew here.
    pub fn is_boundary(&self) -> bool {
        self.kind == LineKind::Other && self.subtype.as_deref() == Some(Boundary::SUBTYPE)
    }

    /// The kind of the line's attachment.
    pub fn attachment_kind(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Kind {
            #[serde(rename = "type")]
            kind: String,
        }
        serde_json::from_str::<Kind>(self.attachment?.get()).ok().map(|it| it.kind)
    }

    /// The data of a boundary.
    pub fn boundary(&self) -> Option<BoundaryData> {
        let data = self.compact_metadata.filter(|_| self.is_boundary())?;
        serde_json::from_str(data.get()).ok()
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
    #[serde(borrow, default, deserialize_with = "borrowed")]
    pub cwd: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "borrowed")]
    pub git_branch: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub message: Option<MessageView<'a>>,
    /// The name that the line gives the session.
    #[serde(borrow, default, deserialize_with = "borrowed")]
    pub custom_title: Option<Cow<'a, str>>,
}

/// The message of a line: `content` is a string or a list of blocks.
#[derive(Debug, Deserialize)]
pub struct MessageView<'a> {
    #[serde(borrow, default, deserialize_with = "borrowed")]
    pub id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "borrowed")]
    pub model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub content: &'a RawValue,
    #[serde(default)]
    pub usage: Option<Usage>,
}
