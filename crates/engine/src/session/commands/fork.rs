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
        };
        let done = carry_out_skill(&self.shared, &agent, &skill, &context).await;
        let (text, is_failure) = match done {
            Ok(output) => (output.as_text(), false),
            Err(ToolError::FailedWith { message, .. }) => (message, true),
            Err(error) => (error.to_string(), true),
        };
        let (name, arguments) = (&skill.definition.name, typed.arguments);
        self.driver.say_command_output(name, arguments, &text)?;
        Ok(if is_failure { CommandEnd::Failed(text) } else { CommandEnd::Said(text) })
    }
}
