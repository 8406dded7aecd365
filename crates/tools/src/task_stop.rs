//! The `TaskStop` tool.

use centurion_permissions::Access;
use serde::Deserialize;
use serde_json::json;

use crate::shell::{Shells, StopError};
use crate::{AgentStop, Tool, ToolContext, ToolError, ToolOutput};

/// Ends an agent, or a background command with every process that it started.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskStopInput {
    /// The id of the task, or of the agent.
    task_id: Option<String>,
    /// An older name for `task_id`.
    shell_id: Option<String>,
}

pub(crate) struct TaskStop;

impl Tool for TaskStop {
    type Input = TaskStopInput;

    const NAME: &'static str = "TaskStop";

    fn is_read_only(&self, _: &TaskStopInput) -> bool {
        false
    }

    fn access(&self, _: &TaskStopInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(
        &self,
        input: TaskStopInput,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let Some(id) = input.task_id.or(input.shell_id) else {
            return Err(ToolError::Input("give the id of a task as `task_id`".to_owned()));
        };
        if let Some(agent) = context.workspace.host.stop_agent(&id).await {
            return stopped_agent(
                &agent.map_err(|refusal| ToolError::Failed(refusal.to_string()))?,
            );
        }
        let shells = &context.workspace.shells;
        let shell = shells.stop(&id).await.map_err(|error| match error {
            StopError::Unknown => unknown_task(&id, shells),
            StopError::NotRunning => {
                ToolError::Failed(format!("task {id} is not running any more, nothing to stop"))
            }
        })?;
        let data = json!({
            "message": format!("Stopped task {id} and all its processes"),
            "task_id": shell.id,
            "task_type": "local_bash",
            "command": shell.command,
        });
        Ok(ToolOutput::text(data.to_string()).with_data(data))
    }
}

fn stopped_agent(agent: &AgentStop) -> Result<ToolOutput, ToolError> {
    let AgentStop { id, description, was_running } = agent;
    if !was_running {
        let reason = format!("task {id} is not running any more, nothing to stop");
        return Err(ToolError::Failed(reason));
    }
    let data = json!({
        "message": format!("Stopped agent {id} ({description})"),
        "task_id": id,
        "task_type": "local_agent",
        "command": description,
    });
    Ok(ToolOutput::text(data.to_string()).with_data(data))
}

/// Says that there is no such task, and lists the running ones.
pub(crate) fn unknown_task(id: &str, shells: &Shells) -> ToolError {
    let running: Vec<String> = shells
        .running()
        .into_iter()
        .map(|shell| format!("{} ({})", shell.id, shell.description))
        .collect();
    let running = match running.as_slice() {
        [] => "no background shell is running".to_owned(),
        running => format!("running now: {}", running.join(", ")),
    };
    ToolError::Failed(format!("there is no task {id:?}; {running}"))
}
