//! The built-in tools, one file each, and the processes that they start.
//!
//! Knows nothing of agents, models or verdicts: a tool receives a checked input and a [`ToolContext`], and returns a
//! [`ToolOutput`] or an error that tells the model what to do.

mod ask_user_question;
mod bash;
mod bound;
mod builtin;
mod change;
mod checkpoints;
mod context;
mod disk;
pub mod edit;
mod enter_plan_mode;
mod exit_plan_mode;
mod file_names;
mod git;
mod glob;
mod grep;
pub mod guard;
mod host_files;
mod notebook;
mod notebook_edit;
mod patch;
mod path_lock;
mod paths;
mod process;
mod read;
mod read_state;
mod sandbox;
mod shared_files;
mod shell;
mod task_output;
mod task_stop;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod text_file;
mod todo_write;
mod tool;
mod walk;
mod web_fetch;
mod write;

pub use ask_user_question::PreviewFormat;
/// The digest of the whole content of a file.
pub use blake3::Hash as ContentHash;
pub use bound::{Bound, BoundOutput};
pub use builtin::{builtin, builtin_under};
pub use checkpoints::{
    AgentCheckpoints, ChangeLog, CheckpointError, Checkpoints, FileHistory, FileKeeper, LogError,
    Prompt, Rewind, RewindError, RewoundFile, SetAside, share_checkpoints,
};
pub use context::{
    AgentState, AgentStop, Answer, Host, HostFuture, NoAnswer, PlanModeError, PlanVerdict,
    Question, QuestionOption, ShellChange, ShellEnd, StopRefusal, ToolContext, Workspace,
};
pub use edit::Edit;
pub use exit_plan_mode::Plan;
pub use file_names::NameSearch;
pub use git::{GitPlaces, GitText, InstalledGit};
pub use glob::Glob;
pub use grep::Grep;
pub use host_files::{FileView, view_file};
pub use notebook_edit::NotebookEdit;
pub use paths::{DiskLinks, resolve};
pub use process::{PipedEnd, PipedProcess, PipedProgram};
pub use read::Read;
pub use read_state::{Knowledge, ReadState, View};
pub use sandbox::{
    CommandConfinement, DeniedFiles, DeniedSearch, Guarantee, IsolatedPlaces, SandboxPolicy,
    SandboxSettings, WorktreePaths,
};
pub use shared_files::SharedFiles;
pub use shell::{
    BackgroundShell, Keys, OutputLimit, OutputTail, Reporting, ShellError, ShellExit, ShellRequest,
    ShellResult, ShellState, Shells, ShellsConfig, StopError, WaitEnd,
};
pub use todo_write::{Todo, TodoStatus};
pub use tool::{DynTool, PreparedCall, RunFuture, Tool, ToolError, ToolOutput, erase};
pub use write::Write;
