//! The `ListAgents` tool: who can be spoken to.

use std::sync::Arc;

use centurion_permissions::Access;
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::agent::task::Task;
use crate::tools::agent_tool::about;

/// Lists the agents of this session, those at work and those that have ended, with their ids and names.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListAgentsInput {}

pub(crate) struct ListAgents(pub(crate) Arc<Agent>);

impl Tool for ListAgents {
    type Input = ListAgentsInput;

    const NAME: &'static str = "ListAgents";

    fn is_read_only(&self, _: &ListAgentsInput) -> bool {
        true
    }

    fn access(&self, _: &ListAgentsInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(&self, _: ListAgentsInput, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let shared = self.0.session()?;
        let tasks = shared.delegation.tasks();
        let mut text = format!("Subagents ({}):", tasks.len());
        for task in &tasks {
            text.extend(["\n  ", &about(task)]);
        }
        let data = json!({"agents": tasks.iter().map(|task| entry(task)).collect::<Vec<_>>()});
        Ok(ToolOutput::text(text).with_data(data))
    }
}

fn entry(task: &Task) -> Value {
    json!({
        "agentId": task.id,
        "name": task.identity.name,
        "agentType": task.spec.agent_type,
        "description": task.spec.description,
        "status": task.end().map_or("running", |end| end.status()),
        "depth": task.identity.depth,
        "parent": task.identity.parent,
        "isBackground": task.is_background(),
        "outputFile": task.output.path(),
        "summary": task.progress().summary.filter(|_| task.is_running()),
    })
}
