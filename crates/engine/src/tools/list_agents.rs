//! The `ListAgents` tool: who can be spoken to.

use std::fmt::Write as _;
use std::sync::Arc;

use centurion_permissions::Access;
use centurion_protocol::markup::contain;
use centurion_team::peers::LivePeer;
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::agent::task::Task;
use crate::tools::agent_tool::about;

/// Lists the agents of this session, those at work and those that have ended, with their ids and names. Other sessions
/// of the user that hear messages are listed with their addresses.
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
        let mut data = json!({"agents": tasks.iter().map(|task| entry(task)).collect::<Vec<_>>()});
        let sessions = match &shared.delegation.peers {
            Some(peers) => peers.live().await,
            None => Ok(Vec::new()),
        };
        match sessions {
            Ok(sessions) if sessions.is_empty() => {}
            Ok(sessions) => {
                // Writing to a text cannot fail.
                let _ = write!(text, "\nOther sessions ({}):", sessions.len());
                text.extend(sessions.iter().flat_map(|it| ["\n  ".to_owned(), in_words(it)]));
                data["sessions"] = sessions.iter().map(session_entry).collect();
            }
            Err(error) => {
                let _ = write!(text, "\nOther sessions cannot be listed: {error}");
            }
        }
        Ok(ToolOutput::text(text).with_data(data))
    }
}

fn in_words(session: &LivePeer) -> String {
    let words = format!("{} in {}", session.address(), session.introduction.cwd);
    // A session may work in a directory with any name.
    contain(&words).into_owned()
}

fn session_entry(session: &LivePeer) -> Value {
    json!({
        "address": session.address(),
        "sessionId": session.introduction.session,
        "cwd": session.introduction.cwd,
        "pid": session.pid,
        "socket": session.socket,
    })
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
