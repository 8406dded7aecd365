//! Memories that come along with projects.

use centurion_protocol::World;
use jiff::Timestamp;

use super::*;
use crate::agents::{AgentLoader, AgentSources, ProjectFolders};

const SNAPSHOT: &str = "repo/.claude/agent-memory-snapshots/scout";
const OURS: &str = "home/.centurion/agent-memory/scout";

/// A clock that stands still.
struct At(&'static str);

impl World for At {
    fn now(&self) -> Timestamp {
        self.0.parse().unwrap()
    }

    fn random(&self) -> u64 {
        0
    }
}

impl Machine {
    fn snapshot(&self, made_at: &str, files: &[(&str, &str)]) {
        let manifest = format!(r#"{{"updatedAt": "{made_at}", "other": 1}}"#);
        self.write(&format!("{SNAPSHOT}/snapshot.json"), manifest);
        for (name, text) in files {
            self.write(&format!("{SNAPSHOT}/{name}"), text);
        }
    }

    fn look(&self) -> Result<SnapshotLook, SnapshotError> {
        self.memory(MemoryScope::User).snapshot().unwrap().at_load()
    }

    fn at_load(&self) -> Result<SnapshotStanding, SnapshotError> {
        self.look().map(|look| look.standing)
    }

    fn import(&self) -> Result<Laid, SnapshotError> {
        self.memory(MemoryScope::User).snapshot().unwrap().import()
    }

    fn export(&self, at: &'static str) -> Result<Laid, SnapshotError> {
        self.memory(MemoryScope::User).snapshot().unwrap().export(&At(at))
    }
}

const MAY: &str = "2026-05-01T00:00:00Z";
const JUNE: &str = "2026-06-01T00:00:00Z";
const JULY: &str = "2026-07-01T00:00:00Z";

#[test]
fn an_empty_memory_begins_with_the_projects_snapshot() {
    // S-056, S-058, S-342
    let machine = Machine::new();
    assert_eq!(machine.at_load().unwrap(), SnapshotStanding::Absent);
    assert!(!machine.path("home/.centurion").exists());
    machine.snapshot(JUNE, &[("MEMORY.md", "index"), ("deep/notes.md", "notes")]);
    let SnapshotLook { standing, problems } = machine.look().unwrap();
    let SnapshotStanding::Initialised { written } = standing else { panic!("{standing:?}") };
    assert_eq!((written.len(), problems.len()), (2, 0));
    assert_eq!(machine.files(OURS), [".snapshots.json", "MEMORY.md", "deep/notes.md"]);
    assert_eq!(machine.memory(MemoryScope::User).load().content, "index");
    assert_eq!(machine.mode(&format!("{OURS}/MEMORY.md")), 0o600);
    assert_eq!(machine.mode(&format!("{OURS}/deep")), 0o700);
    assert_eq!(machine.at_load().unwrap(), SnapshotStanding::UpToDate);
    // A memory that was emptied on purpose stays empty.
    fs::remove_file(machine.path(&format!("{OURS}/MEMORY.md"))).unwrap();
    fs::remove_dir_all(machine.path(&format!("{OURS}/deep"))).unwrap();
    assert_eq!(machine.at_load().unwrap(), SnapshotStanding::UpToDate);
}

#[test]
fn a_newer_snapshot_is_offered_and_what_it_replaces_is_kept() {
    // S-056, S-342
    let machine = Machine::new();
    machine.write(&format!("{OURS}/MEMORY.md"), "mine").write(&format!("{OURS}/same.md"), "same");
    machine.write(&format!("{OURS}/MEMORY.1.md"), "taken");
    machine.snapshot(JUNE, &[("MEMORY.md", "theirs"), ("same.md", "same"), ("new.md", "new")]);
    let offered = SnapshotStanding::Update { made_at: JUNE.parse().unwrap() };
    assert_eq!(machine.at_load().unwrap(), offered);
    // Nothing happens by itself.
    assert_eq!(machine.at_load().unwrap(), offered);
    assert_eq!(machine.read(&format!("{OURS}/MEMORY.md")), "mine");
    let laid = machine.import().unwrap();
    let written: Vec<_> = laid.written.iter().map(|it| it.file_name().unwrap()).collect();
    assert_eq!(written, ["MEMORY.md", "new.md"]);
    let [(from, to)] = laid.kept.as_slice() else { panic!("{laid:?}") };
    assert_eq!(machine.relative(from), format!("{OURS}/MEMORY.md"));
    assert_eq!(machine.relative(to), format!("{OURS}/MEMORY.2.md"));
    let read = |name: &str| machine.read(&format!("{OURS}/{name}"));
    assert_eq!(
        (read("MEMORY.md"), read("MEMORY.1.md"), read("MEMORY.2.md")),
        ("theirs".to_owned(), "taken".to_owned(), "mine".to_owned())
    );
    assert_eq!(machine.at_load().unwrap(), SnapshotStanding::UpToDate);
    machine.snapshot(MAY, &[]);
    assert_eq!(machine.at_load().unwrap(), SnapshotStanding::UpToDate);
    machine.snapshot(JULY, &[]);
    assert_eq!(
        machine.at_load().unwrap(),
        SnapshotStanding::Update { made_at: JULY.parse().unwrap() }
    );
    // Taking up what is there already changes nothing.
    assert_eq!(machine.import().unwrap(), Laid::default());
}

#[test]
fn all_agents_that_remember_the_user_are_looked_after_when_they_are_loaded() {
    // S-056, S-058
    let mut machine = Machine::new();
    let agent = |name: &str, memory: &str| {
        let text = format!("---\nname: {name}\ndescription: d\n{memory}---\nPrompt.\n");
        machine.write(&format!("repo/.claude/agents/{name}.md"), text);
        for file in ["snapshot.json", "MEMORY.md"] {
            let text = format!(r#"{{"updatedAt": "{JUNE}"}}"#);
            machine.write(&format!("repo/.claude/agent-memory-snapshots/{name}/{file}"), text);
        }
    };
    agent("user", "memory: user\n");
    agent("project", "memory: project\n");
    agent("none", "");
    agent("broken", "memory: user\n");
    machine.write("repo/.claude/agent-memory-snapshots/broken/snapshot.json", "");
    machine.write(
        "repo/.claude/agents/alone.md",
        "---\nname: alone\ndescription: d\nmemory: user\n---\nPrompt.\n",
    );
    let sources = AgentSources {
        folders: ProjectFolders { cwd: machine.path("repo"), ..ProjectFolders::default() },
        ..AgentSources::default()
    };
    let catalog = AgentLoader::new().load(&sources, &At(JULY));
    assert_eq!(catalog.active.len(), 5);
    let looks = snapshots_at_load(&catalog, &machine.places);
    let [(broken, Err(_)), (user, Ok(look))] = looks.as_slice() else { panic!("{looks:?}") };
    assert!(matches!(look.standing, SnapshotStanding::Initialised { .. }));
    assert_eq!((broken.as_str(), user.as_str()), ("broken", "user"));
    assert_eq!(
        machine.files("home/.centurion/agent-memory"),
        ["user/.snapshots.json", "user/MEMORY.md"]
    );
    machine.places.auto_memory = false;
    assert!(snapshots_at_load(&catalog, &machine.places).is_empty());
}

#[test]
fn each_project_has_its_own_say() {
    // S-342
    let mut machine = Machine::new();
    machine.snapshot(JULY, &[("MEMORY.md", "one")]);
    machine.at_load().unwrap();
    machine.places.project_root = machine.path("other");
    machine.write(
        "other/.claude/agent-memory-snapshots/scout/snapshot.json",
        format!(r#"{{"updatedAt": "{MAY}"}}"#),
    );
    machine.write("other/.claude/agent-memory-snapshots/scout/web.md", "two");
    // Older than the other project's, and yet nothing that is known.
    assert_eq!(
        machine.at_load().unwrap(),
        SnapshotStanding::Update { made_at: MAY.parse().unwrap() }
    );
    machine.import().unwrap();
    assert_eq!(machine.at_load().unwrap(), SnapshotStanding::UpToDate);
    machine.places.project_root = machine.path("repo");
    assert_eq!(machine.at_load().unwrap(), SnapshotStanding::UpToDate);
    assert_eq!(machine.files(OURS), [".snapshots.json", "MEMORY.md", "web.md"]);
}

#[test]
fn a_memory_is_exported_and_comes_back_elsewhere() {
    // S-342
    let machine = Machine::new();
    assert!(matches!(machine.export(JUNE), Err(SnapshotError::Empty(_))));
    assert!(!machine.path(SNAPSHOT).exists());
    machine
        .write(&format!("{OURS}/MEMORY.md"), "index")
        .write(&format!("{OURS}/deep/notes.md"), "notes")
        .write(&format!("{OURS}/snapshot.json"), "{}")
        .write(&format!("{OURS}/.hidden"), "h");
    let laid = machine.export(JUNE).unwrap();
    assert_eq!((laid.written.len(), laid.kept.len()), (2, 0));
    assert!(laid.problems[0].message.contains("the snapshot's own file"), "{:?}", laid.problems);
    assert_eq!(machine.files(SNAPSHOT), ["MEMORY.md", "deep/notes.md", "snapshot.json"]);
    // One's own export is no news.
    assert_eq!(machine.at_load().unwrap(), SnapshotStanding::UpToDate);
    // The next one keeps what it replaces, and is newer even if the clock was set back.
    machine.write(&format!("{OURS}/MEMORY.md"), "index, later");
    let laid = machine.export(MAY).unwrap();
    assert_eq!((laid.written.len(), laid.kept.len()), (1, 1));
    assert_eq!(machine.read(&format!("{SNAPSHOT}/MEMORY.1.md")), "index");
    assert!(
        machine.read(&format!("{SNAPSHOT}/snapshot.json")).contains("2026-06-01T00:00:00.001Z")
    );
    fs::create_dir(machine.path("usual")).unwrap();
    assert_eq!(machine.mode(SNAPSHOT), machine.mode("usual"));
    // Another user with the same project.
    fs::remove_dir_all(machine.path("home/.centurion")).unwrap();
    assert!(matches!(machine.at_load().unwrap(), SnapshotStanding::Initialised { .. }));
    assert_eq!(machine.memory(MemoryScope::User).load().content, "index, later");
}

#[test]
fn only_the_users_memory_has_snapshots_and_only_if_they_are_on() {
    // S-342, D-34
    let mut machine = Machine::new();
    for scope in [MemoryScope::Project, MemoryScope::Local] {
        assert!(machine.memory(scope).snapshot().is_none());
    }
    machine.places.snapshots = false;
    assert!(machine.memory(MemoryScope::User).snapshot().is_none());
}

#[test]
fn snapshots_are_for_trusted_folders() {
    // S-056, S-342
    let machine = Machine::new();
    let dirs = Dirs::new(&Env::default(), Some(&machine.path("home"))).unwrap();
    let is_on = |user: &str, standing| {
        machine.write("home/.claude/settings.json", user);
        let sources = SettingsSources {
            config_dirs: vec![machine.path("home/.claude")],
            start_dir: machine.path("repo"),
            ..SettingsSources::default()
        };
        let settings = Settings::load(sources, standing);
        MemoryPlaces::new(&dirs, None, &machine.path("repo"), &settings, &[]).snapshots
    };
    let on = r#"{"subagents": {"memorySnapshot": true}}"#;
    assert!(is_on(on, RepositoryTrust::Full));
    assert!(!is_on(on, RepositoryTrust::Partly) && !is_on(on, RepositoryTrust::Untrusted));
    for off in ["{}", r#"{"subagents": {"memorySnapshot": false}}"#] {
        assert!(!is_on(off, RepositoryTrust::Full), "{off}");
    }
    // A project may switch them off.
    machine.write("repo/.claude/settings.json", r#"{"subagents": {"memorySnapshot": false}}"#);
    assert!(!is_on(on, RepositoryTrust::Full));
}

#[test]
fn what_another_program_remembers_goes_before_a_snapshot() {
    // S-342, D-51
    let machine = Machine::new();
    machine.write("home/.claude/agent-memory/scout/MEMORY.md", "theirs");
    machine.write("home/.claude/agent-memory/scout/bytes", b"\xff");
    machine.snapshot(JUNE, &[("MEMORY.md", "snapshot")]);
    let SnapshotLook { standing, problems } = machine.look().unwrap();
    assert!(matches!(standing, SnapshotStanding::Update { .. }));
    assert!(problems[0].path.ends_with(".claude/agent-memory/scout/bytes"), "{problems:?}");
    assert_eq!(machine.memory(MemoryScope::User).load().content, "theirs");
}

#[test]
fn a_hostile_snapshot_brings_nothing_but_texts() {
    // S-342
    let machine = Machine::new();
    machine.write("home/secret", "secret");
    machine.snapshot(JUNE, &[("MEMORY.md", "x"), (".snapshots.json", "{}"), ("a\nb.md", "x")]);
    machine
        .link(&format!("{SNAPSHOT}/link.md"), "home/secret")
        .link(&format!("{SNAPSHOT}/folder"), "home")
        .write(&format!("{SNAPSHOT}/bytes"), b"\xff")
        .write(&format!("{SNAPSHOT}/long.md"), vec![b'x'; 1024 * 1024 + 1])
        .write(&format!("{SNAPSHOT}/1/2/3/4/5/deep.md"), "x");
    let SnapshotLook { standing, problems } = machine.look().unwrap();
    assert!(matches!(standing, SnapshotStanding::Initialised { .. }));
    let mut left_out: Vec<_> =
        problems.iter().map(|it| it.path.file_name().unwrap().to_str().unwrap()).collect();
    left_out.sort_unstable();
    assert_eq!(left_out, ["5", "a\nb.md", "bytes", "folder", "link.md", "long.md"]);
    assert_eq!(machine.files(OURS), [".snapshots.json", "MEMORY.md"]);
}

#[test]
fn a_snapshot_without_bounds_is_refused_as_a_whole() {
    // S-342
    let machine = Machine::new();
    machine.snapshot(JUNE, &[]);
    for index in 0..9 {
        machine.write(&format!("{SNAPSHOT}/{index}.md"), vec![b'x'; 1024 * 1024]);
    }
    let error = machine.at_load().unwrap_err().to_string();
    assert!(error.contains("larger than 8 MiB"), "{error}");
    assert_eq!(machine.files(OURS), [""; 0]);
    for index in 0..1_000 {
        machine.write(&format!("{SNAPSHOT}/{index}.md"), "x");
    }
    let error = machine.at_load().unwrap_err().to_string();
    assert!(error.contains("more than 1000 files"), "{error}");
    assert_eq!(machine.files(OURS), [""; 0]);
}

#[test]
fn links_lead_no_snapshot_out_of_the_project() {
    // S-342
    let machine = Machine::new();
    machine.write("home/away/snapshot.json", format!(r#"{{"updatedAt": "{JUNE}"}}"#));
    machine.write("home/away/id", "secret").link(SNAPSHOT, "home/away");
    assert!(matches!(machine.at_load(), Err(SnapshotError::Linked { .. })));
    assert!(matches!(machine.import(), Err(SnapshotError::Linked { .. })));
    machine.write(&format!("{OURS}/MEMORY.md"), "mine");
    assert!(matches!(machine.export(JULY), Err(SnapshotError::Linked { .. })));
    assert_eq!(machine.files("home/away"), ["id", "snapshot.json"]);
    // Not even to another place in it.
    let machine = Machine::new();
    machine.write(&format!("{OURS}/MEMORY.md"), "mine").link(SNAPSHOT, "repo/.git");
    assert!(matches!(machine.export(JULY), Err(SnapshotError::Linked { .. })));
    assert_eq!(machine.files("repo/.git"), [""; 0]);
    // Nor does its own file.
    let machine = Machine::new();
    machine.write("home/x.json", format!(r#"{{"updatedAt": "{JUNE}"}}"#));
    machine.link(&format!("{SNAPSHOT}/snapshot.json"), "home/x.json");
    assert!(matches!(machine.at_load(), Err(SnapshotError::Manifest { .. })));
}

#[test]
fn links_in_the_memory_are_moved_aside_and_not_written_through() {
    // S-342
    let machine = Machine::new();
    machine
        .write("home/secret", "secret")
        .write(&format!("{OURS}/own.md"), "own")
        .link(&format!("{OURS}/MEMORY.md"), "home/secret")
        .link(&format!("{OURS}/deep"), "home");
    machine.snapshot(JUNE, &[("MEMORY.md", "new"), ("deep/secret", "overwritten")]);
    let laid = machine.import().unwrap();
    assert_eq!(laid.kept.len(), 2);
    assert_eq!(machine.read("home/secret"), "secret");
    assert_eq!(machine.read(&format!("{OURS}/deep/secret")), "overwritten");
    assert_eq!(machine.read(&format!("{OURS}/MEMORY.md")), "new");
}

#[test]
fn a_broken_snapshot_or_note_is_told_or_mended() {
    // S-342
    let machine = Machine::new();
    for manifest in ["", "[]", "{}", r#"{"updatedAt": "yesterday"}"#, r#"{"updatedAt": 5}"#] {
        machine.write(&format!("{SNAPSHOT}/snapshot.json"), manifest);
        let error = machine.at_load().unwrap_err().to_string();
        assert!(error.contains("does not say in `updatedAt`"), "{error}");
    }
    machine.write(&format!("{SNAPSHOT}/snapshot.json"), b"\xff");
    assert!(machine.import().unwrap_err().to_string().ends_with("is not UTF-8"));
    fs::remove_file(machine.path(&format!("{SNAPSHOT}/snapshot.json"))).unwrap();
    assert!(matches!(machine.import(), Err(SnapshotError::Absent(_))));
    machine.write(&format!("{SNAPSHOT}/snapshot.json"), "broken");
    machine.write(&format!("{OURS}/MEMORY.md"), "mine");
    machine.export(JUNE).unwrap();
    assert_eq!(machine.at_load().unwrap(), SnapshotStanding::UpToDate);
    // Without its note a memory is offered the snapshot again.
    machine.write(&format!("{OURS}/.snapshots.json"), "broken");
    assert!(matches!(machine.at_load().unwrap(), SnapshotStanding::Update { .. }));
    assert_eq!(machine.import().unwrap(), Laid::default());
    assert_eq!(machine.at_load().unwrap(), SnapshotStanding::UpToDate);
}

#[test]
fn the_note_of_what_was_taken_does_not_grow_for_ever() {
    let machine = Machine::new();
    let roots: Vec<_> = (0..600).map(|it| format!(r#""/p{it}": "{MAY}""#)).collect();
    let note = format!(r#"{{"taken": {{{}}}}}"#, roots.join(","));
    machine.write(&format!("{OURS}/.snapshots.json"), note);
    machine.snapshot("2020-01-01T00:00:00Z", &[("MEMORY.md", "x")]);
    assert!(matches!(machine.at_load().unwrap(), SnapshotStanding::Initialised { .. }));
    let note: serde_json::Value =
        serde_json::from_str(&machine.read(&format!("{OURS}/.snapshots.json"))).unwrap();
    let taken = note["taken"].as_object().unwrap();
    assert_eq!(taken.len(), 500);
    assert!(taken.contains_key(machine.path("repo").to_str().unwrap()));
}
