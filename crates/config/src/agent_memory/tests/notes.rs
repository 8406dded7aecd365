//! Notes that the program writes.

use std::collections::BTreeMap;

use centurion_protocol::{SeededWorld, World as _};

use super::*;

const DAY: &str = "2026-11-17";

fn note(text: &str) -> NewNote {
    NewNote {
        kind: NoteKind::Feedback,
        description: "how tea\nis made".to_owned(),
        text: text.to_owned(),
    }
}

fn memory(machine: &Machine) -> AgentMemory {
    let memory = AgentMemory::of_main(&machine.places).unwrap().unwrap();
    memory.prepare().unwrap();
    memory
}

fn name(text: &str) -> NoteName {
    NoteName::new(text).unwrap()
}

#[test]
fn a_name_of_a_note_never_leads_elsewhere() {
    for (written, meant) in [("tea", "tea.md"), ("tea.md", "tea.md"), ("a-1.md", "a-1.md")] {
        assert_eq!(NoteName::new(written).unwrap().as_str(), meant);
    }
    let long = "x".repeat(65);
    for bad in [
        "",
        ".md",
        "MEMORY.md",
        "../x.md",
        "a/b.md",
        ".x.md",
        "-x",
        "a b",
        "ä.md",
        "a.md.md",
        "a\n",
        &long,
    ] {
        assert_eq!(NoteName::new(bad), None, "{bad}");
    }
}

#[test]
fn a_note_is_a_file_with_a_line_in_the_index_and_is_added_to() {
    let machine = Machine::new();
    let memory = memory(&machine);
    let base = machine.relative(memory.directory());
    machine.write(&format!("{base}/MEMORY.md"), "My own words.");
    memory.add_note(&name("tea"), &note("Pour at 80 degrees.\n"), DAY).unwrap();
    let index = "My own words.\n- [tea](tea.md): how tea is made\n";
    assert_eq!(machine.read(&format!("{base}/MEMORY.md")), index);
    let first = "---\ndescription: \"how tea is made\"\ntype: feedback\nmodified: 2026-11-17\n---\n\nPour at 80 degrees.\n";
    assert_eq!(machine.read(&format!("{base}/tea.md")), first);
    assert_eq!(machine.mode(&format!("{base}/tea.md")), 0o600);
    memory.add_note(&name("tea"), &note("No sugar."), "2026-11-18").unwrap();
    let second = format!("{first}\n## 2026-11-18\n\nNo sugar.\n");
    assert_eq!(machine.read(&format!("{base}/tea.md")), second);
    assert_eq!(machine.read(&format!("{base}/MEMORY.md")), index, "it is listed once");
}

#[test]
fn the_last_sessions_are_told_with_the_index() {
    let machine = Machine::new();
    let memory = memory(&machine);
    let world = SeededWorld::new(1);
    for count in 0..7 {
        let described = NewNote { description: format!("SESSION-{count}"), ..note("text") };
        memory.put_session_note(world.session_id(), &described, DAY).unwrap();
        let path = memory.directory().join("sessions");
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let number: u64 = text.split("SESSION-").nth(1).unwrap()[..1].parse().unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000 + number);
            fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        }
    }
    let told = memory.index().text.unwrap();
    let shown: Vec<usize> = (0..7).filter_map(|n| told.find(&format!("SESSION-{n}"))).collect();
    assert_eq!(shown.len(), 5, "{told}");
    assert!(shown.is_sorted_by(|one, other| one > other) && !told.contains("SESSION-1"), "{told}");
    assert!(told.contains("sessions/") && told.contains(DAY), "{told}");
    // A later note on the same session takes the place of the first.
    let world = SeededWorld::new(1);
    let again = NewNote { description: "AGAIN".to_owned(), ..note("text") };
    memory.put_session_note(world.session_id(), &again, DAY).unwrap();
    assert_eq!(memory.notes().unwrap().files.len(), 7);
}

