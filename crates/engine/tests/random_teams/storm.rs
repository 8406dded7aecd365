//! Sixteen members write to four others as fast as they can, while writers and readers fail and are stopped and the
//! process dies: every message that was acknowledged is read once, in the order of its sender.
//!
//! `CENTURION_STORM=10000` has each writer send so many.

use std::sync::Arc;
use std::time::Duration;

use centurion_engine::Handle;
use centurion_model::{EventStream, Provider, Request};
use centurion_protocol::{StopReason, World};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::line::Line;
use crate::mail;
use crate::plan::Plan;
use crate::process::{Ended, run};
use crate::records::Records;
use crate::stage::{Later, Stage};
use crate::waking_lead::{Call, WakingLead};

const WRITERS: usize = 16;
const READERS: usize = 4;
/// How many messages one answer sends.
const BATCH: u64 = 50;

/// The model of all of them.
struct Storm {
    dice: Dice,
    /// How many messages each writer sends.
    most: u64,
    state: Mutex<StormState>,
}

#[derive(Default)]
struct StormState {
    lead: WakingLead,
    /// How many each writer has sent.
    sent: [u64; WRITERS],
    /// No model fails any more, and the lead wakes all once, so that nothing is left unread.
    is_calm: bool,
    wakes_all: bool,
}

impl Storm {
    fn call(&self, tool: &'static str, input: Value) -> Call {
        self.state.lock().lead.call(tool, input)
    }

    fn lead(&self, request: &Request) -> Line {
        let state = &mut *self.state.lock();
        let is_over = || {
            let is_last = std::mem::take(&mut state.wakes_all);
            state.sent.iter().all(|sent| *sent >= self.most) && !is_last
        };
        let names =
            (0..WRITERS).map(|it| format!("w{it}")).chain((0..READERS).map(|it| format!("r{it}")));
        state.lead.answer(request, is_over, "Speak, or listen.", names)
    }

    fn member(&self, name: &str) -> Line {
        let latency = Duration::from_millis(self.dice.below(500) as u64);
        let rests = || Line::Text(latency, "I rest.".to_owned(), StopReason::EndTurn);
        if self.dice.below(300) == 0 && !self.state.lock().is_calm {
            return Line::Error;
        }
        let Some(writer) = name.strip_prefix('w').and_then(|it| it.parse::<usize>().ok()) else {
            return rests();
        };
        let from = self.state.lock().sent[writer];
        let until = self.most.min(from + BATCH);
        if from == until {
            return rests();
        }
        self.state.lock().sent[writer] = until;
        let send = |number: u64| {
            let to = format!("r{}", self.dice.below(READERS));
            // Numbers begin with one: zero is what was read before the first.
            let message = format!("message <{}> of {name}", number + 1);
            self.call("SendMessage", json!({"to": to, "message": message}))
        };
        Line::Calls(latency, (from..until).map(send).collect())
    }
}

impl Provider for Storm {
    fn stream(&self, request: Request) -> EventStream {
        let line = match &request.agent {
            None => self.lead(&request),
            Some(id) => self.member(id.as_str().split('@').next().unwrap()),
        };
        line.events(1, &request.model, (100, 10))
    }

    fn credential(&self) -> &'static str {
        "storm"
    }
}

/// Stops a writer and a reader after a while, and ends the process.
async fn stop_some(handle: Handle, storm: &Storm, dice: &Dice, number: u64) -> Ended {
    tokio::time::sleep(Duration::from_millis(200 + dice.below(2_000) as u64)).await;
    if number == 1 {
        let writer = dice.below(WRITERS);
        // Only a person would have it continue.
        storm.state.lock().sent[writer] = storm.most;
        let _ = handle.stop_task(&format!("w{writer}")).await;
        let _ = handle.stop_task(&format!("r{}", dice.below(READERS))).await;
    }
    if number < 3 {
        return Ended::Died;
    }
    std::future::pending().await
}

#[test]
fn sixteen_writers_lose_and_double_nothing_though_writers_readers_and_lead_die() {
    // teams.md 10.1, 11.1, D-63: concurrent writers lose mail
    let most = crate::seeds::number("CENTURION_STORM").unwrap_or(100);
    let seed = crate::seeds::number("CENTURION_TEAM_SEED").unwrap_or(5);
    let dice = Dice::new(seed);
    let stage = Stage::new(Plan::without_events(seed));
    let storm = Arc::new(Storm { dice: Dice::new(seed + 1), most, state: Mutex::default() });
    for number in 0..5 {
        let is_last = number == 4;
        let mut calm = storm.state.lock();
        (calm.is_calm, calm.wakes_all) = (is_last, is_last);
        drop(calm);
        let world: Arc<dyn World> = Arc::new(Later::new(seed, number));
        let options = stage.options(number, Arc::clone(&storm) as Arc<dyn Provider>, &world);
        let ended = run(options, &*world, Some("Go on."), async |handle| {
            stop_some(handle, &storm, &dice, number).await
        });
        assert_ne!(ended, Ended::Stuck);
        let records = Records::of(&stage);
        mail::receipts_are_true(&records);
        mail::is_in_order_for_each_pair(&records);
    }
    let records = Records::of(&stage);
    let mut read = 0;
    for agent in &records.agents {
        let is_stopped = agent.ends().last().unwrap()["stoppedBy"] == "person";
        if !is_stopped {
            assert_eq!(mail::waiting(agent), 0, "{} left mail unread", agent.id());
        }
        read += mail::count(agent);
    }
    // One writer was stopped for good, and one reader took no more; what the dead processes had not sent is not sent.
    assert!(read as u64 > WRITERS as u64 * most / 3, "{read} messages were accepted");
}
