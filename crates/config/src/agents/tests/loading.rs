//! The places in which agents are found, and the choice between agents with the same name.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use centurion_protocol::World;

use super::*;
use crate::settings::{LevelChoice, RepositoryTrust, Settings, SettingsSources};

/// A clock that is far ahead of all files, so that what they say about themselves is sure.
struct Later;

impl World for Later {
    fn now(&self) -> jiff::Timestamp {
        "2100-01-01T00:00:00Z".parse().unwrap()
    }

    fn random(&self) -> u64 {
        0
    }
}

/// Marks the machine of these tests.
struct LoadingTests;

type Machine = crate::testing::Machine<LoadingTests>;

impl Machine {
    fn new() -> Self {
        Self::with(|_| LoadingTests)
    }

    fn agent(&self, relative: &str, name: &str) {
        self.write(relative, file(name, relative));
    }

    fn sources(&self) -> AgentSources {
        AgentSources {
            managed_dir: Some(self.path("etc")),
            folders: ProjectFolders {
                cwd: self.path("home/repo/sub"),
                repository: Some(self.path("home/repo")),
                home: Some(self.path("home")),
                ..ProjectFolders::default()
            },
            config_dirs: vec![self.path("home/.claude"), self.path("home/.centurion")],
            built_in: vec![BuiltInAgent {
                path: "built-in",
                text: "---\nname: x\ndescription: built in\n---\nBe.\n",
            }],
            ..AgentSources::default()
        }
    }
}

fn load(sources: &AgentSources) -> Arc<AgentCatalog> {
    AgentLoader::new().load(sources, &Later)
}

fn file(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\nPrompt.\n")
}

fn described(catalog: &AgentCatalog, name: &str) -> String {
    catalog.find(name).unwrap().definition.description.value.clone()
}

#[test]
fn the_strongest_source_wins_and_the_others_are_shadowed() {
    // S-039, S-040, S-041, S-042, S-044, S-045, S-046, S-047, S-049, S-054, S-062, S-064,
    // S-065, D-1, D-51
    let machine = Machine::new();
    let mut sources = machine.sources();
    sources.plugins.push(PluginAgents {
        plugin: "kit".to_owned(),
        root: machine.path("kit"),
        paths: vec![machine.path("kit/agents")],
        ..PluginAgents::default()
    });
    machine.agent("kit/agents/x.md", "x");
    let strongest = |sources: &AgentSources| {
        let catalog = load(sources);
        assert!(catalog.failed.is_empty(), "{:?}", catalog.failed);
        assert_eq!(catalog.find("kit:x").unwrap().definition.origin.source, AgentSource::Plugin);
        let agent = &catalog.find("x").unwrap().definition;
        let all_lose = catalog.shadowed.iter().all(|it| it.by == agent.origin);
        assert!(all_lose, "{:?}", catalog.shadowed);
        (agent.description.value.clone(), catalog.shadowed.len())
    };
    assert_eq!(strongest(&sources), ("built in".to_owned(), 0));
    let files = [
        "home/.claude/agents/deep/er/x.md",
        "home/.centurion/agents/x.md",
        "home/repo/.claude/agents/x.md",
        "home/repo/.centurion/agents/other-name.md",
        "home/repo/sub/.claude/agents/x.md",
    ];
    for (count, file) in files.iter().enumerate() {
        machine.agent(file, "x");
        assert_eq!(strongest(&sources), ((*file).to_owned(), count + 1));
    }
    let json = r#"{"x": {"description": "flag", "prompt": "p"}}"#;
    sources.flag = read_agents_flag(json, Path::new("/"), &vocabulary()).unwrap();
    assert_eq!(strongest(&sources), ("flag".to_owned(), 6));
    machine.agent("etc/.claude/agents/x.md", "x");
    assert_eq!(strongest(&sources), ("etc/.claude/agents/x.md".to_owned(), 7));
    sources.levels = LevelChoice { user: false, project: false, local: false };
    assert_eq!(strongest(&sources), ("etc/.claude/agents/x.md".to_owned(), 2));
}

