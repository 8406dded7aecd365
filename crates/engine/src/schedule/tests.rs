//! Schedules and their queue, on a paused clock and with a wall clock that is set by hand.

use std::time::Duration;

use centurion_protocol::{SeededWorld, SessionId};

use super::*;
use centurion_journal::{Redaction, Stamp};

/// A world whose clock stands where it is set.
struct Wall {
    ids: SeededWorld,
    now: Mutex<Timestamp>,
}

impl Wall {
    fn at(now: &str) -> Arc<Self> {
        Arc::new(Self { ids: SeededWorld::new(5), now: Mutex::new(time(now)) })
    }

    fn set(&self, now: &str) {
        *self.now.lock() = time(now);
    }
}

impl World for Wall {
    fn now(&self) -> Timestamp {
        *self.now.lock()
    }

    fn random(&self) -> u64 {
        self.ids.random()
    }
}

/// Schedules with their queue, and nothing around them.
struct Stage {
    schedules: Schedules,
    queue: Queue,
    wall: Arc<Wall>,
}

impl Stage {
    /// It is a Thursday, and the year begins.
    fn new() -> Self {
        Self::at("2026-01-01T00:00:00Z")
    }

    fn at(now: &str) -> Self {
        let wall = Wall::at(now);
        let world = Arc::clone(&wall) as Arc<dyn World>;
        let journal = Arc::new(Journal::nowhere(stamp(), Arc::clone(&world)));
        let schedules = Schedules::new(world, TimeZone::UTC, journal);
        Self { schedules, queue: Queue::default(), wall }
    }

    fn create(&self, cron: &str, recurring: bool) -> Result<ScheduleEntry, ScheduleError> {
        let (cron, prompt) = (cron.to_owned(), format!("look at {cron}"));
        self.schedules
            .create(&self.queue, ScheduleRequest { cron, prompt, recurring, durable: false })
    }

    /// Lets time pass, as measured by timers.
    async fn pass(&self, time: Duration) {
        let kept = tokio::time::timeout(time, self.schedules.keep_time(&self.queue)).await;
        assert!(kept.is_err(), "keeping time does not end");
    }

    /// The pending items, each with the time at which it was due.
    fn waiting(&self) -> Vec<(String, String)> {
        let told = |item: Item| match (item.origin, item.content.into_iter().next()) {
            (Origin::Schedule { due, .. }, Some(Block::Text(text))) => (due.to_string(), text),
            other => panic!("{other:?}"),
        };
        self.queue.pending(None).into_iter().map(told).collect()
    }

    /// Delivers what waits; when it was due.
    fn deliver(&self) -> Vec<String> {
        let due = self.waiting().into_iter().map(|(due, _)| due).collect();
        let ids: Vec<_> = self.queue.pending(None).iter().map(|item| item.id).collect();
        self.queue.delivered(&ids);
        due
    }

