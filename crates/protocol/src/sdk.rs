//! Events for a host of the headless protocol: one JSON object a line.
//!
//! Names and fields are the ones that existing SDKs parse. The engine makes these events, the binary
//! prints them.

mod notices;

use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub use self::notices::{
    ActiveGoal, ModelRefusalNoFallback, Notification, RateLimit, RateLimitEvent, SessionWritesLost,
    ThinkingTokens, ToolUseSummary,
};
use crate::transcript::BoundaryData;
use crate::{
    AgentId, Block, Effort, Outcome, RecordId, ReportedUsage, SessionId, StopReason, Timestamp,
    ToolUseId,
};

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
    Assistant(Box<Assistant>),
    User(User),
    StreamEvent(Stream),
    ToolProgress(ToolProgress),
    PromptSuggestion(PromptSuggestion),
    RateLimitEvent(RateLimitEvent),
    ToolUseSummary(ToolUseSummary),
    /// A new conversation begins, which is another session. The event belongs to the one before.
    ConversationReset {
        new_conversation_id: SessionId,
        /// The act that discarded the conversation.
        trigger: &'static str,
        /// The message that asked for it.
        user_message_uuid: RecordId,
        timestamp: Timestamp,
    },
    /// The goal that the main agent works for has changed, or the count of its tries.
    ActiveGoal {
        value: Option<ActiveGoal>,
    },
    Result(Box<RunResult>),
    /// An event of another process that works for the session, as that process tells it.
    #[serde(untagged)]
    Relayed(serde_json::Map<String, Value>),
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum System {
    /// Shared with the session: it names hundreds of skills, and is told at every run.
    Init(Arc<Init>),
    ApiRetry(ApiRetry),
    PermissionDenied(PermissionDenied),
    AgentWaiting(AgentWaiting),
    Status(Status),
    CompactBoundary(Box<CompactBoundary>),
    Informational(Informational),
    TaskStarted(Box<TaskStarted>),
    TaskProgress(Box<TaskProgress>),
    TaskUpdated(TaskUpdated),
    TaskNotification(Box<TaskNotification>),
    BackgroundTasksChanged {
        tasks: Vec<BackgroundTask>,
    },
    /// For hosts that keep their side open until every result is delivered: `running`, `requires_action` or `idle`.
    SessionStateChanged {
        state: &'static str,
    },
    /// The commands that a person can type are others now.
    CommandsChanged {
        commands: Vec<Value>,
    },
    ThinkingTokens(ThinkingTokens),
    Notification(Notification),
    /// The person has done what a server had asked them to do on a page.
    ElicitationComplete {
        mcp_server_name: String,
        elicitation_id: String,
    },
    /// The text of a command that the program carried out itself.
    LocalCommandOutput {
        content: String,
    },
    SessionWritesLost(SessionWritesLost),
    ModelRefusalNoFallback(Box<ModelRefusalNoFallback>),
    HookStarted(Value),
    HookProgress(Value),
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
    /// The commands that only a terminal can carry out. Hosts are shown none of them.
    pub terminal_slash_commands: [&'static str; 0],
    #[serde(rename = "apiKeySource")]
    pub api_key_source: &'static str,
    pub claude_code_version: &'static str,
    pub centurion_version: &'static str,
    pub output_style: String,
    pub agents: Vec<String>,
    /// Skills without commands.
    pub skills: Vec<String>,
    #[serde(flatten)]
    pub plugins: InitPlugins,
    pub additional_directories: Vec<String>,
    /// Names of parts of the protocol that hosts can rely on.
    pub capabilities: &'static [&'static str],
    /// `None` leaves it to the model.
    pub effort: Option<Effort>,
    /// Features of the provider that the user switched on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub betas: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_paths: Option<MemoryPaths>,
}

/// Directories of the main agent's notes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryPaths {
    /// The directory of those that it writes by itself.
    pub auto: String,
}

/// The plugins of a session, as hosts see them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InitPlugins {
    #[serde(rename = "plugins")]
    pub enabled: Vec<InitPlugin>,
    #[serde(rename = "plugin_errors", skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<PluginError>,
}

/// Something that is wrong with a plugin, or that keeps it from being loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PluginError {
    /// `plugin@marketplace`, or the name of the directory of a plugin that was not loaded.
    pub plugin: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub message: String,
    /// The directory of a plugin that was not loaded at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InitPlugin {
    pub name: String,
    pub path: String,
    /// `plugin@marketplace`.
    pub source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ApiRetry {
    pub attempt: u32,
    pub max_retries: u32,
    pub retry_delay_ms: u64,
    pub error_status: Option<u16>,
    pub error: &'static str,
    /// The agent whose request it is; absent for the main agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
}

