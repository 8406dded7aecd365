//! The built-in tools, one file each, and the processes that they start.
//!
//! Knows nothing of agents, models or verdicts: a tool gets a checked input and a [`ToolContext`], and
//! gives back a [`ToolOutput`] or an error that tells the model what to do.

mod context;
mod read_state;
mod shell;
mod todo_write;
mod tool;

pub use context::{
    Answer, Host, HostFuture, PlanVerdict, Question, QuestionOption, ShellEnd, ToolContext,
    Workspace,
};
pub use read_state::ReadState;
pub use shell::Shells;
pub use todo_write::Todo;
pub use tool::{DynTool, PreparedCall, Tool, ToolError, ToolOutput, erase};
