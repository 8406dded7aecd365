//! `agent` and `subagents`: every key, its origin, and what a repository may say about it.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::*;
use super::Machine;

fn everything() -> Value {
    json!({
        "agent": "lead",
        "subagents": {
            "models": {"Explore": "inherit", "Plan": " opus ", "none": " "},
            "permissionMode": "acceptEdits", "background": true, "fork": "interactive",
            "escStopsBackground": true, "disabled": ["Bash", "verification"],
            "memorySnapshot": true, "summaries": true, "mode": "coordinator",
            "autoBackgroundSeconds": 120, "stallSeconds": 0,
            "limits": {"depth": 5, "running": 0, "spawns": 40, "spawnsPerMinute": 10,
                       "budgetUsd": 2.5, "tokens": 900_000, "turns": 12},
        },
    })
}

#[test]
fn every_key_about_subagents_is_read_and_used() {
    // D-2, D-5, D-5a, D-11, D-12, D-49
    let machine = Machine::new();
    machine.user(&everything());
    let settings = machine.load();
    let subagents = settings.subagents();
    let models: Vec<_> =
        subagents.models.iter().map(|(name, model)| (name.as_str(), &*model.value)).collect();
    assert_eq!(models, [("Explore", "inherit"), ("Plan", "opus")]);
    assert_eq!(subagents.permission_mode.unwrap().value, ChildMode::AcceptEdits);
    assert_eq!(subagents.fork.unwrap().value, ForkGate::Interactive);
    assert_eq!(subagents.mode.unwrap().value, SessionMode::Coordinator);
    assert!(subagents.background && subagents.esc_stops_background);
    assert!(subagents.memory_snapshot && subagents.summaries);
    assert_eq!(super::values(&subagents.disabled), ["Bash", "verification"]);
    assert_eq!(subagents.auto_background, Some(Duration::from_mins(2)));
    assert_eq!(subagents.stall, Some(Duration::ZERO));
    let limits = subagents.limits;
    assert_eq!((limits.depth.unwrap().value, limits.running.unwrap().value), (5, 0));
    assert_eq!((limits.spawns.unwrap().value, limits.spawns_per_minute.unwrap().value), (40, 10));
    assert_eq!(limits.budget_usd.as_ref().map(|it| it.value), Some(2.5));
    assert_eq!((limits.tokens.unwrap().value, limits.turns.as_ref().unwrap().value), (900_000, 12));
    assert_eq!(limits.turns.unwrap().origin.level, Level::User);
    assert_eq!(settings.agent().unwrap().value, "lead");
    assert!(settings.keys().iter().all(KeyReport::in_force), "{:?}", settings.keys());
    assert_eq!(settings.problems().count(), 0);
    // A caller that asks for the object gets it whole.
    assert_eq!(settings.value("subagents").unwrap()["limits"], everything()["subagents"]["limits"]);
}

#[test]
fn nothing_said_about_subagents_leaves_everything_open() {
    let settings = Machine::new().load();
    let SubagentSettings { models, disabled, limits, .. } = settings.subagents();
    assert!(models.is_empty() && disabled.is_empty());
    assert_eq!(limits, SubagentLimits::default());
    assert_eq!((settings.agent(), settings.value("subagents")), (None, None));
}

#[test]
fn what_cannot_be_used_is_told_with_its_line_and_the_rest_counts() {
    let machine = Machine::new();
    machine.write(
        "home/.claude/settings.json",
        r#"{"subagents": {
            "permissionMode": "bypass",
            "fork": true,
            "models": {"Explore": 3},
            "limits": {
                "depth": -1,
                "budgetUsd": "5",
                "tokens": 1.5,
                "spawns": 7
            },
            "limit": {}
        }}"#,
    );
    let settings = machine.load();
    assert_eq!(
        machine.problems(&settings),
        [
            "home/.claude/settings.json:2: `subagents.permissionMode` must be one of inherit, \
             acceptEdits, and is `bypass`; it is left out",
            "home/.claude/settings.json:3: `subagents.fork` must be one of off, interactive, \
             always, and is true or false; it is left out",
            "home/.claude/settings.json:4: `subagents.models.Explore` must be text in quotes, and \
             is a number; it is left out",
            "home/.claude/settings.json:6: `subagents.limits.depth` must be a whole number from 0 \
             to 100, and is -1; it is left out",
            "home/.claude/settings.json:7: `subagents.limits.budgetUsd` must be a number of 0 or \
             more, and is text; it is left out",
            "home/.claude/settings.json:8: `subagents.limits.tokens` must be a whole number from 0 \
             to 1000000000000, and is 1.5; it is left out",
        ]
    );
    let limits = settings.subagents().limits;
    assert_eq!((limits.depth, limits.spawns.map(|it| it.value)), (None, Some(7)));
    let unknown = settings.keys().into_iter().find(|key| key.key == "subagents.limit");
    assert!(matches!(unknown.unwrap().state, KeyState::Unknown { .. }));
}

