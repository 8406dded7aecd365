//! The `TeamDelete` tool: says whether all members of the team have ended. The team itself ends with its session.

use std::sync::Arc;

use centurion_permissions::Access;
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::agent::Agent;
use crate::agent::shared::Shared;
use crate::agent::team::Team;
use crate::message::titles::listed;

/// Dissolves your team once all members have ended. You need not call it: the team ends with the session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TeamDeleteInput {}

pub(crate) struct TeamDelete(pub(crate) Arc<Agent>);

/// The team of the session.
pub(super) fn team_of(shared: &Shared) -> Result<Arc<Team>, ToolError> {
    shared.delegation.team.clone().ok_or_else(|| ToolError::failed("teams are switched off"))
}

impl Tool for TeamDelete {
    type Input = TeamDeleteInput;

    const NAME: &'static str = "TeamDelete";

    fn is_read_only(&self, _: &TeamDeleteInput) -> bool {
        false
    }

    fn access(&self, _: &TeamDeleteInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(&self, _: TeamDeleteInput, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let shared = self.0.session()?;
        let members = team_of(&shared)?.members();
        let names = members.iter().filter_map(|task| task.spec.name.as_deref());
        let names: Vec<&str> = names.collect();
        let data = match names.len() {
            0 => json!({"success": true, "message": "The team has no members any more."}),
            count => json!({
                "success": false,
                "message": format!(
                    "Cannot clean up the team with {count} active member(s): {}. Ask them to end first.",
                    listed(names.iter(), ", ")
                ),
            }),
        };
        Ok(ToolOutput::text(data.to_string()).with_data(data))
    }
}
