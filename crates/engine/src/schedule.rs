//! Schedules: prompts that the main agent of an assistant sets up for itself, for later and again and again.
//!
//! A schedule that is due becomes an item of the one queue, behind everything that people say, and never while
//! its last one still waits there. Without schedules nothing runs; with some, one timer waits for the earliest.
//! They end with the input: a session whose input has closed is not kept alive.

mod clock;
mod due;
mod expression;
mod notes;
mod texts;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use centurion_hooks::events::ScheduledWork;
use centurion_protocol::{Block, Env, World};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::Notify;

use self::clock::Clock;
pub(crate) use self::expression::{Expression, ExpressionError};
pub(crate) use self::notes::{RecordedSchedule, read};
use self::texts::MissedSchedule;
pub(crate) use self::texts::moment;
use crate::definition::rules::{DelegationRules, SessionMode};
use crate::message::manner::Manner;
use crate::message::queue::{Item, Origin, Priority, Queue};
use centurion_journal::{Journal, JournalError};

/// The most schedules at once.
const MOST: usize = 50;
/// After how many days one that recurs ends.
const LIFETIME_DAYS: i64 = 7;
const LIFETIME: SignedDuration = SignedDuration::from_hours(24 * LIFETIME_DAYS);
/// The longest wait before the wall clock is looked at again: timers stand still while a machine is
/// suspended.
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// Switches schedules off.
const SWITCH: &str = "CLAUDE_CODE_DISABLE_CRON";

/// A prompt for later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Schedule {
    pub(crate) id: String,
    pub(crate) cron: Expression,
    pub(crate) prompt: String,
    /// True if it comes again and again.
    pub(crate) recurring: bool,
    created: centurion_protocol::Timestamp,
}

impl Schedule {
    /// When it is due after a time; `None` if it is over by then.
    fn due_after(&self, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        self.cron.next(time, zone).filter(|due| self.expires().is_none_or(|end| *due <= end))
    }

    /// When it ends, if it recurs.
    pub(crate) fn expires(&self) -> Option<Timestamp> {
        self.recurring.then(|| self.created.checked_add(LIFETIME).unwrap_or(Timestamp::MAX))
    }
}

/// The reason why something cannot be done about a schedule; the model reads it.
#[derive(Debug, Error)]
pub(crate) enum ScheduleError {
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    #[error("`{0}` is never due, because no such month has such a day: choose another day")]
    Never(String),
    #[error(
        "`{cron}` is next due on {next}, and a schedule that recurs ends after {LIFETIME_DAYS} days: set \
         `recurring` to false to be told once, then"
    )]
    Rare { cron: String, next: String },
    #[error("the prompt is empty: say what is to be done when the time comes")]
    NoPrompt,
    #[error(
        "there are {MOST} schedules already, and no more fit: delete one with CronDelete first"
    )]
    TooMany,
    #[error(
        "this session keeps no record, and so nothing of it can outlive it: leave `durable` out"
    )]
    NotKept,
    #[error("nothing was changed, because it could not be recorded: {0}")]
    Unrecorded(#[from] JournalError),
    #[error("there is no schedule `{id}`; CronList shows those that there are")]
    Unknown { id: String },
}

/// A requested schedule.
pub(crate) struct ScheduleRequest {
    pub(crate) cron: String,
    pub(crate) prompt: String,
    pub(crate) recurring: bool,
    /// True if it outlives the process.
    pub(crate) durable: bool,
}

/// A schedule that is in force.
#[derive(Clone, Debug)]
pub(crate) struct ScheduleEntry {
    pub(crate) schedule: Schedule,
    pub(crate) durable: bool,
    /// When it is due; `None` once it was for the last time, until the turn with it is recorded.
    pub(crate) due: Option<Timestamp>,
}

/// The schedules of a session.
pub(crate) struct Schedules {
    clock: Clock,
    pub(crate) zone: TimeZone,
    /// The main agent's.
    journal: Arc<Journal>,
    /// In the order in which they were made.
    table: Mutex<Vec<ScheduleEntry>>,
    /// Wakes the timer when another schedule may be the earliest.
    changed: Notify,
}

