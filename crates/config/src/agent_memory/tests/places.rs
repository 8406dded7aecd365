//! Directories of memories: their paths, their creation, their contents.

use super::*;

#[test]
fn each_scope_has_its_directory_by_the_agents_name() {
    // S-016, S-340, S-343, D-51
    let machine = Machine::new();
    let at = |scope, name: &str| {
        let memory = AgentMemory::locate(scope, name, &machine.places).unwrap();
        assert_eq!(memory.owner(), MemoryOwner::Agent(scope));
        machine.relative(memory.directory())
    };
    assert_eq!(at(MemoryScope::User, "scout"), "home/.centurion/agent-memory/scout");
    assert_eq!(at(MemoryScope::Project, "scout"), "repo/.claude/agent-memory/scout");
    assert_eq!(at(MemoryScope::Local, "scout"), "repo/.claude/agent-memory-local/scout");
    assert_eq!(
        at(MemoryScope::User, "kit:sub:Spatial/Metal"),
        "home/.centurion/agent-memory/kit-sub-Spatial-Metal"
    );
    for (hostile, name) in [
        ("../../../etc", "-..-..-etc"),
        ("/etc/passwd", "-etc-passwd"),
        ("a\\..\\..\\b", "a-..-..-b"),
        ("x\0\n\u{1b}y", "xy"),
    ] {
        assert_eq!(at(MemoryScope::Project, hostile), format!("repo/.claude/agent-memory/{name}"));
    }
    let (one, other) = ("é".repeat(300), "é".repeat(301));
    let (one, other) = (at(MemoryScope::User, &one), at(MemoryScope::User, &other));
    assert_ne!(one, other);
    assert!(one.rsplit('/').next().unwrap().len() <= 255, "{one}");
    for nameless in ["", "..", "...", "\n", " "] {
        assert_eq!(AgentMemory::locate(MemoryScope::User, nameless, &machine.places), None);
    }
}

#[test]
fn all_of_a_project_shares_one_memory_wherever_it_is_started() {
    // S-340
    let machine = Machine::new();
    machine.write("repo/deep/er/x", "").write("repo/.git/worktrees/w/gitdir", "../../../../w/.git");
    machine.write("w/.git", "gitdir: ../repo/.git/worktrees/w").write("w/sub/x", "");
    machine.write("repo/.git/worktrees/w/commondir", "../..");
    machine.write("alone/sub/x", "");
    let home = machine.path("home");
    let dirs = Dirs::new(&Env::default(), Some(&home)).unwrap();
    let settings = Settings::load(SettingsSources::default(), RepositoryTrust::Untrusted);
    let places = |cwd: &str| MemoryPlaces::new(&dirs, None, &machine.path(cwd), &settings, &[]);
    for cwd in ["repo", "repo/deep/er", "w", "w/sub"] {
        let places = places(cwd);
        assert_eq!(machine.relative(&places.project_root), "repo", "{cwd}");
        assert!(places.is_repository);
    }
    let alone = places("alone/sub");
    assert_eq!(machine.relative(&alone.project_root), "alone/sub");
    assert!(!alone.is_repository && alone.auto_memory && !alone.snapshots);
    assert_eq!(
        (machine.relative(&alone.state_dir), machine.relative(&alone.other_dirs[0])),
        ("home/.centurion".to_owned(), "home/.claude".to_owned())
    );
    // Everything is in one place, and there is nothing to take over.
    let env = Env::from([("CLAUDE_CONFIG_DIR", "/c")]);
    let one = MemoryPlaces::new(&Dirs::new(&env, None).unwrap(), None, &home, &settings, &[&env]);
    assert_eq!((one.state_dir, one.other_dirs), (PathBuf::from("/c"), Vec::new()));
}

