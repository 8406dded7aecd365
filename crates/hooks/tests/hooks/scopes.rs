//! The selection of hooks for an event: matchers, conditions, agents, copies, switches.

use centurion_config::settings::{HookLimits, Level, Origin};
use centurion_hooks::{
    Common, Event, Frontmatter, HookOrigin, HookRules, HookScope, HookSet, HookSource,
};
use centurion_protocol::AgentId;
use serde_json::{Value, json};

use crate::stage::{Stage, plugin};

/// A hook that reports its name through the model.
fn hook(name: &str) -> Value {
    json!({"type": "mcp_tool", "server": "s", "tool": name})
}

fn before(matcher: &str, name: &str) -> Value {
    json!({"PreToolUse": [{"matcher": matcher, "hooks": [hook(name)]}]})
}

/// The names of the hooks that ran since the last call.
fn ran(stage: &Stage) -> Vec<String> {
    let asked = std::mem::take(&mut *stage.answers.asked.lock());
    asked.iter().map(|it| it.trim_start_matches("s/").trim_end_matches(" {}").to_owned()).collect()
}

#[tokio::test]
async fn only_hooks_that_mean_the_call_run() {
    let stage = Stage::new();
    stage.settings(Level::User, &before("Bash", "bash"));
    stage.settings(Level::User, &before("Edit|Write", "edit"));
    stage.settings(Level::User, &before("", "all"));
    let mut guarded = before("Bash", "git");
    guarded["PreToolUse"][0]["hooks"][0]["if"] = json!("Bash(git *)");
    stage.settings(Level::User, &guarded);
    stage.bash(&stage.common(), "ls").await;
    assert_eq!(ran(&stage), ["bash", "all"]);
    stage.bash(&stage.common(), "cd x && git push").await;
    assert_eq!(ran(&stage), ["bash", "all", "git"]);
    assert_eq!(stage.stop().await.runs, 0);
}

#[tokio::test]
async fn a_copy_in_another_settings_file_does_not_run_again() {
    let stage = Stage::new();
    stage.settings(Level::User, &before("Bash", "same"));
    stage.settings(Level::Project, &before("*", "same"));
    let origin = plugin("/p".into());
    stage.keep(HookScope::Session, &origin, &before("Bash", "same"));
    stage.keep(HookScope::Session, &origin, &before("Bash", "same"));
    stage.bash(&stage.common(), "ls").await;
    // Once for the settings, and once for each copy of the plugin.
    assert_eq!(ran(&stage), ["same"; 3]);
}

#[tokio::test]
async fn hooks_of_an_agent_are_its_own_and_go_with_it() {
    let stage = Stage::new();
    let agent = Some(AgentId::new("a1"));
    let origin = HookOrigin::new(HookSource::Agent("scout".into()));
    stage.settings(Level::User, &before("Bash", "all"));
    let own = stage.add(HookScope::Agent(agent.clone()), &origin, &before("Bash", "own"));
    let child = Common { agent_id: agent, ..stage.common() };
    stage.bash(&child, "ls").await;
    assert_eq!(ran(&stage), ["all", "own"]);
    stage.bash(&stage.common(), "ls").await;
    assert_eq!(ran(&stage), ["all"]);
    drop(own);
    stage.bash(&child, "ls").await;
    assert_eq!(ran(&stage), ["all"]);
}

#[tokio::test]
async fn a_session_without_hooks_for_an_event_knows_it_at_once() {
    let stage = Stage::new();
    assert!(Event::all().all(|event| stage.hooks.is_empty_for(event)));
    let origin = plugin("/p".into());
    let registration = stage.add(HookScope::Session, &origin, &before("Bash", "x"));
    assert!(!stage.hooks.is_empty_for(Event::PreToolUse));
    assert!(stage.hooks.is_empty_for(Event::Stop));
    let other = HookSet::from_value(&json!({"Stop": [{"hooks": [hook("x")]}]}), &origin);
    registration.replace(other);
    assert!(stage.hooks.is_empty_for(Event::PreToolUse));
    assert!(!stage.hooks.is_empty_for(Event::Stop));
    drop(registration);
    assert!(stage.hooks.is_empty_for(Event::Stop));
}

#[tokio::test]
async fn a_hook_that_runs_once_does_not_run_again() {
    let stage = Stage::new();
    let mut hooks = before("Bash", "once");
    hooks["PreToolUse"][0]["hooks"][0]["once"] = json!(true);
    let origin = HookOrigin::new(HookSource::Skill("deploy".into()));
    let set = HookSet::from_frontmatter(&hooks, &origin, Frontmatter::Skill);
    let registration = stage.hooks.add(HookScope::Session, set.clone());
    stage.bash(&stage.common(), "ls").await;
    stage.bash(&stage.common(), "ls").await;
    assert_eq!(ran(&stage), ["once"]);
    // When the skill is used again, the hook runs again.
    drop(registration);
    let _again = stage.hooks.add(HookScope::Session, set);
    stage.bash(&stage.common(), "ls").await;
    assert_eq!(ran(&stage), ["once"]);
}

#[tokio::test]
async fn switches_count_from_the_moment_they_are_set() {
    let stage = Stage::new();
    stage.settings(Level::Managed, &before("Bash", "managed"));
    stage.settings(Level::User, &before("Bash", "user"));
    let origin = |level| Origin {
        level,
        file: std::path::Path::new("/s").into(),
        line: 1,
        root: std::path::Path::new("/").into(),
    };
    let off = |level| HookLimits { disabled: Some(origin(level)), ..HookLimits::default() };
    for (limits, expected) in [
        (HookLimits::default(), &["managed", "user"][..]),
        (off(Level::User), &["managed"]),
        (off(Level::Managed), &[]),
        (
            HookLimits { managed_only: Some(origin(Level::Managed)), ..HookLimits::default() },
            &["managed"],
        ),
    ] {
        stage.hooks.limit(HookRules::new(&limits));
        stage.bash(&stage.common(), "ls").await;
        assert_eq!(ran(&stage), expected, "{limits:?}");
    }
}
