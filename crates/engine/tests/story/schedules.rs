//! Schedules: an assistant has prompts come to it later, also after its process has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use centurion_engine::{SessionMode, Start, ToolServer};
use centurion_hooks::Event;
use centurion_protocol::{Block, Env, Outcome, SeededWorld, World};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::agent_stage::{agent, starts};
use crate::bench::{Asked, Bench, Told, Watcher};
use crate::hook_stage::Stage;

/// What finds the id of the schedule that was made last.
const LAST_SCHEDULE: &str = "${re:Scheduled as ([0-9a-f]+)}";

/// A call that sets up a schedule.
fn schedule(cron: &str, prompt: &str, more: &Value) -> Value {
    let mut input = json!({"cron": cron, "prompt": prompt});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"tool": "CronCreate", "input": input})
}

/// A bench whose main agent is an assistant.
fn assistant(scripts: &Value) -> Bench {
    let mut bench = Bench::cast(scripts);
    bench.knows_agents(|agents| agents.rules.mode = SessionMode::Assistant);
    bench
}

/// A world at a time that a story moves by hand, in minutes.
struct Moved {
    seeded: SeededWorld,
    minutes: Arc<AtomicI64>,
}

impl World for Moved {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::from_mins(self.minutes.load(Ordering::Relaxed));
        self.seeded.now() + passed
    }

    fn random(&self) -> u64 {
        self.seeded.random()
    }
}

/// Lets a bench's sessions open at times that the story sets.
fn with_time(mut bench: Bench) -> (Bench, Arc<AtomicI64>) {
    let minutes = Arc::new(AtomicI64::new(0));
    let before = bench.adjust;
    let moved = Arc::clone(&minutes);
    bench.adjust = Box::new(move |options| {
        before(options);
        let seed = 300 + u64::try_from(moved.load(Ordering::Relaxed)).unwrap();
        let (seeded, minutes) = (SeededWorld::new(seed), Arc::clone(&moved));
        options.base.world = Arc::new(Moved { seeded, minutes });
    });
    (bench, minutes)
}

impl Told {
    /// The lines of the transcript that a schedule is the origin of.
    fn scheduled(&self) -> Vec<Value> {
        let lines = self.lines().into_iter();
        lines.filter(|line| line["origin"]["kind"] == "schedule").collect()
    }
}

/// Whether this many runs have ended.
fn results(events: &[Value], count: usize) -> bool {
    events.iter().filter(|event| event["type"] == "result").count() >= count
}

