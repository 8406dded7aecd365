//! The life of an agent from its first run to its end.
//!
//! When it ends, the record of its end is written first; then its state changes, under one lock with the choice of the
//! recipient; slow clean-up comes last.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use centurion_hooks::events::SubagentStart;
use centurion_journal::JournalError;
use centurion_protocol::Outcome;
use centurion_protocol::sdk::WaitsFor;
use futures_util::FutureExt as _;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::meta::write_meta;
use super::resume::resume_for_mail;
use super::{Child, panic_words};
use crate::agent::delegation::Delegation;
use crate::agent::member_processes::MemberProcesses;
use crate::agent::task::{End, SharedContext, Stopper};
use crate::delegate::{notification, summary, teammate};
use crate::message::life_records::END;
use crate::message::queue::Item;

impl Child {
    /// Runs the agent from start to end. Notifies its waiter, also after a panic.
    pub(super) async fn live(mut self) {
        if let Err(panic) = AssertUnwindSafe(self.run_to_its_end()).catch_unwind().await {
            self.fail(&*panic);
            // After a panic, only the data of the end is computed.
            let settled = catch_unwind(AssertUnwindSafe(|| {
                if !self.has_ended
                    && let Some(end) = self.settle()
                {
                    self.show_end(&end);
                }
            }));
            if settled.is_err() {
                tracing::error!(agent = %self.task.id, "an agent broke, and its end as well");
            }
        }
        if let Some(slot) = &self.agent.slot {
            slot.leave();
        }
        if AssertUnwindSafe(self.tidy_up()).catch_unwind().await.is_err() {
            tracing::error!(agent = %self.task.id, "what an agent left could not be tidied up");
        }
    }

    /// It ends by a fault of the program.
    pub(super) fn fail(&mut self, panic: &(dyn Any + Send)) {
        self.run.outcome = Outcome::Fault;
        self.run.errors.push(panic_words(panic));
    }

    async fn run_to_its_end(&mut self) {
        let cancel = self.task.run().cancel;
        loop {
            let is_broken = self.run.outcome == Outcome::Fault;
            let (task, shared) = (Arc::clone(&self.task), Arc::clone(&self.shared));
            let work = AssertUnwindSafe(async {
                if !is_broken {
                    tokio::select! {
                        biased;
                        () = self.work(&cancel) => {}
                        never = teammate::end_overdue(&shared, &task) => match never {},
                    }
                }
            });
            if let Err(panic) = work.catch_unwind().await {
                self.fail(&*panic);
            }
            // Hooks that were told of the start are told of the stop, however it ended.
            if self.has_begun && !std::mem::take(&mut self.run.told_stop) {
                self.driver.fire_stop(&self.run.text, &CancellationToken::new()).await;
            }
            if self.task.spec.team.is_some() {
                teammate::end_if_asked(&self.shared, &self.task, self.run.outcome);
                if !self.task.is_leaving() && self.run.outcome == Outcome::Completed {
                    teammate::ask_hooks(&self.shared, &self.agent, &self.task).await;
                }
            }
            self.leave_worktree().await;
            // The session does not end before a member that has failed has read its mail.
            let _telling = self.shared.delegation.will_tell();
            if let Some(end) = self.settle() {
                self.show_end(&end);
                return resume_for_mail(&self.shared, &self.task, &end);
            }
            // Something came for it when it had stopped: it begins once more, and hooks are told so.
            self.has_begun = false;
            self.items = self.shared.queue.pending(Some(&self.task.id));
        }
    }