/// An agent waits for something other than its own work, or waits no longer.
#[derive(Clone, Debug, Serialize)]
pub struct AgentWaiting {
    /// Absent for the main agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    pub waits_for: WaitsFor,
    /// Whether the wait that was told of before is over.
    pub is_over: bool,
}

/// The thing that an agent waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// Another agent has to stop or to wait first: only so many work at once.
    Slot,
    /// An answer to a question.
    Person,
    /// The provider of its model asks for patience.
    Provider,
    /// The end of an agent that it started.
    Agent,
    /// MCP servers that an agent needs are not connected yet.
    Servers,
}

#[derive(Clone, Debug, Serialize)]
pub struct PermissionDenied {
    pub tool_name: String,
    pub tool_use_id: ToolUseId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The kind of reason: `rule`, `mode`, `hook` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_reason_type: Option<String>,
    pub decision_reason: String,
    pub message: String,
}

/// The state of an agent.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Status {
    /// `compacting` or `requesting`, if it is at that.
    pub status: Option<&'static str>,
    /// Absent where the mode is not what is told.
    #[serde(rename = "permissionMode", skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// The result of a compaction: `success` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compact_result: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compact_error: Option<String>,
    /// Absent for the main agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
}

/// A conversation continues with a summary in the place of its earlier part.
#[derive(Clone, Debug, Serialize)]
pub struct CompactBoundary {
    pub content: &'static str,
    pub compact_metadata: CompactMetadata,
    /// The last record before.
    pub logical_parent_uuid: Option<RecordId>,
    /// Absent for the main agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
}

/// The data of a compaction boundary, as hosts spell it.
#[derive(Clone, Debug, Serialize)]
pub struct CompactMetadata {
    pub trigger: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_rule: bool,
    pub pre_tokens: u64,
    pub post_tokens: u64,
    pub cumulative_dropped_tokens: u64,
    pub duration_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserved_segment: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserved_messages: Option<Value>,
}

