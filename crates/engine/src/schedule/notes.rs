//! Notes about schedules that outlive their process, and reading them back.
//!
//! A note says that one was made, another that it was deleted. That one was told of is not noted: the record
//! of the turn that told of it says so, by its origin. What was due after that is pending.

use centurion_protocol::{self as protocol, World};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{MOST, Schedule};
use crate::message::queue::SCHEDULE;
use centurion_journal::{Journal, JournalError};

const CREATED: &str = "schedule_created";
const DELETED: &str = "schedule_deleted";
/// The field of a note that says until when nothing is pending.
const TOLD: &str = "told";

/// A schedule that a journal holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedSchedule {
    pub(super) schedule: Schedule,
    /// Until when nothing of it is pending.
    pub(super) told: Timestamp,
}

pub(super) fn created(journal: &Journal, schedule: &Schedule) -> Result<(), JournalError> {
    journal.note(CREATED, &json!(schedule)).map(drop)
}

/// Notes a schedule in another journal than the first. Nothing of it is pending from before `told`, if that is given.
pub(super) fn continued(
    journal: &Journal,
    schedule: &Schedule,
    told: Option<Timestamp>,
) -> Result<(), JournalError> {
    let mut note = json!(schedule);
    if let Some(told) = told {
        note[TOLD] = json!(protocol::Timestamp::from(told));
    }
    journal.note(CREATED, &note).map(drop)
}

pub(super) fn deleted(journal: &Journal, id: &str) -> Result<(), JournalError> {
    journal.note(DELETED, &json!({"id": id})).map(drop)
}

/// A line that may be about schedules.
#[derive(Deserialize)]
struct ScheduleLine {
    timestamp: protocol::Timestamp,
    subtype: Option<String>,
    #[serde(default)]
    data: Value,
    origin: Option<ToldNote>,
}

/// The origin of a turn that a schedule began.
#[derive(Deserialize)]
struct ToldNote {
    kind: String,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    missed: Vec<String>,
    due: Option<protocol::Timestamp>,
}

/// The schedules of a transcript with something pending.
pub(crate) fn read(text: &[u8]) -> Vec<RecordedSchedule> {
    let mut kept: Vec<RecordedSchedule> = Vec::new();
    // Nearly all transcripts have none.
    if memchr::memmem::find(text, CREATED.as_bytes()).is_none() {
        return kept;
    }
    let finder = memchr::memmem::Finder::new(SCHEDULE);
    for line in text.split(|byte| *byte == b'\n').filter(|line| finder.find(line).is_some()) {
        if let Ok(line) = serde_json::from_slice::<ScheduleLine>(line) {
            line.fold(&mut kept);
        }
    }
    kept.truncate(MOST);
    kept
}

impl ScheduleLine {
    fn fold(self, kept: &mut Vec<RecordedSchedule>) {
        match self.subtype.as_deref() {
            Some(CREATED) => {
                let told = self.data.get(TOLD).map(protocol::Timestamp::deserialize);
                let told = told.and_then(Result::ok).map(|told| *told);
                let schedule = serde_json::from_value::<Schedule>(self.data);
                kept.extend(schedule.map(|it| RecordedSchedule {
                    told: told.unwrap_or(*it.created),
                    schedule: it,
                }));
            }
            Some(DELETED) => kept.retain(|it| self.data["id"] != it.schedule.id),
            // A turn, or the note of one that a hook kept out.
            _ => {
                let noted = || ToldNote::deserialize(&self.data["origin"]).ok();
                if let Some(told) = self.origin.or_else(noted).filter(|it| it.kind == SCHEDULE) {
                    told.fold(*self.timestamp, kept);
                }
            }
        }
    }
}

