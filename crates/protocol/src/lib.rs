//! Plain data that crosses a boundary: ids, messages, conversations, usage, outcomes, transcript
//! records and the events a host reads.
//!
//! Nothing here knows a provider's HTTP or runs a tool, and nothing does I/O but [`bounded`], which reads what
//! it is told to. Time, ids and randomness enter
//! the program through [`World`], so that a run can be replayed.

mod block;
pub mod bounded;
mod conversation;
mod current_session;
mod effort;
mod env;
mod host_name;
mod ids;
mod invisible;
mod json_line;
mod json_shape;
pub mod markup;
mod message;
mod outcome;
pub mod sdk;
mod timestamp;
mod tool_spec;
pub mod transcript;
mod usage;
mod world;

pub use block::{Block, ToolResult, ToolResultContent, ToolUse};
pub use conversation::{Conversation, InvalidHistory};
pub use current_session::CurrentSession;
pub use effort::{Effort, Thinking};
pub use env::Env;
pub use host_name::{HostName, is_local_address};
pub use ids::{AgentId, RecordId, SessionId, TaskId, ToolUseId};
pub use invisible::{is_hidden, is_invisible};
pub use json_line::{end_json_line, escape_line_separators};
pub use json_shape::{JsonScanner, JsonShape};
pub use message::{BlockOutline, Digest, Message, MessageWriter, Role};
pub use outcome::{Outcome, StopReason};
pub use timestamp::Timestamp;
pub use tool_spec::{ToolSpec, ToolSpecs};
pub use usage::{ReportedUsage, Usage};
pub use world::{SeededWorld, SystemWorld, World};
