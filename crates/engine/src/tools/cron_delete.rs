//! The `CronDelete` tool: a schedule that is not wanted any more.

use std::sync::Arc;

use centurion_permissions::Access;
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::agent::Agent;
use crate::tools::cron_list::schedules_of;

/// Deletes a schedule, with the prompt that it has queued and you have not received yet.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CronDeleteInput {
    /// The id that `CronCreate` gave.
    id: String,
}

pub(crate) struct CronDelete(pub(crate) Arc<Agent>);

impl Tool for CronDelete {
    type Input = CronDeleteInput;

    const NAME: &'static str = "CronDelete";

    fn is_read_only(&self, _: &CronDeleteInput) -> bool {
        false
    }

    fn access(&self, _: &CronDeleteInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(&self, input: CronDeleteInput, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let shared = self.0.session()?;
        let schedules = schedules_of(&shared)?;
        let gone = schedules
            .delete(&shared.queue, input.id.trim())
            .map_err(|error| ToolError::failed(error.to_string()))?;
        let id = gone.schedule.id;
        let text = format!("Schedule {id} (`{}`) is deleted.", gone.schedule.cron.as_str());
        Ok(ToolOutput::text(text).with_data(json!({"id": id})))
    }
}
