//! Hooks as people write them, in all forms, and with every problem.

use std::fs;
use std::path::Path;
use std::time::Duration;

use centurion_config::settings::{RepositoryTrust, Settings, SettingsSources};
use serde_json::json;

use super::*;
use crate::handler::{Action, CommandAction, HookShell, Waiting};

fn plugin() -> HookOrigin {
    HookOrigin::in_file(HookSource::Plugin(Arc::default()), Path::new("hooks.json"), None)
}

fn problems(set: &HookSet) -> Vec<String> {
    set.problems().iter().map(ToString::to_string).collect()
}

/// The handlers as event, label and timeout.
fn told(set: &HookSet) -> Vec<(Event, String, Option<Duration>)> {
    set.handlers().map(|(event, it)| (event, it.action.label(), it.timeout)).collect()
}

#[test]
fn all_types_are_read_with_all_that_they_say() {
    let set = HookSet::from_value(
        &json!({"description": "mine", "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
            {"type": "command", "command": "a", "timeout": 1.5, "shell": "bash", "async": true,
             "if": "Bash(git *)", "statusMessage": "checking"},
            {"type": "command", "command": "b", "args": ["x", "y"], "asyncRewake": true},
            {"type": "http", "url": "https://a.com", "headers": {"A": "$B"}, "allowedEnvVars": ["B"]},
            {"type": "mcp_tool", "server": "s", "tool": "t", "input": {"k": 1}},
            {"type": "prompt", "prompt": "good?", "model": "haiku"},
            {"type": "agent", "prompt": "look"},
        ]}]}}),
        &plugin(),
    );
    assert_eq!(problems(&set), [""; 0]);
    let handlers: Vec<_> = set.handlers().map(|(_, handler)| handler).collect();
    assert_eq!(handlers[0].timeout, Some(Duration::from_millis(1_500)));
    assert_eq!(handlers[0].status_message.as_deref(), Some("checking"));
    assert_eq!(handlers[0].condition.as_ref().unwrap().text(), "Bash(git *)");
    let Action::Command(CommandAction { shell, waiting, args: None, .. }) = &handlers[0].action
    else {
        panic!("{:?}", handlers[0])
    };
    assert_eq!((*shell, *waiting), (HookShell::Bash, Waiting::Never));
    assert!(matches!(
        &handlers[1].action,
        Action::Command(CommandAction { waiting: Waiting::Wakes, args: Some(args), .. }) if args == &["x", "y"]
    ));
    let labels: Vec<_> = handlers.iter().map(|handler| handler.action.label()).collect();
    assert_eq!(labels, ["a", "b x y", "https://a.com", "mcp__s__t", "good?", "look"]);
    // An agent's refusal does not end the turn.
    assert!(matches!(&handlers[4].action, Action::Prompt(it) if !it.continue_on_block));
    assert!(matches!(&handlers[5].action, Action::Agent(it) if it.continue_on_block));
}

