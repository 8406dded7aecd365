//! The end of a turn: hooks may want the agent to go on.

use centurion_hooks::Event;
use centurion_hooks::events::{BackgroundWork, Stop, StopFailure};
use tokio_util::sync::CancellationToken;

use super::{Driver, Run};
use crate::hooks::reminder;
use crate::journal::JournalError;
use crate::markup::contain;

impl Driver {
    /// Whether hooks keep the agent from stopping. Then it has been told why.
    pub(super) async fn goes_on(
        &mut self,
        run: &Run,
        cancel: &CancellationToken,
    ) -> Result<bool, JournalError> {
        if self.dispatch.hooks.has_none(Event::Stop) {
            return Ok(false);
        }
        let background_tasks = self.background_work();
        let stop = Stop {
            stop_hook_active: self.stop_cap.is_active(),
            last_assistant_message: &run.text,
            background_tasks: &background_tasks,
            session_crons: &[],
        };
        let fired = self.dispatch.hooks.fire(&stop, cancel).await;
        // A hook that ends the run ends it where it ends anyway.
        if fired.effects.stop.is_some() {
            return Ok(false);
        }
        if !self.stop_cap.goes_on(&fired.verdict) {
            if fired.verdict.goes_on {
                let message = "hooks kept the agent from stopping too often in a row; it stops now";
                self.shared.inform("warning", message.to_owned());
            }
            return Ok(false);
        }
        let context = fired.context_for_model();
        let texts: Vec<String> = fired
            .verdict
            .instruction()
            .map(|text| contain(&text))
            .into_iter()
            .chain(context.iter().map(|text| reminder(text)))
            .collect();
        self.say_all(&texts)?;
        Ok(true)
    }

    /// Tells hooks that the provider failed for good.
    pub(super) async fn tell_failure(&self, run: &Run) {
        let Some(error) = run.failure else { return };
        let failure = StopFailure {
            error,
            error_details: run.errors.last().map(String::as_str),
            last_assistant_message: &run.text,
        };
        self.dispatch.hooks.fire(&failure, &CancellationToken::new()).await;
    }

    fn background_work(&self) -> Vec<BackgroundWork> {
        let work = |shell: centurion_tools::BackgroundShell| BackgroundWork {
            id: shell.id.to_string(),
            kind: "shell".to_owned(),
            status: "running".to_owned(),
            description: shell.description,
            command: Some(shell.command),
            ..BackgroundWork::default()
        };
        self.dispatch.workspace.shells.running().into_iter().map(work).collect()
    }
}
