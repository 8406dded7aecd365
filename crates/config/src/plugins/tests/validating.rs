//! A plugin's author hears all that is wrong, with file and line.

use super::*;
use crate::agents::Vocabulary;

fn check(machine: &Machine, directory: &str) -> (Vec<String>, Vec<String>, Validation) {
    let root = machine.path(directory);
    let validation = validate(&root, &Vocabulary::default(), &SystemWorld);
    let prefix = format!("{}/", root.display());
    let lines = |problems: &[crate::Problem]| -> Vec<String> {
        problems.iter().map(|it| it.to_string().replace(&prefix, "")).collect()
    };
    (lines(&validation.errors), lines(&validation.warnings), validation)
}

#[test]
fn a_good_plugin_has_nothing_to_hear() {
    let machine = Machine::new();
    machine.plugin("kit", "kit", "1");
    machine.write("kit/skills/s/SKILL.md", "---\ndescription: d\n---\nx\n");
    machine.write("kit/.mcp.json", r#"{"s": {"command": "${CLAUDE_PLUGIN_ROOT}/s"}}"#);
    machine.write("kit/hooks/hooks.json", r#"{"hooks": {"Stop": []}}"#);
    let (errors, warnings, found) = check(&machine, "kit");
    assert_eq!((errors, warnings), (Vec::new(), Vec::new()));
    assert_eq!(found.plugin.as_deref(), Some("kit"));
    assert_eq!(
        (found.agents, found.skills),
        (vec!["kit:helper".to_owned()], vec!["kit:s".to_owned()])
    );
    assert_eq!((found.servers, found.hooks.len()), (vec!["plugin:kit:s".to_owned()], 1));
}

#[test]
fn a_bad_plugin_hears_everything_at_once() {
    let machine = Machine::new();
    let manifest = "{\"name\": \"kit\",\n\"agents\": \"../x\",\n\"colour\": 1,\n\"settings\": {\"agent\": \"none\"}}";
    machine.write("kit/.claude-plugin/plugin.json", manifest);
    machine.write("kit/agents/broken.md", "---\nname: a\nprose\n");
    machine.write("kit/agents/odd.md", "---\ndescription: d\nmodle: opus\n---\nx\n");
    machine.write("kit/.mcp.json", "{\n\"s\": {\"url\": \"https://h/\"}}");
    machine.write("kit/hooks/hooks.json", "{\n");
    let (errors, warnings, _) = check(&machine, "kit");
    let begins = |lines: &[String], starts: &[&str]| {
        let found: Vec<_> = lines.iter().map(String::as_str).collect();
        assert_eq!(found.len(), starts.len(), "{found:?}");
        for start in starts {
            assert!(found.iter().any(|it| it.starts_with(start)), "{start}: {found:?}");
        }
    };
    begins(
        &errors,
        &[
            ".claude-plugin/plugin.json:2: the path `../x` leads out",
            "agents/broken.md:1: ",
            ".mcp.json:2: server `s` is left out",
            "hooks/hooks.json:2: is not valid JSON",
        ],
    );
    begins(
        &warnings,
        &[
            ".claude-plugin/plugin.json:3: `colour` is unknown",
            ".claude-plugin/plugin.json:4: `agent` names `none`",
            "agents/odd.md:3: `modle` is unknown",
        ],
    );
    machine.write("kit/.claude-plugin/plugin.json", "{\n\"name\": 1}");
    let (errors, ..) = check(&machine, "kit");
    assert_eq!(errors, [".claude-plugin/plugin.json:2: `name` must be text, and is a number"]);
    fs::create_dir(machine.path("empty")).unwrap();
    let (errors, warnings, _) = check(&machine, "empty");
    assert!(errors.is_empty() && warnings[0].contains("brings nothing"), "{warnings:?}");
}

#[test]
fn a_marketplace_is_checked_with_what_it_leads_to() {
    let machine = Machine::new();
    machine.plugin("market/plugins/kit", "kit", "1");
    machine.write(
        "market/.claude-plugin/marketplace.json",
        "{\"name\": \"tools\", \"plugins\": [\n{\"name\": \"kit\", \"source\": \"./plugins/kit\"},\n\
         {\"name\": \"gone\", \"source\": \"./gone\"},\n{\"name\": \"out\", \"source\": \"../..\"},\n\
         {\"name\": \"npm\", \"source\": {\"source\": \"npm\"}}]}",
    );
    let (errors, _, found) = check(&machine, "market");
    assert_eq!((found.marketplace.as_deref(), found.plugin), (Some("tools"), None));
    let file = ".claude-plugin/marketplace.json";
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors[0].starts_with(&format!("{file}:5: plugin `npm` is left out")), "{errors:?}");
    assert_eq!(errors[1], format!("{file}:3: plugin `gone`: there is nothing at `./gone`"));
    assert!(errors[2].starts_with(&format!("{file}:4: plugin `out`: the path")), "{errors:?}");
}
