//! Hooks in settings files, and what is said about them as a whole.

use serde_json::json;

use super::super::*;
use super::{Machine, values};

#[test]
fn every_part_of_the_hooks_of_every_file_has_its_line() {
    let machine = Machine::new();
    machine.write(
        "home/.claude/settings.json",
        "{\n \"model\": \"x\",\n \"hooks\": {\n  \"Stop\": [\n   {\n    \"hooks\": [\n     {\"type\": \
         \"command\"},\n     {\"type\": \"http\",\n      \"url\": \"u\"}]}]}}",
    );
    machine.managed(&json!({"hooks": {"a/b": []}}));
    let hooks = machine.trusted().hooks();
    assert_eq!(
        hooks.iter().map(|it| (it.origin.level, it.origin.line)).collect::<Vec<_>>(),
        [(Level::Managed, 1), (Level::User, 4)]
    );
    let lines = &hooks[1].lines;
    assert_eq!(lines.line("/Stop"), Some(4));
    assert_eq!(lines.line("/Stop/0"), Some(5));
    assert_eq!(lines.line("/Stop/0/hooks/1"), Some(8));
    assert_eq!(lines.line("/Stop/0/hooks/1/url"), Some(9));
    // An entry that is not there has the line where it should be.
    assert_eq!(lines.line("/Stop/0/hooks/0/command"), Some(7));
    assert_eq!(hooks[0].lines.line("/a~1b"), Some(1));
    assert_eq!(Lines::default().line("/Stop"), None);
}

#[test]
fn hooks_of_a_repository_wait_for_trust_in_a_folder_above() {
    let machine = Machine::new();
    machine.project(&json!({"hooks": {"Stop": []}}));
    let mut settings = machine.load();
    assert_eq!(settings.hooks()[0].off, Some(Off::Untrusted));
    settings.apply_trust(RepositoryTrust::Partly);
    assert_eq!(settings.hooks()[0].off, None);
}

#[test]
fn a_list_that_limits_counts_even_when_it_is_empty() {
    let machine = Machine::new();
    assert_eq!(machine.trusted().hook_limits(), HookLimits::default());
    machine.user(&json!({"allowedHttpHookUrls": [], "httpHookAllowedEnvVars": ["A"]}));
    let limits = machine.trusted().hook_limits();
    assert_eq!(limits.http_urls, Some(Vec::new()));
    machine
        .project(&json!({"allowedHttpHookUrls": ["https://a/*"], "httpHookAllowedEnvVars": ["B"]}));
    let limits = machine.trusted().hook_limits();
    assert_eq!(values(&limits.http_urls.unwrap()), ["https://a/*"]);
    assert_eq!(values(&limits.http_variables.unwrap()), ["B", "A"]);
}

#[test]
fn switches_are_those_of_the_strongest_level_that_says_anything() {
    let machine = Machine::new();
    machine.user(&json!({"disableAllHooks": true, "allowManagedHooksOnly": true}));
    let limits = machine.trusted().hook_limits();
    assert_eq!(limits.disabled.unwrap().level, Level::User);
    assert_eq!(limits.managed_only, None);
    machine.managed(&json!({"disableAllHooks": false, "allowManagedHooksOnly": true}));
    let limits = machine.trusted().hook_limits();
    assert_eq!(limits.disabled, None);
    assert_eq!(limits.managed_only.unwrap().level, Level::Managed);
}
