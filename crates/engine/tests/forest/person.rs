//! The person of a forest: answers questions after a while, or when no agent waits any more, and watches.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use centurion_engine::{Answerer, Ask, ElicitFuture, Reply, ReplyFuture, View};
use centurion_mcp::{Elicitation, ElicitationAnswer};
use centurion_protocol::sdk::{Event, EventBody, System};
use indexmap::IndexMap;
use parking_lot::Mutex;

use crate::dice::Dice;

/// When a person comes back to what was left unanswered.
const NEXT_MORNING: Duration = Duration::from_hours(8);

/// A person who answers.
pub(crate) struct Person {
    seed: u64,
    asked: AtomicUsize,
    open: AtomicUsize,
}

/// A question that is neither answered nor withdrawn.
struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Person {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, asked: AtomicUsize::new(0), open: AtomicUsize::new(0) }
    }

    pub(crate) fn open_questions(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

impl Answerer for Person {
    fn answer(&self, _: Ask) -> ReplyFuture<'_> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed) as u64;
        self.open.fetch_add(1, Ordering::Relaxed);
        let open = Open(&self.open);
        let dice = Dice::new(self.seed.wrapping_mul(31).wrapping_add(number));
        let no = |interrupt| Reply::Denied { reason: "not now".to_owned(), interrupt };
        let (after, reply) = match dice.below(20) {
            0..10 => (dice.time(), Reply::Allowed { input: None, remember: Vec::new() }),
            10..14 => (dice.time(), no(false)),
            14 => (dice.time(), no(true)),
            _ => (NEXT_MORNING, no(false)),
        };
        Box::pin(async move {
            tokio::time::sleep(after).await;
            drop(open);
            Ok(reply)
        })
    }

    fn elicit(&self, _: Elicitation) -> ElicitFuture<'_> {
        Box::pin(std::future::ready(Ok(ElicitationAnswer::Cancel)))
    }
}

/// What an observer knows of the agents.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The state of each, in the order in which they were first started.
    pub(crate) agents: Mutex<IndexMap<String, &'static str>>,
    pub(crate) dollars: Mutex<f64>,
}

impl View for Watch {
    fn show(&self, event: &Event) {
        let mut agents = self.agents.lock();
        match &event.body {
            EventBody::System(System::TaskStarted(started)) => {
                agents.insert(started.task_id.clone(), "running");
            }
            EventBody::System(System::TaskUpdated(updated)) => {
                if let Some(status) = updated.patch.status {
                    agents.insert(updated.task_id.clone(), status);
                }
            }
            EventBody::Result(result) => {
                *self.dollars.lock() = result.total_cost_usd;
            }
            _ => {}
        }
    }
}
