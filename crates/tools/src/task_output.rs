//! The `TaskOutput` tool.

use std::time::Duration;

use centurion_permissions::Access;
use serde::Deserialize;
use serde_json::json;

use crate::bash::output_limit;
use crate::shell::{BackgroundShell, ShellExit, ShellState};
use crate::task_stop::unknown_task;
use crate::{AgentState, Tool, ToolContext, ToolError, ToolOutput};

/// Tells how a background task stands and what it has written so far, by default after waiting for
/// its end. You are told of an end without this; to look at output, Read the task's output file.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TaskOutputInput {
    /// The task's id.
    task_id: String,
    /// Whether to wait for the end.
    #[serde(default = "yes")]
    block: bool,
    /// The longest wait in milliseconds, at most 600000.
    #[serde(default = "half_a_minute")]
    timeout: u64,
}

fn yes() -> bool {
    true
}

fn half_a_minute() -> u64 {
    30_000
}

const LONGEST_WAIT: Duration = Duration::from_mins(10);

pub(crate) struct TaskOutput;

impl Tool for TaskOutput {
    type Input = TaskOutputInput;

    const NAME: &'static str = "TaskOutput";

    fn is_read_only(&self, _: &TaskOutputInput) -> bool {
        true
    }

    fn access(&self, _: &TaskOutputInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(
        &self,
        input: TaskOutputInput,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let shells = &context.workspace.shells;
        let patience = Duration::from_millis(input.timeout).min(LONGEST_WAIT);
        let agent = tokio::select! {
            biased;
            agent = context.workspace.host.agent_state(&input.task_id, input.block.then_some(patience)) => agent,
            () = context.cancel.cancelled() => return Err(ToolError::Cancelled { partial: None }),
        };
        if let Some(agent) = agent {
            return Ok(about_agent(&agent, input.block));
        }
        let shell = if input.block {
            tokio::select! {
                // An end that has come is reported, even to a cancelled call.
                biased;
                shell = shells.wait(&input.task_id, patience) => shell,
                () = context.cancel.cancelled() => {
                    return Err(ToolError::Cancelled { partial: None });
                }
            }
        } else {
            shells.get(&input.task_id)
        };
        let shell = shell.ok_or_else(|| unknown_task(&input.task_id, shells))?;
        let limit = output_limit(&context.workspace.env).success;
        let output = shells.output(&shell, limit).await;
        Ok(answer(&shell, input.block, output.trim_matches('\n')))
    }
}

fn about_agent(agent: &AgentState, waited: bool) -> ToolOutput {
    let AgentState { id, status, text, .. } = agent;
    let file = agent.output_file.display();
    let retrieval = match (*status, waited) {
        ("running", true) => "timeout",
        ("running", false) => "not_ready",
        _ => "success",
    };
    ToolOutput::text(format!("Agent {id}: {status}\nOutput file: {file}\n{text}")).with_data(
        json!({
            "retrieval_status": retrieval,
            "task": {
                "task_id": id,
                "task_type": "local_agent",
                "status": status,
                "description": agent.description,
                "output": text,
                "outputFile": agent.output_file,
            },
            "notification": agent.notification,
        }),
    )
}

fn answer(shell: &BackgroundShell, waited: bool, output: &str) -> ToolOutput {
    let (status, how) = status(&shell.state);
    let retrieval = match (&shell.state, waited) {
        (ShellState::Ended(_), _) => "success",
        (ShellState::Running, true) => "timeout",
        (ShellState::Running, false) => "not_ready",
    };
    let file = shell.output_file.display();
    let output_or_note = if output.is_empty() { "(no output)" } else { output };
    let text = format!("Task {}: {status}{how}\nOutput file: {file}\n{output_or_note}", shell.id);
    let exit_code = match &shell.state {
        ShellState::Ended(exit) => exit.code(),
        ShellState::Running => None,
    };
    ToolOutput::text(text).with_data(json!({
        "retrieval_status": retrieval,
        "task": {
            "task_id": shell.id,
            "task_type": "local_bash",
            "status": status,
            "description": shell.description,
            "output": output,
            "exitCode": exit_code,
            "outputFile": shell.output_file,
        },
    }))
}

/// The word for a state, and the reason of an end for the same sentence.
fn status(state: &ShellState) -> (&'static str, String) {
    let ShellState::Ended(exit) = state else { return ("running", String::new()) };
    match exit {
        ShellExit::Code(0) => ("completed", String::new()),
        ShellExit::Code(code) => ("failed", format!(", exit code {code}")),
        ShellExit::Signal(signal) => ("failed", format!(", ended by signal {signal}")),
        ShellExit::Stopped => ("killed", String::new()),
        ShellExit::TimedOut(timeout) => {
            ("killed", format!(", its {} ms were over", timeout.as_millis()))
        }
        ShellExit::Overflow => ("killed", ", it wrote too much".to_owned()),
        ShellExit::Lost(reason) => ("failed", format!(", {reason}")),
    }
}
