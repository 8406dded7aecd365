//! One agent that another one started: how it stands, and who is told of its end.
//!
//! Whoever waits for it (a call) and whoever is told later (by a notification) are one choice, made under
//! one lock when the agent ends: its result is told once and never twice.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use centurion_protocol::sdk::TaskUsage;
use centurion_protocol::{AgentId, Outcome, RecordId, ToolUseId, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::evidence::Evidence;
use crate::identity::Identity;
use crate::output_file::OutputFile;
use crate::pulse::Pulse;
use crate::queue::{Item, Queue};
use crate::spec::AgentSpec;

/// An agent, from its start on; it stays when it has ended, so that others can speak to it again.
pub(crate) struct Task {
    pub(crate) id: AgentId,
    pub(crate) identity: Arc<Identity>,
    pub(crate) spec: Arc<AgentSpec>,
    pub(crate) transcript: PathBuf,
    pub(crate) output: OutputFile,
    pub(crate) pulse: Pulse,
    state: Mutex<State>,
    /// Whether it has ended, for those who wait.
    ended: watch::Sender<bool>,
}

struct State {
    run: TaskRun,
    /// The call that waits for the end of this run.
    waiter: Option<oneshot::Sender<Arc<End>>>,
    end: Option<Arc<End>>,
    progress: Progress,
    stopped_by: Option<Stopper>,
    /// Whether somebody else tells of its end.
    is_quiet: bool,
}

/// One time that the agent is set to work.
#[derive(Clone, Debug)]
pub(crate) struct TaskRun {
    pub(crate) id: String,
    /// The call that set it to work.
    pub(crate) call: ToolUseId,
    pub(crate) prompt: String,
    pub(crate) cancel: CancellationToken,
    pub(crate) started: Instant,
}

/// What it has done in this run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) tokens: u64,
    pub(crate) tool_uses: u64,
    pub(crate) last_tool: Option<String>,
    /// What it does now, in a few words.
    pub(crate) activity: String,
}

/// Who wanted an agent to end before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stopper {
    /// Another agent.
    Agent,
    /// A person or their host.
    Person,
    /// The session is over.
    Session,
    /// It was silent for too long.
    Watchdog,
}

/// How a run of an agent ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stopped_by: Option<Stopper>,
    /// What it said last.
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) structured: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) errors: Vec<String>,
    /// Calls that were not allowed, each with why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) denials: Vec<Denial>,
    /// Of the last answer.
    pub(crate) usage: Usage,
    pub(crate) cumulative_usage: Usage,
    pub(crate) model: String,
    pub(crate) turns: u32,
    pub(crate) duration_ms: u64,
    pub(crate) evidence: Evidence,
    /// The id of the notification: whichever record contains it has told of this end.
    pub(crate) notification: RecordId,
}

/// A call that an agent was not allowed to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Denial {
    pub(crate) tool: String,
    pub(crate) reason: String,
}

impl End {
    /// The state in the words of the public protocol.
    pub(crate) fn status(&self) -> &'static str {
        match self.outcome {
            Outcome::Completed => "completed",
            Outcome::Cancelled => "killed",
            _ => "failed",
        }
    }

    pub(crate) fn task_usage(&self) -> TaskUsage {
        TaskUsage {
            total_tokens: self.usage.total(),
            tool_uses: self.evidence.calls(),
            duration_ms: self.duration_ms,
        }
    }
}

