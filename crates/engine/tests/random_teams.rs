//! Random teams, each from a seed, on a virtual clock and against a model that plays a plan: who joins under which name
//! and in which mode, who speaks to whom, who proposes plans, claims tasks, forges messages, is asked to end, fails or is
//! stopped, what a person does meanwhile, and when the process dies. Later processes find what is left of it.
//!
//! A failure names its seed. `CENTURION_TEAM_SEED=7` plays that one alone, `CENTURION_TEAM_SEEDS=5000` plays 5,000.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "random_teams/asks.rs"]
mod asks;
#[expect(dead_code, reason = "made for stories, of which a team needs only a part")]
#[path = "story/bench.rs"]
mod bench;
#[path = "random_teams/checks.rs"]
mod checks;
#[path = "random_teams/crowd.rs"]
mod crowd;
#[path = "forest/cut.rs"]
mod cut;
#[path = "forest/dice.rs"]
mod dice;
#[path = "forest/line.rs"]
mod line;
#[path = "random_teams/mail.rs"]
mod mail;
#[path = "forest/person.rs"]
mod person;
#[path = "random_teams/plan.rs"]
mod plan;
#[path = "random_teams/players.rs"]
mod players;
#[path = "forest/process.rs"]
mod process;
#[expect(dead_code, reason = "made for forests, of which a team needs only a part")]
#[path = "forest/records.rs"]
mod records;
#[path = "forest/seeds.rs"]
mod seeds;
#[path = "random_teams/stage.rs"]
mod stage;
#[path = "random_teams/storm.rs"]
mod storm;
#[path = "random_teams/waking_lead.rs"]
mod waking_lead;

use std::time::Duration;

use crate::asks::Asked;
use crate::plan::{Fate, Plan};
use crate::players::Part;
use crate::process::Ended;
use crate::records::{Records, Transcript};
use crate::seeds::Seeds;
use crate::stage::{Process, Stage};

const SEEDS: Seeds = Seeds { one: "CENTURION_TEAM_SEED", count: "CENTURION_TEAM_SEEDS", usual: 60 };

/// Four processes of one session, one after another: one that works, one that finds what is left of it, one that finds
/// nothing to do, and one that sets all members to work again.
fn play(seed: u64) -> Asked {
    let stage = Stage::new(Plan::of(seed));
    let dies = match stage.plan.fate {
        Fate::Dies(after) => after,
        Fate::Lives | Fate::Cut(_) => Duration::MAX,
    };
    let first = Process { number: 0, part: Part::Plan, prompt: Some("Lead your team."), dies };
    let life = stage.live(&first);
    let records = Records::of(&stage);
    checks::after_life(&stage, &life, &records);
    let mut asked = asks::count(&records, life.ended);
    if let Fate::Cut(share) = stage.plan.fate {
        stage.cut(share);
        checks::always(&stage, &Records::of(&stage));
    }
    let first = Records::of(&stage);
    if first.lead.is_none() {
        // It died before it had begun.
        assert!(first.agents.is_empty());
        return asked;
    }
    let (number, dies) = (1, Duration::MAX);
    let prompt = Some("What became of them?");
    let life = stage.live(&Process { number, part: Part::Reading, prompt, dies });
    let second = Records::of(&stage);
    checks::after_reading(&stage, &first, &life, &second);
    let life = stage.live(&Process { number: 2, part: Part::Reading, prompt: None, dies });
    assert_eq!((life.ended, life.requests), (Ended::Over(None), 0), "nothing is left to do");
    assert_eq!(Records::of(&stage).bytes(), second.bytes(), "and nothing is written");
    let agents: Vec<&str> = second.agents.iter().map(Transcript::id).collect();
    if !agents.is_empty() {
        let prompt = format!("Speak to {}.", agents.join(", "));
        let prompt = Some(prompt.as_str());
        let life = stage.live(&Process { number: 3, part: Part::Waking, prompt, dies });
        let records = Records::of(&stage);
        checks::after_waking(&stage, &second, &life, &records);
        asked += asks::count(&records, life.ended);
    }
    asked
}

#[test]
fn every_team_keeps_its_promises() {
    // I-1, I-3, I-4, I-8, I-12, D-43, D-62 to D-68, teams.md 10
    // `None` where fewer than usual are played.
    if let Some(played) = SEEDS.play(play) {
        let mut asked = Asked::default();
        for it in played {
            asked += it;
        }
        let Asked { allowed, denied, ignored, gone } = asked;
        assert!([allowed, denied, ignored, gone].iter().all(|count| *count > 0), "{asked:?}");
    }
}

#[test]
fn the_same_seed_plays_the_same_team() {
    // I-14
    for seed in 0..8 {
        let records = || {
            let stage = Stage::new(Plan::of(seed));
            let prompt = Some("Lead your team.");
            let (part, dies) = (Part::Plan, Duration::MAX);
            stage.live(&Process { number: 0, part, prompt, dies });
            let home = stage.home();
            let records = Records::of(&stage);
            records.bytes().iter().map(|line| line.replace(&home, "<home>")).collect::<Vec<_>>()
        };
        assert_eq!(records(), records(), "seed {seed}");
    }
}