#[test]
fn what_cannot_run_is_a_problem_that_says_what_to_do() {
    let command = json!({"type": "command", "command": "x"});
    let handler = |event: &str, handler| json!({event: [{"hooks": [handler]}]});
    for (hooks, kept, expected) in [
        (json!([]), 0, "`hooks` must be an object"),
        (
            json!({"PreTool": []}),
            0,
            "`PreTool` is no event that hooks run at; help: use one of Sess",
        ),
        (json!({"Stop": {}}), 0, "`Stop` must hold a list"),
        (json!({"Stop": ["x"]}), 0, "must be an object with a list `hooks`"),
        (json!({"Stop": [{"matcher": "x"}]}), 0, "has no list `hooks`"),
        (json!({"Stop": [{"hooks": command}]}), 0, "`hooks` must be a list"),
        (handler("Stop", json!("x")), 0, "must be an object with a `type`"),
        (json!({"PreToolUse": [{"matcher": 1, "hooks": [command]}]}), 0, "`matcher` must be text"),
        (json!({"PreToolUse": [{"matcher": "(?=a)", "hooks": [command]}]}), 0, "look-around"),
        (json!({"PreToolUse": [{"matcher": "mcp__a", "hooks": [command]}]}), 0, "mcp__a__.*"),
        (handler("Stop", json!({"command": "x"})), 0, "has no `type`; help: use one of command"),
        (handler("Stop", json!({"type": "shell"})), 0, "`shell` is no type of hook"),
        (handler("Stop", json!({"type": "callback"})), 0, "`callback` is no type of hook"),
        (handler("Stop", json!({"type": "command"})), 0, "has no `command`"),
        (handler("Stop", json!({"type": "command", "command": " "})), 0, "has no `command`"),
        (handler("Stop", json!({"type": "http"})), 0, "has no `url`"),
        (handler("Stop", json!({"type": "http", "url": "file:///x"})), 0, "http or https"),
        (handler("Stop", json!({"type": "http", "url": "x"})), 0, "`url` is no address"),
        (handler("Stop", json!({"type": "mcp_tool", "tool": "x"})), 0, "has no `server`"),
        (handler("Stop", json!({"type": "mcp_tool", "server": "x"})), 0, "has no `tool`"),
        (handler("Stop", json!({"type": "prompt"})), 0, "has no `prompt`"),
        (
            handler("SessionStart", json!({"type": "http", "url": "https://a"})),
            0,
            "cannot run at Se",
        ),
        (handler("Notification", json!({"type": "agent", "prompt": "x"})), 0, "cannot run at Not"),
        (
            handler("Stop", json!({"type": "command", "command": "x", "if": "Bash"})),
            0,
            "never runs at Stop",
        ),
        (
            handler("PreToolUse", json!({"type": "command", "command": "x", "if": "Bash("})),
            0,
            "its `if` is no use",
        ),
        (
            handler("Stop", json!({"type": "command", "command": "x", "args": "y"})),
            0,
            "`args` must",
        ),
        (
            handler("Stop", json!({"type": "command", "command": "x", "shell": "zsh"})),
            0,
            "no shell",
        ),
        (
            handler("Stop", json!({"type": "command", "command": "x ${user_config.k}"})),
            0,
            "put the arguments into `args`",
        ),
        // These run, though not as written.
        (handler("Stop", json!({"type": "command", "command": "x", "timeout": 0})), 1, "`timeout`"),
        (
            handler("Stop", json!({"type": "command", "command": "x", "timeout": "5"})),
            1,
            "`timeout`",
        ),
        (handler("Stop", json!({"type": "command", "command": "x", "once": true})), 1, "in skills"),
    ] {
        let set = HookSet::from_value(&hooks, &plugin());
        let problems = problems(&set);
        assert_eq!((set.len(), problems.len()), (kept, 1), "{hooks}: {problems:?}");
        assert!(problems[0].contains(expected), "{hooks}: {problems:?}");
        assert!(problems[0].starts_with("hooks.json: "), "{problems:?}");
    }
}

#[test]
fn a_problem_has_the_line_of_its_handler() {
    let text = "{\"hooks\": {\n\"Stop\": [\n{\"hooks\": [\n{\"type\": \"command\", \"command\": \"x\"},\n\
                {\"type\": \"nothing\"}\n]}]}}";
    let set = HookSet::from_text(text, &plugin()).unwrap();
    assert!(problems(&set)[0].starts_with("hooks.json:5: `nothing`"), "{:?}", set.problems());
    assert_eq!(set.handlers().next().unwrap().1.origin.line, Some(4));
    assert!(HookSet::from_text("{", &plugin()).is_err());
}

#[test]
fn the_form_in_frontmatter_decides_what_a_timeout_counts() {
    // D-23, S-336, S-337
    let hooks = json!({
        "Stop": [
            {"command": "short", "timeout": 5000},
            {"hooks": [{"type": "command", "command": "nested", "timeout": 5}]},
            {"matcher": "x"},
            {"hooks": []},
        ],
        "PreToolUse": [{"matcher": "Bash", "command": "both"}],
        "Later": [{"command": "x"}],
    });
    let origin = HookOrigin::new(HookSource::Agent("scout".into()));
    let set = HookSet::from_frontmatter(&hooks, &origin, Frontmatter::Agent);
    let five = Some(Duration::from_secs(5));
    assert_eq!(
        told(&set),
        [
            (Event::Stop, "short".to_owned(), five),
            (Event::Stop, "nested".to_owned(), five),
            (Event::PreToolUse, "both".to_owned(), None),
        ]
    );
    assert_eq!(set.skipped(), 2);
    assert!(
        problems(&set)[0].starts_with("agent scout: `Later` is no event"),
        "{:?}",
        set.problems()
    );
    // S-335
    let events: Vec<_> = told(&set.as_subagent()).into_iter().map(|(event, ..)| event).collect();
    assert_eq!(events, [Event::SubagentStop, Event::SubagentStop, Event::PreToolUse]);
    assert_eq!(set.as_subagent().problems(), set.problems());
}