#[test]
fn a_consolidation_keeps_what_it_replaces_and_removes() {
    let machine = Machine::new();
    let memory = memory(&machine);
    let base = machine.relative(memory.directory());
    for subject in ["tea", "coffee", "milk"] {
        memory.add_note(&name(subject), &note(subject), DAY).unwrap();
    }
    machine.write(&format!("{base}/odd name.md"), "odd");
    let seen = memory.notes().unwrap();
    let wanted = Rearrangement {
        written: BTreeMap::from([
            ("tea.md".into(), note("NEW-TEA")),
            ("drinks.md".into(), note("DRINKS")),
        ]),
        removed: vec!["coffee.md".into(), "odd name.md".into()],
    };
    memory.rearrange(&seen, &wanted, "20261117T120000Z", DAY).unwrap();
    let after = memory.notes().unwrap();
    let names: Vec<String> = after.files.keys().map(|it| it.display().to_string()).collect();
    assert_eq!(names, ["drinks.md", "milk.md", "tea.md"]);
    assert!(after.files[Path::new("tea.md")].contains("NEW-TEA"));
    assert!(
        !after.index.contains("coffee") && after.index.contains("(milk.md)"),
        "{}",
        after.index
    );
    assert!(after.index.contains("(drinks.md)") && after.index.contains("(tea.md)"));
    let earlier = machine.files(&format!("{base}/.earlier"));
    let at = |name: &str| format!("20261117T120000Z/{name}");
    assert_eq!(earlier, ["MEMORY.md", "coffee.md", "odd name.md", "tea.md"].map(at));
    // Five of these are kept.
    for hour in 13..22 {
        let seen = memory.notes().unwrap();
        memory
            .rearrange(&seen, &wanted_of("tea.md"), &format!("20261117T{hour}0000Z"), DAY)
            .unwrap();
    }
    let kept = fs::read_dir(memory.directory().join(".earlier")).unwrap().count();
    assert_eq!(kept, 5);
}

fn wanted_of(path: &str) -> Rearrangement {
    Rearrangement { written: BTreeMap::from([(path.into(), note("again"))]), removed: Vec::new() }
}

#[test]
fn notes_that_changed_meanwhile_are_left_alone() {
    let machine = Machine::new();
    let memory = memory(&machine);
    memory.add_note(&name("tea"), &note("tea"), DAY).unwrap();
    let seen = memory.notes().unwrap();
    memory.add_note(&name("tea"), &note("MORE"), DAY).unwrap();
    let removal = Rearrangement { removed: vec!["tea.md".into()], ..Rearrangement::default() };
    for wanted in [wanted_of("tea.md"), removal] {
        let error = memory.rearrange(&seen, &wanted, "20261117T120000Z", DAY).unwrap_err();
        assert!(matches!(error, NoteError::Changed(_)), "{error}");
    }
    assert!(memory.notes().unwrap().files[Path::new("tea.md")].contains("MORE"));
}

#[test]
fn links_lead_no_note_out_of_the_memory() {
    let machine = Machine::new();
    let memory = memory(&machine);
    let base = machine.relative(memory.directory());
    machine.write("home/outside/x", "").write("home/secret.md", "secret");
    machine
        .link(&format!("{base}/sessions"), "home/outside")
        .link(&format!("{base}/tea.md"), "home/secret.md");
    let world = SeededWorld::new(1);
    assert!(memory.put_session_note(world.session_id(), &note("x"), DAY).is_err());
    // A link may be the user's: what it leads to is neither read nor replaced, and it stays.
    assert!(matches!(
        memory.add_note(&name("tea"), &note("tea"), DAY),
        Err(NoteError::Unreadable(_))
    ));
    assert_eq!(machine.read("home/secret.md"), "secret");
    assert_eq!(machine.files("home/outside"), ["x"]);
    assert!(!memory.index().text.unwrap_or_default().contains("outside"));
}

