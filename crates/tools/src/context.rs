//! The context of a running call.
//!
//! A [`Workspace`] belongs to one agent and outlives its calls: the working directory, the files that the agent has
//! read, its to-do list. A [`ToolContext`] belongs to one call.

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
use crate::checkpoints::FileKeeper;
use crate::exit_plan_mode::Plan;
use crate::paths::resolve;
use crate::read_state::{ReadState, View};
use crate::sandbox::{DeniedFiles, IsolatedPlaces, SandboxPolicy};
use crate::shared_files::SharedFiles;
use crate::shell::Shells;
use crate::todo_write::Todo;

/// The resources of one call.
pub struct ToolContext {
    pub workspace: Arc<Workspace>,
    pub call: ToolUseId,
    /// Cancelled when the call must end now. A tool that waits also waits for this.
    pub cancel: CancellationToken,
    /// The access that the permission decision was about. `None` without a permission decision.
    pub decided: Option<Access>,
    /// Whether a person has approved this very call.
    pub is_approved: bool,
    /// Whether the agent continues in the directory in which its shell ends.
    pub moves_agent: bool,
}

impl ToolContext {
    /// The file or directory that a path means now, links resolved.
    ///
    /// A path can change its meaning after the call was allowed: a link is changed, the shell moves. Then this fails,
    /// so that the call touches only the file that was decided about.
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
    /// The directory in which the agent works. Bash returns here when its own directory is gone. Changes only when the
    /// agent moves to a worktree.
    pub root: Mutex<PathBuf>,
    /// The current directory of Bash. Moves with `cd`.
    pub cwd: Mutex<PathBuf>,
    /// The files that this agent has read, by content.
    pub read_state: ReadState,
    /// The knowledge of all agents of the session about files, and this agent's name among them.
    pub files: Arc<SharedFiles>,
    pub called: Arc<str>,
    pub todos: Mutex<Vec<Todo>>,
    pub plan: Mutex<Plan>,
    /// Copies files before they are changed, if the user wants checkpoints.
    pub checkpoints: Option<Arc<dyn FileKeeper>>,
    /// The background shells of the session, shared by its agents.
    pub shells: Arc<Shells>,
    /// The directory for output that is too large for an answer: private to the session.
    pub output_dir: PathBuf,
    /// Whether a path below a searched directory may itself be read. A walk asks this for every path, from several
    /// threads.
    pub may_read: Arc<dyn Fn(&Path) -> bool + Send + Sync>,
    /// Finds the files that deny rules keep from being read or changed. The first search may take long.
    pub find_denied: Arc<dyn Fn() -> DeniedFiles + Send + Sync>,
    /// The rule about fetching from a host.
    pub host_rule: Arc<dyn Fn(&Url) -> HostRule + Send + Sync>,
    /// The confinement of this agent's commands, if there is one.
    pub sandbox: Option<Arc<SandboxPolicy>>,
    /// The places of an agent in a worktree of its own, whose `root` is that of this workspace.
    /// [`SandboxPolicy::isolated`] makes the `sandbox` of such an agent.
    pub isolation: Option<Arc<IsolatedPlaces>>,
    /// The environment of processes, and the source of limits.
    pub env: Arc<Env>,
    pub world: Arc<dyn World>,
    pub host: Arc<dyn Host>,
}

impl Workspace {
    /// The files that deny rules keep from commands in a sandbox, as they are now.
    pub async fn denied_files(&self) -> DeniedFiles {
        let find = Arc::clone(&self.find_denied);
        // The result of a search that broke off is not reliable.
        tokio::task::spawn_blocking(move || find()).await.unwrap_or_default()
    }

    /// The size of a change for [`crate::disk::run_sized`]: one that waits for another process counts as large.
    pub(crate) fn size_of_change(&self, bytes: u64) -> u64 {
        if self.checkpoints.as_ref().is_some_and(|it| it.waits()) { u64::MAX } else { bytes }
    }

    pub fn cwd(&self) -> PathBuf {
        lock(&self.cwd).clone()
    }

    /// Records that the agent has seen `view` of the file at `path` (resolved), which contains these bytes.
    pub(crate) fn note_seen(&self, path: &Path, bytes: &[u8], view: View) -> Hash {
        let hash = blake3::hash(bytes);
        self.files.keep(hash, bytes);
        self.read_state.record(path, hash, view);
        hash
    }

    pub fn root(&self) -> PathBuf {
        lock(&self.root).clone()
    }

    /// Moves the agent to another root.
    pub fn move_to(&self, root: &Path) {
        lock(&self.root).clone_from(&root.to_owned());
        lock(&self.cwd).clone_from(&root.to_owned());
    }

    /// The absolute form of a path as a model wrote it: `~` expanded, relative to the current directory of Bash.
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

/// The services of the host that runs the tools: questions to a person, the mode of the session, news of background
/// work.
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

    /// Reports a sign of life of a long call: a fact for observers.
    fn call_progressed(&self, _call: &ToolUseId, _tool: &str, _elapsed: Duration) {}

    /// Reports that a background shell started or ended: a fact for observers.
    fn shell_changed(&self, change: ShellChange);

    /// Ends an agent; `None` when no agent has this id or name.
    fn stop_agent<'a>(
        &'a self,
        _id: &'a str,
    ) -> HostFuture<'a, Option<Result<AgentStop, StopRefusal>>> {
        Box::pin(std::future::ready(None))
    }

    /// The state of an agent, after waiting at most this long for its end; `None` when no agent has this id or name. A
    /// caller that waited and was told of the end receives no notification of it.
    fn agent_state<'a>(
        &'a self,
        _id: &'a str,
        _patience: Option<Duration>,
    ) -> HostFuture<'a, Option<AgentState>> {
        Box::pin(std::future::ready(None))
    }

    /// Queues the notification that a background shell ended. Called once for each shell, unless a call has told the
    /// model already.
    fn report_shell_end(&self, end: ShellEnd);
}

/// The reason that a question has no answer.
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

/// The reason that an agent does not begin to plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanModeError {
    #[error("the session has ended")]
    Ended,
    #[error("plan mode is on already")]
    AlreadyOn,
}

/// The reason that an agent may not end another.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StopRefusal {
    #[error("this is you: to end, say what you have found and stop")]
    Oneself,
    /// The other agent's end would wait for the end of this call.
    #[error("you work for agent {0}: end yourself and say why it should end too")]
    Above(AgentId),
    #[error("agent {0} does not work for you: say in your report why it should end")]
    Stranger(AgentId),
}

/// The result of a request to end an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentStop {
    pub id: String,
    /// The agent's task in a few words.
    pub description: String,
    /// Whether the agent was running.
    pub was_running: bool,
}

/// The state of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentState {
    pub id: String,
    pub description: String,
    /// `running`, `completed`, `failed` or `killed`.
    pub status: &'static str,
    /// Its current activity, or its last text.
    pub text: String,
    pub output_file: PathBuf,
    /// The id of the notification that this replaces.
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
    /// The consequence of choosing it.
    #[serde(default)]
    pub description: String,
    /// A sketch of what the person would get, to compare the choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
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
    /// The lead of the agent's team has the plan and answers by a message; the text is the id of the request.
    Submitted(String),
    /// Keep planning; the text is what a person said about the plan.
    Rejected(String),
    /// The plan was put before no one; the text gives the reason.
    Refused(String),
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

/// The end of a background shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellEnd {
    pub task: TaskId,
    /// The call that started it.
    pub call: ToolUseId,
    /// The model's description, or else the command: one short line.
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
