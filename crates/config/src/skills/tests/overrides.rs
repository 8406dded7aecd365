//! Settings about single skills.

use super::*;
use crate::settings::{FlagSettings, Settings, SettingsSources};
use crate::trust::FolderTrust;

/// The catalog of a machine whose user has these settings.
fn catalog(machine: &Machine, settings: &str) -> std::sync::Arc<SkillCatalog> {
    let flag = Some(FlagSettings::parse(settings, &machine.path("")).unwrap());
    let sources = SettingsSources { flag, ..SettingsSources::default() };
    let settings = Settings::load(sources, FolderTrust::default());
    assert_eq!(settings.problems().count(), 0);
    let said = settings.skills();
    let sources = SkillSources {
        config_dirs: vec![machine.path("home/.claude")],
        plugins: vec![PluginSkills {
            plugin: "kit".to_owned(),
            root: machine.path("kit"),
            skills: vec![machine.path("kit/skills")],
            ..PluginSkills::default()
        }],
        bundled: said.bundled,
        overrides: said.overrides,
        ..SkillSources::default()
    };
    SkillLoader::new().load(&sources, &SystemWorld)
}

#[test]
fn settings_switch_skills_off_or_narrow_who_may_invoke_them() {
    let machine = Machine::with(|_| SkillTests);
    for name in ["a", "b", "c", "d", "review"] {
        machine.skill(&format!("home/.claude/skills/{name}/SKILL.md"));
    }
    machine.skill("kit/skills/e/SKILL.md");
    let catalog = catalog(
        &machine,
        r#"{"skillOverrides": {"a": "off", "b": "name-only", "c": "user-invocable-only", "d": "on",
            "review": "off", "verify": "user-invocable-only", "kit:e": "off", "e": "off"}}"#,
    );
    let card = |name: &str| {
        let card = &catalog.find(name).unwrap().card;
        (card.name_only, card.for_models, card.for_people)
    };
    assert!(catalog.find("a").is_none() && catalog.find("review").is_none());
    assert_eq!(card("b"), (true, true, true));
    assert_eq!(card("c"), (false, false, true));
    assert_eq!(card("d"), (false, true, true));
    assert_eq!(card("verify"), (false, false, true), "what comes with the program obeys, too");
    assert_eq!(card("kit:e"), (false, true, true), "plugins are switched off as a whole");
    let off: Vec<_> = catalog.off.iter().map(|it| (it.entry.name.as_str(), it.by)).collect();
    let by = OffSwitch::Overrides;
    assert_eq!(off, [("a", by), ("review", by), ("review", by)]);
}

#[test]
fn a_setting_switches_off_what_comes_with_the_program() {
    let machine = Machine::with(|_| SkillTests);
    machine.skill("home/.claude/skills/review/SKILL.md");
    let names = |settings: &str| -> Vec<String> {
        catalog(&machine, settings).active.iter().map(|it| it.name.clone()).collect()
    };
    assert_eq!(names(r#"{"disableBundledSkills": true}"#), ["review"]);
    assert_eq!(names("{}"), ["init", "new-agent", "new-skill", "review", "verify"]);
}

#[test]
fn settings_and_strength_count_for_skills_that_are_too_many_to_be_listed() {
    let machine = Machine::with(|_| SkillTests);
    for n in 0..MOST_LISTED {
        machine.skill(&format!("home/.claude/skills/a{n:03}/SKILL.md"));
        machine.skill(&format!("kit/skills/a{n:03}/SKILL.md"));
    }
    let user = ["zz-off", "zz-named", "zz-person", "zz-own", "zz-plugin", "zz-left"];
    for name in user.iter().chain(&["zz-part"]) {
        machine.skill(&format!("home/.claude/skills/{name}/SKILL.md"));
    }
    machine.skill("kit/skills/zz-kit/SKILL.md");
    machine.skill("repo/.claude/skills/zz-own/SKILL.md");
    let settings = r#"{"skillOverrides": {"zz-off": "off", "zz-named": "name-only",
        "zz-person": "user-invocable-only"}}"#;
    let mut sources = SkillSources::clone(&catalog(&machine, settings).sources);
    sources.folders = ProjectFolders { cwd: machine.path("repo"), ..ProjectFolders::default() };
    sources.plugin_folders = vec![machine.path("home/.claude/skills/zz-part")];
    let names = user.iter().chain(&["kit:zz-kit"]).filter(|name| **name != "zz-left");
    sources.chosen = Some(names.map(|name| (*name).to_owned()).collect());
    let catalog = SkillLoader::new().load(&sources, &SystemWorld);
    assert!(catalog.active.iter().all(|skill| skill.name != "zz-named"), "it is not listed");
    let card = |name: &str| {
        let card = &catalog.find(name).unwrap().card;
        (card.name_only, card.for_models, card.for_people)
    };
    assert!(catalog.find("zz-off").is_none(), "it is switched off");
    assert_eq!(card("zz-named"), (true, true, true));
    assert_eq!(card("zz-person"), (false, false, true));
    assert_eq!(card("zz-left"), (false, false, true), "the host did not choose it");
    assert_eq!(card("zz-plugin"), (false, true, true));
    assert_eq!(card("kit:zz-kit"), (false, true, true));
    assert!(catalog.find("zz-part").is_none(), "it is a part of a plugin");
    let source = |name: &str| catalog.find(name).unwrap().origin.source;
    assert_eq!(source("zz-own"), SkillSource::User, "a project does not take the user's names");
    assert_eq!(source("a000"), SkillSource::User);
}

#[test]
fn a_directory_of_a_repository_takes_no_name_of_a_plugins_skill() {
    let machine = Machine::with(|_| SkillTests);
    machine.skill("home/.claude/skills/fix/SKILL.md");
    machine.skill("kit/skills/fix/SKILL.md");
    let nested = ["kit", "KIT", "web", "kit\u{202e}", "a:b", "apps/web"];
    for directory in nested {
        machine.skill(&format!("repo/{directory}/.claude/skills/fix/SKILL.md"));
    }
    let mut sources = SkillSources::clone(&catalog(&machine, "{}").sources);
    sources.bundled = false;
    sources.folders = ProjectFolders { cwd: machine.path("repo"), ..ProjectFolders::default() };
    sources.nested = nested.map(|directory| machine.path("repo").join(directory)).to_vec();
    let catalog = SkillLoader::new().load(&sources, &SystemWorld);
    let names: Vec<_> = catalog.active.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(names, ["apps/web:fix", "fix", "kit:fix", "web:fix"]);
    assert_eq!(catalog.find("kit:fix").unwrap().origin.source, SkillSource::Plugin);
    assert_eq!(catalog.shadowed.len(), 4);
}