impl Task {
    pub(crate) fn new(
        identity: Arc<Identity>,
        spec: Arc<AgentSpec>,
        transcript: PathBuf,
        output_file: PathBuf,
        run: TaskRun,
    ) -> Option<Arc<Self>> {
        let state = State {
            run,
            waiter: None,
            end: None,
            progress: Progress::default(),
            stopped_by: None,
            is_quiet: false,
        };
        Some(Arc::new(Self {
            id: identity.id.clone()?,
            identity,
            spec,
            transcript,
            output: OutputFile::new(output_file),
            pulse: Pulse::default(),
            state: Mutex::new(state),
            ended: watch::Sender::new(false),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state().end.is_none()
    }

    /// An agent of an earlier process, as its record tells.
    pub(crate) fn recalled(
        identity: Arc<Identity>,
        spec: Arc<AgentSpec>,
        transcript: PathBuf,
        output_file: PathBuf,
        run: TaskRun,
        end: End,
    ) -> Option<Arc<Self>> {
        let task = Self::new(identity, spec, transcript, output_file, run)?;
        task.finish(&Arc::new(end), || false, || {}, || {});
        Some(task)
    }

    /// Whether nobody waits for it.
    pub(crate) fn is_background(&self) -> bool {
        self.state().waiter.is_none()
    }

    pub(crate) fn run(&self) -> TaskRun {
        self.state().run.clone()
    }

    pub(crate) fn end(&self) -> Option<Arc<End>> {
        self.state().end.clone()
    }

    pub(crate) fn stopped_by(&self) -> Option<Stopper> {
        self.state().stopped_by
    }

    /// From now on the end of this run is this caller's to tell.
    pub(crate) fn await_end(&self) -> oneshot::Receiver<Arc<End>> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        match &state.end {
            Some(end) => {
                // The receiver is in our hands.
                let _ = sender.send(Arc::clone(end));
            }
            None => state.waiter = Some(sender),
        }
        receiver
    }

    /// Lets go of the call that waits: it goes on without the result, which becomes a notification.
    /// Whether there was one.
    pub(crate) fn detach(&self) -> bool {
        self.state().waiter.take().is_some()
    }

    /// Wants the agent to end. Whether it was running.
    pub(crate) fn stop(&self, by: Stopper) -> bool {
        let mut state = self.state();
        if state.end.is_some() {
            return false;
        }
        state.stopped_by.get_or_insert(by);
        state.run.cancel.cancel();
        true
    }

    /// Wants the agent to end, and tells of its end in its place. Whether it was running, and nobody else
    /// tells of it already.
    pub(crate) fn stop_quietly(&self, by: Stopper) -> bool {
        let was_quiet = std::mem::replace(&mut self.state().is_quiet, true);
        !was_quiet && self.stop(by)
    }

    /// Puts something before the agent, if it runs. Otherwise says how it ended.
    pub(crate) fn post(&self, queue: &Queue, item: Item) -> Result<(), Arc<End>> {
        let state = self.state();
        if let Some(end) = &state.end {
            return Err(Arc::clone(end));
        }
        queue.push(item);
        Ok(())
    }

    /// Ends the run, unless `has_mail` says that there is something left to do; `record` writes the end
    /// down, and `tell` makes news of it where nobody takes the result. All under one lock: nothing can be
    /// posted in between, and whoever sees the end finds its record and its news. `false` says that the
    /// run goes on.
    pub(crate) fn finish(
        &self,
        end: &Arc<End>,
        has_mail: impl FnOnce() -> bool,
        record: impl FnOnce(),
        tell: impl FnOnce(),
    ) -> bool {
        let mut state = self.state();
        if end.outcome == Outcome::Completed && has_mail() {
            return false;
        }
        record();
        state.end = Some(Arc::clone(end));
        let is_taken = state.waiter.take().is_some_and(|it| it.send(Arc::clone(end)).is_ok())
            || state.is_quiet;
        if !is_taken {
            tell();
        }
        drop(state);
        self.ended.send_replace(true);
        true
    }

    /// Sets an agent that has ended to work again; `false` if it runs.
    pub(crate) fn begin(&self, run: TaskRun) -> bool {
        let mut state = self.state();
        if state.end.is_none() {
            return false;
        }
        *state = State {
            run,
            waiter: None,
            end: None,
            progress: Progress::default(),
            stopped_by: None,
            is_quiet: false,
        };
        drop(state);
        self.pulse.beat();
        self.ended.send_replace(false);
        true
    }

    /// Waits for the end, for so long at most.
    pub(crate) async fn ended(&self, patience: Duration) -> Option<Arc<End>> {
        let mut ended = self.ended.subscribe();
        let waiting = ended.wait_for(|ended| *ended);
        // The sender lives as long as the task.
        let _ = tokio::time::timeout(patience, waiting).await;
        self.end()
    }

    pub(crate) fn progress(&self) -> Progress {
        self.state().progress.clone()
    }

    pub(crate) fn advance(&self, change: impl FnOnce(&mut Progress)) -> Progress {
        let mut state = self.state();
        change(&mut state.progress);
        state.progress.clone()
    }

    pub(crate) fn usage(&self) -> TaskUsage {
        let state = self.state();
        let duration = state.run.started.elapsed().as_millis();
        TaskUsage {
            total_tokens: state.progress.tokens,
            tool_uses: state.progress.tool_uses,
            duration_ms: u64::try_from(duration).unwrap_or(u64::MAX),
        }
    }
}
