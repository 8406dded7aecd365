//! What a running call may use.
//!
//! A [`Workspace`] belongs to one agent and outlives its calls: where the agent stands, which files it
//! has read, its to-do list. A [`ToolContext`] belongs to one call.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use blake3::Hash;
use centurion_permissions::{Access, HostRule};
use centurion_protocol::{AgentId, Env, TaskId, ToolUseId, World};
use parking_lot::{Mutex, MutexGuard};
use thiserror::Error;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::ToolError;
use crate::checkpoints::Checkpoints;
use crate::paths::resolve;
use crate::read_state::{ReadState, View};
use crate::sandbox::{DeniedFiles, IsolatedPlaces, SandboxPolicy};
use crate::shared_files::SharedFiles;
use crate::shell::Shells;
use crate::todo_write::Todo;

/// What one call has in its hands.
pub struct ToolContext {
    pub workspace: Arc<Workspace>,
    pub call: ToolUseId,
    /// Cancelled when the call must end now. A tool that waits, waits for this too.
    pub cancel: CancellationToken,
    /// What the call was allowed to touch: the access that was decided about. `None` without a permission
    /// decision.
    pub decided: Option<Access>,
    /// Whether a person has said yes to this very call.
    pub is_approved: bool,
}

impl ToolContext {
    /// The file or directory that a path means now, links resolved.
    ///
    /// A path can come to mean something else after the call was allowed: a link is changed, the shell
    /// moves. Then this fails, so that the call touches what was decided about or nothing.
    pub fn target(&self, named: &Path) -> Result<PathBuf, ToolError> {
        let path = resolve(named);
        match &self.decided {
            Some(Access::Read(decided) | Access::Write(decided)) if *decided != path => {
                Err(ToolError::failed(format!(
                    "{} led to {} when the call was allowed and leads to {} now, so nothing was \
                     done: look where it leads and call again",
                    named.display(),
                    decided.display(),
                    path.display()
                )))
            }
            _ => Ok(path),
        }
    }
}

/// The state of one agent that its tools share.
pub struct Workspace {
    /// Where the agent works; Bash goes back here when the directory it stood in is gone. Another one only when the
    /// agent goes to work in a worktree.
    pub root: Mutex<PathBuf>,
    /// Where Bash stands now. Moves with `cd`.
    pub cwd: Mutex<PathBuf>,
    /// What this agent has read, by content.
    pub read_state: ReadState,
    /// What all agents of the session know of files, and what the others call this one.
    pub files: Arc<SharedFiles>,
    pub called: Arc<str>,
    pub todos: Mutex<Vec<Todo>>,
    /// Keeps what files were before they are changed, where that is wanted.
    pub checkpoints: Option<Arc<Checkpoints>>,
    /// The background shells of the session, shared by its agents.
    pub shells: Arc<Shells>,
    /// Where output too large for an answer is kept: private to the session.
    pub output_dir: PathBuf,
    /// Whether a file or directory below a place that may be searched may itself be read. Asked for
    /// every one of a walk, from several threads.
    pub may_read: Arc<dyn Fn(&Path) -> bool + Send + Sync>,
    /// Looks for the files that deny rules keep from being read or changed. May take long the first time.
    pub find_denied: Arc<dyn Fn() -> DeniedFiles + Send + Sync>,
    /// What the rules say about fetching from a host.
    pub host_rule: Arc<dyn Fn(&Url) -> HostRule + Send + Sync>,
    /// How the commands of this agent are confined, if they are.
    pub sandbox: Option<Arc<SandboxPolicy>>,
    /// The places of an agent in a worktree of its own, whose `root` is that of this workspace. Its `sandbox` is
    /// made by [`SandboxPolicy::isolated`].
    pub isolation: Option<Arc<IsolatedPlaces>>,
    /// The environment that processes get and limits are read from.
    pub env: Arc<Env>,
    pub world: Arc<dyn World>,
    pub host: Arc<dyn Host>,
}

impl Workspace {
    /// The files that deny rules keep from commands in a sandbox, as they are now.
    pub async fn denied_files(&self) -> DeniedFiles {
        let find = Arc::clone(&self.find_denied);
        // A search that breaks off has found nothing that could be relied on.
        tokio::task::spawn_blocking(move || find()).await.unwrap_or_default()
    }

    pub fn cwd(&self) -> PathBuf {
        lock(&self.cwd).clone()
    }

    /// Notes that the agent has seen `view` of the file at `path` (resolved), which has these bytes in it.
    pub(crate) fn note_seen(&self, path: &Path, bytes: &[u8], view: View) -> Hash {
        let hash = blake3::hash(bytes);
        self.files.keep(hash, bytes);
        self.read_state.record(path, hash, view);
        hash
    }

    pub fn root(&self) -> PathBuf {
        lock(&self.root).clone()
    }

