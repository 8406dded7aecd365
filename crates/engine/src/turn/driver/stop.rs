//! The end of a turn: hooks may want the agent to continue.

use std::sync::Arc;

use centurion_hooks::events::{BackgroundWork, Stop, StopFailure, StopVerdict, SubagentStop};
use centurion_hooks::{Event, HookResult};
use tokio_util::sync::CancellationToken;

use super::{Driver, ProviderFailure, Run};
use crate::agent::hooks::reminder;
use crate::agent::task::Task;
use centurion_journal::JournalError;
use centurion_protocol::markup::contain;
use centurion_protocol::sdk::{EventBody, Notification, System};

impl Driver {
    /// Tells whether hooks keep the agent from stopping. Then it has been told why.
    pub(super) async fn should_continue(
        &mut self,
        run: &mut Run,
        cancel: &CancellationToken,
    ) -> Result<bool, JournalError> {
        run.told_stop = true;
        let event = if self.identity().is_main() { Event::Stop } else { Event::SubagentStop };
        if let Some(reason) = self.goal_missed(run, cancel).await {
            self.add_notice(&reason)?;
            run.told_stop = false;
            return Ok(true);
        }
        if !self.dispatch.agent.has_hooks(event) {
            return Ok(false);
        }
        let fired = self.fire_stop(&run.text, cancel).await;
        self.notify_of_stop(&fired);
        // A hook that ends the run ends it where it ends anyway.
        if fired.effects.stop.is_some() {
            return Ok(false);
        }
        if !self.stop_rules.cap.should_continue(&fired.verdict) {
            if fired.verdict.should_continue {
                let message = "hooks kept the agent from stopping too often in a row; it stops now";
                self.dispatch.agent.inform("warning", message.to_owned());
            }
            return Ok(false);
        }
        let context = fired.context_for_model();
        let texts: Vec<String> = fired
            .verdict
            .instruction()
            .map(|text| contain(&text).into_owned())
            .into_iter()
            .chain(context.iter().map(|text| reminder(text)))
            .collect();
        self.add_notices(&texts)?;
        run.told_stop = false;
        Ok(true)
    }

    /// Tells hooks that the agent is done: the main agent's `Stop` is another event than that of all others.
    pub(crate) async fn fire_stop(
        &self,
        last_assistant_message: &str,
        cancel: &CancellationToken,
    ) -> HookResult<StopVerdict> {
        let background_tasks = self.background_work();
        let schedules = self.shared.schedules.as_ref();
        let session_crons = schedules.map(|it| it.work(&self.shared.queue)).unwrap_or_default();
        let stop_hook_active = self.stop_rules.cap.is_active();
        let agent = &self.dispatch.agent;
        match self.task() {
            None => {
                let stop = Stop {
                    stop_hook_active,
                    last_assistant_message,
                    background_tasks: &background_tasks,
                    session_crons: &session_crons,
                };
                agent.fire(&stop, cancel).await
            }
            Some(task) => {
                let stop = SubagentStop {
                    stop_hook_active,
                    agent_id: &task.id,
                    agent_type: &task.spec.agent_type,
                    agent_transcript_path: &task.transcript,
                    last_assistant_message,
                    background_tasks: &background_tasks,
                    session_crons: &session_crons,
                };
                agent.fire(&stop, cancel).await
            }
        }
    }

    /// Tells people who look on that hooks keep the main agent at work, or failed.
    fn notify_of_stop(&self, fired: &HookResult<StopVerdict>) {
        let text = match (fired.verdict.should_continue, fired.effects.errors.first()) {
            _ if !self.identity().is_main() => return,
            (true, _) => "A Stop hook wants the agent to continue".to_owned(),
            (false, Some(error)) => format!("A Stop hook failed: {}", error.message),
            (false, None) => return,
        };
        let event = Notification { key: "stop-hook-error", text, priority: "immediate" };
        self.shared.show(EventBody::System(System::Notification(event)));
    }

    /// Tells hooks that the provider failed for good.
    pub(super) async fn tell_failure(&self, run: &Run) {
        let Some(ProviderFailure { name: error, .. }) = run.failure else { return };
        let failure = StopFailure {
            error,
            error_details: run.errors.last().map(String::as_str),
            last_assistant_message: &run.text,
        };
        self.dispatch.agent.fire(&failure, &CancellationToken::new()).await;
    }

    pub(super) fn background_work(&self) -> Vec<BackgroundWork> {
        let work = |shell: centurion_tools::BackgroundShell| BackgroundWork {
            id: shell.id.to_string(),
            kind: "shell".to_owned(),
            status: "running".to_owned(),
            description: shell.description,
            command: Some(shell.command),
            ..BackgroundWork::default()
        };
        let agent = |task: Arc<Task>| BackgroundWork {
            id: task.id.to_string(),
            kind: if task.spec.team.is_some() { "teammate" } else { "subagent" }.to_owned(),
            status: "running".to_owned(),
            description: task.spec.description.clone(),
            agent_type: Some(task.spec.agent_type.clone()),
            name: task.spec.name.clone(),
            ..BackgroundWork::default()
        };
        let own = self.identity().id.as_ref();
        let agents = self.shared.delegation.running();
        let is_its = |task: &Arc<Task>| task.run().asker.as_ref().map(|asker| &asker.agent) == own;
        let below = agents.into_iter().filter(is_its);
        let shells = self.dispatch.agent.workspace.shells.running().into_iter().map(work);
        shells.chain(below.map(agent)).collect()
    }
}
