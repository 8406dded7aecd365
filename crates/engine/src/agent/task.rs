//! One agent that another one started: how it stands, and who is told of its end.
//!
//! The end is told either to the call that waits for it or later, by a notification. The choice is made under one
//! lock when the agent ends: its result is told once and never twice. That lock is never held together with
//! another agent's: the queue finds the recipient.

use std::collections::HashSet;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::sdk::TaskUsage;
use centurion_protocol::{AgentId, Outcome, RecordId, ReportedUsage, ToolUseId};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent::evidence::Evidence;
use crate::agent::fork_point::Inheritance;
use crate::agent::isolation::WorktreeEnd;
use crate::agent::member_processes::IN_PROCESS;
use crate::agent::stall::StallTimer;
use crate::definition::identity::Identity;
use crate::definition::spec::AgentSpec;
use crate::message::mail::{self, Arrival, Mail};
use crate::message::queue::{Item, Queue};
use crate::money::budget::Account;
use centurion_journal::OutputFile;
use centurion_journal::{Journal, JournalError};

/// The paths of an agent's transcript and output.
pub(crate) struct Files {
    pub(crate) transcript: PathBuf,
    pub(crate) output: PathBuf,
}

/// True if a run is an agent's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunStart {
    First,
    /// It has worked before, in this process or an earlier one.
    Resumed,
}

/// The state of an agent before it was resumed.
pub(crate) struct StateBeforeResume(TaskState);

/// An agent, from its start on; it stays when it has ended, so that others can speak to it again.
pub(crate) struct Task {
    pub(crate) id: AgentId,
    pub(crate) identity: Arc<Identity>,
    pub(crate) spec: Arc<AgentSpec>,
    /// The conversation that it was started with, while that is in memory.
    pub(crate) inherited: Option<Inheritance>,
    pub(crate) transcript: PathBuf,
    pub(crate) output: OutputFile,
    pub(crate) stall: StallTimer,
    /// The limit and the spending over all its runs.
    pub(crate) account: Arc<Account>,
    state: Mutex<TaskState>,
    /// Held by a caller that sends it a message or resumes it, so that callers do so one after another.
    access: Mutex<()>,
    /// True if it has ended, for callers that wait.
    ended: watch::Sender<bool>,
    /// Until when it may continue, if the lead of its team has asked it to end.
    teardown: watch::Sender<Option<Instant>>,
    /// The messages for which it was set to work again after it had failed.
    woken_for: Mutex<HashSet<RecordId>>,
    /// The word for the place of its process. Its end is told under the lock of the state, and says it.
    back_end: Mutex<&'static str>,
}

struct TaskState {
    run: TaskRun,
    /// The call that waits for the end of this run.
    waiter: Option<oneshot::Sender<Arc<End>>>,
    standing: AgentState,
    progress: Progress,
    stopped_by: Option<Stopper>,
    /// True if the caller that stopped it tells of its end.
    is_quiet: bool,
    /// True if it has spoken to the lead of its team in this run.
    has_reported: bool,
    /// True if it ends before its next request, because it agreed to or had no more time.
    is_leaving: bool,
}

/// The state of an agent: at work, or ended.
enum AgentState {
    /// It runs, and this is where messages for it are written down.
    AtWork(Arc<Journal>),
    Ended(Arc<End>),
}

impl TaskState {
    fn new(run: TaskRun, standing: AgentState) -> Self {
        let progress = Progress::default();
        Self {
            run,
            waiter: None,
            standing,
            progress,
            stopped_by: None,
            is_quiet: false,
            has_reported: false,
            is_leaving: false,
        }
    }

    fn end(&self) -> Option<&Arc<End>> {
        match &self.standing {
            AgentState::AtWork(_) => None,
            AgentState::Ended(end) => Some(end),
        }
    }
}

/// The result of posting a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PostResult {
    /// The agent will read it.
    Queued,
    /// The agent has ended, and nothing was done.
    HasEnded,
    /// Too much waits for the agent, and nothing was done.
    Full,
}

/// The agent that started or resumed another one, and in which of its own runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Asker {
    pub(crate) agent: AgentId,
    pub(crate) run: String,
}

