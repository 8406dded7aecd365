//! The `TaskList` tool, and what all tools about tasks have in common.

use std::sync::Arc;

use centurion_hooks::events;
use centurion_permissions::Access;
use centurion_protocol::Timestamp;
use centurion_team::{Actor, Task, TaskList, TaskListError, TaskNumber, TeamName};
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::agent::session_tasks::{Members, SessionTasks, TaskWorker};
use crate::agent::shared::Shared;

/// Lists the tasks of this session in order, with who works on them and which wait for others. Take one that is
/// pending, has no owner and waits for none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskListInput {}

pub(crate) struct TaskListTool(pub(crate) Arc<Agent>);

/// The list of the session, and the agent that works on it.
pub(crate) struct TaskDesk {
    shared: Arc<Shared>,
    tasks: Arc<SessionTasks>,
    pub(crate) worker: TaskWorker,
}

impl TaskDesk {
    pub(crate) fn of(agent: &Agent) -> Result<Self, ToolError> {
        let shared = agent.session()?;
        let tasks = shared.delegation.task_list_of(agent.identity.id.as_ref());
        let tasks = tasks.ok_or_else(|| ToolError::failed("this session has no task list"))?;
        Ok(Self { shared, tasks, worker: TaskWorker(agent.identity.task_name()) })
    }

    /// The name of the team that shares the list.
    pub(crate) fn team(&self) -> Option<TeamName> {
        self.shared.delegation.team.as_ref().map(|team| team.name())
    }

    pub(crate) async fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut TaskList, &Actor<'_>, Timestamp) -> Result<T, TaskListError>
        + Send
        + 'static,
    ) -> Result<T, ToolError> {
        let worker = self.worker.clone();
        let act = move |list: &mut TaskList, members: &Members, now| {
            act(list, &worker.actor(members), now)
        };
        self.tasks.with(&self.shared, act).await
    }
}

/// A task as hooks are told of it.
pub(crate) fn hook_task<'a>(
    number: &'a str,
    task: &'a Task,
    worker: &'a TaskWorker,
    team_name: Option<&'a str>,
) -> events::Task<'a> {
    events::Task {
        id: number,
        subject: &task.subject,
        description: Some(task.description.as_str()).filter(|text| !text.is_empty()),
        teammate_name: Some(worker.0.as_str()).filter(|_| !worker.is_lead()),
        team_name,
    }
}

/// The number that a model gave.
pub(crate) fn number(text: &str) -> Result<TaskNumber, ToolError> {
    text.parse().map_err(|_| {
        ToolError::Input(format!("{text:?} is no number of a task: TaskList has the numbers"))
    })
}

/// Numbers for a reader: `#1, #2`.
pub(crate) fn numbers(numbers: &[TaskNumber]) -> String {
    numbers.iter().map(|number| format!("#{number}")).collect::<Vec<_>>().join(", ")
}

/// Numbers as they are written on the wire.
pub(crate) fn texts<'a>(numbers: impl IntoIterator<Item = &'a TaskNumber>) -> Vec<String> {
    numbers.into_iter().map(ToString::to_string).collect()
}

/// A task in one line.
fn line(task: &Task, blockers: &[TaskNumber]) -> String {
    let owner = task.owner.as_ref().map(|owner| format!(" ({owner})")).unwrap_or_default();
    let waits = match blockers {
        [] => String::new(),
        blockers => format!(" [blocked by {}]", numbers(blockers)),
    };
    format!("#{} [{}] {}{owner}{waits}", task.id, task.status.as_str(), task.subject)
}

fn entry(task: &Task, blockers: &[TaskNumber]) -> Value {
    let mut entry = json!({
        "id": task.id.to_string(),
        "subject": task.subject,
        "status": task.status,
    });
    if let Some(fields) = entry.as_object_mut() {
        fields.extend(task.owner.as_ref().map(|owner| ("owner".to_owned(), json!(owner))));
        fields.insert("blockedBy".to_owned(), json!(texts(blockers)));
    }
    entry
}

impl Tool for TaskListTool {
    type Input = TaskListInput;

    const NAME: &'static str = "TaskList";

    fn is_read_only(&self, _: &TaskListInput) -> bool {
        true
    }

    fn access(&self, _: &TaskListInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(&self, _: TaskListInput, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let desk = TaskDesk::of(&self.0)?;
        let tasks = desk
            .with(|list, _, _| {
                let tasks = list.tasks()?;
                let blockers = tasks.iter().map(|task| list.open_blockers(task));
                let blockers: Vec<Vec<TaskNumber>> = blockers.collect();
                Ok(tasks.into_iter().zip(blockers).collect::<Vec<_>>())
            })
            .await?;
        let lines: Vec<String> = tasks.iter().map(|(task, it)| line(task, it)).collect();
        let text = if lines.is_empty() { "No tasks.".to_owned() } else { lines.join("\n") };
        let entries: Vec<Value> = tasks.iter().map(|(task, it)| entry(task, it)).collect();
        Ok(ToolOutput::text(text).with_data(json!({ "tasks": entries })))
    }
}