    /// Has the agent work somewhere else.
    pub fn move_to(&self, root: &Path) {
        lock(&self.root).clone_from(&root.to_owned());
        lock(&self.cwd).clone_from(&root.to_owned());
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
    mutex.lock()
}

pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What tools ask of the host that runs them: questions to a person, the mode of the session, news of
/// background work.
pub trait Host: Send + Sync {
    /// Puts questions to a person.
    fn ask<'a>(
        &'a self,
        call: &'a ToolUseId,
        questions: Vec<Question>,
    ) -> HostFuture<'a, Result<Vec<Answer>, NoAnswer>>;

    /// Switches the agent to planning.
    fn enter_plan_mode<'a>(
        &'a self,
        call: &'a ToolUseId,
    ) -> HostFuture<'a, Result<(), PlanModeError>>;

    /// Puts a plan to a person; an approval ends planning.
    fn propose_plan<'a>(&'a self, call: &'a ToolUseId, plan: String)
    -> HostFuture<'a, PlanVerdict>;

    /// A call that runs for longer gave a sign of life: a fact for observers.
    fn call_progressed(&self, _call: &ToolUseId, _tool: &str, _elapsed: Duration) {}

    /// A background shell started or ended: a fact for observers.
    fn shell_changed(&self, change: ShellChange);

    /// Ends an agent; `None` when there is none of this id or name, as where there are no agents at all.
    fn stop_agent<'a>(
        &'a self,
        _id: &'a str,
    ) -> HostFuture<'a, Option<Result<AgentStop, StopRefusal>>> {
        Box::pin(std::future::ready(None))
    }

    /// How an agent stands, after waiting for its end for this long at most; `None` when there is none of this
    /// id or name. A caller that waited and was told of the end is not told again.
    fn agent_state<'a>(
        &'a self,
        _id: &'a str,
        _patience: Option<Duration>,
    ) -> HostFuture<'a, Option<AgentState>> {
        Box::pin(std::future::ready(None))
    }

    /// The model is owed the news that a background shell ended. Called once for each, unless a call has
    /// told it already.
    fn owe_shell_end(&self, end: ShellEnd);
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoAnswer {
    #[error("the session has ended")]
    Ended,
    #[error("the question was withdrawn")]
    Withdrawn,
    #[error("the answer came without answers")]
    Empty,
    /// In the words of the person or the rule that refused it.
    #[error("{0}")]
    Refused(String),
}

/// Why an agent does not begin to plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanModeError {
    #[error("the session has ended")]
    Ended,
    #[error("plan mode is on already")]
    AlreadyOn,
}

/// Why an agent may not end another.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StopRefusal {
    #[error("this is you: to end, say what you have found and stop")]
    Oneself,
    /// The end of the other would wait for the end of this call.
    #[error("you work for agent {0}: end yourself and say why it should end too")]
    Above(AgentId),
    #[error("agent {0} does not work for you: say in your report why it should end")]
    Stranger(AgentId),
}

/// What came of the wish to end an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentStop {
    pub id: String,
    /// What the agent was for.
    pub description: String,
    /// Whether there was something to end.
    pub was_running: bool,
}

/// How an agent stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentState {
    pub id: String,
    pub description: String,
    /// `running`, `completed`, `failed` or `killed`.
    pub status: &'static str,
    /// What it does now, or what it said last.
    pub text: String,
    pub output_file: PathBuf,
    /// The id of the notification that this takes the place of.
    pub notification: Option<String>,
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
    /// The lead of the agent's team has it and answers by a message; the text is the id of the request.
    Submitted(String),
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
        /// As in [`ShellEnd`].
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
    /// What the model called it, or the command: one short line.
    pub description: String,
    /// `None` when a signal ended it.
    pub exit_code: Option<i32>,
    /// Whether it was stopped on purpose.
    pub stopped: bool,
    pub output_file: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::context;

    #[test]
    fn a_path_must_still_mean_what_was_decided_about() {
        let dir = tempfile::tempdir().unwrap();
        let mut context = context(dir.path());
        let base = context.workspace.root();
        let (one, two) = (base.join("one"), base.join("two"));
        assert_eq!(context.target(&one).unwrap(), one);
        for decided in [Access::Read(one.clone()), Access::Write(one.clone())] {
            context.decided = Some(decided);
            assert_eq!(context.target(&base.join("x/../one")).unwrap(), one);
            let error = context.target(&two).unwrap_err().to_string();
            let places = [format!("led to {}", one.display()), format!("to {} now", two.display())];
            assert!(places.iter().all(|place| error.contains(place)), "{error}");
        }
    }

    #[test]
    fn a_shell_that_moved_does_not_move_a_decided_path() {
        let dir = tempfile::tempdir().unwrap();
        let mut context = context(dir.path());
        let base = context.workspace.root();
        context.decided = Some(Access::Read(base.join("notes")));
        assert!(context.target(&context.workspace.absolute("notes")).is_ok());
        *lock(&context.workspace.cwd) = base.join("elsewhere");
        assert!(context.target(&context.workspace.absolute("notes")).is_err());
    }
}