/// One run of the agent: its start, or a resume.
#[derive(Clone, Debug)]
pub(crate) struct TaskRun {
    pub(crate) id: String,
    /// The call that began it.
    pub(crate) call: ToolUseId,
    /// The agent that made that call and is told of the end; `None` is the main agent.
    pub(crate) asker: Option<Asker>,
    pub(crate) prompt: String,
    pub(crate) cancel: CancellationToken,
    pub(crate) started: Instant,
}

/// The progress of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) tokens: u64,
    /// The tokens of all requests of this run that the provider read from its cache.
    pub(crate) cached: u64,
    pub(crate) tool_uses: u64,
    pub(crate) last_tool: Option<String>,
    /// The present activity, in a few words.
    pub(crate) activity: String,
    /// A model's summary of the present work.
    pub(crate) summary: Option<String>,
}

/// The actor that stopped an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stopper {
    /// Another agent.
    Agent,
    /// A person or their host.
    Person,
    /// The lead of its team asked it to end, and it agreed or did not answer in time.
    Shutdown,
    /// The session is over.
    Session,
    /// It was silent for too long.
    Watchdog,
}

/// The end of a run of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stopped_by: Option<Stopper>,
    /// The last text of the agent.
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) structured: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) errors: Vec<String>,
    /// Calls that were not allowed, each with why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) denials: Vec<Denial>,
    /// Of the last answer.
    pub(crate) usage: ReportedUsage,
    pub(crate) cumulative_usage: ReportedUsage,
    /// The cost of its own requests.
    #[serde(default)]
    pub(crate) dollars: f64,
    pub(crate) model: String,
    pub(crate) turns: u32,
    pub(crate) duration_ms: u64,
    pub(crate) evidence: Evidence,
    /// The context shared with the agent that it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shared: Option<SharedContext>,
    /// The end of its work in its worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) worktree: Option<WorktreeEnd>,
    /// The reason why its commands were not kept from the checkout that it worked apart from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) unconfined: Option<String>,
    /// Tools of servers that it called, which work outside of its worktree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) outside: Vec<String>,
    /// True if it had spoken to the lead of its team.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_reported: bool,
    /// The number of unread messages for it.
    #[serde(default, skip_serializing_if = "is_none")]
    pub(crate) unread: usize,
    /// The id of the notification: whichever record contains it has told of this end.
    pub(crate) notification: RecordId,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// The context that an agent shared with the one that it was started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SharedContext {
    pub(crate) bytes: usize,
    /// The tokens of its first request that the provider read from its cache.
    pub(crate) cache_read_tokens: u64,
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

    /// The sentence about unread messages, if there are any.
    pub(crate) fn unread_words(&self) -> Option<String> {
        match self.unread {
            0 => None,
            1 => Some("1 message is unread: the agent reads it first when it resumes.".to_owned()),
            count => Some(format!(
                "{count} messages are unread: the agent reads them first when it resumes."
            )),
        }
    }

    pub(crate) fn task_usage(&self) -> TaskUsage {
        TaskUsage {
            total_tokens: self.usage.counts.total(),
            tool_uses: self.evidence.calls(),
            duration_ms: self.duration_ms,
        }
    }
}

/// Does something that must not keep an agent from ending.
fn or_log(act: impl FnOnce(), what: &'static str) {
    if std::panic::catch_unwind(AssertUnwindSafe(act)).is_err() {
        tracing::error!(what, "a fault of the program at an agent's end");
    }
}

impl Task {
    /// An agent that begins, and writes to this journal.
    pub(crate) fn new(
        id: AgentId,
        spec: Arc<AgentSpec>,
        inherited: Option<Inheritance>,
        files: Files,
        account: Arc<Account>,
        run: TaskRun,
        journal: Arc<Journal>,
    ) -> Arc<Self> {
        let state = TaskState::new(run, AgentState::AtWork(journal));
        Self::with(id, spec, inherited, files, account, state)
    }

    /// An agent of an earlier process, as its record tells.
    pub(crate) fn recalled(
        id: AgentId,
        spec: Arc<AgentSpec>,
        files: Files,
        account: Arc<Account>,
        run: TaskRun,
        end: Arc<End>,
    ) -> Arc<Self> {
        Self::with(id, spec, None, files, account, TaskState::new(run, AgentState::Ended(end)))
    }

