//! Plugins that lie among skills: `<name>@skills-dir`.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::*;
use crate::agents::ProjectFolders;
use crate::trust::{FolderTrust, Trust, TrustKey, TrustSources, Unaccepted, survey};

const USERS: &str = "home/.claude/skills";
const PROJECTS: &str = "repo/.claude/skills";
const HOOKS: &str =
    r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "./run.sh"}]}]}}"#;

/// A plugin with every part that may act for the user.
fn kit(machine: &Machine, place: &str, name: &str) {
    let root = format!("{place}/{name}");
    machine.plugin(&root, name, "1.0");
    machine.write(&format!("{root}/hooks/hooks.json"), HOOKS);
    machine.write(&format!("{root}/run.sh"), "echo run\n");
    machine.write(&format!("{root}/.mcp.json"), r#"{"files": {"command": "server"}}"#);
    machine.write(&format!("{root}/settings.json"), r#"{"agent": "helper"}"#);
    let skill = "---\ndescription: d\nallowed-tools: Bash\n---\nNow: !`date`\n";
    machine.write(&format!("{root}/SKILL.md"), skill);
    machine.write(&format!("{root}/skills/deep/SKILL.md"), skill);
    let agent = "---\nname: bold\ndescription: b\npermissionMode: bypassPermissions\n---\nDo.\n";
    machine.write(&format!("{root}/agents/bold.md"), agent);
}

/// All skills that a session in the project would have.
fn all_skills(machine: &Machine, catalog: &PluginCatalog) -> Vec<String> {
    let sources = SkillSources {
        plugins: catalog.enabled.iter().map(|plugin| plugin.skills()).collect(),
        plugin_folders: catalog.skill_folders.clone(),
        config_dirs: machine.dirs().config_dirs().to_vec(),
        folders: ProjectFolders { cwd: machine.path("repo"), ..ProjectFolders::default() },
        ..SkillSources::default()
    };
    let found = SkillLoader::new().load(&sources, &SystemWorld);
    found.active.iter().map(|skill| skill.name.clone()).collect()
}

/// The parts of a plugin that act for the user: hooks, servers, its main agent, what its skill allows, its agent's
/// mode.
fn acts(catalog: &PluginCatalog, name: &str) -> [bool; 5] {
    let plugin = catalog.find(name).unwrap();
    let skill = skill(&skills(catalog), &format!("{name}:deep"));
    let agents = agents(catalog);
    let bold = agents.active.iter().find(|it| it.definition.name.value == format!("{name}:bold"));
    [
        !plugin.hooks().is_empty(),
        !plugin.servers(&Env::default()).is_empty(),
        plugin.main_agent().is_some(),
        skill.withheld.is_none(),
        bold.unwrap().definition.permission_mode.is_some(),
    ]
}

/// A machine whose answers about folders are remembered.
fn trusting(machine: &Machine, is_granted: bool) -> FolderTrust {
    let sources = TrustSources {
        store: machine.path("home/.centurion/trust.json"),
        home: Some(machine.path("home")),
        start_dir: Some(machine.path("repo")),
        ..TrustSources::default()
    };
    let mut trust = Trust::open(sources).unwrap();
    let key = TrustKey::of(&machine.path("repo"));
    if is_granted {
        let found = survey(&machine.path("repo"), Some(&machine.path("home")), &SystemWorld);
        trust.grant(&key, &found, &|text| text.to_owned()).unwrap();
    }
    Arc::new(trust).folder(&key)
}

fn load_with(machine: &Machine, folder: FolderTrust) -> Arc<PluginCatalog> {
    let settings = Settings::load(machine.settings_sources(), folder);
    let sources = PluginSources::new(&machine.dirs(), &settings, &machine.path("repo"), &[]);
    PluginLoader::new().load(&sources, &SystemWorld)
}

#[test]
fn a_folder_with_a_manifest_among_the_users_skills_is_a_plugin_and_no_skill() {
    let machine = Machine::new();
    kit(&machine, USERS, "kit");
    machine.write(&format!("{USERS}/plain/SKILL.md"), "---\ndescription: p\n---\nPlain.\n");
    machine.write(&format!("{USERS}/old/SKILL.md"), "---\ndescription: o\n---\nOld.\n");
    // A manifest elsewhere does not make a plugin of a skill.
    machine.write(&format!("{USERS}/old/plugin.json"), r#"{"name": "old"}"#);
    let catalog = machine.load(&[]);
    assert_eq!(ids(&catalog), (vec!["kit@skills-dir".to_owned()], vec![]));
    assert_eq!(acts(&catalog, "kit"), [true; 5]);
    assert_eq!(all_skills(&machine, &catalog), ["kit:deep", "kit:kit", "old", "plain"]);
    assert_eq!(agent_names(&catalog), ["kit:bold", "kit:helper"]);
}

#[test]
fn settings_switch_it_off_and_then_it_is_no_skill_either() {
    let machine = Machine::new();
    kit(&machine, USERS, "kit");
    let switch = |file: &str, id: &str, is_on: bool| {
        machine.write(file, json!({"enabledPlugins": {id: is_on}}).to_string());
    };
    switch("home/.claude/settings.json", "kit@skills-dir", false);
    let catalog = machine.load(&[]);
    assert!(catalog.enabled.is_empty() && ids(&catalog).1[0].1.starts_with("switched off in"));
    assert_eq!(all_skills(&machine, &catalog), Vec::<String>::new());
    switch("home/.claude/settings.json", "kit@skills-dir", true);
    assert_eq!(ids(&machine.load(&[])).0, ["kit@skills-dir"]);
    switch("home/.claude/settings.json", "gone@skills-dir", true);
    let catalog = machine.load(&[]);
    assert!(said(&catalog)[0].ends_with("is switched on, and no directory of skills has it"));
    // A repository that is not trusted cannot take the user's away.
    machine.write("home/.claude/settings.json", "{}");
    switch("repo/.claude/settings.json", "kit@skills-dir", false);
    assert_eq!(ids(&machine.load(&[])).0, ["kit@skills-dir"]);
    for managed in [
        json!({"strictPluginOnlyCustomization": ["skills"]}),
        json!({"strictKnownMarketplaces": []}),
        json!({"enabledPlugins": {"kit@skills-dir": false}}),
    ] {
        machine.write("etc/managed-settings.json", managed.to_string());
        let catalog = machine.load(&[]);
        assert!(catalog.enabled.is_empty(), "{managed}: {:?}", ids(&catalog));
    }
}

#[test]
fn what_a_repository_brings_acts_only_as_it_was_accepted() {
    let machine = Machine::new();
    kit(&machine, PROJECTS, "kit");
    let untrusted = load_with(&machine, trusting(&machine, false));
    assert_eq!(ids(&untrusted).0, ["kit@skills-dir"], "it is listed");
    assert_eq!(acts(&untrusted, "kit"), [false; 5]);
    let told = said(&untrusted).join("\n");
    assert!(
        told.contains("hooks, commands and allowed tools of its skills")
            && told.contains("not trusted"),
        "{told}"
    );
    let accepted = load_with(&machine, trusting(&machine, true));
    assert_eq!(acts(&accepted, "kit"), [true; 5], "{:?}", said(&accepted));
    // Each part that is different by now is off, in this session and in the next.
    let changes: [(&str, &str); 5] = [
        ("run.sh", "echo else\n"),
        ("hooks/hooks.json", "{}"),
        ("skills/new/SKILL.md", "---\ndescription: n\n---\n!`id`\n"),
        ("bin/deep/more", "x"),
        ("agents/bold.md", "---\nname: bold\ndescription: b\npermissionMode: auto\n---\nDo.\n"),
    ];
    for (file, text) in changes {
        let path = format!("{PROJECTS}/kit/{file}");
        let before = fs::read(machine.path(&path)).ok();
        machine.write(&path, text);
        let deep = skill(&skills(&accepted), "kit:deep");
        assert_eq!(deep.withheld, Some(Unaccepted::Changed), "{file}");
        let later = load_with(&machine, trusting(&machine, false));
        assert!(later.find("kit").unwrap().hooks().is_empty(), "{file}");
        match before {
            Some(bytes) => fs::write(machine.path(&path), bytes).unwrap(),
            None => fs::remove_file(machine.path(&path)).unwrap(),
        }
        assert_eq!(skill(&skills(&accepted), "kit:deep").withheld, None, "{file} is back");
    }
}

#[test]
fn files_of_the_repository_that_an_accepted_plugin_runs_are_part_of_what_was_accepted() {
    let machine = Machine::new();
    kit(&machine, PROJECTS, "kit");
    let hooks = HOOKS.replace("./run.sh", "sh $CLAUDE_PROJECT_DIR/tools/check.sh");
    machine.write(&format!("{PROJECTS}/kit/hooks/hooks.json"), &hooks);
    machine.write("repo/tools/check.sh", "echo fine\n");
    assert_eq!(acts(&load_with(&machine, trusting(&machine, true)), "kit"), [true; 5]);
    machine.write("repo/tools/check.sh", "echo evil\n");
    assert_eq!(acts(&load_with(&machine, trusting(&machine, false)), "kit"), [false; 5]);
}

#[test]
fn a_repository_takes_no_name_from_the_user_and_leads_nowhere_else() {
    let machine = Machine::new();
    kit(&machine, USERS, "kit");
    kit(&machine, PROJECTS, "kit");
    let catalog = machine.load_as(RepositoryTrust::Full, &[]);
    assert_eq!(catalog.find("kit").unwrap().power, Power::Full);
    let shadowed =
        vec![("kit@skills-dir".to_owned(), "kit@skills-dir has the same name".to_owned())];
    assert_eq!(ids(&catalog).1, shadowed);
    // Links out of the repository, names that are paths, a manifest that is none.
    kit(&machine, "elsewhere", "far");
    symlink(machine.path("elsewhere/far"), machine.path(PROJECTS).join("far")).unwrap();
    let manifest = |name: &str| format!("{PROJECTS}/{name}/.claude-plugin/plugin.json");
    machine.write(&manifest("path"), r#"{"name": "../../up"}"#);
    machine.write(&manifest("broken"), "{");
    machine.write(&format!("{PROJECTS}/lent/x.md"), "x");
    fs::create_dir(machine.path(PROJECTS).join("lent/.claude-plugin")).unwrap();
    let (from, to) = (machine.path(USERS).join("kit"), machine.path(PROJECTS).join("lent"));
    let place = ".claude-plugin/plugin.json";
    symlink(from.join(place), to.join(place)).unwrap();
    let catalog = machine.load_as(RepositoryTrust::Full, &[]);
    assert_eq!(ids(&catalog).0, ["kit@skills-dir"]);
    let told = said(&catalog).join("\n");
    for name in ["far", "path", "broken", "lent"] {
        assert!(told.contains(&format!("skills/{name}")), "{name}: {told}");
    }
}

#[test]
fn a_plugin_that_cannot_be_compared_as_a_whole_stays_off() {
    let machine = Machine::new();
    kit(&machine, PROJECTS, "kit");
    machine.write("repo/evil.sh", "echo evil\n");
    let link = machine.path(PROJECTS).join("kit/linked.sh");
    symlink(machine.path("repo/evil.sh"), &link).unwrap();
    // A stranger's plugin is not even walked through.
    let untrusted = load_with(&machine, trusting(&machine, false));
    assert!(said(&untrusted).join("\n").contains("not trusted"), "{:?}", said(&untrusted));
    let catalog = load_with(&machine, trusting(&machine, true));
    assert_eq!(acts(&catalog, "kit"), [false; 5]);
    assert!(said(&catalog).join("\n").contains("linked.sh leads out of the plugin"));
    fs::remove_file(&link).unwrap();
    symlink("run.sh", &link).unwrap();
    assert_eq!(acts(&load_with(&machine, trusting(&machine, true)), "kit"), [true; 5]);
    for number in 0..2_100 {
        machine.write(&format!("{PROJECTS}/kit/many/{number}"), "");
    }
    let catalog = load_with(&machine, trusting(&machine, true));
    assert_eq!(acts(&catalog, "kit"), [false; 5]);
    assert!(said(&catalog).join("\n").contains("more than 2000 files"), "{:?}", said(&catalog));
}
