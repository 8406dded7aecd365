//! A session: one conversation with a person, from its first prompt to its end, across processes.
//!
//! It owns what its agents share (queue, broker, budget, shells) and runs the main agent once for each
//! input that the queue holds.

mod clear;
mod commands;
mod explain;
mod handle;
mod host_requests;
mod main_agent;
mod member;
mod memory;
mod open;
mod options;
mod report;
mod results;
mod rewind;
mod run_once;
mod setup;
mod side_question;
mod steering;
mod suggestion;
mod team_report;
mod team_views;
mod title;
mod tool_server;

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use centurion_hooks::Registration;
use centurion_hooks::events::SessionEnd;
use centurion_protocol::sdk::{EventBody, Init, System, UnfinishedAgent};
use centurion_protocol::{Outcome, SessionId};
use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::explain::ExplainError;
pub use self::handle::{Handle, ModelChange};
pub use self::host_requests::{DirectoryRefused, FileRefused, ReadInstructions, ServerCallError};
use self::memory::MainMemory;
pub use self::memory::Remembering;
pub use self::open::{CAPABILITIES, FILE_HISTORY, OpenError, PROTOCOL_VERSION};
pub use self::options::{
    AgentOptions, Base, Extensions, Options, PermissionOptions, PluginParts, ResumePoint,
    SetupTrigger, Start, Storage,
};
pub use self::results::ENDED_BEFORE;
use self::results::Results;
use self::run_once::{RunEnd, log_fault, or_log};
pub use self::side_question::AsideError;
pub use self::steering::{AgentSpending, MessageRoute, TellError};
pub use self::team_report::{AskToEndError, MemberStanding, TeamMember, TeamMessage, TeamReport};
pub use self::tool_server::{ToolReply, ToolServer};
use crate::agent::peers;
use crate::agent::shared::Shared;
use crate::agent::task::{Stopper, Task};
use crate::definition::prompt::PromptOptions;
use crate::definition::resolve::MainFlags;
use crate::delegate::spawn::panic_words;
use crate::delegate::teammate;
use crate::message::queue::Item;
use crate::toolset::servers::ServerPatience;
use crate::turn::driver::Driver;
use crate::turn::elicitation::Elicitations;

/// The longest wait of a finished run for background shells before it ends them.
const SHELL_GRACE: Duration = Duration::from_secs(5);
/// The longest wait for the ends of agents when the session ends.
const AGENT_GRACE: Duration = Duration::from_secs(5);

/// The longest wait of an ending session for a suggestion.
const SUGGESTION_GRACE: Duration = Duration::from_secs(10);

/// The longest wait for the cleanup of a session's tasks when it ends.
const TIDY_GRACE: Duration = Duration::from_secs(2);

/// One session with its main agent.
pub struct Session {
    shared: Arc<Shared>,
    driver: Driver,
    init: Arc<Init>,
    results: Results,
    broken_lines: usize,
    /// The source of this start, until hooks have been told.
    begins: Option<&'static str>,
    /// The Setup hooks that run before that.
    setup: Option<SetupTrigger>,
    server_patience: ServerPatience,
    elicitations: Arc<Elicitations>,
    /// True if what the user may say next is asked for.
    suggests: bool,
    /// The memory of the main agent.
    memory: Option<MainMemory>,
    /// The prompt of the agent's definition before the first input.
    initial_prompt: Option<String>,
    /// The parts of the main agent that flags have fixed, and the prompt options.
    asked: (MainFlags, PromptOptions),
    /// Keeps the hooks of the agent's definition in force.
    _agent_hooks: Vec<Registration>,
}

