//! The `ExitWorktree` tool: an agent comes back from a worktree that it entered.

use std::sync::Arc;

use centurion_permissions::Access;
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use centurion_worktree::Unsaved;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::agent::Agent;
use crate::agent::isolation::entered::Leaving;

/// Leaves the worktree that `EnterWorktree` entered, and returns to the directory before it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExitWorktreeInput {
    action: ExitAction,
    /// With `remove`: also delete work that exists only there. Ask the user first.
    discard_changes: Option<bool>,
}

/// `keep` leaves the directory and its branch, `remove` deletes both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ExitAction {
    Keep,
    Remove,
}

impl ExitWorktreeInput {
    fn leaving(&self) -> Leaving {
        match (self.action, self.discard_changes) {
            (ExitAction::Keep, _) => Leaving::Keep,
            (ExitAction::Remove, Some(true)) => Leaving::Remove(Unsaved::IsSaved),
            (ExitAction::Remove, _) => Leaving::Remove(Unsaved::Stays),
        }
    }
}

pub(crate) struct ExitWorktree(pub(crate) Arc<Agent>);

impl Tool for ExitWorktree {
    type Input = ExitWorktreeInput;

    const NAME: &'static str = "ExitWorktree";

    fn is_read_only(&self, _: &ExitWorktreeInput) -> bool {
        false
    }

    fn access(&self, input: &ExitWorktreeInput, context: &ToolContext) -> Access {
        match input.action {
            ExitAction::Keep => Access::Session,
            ExitAction::Remove => Access::Write(context.workspace.root()),
        }
    }

    async fn run(
        &self,
        input: ExitWorktreeInput,
        _: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let shared = self.0.session()?;
        let isolator = &shared.delegation.builder.isolator;
        let place = Box::pin(isolator.come_back(&self.0, input.leaving())).await;
        let place =
            place.map_err(|error| ToolError::failed(format!("Nothing was done: {error}.")))?;
        let (path, back) = (place.path.display(), place.came_from.display());
        let became = match input.leaving() {
            Leaving::Keep => "The worktree stays".to_owned(),
            Leaving::Remove(Unsaved::Stays) => "The worktree is removed".to_owned(),
            Leaving::Remove(Unsaved::IsSaved) => {
                let name = place.saved_as().unwrap_or("ID");
                format!(
                    "The worktree is removed; what was in it is saved, and `centurion worktrees restore {name}` brings it back"
                )
            }
        };
        let text = format!("Primary working directory: {back} (was {path}). {became}.");
        let data = json!({
            "action": if input.action == ExitAction::Keep { "keep" } else { "remove" },
            "originalCwd": place.came_from,
            "worktreePath": place.path,
            "worktreeBranch": place.branch,
            "message": text,
        });
        Ok(ToolOutput::text(text).with_data(data))
    }
}