/// The last text that was said before an answer.
fn last_said(asked: &Asked) -> Vec<String> {
    let message = asked.messages.as_array().unwrap().last().unwrap();
    let blocks = message["content"].as_array().unwrap().iter();
    blocks.filter_map(|block| block["text"].as_str().map(str::to_owned)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_schedule_comes_between_turns_again_and_again() {
    // S-216
    let bench = assistant(&json!({
        "lead": [[schedule("*/5 * * * *", "@@tick", &json!({}))], "it is set up"],
        "tick": ["ticked"],
    }));
    let told = bench
        .live(
            "@@lead",
            |_, watcher| async move { watcher.until(|events, _| results(events, 3)).await },
        )
        .await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    let (made, is_error) = &told.results()[0];
    assert!(!is_error, "{made}");
    assert!(
        made.contains("next on 2026-01-01 00:05 UTC") && made.contains("until 2026-01-08"),
        "{made}"
    );
    let due: Vec<Value> =
        told.scheduled().iter().map(|line| line["origin"]["due"].clone()).collect();
    assert_eq!(due, ["2026-01-01T00:05:00.000Z", "2026-01-01T00:10:00.000Z"]);
    assert!(told.scheduled().iter().all(|line| line["isMeta"] == true));
    let said = last_said(told.asked.last().unwrap());
    assert!(
        said[0].contains("is due. You set it up earlier") && said[0].ends_with("@@tick"),
        "{said:?}"
    );
    let origin = json!({"kind": "task-notification", "subkind": "scheduled-trigger"});
    assert_eq!(told.result()["origin"], origin, "as hosts know it");
}

#[tokio::test(start_paused = true)]
async fn a_skill_that_is_scheduled_is_invoked_by_the_agent_and_its_rules() {
    // The words of a schedule are the agent's own: it must not get at what only people may type.
    let bench = assistant(&json!({
        "lead": [[schedule("*/5 * * * *", "/fix @@tick", &json!({}))], "it is set up"],
        "tick": [crate::skills::invokes("fix", ""), "ticked"],
    }));
    crate::skills::skill(&bench, "look", "", "Look.");
    crate::skills::skill(&bench, "fix", "disable-model-invocation: true\n", "FIX-TEXT");
    let told = bench
        .live(
            "@@lead",
            |_, watcher| async move { watcher.until(|events, _| results(events, 2)).await },
        )
        .await;
    let all: Vec<String> = told.asked.iter().map(crate::skills::said).collect();
    assert!(
        all.iter().any(|it| it.contains("`/name` means a skill: invoke it with the Skill tool."))
    );
    assert!(all.iter().any(|it| it.contains("only people may invoke the skill `fix`")), "{all:?}");
    assert!(!all.iter().any(|it| it.contains("FIX-TEXT")));
}

#[tokio::test(start_paused = true)]
async fn a_persons_input_goes_before_a_schedule_that_waited_longer() {
    // S-216, S-220
    let bench = assistant(&json!({
        "lead": [
            [schedule("1 * * * *", "look around", &json!({}))],
            {"text": "long thought", "latency_ms": 120_000},
        ],
        "person": ["both"],
    }));
    let told = bench
        .live("@@lead", |handle, watcher| async move {
            watcher.until(|_, asked| asked.len() == 2).await;
            // The schedule is due while the answer is on its way; the person speaks after it.
            tokio::time::sleep(Duration::from_secs(90)).await;
            handle.submit(SeededWorld::new(900).record_id(), vec![Block::text("@@person")]);
            watcher.until(|events, _| results(events, 2)).await;
        })
        .await;
    assert_eq!(told.of("result", None).len(), 2, "both in one run");
    let said = last_said(told.asked.last().unwrap());
    assert_eq!(said[0], "@@person");
    assert!(said[1].ends_with("look around"), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn schedules_that_are_due_and_news_of_agents_come_together() {
    // S-224, S-216, S-286
    let bench = assistant(&json!({
        "lead": [
            [schedule("1 * * * *", "first", &json!({})), schedule("1 * * * *", "second", &json!({})), starts("@@quick")],
            {"text": "long thought", "latency_ms": 120_000},
            "all at once",
        ],
        "quick": [{"text": "done", "latency_ms": 30_000}],
    }));
    let told = bench
        .live(
            "@@lead",
            |_, watcher| async move { watcher.until(|events, _| results(events, 2)).await },
        )
        .await;
    let said = last_said(told.asked.last().unwrap());
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].starts_with("<task-notification>"), "{said:?}");
    assert!(said[1].ends_with("first") && said[2].ends_with("second"), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_was_deleted_does_not_come() {
    let bench = assistant(&json!({
        "lead": [
            [schedule("*/5 * * * *", "never", &json!({}))],
            [{"tool": "CronList", "input": {}}, {"tool": "CronDelete", "input": {"id": LAST_SCHEDULE}}],
            [{"tool": "CronList", "input": {}}, {"tool": "CronDelete", "input": {"id": LAST_SCHEDULE}}],
            "gone",
        ],
    }));
    let told = bench
        .live("@@lead", |_, watcher| async move {
            watcher.until(|events, _| results(events, 1)).await;
            tokio::time::sleep(Duration::from_hours(1)).await;
        })
        .await;
    assert_eq!(told.of("result", None).len(), 1);
    let results = told.results();
    assert!(
        results[1].0.contains("Schedules (1):") && results[1].0.ends_with(": never"),
        "{results:?}"
    );
    assert!(results[2].0.contains("is deleted"), "{results:?}");
    assert_eq!(results[3].0, "Schedules (0):");
    assert!(results[4].1 && results[4].0.contains("there is no schedule"), "{results:?}");
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_input_is_closed_does_not_wait_for_schedules() {
    let bench = assistant(&json!({
        "lead": [
            [schedule("* * * * *", "@@tick", &json!({})), starts("@@slow")],
            "meanwhile",
            {"text": "heard", "latency_ms": 120_000},
        ],
        "slow": [{"text": "done", "latency_ms": 300_000}],
        "tick": ["ticked"],
    }));
    let told = bench.run("@@lead").await;
    assert_eq!(told.outcome, Some(Outcome::Completed));
    assert_eq!(told.news().len(), 1, "the agent was waited for");
    assert!(told.scheduled().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_durable_schedule_outlives_its_process_and_what_was_missed_is_told_once() {
    // S-216
    let bench = assistant(&json!({
        "lead": [
            [
                schedule("0 * * * *", "hourly", &json!({"durable": true})),
                schedule("30 0 * * *", "once", &json!({"durable": true, "recurring": false})),
                schedule("0 6 * * *", "deleted", &json!({"durable": true})),
                schedule("0 0 2 1 *", "tomorrow", &json!({"durable": true, "recurring": false})),
                schedule("15 * * * *", "forgotten", &json!({})),
            ],
            [{"tool": "CronDelete", "input": {"id": "${re:Scheduled as ([0-9a-f]+): `0 6}"}}],
            "all set up",
        ],
        "list": [[{"tool": "CronList", "input": {}}], "listed"],
    }));
    let (bench, minutes) = with_time(bench);
    let first = bench.run("@@lead").await;
    assert_eq!(first.results().len(), 6);
    assert!(first.results().iter().all(|(_, is_error)| !is_error), "{:?}", first.results());
    minutes.store(150, Ordering::Relaxed);
    let second = bench.resume(&first, "@@list").await;
    let said = last_said(&second.asked[0]);
    assert_eq!(said[0], "@@list", "a person goes first");
    let missed = &said[1];
    assert!(missed.contains("(`0 * * * *`), from 2026-01-01 01:00 UTC"), "{missed}");
    assert!(missed.contains("it comes again on 2026-01-01 03:00 UTC: hourly"), "{missed}");
    assert!(missed.contains("(`30 0 * * *`), 2026-01-01 00:30 UTC; it is over: once"), "{missed}");
    assert_eq!(missed.matches("\n- ").count(), 2, "{missed}");
    let listed = &second.results()[0].0;
    assert!(listed.contains("Schedules (2):"), "{listed}");
    assert!(listed.contains(": hourly") && listed.contains(": tomorrow"), "{listed}");
    // Nothing new was missed, and the old is told.
    minutes.store(155, Ordering::Relaxed);
    let third = bench.resume(&second, "@@list").await;
    assert_eq!(last_said(&third.asked[0]), ["@@list"]);
    assert!(third.results()[0].0.contains("Schedules (2):"), "{:?}", third.results());
    // After its seven days nothing is left of the one, and the other is long over.
    minutes.store(60 * 24 * 30, Ordering::Relaxed);
    let fourth = bench.resume(&third, "@@list").await;
    let said = last_said(&fourth.asked[0]);
    assert_eq!(said[1].matches("it is over").count(), 2, "{said:?}");
    assert_eq!(fourth.results()[0].0, "Schedules (0):");
}

#[tokio::test(start_paused = true)]
async fn a_resumed_schedule_comes_again_and_a_told_one_is_not_missed() {
    let bench = assistant(&json!({
        "lead": [[schedule("0 * * * *", "@@tick", &json!({"durable": true}))], "set up"],
        "tick": ["ticked"],
        "go": ["going"],
    }));
    let (bench, minutes) = with_time(bench);
    let first = bench
        .live(
            "@@lead",
            |_, watcher| async move { watcher.until(|events, _| results(events, 2)).await },
        )
        .await;
    assert_eq!(first.scheduled()[0]["origin"]["due"], "2026-01-01T01:00:00.000Z");
    minutes.store(90, Ordering::Relaxed);
    let watcher = Arc::new(Watcher::default());
    let mut session = bench.open(Start::Resume(first.session), None, &watcher).await;
    let handle = session.handle();
    handle.submit(SeededWorld::new(800).record_id(), vec![Block::text("@@go")]);
    let acting = async {
        watcher.until(|events, _| results(events, 2)).await;
        handle.close();
    };
    let (outcome, ()) = tokio::join!(session.run(), acting);
    let second = bench.told(&session, outcome, &watcher);
    assert_eq!(last_said(&second.asked[0]), ["@@go"], "nothing was missed");
    assert_eq!(second.scheduled().last().unwrap()["origin"]["due"], "2026-01-01T02:00:00.000Z");
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_a_session_leaves_the_schedules_with_the_original() {
    let bench = assistant(&json!({
        "lead": [[schedule("0 9 * * *", "look", &json!({"durable": true}))], "set up"],
        "list": [[{"tool": "CronList", "input": {}}], "listed"],
    }));
    let first = bench.run("@@lead").await;
    let fork = Start::Fork { from: first.session, id: SeededWorld::new(77).session_id() };
    let copy = bench.start(fork, Some(first.transcript.clone()), "@@list").await;
    assert_eq!(copy.results()[0].0, "Schedules (0):");
    let again = bench.resume(&copy, "@@list").await;
    assert_eq!(again.results()[0].0, "Schedules (0):");
    let original = bench.resume(&first, "@@list").await;
    assert!(original.results()[0].0.contains("Schedules (1):"), "{:?}", original.results());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_scheduled_is_an_error_that_says_what_to_do() {
    let bench = assistant(&json!({
        "lead": [
            [
                schedule("every five minutes", "x", &json!({})),
                schedule("61 * * * *", "x", &json!({})),
                schedule("* * * * *", "", &json!({})),
                {"tool": "CronList", "input": {}},
            ],
            "none",
        ],
    }));
    let told = bench.run("@@lead").await;
    let results = told.results();
    assert!(results[..3].iter().all(|(_, is_error)| *is_error), "{results:?}");
    assert!(results[0].0.contains("`every five minutes` has 3"), "{results:?}");
    assert!(results[1].0.contains("`61` is no minute: give numbers from 0 to 59"), "{results:?}");
    assert!(results[2].0.contains("the prompt is empty"), "{results:?}");
    assert_eq!(results[3].0, "Schedules (0):");
}

#[tokio::test(start_paused = true)]
async fn only_the_main_agent_of_an_assistant_has_schedules() {
    // S-361
    let scripts = json!({
        "lead": [[starts("@@child"), agent("planner", "@@child", &json!({}))], "started", "heard"],
        "child": ["done"],
    });
    let has_schedules =
        |asked: &Asked| asked.tools.iter().filter(|tool| tool.starts_with("Cron")).count();
    let bench = assistant(&scripts);
    bench.agent("planner", "tools: [CronCreate]\n", "Plan.");
    let told = bench.run("@@lead").await;
    let main = told.asked.iter().filter(|asked| asked.agent.is_none());
    assert!(main.into_iter().all(|asked| has_schedules(asked) == 3));
    let children: Vec<_> = told.asked.iter().filter(|asked| asked.agent.is_some()).collect();
    assert_eq!(children.len(), 1);
    assert_eq!(has_schedules(children[0]), 0);
    let (refused, is_error) = &told.results()[1];
    assert!(*is_error && refused.contains("CronCreate (only the main agent has it)"), "{refused}");
    let mut normal = Bench::cast(&scripts);
    normal.knows_agents(|_| {});
    let told = normal.run("@@lead").await;
    assert!(told.asked.iter().all(|asked| has_schedules(asked) == 0));
    let mut off = assistant(&scripts);
    let before = off.adjust;
    off.adjust = Box::new(move |options| {
        before(options);
        options.base.env = Arc::new(Env::from([("CLAUDE_CODE_DISABLE_CRON", "1")]));
    });
    let told = off.run("@@lead").await;
    assert!(told.asked.iter().all(|asked| has_schedules(asked) == 0));
}

#[tokio::test]
async fn tools_without_an_agent_have_no_schedules() {
    let bench = assistant(&json!({}));
    let start = Start::New(SeededWorld::new(1).session_id());
    let options = bench.options(start, None, &Arc::new(Watcher::default()));
    let server = ToolServer::open(options).await.unwrap();
    assert!(server.specs().any(|tool| tool.name == "Read"));
    assert!(server.specs().all(|tool| !tool.name.starts_with("Cron")));
}

#[tokio::test(start_paused = true)]
async fn hooks_hear_what_is_scheduled_and_may_keep_a_prompt_out() {
    // S-216
    let stage = Stage::new(|told| {
        let is_tick = told["prompt"].as_str().is_some_and(|text| text.contains("tick"));
        let is_it = told["hook_event_name"] == Event::UserPromptSubmit.name() && is_tick;
        Some(if is_it { json!({"decision": "block", "reason": "not now"}) } else { json!({}) })
    });
    let bench = stage.set(assistant(&json!({
        "lead": [[schedule("0 1 * * *", "tick", &json!({"recurring": false, "durable": true}))], "set up"],
        "list": [[{"tool": "CronList", "input": {}}], "listed"],
    })));
    let told = bench
        .live(
            "@@lead",
            |_, watcher| async move { watcher.until(|events, _| results(events, 2)).await },
        )
        .await;
    let stops = stage.heard(Event::Stop);
    let [cron] = &stops[0]["session_crons"].as_array().unwrap()[..] else { panic!("{stops:?}") };
    assert_eq!(cron["schedule"], "0 1 * * *");
    assert_eq!(cron["prompt"], "tick");
    assert_eq!(cron["recurring"], false);
    assert_eq!(cron["id"].as_str().unwrap().len(), 8);
    assert!(told.scheduled().is_empty(), "the model was not told");
    // It was kept out on purpose, and is not owed.
    let again = bench.resume(&told, "@@list").await;
    assert_eq!(again.results()[0].0, "Schedules (0):");
}