impl From<BoundaryData> for CompactMetadata {
    fn from(data: BoundaryData) -> Self {
        let segment = data.preserved_segment.map(|it| {
            json!({"head_uuid": it.head_uuid, "anchor_uuid": it.anchor_uuid, "tail_uuid": it.tail_uuid})
        });
        let messages = data.preserved_messages.map(|it| {
            json!({"anchor_uuid": it.anchor_uuid, "uuids": it.uuids, "all_uuids": it.all_uuids})
        });
        Self {
            trigger: data.trigger,
            by_rule: data.by_rule,
            pre_tokens: data.pre_tokens,
            post_tokens: data.post_tokens,
            cumulative_dropped_tokens: data.cumulative_dropped_tokens,
            duration_ms: data.duration_ms,
            preserved_segment: segment,
            preserved_messages: messages,
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Informational {
    pub content: String,
    pub level: &'static str,
    /// The agent that it is about; absent for the main agent and the session as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
}

/// A shell in the background or an agent begins.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TaskStarted {
    pub task_id: String,
    /// A new one for each run of the same agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<ToolUseId>,
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<String>,
    /// The name that others reach it by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The colour that people know it by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    pub is_backgrounded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawn_depth: Option<u32>,
    /// The agent that started it, unless that is the main agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_task_id: Option<AgentId>,
    pub task_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// An agent has done something.
#[derive(Clone, Debug, Serialize)]
pub struct TaskProgress {
    pub task_id: String,
    pub run_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<ToolUseId>,
    /// The agent's present activity, in a few words.
    pub description: String,
    pub subagent_type: String,
    pub usage: TaskUsage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_tool_name: Option<String>,
    /// The last summary of the activity that a model wrote, if the host asks for such summaries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// Tokens, calls and time that an agent has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct TaskUsage {
    pub total_tokens: u64,
    pub tool_uses: u64,
    pub duration_ms: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct TaskUpdated {
    pub task_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    pub patch: TaskPatch,
}

/// The changed fields of a task.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TaskPatch {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<&'static str>,
    /// Milliseconds since the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_time: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_backgrounded: Option<bool>,
}

/// A shell in the background or an agent has ended.
#[derive(Clone, Debug, Serialize)]
pub struct TaskNotification {
    pub task_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<ToolUseId>,
    pub status: &'static str,
    pub output_file: String,
    pub summary: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TaskUsage>,
    /// The state of the agent's worktree: path and contents; absent if the worktree is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree: Option<Value>,
}

#[derive(Clone, Debug, Serialize)]
pub struct BackgroundTask {
    pub task_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    pub task_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<String>,
    pub description: String,
}

/// The agent of an event; absent for the main agent.
#[derive(Clone, Debug, Serialize)]
pub struct AgentTag {
    pub agent_id: AgentId,
    pub subagent_type: String,
    pub task_description: String,
}

/// Counts of the outcomes of a session's agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SubagentStats {
    pub spawned: u64,
    pub requested: RequestedStats,
    pub started_in_background: u64,
    pub max_depth: u32,
    pub spawned_by_subagents: u64,
    pub completed: u64,
    pub failed: u64,
    pub killed: KilledStats,
    pub refused: RefusedStats,
    pub by_type: IndexMap<String, u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RequestedStats {
    pub background: u64,
    pub foreground: u64,
    pub unset: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KilledStats {
    pub parent: u64,
    pub user: u64,
    pub system: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RefusedStats {
    pub depth_limit: u64,
    pub concurrency_limit: u64,
    pub budget: u64,
}

/// One content block of an answer.
#[derive(Clone, Debug, Serialize)]
pub struct Assistant {
    pub message: AssistantMessage,
    pub parent_tool_use_id: Option<ToolUseId>,
    #[serde(flatten)]
    pub agent: Option<AgentTag>,
    pub timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Set on the message that stands for a failed request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
    /// Messages that were shown before and do not count: their answer was never completed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supersedes: Vec<RecordId>,
    /// True if the answer was cut off in this block.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aborted: bool,
    /// The prompt that the turn answers; on its first message alone, or on the first behind another prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_message_uuid: Option<RecordId>,
    /// All of them, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub user_message_uuids: Vec<RecordId>,
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
    pub usage: ReportedUsage,
}

/// A tool's result, or input that did not come from the host.
#[derive(Clone, Debug, Serialize)]
pub struct User {
    pub message: UserMessage,
    pub parent_tool_use_id: Option<ToolUseId>,
    #[serde(flatten)]
    pub agent: Option<AgentTag>,
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

/// A suggestion for the user's next prompt.
#[derive(Clone, Debug, Serialize)]
pub struct PromptSuggestion {
    pub suggestion: String,
}

/// A piece of an answer as it streams in.
#[derive(Clone, Debug, Serialize)]
pub struct Stream {
    pub event: Box<RawValue>,
    pub parent_tool_use_id: Option<ToolUseId>,
    /// Absent for the main agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The prompt that the turn answers; on its first piece alone, or on the first behind another prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_message_uuid: Option<RecordId>,
    /// All of them, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub user_message_uuids: Vec<RecordId>,
}

/// A call that runs for longer is alive.
#[derive(Clone, Debug, Serialize)]
pub struct ToolProgress {
    pub tool_use_id: ToolUseId,
    pub tool_name: String,
    pub parent_tool_use_id: Option<ToolUseId>,
    /// The agent that made the call; absent for the main agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<String>,
    pub elapsed_time_seconds: u64,
}

/// The result of a turn, with its cost.
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
    pub usage: ReportedUsage,
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
    pub subagent_stats: Option<Box<SubagentStats>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_error_status: Option<u16>,
    /// Always there where something failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<String>>,
    #[serde(flatten)]
    pub times: ResultTimes,
    pub result_index: u32,
    /// The last prompt that the turn answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_message_uuid: Option<RecordId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub user_message_uuids: Vec<RecordId>,
    /// Prompts that wait: each or several of them will have a turn.
    pub queued_turn_count: usize,
    /// Agents that the session ended before they had finished.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unfinished_agents: Vec<UnfinishedAgent>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Value>,
}

/// The moments of a turn, in milliseconds since it began; absent for what did not happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ResultTimes {
    /// The first request was sent.
    #[serde(rename = "time_to_request_ms", skip_serializing_if = "Option::is_none")]
    pub request: Option<u64>,
    /// The first event of its answer came.
    #[serde(rename = "ttft_stream_ms", skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// The first piece of a block came.
    #[serde(rename = "ttft_ms", skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// Hosts were shown the first piece or block.
    #[serde(rename = "first_content_frame_ms", skip_serializing_if = "Option::is_none")]
    pub shown: Option<u64>,
}

/// An agent whose work was cut short by the end of its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnfinishedAgent {
    pub agent_id: AgentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub subagent_type: String,
    pub description: String,
}

impl fmt::Display for UnfinishedAgent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.name.as_ref().unwrap_or(&self.subagent_type);
        write!(formatter, "{who} ({})", self.description)
    }
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
    pub thinking_tokens: u64,
    #[serde(rename = "cacheCreationEphemeral5mInputTokens")]
    pub five_minute_writes: u64,
    #[serde(rename = "cacheCreationEphemeral1hInputTokens")]
    pub hour_writes: u64,
    /// The name without the address of a cloud, a date and the mark of a large window.
    pub canonical_model: String,
    pub provider: String,
    /// `list` for the provider's list of prices, `unknown` for a guess.
    pub cost_basis: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct PermissionDenial {
    pub tool_name: String,
    pub tool_use_id: ToolUseId,
    pub tool_input: Box<RawValue>,
}
