//! The `CronCreate` tool: a prompt for later.

use std::sync::Arc;

use centurion_permissions::Access;
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::agent::Agent;
use crate::schedule::{ScheduleRequest, moment};
use crate::tools::cron_list::{entry, schedules_of};

/// Schedules a prompt that you receive at its time, once or repeatedly. It arrives between your turns, after
/// all input of the user, while this session is open. Use it for what the user wants later or regularly:
/// reminders, watching a build or a deployment until it is done, a daily summary. Unless the user names a
/// minute, choose an odd one (7, 23, 48), not the full hour. A recurring schedule ends after seven days:
/// tell the user so.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CronCreateInput {
    /// Minute, hour, day of month, month and day of week in the user's local time: "23 9 * * mon-fri",
    /// "*/10 * * * *", "48 14 3 12 *". A day that one of both day fields names is enough.
    cron: String,
    /// The prompt. Include all that you need then: what to do, where, and why.
    prompt: String,
    /// True if it repeats (default), or runs at the next time only.
    recurring: Option<bool>,
    /// True if it is kept when the program ends and this session is resumed later. Only if the user wants
    /// that.
    durable: Option<bool>,
}

pub(crate) struct CronCreate(pub(crate) Arc<Agent>);

impl Tool for CronCreate {
    type Input = CronCreateInput;

    const NAME: &'static str = "CronCreate";

    fn is_read_only(&self, _: &CronCreateInput) -> bool {
        false
    }

    fn access(&self, _: &CronCreateInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(&self, input: CronCreateInput, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let shared = self.0.session()?;
        let schedules = schedules_of(&shared)?;
        let request = ScheduleRequest {
            cron: input.cron,
            prompt: input.prompt,
            recurring: input.recurring.unwrap_or(true),
            durable: input.durable.unwrap_or(false),
        };
        let made = schedules
            .create(&shared.queue, request)
            .map_err(|error| ToolError::failed(error.to_string()))?;
        let zone = &schedules.zone;
        let (id, cron) = (&made.schedule.id, made.schedule.cron.as_str());
        let next = made.due.map(|due| moment(due, zone)).unwrap_or_default();
        let until = match made.schedule.expires() {
            Some(end) => format!(", and then every time until {}", moment(end, zone)),
            None => ", once".to_owned(),
        };
        let lasts = if made.durable {
            "It is kept with the session, also when that is resumed."
        } else {
            "It ends with this process."
        };
        let text = format!(
            "Scheduled as {id}: `{cron}`, next on {next}{until}. {lasts} CronDelete takes it away."
        );
        Ok(ToolOutput::text(text).with_data(entry(&made)))
    }
}
