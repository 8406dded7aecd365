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
#[path = "forest/process.rs"]
mod process;
#[path = "forest/records.rs"]
mod records;
#[path = "forest/seeds.rs"]
mod seeds;
#[path = "forest/stage.rs"]
mod stage;

use std::collections::BTreeSet;

use crate::plan::{Fate, Plan};
use crate::process::Ended;
use crate::records::{Records, Transcript};
use crate::seeds::Seeds;
use crate::stage::Stage;

const SEEDS: Seeds =
    Seeds { one: "CENTURION_FOREST_SEED", count: "CENTURION_FOREST_SEEDS", usual: 250 };

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

#[test]
fn every_forest_keeps_its_promises() {
    // I-3, I-4, I-8, I-10, I-12, S-158, S-159, S-206, S-229, S-231
    // A plan under which agents end in few ways would prove little.
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
    if let Some(ends) = SEEDS.play(grow) {
        let ends: Ends = ends.into_iter().flatten().collect();
        assert!(ends.iter().eq(all), "{ends:?}");
    }
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
