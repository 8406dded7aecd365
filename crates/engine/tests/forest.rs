//! Forests: random trees of agents, each from a seed, on a virtual clock and against a model that plays a
//! plan. What an agent does and how it ends, who speaks to whom, who is stopped, what a person does
//! meanwhile, how many may run at once, and when the process dies, all follow from the seed.
//!
//! A failure names its seed. `CENTURION_FOREST_SEED=7` plays that one alone, `CENTURION_FOREST_SEEDS=5000` plays
//! 5,000.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[expect(dead_code, reason = "made for stories, of which a forest needs only a part")]
#[path = "story/bench.rs"]
mod bench;
#[path = "forest/checks.rs"]
mod checks;
#[path = "forest/cut.rs"]
mod cut;
#[path = "forest/dice.rs"]
mod dice;
#[path = "forest/line.rs"]
mod line;
#[path = "forest/mail.rs"]
mod mail;
#[path = "forest/person.rs"]
mod person;
#[path = "forest/plan.rs"]
mod plan;
#[path = "forest/players.rs"]
mod players;
#[path = "forest/records.rs"]
mod records;
#[path = "forest/stage.rs"]
mod stage;

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::plan::{Fate, Plan};
use crate::records::{Records, Transcript};
use crate::stage::{Ended, Stage};

/// How many forests every run of the tests grows.
const SEEDS: u64 = 250;

/// How agents ended, over all forests.
type Ends = BTreeSet<String>;

/// Four processes of one session, one after another: one that works, one that finds what is left of it,
/// one that finds nothing to do, and one that sets all agents to work again.
fn grow(seed: u64) -> Ends {
    let stage = Stage::new(Plan::of(seed));
    let life = stage.play();
    let flying = life.most_flying.1;
    if let Fate::Cut(share) = stage.plan.fate {
        checks::after_life(&stage, &life, &Records::of(&stage));
        stage.cut(share);
    }
    let first = Records::of(&stage);
    if matches!(stage.plan.fate, Fate::Cut(_)) {
        // What the process would have gone on to do is not known.
        checks::after_cut(&first);
    } else {
        checks::after_life(&stage, &life, &first);
    }
    if first.lead.is_none() {
        // It died before it had begun.
        assert!(first.agents.is_empty());
        return Ends::new();
    }
    let life = stage.read(1, Some("What became of them?"));
    let second = Records::of(&stage);
    checks::after_resume(&first, &life, &second);
    checks::same_table(&first, &second);
    let life = stage.read(2, None);
    assert_eq!(
        (life.ended, life.requests),
        (Ended::Over(None), 0),
        "a third process finds nothing to do"
    );
    assert_eq!(Records::of(&stage).bytes(), second.bytes(), "and writes nothing");
    let agents: Vec<&str> = second.agents.iter().map(Transcript::id).collect();
    if !agents.is_empty() {
        let life = stage.wake(3, &agents);
        checks::after_waking(&stage, flying, &second, &life, &Records::of(&stage));
    }
    second.outcomes()
}

/// Grows a forest; a failure names its seed.
fn try_to_grow(seed: u64) -> Ends {
    let grown = std::panic::catch_unwind(AssertUnwindSafe(|| grow(seed)));
    grown.unwrap_or_else(|reason| {
        let message = reason.downcast_ref::<String>().cloned();
        let message = message.or_else(|| reason.downcast_ref::<&str>().map(|it| (*it).to_owned()));
        panic!(
            "seed {seed}: {}\nCENTURION_FOREST_SEED={seed} plays it again",
            message.unwrap_or_default()
        );
    })
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

#[test]
fn every_forest_keeps_its_promises() {
    // I-3, I-4, I-8, I-10, I-12, S-158, S-159, S-206, S-229, S-231
    match number("CENTURION_FOREST_SEED") {
        Some(seed) => drop(try_to_grow(seed)),
        None => grow_many(),
    }
}

fn grow_many() {
    let count = number("CENTURION_FOREST_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(0);
    let ends: Mutex<Ends> = Mutex::default();
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let work = || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= count {
                    break;
                }
                let new = try_to_grow(seed);
                ends.lock().extend(new);
            }
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    // A plan under which agents end in few ways would prove little.
    let ends = ends.into_inner();
    let all = [
        "api_error",
        "budget",
        "cancelled",
        "completed",
        "denied",
        "empty",
        "interrupted",
        "max_tokens",
        "refusal",
        "stalled",
    ];
    assert!(count < SEEDS || ends.iter().eq(all), "{ends:?}");
}

#[test]
fn the_same_seed_grows_the_same_forest() {
    // I-14
    for seed in 0..8 {
        let records = || {
            let stage = Stage::new(Plan::of(seed));
            stage.play();
            let records = Records::of(&stage);
            let home = stage.home();
            records.bytes().iter().map(|line| line.replace(&home, "<home>")).collect::<Vec<_>>()
        };
        assert_eq!(records(), records(), "seed {seed}");
    }
}