#[test]
fn settings_define_agents_at_every_level() {
    // S-043, S-059, D-10
    let machine = Machine::new();
    machine.write(
        "home/.claude/settings.json",
        "{\"agents\": {\n\"u\": {\"description\": \"user\", \"prompt\": \"p\"},\n\
         \"both\": {\"description\": \"user\", \"prompt\": \"p\"},\n\
         \"bad\": {\"description\": \"d\"}}}",
    );
    machine.write(
        "home/repo/sub/.claude/settings.json",
        r#"{"agents": {"both": {"description": "project", "prompt": "p"}}}"#,
    );
    let settings = Settings::load(
        SettingsSources {
            start_dir: machine.path("home/repo/sub"),
            config_dirs: vec![machine.path("home/.claude")],
            ..SettingsSources::default()
        },
        RepositoryTrust::Full,
    );
    let sources = AgentSources { settings: settings.agents(), ..machine.sources() };
    let catalog = load(&sources);
    assert_eq!(described(&catalog, "u"), "user");
    assert_eq!(catalog.find("u").unwrap().definition.name.line, 2);
    assert_eq!(described(&catalog, "both"), "project");
    assert_eq!(catalog.shadowed[0].definition.origin.source, AgentSource::User);
    let [failed] = catalog.failed.as_slice() else { panic!("{:?}", catalog.failed) };
    assert_eq!(failed.reason, "agents.bad.prompt: must be text that is not empty");
    assert_eq!((failed.line, failed.source), (Some(4), AgentSource::User));
    // A file of the same level goes before them.
    machine.agent("home/.claude/agents/u.md", "u");
    assert_eq!(described(&load(&sources), "u"), "home/.claude/agents/u.md");
    // Without trust the repository's are not there.
    let untrusted = Settings::load(settings.sources().clone(), RepositoryTrust::Untrusted);
    let sources = AgentSources { settings: untrusted.agents(), ..machine.sources() };
    assert_eq!(described(&load(&sources), "both"), "user");
}

#[test]
fn plugins_name_their_agents_by_folders_and_load_a_file_once() {
    // S-063, S-066, S-067, S-068, S-071, S-072, S-080, D-25
    let machine = Machine::new();
    machine.agent("kit/agents/code-reviewer.md", "code-reviewer");
    machine.agent("kit/agents/web/front.md", "front");
    machine.agent("kit/more/one.md", "one");
    machine.write("kit/agents/broken.md", "---\nname: a\nprose\n");
    machine.write("kit/agents/README.md", "# About\n");
    let mut sources = machine.sources();
    let paths = ["kit/agents", "kit/more/one.md", "kit/agents/code-reviewer.md", "kit/none"];
    sources.plugins.push(PluginAgents {
        plugin: "kit".to_owned(),
        root: machine.path("kit"),
        paths: paths.iter().map(|path| machine.path(path)).collect(),
        ..PluginAgents::default()
    });
    let catalog = load(&sources);
    let names: Vec<_> = catalog.active.iter().map(|it| it.definition.name.as_str()).collect();
    assert_eq!(names, ["kit:code-reviewer", "kit:one", "kit:web:front", "x"]);
    assert_eq!((catalog.shadowed.len(), catalog.failed.len()), (0, 1));
}

#[test]
fn one_bad_file_never_stops_its_siblings() {
    // S-053
    let machine = Machine::new();
    machine.agent("home/repo/.claude/agents/good.md", "good");
    machine.write("home/repo/.claude/agents/nameless.md", "---\ndescription: x\n---\n");
    machine.write("home/repo/.claude/agents/huge.md", "x".repeat(1024 * 1024 + 1));
    machine.write("home/repo/.claude/agents/evil.md", "---\nname: ../../x\ndescription: y\n---\n");
    machine.write("home/repo/.claude/agents/README.md", "# About\n");
    machine.write("home/repo/.claude/agents/notes.txt", "---\nname: t\n---\n");
    machine.write("secret.md", file("secret", "outside"));
    symlink(machine.path("secret.md"), machine.path("home/repo/.claude/agents/link.md")).unwrap();
    symlink(machine.path("nowhere"), machine.path("home/repo/.claude/agents/gone.md")).unwrap();
    let catalog = load(&machine.sources());
    let names: Vec<_> = catalog.active.iter().map(|it| it.definition.name.as_str()).collect();
    assert_eq!(names, ["good", "x"]);
    let failed: Vec<_> = catalog
        .failed
        .iter()
        .map(|it| (it.path.file_name().unwrap().to_str().unwrap(), it.line, it.reason.as_str()))
        .collect();
    let expected = [
        ("evil.md", Some(2), "the name `../../x` begins with `.`"),
        ("gone.md", None, "is a link that leads nowhere"),
        ("huge.md", None, "is larger than 1 MiB"),
        ("link.md", None, "is a link that leads elsewhere, and is not followed"),
        ("nameless.md", Some(2), "has no `name`"),
    ];
    assert_eq!(failed, expected);
}

