//! Limits from settings and environment, and the gate under a clock that stands still.

use std::path::Path;
use std::sync::Arc;

use centurion_config::settings::{Level, Origin};
use tokio::time::advance;

use super::*;

fn sourced<T>(value: T) -> Sourced<T> {
    let place: Arc<Path> = Arc::from(Path::new("settings.json"));
    let origin = Origin { level: Level::User, file: Arc::clone(&place), line: 1, root: place };
    Sourced { value, origin }
}

fn gate(spawns: Option<u64>, spawns_per_minute: Option<u64>) -> SpawnGate {
    SpawnGate::new(&Limits { spawns, spawns_per_minute, ..Limits::default() })
}

#[test]
fn nothing_said_means_three_deep_and_twenty_at_once() {
    // D-12
    let limits = Limits::new(&SubagentLimits::default(), &Env::default()).unwrap();
    assert_eq!((limits.depth, limits.running), (3, 20));
    assert_eq!((limits.spawns, limits.spawns_per_minute, limits.turns), (None, None, None));
    assert_eq!(limits.budget, Limit::default());
    assert_eq!(limits, Limits::default());
}

#[test]
fn settings_say_all_limits_and_the_environment_beats_two_of_them() {
    // D-12
    let settings = SubagentLimits {
        depth: Some(sourced(1)),
        running: Some(sourced(0)),
        spawns: Some(sourced(40)),
        spawns_per_minute: Some(sourced(10)),
        budget_usd: Some(sourced(2.5)),
        tokens: Some(sourced(9000)),
        turns: Some(sourced(7)),
    };
    let limits = Limits::new(&settings, &Env::default()).unwrap();
    let budget = Limit { dollars: Some(2.5), tokens: Some(9000) };
    let expected = Limits {
        depth: 1,
        running: 0,
        spawns: Some(40),
        spawns_per_minute: Some(10),
        budget,
        turns: Some(7),
    };
    assert_eq!(limits, expected);
    let env = Env::from([(DEPTH_VARIABLE, "5"), (RUNNING_VARIABLE, " 400 ")]);
    let limits = Limits::new(&settings, &env).unwrap();
    assert_eq!(limits, Limits { depth: 5, running: 400, ..expected });
    // An empty variable is none.
    let env = Env::from([(DEPTH_VARIABLE, ""), (RUNNING_VARIABLE, "0")]);
    let limits = Limits::new(&SubagentLimits::default(), &env).unwrap();
    assert_eq!((limits.depth, limits.running), (3, 0));
}

#[test]
fn a_variable_that_is_no_number_is_an_error_that_names_it() {
    for variable in [DEPTH_VARIABLE, RUNNING_VARIABLE] {
        for value in ["many", "-1", "2.5", "99999999999999999999"] {
            let error = Limits::new(&SubagentLimits::default(), &Env::from([(variable, value)]));
            assert_eq!(
                error.unwrap_err().to_string(),
                format!(
                    "{variable} must be a whole number, and is `{value}`; help: set it to a number \
                     or unset it"
                )
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_total_counts_what_was_started_and_not_what_was_refused() {
    let gate = gate(Some(2), None);
    assert_eq!((gate.admit(), gate.admit()), (Ok(()), Ok(())));
    for _ in 0..3 {
        assert_eq!(gate.admit(), Err(SpawnRefused::Total { limit: 2 }));
    }
    advance(MINUTE * 60).await;
    let refused = gate.admit().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "no more agents may be started in this session, which has started 2: do what is left \
         yourself, or say what is missing (the setting subagents.limits.spawns is 2)"
    );
    assert_eq!(gate.spawned(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_rate_looks_back_one_minute_at_every_moment() {
    let gate = gate(None, Some(2));
    gate.admit().unwrap();
    advance(Duration::from_secs(40)).await;
    gate.admit().unwrap();
    let refused = gate.admit().unwrap_err();
    assert_eq!(refused, SpawnRefused::Rate { limit: 2, wait: Duration::from_secs(20) });
    assert_eq!(
        refused.to_string(),
        "too many agents were started in the last minute: try again in 20 seconds, or do the work \
         yourself (the setting subagents.limits.spawnsPerMinute is 2)"
    );
    advance(Duration::from_millis(19_500)).await;
    let refused = gate.admit().unwrap_err();
    assert!(refused.to_string().contains("try again in 1 second,"), "{refused}");
    // The first one leaves the minute, the second is still in it.
    advance(Duration::from_millis(500)).await;
    gate.admit().unwrap();
    assert!(gate.admit().is_err());
    advance(Duration::from_secs(40)).await;
    gate.admit().unwrap();
    assert_eq!(gate.spawned(), 4);
}

#[tokio::test(start_paused = true)]
async fn who_waits_as_long_as_it_was_told_is_let_in() {
    let gate = gate(Some(100), Some(3));
    for _ in 0..100 {
        match gate.admit() {
            Ok(()) => advance(Duration::from_secs(7)).await,
            Err(SpawnRefused::Rate { wait, .. }) => {
                advance(wait).await;
                gate.admit().unwrap();
            }
            Err(refused) => {
                assert_eq!(refused, SpawnRefused::Total { limit: 100 });
                break;
            }
        }
    }
    assert_eq!(gate.spawned(), 100);
}

#[tokio::test(start_paused = true)]
async fn zero_means_that_none_may_and_nothing_said_means_that_all_may() {
    for (gate, setting) in [(gate(Some(0), Some(5)), TOTAL), (gate(None, Some(0)), PER_MINUTE)] {
        assert_eq!(
            gate.admit().unwrap_err().to_string(),
            format!(
                "no agent may be started here: do the work yourself (the setting {setting} is 0)"
            )
        );
        advance(MINUTE * 2).await;
        assert!(gate.admit().is_err());
        assert_eq!(gate.spawned(), 0);
    }
    let free = gate(None, None);
    assert!((0..10_000).all(|_| free.admit().is_ok()));
}