#[test]
fn without_auto_memory_there_is_none() {
    // D-34, S-086, S-093
    let machine = Machine::new();
    let dirs = Dirs::new(&Env::default(), Some(&machine.path("home"))).unwrap();
    let is_on = |text: &str, env: Env| {
        machine.write("home/.claude/settings.json", text);
        let sources = SettingsSources {
            config_dirs: vec![machine.path("home/.claude")],
            start_dir: machine.path("repo"),
            ..SettingsSources::default()
        };
        let settings = Settings::load(sources, RepositoryTrust::Full);
        let places = MemoryPlaces::new(
            &dirs,
            None,
            &machine.path("repo"),
            &settings,
            &[&Env::default(), &env],
        );
        let located = MemoryScope::ALL.map(|scope| AgentMemory::locate(scope, "scout", &places));
        assert!(located.iter().all(|it| it.is_some() == places.auto_memory));
        places.auto_memory
    };
    let disabled = || Env::from([("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "1")]);
    assert!(is_on("{}", Env::default()));
    assert!(!is_on(r#"{"autoMemoryEnabled": false}"#, Env::default()));
    assert!(!is_on("{}", disabled()));
    assert!(!is_on(r#"{"autoMemoryEnabled": true}"#, disabled()));
    assert!(is_on("{}", Env::from([("CLAUDE_CODE_DISABLE_AUTO_MEMORY", "0")])));
}

#[test]
fn memory_of_the_user_is_private_to_the_user() {
    // S-340
    let machine = Machine::new();
    for scope in MemoryScope::ALL {
        assert_eq!(machine.memory(scope).prepare().unwrap(), []);
        // Once more is no matter.
        assert_eq!(machine.memory(scope).prepare().unwrap(), []);
    }
    fs::create_dir(machine.path("usual")).unwrap();
    assert_eq!(machine.mode("home/.centurion/agent-memory/scout"), 0o700);
    assert_eq!(machine.mode("repo/.claude/agent-memory-local/scout"), 0o700);
    assert_eq!(machine.mode("repo/.claude/agent-memory/scout"), machine.mode("usual"));
    assert_eq!(machine.mode("repo/.claude"), machine.mode("usual"));
    assert_eq!(machine.files("home/.claude"), [""; 0]);
}

#[test]
fn a_local_memory_is_invisible_to_git() {
    // S-340
    let machine = Machine::new();
    machine.memory(MemoryScope::Local).prepare().unwrap();
    machine.memory(MemoryScope::Project).prepare().unwrap();
    assert_eq!(machine.files("repo/.claude"), ["agent-memory-local/scout/.gitignore"]);
    assert_eq!(machine.read("repo/.claude/agent-memory-local/scout/.gitignore"), "*\n");
    // An existing file stays.
    machine.write("repo/.claude/agent-memory-local/scout/.gitignore", "mine");
    machine.memory(MemoryScope::Local).prepare().unwrap();
    assert_eq!(machine.read("repo/.claude/agent-memory-local/scout/.gitignore"), "mine");
    let mut bare = Machine::new();
    bare.places.is_repository = false;
    bare.memory(MemoryScope::Local).prepare().unwrap();
    assert_eq!(bare.files("repo/.claude"), [""; 0]);
}

#[test]
fn a_memory_of_another_program_is_taken_over_once_and_never_touched() {
    // D-51, S-340
    let machine = Machine::new();
    machine
        .write("home/.claude/agent-memory/scout/MEMORY.md", "theirs")
        .write("home/.claude/agent-memory/scout/deep/notes.md", "more")
        .write("home/.claude/agent-memory/scout/bytes", b"\xff")
        .write("home/secret", "secret")
        .link("home/.claude/agent-memory/scout/link.md", "home/secret");
    let before = machine.files("home/.claude");
    let memory = machine.memory(MemoryScope::User);
    let problems = memory.prepare().unwrap();
    let problems: Vec<_> = problems.iter().map(|it| machine.relative(&it.path)).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems.iter().all(|it| it.ends_with("bytes") || it.ends_with("link.md")));
    let ours = "home/.centurion/agent-memory";
    assert_eq!(machine.files(ours), ["scout/MEMORY.md", "scout/deep/notes.md"]);
    assert_eq!(memory.load().content, "theirs");
    assert_eq!(machine.mode(&format!("{ours}/scout")), 0o700);
    assert_eq!(machine.mode(&format!("{ours}/scout/MEMORY.md")), 0o600);
    // From then on ours counts, even when it is emptied.
    machine.write("home/.claude/agent-memory/scout/MEMORY.md", "theirs, later");
    fs::remove_file(memory.directory().join("MEMORY.md")).unwrap();
    assert_eq!(memory.prepare().unwrap(), []);
    assert_eq!(memory.load(), MemoryText::default());
    assert_eq!(machine.files("home/.claude"), before);
    // Nothing of it goes into a project.
    machine.memory(MemoryScope::Project).prepare().unwrap();
    assert_eq!(machine.files("repo/.claude"), [""; 0]);
}

#[test]
fn a_memory_that_is_too_large_to_take_over_is_told_and_ours_begins_empty() {
    let machine = Machine::new();
    for index in 0..1_001 {
        machine.write(&format!("home/.claude/agent-memory/scout/{index}.md"), "x");
    }
    let memory = machine.memory(MemoryScope::User);
    let problems = memory.prepare().unwrap();
    let [problem] = problems.as_slice() else { panic!("{problems:?}") };
    assert!(problem.message.contains("more than 1000 files"), "{problem}");
    assert!(memory.directory().is_dir());
    assert_eq!(machine.files("home/.centurion"), [""; 0]);
}

#[test]
fn a_copy_that_was_not_finished_is_made_again() {
    let machine = Machine::new();
    machine
        .write("home/.claude/agent-memory/scout/MEMORY.md", "theirs")
        .write("home/.centurion/agent-memory/.scout.new/half.md", "ha");
    machine.memory(MemoryScope::User).prepare().unwrap();
    assert_eq!(machine.files("home/.centurion/agent-memory"), ["scout/MEMORY.md"]);
}

#[test]
fn a_project_in_the_home_directory_leaves_the_other_program_alone() {
    // D-51
    let mut machine = Machine::new();
    machine.places.project_root = machine.path("home");
    let memory = machine.memory(MemoryScope::Project);
    assert_eq!(machine.relative(memory.directory()), "home/.centurion/agent-memory/scout");
    memory.prepare().unwrap();
    assert!(!machine.path("home/.claude").exists());
}

#[test]
fn a_repository_cannot_lead_a_memory_out_of_itself() {
    // S-340, S-086
    for link in [".claude", ".claude/agent-memory", ".claude/agent-memory/scout"] {
        let machine = Machine::new();
        machine.write("home/.ssh/id", "secret").write("home/.ssh/MEMORY.md", "secret");
        machine.link(&format!("repo/{link}"), "home/.ssh");
        let before = machine.files("home");
        let memory = machine.memory(MemoryScope::Project);
        let error = memory.prepare().unwrap_err().to_string();
        assert!(error.contains("leads elsewhere"), "{error}");
        let text = memory.load();
        assert_eq!(text.content, "");
        assert!(text.problem.unwrap().message.contains("leads elsewhere"));
        for path in [memory.directory().join("id"), machine.path("home/.ssh/id")] {
            assert!(!memory.contains(&path), "{}", path.display());
        }
        assert_eq!(machine.files("home"), before, "{link}");
    }
    // Nor to another place in it, where the agent may not write unasked.
    for target in ["repo/.git", "repo"] {
        let machine = Machine::new();
        machine.link("repo/.claude/agent-memory/scout", target);
        let memory = machine.memory(MemoryScope::Project);
        assert!(memory.prepare().is_err());
        assert!(!memory.contains(&machine.path("repo/.git/hooks/x")), "{target}");
        assert!(!memory.contains(&memory.directory().join("x")), "{target}");
    }
}

#[test]
fn a_user_may_keep_all_state_elsewhere() {
    // S-340
    let machine = Machine::new();
    machine.write("disk/state/x", "").link("home/.centurion", "disk/state");
    let memory = machine.memory(MemoryScope::User);
    memory.prepare().unwrap();
    assert!(machine.path("disk/state/agent-memory/scout").is_dir());
    assert!(memory.contains(&machine.path("disk/state/agent-memory/scout/x.md")));
    assert!(memory.contains(&memory.directory().join("x.md")));
}

#[test]
fn only_what_is_really_inside_belongs_to_a_memory() {
    // S-086
    let machine = Machine::new();
    let memory = machine.memory(MemoryScope::Project);
    let base = "repo/.claude/agent-memory/scout";
    let contains = |relative: &str| memory.contains(&machine.path(relative));
    assert!(contains(&format!("{base}/new.md")));
    memory.prepare().unwrap();
    machine
        .write(&format!("{base}/MEMORY.md"), "x")
        .write("repo/secret", "s")
        .link(&format!("{base}/out.md"), "repo/secret");
    for inside in ["", "/MEMORY.md", "/new.md", "/new/er.md", "/../scout/MEMORY.md"] {
        assert!(contains(&format!("{base}{inside}")), "{inside}");
    }
    let outside =
        ["/out.md", "/out.md/x", "/../other/MEMORY.md", "/../../../secret", "s/x", "/new/../../x"];
    for outside in outside {
        assert!(!contains(&format!("{base}{outside}")), "{outside}");
    }
    assert!(!memory.contains(Path::new("MEMORY.md")));
    assert!(!memory.contains(Path::new("")));
}

#[test]
fn something_else_in_the_way_is_an_error() {
    let machine = Machine::new();
    machine.write("repo/.claude/agent-memory/scout", "a file");
    let error = machine.memory(MemoryScope::Project).prepare().unwrap_err().to_string();
    assert!(error.contains("cannot be made"), "{error}");
    assert_eq!(machine.read("repo/.claude/agent-memory/scout"), "a file");
}