impl Session {
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.shared))
    }

    pub fn id(&self) -> SessionId {
        self.shared.id()
    }

    /// The number of unreadable lines in the transcript that was resumed.
    pub fn broken_lines(&self) -> usize {
        self.broken_lines
    }

    /// From now on results are shown when no agent works any more, for runs of one prompt.
    pub fn hold_results(&mut self) {
        self.results.are_held = true;
    }

    /// The agents that the session ended before they had finished.
    pub fn unfinished(&self) -> &[UnfinishedAgent] {
        &self.results.unfinished
    }

    /// The memory tasks of the settings, for after the results have been read. A session that keeps no
    /// transcript leaves nothing else either.
    pub fn remembering(&mut self) -> Option<Remembering> {
        let memory = self.memory.take().filter(|_| self.driver.journal.is_kept())?;
        memory.remembering(&self.shared)
    }

    /// Runs until the input is closed and no result is undelivered. Returns how the last run ended.
    pub async fn run(&mut self) -> Option<Outcome> {
        let shared = Arc::clone(&self.shared);
        let working = AssertUnwindSafe(async {
            tokio::select! {
                biased;
                last = self.work() => last,
                never = keep_time(&shared) => match never {},
                never = hear_peers(&shared) => match never {},
            }
        });
        let mut last = match working.catch_unwind().await {
            Ok(last) => last,
            Err(panic) => {
                let reason = panic_words(&*panic);
                drop(panic);
                Some(self.fail_between_runs(&reason).await)
            }
        };
        let ending = AssertUnwindSafe(async {
            let unfinished = self.end_agents().await;
            self.results.close(&self.shared, unfinished);
        });
        if let Err(panic) = ending.catch_unwind().await {
            // The reader may miss a result, so this is no good end.
            log_fault("the results of the session", &*panic);
            last = Some(Outcome::Fault);
        }
        self.end().await;
        last
    }

    async fn work(&mut self) -> Option<Outcome> {
        let mut last = None;
        loop {
            let Some(items) = self.next_turn(last).await else {
                if peers::close_if_idle(&self.shared) {
                    if let Err(error) = self.record_quiet() {
                        tracing::error!(%error, "the last words of the host could not be recorded");
                    }
                    break;
                }
                // Another session said something in the last moment.
                continue;
            };
            let end = self.run_once(&items).await;
            last = Some(match end {
                RunEnd::Ran(outcome) => outcome,
                RunEnd::Refused => Outcome::JournalFailed,
            });
            if matches!(end, RunEnd::Ran(Outcome::JournalFailed | Outcome::Fault)) {
                // Without records nothing is done, and a panic leaves the main agent in an unknown state. The
                // transcript has all that was done and every end that is yet to be told, for a resume.
                self.shared.queue.abandon();
            }
        }
        last
    }

    /// Waits for the next input of the main agent. Meanwhile a host that asks for it is shown a suggestion.
    async fn next_turn(&self, last: Option<Outcome>) -> Option<Vec<Item>> {
        if !self.suggests || last != Some(Outcome::Completed) {
            return self.next_items().await;
        }
        let mut asking = pin!(suggestion::suggest(&self.shared));
        let mut waiting = pin!(self.next_items());
        let items = tokio::select! {
            biased;
            items = &mut waiting => items,
            () = &mut asking => return waiting.await,
        };
        if items.is_none() && !self.shared.queue.is_abandoned() {
            // Nothing else will come: what was asked for is worth a moment, unless the session is to stop.
            tokio::select! {
                biased;
                items = self.shared.queue.arrival(None) => return items,
                () = &mut asking => {}
                () = tokio::time::sleep(SUGGESTION_GRACE) => {}
            }
        }
        items
    }

    /// Ends all agents, and waits until their records are complete. Returns those that were cut short.
    async fn end_agents(&self) -> Vec<UnfinishedAgent> {
        teammate::show_dissolved(&self.shared);
        let delegation = &self.shared.delegation;
        let deadline = Instant::now() + AGENT_GRACE;
        // One that was about to end may have started another.
        loop {
            let running = delegation.running();
            let left = deadline.saturating_duration_since(Instant::now());
            if running.is_empty() || left.is_zero() {
                return delegation.tasks().iter().filter_map(|task| cut_short(task)).collect();
            }
            for task in &running {
                task.stop(Stopper::Session);
            }
            join_all(running.iter().map(|task| task.ended(left))).await;
        }
    }

    /// Tells hooks, and ends everything but agents that still runs.
    async fn end(&self) {
        let agent = &self.driver.dispatch.agent;
        if self.begins.is_none() {
            let cancel = CancellationToken::new();
            or_log(
                "the hooks of a session's end",
                agent.fire(&SessionEnd { reason: "other" }, &cancel),
            )
            .await;
            self.shared.record_title();
        }
        self.elicitations.detach();
        or_log("the end of hooks", agent.hooks.shutdown()).await;
        or_log("the end of shells", agent.workspace.shells.shutdown()).await;
        if let Some(processes) = &self.shared.delegation.member_processes {
            or_log("the end of members' processes", processes.close()).await;
        }
        if let Some(view) = self.shared.delegation.team.as_ref().and_then(|team| team.view()) {
            view.close();
        }
        self.shared.work.close();
        if tokio::time::timeout(TIDY_GRACE, self.shared.work.wait()).await.is_err() {
            let left = self.shared.work.len();
            tracing::warn!(left, "tasks of the session were still at work when it ended");
        }
    }

    /// Waits for the next items of the main agent; `None` when nothing will come any more. Agents in the
    /// background are waited for, for as long as the rules say; shells for a moment.
    async fn next_items(&self) -> Option<Vec<Item>> {
        if let Some(items) = self.shared.queue.next(None).await {
            return Some(items);
        }
        let delegation = &self.shared.delegation;
        let deadline = delegation.rules.wait.map(|wait| Instant::now() + wait);
        let mut ends = delegation.ends();
        loop {
            ends.mark_unchanged();
            let has_agents = delegation.has_running();
            if self.shared.queue.is_abandoned()
                || (!has_agents
                    && self.driver.dispatch.agent.workspace.shells.running().is_empty()
                    && !delegation.is_telling())
            {
                // One that ended in this moment has told before it was gone.
                return Some(self.shared.queue.due(None)).filter(|items| !items.is_empty());
            }
            let patience = if has_agents {
                deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
            } else {
                Some(SHELL_GRACE)
            };
            tokio::select! {
                items = self.shared.queue.arrival(None) => return items,
                // The sender lives as long as the session.
                _ = ends.changed() => {}
                () = after(patience) => return None,
            }
        }
    }

    /// Tells whether no other turn is due: nothing is pending, and no agent is running whose end would be told.
    fn is_idle(&self) -> bool {
        !self.shared.delegation.has_running() && self.shared.queue.due(None).is_empty()
    }

    /// Tells hosts and views that ask for it whether the session is at work.
    fn show_state(&self, state: &'static str) {
        let env = &self.shared.delegation.builder.env;
        if self.shared.view.wants_state() || env.is_on("CLAUDE_CODE_SDK_READS_SESSION_STATE") {
            self.shared.show(EventBody::System(System::SessionStateChanged { state }));
        }
    }
}

