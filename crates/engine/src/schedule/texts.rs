//! Texts about schedules for the main agent.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{LIFETIME_DAYS, Schedule};
use centurion_protocol::markup::contain;

/// A moment, as people write it where the session is.
pub(crate) fn moment(time: Timestamp, zone: &TimeZone) -> String {
    time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M %Z").to_string()
}

/// The prompt of a schedule that is due.
pub(super) fn prompt(schedule: &Schedule, is_last: bool) -> String {
    let Schedule { id, cron, prompt, recurring, .. } = schedule;
    let cron = cron.as_str();
    let last = if is_last && *recurring {
        format!(
            " This was its last time: a schedule ends after {LIFETIME_DAYS} days. Create it again if it is \
             still wanted."
        )
    } else {
        String::new()
    };
    // The words are the agent's own: it invokes a skill by its tool and under its rules, not in a person's place.
    let is_skill = prompt.trim_start().starts_with('/');
    let skill =
        if is_skill { " `/name` means a skill: invoke it with the Skill tool." } else { "" };
    let prompt = contain(prompt);
    format!(
        "Schedule {id} (`{cron}`) is due. You set it up earlier; the user has not said this just now.{last}{skill}\n\n\
         {prompt}"
    )
}

/// A schedule that was due while the session was closed.
pub(super) struct MissedSchedule {
    pub(super) schedule: Schedule,
    /// When it should have come first.
    pub(super) due: Timestamp,
    /// When it is due again; `None` if it is over.
    pub(super) next: Option<Timestamp>,
}

/// Tells of everything that was missed at once.
pub(super) fn missed(missed: &[MissedSchedule], zone: &TimeZone) -> String {
    let mut text = "These schedules were due while this session was closed:".to_owned();
    for MissedSchedule { schedule, due, next } in missed {
        let Schedule { id, cron, prompt, recurring, .. } = schedule;
        let (cron, due) = (cron.as_str(), moment(*due, zone));
        let from = if *recurring { "from " } else { "" };
        let then = match next {
            Some(next) => format!("it comes again on {}", moment(*next, zone)),
            None => "it is over".to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "\n- {id} (`{cron}`), {from}{due}; {then}: {}", contain(prompt));
    }
    text.push_str(
        "\n\nDo now what of it is still wanted, and ask the user where that is not clear.",
    );
    text
}