#[test]
fn links_are_followed_within_their_scope_and_never_round_in_circles() {
    let machine = Machine::new();
    machine.agent("home/repo/shared/a.md", "a");
    machine.agent("home/dotfiles/agents/b.md", "b");
    fs::create_dir_all(machine.path("home/repo/.claude/agents")).unwrap();
    fs::create_dir_all(machine.path("home/.claude")).unwrap();
    fs::create_dir_all(machine.path("home/repo/sub")).unwrap();
    symlink(machine.path("home/repo/shared"), machine.path("home/repo/.claude/agents/in")).unwrap();
    symlink(machine.path("home/repo"), machine.path("home/repo/.claude/agents/round")).unwrap();
    symlink(machine.path("home/dotfiles/agents"), machine.path("home/.claude/agents")).unwrap();
    // A whole directory of definitions outside the repository.
    machine.agent("other/agents/c.md", "c");
    symlink(machine.path("other"), machine.path("home/repo/sub/.claude")).unwrap();
    let catalog = load(&machine.sources());
    let names: Vec<_> = catalog.active.iter().map(|it| it.definition.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "x"]);
    let failed: Vec<_> = catalog.failed.iter().map(|it| it.path.clone()).collect();
    assert_eq!(failed, [machine.path("home/repo/sub/.claude/agents")]);
    assert!(catalog.shadowed.is_empty(), "{:?}", catalog.shadowed);
}

#[test]
fn what_has_not_changed_is_not_read_again() {
    // S-050
    let machine = Machine::new();
    machine.agent("home/repo/.claude/agents/a.md", "a");
    let sources = machine.sources();
    let mut loader = AgentLoader::new();
    let first = loader.load(&sources, &Later);
    assert!(Arc::ptr_eq(&first, &loader.load(&sources, &Later)));
    machine.agent("home/repo/.claude/agents/deep/b.md", "b");
    let second = loader.load(&sources, &Later);
    assert!(second.find("b").is_some());
    let kept = |catalog: &AgentCatalog| Arc::clone(&catalog.find("a").unwrap().definition);
    assert!(Arc::ptr_eq(&kept(&first), &kept(&second)), "the other file is as it was");
    machine.write("home/repo/.claude/agents/a.md", file("a", "another text"));
    assert_eq!(described(&loader.load(&sources, &Later), "a"), "another text");
    fs::remove_file(machine.path("home/repo/.claude/agents/a.md")).unwrap();
    let last = loader.load(&sources, &Later);
    assert!(last.find("a").is_none());
    assert!(Arc::ptr_eq(&last, &loader.load(&sources, &Later)));
    let other = AgentSources { built_in: Vec::new(), ..sources };
    assert!(loader.load(&other, &Later).find("x").is_none());
}

#[test]
fn what_was_written_just_now_is_read_again() {
    let machine = Machine::new();
    machine.agent("home/repo/.claude/agents/a.md", "a");
    let mut loader = AgentLoader::new();
    let world = centurion_protocol::SystemWorld;
    let first = loader.load(&machine.sources(), &world);
    let again = loader.load(&machine.sources(), &world);
    assert!(!Arc::ptr_eq(&first, &again), "the file's clock may be too coarse to tell");
    assert_eq!(first, again);
}

#[test]
fn the_same_name_twice_in_one_directory_is_told() {
    let machine = Machine::new();
    machine.agent("home/repo/.claude/agents/a.md", "twin");
    machine.agent("home/repo/.claude/agents/b.md", "twin");
    let catalog = load(&machine.sources());
    assert_eq!(described(&catalog, "twin"), "home/repo/.claude/agents/a.md");
    let [problem] = catalog.problems.as_slice() else { panic!("{:?}", catalog.problems) };
    assert_eq!(problem.path, machine.path("home/repo/.claude/agents/b.md"));
    let first = machine.path("home/repo/.claude/agents/a.md");
    assert_eq!(problem.message, format!("`twin` is also in {}", first.display()));
}

#[test]
fn a_name_is_found_without_regard_to_case_and_joints() {
    // D-20
    let machine = Machine::new();
    machine.agent("home/repo/.claude/agents/a.md", "Code Reviewer");
    machine.agent("home/repo/.claude/agents/b.md", "code-reviewer");
    machine.agent("home/repo/.claude/agents/c.md", "test_runner");
    let catalog = load(&machine.sources());
    let found = |name: &str| catalog.find(name).map(|it| it.definition.name.value.clone());
    assert_eq!(found("Code Reviewer").as_deref(), Some("Code Reviewer"));
    assert_eq!(found("code-reviewer").as_deref(), Some("code-reviewer"));
    assert_eq!(found("Test-Runner").as_deref(), Some("test_runner"));
    assert_eq!(found("tester"), None);
}

#[test]
fn colours_are_their_own_or_always_the_same() {
    // S-057
    let machine = Machine::new();
    machine.agent("home/repo/.claude/agents/a.md", "a");
    machine
        .write("home/repo/.claude/agents/b.md", "---\nname: b\ndescription: x\ncolor: Pink\n---\n");
    let color = |catalog: &AgentCatalog, name: &str| catalog.find(name).unwrap().color;
    let first = load(&machine.sources());
    assert_eq!(color(&first, "b"), Color::Pink);
    machine.agent("home/repo/.claude/agents/0.md", "0");
    let second = load(&machine.sources());
    assert_eq!(color(&first, "a"), color(&second, "a"));
    let seen: std::collections::HashSet<_> =
        (0..100).map(|n| Color::of_name(&format!("agent-{n}"))).collect();
    assert_eq!(seen.len(), Color::ALL.len());
}