#[test]
fn what_cannot_be_read_is_not_written_over() {
    let machine = Machine::new();
    let memory = memory(&machine);
    let base = machine.relative(memory.directory());
    machine.write(&format!("{base}/tea.md"), b"tea \xff");
    let error = memory.add_note(&name("tea"), &note("tea"), DAY).unwrap_err();
    assert!(matches!(error, NoteError::Unreadable(_)), "{error}");
    machine.write(&format!("{base}/MEMORY.md"), b"index \xff");
    assert!(memory.add_note(&name("milk"), &note("milk"), DAY).is_err());
    let seen = memory.notes().unwrap();
    assert!(memory.rearrange(&seen, &wanted_of("new.md"), "20261117T120000Z", DAY).is_err());
    assert_eq!(fs::read(machine.path(&format!("{base}/MEMORY.md"))).unwrap(), b"index \xff");
}

#[test]
fn a_note_is_meant_by_its_own_name_and_its_line_is_known_in_any_form() {
    let machine = Machine::new();
    let memory = memory(&machine);
    let base = machine.relative(memory.directory());
    machine
        .write(&format!("{base}/user_role.md"), "role")
        .write(&format!("{base}/sessions/x.md"), "s");
    machine.write(
        &format!("{base}/MEMORY.md"),
        "- user_role.md: who they are\n- see user_role.md and tea.md\n- my_user_role.md\n",
    );
    let notes = memory.notes().unwrap();
    let meant = NoteName::meant("user_role.md", &notes).unwrap();
    assert_eq!(NoteName::meant("User_Role.md", &notes), None);
    assert_eq!(NoteName::meant("sessions/x.md", &notes), None);
    assert_eq!(NoteName::meant("../user_role.md", &notes), None);
    memory.add_note(&meant, &note("more"), DAY).unwrap();
    let after = memory.notes().unwrap();
    assert_eq!(after.index, notes.index, "it is listed already");
    assert!(after.files[Path::new("user_role.md")].contains("role\n\n## 2026-11-17\n\nmore"));
    let removal =
        Rearrangement { removed: vec!["user_role.md".into()], ..Rearrangement::default() };
    memory.rearrange(&after, &removal, "20261117T120000Z", DAY).unwrap();
    assert_eq!(memory.notes().unwrap().index, "- see user_role.md and tea.md\n- my_user_role.md");
    let kept = format!("{base}/.earlier/20261117T120000Z/user_role.md");
    assert!(machine.read(&kept).contains("more"));
}

#[test]
fn an_attempt_to_consolidate_counts_even_if_it_fails() {
    let machine = Machine::new();
    let memory = memory(&machine);
    let claim = |now: &str| {
        let claimed = memory.claim_consolidation(now, |_, last| last.is_none_or(|last| last < "2"));
        claimed.unwrap().is_some()
    };
    assert!(claim("1") && claim("2") && !claim("3"));
}

#[test]
fn the_newest_hundred_sessions_are_kept() {
    let machine = Machine::new();
    let memory = memory(&machine);
    let world = SeededWorld::new(1);
    for _ in 0..103 {
        memory.put_session_note(world.session_id(), &note("x"), DAY).unwrap();
    }
    assert_eq!(memory.notes().unwrap().files.len(), 100);
}

#[test]
fn pipes_in_a_memory_hang_nothing_and_stay() {
    let machine = Machine::new();
    let memory = memory(&machine);
    let pipes = ["MEMORY.md", "tea.md", "sessions/x.md", ".consolidated"];
    fs::create_dir(memory.directory().join("sessions")).unwrap();
    for pipe in pipes {
        let path = memory.directory().join(pipe);
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    }
    assert!(memory.index().problem.is_some());
    assert!(memory.add_note(&name("tea"), &note("tea"), DAY).is_err());
    assert!(
        memory.add_note(&name("milk"), &note("milk"), DAY).is_err(),
        "the index cannot be read"
    );
    assert!(memory.claim_consolidation("1", |_, last| last.is_some()).unwrap().is_none());
    for pipe in &pipes[..3] {
        assert!(!memory.directory().join(pipe).is_file(), "{pipe}");
    }
    // The file that says for which project it is, too.
    let project = memory.directory().join(".project");
    fs::remove_file(&project).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&project).status().unwrap().success());
    assert!(AgentMemory::of_main(&machine.places).unwrap().is_some());
}
