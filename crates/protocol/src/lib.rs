//! Plain data that crosses a boundary: ids, messages, conversations, usage, outcomes, transcript
//! records and the events a host reads.
//!
//! Nothing here does I/O, knows a provider's HTTP, or runs a tool. Time, ids and randomness enter
//! the program through [`World`], so that a run can be replayed.

mod block;
mod conversation;
mod effort;
mod env;
mod ids;
mod message;
mod outcome;
pub mod sdk;
mod tool_spec;
pub mod transcript;
mod usage;
mod world;

pub use block::{Block, ToolResult, ToolResultContent, ToolUse};
pub use conversation::{Conversation, InvalidHistory};
pub use effort::{Effort, Thinking};
pub use env::Env;
pub use ids::{AgentId, RecordId, SessionId, TaskId, ToolUseId};
pub use message::{Message, MessageWriter, Role};
pub use outcome::{Outcome, StopReason};
pub use tool_spec::{ToolSpec, ToolSpecs};
pub use usage::Usage;
pub use world::{SeededWorld, SystemWorld, World};