    fn with(
        id: AgentId,
        spec: Arc<AgentSpec>,
        inherited: Option<Inheritance>,
        files: Files,
        account: Arc<Account>,
        state: TaskState,
    ) -> Arc<Self> {
        let has_ended = state.end().is_some();
        Arc::new(Self {
            identity: Arc::new(Identity::of_spec(&spec, &id)),
            id,
            spec,
            inherited,
            transcript: files.transcript,
            output: OutputFile::new(files.output),
            stall: StallTimer::default(),
            account,
            state: Mutex::new(state),
            access: Mutex::default(),
            ended: watch::Sender::new(has_ended),
            teardown: watch::Sender::default(),
            woken_for: Mutex::default(),
            back_end: Mutex::new(IN_PROCESS),
        })
    }

    /// The journal of the agent while it is at work.
    pub(crate) fn journal(&self) -> Option<Arc<Journal>> {
        match &self.state().standing {
            AgentState::AtWork(journal) => Some(Arc::clone(journal)),
            AgentState::Ended(_) => None,
        }
    }

    fn state(&self) -> MutexGuard<'_, TaskState> {
        self.state.lock()
    }

    /// The holder of this guard is the only one that sends the agent messages or resumes it.
    pub(crate) fn hold_access(&self) -> MutexGuard<'_, ()> {
        self.access.lock()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state().end().is_none()
    }

    /// Tells whether no call waits for it.
    pub(crate) fn is_background(&self) -> bool {
        self.state().waiter.is_none()
    }

    pub(crate) fn run(&self) -> TaskRun {
        self.state().run.clone()
    }

    pub(crate) fn end(&self) -> Option<Arc<End>> {
        self.state().end().cloned()
    }

    pub(crate) fn stopped_by(&self) -> Option<Stopper> {
        self.state().stopped_by
    }

    /// From now on the end of this run is this caller's to tell.
    pub(crate) fn await_end(&self) -> oneshot::Receiver<Arc<End>> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        match state.end() {
            Some(end) => {
                // The receiver is in our hands.
                let _ = sender.send(Arc::clone(end));
            }
            None => state.waiter = Some(sender),
        }
        receiver
    }

    /// Detaches the waiting call: it returns without the result, which becomes a notification.
    /// Returns whether a call was waiting.
    pub(crate) fn detach(&self) -> bool {
        self.state().waiter.take().is_some()
    }

    /// It has spoken to the lead of its team.
    pub(crate) fn note_report(&self) {
        self.state().has_reported = true;
    }

    pub(crate) fn has_reported(&self) -> bool {
        self.state().has_reported
    }

    /// Has it end before its next request.
    pub(crate) fn leave(&self) {
        self.state().is_leaving = true;
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.state().is_leaving
    }

    /// Notes that it is to work again for these messages. Whether one of them is new.
    pub(crate) fn wakes_for(&self, mail: impl Iterator<Item = RecordId>) -> bool {
        let mut woken_for = self.woken_for.lock();
        // All of them are noted, whichever of them is new.
        mail.filter(|id| woken_for.insert(*id)).count() > 0
    }

    /// Notes that the agent works in a process of its own.
    pub(crate) fn note_back_end(&self, back_end: &'static str) {
        *self.back_end.lock() = back_end;
    }

    pub(crate) fn back_end(&self) -> &'static str {
        *self.back_end.lock()
    }

    /// Sets until when it may continue.
    pub(crate) fn set_teardown(&self, until: Option<Instant>) {
        self.teardown.send_replace(until);
    }

    pub(crate) fn has_teardown(&self) -> bool {
        self.teardown.borrow().is_some()
    }

    /// Waits until it has worked for too long after the lead of its team asked it to end.
    pub(crate) async fn overdue(&self) {
        let mut teardown = self.teardown.subscribe();
        loop {
            let until = *teardown.borrow_and_update();
            let time = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                // The sender lives as long as the task.
                _ = teardown.changed() => {}
                () = time => return,
            }
        }
    }

    /// An agent at rest leaves its team: its last end says so from now on. Whether it was at rest. `record` writes the
    /// end of the run with this id down, and asks the task nothing: it is locked.
    pub(crate) fn dismiss(&self, by: Stopper, record: impl FnOnce(&str, &End)) -> bool {
        let mut state = self.state();
        let AgentState::Ended(end) = &state.standing else { return false };
        let end = Arc::new(End { stopped_by: Some(by), ..End::clone(end) });
        or_log(|| record(&state.run.id, &end), "recording");
        state.standing = AgentState::Ended(end);
        true
    }

    /// Wants the agent to end. Whether it was running.
    pub(crate) fn stop(&self, by: Stopper) -> bool {
        let mut state = self.state();
        if state.end().is_some() {
            return false;
        }
        state.stopped_by.get_or_insert(by);
        state.run.cancel.cancel();
        true
    }

    /// Stops the agent once it has done nothing for this long.
    pub(crate) async fn stop_when_stalled(&self, after: Option<Duration>) -> Infallible {
        if let Some(after) = after {
            self.stall.stalled(after).await;
            self.stop(Stopper::Watchdog);
        }
        std::future::pending().await
    }

    /// Wants the agent to end; the caller tells of its end in its place. Whether it was running, and no other
    /// caller tells of it already.
    pub(crate) fn stop_quietly(&self, by: Stopper) -> bool {
        let was_quiet = std::mem::replace(&mut self.state().is_quiet, true);
        !was_quiet && self.stop(by)
    }

    /// Accepts a message for the agent, if it runs: it is written down, and then put before it. Nothing of it
    /// is lost from here on, whatever becomes of the agent and of the process.
    pub(crate) fn post(&self, queue: &Queue, mail: &Mail) -> Result<PostResult, JournalError> {
        let state = self.state();
        let AgentState::AtWork(journal) = &state.standing else { return Ok(PostResult::HasEnded) };
        if mail::is_full(queue.mail_load(Some(&self.id))) {
            return Ok(PostResult::Full);
        }
        mail.accept(journal)?;
        queue.push(mail.item(Some(&self.id), Arrival::AtWork));
        Ok(PostResult::Queued)
    }

    /// Puts what a person says before the agent, if it runs.
    pub(crate) fn tell(&self, queue: &Queue, item: Item) -> PostResult {
        let state = self.state();
        if state.end().is_some() {
            return PostResult::HasEnded;
        }
        queue.push(item);
        PostResult::Queued
    }

    /// Ends the run, unless it would be a success and something waits to be read: then it continues, and there is
    /// no end. `record` writes the end down, and `tell` makes news of it where no waiting call takes the result.
    /// All under one lock: nothing can be posted in between, and a caller that sees the end finds its record and
    /// its news.
    pub(crate) fn finish(
        &self,
        mut end: End,
        queue: &Queue,
        record: impl FnOnce(&End),
        tell: impl FnOnce(&End),
    ) -> Option<Arc<End>> {
        let mut state = self.state();
        let heir = state.run.asker.as_ref().map(|asker| &asker.agent);
        end.unread = match end.outcome {
            Outcome::Completed if end.stopped_by.is_none() => {
                queue.leave_if_idle(&self.id, heir)?
            }
            _ => queue.leave(&self.id, heir),
        };
        let end = Arc::new(end);
        // It has ended even if something breaks here: its waiter must not wait for ever.
        or_log(|| record(&end), "recording");
        state.standing = AgentState::Ended(Arc::clone(&end));
        let is_taken = state.waiter.take().is_some_and(|it| it.send(Arc::clone(&end)).is_ok())
            || state.is_quiet;
        if !is_taken {
            or_log(|| tell(&end), "telling");
        }
        drop(state);
        self.ended.send_replace(true);
        Some(end)
    }

    /// Sets an agent that has ended to work again; `None` if it runs.
    pub(crate) fn begin(&self, run: TaskRun, journal: Arc<Journal>) -> Option<StateBeforeResume> {
        let mut state = self.state();
        state.end()?;
        let before =
            std::mem::replace(&mut *state, TaskState::new(run, AgentState::AtWork(journal)));
        drop(state);
        self.stall.note_activity();
        self.ended.send_replace(false);
        Some(StateBeforeResume(before))
    }

    /// It could not begin after all, and is as it was.
    pub(crate) fn restore(&self, before: StateBeforeResume) {
        *self.state() = before.0;
        self.ended.send_replace(true);
    }

    /// Waits for the end, for this long at most.
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
