//! The `TaskUpdate` tool: claim a task, finish it, or change what it says.

use std::sync::Arc;

use centurion_hooks::events::TaskCompleted;
use centurion_permissions::Access;
use centurion_team::{Status, TaskNumber, TaskRequest, TeamName, UpdatedTask};
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::agent::Agent;
use crate::tools::send_message;
use crate::tools::task_list::{TaskDesk, hook_task, number, numbers};

/// Changes a task of the list. Set `in_progress` before you begin: the task is yours then, or you are told whose it
/// is. Set `completed` when it really is: not while tests fail or parts are missing. A task that waits for others
/// cannot be started.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct TaskUpdateInput {
    /// The task's number.
    task_id: String,
    subject: Option<String>,
    description: Option<String>,
    /// The subject while it is being done.
    active_form: Option<String>,
    status: Option<TaskStatus>,
    /// Numbers of tasks that wait for this one.
    add_blocks: Option<Vec<String>>,
    /// Numbers of tasks that this one waits for.
    add_blocked_by: Option<Vec<String>>,
    /// The name of the agent that is to do it; an empty name gives it back.
    owner: Option<String>,
    /// Added to what is there; `null` takes a key away.
    metadata: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TaskStatus {
    Pending,
    InProgress,
    Completed,
    Deleted,
}

impl From<TaskStatus> for Status {
    fn from(status: TaskStatus) -> Self {
        match status {
            TaskStatus::Pending => Self::Pending,
            TaskStatus::InProgress => Self::InProgress,
            TaskStatus::Completed => Self::Completed,
            TaskStatus::Deleted => Self::Deleted,
        }
    }
}

impl TaskUpdateInput {
    fn request(self) -> Result<TaskRequest, ToolError> {
        let numbers = |given: Option<Vec<String>>| -> Result<Vec<TaskNumber>, ToolError> {
            given.unwrap_or_default().iter().map(|text| number(text)).collect()
        };
        Ok(TaskRequest {
            subject: self.subject,
            description: self.description,
            active_form: self.active_form,
            status: self.status.map(Status::from),
            owner: self.owner,
            add_blocks: numbers(self.add_blocks)?,
            add_blocked_by: numbers(self.add_blocked_by)?,
            metadata: self.metadata.unwrap_or_default(),
            ..TaskRequest::new(number(&self.task_id)?)
        })
    }
}

pub(crate) struct TaskUpdate(pub(crate) Arc<Agent>);

impl Tool for TaskUpdate {
    type Input = TaskUpdateInput;

    const NAME: &'static str = "TaskUpdate";

    fn is_read_only(&self, _: &TaskUpdateInput) -> bool {
        false
    }

    fn access(&self, _: &TaskUpdateInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(
        &self,
        input: TaskUpdateInput,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let desk = TaskDesk::of(&self.0)?;
        let request = input.request()?;
        if request.status == Some(Status::Completed) {
            self.ask_hooks(&desk, &request, context).await?;
        }
        let updated = desk.with(move |list, actor, now| list.update(actor, &request, now)).await?;
        let mut text = told(&updated);
        // The change is made, whether its owner can be told or not.
        if updated.fields.contains(&"owner")
            && let Some(fault) = send_message::assign(&self.0, &updated.task, &context.call).await
        {
            text = format!("{text}\nThe new owner was not told: {fault}");
        }
        Ok(ToolOutput::text(text).with_data(data(&updated)))
    }
}

impl TaskUpdate {
    /// Has hooks say whether a task that can be completed is done. They are not asked about one that is refused, or
    /// completed already.
    async fn ask_hooks(
        &self,
        desk: &TaskDesk,
        request: &TaskRequest,
        context: &ToolContext,
    ) -> Result<(), ToolError> {
        let asked = request.clone();
        let judged = desk.with(move |list, actor, _| list.judge(actor, &asked)).await?;
        if judged.was.is_none() {
            return Ok(());
        }
        let number = judged.task.id.to_string();
        let team = desk.team();
        let team = team.as_ref().map(TeamName::as_str);
        let completed = TaskCompleted(hook_task(&number, &judged.task, &desk.worker, team));
        let fired = self.0.fire(&completed, &context.cancel).await;
        fired.verdict.reason().map_or(Ok(()), |reason| Err(ToolError::failed(reason)))
    }
}

/// The text for the model.
fn told(updated: &UpdatedTask) -> String {
    let id = updated.task.id;
    if updated.fields.is_empty() {
        return format!("Task #{id} is so already.");
    }
    let mut text = format!("Updated task #{id} {}", updated.fields.join(", "));
    if !updated.unblocked.is_empty() {
        text = format!("{text}\nCan be started now: {}", numbers(&updated.unblocked));
    }
    if updated.was.is_some() && updated.task.status == Status::Completed {
        text.push_str("\nLook at TaskList for what is next.");
    }
    text
}

fn data(updated: &UpdatedTask) -> Value {
    let mut data = json!({
        "success": true,
        "taskId": updated.task.id.to_string(),
        "updatedFields": updated.fields,
    });
    if let (Some(was), Some(fields)) = (updated.was, data.as_object_mut()) {
        let change = json!({"from": was, "to": updated.task.status});
        fields.insert("statusChange".to_owned(), change);
    }
    data
}