impl ToldNote {
    fn fold(self, at: Timestamp, kept: &mut Vec<RecordedSchedule>) {
        let until = self.due.map_or(at, |due| (*due).max(at));
        let is_told = |schedule: &Schedule| {
            self.id.as_ref() == Some(&schedule.id) || self.missed.contains(&schedule.id)
        };
        kept.retain(|it| it.schedule.recurring || !is_told(&it.schedule));
        for it in kept.iter_mut().filter(|it| is_told(&it.schedule)) {
            it.told = it.told.max(until);
        }
    }
}

/// Eight characters that no other schedule has.
pub(super) fn new_id(world: &dyn World, is_taken: impl Fn(&str) -> bool) -> String {
    loop {
        let id = format!("{:08x}", world.random() >> 32);
        if !is_taken(&id) {
            return id;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Expression;

    fn schedule(id: &str, recurring: bool) -> Schedule {
        Schedule {
            id: id.to_owned(),
            cron: Expression::parse("0 9 * * *").unwrap(),
            prompt: "look".to_owned(),
            recurring,
            created: time("2026-01-01T00:00:00Z").into(),
        }
    }

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn note(subtype: &str, data: &Value) -> String {
        json!({"type": "system", "subtype": subtype, "data": data, "timestamp": "2026-01-01T00:00:01Z"})
            .to_string()
    }

    fn turn(origin: &Value, at: &str) -> String {
        json!({"type": "user", "origin": origin, "timestamp": at}).to_string()
    }

    fn told(lines: &[String]) -> Vec<(String, Timestamp)> {
        let kept = read(lines.join("\n").as_bytes());
        kept.into_iter().map(|it| (it.schedule.id, it.told)).collect()
    }

    #[test]
    fn what_was_made_and_neither_deleted_nor_told_of_is_owed() {
        // S-216
        let made = |id: &str, recurring| note(CREATED, &json!(schedule(id, recurring)));
        let mut lines = vec![
            made("aaaaaaaa", true),
            made("bbbbbbbb", false),
            made("cccccccc", true),
            made("dddddddd", false),
            made("eeeeeeee", false),
            "{\"torn".to_owned(),
            note(DELETED, &json!({"id": "cccccccc"})),
            turn(
                &json!({"kind": "schedule", "id": "aaaaaaaa", "due": "2026-01-01T09:00:00Z"}),
                "2026-01-01T09:03:00Z",
            ),
            turn(
                &json!({"kind": "schedule", "missed": ["dddddddd"], "due": "2026-01-02T00:00:00Z"}),
                "2026-01-02T00:00:01Z",
            ),
        ];
        let created = time("2026-01-01T00:00:00Z");
        let expected = [
            ("aaaaaaaa".to_owned(), time("2026-01-01T09:03:00Z")),
            ("bbbbbbbb".to_owned(), created),
            ("eeeeeeee".to_owned(), created),
        ];
        assert_eq!(told(&lines), expected);
        // A time that a hook kept out was not told, but it is not pending either.
        let origin = json!({"kind": "schedule", "id": "bbbbbbbb", "due": "2026-01-01T09:00:00Z"});
        lines.push(note("prompt_blocked", &json!({"item": "x", "reason": "no", "origin": origin})));
        assert_eq!(told(&lines), [expected[0].clone(), expected[2].clone()]);
    }

    #[test]
    fn text_that_looks_like_a_note_is_none() {
        // I-9
        let data = json!(schedule("aaaaaaaa", true));
        let call = json!({"type": "assistant", "timestamp": "2026-01-01T00:00:01Z", "message": {
            "content": [{"type": "tool_use", "input": {"subtype": CREATED, "data": data}}],
        }});
        assert_eq!(told(&[call.to_string()]), []);
    }

    #[test]
    fn an_id_is_eight_characters_and_is_drawn_again_where_it_is_taken() {
        let world = centurion_protocol::SeededWorld::new(1);
        let first = new_id(&world, |_| false);
        assert_eq!(first.len(), 8);
        let again = centurion_protocol::SeededWorld::new(1);
        let second = new_id(&again, |id| id == first);
        assert_ne!(first, second);
    }
}
