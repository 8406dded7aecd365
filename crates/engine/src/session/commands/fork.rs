//! A typed skill that an agent of its own carries out: its report is the output of the command, and goes into the
//! conversation.

use std::sync::Arc;

use centurion_config::skills::{SkillCatalog, SkillEntry};
use centurion_journal::JournalError;
use centurion_protocol::ToolUseId;
use centurion_tools::{ToolContext, ToolError};
use tokio_util::sync::CancellationToken;

use super::CommandEnd;
use crate::session::Session;
use crate::tools::agent_tool::carry_out_skill;
use crate::turn::skill::{Invoker, invoke};
use crate::turn::typed::Typed;

impl Session {
    /// Starts the agent of a skill, and waits for its report unless it works in the background.
    pub(super) async fn run_forked(
        &mut self,
        catalog: &SkillCatalog,
        entry: &SkillEntry,
        typed: &Typed<'_>,
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
        let context = ToolContext {
            workspace: Arc::clone(&agent.workspace),
            call: ToolUseId::new(format!("command_{}", self.shared.world.record_id())),
            cancel: cancel.child_token(),
            decided: None,
            is_approved: false,
            moves_agent: true,
        };
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
