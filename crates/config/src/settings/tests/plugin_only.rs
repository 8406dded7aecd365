//! The kinds of things that the administrator leaves to plugins.

use serde_json::{Value, json};

use super::super::*;
use super::Machine;

const KEY: &str = "strictPluginOnlyCustomization";

/// The kinds of things that are left to plugins.
fn closed(settings: &Settings) -> Vec<&'static str> {
    let PluginOnly { skills, agents, hooks, mcp } = settings.plugin_only();
    let kinds = [("skills", skills), ("agents", agents), ("hooks", hooks), ("mcp", mcp)];
    kinds.into_iter().filter_map(|(name, by)| by.map(|_| name)).collect()
}

fn policy(value: &Value) -> Value {
    Value::Object([(KEY.to_owned(), value.clone())].into_iter().collect())
}

#[test]
fn a_policy_names_what_is_left_to_plugins() {
    // S-077
    let machine = Machine::new();
    assert_eq!(machine.trusted().plugin_only(), PluginOnly::default());
    let all = ["skills", "agents", "hooks", "mcp"];
    for (value, expected) in [
        (json!(true), &all[..]),
        (json!(false), &[]),
        (json!([]), &[]),
        (json!(["hooks", "skills"]), &["skills", "hooks"]),
        (json!(all), &all),
    ] {
        machine.managed(&policy(&value));
        let settings = machine.trusted();
        assert_eq!(closed(&settings), expected, "{value}");
        assert_eq!(machine.problems(&settings), [""; 0]);
        assert!(settings.keys()[0].in_force());
    }
}

#[test]
fn only_managed_settings_may_leave_anything_to_plugins() {
    // S-077
    let machine = Machine::new();
    machine.user(&policy(&json!(true))).project(&policy(&json!(true)));
    let settings = machine.trusted();
    assert_eq!(closed(&settings), [""; 0]);
    assert!(settings.keys().iter().all(|key| key.state == KeyState::Off(Off::OnlyManaged)));
}

#[test]
fn a_slip_in_a_policy_is_told_and_the_rest_of_it_counts() {
    // S-077
    let machine = Machine::new();
    machine.managed(&policy(&json!(["hook", "mcp", 3])));
    let settings = machine.trusted();
    assert_eq!(closed(&settings), ["mcp"]);
    assert_eq!(
        machine.problems(&settings),
        [
            "etc/managed-settings.json:1: `strictPluginOnlyCustomization[0]` must be one of skills, \
             agents, hooks, mcp, and is `hook`; it is left out",
            "etc/managed-settings.json:1: `strictPluginOnlyCustomization[2]` must be one of skills, \
             agents, hooks, mcp, and is a number; it is left out",
        ]
    );
    machine.managed(&policy(&json!("mcp")));
    let problems = machine.problems(&machine.trusted());
    assert!(
        problems[0].contains("must be true, false or a list of skills, agents"),
        "{problems:?}"
    );
}

#[test]
fn lists_of_managed_files_add_up_until_one_says_yes_or_no() {
    // S-077
    let machine = Machine::new();
    machine.managed(&policy(&json!(["mcp"])));
    machine.json("etc/managed-settings.d/10.json", &policy(&json!(["hooks"])));
    let settings = machine.trusted();
    assert_eq!(closed(&settings), ["hooks", "mcp"]);
    assert!(settings.keys().iter().all(KeyReport::in_force));
    let origin = settings.plugin_only().hooks.unwrap();
    assert!(origin.file.ends_with("10.json"));
    machine.json("etc/managed-settings.d/20.json", &policy(&json!(false)));
    let settings = machine.trusted();
    assert_eq!(closed(&settings), [""; 0]);
    assert_eq!(settings.keys().iter().filter(|key| key.in_force()).count(), 1);
    machine.json("etc/managed-settings.d/30.json", &policy(&json!(["skills"])));
    assert_eq!(closed(&machine.trusted()), ["skills"]);
    machine.json("etc/managed-settings.d/15.json", &policy(&json!(true)));
    assert_eq!(closed(&machine.trusted()), ["skills"]);
}

#[test]
fn hooks_and_agents_of_other_settings_are_off_under_the_policy() {
    // S-077
    let machine = Machine::new();
    let both = json!({"hooks": {"Stop": []}, "agents": {"a": {}}});
    machine.user(&both).project(&both);
    let mut managed = both.clone();
    managed[KEY] = json!(["hooks"]);
    machine.managed(&managed);
    let settings = machine.trusted();
    let by = settings.plugin_only().hooks.unwrap();
    let hooks: Vec<_> = settings.hooks().into_iter().map(|it| (it.origin.level, it.off)).collect();
    let off = || Some(Off::PluginOnly(by.clone()));
    assert_eq!(hooks, [(Level::Managed, None), (Level::Project, off()), (Level::User, off())]);
    let agents: Vec<_> = settings.agents().into_iter().map(|it| it.off).collect();
    assert!(!agents.iter().any(|off| matches!(off, Some(Off::PluginOnly(_)))), "{agents:?}");
    let report = settings.keys().into_iter().find(|key| !key.in_force() && key.key == "hooks");
    let why = report.unwrap().why();
    assert!(why.ends_with("(managed) leaves this to plugins and managed settings"), "{why}");
    managed[KEY] = json!(["agents"]);
    machine.managed(&managed);
    let settings = machine.trusted();
    assert!(settings.hooks().iter().all(|it| it.off.is_none()));
    let off =
        settings.agents().iter().filter(|it| matches!(it.off, Some(Off::PluginOnly(_)))).count();
    assert_eq!(off, 2);
}
