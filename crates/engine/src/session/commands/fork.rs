//! A typed skill that an agent of its own carries out: its report is the output of the command, and goes into the
//! conversation. And a task that a person gives to an agent which continues from where the main agent is.

use std::sync::Arc;

use centurion_config::skills::{SkillCatalog, SkillEntry};
use centurion_journal::JournalError;
use centurion_protocol::ToolUseId;
use centurion_tools::{ToolContext, ToolError};
use tokio_util::sync::CancellationToken;

use super::CommandEnd;
use crate::session::Session;
use crate::tools::agent_tool::{carry_out_skill, carry_out_subtask};
use crate::turn::skill::{Invoker, invoke};
use crate::turn::typed_command::TypedLine;

impl Session {
    /// Starts an agent that continues from here with a task of its own, beside the main agent.
    pub(super) async fn start_subtask(
        &mut self,
        task: &str,
        cancel: &CancellationToken,
    ) -> CommandEnd {
        if task.is_empty() {
            return CommandEnd::Failed("say what is to be done: /subtask TASK".to_owned());
        }
        let Some(point) = self.shared.main_point() else {
            return CommandEnd::Failed(
                "nothing has been said yet: ask the agent itself".to_owned(),
            );
        };
        let agent = Arc::clone(&self.driver.dispatch.agent);
        agent.note_settings(&self.driver.settings);
        let context = self.command_context(cancel);
        agent.set_fork_point(Some(point));
        let started = carry_out_subtask(&self.shared, &agent, task, &context).await;
        agent.set_fork_point(None);
        match started.map(|launched| launched.for_person()) {
            Ok(Ok(said)) => CommandEnd::Said(said),
            Ok(Err(cut_off)) => CommandEnd::Failed(cut_off.to_string()),
            Err(error) => CommandEnd::Failed(error.to_string()),
        }
    }

    /// The surroundings of a call that a command makes.
    fn command_context(&self, cancel: &CancellationToken) -> ToolContext {
        ToolContext {
            workspace: Arc::clone(&self.driver.dispatch.agent.workspace),
            call: ToolUseId::new(format!("command_{}", self.shared.world.record_id())),
            cancel: cancel.child_token(),
            decided: None,
            is_approved: false,
            moves_agent: true,
        }
    }

    /// Starts the agent of a skill, and waits for its report unless it works in the background.
    pub(super) async fn run_forked(
        &mut self,
        catalog: &SkillCatalog,
        entry: &SkillEntry,
        typed: &TypedLine<'_>,
        cancel: &CancellationToken,
    ) -> Result<CommandEnd, JournalError> {
        let agent = Arc::clone(&self.driver.dispatch.agent);
        agent.note_settings(&self.driver.settings);
        let given = (typed.arguments, Invoker::Person);
        let invoking = invoke(&self.shared, &agent, catalog, entry, given, cancel);
        let skill = match invoking.await {
            Ok(skill) => skill,
            Err(error) => return Ok(CommandEnd::Failed(error.to_string())),
        };
        let context = self.command_context(cancel);
        // The model reads more about it than the person does: that it is an agent's text, and how to continue with that.
        let (told, end) = match carry_out_skill(&self.shared, &agent, &skill, &context).await {
            Ok(launched) => {
                let told = launched.for_model(&agent).map(|output| output.as_text());
                let end = match launched.for_person() {
                    Ok(report) => CommandEnd::Said(report),
                    Err(cut_off) => CommandEnd::Failed(cut_off.to_string()),
                };
                (told, end)
            }
            Err(error) => (Ok(error.to_string()), CommandEnd::Failed(error.to_string())),
        };
        let told = told.unwrap_or_else(|error| match error {
            ToolError::FailedWith { message, .. } => message,
            other => other.to_string(),
        });
        self.driver.say_command_output(&skill.definition.name, typed.arguments, &told)?;
        Ok(end)
    }
}
