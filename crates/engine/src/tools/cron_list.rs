//! The `CronList` tool: the schedules that are in force.

use std::fmt::Write as _;
use std::sync::Arc;

use centurion_permissions::Access;
use centurion_protocol::Timestamp;
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::agent::shared::Shared;
use crate::schedule::{ScheduleEntry, Schedules, moment};

/// Lists the schedules of this session: their ids, when they are due next, and their prompts.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CronListInput {}

pub(crate) struct CronList(pub(crate) Arc<Agent>);

impl Tool for CronList {
    type Input = CronListInput;

    const NAME: &'static str = "CronList";

    fn is_read_only(&self, _: &CronListInput) -> bool {
        true
    }

    fn access(&self, _: &CronListInput, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(&self, _: CronListInput, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let shared = self.0.session()?;
        let schedules = schedules_of(&shared)?;
        let entries = schedules.list(&shared.queue);
        let mut text = format!("Schedules ({}):", entries.len());
        for entry in &entries {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n  {}", line(entry, &schedules.zone));
        }
        let data = json!({"schedules": entries.iter().map(entry).collect::<Vec<_>>()});
        Ok(ToolOutput::text(text).with_data(data))
    }
}

fn line(entry: &ScheduleEntry, zone: &TimeZone) -> String {
    let schedule = &entry.schedule;
    let next = match entry.due {
        Some(due) => format!("next on {}", moment(due, zone)),
        None => "due now, for the last time".to_owned(),
    };
    let until = match schedule.expires() {
        Some(end) => format!("until {}", moment(end, zone)),
        None => "once".to_owned(),
    };
    let durable = if entry.durable { ", durable" } else { "" };
    let (id, cron, prompt) = (&schedule.id, schedule.cron.as_str(), &schedule.prompt);
    format!("{id} (`{cron}`), {next}, {until}{durable}: {prompt}")
}

/// A schedule as hosts and transcripts have it.
pub(crate) fn entry(entry: &ScheduleEntry) -> Value {
    let schedule = &entry.schedule;
    json!({
        "id": schedule.id,
        "cron": schedule.cron,
        "prompt": schedule.prompt,
        "recurring": schedule.recurring,
        "durable": entry.durable,
        "next": entry.due.map(Timestamp::from),
        "expires": schedule.expires().map(Timestamp::from),
    })
}

/// The schedules of a session, or the reason why there are none.
pub(crate) fn schedules_of(shared: &Shared) -> Result<&Schedules, ToolError> {
    shared.schedules.as_ref().ok_or_else(|| {
        ToolError::failed("schedules are switched off in this session: do it now, or not at all")
    })
}