impl Drop for Session {
    /// Agents end with their session, also where it was not run to its end, and no result is lost. From now on
    /// another process may write to the transcript, even while a view of this session is still held.
    fn drop(&mut self) {
        let released = catch_unwind(AssertUnwindSafe(|| self.results.release(&self.shared)));
        if let Err(panic) = released {
            log_fault("the results of the session", &*panic);
        }
        self.driver.journal.rest();
        for task in self.shared.delegation.running() {
            task.stop(Stopper::Session);
        }
    }
}

/// An agent that the session ended, unless it had finished by then.
fn cut_short(task: &Task) -> Option<UnfinishedAgent> {
    let has_finished = task.end().is_some_and(|end| end.outcome.is_success());
    let is_cut_short = task.stopped_by() == Some(Stopper::Session) && !has_finished;
    is_cut_short.then(|| UnfinishedAgent {
        agent_id: task.id.clone(),
        name: task.spec.name.clone(),
        subagent_type: task.spec.agent_type.clone(),
        description: task.spec.description.clone(),
    })
}

async fn after(patience: Option<Duration>) {
    match patience {
        Some(patience) => tokio::time::sleep(patience).await,
        None => std::future::pending().await,
    }
}

/// Hears what other sessions say, for as long as this one runs.
async fn hear_peers(shared: &Arc<Shared>) -> Infallible {
    // Most sessions hear nothing: what it needs is not kept for them.
    Box::pin(peers::listen(shared)).await;
    std::future::pending().await
}

/// Queues what is due in a session, for as long as that runs.
async fn keep_time(shared: &Shared) -> Infallible {
    match &shared.schedules {
        Some(schedules) => schedules.keep_time(&shared.queue).await,
        None => std::future::pending().await,
    }
}