#[test]
fn a_number_of_dollars_is_not_below_zero() {
    let machine = Machine::new();
    for (written, read) in [
        ("0", Some(0.0)),
        ("0.01", Some(0.01)),
        ("3", Some(3.0)),
        ("1e3", Some(1000.0)),
        ("-0.01", None),
        ("null", None),
    ] {
        let text = format!(r#"{{"subagents": {{"limits": {{"budgetUsd": {written}}}}}}}"#);
        machine.write("home/.claude/settings.json", text);
        let settings = machine.load();
        let budget = settings.subagents().limits.budget_usd.map(|it| it.value);
        assert_eq!(budget, read, "{written}");
        assert_eq!(settings.problems().count(), usize::from(read.is_none()), "{written}");
    }
}

/// The keys of the project that want of trust switches off.
fn untrusted(settings: &Settings) -> Vec<String> {
    let keys = settings.keys().into_iter();
    let off = keys.filter(|key| key.state == KeyState::Off(Off::Untrusted));
    off.map(|key| key.key.replace("subagents.", "")).collect()
}

#[test]
fn a_repository_may_lower_and_needs_trust_to_widen() {
    for (written, off) in [
        (json!({"models": {"Explore": "opus"}}), vec!["models.Explore"]),
        (json!({"permissionMode": "acceptEdits"}), vec!["permissionMode"]),
        (json!({"permissionMode": "inherit"}), vec![]),
        (json!({"fork": "always", "mode": "proactive"}), vec!["fork", "mode"]),
        (json!({"fork": "off", "mode": "normal"}), vec![]),
        (json!({"background": true, "memorySnapshot": true}), vec!["background", "memorySnapshot"]),
        (json!({"background": false, "memorySnapshot": false}), vec![]),
        (json!({"escStopsBackground": false}), vec!["escStopsBackground"]),
        (json!({"escStopsBackground": true, "disabled": ["Bash"], "stallSeconds": 5}), vec![]),
        (json!({"limits": {"depth": 4, "running": 21}}), vec!["limits.depth", "limits.running"]),
        (json!({"limits": {"depth": 3, "running": 20}}), vec![]),
        (json!({"limits": {"depth": 0, "spawns": 100, "budgetUsd": 9.5, "turns": 3}}), vec![]),
    ] {
        let machine = Machine::new();
        machine.project(&json!({"subagents": written}));
        let mut settings = machine.load();
        let mut found = untrusted(&settings);
        found.sort_unstable();
        assert_eq!(found, off, "{written}");
        settings.apply_trust(RepositoryTrust::Full);
        assert_eq!(untrusted(&settings), Vec::<String>::new(), "{written}");
    }
}

#[test]
fn a_repository_without_trust_lowers_the_users_limits_and_never_raises_them() {
    let limits = |spawns: u64, dollars: f64| json!({"subagents": {"limits": {"spawns": spawns, "budgetUsd": dollars}}});
    let read = |settings: &Settings| {
        let limits = settings.subagents().limits;
        (limits.spawns.unwrap().value, limits.budget_usd.unwrap().value)
    };
    let machine = Machine::new();
    machine.user(&limits(10, 1.0)).project(&limits(5, 2.5));
    let mut settings = machine.load();
    assert_eq!(read(&settings), (5, 1.0));
    assert_eq!(untrusted(&settings), ["limits.budgetUsd"]);
    settings.apply_trust(RepositoryTrust::Full);
    assert_eq!(read(&settings), (5, 2.5));
    // Local settings, which a repository can bring, are no better.
    let machine = Machine::new();
    machine.user(&limits(10, 1.0));
    machine.json("home/repo/.claude/settings.local.json", &limits(20, 0.5));
    assert_eq!(read(&machine.load()), (10, 0.5));
    assert_eq!(read(&machine.trusted()), (20, 0.5));
}

#[test]
fn the_agent_of_a_repository_needs_the_trust_of_a_folder_above() {
    let machine = Machine::new();
    machine.project(&json!({"agent": "theirs"})).user(&json!({"agent": "mine"}));
    let agent = |standing| {
        let agent = Settings::load(machine.sources(), standing).agent().unwrap();
        (agent.value, agent.origin.level)
    };
    assert_eq!(agent(RepositoryTrust::Untrusted), ("mine".to_owned(), Level::User));
    assert_eq!(agent(RepositoryTrust::Partly), ("theirs".to_owned(), Level::Project));
}
