//! The `TaskGet` tool: all about one task.

use std::fmt::Write as _;
use std::sync::Arc;

use centurion_permissions::Access;
use centurion_team::TaskNumber;
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::agent::Agent;
use crate::tools::task_list::{TaskDesk, number, numbers, texts};

/// Shows one task of the list whole: what is to be done, who does it, and which tasks wait for which.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct TaskGetInput {
    /// The task's number.
    task_id: String,
}

pub(crate) struct TaskGet(pub(crate) Arc<Agent>);

impl Tool for TaskGet {
    type Input = TaskGetInput;

    const NAME: &'static str = "TaskGet";

    fn is_read_only(&self, _: &TaskGetInput) -> bool {
        true
    }

    fn access(&self, _: &TaskGetInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(&self, input: TaskGetInput, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let id = number(&input.task_id)?;
        let desk = TaskDesk::of(&self.0)?;
        let (task, blockers) = desk
            .with(move |list, _, _| {
                let task = list.get(id)?;
                let blockers = list.open_blockers(&task);
                Ok((task, blockers))
            })
            .await?;
        let mut text = format!("Task #{id}: {}\nStatus: {}", task.subject, task.status.as_str());
        let mut line = |name: &str, value: &str| {
            if !value.is_empty() {
                // Writing to a string cannot fail.
                let _ = write!(text, "\n{name}: {value}");
            }
        };
        line("Owner", task.owner.as_deref().unwrap_or_default());
        line("Description", &task.description);
        line("Blocked by", &numbers(&blockers));
        line("Blocks", &numbers(&task.blocks.iter().copied().collect::<Vec<TaskNumber>>()));
        let data = json!({"task": {
            "id": id.to_string(),
            "subject": task.subject,
            "description": task.description,
            "status": task.status,
            "owner": task.owner,
            "blocks": texts(&task.blocks),
            "blockedBy": texts(&task.blocked_by),
            "metadata": task.metadata,
        }});
        Ok(ToolOutput::text(text).with_data(data))
    }
}