    /// Works until there is an outcome: when it is its turn, and as long as something comes of it.
    async fn work(&mut self, cancel: &CancellationToken) {
        let slot_taken = async {
            let _waiting = self.task.stall.pause();
            if let Some(slot) = &self.agent.slot {
                self.agent.tell_wait(WaitsFor::Slot, slot.take()).await;
            }
        };
        tokio::select! {
            biased;
            // Its transcript holds the input nevertheless: it may be resumed.
            () = cancel.cancelled() => {}
            () = slot_taken => {}
        }
        self.task.stall.note_activity();
        if !cancel.is_cancelled()
            && let Err(error) = self.enter_worktree().await
        {
            self.run.outcome = Outcome::Fault;
            self.run.errors.push(format!("it cannot work where it did: {error}"));
            return;
        }
        if !self.has_begun && !cancel.is_cancelled() {
            self.has_begun = true;
            self.tell_start(cancel).await;
            let patience = self.shared.server_patience();
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = self.agent.servers.settle(patience) => {}
            }
        }
        let items = std::mem::take(&mut self.items);
        if let Some(processes) = self.processes() {
            return self.work_in_process(&processes, &items, cancel).await;
        }
        let stall = self.shared.delegation.rules.stall;
        let task = Arc::clone(&self.task);
        // Large, and of no use to an agent that waits its turn.
        let running = Box::pin(self.driver.run(&mut self.run, &items, cancel));
        let outcome = tokio::select! {
            biased;
            outcome = running => outcome,
            never = task.stop_when_stalled(stall) => match never {},
            never = summary::keep_telling(&self.shared, &self.task, &self.agent) => match never {},
        };
        self.note_unrecorded(outcome);
        if let Some(slot) = &self.agent.slot {
            slot.leave();
        }
    }

    /// Has a process of its own do the same.
    async fn work_in_process(
        &mut self,
        processes: &Arc<MemberProcesses>,
        items: &[Item],
        cancel: &CancellationToken,
    ) {
        let outcome = Box::pin(self.run_in_process(processes, items, cancel)).await;
        if let Some(place) = processes.place(&self.task.id) {
            self.task.note_back_end(place.back_end);
        }
        self.note_unrecorded(outcome);
        if let Some(slot) = &self.agent.slot {
            slot.leave();
        }
    }

    fn note_unrecorded(&mut self, outcome: Result<(), JournalError>) {
        if let Err(error) = outcome {
            self.run.outcome = Outcome::JournalFailed;
            self.run.errors.push(error.to_string());
        }
    }

    /// Writes the end down and makes it known, unless there is something left to do.
    fn settle(&mut self) -> Option<Arc<End>> {
        let (task, queue, journal) = (&self.task, &self.shared.queue, &self.driver.journal);
        let task_run = task.run();
        let record = |end: &End| {
            let note = json!({"run": task_run.id, "status": end.status(), "end": end});
            tracing::debug!(agent = %task.id, run = task_run.id, status = end.status(), "an agent has ended");
            if let Err(error) = journal.note(END, &note) {
                tracing::error!(%error, agent = %task.id, "an agent's end could not be recorded");
            }
            // A caller that resumes the agent opens the file anew, perhaps before all is tidied up here.
            journal.rest();
            count(&self.shared.delegation, end);
        };
        let tell = |end: &End| notification::tell_end(queue, task, &task_run, end);
        let end = self.end();
        self.shared.keep_denials(end.notification, &self.run.denials);
        // The session does not end before the lead of a team is told what it has to hear.
        let telling = self.shared.delegation.will_tell();
        let ended = task.finish(end, queue, record, tell)?;
        teammate::settle_team(&self.shared, task);
        drop(telling);
        self.has_ended = true;
        self.shared.delegation.note_end(task);
        self.shared.pass_on_side_notes(&self.task.id);
        Some(ended)
    }

    async fn tell_start(&mut self, cancel: &CancellationToken) {
        let start =
            SubagentStart { agent_id: &self.task.id, agent_type: &self.task.spec.agent_type };
        let fired = self.driver.dispatch.agent.fire(&start, cancel).await;
        // Hooks may add to what it knows, and keep no agent from running.
        self.driver.aside.context.extend(fired.context_for_model());
    }

    /// The end as data.
    pub(super) fn end(&self) -> End {
        let run = &self.run;
        let is_leaving = self.task.is_leaving();
        let stopped_by = if is_leaving { Some(Stopper::Shutdown) } else { self.task.stopped_by() };
        let ended_on_denial = run.outcome == Outcome::Completed && run.ended_on_denial;
        let outcome = match (run.outcome, stopped_by) {
            (Outcome::Cancelled, Some(Stopper::Watchdog)) => Outcome::Stalled,
            (Outcome::Completed, _) if ended_on_denial => Outcome::Denied,
            (outcome, _) => outcome,
        };
        let millis = self.task.run().started.elapsed().as_millis();
        End {
            outcome,
            stopped_by: stopped_by.filter(|_| is_leaving || outcome != Outcome::Completed),
            text: run.text.clone(),
            structured: run.structured.clone(),
            errors: run.errors.clone(),
            denials: run.denial_reasons.clone(),
            usage: run.used.last.clone(),
            cumulative_usage: run.used.total.clone(),
            dollars: run.used.dollars,
            model: self.driver.settings.model.clone(),
            turns: run.turns,
            duration_ms: u64::try_from(millis).unwrap_or(u64::MAX),
            evidence: run.evidence.clone(),
            shared: self.shared_context(),
            worktree: self.worktree_end.clone(),
            unconfined: self.agent.isolation.as_ref().and_then(|it| it.sandbox.isolation_fault()),
            outside: self.agent.isolation.as_ref().map(|it| it.outside()).unwrap_or_default(),
            has_reported: self.task.has_reported(),
            unread: 0,
            notification: self.shared.world.record_id(),
        }
    }

    /// The context shared with its parent, if it is a fork and has asked its provider.
    fn shared_context(&self) -> Option<SharedContext> {
        let context = self.task.spec.context.as_ref().filter(|_| self.task.spec.is_fork())?;
        let read = self.run.used.first.as_ref()?.counts.cache_read_input_tokens;
        Some(SharedContext { bytes: context.bytes, cache_read_tokens: read })
    }

    /// Shows the end to the views.
    fn show_end(&self, end: &End) {
        self.task.output.end(&notification::closing_words(end));
        write_meta(&self.shared, &self.task, Some(end));
        notification::show_ended(&self.shared, &self.task, end);
    }

    /// The slow part, in the background.
    async fn tidy_up(&mut self) {
        self.hooks.clear();
        self.driver.dispatch.agent.workspace.shells.shutdown().await;
        self.release_worktrees().await;
        if let Some(tasks) = self.shared.delegation.task_list_of(Some(&self.task.id)) {
            tasks.release(&self.shared).await;
        }
        for server in &self.servers {
            server.close().await;
        }
        let processes = self.shared.delegation.member_processes.as_ref();
        let has_left = self.task.end().is_some_and(|end| end.leaves_team());
        if let Some(processes) = processes.filter(|_| has_left) {
            processes.dismiss(&self.task.id).await;
        }
    }
}

fn count(delegation: &Delegation, end: &End) {
    delegation.count(|stats| match end.outcome {
        Outcome::Completed => stats.completed += 1,
        Outcome::Cancelled => match end.stopped_by {
            Some(Stopper::Person) => stats.killed.user += 1,
            Some(Stopper::Agent) => stats.killed.parent += 1,
            _ => stats.killed.system += 1,
        },
        _ => stats.failed += 1,
    });
}