impl Schedules {
    fn new(world: Arc<dyn World>, zone: TimeZone, journal: Arc<Journal>) -> Self {
        let (table, changed) = (Mutex::default(), Notify::new());
        Self { clock: Clock::new(world), zone, journal, table, changed }
    }

    /// The names of the tools about schedules.
    pub(crate) const TOOLS: [&str; 3] = ["CronCreate", "CronDelete", "CronList"];

    /// The table, without those that were due for the last time and have been told of.
    fn table(&self, queue: &Queue) -> MutexGuard<'_, Vec<ScheduleEntry>> {
        let mut table = self.table.lock();
        table.retain(|entry| entry.due.is_some() || queue.holds_schedule(&entry.schedule.id));
        table
    }

    pub(crate) fn create(
        &self,
        queue: &Queue,
        request: ScheduleRequest,
    ) -> Result<ScheduleEntry, ScheduleError> {
        let cron = Expression::parse(&request.cron)?;
        if request.prompt.trim().is_empty() {
            return Err(ScheduleError::NoPrompt);
        }
        let mut table = self.table(queue);
        if table.len() >= MOST {
            return Err(ScheduleError::TooMany);
        }
        let created = self.clock.now();
        let Some(next) = cron.next(created, &self.zone) else {
            return Err(ScheduleError::Never(cron.as_str().to_owned()));
        };
        let is_taken = |id: &str| table.iter().any(|entry| entry.schedule.id == id);
        let id = notes::new_id(&*self.clock.world, is_taken);
        let ScheduleRequest { prompt, recurring, durable, .. } = request;
        let schedule = Schedule { id, cron, prompt, recurring, created: created.into() };
        if schedule.expires().is_some_and(|end| next > end) {
            let (cron, next) = (schedule.cron.into(), moment(next, &self.zone));
            return Err(ScheduleError::Rare { cron, next });
        }
        if durable {
            if !self.journal.is_kept() {
                return Err(ScheduleError::NotKept);
            }
            notes::created(&self.journal, &schedule)?;
        }
        let entry = ScheduleEntry { schedule, durable, due: Some(next) };
        table.push(entry.clone());
        drop(table);
        self.changed.notify_one();
        Ok(entry)
    }

    pub(crate) fn delete(&self, queue: &Queue, id: &str) -> Result<ScheduleEntry, ScheduleError> {
        let mut table = self.table(queue);
        let Some(at) = table.iter().position(|entry| entry.schedule.id == id) else {
            return Err(ScheduleError::Unknown { id: id.to_owned() });
        };
        if table.get(at).is_some_and(|entry| entry.durable) {
            notes::deleted(&self.journal, id)?;
        }
        let entry = table.remove(at);
        queue.withdraw_schedule(id);
        Ok(entry)
    }

    pub(crate) fn list(&self, queue: &Queue) -> Vec<ScheduleEntry> {
        self.table(queue).clone()
    }

    /// Queues what is due, until the input is closed. Never ends by itself: the session drops it.
    pub(crate) async fn keep_time(&self, queue: &Queue) -> Infallible {
        loop {
            match self.wait() {
                None => self.changed.notified().await,
                Some(wait) => {
                    tokio::select! {
                        () = tokio::time::sleep(wait.min(LONGEST_WAIT)) => {}
                        () = self.changed.notified() => {}
                    }
                }
            }
            if queue.is_closed() {
                return std::future::pending().await;
            }
            self.queue_due(queue);
        }
    }

    /// The time until the earliest one.
    fn wait(&self) -> Option<Duration> {
        let table = self.table.lock();
        let earliest = table.iter().filter_map(|entry| entry.due).min()?;
        drop(table);
        let wait = earliest.duration_since(self.clock.now());
        Some(Duration::try_from(wait).unwrap_or_default())
    }

    /// Queues all that is due now, at once. One that still waits is not queued a second time.
    fn queue_due(&self, queue: &Queue) {
        let now = self.clock.now();
        for entry in &mut *self.table(queue) {
            let Some(due) = entry.due.filter(|due| *due <= now) else { continue };
            let schedule = &entry.schedule;
            // Times missed while the machine was suspended are skipped.
            entry.due = schedule.due_after(now, &self.zone).filter(|_| schedule.recurring);
            if !queue.holds_schedule(&schedule.id) {
                let text = texts::prompt(schedule, entry.due.is_none());
                let origin = Origin::Schedule { id: schedule.id.clone(), due };
                queue.push(self.item(text, origin));
            }
        }
    }

    /// The scheduled work, as hooks are told.
    pub(crate) fn work(&self, queue: &Queue) -> Vec<ScheduledWork> {
        let work = |ScheduleEntry { schedule, .. }: ScheduleEntry| ScheduledWork {
            id: schedule.id,
            schedule: schedule.cron.into(),
            recurring: schedule.recurring,
            prompt: schedule.prompt,
        };
        self.list(queue).into_iter().map(work).collect()
    }

    fn item(&self, text: String, origin: Origin) -> Item {
        Item {
            id: self.clock.world.record_id(),
            priority: Priority::Later,
            addressee: None,
            content: vec![Block::Text(text)],
            origin,
            manner: Manner::default(),
        }
    }

    /// Notes in the journal that the durable ones stay with the process, which continues as another session.
    pub(crate) fn leave(&self) -> Result<(), JournalError> {
        let durable = self.durable();
        durable.iter().try_for_each(|it| notes::deleted(&self.journal, &it.schedule.id))
    }

    /// Notes the durable ones in the journal of the session that the process continues as.
    pub(crate) fn note_again(&self, journal: &Journal, queue: &Queue) -> Result<(), JournalError> {
        let now = self.clock.now();
        self.durable().iter().try_for_each(|entry| {
            let is_pending = queue.holds_schedule(&entry.schedule.id);
            notes::continued(journal, &entry.schedule, (!is_pending).then_some(now))
        })
    }

    fn durable(&self) -> Vec<ScheduleEntry> {
        self.table.lock().iter().filter(|entry| entry.durable).cloned().collect()
    }

    /// Puts the schedules of a resumed session's journal in force again, and tells once of what was missed.
    pub(crate) fn restore(&self, queue: &Queue, kept: Vec<RecordedSchedule>) {
        let now = self.clock.now();
        let mut missed = Vec::new();
        let mut table = self.table(queue);
        for RecordedSchedule { schedule, told } in kept {
            let due = match schedule.due_after(told, &self.zone) {
                Some(due) if due <= now => {
                    // One that was to come once is over.
                    let next = schedule.due_after(now, &self.zone).filter(|_| schedule.recurring);
                    missed.push(MissedSchedule { schedule: schedule.clone(), due, next });
                    next
                }
                still_to_come => still_to_come,
            };
            if due.is_some() {
                table.push(ScheduleEntry { schedule, durable: true, due });
            }
        }
        drop(table);
        if !missed.is_empty() {
            let ids = missed.iter().map(|it| it.schedule.id.clone()).collect();
            let text = texts::missed(&missed, &self.zone);
            queue.push(self.item(text, Origin::MissedSchedules { ids, until: now }));
        }
        self.changed.notify_one();
    }
}

/// The schedules of a new session, if it is an assistant's or a person's who may loop, and they are not switched off.
pub(crate) fn of_session(
    world: &Arc<dyn World>,
    rules: &DelegationRules,
    env: &Env,
    zone: TimeZone,
    journal: &Arc<Journal>,
) -> Option<Schedules> {
    let is_wanted = rules.mode == SessionMode::Assistant || rules.loops;
    let is_on = is_wanted && !env.is_on(SWITCH);
    is_on.then(|| Schedules::new(Arc::clone(world), zone, Arc::clone(journal)))
}

/// Notes in the journal of a copied session that the schedules stay with the session it was copied from.
pub(crate) fn note_left_behind(
    journal: &Journal,
    kept: &[RecordedSchedule],
) -> Result<(), JournalError> {
    kept.iter().try_for_each(|it| notes::deleted(journal, &it.schedule.id))
}

#[cfg(test)]
mod tests;
