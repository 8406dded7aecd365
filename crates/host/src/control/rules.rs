//! Requests of a host about permissions: the rules that are in force, the hooks, the modes of single servers.

use centurion_config::settings::Level;
use centurion_engine::Handle;
use centurion_hooks::{Action, Event, HookSource, ListedHook};
use centurion_permissions::{Mode, RuleKind, RuleLevel, RuleSource};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::settings::{SettingsDesk, problems};
use crate::without_nulls;

/// Every rule with its place, and where agents work.
pub(super) fn list(handle: &Handle, desk: &dyn SettingsDesk) -> Value {
    let view = desk.view();
    let managed_only = view.effective.get("allowManagedPermissionRulesOnly") == Some(&json!(true));
    let rules: Vec<Value> = handle.permission_rules().iter().map(rule).collect();
    let mut directories = handle.directories().into_iter();
    let cwd = directories.next().map(|(path, _)| path);
    let added = directories.map(|(path, is_added)| {
        json!({"path": path, "source": if is_added { "session" } else { "cliArg" }})
    });
    json!({"state": {
        "rules": rules,
        "workspaceDirectories": added.collect::<Vec<_>>(),
        "originalCwd": cwd,
        "managedOnly": managed_only,
        "errors": problems(&view.problems),
    }})
}

fn rule((kind, source): &(RuleKind, RuleSource)) -> Value {
    let behavior = match kind {
        RuleKind::Allow => "allow",
        RuleKind::Ask => "ask",
        RuleKind::Deny => "deny",
    };
    let (name, editability) = place(source);
    json!({"behavior": behavior, "source": name, "rule": source.text, "editability": editability})
}

/// The place of a rule by its word in the public protocol, and whether it can be changed there.
fn place(source: &RuleSource) -> (&'static str, &'static str) {
    match source.origin.level() {
        RuleLevel::Managed => ("policySettings", "readonly"),
        RuleLevel::Flag if source.origin.file().is_some() => ("flagSettings", "readonly"),
        RuleLevel::Flag => ("cliArg", "session"),
        RuleLevel::Local => ("localSettings", "persistent"),
        RuleLevel::Project => ("projectSettings", "persistent"),
        RuleLevel::User => ("userSettings", "persistent"),
        RuleLevel::Session => ("session", "session"),
        RuleLevel::Role => ("command", "readonly"),
    }
}

/// The rule because of which a question is put, in its parts.
pub(crate) fn matched(source: &RuleSource) -> Value {
    let text = source.text.trim();
    let (tool, content) = match text.split_once('(') {
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').unwrap_or(rest))),
        None => (text, None),
    };
    without_nulls(json!({"source": place(source).0, "tool_name": tool, "rule_content": content}))
}

/// A mode for the tools of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ServerMode {
    Default,
    Auto,
}

/// Sets the mode of one server's tools, or sets none any more. A name that no server has is told of: the mode holds
/// once a server of this name is there.
pub(super) fn set_server_mode(handle: &Handle, server: &str, mode: Option<ServerMode>) -> Value {
    let mode = mode.map(|mode| match mode {
        ServerMode::Default => Mode::Default,
        ServerMode::Auto => Mode::Auto,
    });
    if handle.set_server_mode(server, mode) {
        return json!({});
    }
    json!({"warning": format!("there is no server `{server}` now")})
}

/// Every hook that is in force, and every event that there is.
pub(super) fn hooks(handle: &Handle, desk: &dyn SettingsDesk) -> Value {
    let hooks = handle.hooks();
    let count = |event: Event| hooks.iter().filter(|hook| hook.event == event).count();
    let about = |event: Event| {
        let subject = event.what_matcher_means();
        let summary = subject.map(|it| format!("Its matcher is tried on {it}"));
        json!({"name": event.name(), "summary": summary.unwrap_or_default(), "supportsMatcher": subject.is_some()})
    };
    let events = Event::all().filter(|event| count(*event) > 0).map(|event| {
        let mut listed = about(event);
        listed["hookCount"] = json!(count(event));
        listed
    });
    let view = desk.view();
    let is_on = |key: &str| view.effective.get(key) == Some(&json!(true));
    let managed = hooks.iter().filter(|it| is_managed(&it.handler.origin.source)).count();
    let mut policy = Map::new();
    policy.insert("disabledByPolicy".into(), json!(is_on("disableAllHooks") && managed == 0));
    policy.insert("managedOnly".into(), json!(is_on("allowManagedHooksOnly")));
    policy.insert("pluginOnly".into(), json!(is_on("strictPluginOnlyCustomization")));
    policy.insert("allDisabled".into(), json!(is_on("disableAllHooks")));
    policy.insert("policyHookCount".into(), json!(managed));
    let mut listing = json!({
        "events": events.collect::<Vec<_>>(),
        "hooks": hooks.iter().map(hook).collect::<Vec<_>>(),
        "eventCatalog": Event::all().map(about).collect::<Vec<_>>(),
        "policy": policy,
    });
    if view.is_safe {
        let hint = "start the session without --safe-mode and CLAUDE_CODE_SAFE_MODE";
        listing["safeMode"] = json!({"managedHooksStillApply": true, "exitHint": hint});
    }
    listing
}

fn is_managed(source: &HookSource) -> bool {
    matches!(source, HookSource::Settings(Level::Managed))
}

fn hook(listed: &ListedHook) -> Value {
    let handler = &listed.handler;
    let (source, plugin) = match &handler.origin.source {
        HookSource::Settings(Level::Managed) => ("policySettings", None),
        HookSource::Settings(Level::Flag) => ("flagSettings", None),
        HookSource::Settings(Level::Local) => ("localSettings", None),
        HookSource::Settings(Level::Project) => ("projectSettings", None),
        HookSource::Settings(Level::User) => ("userSettings", None),
        HookSource::Plugin(plugin) => ("pluginHook", Some(plugin.name.clone())),
        HookSource::Skill(_) | HookSource::Agent(_) | HookSource::Host => ("sessionHook", None),
    };
    let label = match handler.action {
        Action::Command(_) => "Command",
        Action::Http(_) => "URL",
        Action::McpTool { .. } => "Tool",
        Action::Prompt(_) | Action::Agent(_) => "Prompt",
        Action::Callback(_) => "Callback",
    };
    let text = revealed(&handler.action.label());
    let shown = handler.status_message.as_deref().map_or_else(|| text.clone(), revealed);
    let mut row = json!({
        "event": listed.event.name(),
        "matcher": revealed(&listed.matcher),
        "source": source,
        "sourceLabel": handler.origin.to_string(),
        "type": handler.action.handler_type().name(),
        "displayText": shown,
        "commandText": text,
        "contentLabel": label,
    });
    if let Some(plugin) = plugin {
        row["pluginName"] = json!(plugin);
    }
    if let Some(timeout) = handler.timeout {
        row["timeout"] = json!(timeout.as_secs_f64());
    }
    if let Some(message) = &handler.status_message {
        row["statusMessage"] = json!(message);
    }
    if handler.once {
        row["runsOnce"] = json!(true);
    }
    row
}

/// A text on one line whose control characters can be seen.
fn revealed(text: &str) -> String {
    text.chars()
        .flat_map(
            |it| if it.is_control() { it.escape_default().collect::<Vec<_>>() } else { vec![it] },
        )
        .collect()
}