    fn ids(&self) -> Vec<String> {
        self.schedules.list(&self.queue).into_iter().map(|entry| entry.schedule.id).collect()
    }
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn stamp() -> Stamp {
    Stamp {
        session: SessionId(SeededWorld::new(1).uuid()),
        agent: None,
        cwd: String::new(),
        git_branch: String::new(),
        entrypoint: String::new(),
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_is_due_waits_once_in_the_queue_and_comes_again_after_it_was_told() {
    // S-216
    let stage = Stage::new();
    let made = stage.create("*/5 * * * *", true).unwrap();
    assert_eq!(made.due, Some(time("2026-01-01T00:05:00Z")));
    stage.pass(Duration::from_secs(299)).await;
    assert!(stage.waiting().is_empty(), "not before its time");
    stage.pass(Duration::from_secs(2)).await;
    let [(due, text)] = &stage.waiting()[..] else { panic!("{:?}", stage.waiting()) };
    assert_eq!(due, "2026-01-01T00:05:00Z");
    let id = &made.schedule.id;
    assert!(text.starts_with(&format!("Schedule {id} (`*/5 * * * *`) is due.")), "{text}");
    assert!(text.ends_with("\n\nlook at */5 * * * *"), "{text}");
    stage.pass(Duration::from_mins(11)).await;
    assert_eq!(stage.deliver(), ["2026-01-01T00:05:00Z"], "the same does not wait twice");
    stage.pass(Duration::from_mins(5)).await;
    assert_eq!(stage.deliver(), ["2026-01-01T00:20:00Z"]);
}

#[tokio::test(start_paused = true)]
async fn several_that_are_due_are_queued_at_once() {
    // S-286
    let stage = Stage::new();
    for cron in ["1 * * * *", "*/1 * * * *", "2 * * * *"] {
        stage.create(cron, true).unwrap();
    }
    stage.pass(Duration::from_secs(61)).await;
    let prompts: Vec<String> = stage.waiting().into_iter().map(|(_, text)| text).collect();
    assert_eq!(prompts.len(), 2);
    assert!(
        prompts[0].contains("look at 1 *") && prompts[1].contains("look at */1"),
        "{prompts:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_comes_once_is_gone_when_it_was_told_and_not_before() {
    let stage = Stage::new();
    let id = stage.create("30 0 * * *", false).unwrap().schedule.id;
    stage.pass(Duration::from_mins(31)).await;
    assert_eq!(stage.ids(), [id], "it still waits");
    assert_eq!(stage.deliver(), ["2026-01-01T00:30:00Z"]);
    assert!(stage.ids().is_empty());
    stage.pass(Duration::from_hours(48)).await;
    assert!(stage.waiting().is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_that_is_deleted_does_not_come_though_it_waited_already() {
    let stage = Stage::new();
    let (gone, stays) =
        (stage.create("1 * * * *", true).unwrap(), stage.create("1 * * * *", true).unwrap());
    stage.pass(Duration::from_secs(61)).await;
    assert_eq!(stage.waiting().len(), 2);
    stage.schedules.delete(&stage.queue, &gone.schedule.id).unwrap();
    assert_eq!(stage.ids(), std::slice::from_ref(&stays.schedule.id));
    let [(_, text)] = &stage.waiting()[..] else { panic!("{:?}", stage.waiting()) };
    assert!(text.contains(&stays.schedule.id), "{text}");
    let again = stage.schedules.delete(&stage.queue, &gone.schedule.id).unwrap_err().to_string();
    assert!(again.contains("there is no schedule") && again.contains("CronList"), "{again}");
}

#[tokio::test(start_paused = true)]
async fn one_that_recurs_says_that_it_is_the_last_time_and_ends_after_seven_days() {
    let stage = Stage::new();
    stage.create("0 12 * * *", true).unwrap();
    for day in 1..=7 {
        stage.pass(Duration::from_hours(24)).await;
        let [(due, text)] = &stage.waiting()[..] else { panic!("{:?}", stage.waiting()) };
        assert_eq!(*due, format!("2026-01-{day:02}T12:00:00Z"));
        assert_eq!(text.contains("its last time"), day == 7, "{text}");
        assert_eq!(stage.ids().len(), 1, "day {day}");
        stage.deliver();
    }
    assert!(stage.ids().is_empty());
    stage.pass(Duration::from_hours(48)).await;
    assert!(stage.waiting().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_queued_once_the_input_is_closed() {
    let stage = Stage::new();
    stage.create("* * * * *", true).unwrap();
    stage.queue.close();
    stage.pass(Duration::from_mins(10)).await;
    assert!(stage.waiting().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_suspended_is_told_once_and_soon() {
    let stage = Stage::new();
    stage.create("0 * * * *", true).unwrap();
    stage.pass(Duration::from_mins(5)).await;
    // Timers stood still, the wall clock did not.
    stage.wall.set("2026-01-01T08:30:00Z");
    stage.pass(Duration::from_mins(2)).await;
    assert_eq!(stage.deliver(), ["2026-01-01T01:00:00Z"]);
    stage.wall.set("2026-01-01T08:59:59Z");
    stage.pass(Duration::from_mins(1)).await;
    assert!(stage.waiting().is_empty(), "what was missed is not caught up with");
    stage.wall.set("2026-01-01T09:00:00Z");
    stage.pass(Duration::from_mins(1)).await;
    assert_eq!(stage.deliver(), ["2026-01-01T09:00:00Z"]);
}

#[tokio::test(start_paused = true)]
async fn there_is_no_timer_without_a_schedule() {
    let stage = Stage::new();
    assert_eq!(stage.schedules.wait(), None);
    let id = stage.create("* * * * *", true).unwrap().schedule.id;
    assert_eq!(stage.schedules.wait(), Some(Duration::from_mins(1)));
    stage.schedules.delete(&stage.queue, &id).unwrap();
    assert_eq!(stage.schedules.wait(), None);
}

#[tokio::test]
async fn there_are_fifty_at_most_each_with_an_id_of_its_own() {
    let stage = Stage::new();
    for _ in 0..50 {
        stage.create("* * * * *", true).unwrap();
    }
    let mut ids = stage.ids();
    assert!(ids.iter().all(|id| id.len() == 8), "{ids:?}");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 50);
    let error = stage.create("* * * * *", true).unwrap_err().to_string();
    assert!(error.contains("50 schedules") && error.contains("CronDelete"), "{error}");
    stage.schedules.delete(&stage.queue, &ids[0]).unwrap();
    stage.create("* * * * *", true).unwrap();
}

#[tokio::test]
async fn what_cannot_be_scheduled_says_what_to_do() {
    let stage = Stage::new();
    let request = |cron: &str, prompt: &str, recurring, durable| ScheduleRequest {
        cron: cron.to_owned(),
        prompt: prompt.to_owned(),
        recurring,
        durable,
    };
    for (request, expected) in [
        (request("soon", "x", true, false), "write it like `30 9 * * mon-fri`"),
        (request("0 0 31 2 *", "x", false, false), "never due"),
        (request("0 9 1 3 *", "x", true, false), "next due on 2026-03-01 09:00 UTC"),
        (request("0 9 1 3 *", "x", true, false), "set `recurring` to false"),
        (request("* * * * *", " \n", true, false), "the prompt is empty: say"),
        (request("* * * * *", "x", true, true), "leave `durable` out"),
    ] {
        let error = stage.schedules.create(&stage.queue, request).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(stage.ids().is_empty());
    // A single time may be far away.
    stage.create("0 9 1 3 *", false).unwrap();
}

#[tokio::test]
async fn what_cannot_be_recorded_is_not_in_force() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let stage = Stage::new();
    let world = Arc::clone(&stage.wall) as Arc<dyn World>;
    // No directory can be made below a file.
    let journal = Journal::new(file.join("t.jsonl"), stamp(), Arc::clone(&world), Redaction::Off);
    let schedules = Schedules::new(world, TimeZone::UTC, Arc::new(journal));
    let request = ScheduleRequest {
        cron: "* * * * *".to_owned(),
        prompt: "look".to_owned(),
        recurring: true,
        durable: true,
    };
    let error = schedules.create(&stage.queue, request).unwrap_err().to_string();
    assert!(error.contains("nothing was changed"), "{error}");
    assert!(schedules.list(&stage.queue).is_empty());
}

#[tokio::test]
async fn a_resumed_session_is_told_what_it_missed_and_continues_with_the_rest() {
    // S-216
    for (cron, recurring, now, missed, next) in [
        // Once, still to come.
        ("0 9 * * *", false, "2026-01-01T08:00:00Z", None, Some("2026-01-01T09:00:00Z")),
        // Once, and too late.
        (
            "0 9 * * *",
            false,
            "2026-01-03T08:00:00Z",
            Some("2026-01-01 09:00 UTC; it is over"),
            None,
        ),
        ("0 9 * * *", true, "2026-01-01T08:00:00Z", None, Some("2026-01-01T09:00:00Z")),
        (
            "0 9 * * *",
            true,
            "2026-01-03T10:00:00Z",
            Some("from 2026-01-01 09:00 UTC; it comes again on 2026-01-04 09:00 UTC"),
            Some("2026-01-04T09:00:00Z"),
        ),
        // Expired meanwhile, and long ago.
        (
            "0 9 * * *",
            true,
            "2026-01-07T10:00:00Z",
            Some("from 2026-01-01 09:00 UTC; it is over"),
            None,
        ),
        (
            "0 9 * * *",
            true,
            "2026-02-01T10:00:00Z",
            Some("from 2026-01-01 09:00 UTC; it is over"),
            None,
        ),
    ] {
        let stage = Stage::at(now);
        let created = time("2026-01-01T00:00:00Z");
        let schedule = Schedule {
            id: "0123abcd".to_owned(),
            cron: Expression::parse(cron).unwrap(),
            prompt: "look".to_owned(),
            recurring,
            created: created.into(),
        };
        stage.schedules.restore(&stage.queue, vec![RecordedSchedule { schedule, told: created }]);
        let in_force = stage.schedules.list(&stage.queue);
        let due = in_force.first().and_then(|entry| entry.due).map(|due| due.to_string());
        assert_eq!(due.as_deref(), next, "{cron} {recurring} at {now}");
        let pending = stage.queue.pending(None);
        let told = pending.first().map(|item| match &item.content[..] {
            [Block::Text(text)] => text.clone(),
            other => panic!("{other:?}"),
        });
        assert_eq!(told.is_some(), missed.is_some(), "{cron} {recurring} at {now}: {told:?}");
        if let (Some(told), Some(missed)) = (told, missed) {
            assert!(told.contains(&format!("- 0123abcd (`{cron}`), {missed}: look")), "{told}");
        }
    }
}
