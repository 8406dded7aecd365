//! One run of the main agent: from the items that are due to a result that is recorded and shown.
//!
//! A panic ends the main agent as `fault`, as it ends any other agent, and the session with it: the panic may have
//! left the conversation in memory half changed. A resume reads the transcript, which is whole.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use centurion_protocol::sdk::{EventBody, SessionWritesLost, System};
use centurion_protocol::{Block, Outcome};
use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Session, report};
use crate::delegate::spawn::panic_words;
use crate::message::manner::Manner;
use crate::message::queue::{Item, Origin, Priority};
use crate::turn::commands::{TypedCommand, command_names, command_of};
use crate::turn::driver::Run;
use crate::turn::skill::is_for_program;
use centurion_journal::transcript::{MAIN_AGENT, last_title};
use centurion_journal::{Journal, JournalError};

/// The end of a turn of the main agent.
pub(super) enum RunEnd {
    Ran(Outcome),
    /// Another process has the transcript.
    Refused,
}

impl Session {
    /// Runs the main agent with these items. Returns how the run ended, also when the program fails in it.
    pub(super) async fn run_once(&mut self, items: &[Item]) -> RunEnd {
        let mut run = Run::new();
        if let Err(error) = self.take_transcript() {
            return self.refuse(run, items, &error).await;
        }
        let cancel = self.shared.begin_run();
        let mut items = items.to_vec();
        let ran = AssertUnwindSafe(self.carry_out(&mut run, &mut items, &cancel));
        match ran.catch_unwind().await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                run.outcome = Outcome::JournalFailed;
                run.errors.push(error.to_string());
                self.tell_lost(&error);
            }
            Err(panic) => self.fail(&mut run, &panic_words(&*panic)),
        }
        self.shared.end_run();
        self.settle_asks();
        RunEnd::Ran(self.report(&run, items.first().and_then(Item::origin_for_hosts)).await)
    }

    /// Tells hosts that records are lost because there is no room for them.
    fn tell_lost(&self, error: &JournalError) {
        let Some(error_code) = error.lack_of_room() else { return };
        let (lost, transcript_session_ids) = (["transcript"], [self.shared.id()]);
        let event = SessionWritesLost { error_code, lost, transcript_session_ids };
        self.shared.show(EventBody::System(System::SessionWritesLost(event)));
    }

    /// Takes the transcript back, which other processes may have used while the session was idle.
    fn take_transcript(&self) -> Result<(), JournalError> {
        let news = self.driver.journal.wake()?;
        if let Some(title) = last_title(&news) {
            self.shared.set_title(Some(title));
        }
        Ok(())
    }

    /// Records what was said only for the conversation, and what no turn took along: a later process begins with it.
    pub(super) fn record_quiet(&mut self) -> Result<(), JournalError> {
        let is_quiet = |item: &Item| item.manner.is_quiet && matches!(item.origin, Origin::Person);
        let mut quiet = self.shared.queue.pending(None);
        quiet.retain(is_quiet);
        if quiet.is_empty() {
            return Ok(());
        }
        self.take_transcript()?;
        self.driver.take_note(&quiet)
    }

    /// Ends a run before it begins: the transcript is another process's now. Nothing was done, and a later prompt may
    /// find the transcript free.
    async fn refuse(&mut self, mut run: Run, items: &[Item], error: &JournalError) -> RunEnd {
        run.outcome = Outcome::JournalFailed;
        run.errors.push(error.to_string());
        // Mail stays pending in the transcript, for the process that continues with it.
        let ids: Vec<_> = items.iter().map(|item| item.id).collect();
        self.shared.queue.delivered(&ids);
        let origin = items.first().and_then(Item::origin_for_hosts);
        self.report(&run, origin).await;
        RunEnd::Refused
    }

    /// The program failed while the main agent was idle: that is the end of a run, too, because hosts wait for a result.
    pub(super) async fn fail_between_runs(&mut self, reason: &str) -> Outcome {
        self.shared.queue.abandon();
        self.shared.end_run();
        let mut run = Run::new();
        self.fail(&mut run, reason);
        self.report(&run, None).await
    }

    /// Questions of members of the team that the main agent has read and not answered in the run are denied.
    fn settle_asks(&self) {
        if let Some(team) = &self.shared.delegation.team {
            let unread = self.shared.queue.pending(None);
            team.drop_asks(|mail| unread.iter().any(|item| item.id == *mail));
        }
    }

    fn fail(&self, run: &mut Run, reason: &str) {
        run.outcome = Outcome::Fault;
        run.errors.push(format!("the run was ended by a fault of the program: {reason}"));
        run.denials.extend(self.driver.dispatch.agent.take_denials());
    }

    async fn carry_out(
        &mut self,
        run: &mut Run,
        items: &mut Vec<Item>,
        cancel: &CancellationToken,
    ) -> Result<(), JournalError> {
        self.prepare(items, cancel).await;
        self.show_state("running");
        self.shared.show(EventBody::System(System::Init(Arc::clone(&self.init))));
        self.leave_quiet(items);
        if self.run_command(run, items, cancel).await? {
            return Ok(());
        }
        self.driver.run(run, items, cancel).await
    }

    /// Leaves what begins no turn for a turn of the model, where a command of the program is due.
    fn leave_quiet(&self, items: &mut Vec<Item>) {
        let first = items.iter().find(|item| !item.manner.is_quiet);
        let typed = first.and_then(|item| command_of(&self.shared, item));
        if typed.is_some_and(|typed| is_for_program(&self.shared, &typed)) {
            items.retain(|item| !item.manner.is_quiet);
        }
    }

    /// Brings the main agent up to date: hooks, servers, skills, agents and what a host has chosen.
    async fn prepare(&mut self, items: &mut Vec<Item>, cancel: &CancellationToken) {
        if self.begins.is_some() {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = self.shared.servers.settle(self.server_patience) => {}
            }
        }
        let settling = self.shared.servers.settle_newcomers(self.server_patience);
        if let Some(settling) = settling {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = settling => {}
            }
        }
        // A run that is cancelled already begins nothing that hooks would have to be told the end of.
        if !cancel.is_cancelled()
            && let Some(source) = self.begins.take()
        {
            self.take_initial_prompt();
            if !self.driver.journal.has_begun() {
                self.shared.record_title();
            }
            if let Err(error) = self.record_agent(&self.driver.journal) {
                tracing::error!(%error, "the agent of the session could not be recorded");
            }
            if let Some(memory) = &self.memory {
                memory.prepare(&self.shared);
            }
            self.begin(source, cancel).await;
            *items = self.shared.queue.pending(None);
        } else {
            // Hooks are asked about what changed since the last look: before that is forgotten.
            self.driver.dispatch.agent.refresh_skills(cancel).await;
            self.shared.delegation.definitions.expire_skills();
        }
        if items.iter().any(|item| matches!(item.origin, Origin::Person)) {
            self.driver.end_skills();
        }
        if let Some(model) = self.shared.take_chosen_model() {
            Arc::make_mut(&mut self.init).model.clone_from(&model);
            self.driver.settings.model = model;
        }
        if let Some(thinking) = self.shared.take_chosen_thinking() {
            self.driver.settings.thinking = thinking;
        }
        if let Some(effort) = self.shared.take_chosen_effort() {
            self.driver.settings.effort = effort.level();
        }
        for directory in self.shared.take_new_directories() {
            // For every file there, these are the directory's instructions.
            if let Some(text) = self.driver.newly_applied(&directory.join("CLAUDE.md")).await {
                self.shared.add_side_note(None, text);
            }
        }
        self.driver.refresh_servers();
        self.driver.refresh_agents();
        self.driver.refresh_skill_tool();
        self.describe();
    }

    /// Brings what hosts are told at the start of a run up to date.
    fn describe(&mut self) {
        self.driver.keep_context_files();
        let (agents, handle) = (self.agent_names(), self.handle());
        let tools = self.driver.dispatch.toolbox.all_names();
        let init = Arc::make_mut(&mut self.init);
        init.tools = tools.map(|name| public_name(name).to_owned()).collect();
        init.agents = agents;
        init.plugins = self.shared.plugins();
        init.effort = self.driver.settings.effort;
        init.mcp_servers = self.shared.servers.statuses();
        init.skills = handle.skill_names();
        let earlier = std::mem::replace(&mut init.slash_commands, command_names(&self.shared));
        init.permission_mode = self.shared.permissions.mode().to_string();
        if !earlier.is_empty() && earlier != init.slash_commands {
            let commands = handle.commands().into_iter().map(TypedCommand::for_hosts).collect();
            self.shared.show(EventBody::System(System::CommandsChanged { commands }));
        }
    }

    /// Records and shows how a run ended. A result that cannot be shown makes a good run a bad one.
    async fn report(&mut self, run: &Run, origin: Option<Value>) -> Outcome {
        let reporting = AssertUnwindSafe(async {
            let index = self.results.next_index();
            let result =
                report::result(&self.shared, run, self.driver.early.prompts(), index, origin);
            if let Err(error) = report::record(&self.driver.journal, run, &result).await {
                tracing::error!(%error, "the end of the run could not be recorded");
            }
            if self.is_idle() {
                // Before a host reads the result: it may resume the session in another process at once.
                self.driver.journal.rest();
            }
            self.results.take(&self.shared, result);
            if self.is_idle() {
                self.show_state("idle");
            }
        });
        match reporting.catch_unwind().await {
            Ok(()) => run.outcome,
            Err(panic) => {
                log_fault("the result of a run", &*panic);
                Outcome::Fault
            }
        }
    }

    /// Puts what the agent's definition says first before the first input.
    fn take_initial_prompt(&mut self) {
        if let Some(initial) = self.initial_prompt.take() {
            // The program's own commands are for people.
            let is_command = initial.trim_start().starts_with('/');
            self.shared.queue.push(Item {
                id: self.shared.world.record_id(),
                priority: Priority::Now,
                addressee: None,
                content: vec![Block::Text(initial)],
                origin: if is_command { Origin::Initial } else { Origin::Person },
                manner: Manner::default(),
            });
        }
    }

    /// Notes which agent the session runs as, for a later resume.
    pub(super) fn record_agent(&self, journal: &Journal) -> Result<(), JournalError> {
        if let Some(kind) = &self.driver.identity().kind {
            journal.note(MAIN_AGENT, &json!({"agent": kind}))?;
        }
        Ok(())
    }

    /// The types of agents that can be asked for, as hosts are told.
    fn agent_names(&self) -> Vec<String> {
        let agents = self.handle().agents();
        agents.iter().map(|agent| agent.definition.name.value.clone()).collect()
    }
}

/// Awaits a step of a session's end. A panic in it is logged, and the next step follows.
pub(super) async fn or_log<T>(step: &'static str, work: impl Future<Output = T>) {
    if let Err(panic) = AssertUnwindSafe(work).catch_unwind().await {
        log_fault(step, &*panic);
    }
}

pub(super) fn log_fault(step: &'static str, panic: &(dyn Any + Send)) {
    tracing::error!(step, reason = panic_words(panic), "a fault of the program");
}

/// The name that hosts know a tool by.
fn public_name(tool: &str) -> &str {
    if tool == "Agent" { "Task" } else { tool }
}
