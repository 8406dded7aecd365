//! What a host of the headless protocol reads: one JSON object a line.
//!
//! Names and fields are the ones that existing SDKs parse. The engine makes these events, the binary
//! prints them.

use indexmap::IndexMap;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{Block, Outcome, RecordId, SessionId, StopReason, ToolUseId, Usage};

/// An event with what every event carries.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    #[serde(flatten)]
    pub body: EventBody,
    pub session_id: SessionId,
    pub uuid: RecordId,
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventBody {
    System(System),
    Assistant(Assistant),
    User(User),
    StreamEvent(Stream),
    Result(Box<RunResult>),
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum System {
    Init(Box<Init>),
    ApiRetry(ApiRetry),
    PermissionDenied(PermissionDenied),
    Status(Status),
    Informational(Informational),
    TaskStarted(TaskStarted),
    TaskUpdated(TaskUpdated),
    TaskNotification(TaskNotification),
    BackgroundTasksChanged { tasks: Vec<BackgroundTask> },
    HookStarted(Value),
    HookResponse(Value),
}

/// The first event of every turn: what this session is and can do.
#[derive(Clone, Debug, Serialize)]
pub struct Init {
    pub cwd: String,
    pub tools: Vec<String>,
    pub mcp_servers: Vec<Value>,
    pub model: String,
    #[serde(rename = "permissionMode")]
    pub permission_mode: String,
    pub slash_commands: Vec<String>,
    #[serde(rename = "apiKeySource")]
    pub api_key_source: String,
    pub claude_code_version: &'static str,
    pub centurion_version: &'static str,
    pub output_style: &'static str,
    pub agents: Vec<String>,
    pub skills: Vec<String>,
    pub plugins: Vec<Value>,
    pub additional_directories: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ApiRetry {
    pub attempt: u32,
    pub max_retries: u32,
    pub retry_delay_ms: u64,
    pub error_status: Option<u16>,
    pub error: &'static str,
}

#[derive(Clone, Debug, Serialize)]
pub struct PermissionDenied {
    pub tool_name: String,
    pub tool_use_id: ToolUseId,
    pub decision_reason: String,
    pub message: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct Status {
    pub status: Option<String>,
    #[serde(rename = "permissionMode")]
    pub permission_mode: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct Informational {
    pub content: String,
    pub level: &'static str,
}

#[derive(Clone, Debug, Serialize)]
pub struct TaskStarted {
    pub task_id: String,
    pub tool_use_id: ToolUseId,
    pub description: String,
    pub task_type: &'static str,
    pub is_backgrounded: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct TaskUpdated {
    pub task_id: String,
    pub patch: TaskPatch,
}

#[derive(Clone, Debug, Serialize)]
pub struct TaskPatch {
    pub status: &'static str,
    /// Milliseconds since the epoch.
    pub end_time: i64,
}

#[derive(Clone, Debug, Serialize)]
pub struct TaskNotification {
    pub task_id: String,
    pub tool_use_id: ToolUseId,
    pub status: &'static str,
    pub output_file: String,
    pub summary: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct BackgroundTask {
    pub task_id: String,
    pub task_type: &'static str,
    pub description: String,
}

/// One content block of an answer.
#[derive(Clone, Debug, Serialize)]
pub struct Assistant {
    pub message: AssistantMessage,
    pub parent_tool_use_id: Option<ToolUseId>,
    pub timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Set on the message that stands for a failed request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
}

#[derive(Clone, Debug, Serialize)]
pub struct AssistantMessage {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub role: &'static str,
    pub model: String,
    pub content: Vec<Block>,
    pub stop_reason: Option<StopReason>,
    pub stop_sequence: Option<String>,
    pub usage: Usage,
}

/// A tool's result, or input that did not come from the host.
#[derive(Clone, Debug, Serialize)]
pub struct User {
    pub message: UserMessage,
    pub parent_tool_use_id: Option<ToolUseId>,
    pub timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_result: Option<Value>,
    #[serde(rename = "isSynthetic", skip_serializing_if = "std::ops::Not::not")]
    pub is_synthetic: bool,
    #[serde(rename = "isReplay", skip_serializing_if = "std::ops::Not::not")]
    pub is_replay: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct UserMessage {
    pub role: &'static str,
    pub content: Vec<Block>,
}

/// A piece of an answer as it streams in.
#[derive(Clone, Debug, Serialize)]
pub struct Stream {
    pub event: Box<RawValue>,
    pub parent_tool_use_id: Option<ToolUseId>,
}

/// How a turn ended, with everything it cost.
#[derive(Clone, Debug, Serialize)]
pub struct RunResult {
    pub subtype: &'static str,
    pub is_error: bool,
    /// Our own closed set; `subtype` and `terminal_reason` are what others expect.
    pub outcome: Outcome,
    pub result: String,
    pub num_turns: u32,
    pub duration_ms: u64,
    pub duration_api_ms: u64,
    pub stop_reason: Option<StopReason>,
    pub total_cost_usd: f64,
    pub usage: Usage,
    #[serde(rename = "modelUsage")]
    pub model_usage: IndexMap<String, ModelUsage>,
    pub permission_denials: Vec<PermissionDenial>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<Value>,
    /// The call that was put off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deferred_tool_use: Option<Value>,
    pub terminal_reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_error_status: Option<u16>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<u64>,
    pub result_index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Value>,
}

#[derive(Clone, Debug, Default, Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_input_tokens: u64,
    pub cache_creation_input_tokens: u64,
    pub web_search_requests: u64,
    #[serde(rename = "costUSD")]
    pub cost_usd: f64,
    pub context_window: u64,
    pub max_output_tokens: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct PermissionDenial {
    pub tool_name: String,
    pub tool_use_id: ToolUseId,
    pub tool_input: Box<RawValue>,
}
