//! Plugins that are on, and their power.

use serde_json::json;

use super::*;
use crate::trust::Unaccepted;

const OURS: &str = "home/.centurion/plugins";
const THEIRS: &str = "home/.claude/plugins";

/// A machine with `kit@tools` 1.0 installed by the user.
fn with_kit() -> Machine {
    let machine = Machine::new();
    machine.plugin(&format!("{OURS}/cache/tools/kit/1.0"), "kit", "1.0");
    machine.installed(OURS, "kit@tools", r#"{"scope": "user", "version": "1.0"}"#);
    machine
}

fn switch(machine: &Machine, file: &str, id: &str, is_on: bool) {
    machine.write(file, json!({"enabledPlugins": {id: is_on}}).to_string());
}

#[test]
fn settings_of_all_levels_switch_plugins_and_managed_ones_prevail() {
    // S-073
    let machine = with_kit();
    let enabled = |machine: &Machine| !machine.load(&[]).enabled.is_empty();
    assert!(enabled(&machine), "installed by the user and not mentioned");
    switch(&machine, "home/.claude/settings.json", "kit@tools", false);
    assert!(!enabled(&machine));
    let (_, disabled) = ids(&machine.load(&[]));
    assert!(disabled[0].1.starts_with("switched off in "), "{disabled:?}");
    switch(&machine, "home/.centurion/settings.json", "kit@tools", true);
    assert!(enabled(&machine), "the later directory wins");
    switch(&machine, "etc/managed-settings.json", "kit@tools", false);
    assert!(!enabled(&machine));
    switch(&machine, "etc/managed-settings.json", "other@tools", true);
    let catalog = machine.load(&[]);
    let (on, off) = ids(&catalog);
    assert_eq!(on, ["kit@tools"]);
    assert_eq!(off.len(), 1);
    assert!(off[0].0 == "other@tools" && off[0].1.starts_with("not installed"), "{off:?}");
    assert!(said(&catalog)[0].contains("help: `centurion plugin add other@tools`"));
}

#[test]
fn a_plugin_that_is_off_by_default_is_off_until_it_is_enabled() {
    let machine = with_kit();
    let manifest = json!({"name": "kit", "defaultEnabled": false}).to_string();
    machine.write(&format!("{OURS}/cache/tools/kit/1.0/.claude-plugin/plugin.json"), &manifest);
    let off = vec![("kit@tools".to_owned(), "it is not switched on".to_owned())];
    assert_eq!(ids(&machine.load(&[])), (vec![], off));
    switch(&machine, "home/.claude/settings.json", "kit@tools", true);
    assert_eq!(ids(&machine.load(&[])).0, ["kit@tools"]);
}

#[test]
fn what_only_an_untrusted_repository_switches_on_has_limited_power() {
    // S-075, D-9
    let machine = with_kit();
    let root = format!("{OURS}/cache/tools/kit/1.0");
    let elsewhere = r#"{"scope": "project", "version": "1.0", "projectPath": "/elsewhere"}"#;
    machine.installed(OURS, "kit@tools", elsewhere);
    let agent = "---\nname: helper\ndescription: d\npermissionMode: bypassPermissions\nmodel: opus\ntools: Read\n\
                 hooks:\n  Stop:\n    - command: x\nmcpServers:\n  - s: {command: x}\n---\nHelp.\n";
    machine.write(&format!("{root}/agents/helper.md"), agent);
    machine.write(&format!("{root}/hooks/hooks.json"), r#"{"Stop": []}"#);
    machine.write(&format!("{root}/.mcp.json"), r#"{"s": {"command": "x"}}"#);
    machine.write(&format!("{root}/settings.json"), r#"{"agent": "helper"}"#);
    machine.write(&format!("{root}/skills/s/SKILL.md"), "---\nhooks:\n  Stop: []\n---\nx\n");
    machine.write(&format!("{root}/skills/free/SKILL.md"), "---\nallowed-tools: Bash\n---\nx\n");
    machine.write(&format!("{root}/commands/run.md"), "Now !`touch ran.txt`\n");
    machine.write(&format!("{root}/skills/calm/SKILL.md"), "---\nmodel: haiku\n---\nx\n");
    let keeper = "---\nname: keeper\ndescription: d\nmemory: user\n---\nKeep.\n";
    machine.write(&format!("{root}/agents/keeper.md"), keeper);
    let style = "---\nforce-for-plugin: true\n---\nspeak\n";
    machine.write(&format!("{root}/output-styles/loud.md"), style);
    let (_, off) = ids(&machine.load(&[]));
    assert_eq!(off[0].1, "installed for other projects");
    switch(&machine, "repo/.claude/settings.json", "kit@tools", true);
    let catalog = machine.load(&[]);
    let plugin = catalog.find("kit").unwrap();
    let Power::Limited { reason } = &plugin.power else { panic!("{:?}", plugin.power) };
    assert!(reason.contains("settings.json:1 (project)"), "{reason}");
    assert!(plugin.hooks().is_empty() && plugin.servers(&Env::default()).is_empty());
    assert_eq!(plugin.main_agent(), None);
    assert!(
        said(&catalog)
            .iter()
            .any(|it| it.contains("is off (its hooks, ") && it.contains(": only ")),
        "{catalog:?}"
    );
    let read = agents(&catalog);
    let helper = &read.find("kit:helper").unwrap().definition;
    assert!(helper.permission_mode.is_none() && helper.hooks.is_none());
    assert!(helper.mcp_servers.is_none() && helper.model.is_some() && helper.tools.is_some());
    let told: Vec<_> = read.problems.iter().map(|it| (it.line, it.message.clone())).collect();
    for (line, field) in [(4, "permissionMode"), (7, "hooks"), (10, "mcpServers")] {
        let is_told = |(at, it): &(Option<usize>, String)| {
            *at == Some(line) && it.starts_with(&format!("`{field}` is off: only "))
        };
        assert!(told.iter().any(is_told), "{field}: {told:?}");
    }
    let is_limited = |why: Option<Unaccepted>| matches!(why, Some(Unaccepted::Plugin(_)));
    assert!(is_limited(read.find("kit:keeper").unwrap().definition.withheld.clone()));
    let found = skills(&catalog);
    for name in ["kit:s", "kit:free", "kit:run"] {
        let read = found.read(&found.find(name).unwrap()).unwrap();
        assert!(is_limited(read.definition.withheld), "{name}");
        let told = read.problems.iter().any(|it| it.message.contains("is off: only "));
        assert!(told, "{name}: {:?}", read.problems);
    }
    assert_eq!(skill(&found, "kit:calm").withheld, None, "nothing in it acts for the user");
    let styles = styles(&catalog);
    assert!(styles.in_force(None).is_none() && styles.find("kit:loud").is_some());
    for standing in [RepositoryTrust::Untrusted, RepositoryTrust::Partly] {
        assert_ne!(machine.load_as(standing, &[]).enabled[0].power, Power::Full);
    }
    let trusted = machine.load_as(RepositoryTrust::Full, &[]);
    let plugin = trusted.find("kit").unwrap();
    assert_eq!((&plugin.power, plugin.hooks().len()), (&Power::Full, 1));
    assert_eq!(plugin.servers(&Env::default()).len(), 1);
    assert_eq!(plugin.main_agent().unwrap().name, "helper");
    let helper = Arc::clone(&agents(&trusted).find("kit:helper").unwrap().definition);
    assert!(helper.permission_mode.is_some() && helper.hooks.is_some());
    assert_eq!(helper.withheld, None);
    for name in ["kit:s", "kit:free", "kit:run"] {
        assert_eq!(skill(&skills(&trusted), name).withheld, None, "{name}");
    }
    assert_eq!(super::styles(&trusted).in_force(None).unwrap().name, "kit:loud");
}

#[test]
fn a_flag_beats_what_is_installed_unless_it_is_forced() {
    // S-076
    let machine = with_kit();
    machine.plugin("mine", "kit", "2.0");
    let catalog = machine.load(&["mine"]);
    let off = |by: &str| format!("{by} has the same name");
    assert_eq!(ids(&catalog).0, ["kit@inline"]);
    assert_eq!(ids(&catalog).1, [("kit@tools".to_owned(), off("kit@inline"))]);
    switch(&machine, "etc/managed-settings.json", "kit@tools", true);
    let catalog = machine.load(&["mine"]);
    assert!(catalog.enabled[0].is_managed());
    assert_eq!(ids(&catalog).1, [("kit@inline".to_owned(), off("kit@tools"))]);
    switch(&machine, "etc/managed-settings.json", "kit@inline", false);
    assert_eq!(ids(&machine.load(&["mine"])).0, ["kit@tools"]);
    let none = machine.load(&["nowhere"]);
    assert!(said(&none)[0].contains("nowhere: cannot be read"), "{:?}", said(&none));
    assert_eq!(ids(&none).0, ["kit@tools"], "a bad directory stops nothing");
}

#[test]
fn another_programs_plugins_count_and_ours_go_before_them() {
    // D-51
    let machine = with_kit();
    machine.plugin(&format!("{THEIRS}/cache/tools/kit/0.9"), "kit", "0.9");
    machine.plugin(&format!("{THEIRS}/cache/tools/old/3"), "old", "3");
    // The older form of the list, with paths of a home that has moved since.
    let list = json!({"version": 1, "plugins": {
        "kit@tools": {"version": "0.9", "installPath": "/moved/kit"},
        "old@tools": {"version": "3", "installPath": "/moved/old"},
        "../evil@tools": {"version": "1"},
        "bad@tools": [7],
    }});
    machine.write(&format!("{THEIRS}/installed_plugins.json"), list.to_string());
    let catalog = machine.load(&[]);
    let found: Vec<_> = catalog
        .enabled
        .iter()
        .map(|it| (it.id.to_string(), it.manifest().version.clone().unwrap()))
        .collect();
    let pair = |id: &str, version: &str| (id.to_owned(), version.to_owned());
    assert_eq!(found, [pair("kit@tools", "1.0"), pair("old@tools", "3")]);
    assert_eq!(catalog.enabled[1].place, PluginPlace::Store(machine.path(THEIRS)));
    let said = said(&catalog);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("an entry is left out: the name `../evil`"), "{said:?}");
}

#[test]
fn a_broken_plugin_is_told_and_the_others_count() {
    // S-063, S-072
    let machine = with_kit();
    machine.write("broken/plugin.json", "{\n\"name\": 7}");
    machine.plugin("good", "good", "1");
    machine.write(&format!("{OURS}/cache/tools/kit/1.0/.claude-plugin/plugin.json"), "{");
    let catalog = machine.load(&["broken", "good"]);
    assert_eq!(ids(&catalog).0, ["good@inline"]);
    assert_eq!(ids(&catalog).1, [("kit@tools".to_owned(), "cannot be read".to_owned())]);
    let said = said(&catalog);
    assert!(said[0].contains("broken/plugin.json:2: `name` must be text"), "{said:?}");
    assert!(said[1].contains("plugin.json:1: is not valid JSON"), "{said:?}");
}

#[test]
fn marketplaces_that_are_not_allowed_bring_nothing() {
    let machine = with_kit();
    let known = json!({"tools": {"source": {"source": "github", "repo": "bad/tools"}}});
    machine.write(&format!("{OURS}/known_marketplaces.json"), known.to_string());
    let list = |key: &str, repository: &str| {
        let settings = json!({key: [{"source": "github", "repo": repository}]});
        machine.write("etc/managed-settings.json", settings.to_string());
        ids(&machine.load(&[]))
    };
    assert_eq!(list("strictKnownMarketplaces", "bad/tools").0, ["kit@tools"]);
    assert_eq!(list("blockedMarketplaces", "other/tools").0, ["kit@tools"]);
    let (_, off) = list("allowedMarketplaces", "good/tools");
    assert!(off[0].1.contains("does not name its source"), "{off:?}");
    let (_, off) = list("blockedMarketplaces", "bad/tools");
    assert!(off[0].1.contains("`blockedMarketplaces` names its source"), "{off:?}");
}

#[test]
fn what_has_not_changed_is_the_same_catalog() {
    // S-081
    let machine = with_kit();
    machine.plugin("mine", "mine", "1");
    let sources = machine.sources(RepositoryTrust::Untrusted, &["mine"]);
    let mut loader = PluginLoader::new();
    let first = loader.load(&sources, &Later);
    assert!(Arc::ptr_eq(&first, &loader.load(&sources, &Later)));
    machine.write("mine/hooks/hooks.json", r#"{"Stop": []}"#);
    let second = loader.load(&sources, &Later);
    assert_eq!(
        (first.find("mine").unwrap().hooks().len(), second.find("mine").unwrap().hooks().len()),
        (0, 1)
    );
    switch(&machine, "home/.claude/settings.json", "kit@tools", false);
    let sources = machine.sources(RepositoryTrust::Untrusted, &["mine"]);
    assert_eq!(loader.load(&sources, &Later).enabled.len(), 1);
    // A file that was written a moment ago may change again within the same stamp, and yet be the same.
    let now = loader.load(&sources, &SystemWorld);
    assert!(Arc::ptr_eq(&now, &loader.load(&sources, &SystemWorld)));
}
