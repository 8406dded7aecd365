//! The `TaskCreate` tool: a task for the list that agents share.

use std::sync::Arc;

use centurion_hooks::events::TaskCreated;
use centurion_permissions::Access;
use centurion_team::{NewTask, Status, TaskRequest, TeamName};
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::agent::Agent;
use crate::tools::task_list::{TaskDesk, hook_task};

/// Adds a task to the list that the agents of this session share and the user sees. Use it for work of three or
/// more steps, or when several things are asked at once; not for simple tasks. The task is open and has no owner:
/// start it with `TaskUpdate`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct TaskCreateInput {
    /// The work to do, in a few words: "Run the tests".
    subject: String,
    /// All that the agent needs to know to do it.
    description: String,
    /// The subject while it is being done: "Running the tests".
    active_form: Option<String>,
    /// Anything else that belongs to it.
    metadata: Option<Map<String, Value>>,
}

pub(crate) struct TaskCreate(pub(crate) Arc<Agent>);

impl Tool for TaskCreate {
    type Input = TaskCreateInput;

    const NAME: &'static str = "TaskCreate";

    fn is_read_only(&self, _: &TaskCreateInput) -> bool {
        false
    }

    fn access(&self, _: &TaskCreateInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(
        &self,
        input: TaskCreateInput,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let desk = TaskDesk::of(&self.0)?;
        let new = NewTask {
            subject: input.subject,
            description: input.description,
            active_form: input.active_form,
            metadata: input.metadata.unwrap_or_default(),
        };
        let task = desk.with(move |list, actor, now| list.create(actor, new, now)).await?;
        let number = task.id.to_string();
        let team = desk.team();
        let team = team.as_ref().map(TeamName::as_str);
        let created = TaskCreated(hook_task(&number, &task, &desk.worker, team));
        let fired = self.0.fire(&created, &context.cancel).await;
        if let Some(reason) = fired.verdict.reason() {
            let taken_back =
                TaskRequest { status: Some(Status::Deleted), ..TaskRequest::new(task.id) };
            desk.with(move |list, actor, now| list.update(actor, &taken_back, now)).await?;
            return Err(ToolError::failed(reason));
        }
        let text = format!("Task #{number} created successfully: {}", task.subject);
        let data = json!({"task": {"id": number, "subject": task.subject}});
        Ok(ToolOutput::text(text).with_data(data))
    }
}