#[test]
fn a_worktree_has_the_agents_of_its_checkout_and_added_directories_count() {
    let machine = Machine::new();
    machine.agent("home/main/.claude/agents/a.md", "a");
    machine.agent("home/main/.claude/agents/b.md", "b");
    machine.agent("home/repo/.claude/agents/a.md", "a");
    machine.agent("added/.claude/agents/c.md", "c");
    let mut sources = machine.sources();
    sources.folders.checkout = Some(machine.path("home/main"));
    sources.folders.additional = vec![machine.path("added")];
    let catalog = load(&sources);
    assert_eq!(described(&catalog, "a"), "home/repo/.claude/agents/a.md");
    assert_eq!(described(&catalog, "b"), "home/main/.claude/agents/b.md");
    assert_eq!(described(&catalog, "c"), "added/.claude/agents/c.md");
    let watched = watched_directories(&sources);
    assert!(watched.contains(&machine.path("home/main/.claude/agents")), "{watched:?}");
}

#[test]
fn the_home_directory_is_the_users_and_no_project() {
    let machine = Machine::new();
    machine.agent("home/.claude/agents/a.md", "a");
    let mut sources = machine.sources();
    sources.folders.cwd = machine.path("home");
    sources.folders.repository = None;
    let catalog = load(&sources);
    assert_eq!(catalog.find("a").unwrap().definition.origin.source, AgentSource::User);
    assert!(catalog.shadowed.is_empty());
}

#[test]
fn a_tree_without_end_is_not_walked_to_its_end() {
    let machine = Machine::new();
    let deep = "d/".repeat(20);
    machine.agent(&format!("home/repo/.claude/agents/{deep}a.md"), "deep");
    machine.agent("home/repo/.claude/agents/d/b.md", "b");
    machine.agent("home/repo/.claude/agents/.hidden/c.md", "c");
    let catalog = load(&machine.sources());
    let names: Vec<_> = catalog.active.iter().map(|it| it.definition.name.as_str()).collect();
    assert_eq!(names, ["b", "x"]);
    let [failed] = catalog.failed.as_slice() else { panic!("{:?}", catalog.failed) };
    assert_eq!(failed.reason, "lies more than 12 folders deep");
}

#[test]
fn a_policy_of_plugins_alone_leaves_managed_agents_those_of_plugins_and_the_programs_own() {
    // S-077
    let machine = Machine::new();
    machine.agent("etc/.claude/agents/managed.md", "managed");
    machine.agent("home/.claude/agents/user.md", "user");
    machine.agent("home/repo/.claude/agents/project.md", "project");
    machine.agent("kit/agents/own.md", "own");
    machine.write(
        "etc/managed-settings.json",
        r#"{"strictPluginOnlyCustomization": ["agents"],
            "agents": {"set": {"description": "managed", "prompt": "p"}}}"#,
    );
    machine.write(
        "home/.claude/settings.json",
        r#"{"agents": {"mine": {"description": "user", "prompt": "p"}}}"#,
    );
    let settings = Settings::load(
        SettingsSources {
            managed_dir: Some(machine.path("etc")),
            start_dir: machine.path("home/repo/sub"),
            config_dirs: vec![machine.path("home/.claude")],
            ..SettingsSources::default()
        },
        RepositoryTrust::Full,
    );
    let json = r#"{"flag": {"description": "flag", "prompt": "p"}}"#;
    let sources = AgentSources {
        flag: read_agents_flag(json, Path::new("/"), &vocabulary()).unwrap(),
        plugins: vec![PluginAgents {
            plugin: "kit".to_owned(),
            root: machine.path("kit"),
            paths: vec![machine.path("kit/agents")],
            ..PluginAgents::default()
        }],
        settings: settings.agents(),
        plugin_only: settings.plugin_only().agents.is_some(),
        ..machine.sources()
    };
    let names = |sources: &AgentSources| {
        let catalog = load(sources);
        let names = catalog.active.iter().map(|it| it.definition.name.value.clone());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&sources), "kit:own managed set x");
    assert!(watched_directories(&sources).iter().all(|it| !it.starts_with(machine.path("home"))));
    // The settings' own agents stay off even if the caller sets `plugin_only` to false.
    let open = AgentSources { plugin_only: false, ..sources };
    assert_eq!(names(&open), "flag kit:own managed project set user x");
}
