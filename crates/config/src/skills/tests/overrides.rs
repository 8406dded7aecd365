//! Settings about single skills.

use super::*;
use crate::settings::{FlagSettings, Settings, SettingsSources};
use crate::trust::FolderTrust;

/// The catalog of a machine whose user has these settings.
fn catalog(machine: &Machine, settings: &str) -> std::sync::Arc<SkillCatalog> {
    let flag = Some(FlagSettings::parse(settings, machine.root()).unwrap());
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
    let machine = Machine(tempfile::tempdir().unwrap());
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
    let machine = Machine(tempfile::tempdir().unwrap());
    machine.skill("home/.claude/skills/review/SKILL.md");
    let names = |settings: &str| -> Vec<String> {
        catalog(&machine, settings).active.iter().map(|it| it.name.clone()).collect()
    };
    assert_eq!(names(r#"{"disableBundledSkills": true}"#), ["review"]);
    assert_eq!(names("{}"), ["init", "new-agent", "new-skill", "review", "verify"]);
}
