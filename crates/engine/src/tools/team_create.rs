//! The `TeamCreate` tool: gives the team of the session a name.

use std::sync::Arc;

use centurion_permissions::Access;
use centurion_team::{LEAD, TeamName};
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::agent::Agent;
use crate::tools::team_delete::team_of;

/// Names your team. You need not call it: an agent that you start with a name joins the team of this session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TeamCreateInput {
    /// The name: letters, digits, `_` and `-`.
    team_name: String,
    /// The purpose of the team.
    description: Option<String>,
    /// Your own role in it.
    agent_type: Option<String>,
}

pub(crate) struct TeamCreate(pub(crate) Arc<Agent>);

impl Tool for TeamCreate {
    type Input = TeamCreateInput;

    const NAME: &'static str = "TeamCreate";

    fn withheld(&self) -> &[&'static str] {
        &["agent_type"]
    }

    fn is_read_only(&self, _: &TeamCreateInput) -> bool {
        false
    }

    fn access(&self, _: &TeamCreateInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(&self, input: TeamCreateInput, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let shared = self.0.session()?;
        let team = team_of(&shared)?;
        let name: TeamName =
            input.team_name.trim().parse().map_err(|error| ToolError::Input(format!("{error}")))?;
        team.set_name(name.clone(), input.description)
            .map_err(|error| ToolError::Input(error.to_string()))?;
        let file = team.view().map(|view| view.files(&name).config_path());
        let data = json!({
            "team_name": name,
            "team_file_path": file,
            "lead_agent_id": format!("{LEAD}@{name}"),
            "agent_type": input.agent_type,
        });
        let text =
            format!("Your team is called {name}. Start its members with Agent and a `name`.");
        Ok(ToolOutput::text(text).with_data(data))
    }
}
