//! What a running call may use.
//!
//! A [`Workspace`] belongs to one agent and outlives its calls: where the agent stands, which files it
//! has read, its to-do list. A [`ToolContext`] belongs to one call.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use centurion_protocol::{Env, TaskId, ToolUseId, World};
use tokio_util::sync::CancellationToken;

use crate::read_state::ReadState;
use crate::shell::Shells;
use crate::todo_write::Todo;

/// What one call has in its hands.
pub struct ToolContext {
    pub workspace: Arc<Workspace>,
    pub call: ToolUseId,
    /// Cancelled when the call must end now. A tool that waits, waits for this too.
    pub cancel: CancellationToken,
}

/// The state of one agent that its tools share.
pub struct Workspace {
    /// Where the agent was started; relative paths of file tools and project rules hang here.
    pub root: PathBuf,
    /// Where Bash stands now. Moves with `cd`.
    pub cwd: Mutex<PathBuf>,
    /// What this agent has read, by content.
    pub read_state: ReadState,
    pub todos: Mutex<Vec<Todo>>,
    /// The background shells of the session, shared by its agents.
    pub shells: Arc<Shells>,
    /// Where output too large for an answer is kept: private to the session.
    pub output_dir: PathBuf,
    /// The environment that processes get and limits are read from.
    pub env: Arc<Env>,
    pub world: Arc<dyn World>,
    pub host: Arc<dyn Host>,
}

impl Workspace {
    pub fn cwd(&self) -> PathBuf {
        lock(&self.cwd).clone()
    }

    /// The absolute form of a path as a model wrote it: `~` expanded, relative to where Bash stands.
    pub fn absolute(&self, path: &str) -> PathBuf {
        if let Some(rest) = path.strip_prefix("~/")
            && let Some(home) = self.env.get("HOME")
        {
            return Path::new(home).join(rest);
        }
        self.cwd().join(path)
    }
}

/// Locks leaf data; a panic elsewhere does not make it unusable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What tools ask of whoever runs them: questions to a person, the mode of the session, news of
/// background work.
pub trait Host: Send + Sync {
    /// Puts questions to a person. `Err` says why nobody answered.
    fn ask<'a>(
        &'a self,
        call: &'a ToolUseId,
        questions: Vec<Question>,
    ) -> HostFuture<'a, Result<Vec<Answer>, String>>;

    /// Switches the agent to planning. `Err` says why not.
    fn enter_plan_mode<'a>(&'a self, call: &'a ToolUseId) -> HostFuture<'a, Result<(), String>>;

    /// Puts a plan to a person; an approval ends planning.
    fn propose_plan<'a>(&'a self, call: &'a ToolUseId, plan: String)
    -> HostFuture<'a, PlanVerdict>;

    /// A background shell started or ended: a fact for whoever watches.
    fn shell_changed(&self, change: ShellChange);

    /// The model is owed the news that a background shell ended. Called once for each, unless a call has
    /// told it already.
    fn owe_shell_end(&self, end: ShellEnd);
}

/// A question with its choices.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Question {
    /// The whole question, ending with a question mark.
    pub question: String,
    /// A label of at most twelve characters.
    pub header: String,
    /// Two to four choices. The person can always answer in their own words instead.
    pub options: Vec<QuestionOption>,
    /// Whether several choices may be picked.
    #[serde(default)]
    pub multi_select: bool,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionOption {
    /// The choice in a few words.
    pub label: String,
    /// What choosing it means.
    #[serde(default)]
    pub description: String,
}

/// A person's answer: the chosen labels, or their own words.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Answer {
    pub question: String,
    pub answer: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanVerdict {
    Approved,
    /// Keep planning; the text says why.
    Rejected(String),
}

/// A step in the life of a background shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellChange {
    Started {
        task: TaskId,
        /// The call that started it.
        call: ToolUseId,
        description: String,
    },
    Ended(ShellEnd),
}

/// How a background shell ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellEnd {
    pub task: TaskId,
    /// The call that started it.
    pub call: ToolUseId,
    /// What the model called it, or the command.
    pub description: String,
    /// `None` when a signal ended it.
    pub exit_code: Option<i32>,
    /// Whether somebody stopped it on purpose.
    pub stopped: bool,
    pub output_file: PathBuf,
}