#[test]
fn once_counts_in_skills() {
    let hooks =
        json!({"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "once": true}]}]});
    let origin = HookOrigin::new(HookSource::Skill("deploy".into()));
    let skill = HookSet::from_frontmatter(&hooks, &origin, Frontmatter::Skill);
    assert!(skill.problems().is_empty() && skill.handlers().next().unwrap().1.once);
    let agent = HookSet::from_frontmatter(&hooks, &origin, Frontmatter::Agent);
    assert!(agent.problems().len() == 1 && !agent.handlers().next().unwrap().1.once);
}

#[test]
fn a_host_names_its_functions() {
    let set = HookSet::from_host(&json!({
        "PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0", "hook_1"], "timeout": 7}],
        "SessionStart": [{"hookCallbackIds": ["hook_2"]}],
    }));
    let seven = Some(Duration::from_secs(7));
    assert_eq!(
        told(&set),
        [
            (Event::PreToolUse, "hook_0".to_owned(), seven),
            (Event::PreToolUse, "hook_1".to_owned(), seven),
            (Event::SessionStart, "hook_2".to_owned(), None),
        ]
    );
    assert!(HookSet::from_host(&Value::Null).is_empty());
}

#[test]
fn a_function_that_guards_a_call_sees_all_calls_rather_than_none() {
    let set = HookSet::from_host(&json!({"PreToolUse": [
        {"matcher": "(", "hookCallbackIds": ["guard"], "onFailure": "block"},
        {"matcher": "(", "hookCallbackIds": ["other"], "onFailure": "continue"},
    ]}));
    let matchers: Vec<_> =
        set.hooks().iter().map(|hook| (hook.handler.action.label(), &*hook.matcher)).collect();
    assert_eq!(matchers.len(), 1);
    assert!(matches!(matchers[0], (ref id, Matcher::Every) if id == "guard"));
    assert_eq!(set.problems().len(), 2);
}

#[test]
fn settings_hooks_keep_file_and_line_and_wait_for_trust() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().canonicalize().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let hooks = |command: &str| {
        format!(
            "{{\"hooks\": {{\"Stop\": [{{\"hooks\": [\n{{\"type\": \"command\", \"command\": \
             \"{command}\"}}]}}]}}}}"
        )
    };
    write("user/settings.json", &hooks("user"));
    write("repo/.claude/settings.json", &hooks("project"));
    let sources = SettingsSources {
        start_dir: root.join("repo"),
        managed_dir: Some(root.join("managed")),
        config_dirs: vec![root.join("user")],
        ..SettingsSources::default()
    };
    let load = |standing| HookSet::from_settings(&Settings::load(sources.clone(), standing));
    let labels =
        |set: &HookSet| told(set).into_iter().map(|(_, label, _)| label).collect::<Vec<_>>();
    let set = load(RepositoryTrust::Untrusted);
    assert_eq!(labels(&set), ["user"]);
    assert!(problems(&set)[0].contains("repo/.claude/settings.json:1: these hooks do not run"));
    let set = load(RepositoryTrust::Partly);
    assert_eq!((labels(&set), set.problems().len()), (vec!["project".into(), "user".into()], 0));
    let origin = set.handlers().next().unwrap().1.origin.to_string();
    assert!(origin.ends_with("repo/.claude/settings.json:2"), "{origin}");
    write("managed/managed-settings.json", "{\"allowManagedHooksOnly\": true}");
    let set = load(RepositoryTrust::Full);
    assert_eq!((set.len(), set.problems().len()), (0, 2));
    assert!(problems(&set)[0].contains("lets only managed hooks count"), "{:?}", set.problems());
    write("managed/managed-settings.json", "{\"strictPluginOnlyCustomization\": [\"hooks\"]}");
    let set = load(RepositoryTrust::Full);
    assert_eq!((set.len(), set.problems().len()), (0, 2));
    assert!(problems(&set)[0].contains("leaves hooks to plugins"), "{:?}", set.problems());
}
