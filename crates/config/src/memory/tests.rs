//! Whole trees of memory files in scratch directories.

use std::fs;

use super::Scope::{Local, Managed, Project, User};
use super::*;

/// A scratch machine: a home, and a repository in `home/code/repo`.
/// Marks the machine of these tests.
struct MemoryTests;

type Machine = crate::testing::Machine<MemoryTests>;

impl Machine {
    fn new() -> Self {
        let machine = Self::with(|_| MemoryTests);
        fs::create_dir_all(machine.path("home/code/repo/.git")).unwrap();
        machine
    }

    fn repo(&self, relative: &str, text: impl AsRef<[u8]>) -> &Self {
        self.write(&format!("home/code/repo/{relative}"), text)
    }

    fn sources(&self) -> MemorySources {
        let repo = self.path("home/code/repo");
        MemorySources {
            cwd: repo.clone(),
            repo_root: Some(repo),
            home: Some(self.path("home")),
            managed_dir: Some(self.path("managed")),
            config_dirs: vec![self.path("home/.claude"), self.path("home/.centurion")],
            ..MemorySources::default()
        }
    }

    fn load(&self) -> Memory {
        Memory::load(self.sources())
    }

    /// Paths relative to the machine, where they are in it.
    fn names(&self, files: &[MemoryFile]) -> Vec<String> {
        let root = self.path("");
        let relative = |file: &MemoryFile| {
            file.path.strip_prefix(&root).unwrap_or(&file.path).display().to_string()
        };
        files.iter().map(relative).collect()
    }

    fn loaded(&self) -> Vec<String> {
        self.names(&self.load().files)
    }
}

fn contents(files: &[MemoryFile]) -> Vec<&str> {
    files.iter().map(|file| file.content.trim()).collect()
}

#[test]
fn files_come_from_general_to_particular() {
    let machine = Machine::new();
    for path in [
        "managed/CLAUDE.md",
        "home/.claude/CLAUDE.md",
        "home/.centurion/CLAUDE.md",
        "home/.claude/rules/tone.md",
        "home/code/CLAUDE.md",
        "home/code/repo/CLAUDE.md",
        "home/code/repo/.claude/CLAUDE.md",
        "home/code/repo/.centurion/AGENTS.md",
        "home/code/repo/.claude/rules/a.md",
        "home/code/repo/.centurion/rules/b.md",
        "home/code/repo/CLAUDE.local.md",
    ] {
        machine.write(path, format!("text of {path}"));
    }
    let memory = machine.load();
    assert_eq!(
        machine.names(&memory.files),
        [
            "managed/CLAUDE.md",
            "home/.claude/CLAUDE.md",
            "home/.centurion/CLAUDE.md",
            "home/.claude/rules/tone.md",
            "home/code/CLAUDE.md",
            "home/code/repo/CLAUDE.md",
            "home/code/repo/.claude/CLAUDE.md",
            "home/code/repo/.centurion/AGENTS.md",
            "home/code/repo/.claude/rules/a.md",
            "home/code/repo/.centurion/rules/b.md",
            "home/code/repo/CLAUDE.local.md",
        ]
    );
    let scopes: Vec<Scope> = memory.files.iter().map(|file| file.scope).collect();
    assert_eq!(
        scopes,
        [Managed, User, User, User, Project, Project, Project, Project, Project, Project, Local]
    );
    assert_eq!(memory.problems, []);
}

#[test]
fn agents_md_is_read_after_the_directorys_own_files() {
    let machine = Machine::new();
    machine.write("home/code/AGENTS.md", "outer").repo("AGENTS.md", "inner");
    machine.repo("CLAUDE.md", "root").repo(".claude/CLAUDE.md", "own");
    machine.repo(".centurion/CLAUDE.md", "ours").repo(".centurion/AGENTS.md", "ours too");
    machine.write("home/.claude/AGENTS.md", "user").write("home/.claude/CLAUDE.md", "user's own");
    assert_eq!(
        machine.loaded(),
        [
            "home/.claude/CLAUDE.md",
            "home/.claude/AGENTS.md",
            "home/code/AGENTS.md",
            "home/code/repo/CLAUDE.md",
            "home/code/repo/.claude/CLAUDE.md",
            "home/code/repo/AGENTS.md",
            "home/code/repo/.centurion/CLAUDE.md",
            "home/code/repo/.centurion/AGENTS.md",
        ]
    );
}

#[test]
fn agents_md_says_nothing_twice() {
    let loaded = |make: &dyn Fn(&Machine)| {
        let machine = Machine::new();
        make(&machine);
        let memory = machine.load();
        assert_eq!(memory.problems, []);
        machine.names(&memory.files)
    };
    let claude = ["home/code/repo/CLAUDE.md"];
    let link = |machine: &Machine| {
        machine.repo("CLAUDE.md", "text");
        machine.link("home/code/repo/AGENTS.md", "home/code/repo/CLAUDE.md");
    };
    assert_eq!(loaded(&link), claude);
    let copy = |machine: &Machine| {
        machine.repo("CLAUDE.md", "text @more.md\n").repo("AGENTS.md", "\ntext @more.md");
        machine.repo("more.md", "more");
    };
    assert_eq!(loaded(&copy), ["home/code/repo/CLAUDE.md", "home/code/repo/more.md"]);
    let import = |machine: &Machine| {
        machine.repo("CLAUDE.md", "first\n@AGENTS.md").repo("AGENTS.md", "text");
    };
    assert_eq!(loaded(&import), ["home/code/repo/CLAUDE.md", "home/code/repo/AGENTS.md"]);
    // A copy elsewhere is another directory's business.
    let elsewhere = |machine: &Machine| {
        machine.write("home/code/CLAUDE.md", "text").repo("AGENTS.md", "text");
    };
    assert_eq!(loaded(&elsewhere), ["home/code/CLAUDE.md", "home/code/repo/AGENTS.md"]);
}

#[test]
fn a_file_is_loaded_once_whatever_leads_to_it() {
    let machine = Machine::new();
    machine.repo("CLAUDE.md", "@AGENTS.md @docs/a.md").repo("AGENTS.md", "agents");
    machine.repo("docs/a.md", "back to @../CLAUDE.md and @a.md");
    machine.link("home/code/repo/CLAUDE.local.md", "home/code/repo/AGENTS.md");
    machine.link("home/code/CLAUDE.md", "home/code/repo/AGENTS.md");
    assert_eq!(
        machine.loaded(),
        ["home/code/CLAUDE.md", "home/code/repo/CLAUDE.md", "home/code/repo/docs/a.md"]
    );
    assert_eq!(machine.load().problems, []);
}

#[test]
fn the_users_directory_is_no_project_even_when_it_was_moved() {
    let machine = Machine::new();
    machine.write("home/.claude/CLAUDE.md", "old").write("moved/CLAUDE.md", "new");
    machine.write("home/.claude/rules/r.md", "old rule").write("home/CLAUDE.md", "visible");
    let sources = MemorySources { config_dirs: vec![machine.path("moved")], ..machine.sources() };
    let memory = Memory::load(sources);
    assert_eq!(machine.names(&memory.files), ["moved/CLAUDE.md", "home/CLAUDE.md"]);
}

#[test]
fn imports_follow_their_file_and_are_relative_to_it() {
    let machine = Machine::new();
    let absolute = machine.path("home/code/repo/abs.txt");
    machine.repo("CLAUDE.md", format!("see @docs/a.md, @{} and @nested.md.", absolute.display()));
    machine.repo("docs/a.md", "@b.md#part").repo("docs/b.md", "b").repo("abs.txt", "absolute");
    machine.repo("nested.md", "`@docs/code.md` is code").repo("docs/code.md", "never");
    machine.write("home/.claude/CLAUDE.md", "@~/mine.md").write("home/mine.md", "mine");
    let memory = machine.load();
    assert_eq!(
        machine.names(&memory.files),
        [
            "home/.claude/CLAUDE.md",
            "home/mine.md",
            "home/code/repo/CLAUDE.md",
            "home/code/repo/docs/a.md",
            "home/code/repo/docs/b.md",
            "home/code/repo/abs.txt",
            "home/code/repo/nested.md",
        ]
    );
    let importer = machine.path("home/code/repo/docs/a.md");
    assert_eq!(memory.files[4].origin, MemoryOrigin::ImportedBy(importer));
    assert_eq!((memory.files[1].scope, memory.files[4].scope), (User, Project));
    assert_eq!(memory.problems, []);
}

#[test]
fn imports_end_after_four_files() {
    let machine = Machine::new();
    machine.repo("CLAUDE.md", "@1.md");
    for level in 1..=6 {
        machine.repo(&format!("{level}.md"), format!("\n\n@{}.md", level + 1));
    }
    let memory = machine.load();
    assert_eq!(memory.files.len(), 5);
    let [problem] = memory.problems.as_slice() else { panic!("{:?}", memory.problems) };
    assert!(problem.path.ends_with("4.md") && problem.line == Some(3), "{problem}");
    assert!(problem.message.contains("`@5.md` is one too many"), "{problem}");
}

#[test]
fn a_missing_import_stays_as_text_and_is_noted() {
    let machine = Machine::new();
    machine.repo("CLAUDE.md", "ask @alice about @types/node\nand read @docs/gone.md\n@./src\n");
    machine.repo("src/x.rs", "");
    let memory = machine.load();
    assert!(memory.files[0].content.contains("@docs/gone.md"));
    let noted: Vec<_> = memory.problems.iter().map(|it| (it.line, it.message.as_str())).collect();
    assert_eq!(
        noted,
        [
            (Some(2), "the import `@docs/gone.md` leads to no file"),
            (Some(3), "the import `@./src` leads to no file")
        ]
    );
}

#[test]
fn a_project_imports_nothing_from_outside_unless_allowed() {
    let machine = Machine::new();
    machine.write("home/secret.md", "secret").write("home/other/x.md", "x");
    machine.link("home/code/repo/innocent.md", "home/secret.md");
    machine.repo("CLAUDE.md", "@innocent.md @../../other/x.md @~/secret.md");
    let memory = machine.load();
    assert_eq!(machine.names(&memory.files), ["home/code/repo/CLAUDE.md"]);
    assert_eq!(memory.problems.len(), 3);
    assert!(memory.problems.iter().all(|it| it.message.contains("outside the project")));
    let sources = MemorySources { allow_external_imports: true, ..machine.sources() };
    assert_eq!(Memory::load(sources).files.len(), 3);
}

#[test]
fn a_file_above_the_project_imports_what_is_beside_it() {
    let machine = Machine::new();
    machine.write("home/code/CLAUDE.md", "@shared.md @../private.md");
    machine.write("home/code/shared.md", "shared").write("home/private.md", "private");
    assert_eq!(machine.loaded(), ["home/code/CLAUDE.md", "home/code/shared.md"]);
}

#[test]
fn a_link_of_a_project_leads_nowhere_outside_until_the_folder_is_trusted() {
    let machine = Machine::new();
    machine.write("home/.ssh/id", "key").write("home/dotfiles/style.md", "style");
    machine.write("home/notes/CLAUDE.md", "private").write("home/notes/AGENTS.md", "private, too");
    machine.write("home/shared/s.md", "s");
    machine.link("home/code/repo/CLAUDE.md", "home/.ssh/id");
    machine.link("home/code/repo/AGENTS.md", "home/notes/AGENTS.md");
    machine.link("home/code/repo/CLAUDE.local.md", "home/notes/CLAUDE.md");
    machine.link("home/code/repo/.centurion", "home/notes");
    machine.link("home/code/repo/.claude/rules/style.md", "home/dotfiles/style.md");
    machine.link("home/code/repo/.claude/rules/shared", "home/shared");
    machine.link("home/code/repo/.claude/rules/own.md", "home/code/repo/docs/own.md");
    machine.repo("docs/own.md", "own");
    let memory = machine.load();
    assert_eq!(contents(&memory.files), ["own"], "a link within the project is no way out");
    let refused = |memory: &Memory, why: &str| {
        memory.problems.iter().filter(|it| it.message.contains(why)).count()
    };
    assert_eq!(refused(&memory, "until the folder is trusted"), 5, "{:?}", memory.problems);
    let sources = MemorySources { follow_links_outside: true, ..machine.sources() };
    let trusted = Memory::load(sources);
    let read = contents(&trusted.files);
    assert!(["own", "style", "s", "private"].iter().all(|it| read.contains(it)), "{read:?}");
    assert!(!read.contains(&"key"));
    assert_eq!(refused(&trusted, "no Markdown"), 1, "{:?}", trusted.problems);
}

#[test]
fn a_nested_directory_of_a_project_that_is_a_link_brings_nothing_from_outside() {
    let machine = Machine::new();
    machine.write("home/notes/CLAUDE.md", "private").repo("sub/x.rs", "");
    machine.link("home/code/repo/sub/CLAUDE.md", "home/notes/CLAUDE.md");
    machine.link("home/code/repo/away", "home/notes");
    let mut tracker = MemoryTracker::new(Arc::new(machine.load()));
    for name in ["sub/x.rs", "away/x.rs"] {
        let applied = tracker.rules_for(&machine.path("home/code/repo").join(name));
        assert!(applied.files.is_empty(), "{name}: {applied:?}");
    }
}

#[test]
fn a_pipe_in_the_place_of_a_memory_file_is_not_waited_for() {
    let machine = Machine::new();
    machine.repo("CLAUDE.md", "@pipe.md text");
    let pipe = machine.path("home/code/repo/pipe.md");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    machine.link("home/code/repo/AGENTS.md", "home/code/repo/pipe.md");
    machine.link("home/code/repo/CLAUDE.local.md", "dev");
    assert_eq!(contents(&machine.load().files), ["@pipe.md text"]);
}

#[test]
fn odd_files_are_read_and_impossible_ones_are_noted() {
    let machine = Machine::new();
    machine.repo("CLAUDE.md", b"\xef\xbb\xbfone\r\ntwo \xff\r\n@huge.md @binary.md");
    machine.repo("huge.md", vec![b'a'; 4 * 1024 * 1024 + 1]);
    machine.repo("binary.md", b"a\0b");
    machine.repo("CLAUDE.local.md", " \n").repo(".claude/CLAUDE.md/not-a-file", "");
    let memory = machine.load();
    assert_eq!(contents(&memory.files), ["one\ntwo \u{fffd}\n@huge.md @binary.md"]);
    let problems: Vec<String> = memory.problems.iter().map(ToString::to_string).collect();
    assert!(problems[0].contains("huge.md: is larger than 4 MiB"), "{problems:?}");
    assert!(problems[1].contains("binary.md: is no text"), "{problems:?}");
}

#[test]
fn comments_are_hidden() {
    let machine = Machine::new();
    machine.repo("CLAUDE.md", "<!-- for people -->\nuse tabs\n");
    assert_eq!(machine.load().files[0].content, "use tabs\n");
}

#[test]
fn excludes_keep_files_out_but_not_managed_ones() {
    let machine = Machine::new();
    machine.write("managed/CLAUDE.md", "m").write("home/code/CLAUDE.md", "w");
    machine.repo("CLAUDE.md", "r").repo("AGENTS.md", "a").repo(".claude/rules/x/r.md", "rule");
    let excludes =
        vec!["**/repo/CLAUDE.md".into(), "**/rules/**".into(), "**/managed/**".into(), "[".into()];
    let memory = Memory::load(MemorySources { excludes, ..machine.sources() });
    assert_eq!(
        machine.names(&memory.files),
        ["managed/CLAUDE.md", "home/code/CLAUDE.md", "home/code/repo/AGENTS.md"]
    );
    assert!(memory.problems[0].message.contains("`[` is no glob"), "{:?}", memory.problems);
}

#[test]
fn rules_are_found_in_a_stable_order_and_links_do_not_loop() {
    let machine = Machine::new();
    for name in ["b.md", "a/z.md", "a/y.md", "c.txt"] {
        machine.repo(&format!(".claude/rules/{name}"), name);
    }
    machine.write("home/shared/s.md", "s");
    machine.link("home/code/repo/.claude/rules/loop", "home/code/repo/.claude/rules");
    machine.link("home/code/repo/.claude/rules/shared", "home/shared");
    let sources = MemorySources { follow_links_outside: true, ..machine.sources() };
    assert_eq!(contents(&Memory::load(sources).files), ["a/y.md", "a/z.md", "b.md", "s"]);
}

#[test]
fn a_rule_with_paths_waits_for_a_file_and_comes_once() {
    let machine = Machine::new();
    machine
        .repo(".claude/rules/ts.md", "---\npaths: src/**/*.{ts,tsx}\n---\ntyped @../../docs/ts.md");
    machine.repo("docs/ts.md", "more").repo(".claude/rules/all.md", "---\nname: x\n---\nalways");
    machine.write("home/.claude/rules/md.md", "---\npaths: ['*.md']\n---\nprose");
    let memory = Arc::new(machine.load());
    assert_eq!(contents(&memory.files), ["always"]);
    assert_eq!(memory.rules.len(), 2);
    assert_eq!(memory.rules[1].patterns, ["src/**/*.{ts,tsx}"]);

    let mut tracker = MemoryTracker::new(Arc::clone(&memory));
    let mut read = |path: &str| tracker.rules_for(Path::new(path)).files;
    assert_eq!(read("src/main.rs"), []);
    assert_eq!(contents(&read("lib/../src/a/b.tsx")), ["typed @../../docs/ts.md", "more"]);
    assert_eq!(read("src/other.ts"), []);
    let absolute = machine.path("home/code/repo/docs/deep/x.md");
    assert_eq!(contents(&read(absolute.to_str().unwrap())), ["prose"]);
    // Another conversation starts anew.
    let mut other = MemoryTracker::new(memory);
    assert_eq!(other.rules_for(Path::new("src/c.ts")).files.len(), 2);
}

#[test]
fn instructions_of_a_subdirectory_come_when_a_file_there_is_read() {
    let machine = Machine::new();
    machine.repo("CLAUDE.md", "root").repo("pkg/CLAUDE.md", "pkg").repo("pkg/ui/AGENTS.md", "ui");
    machine.repo("pkg/ui/.claude/rules/css.md", "---\npaths: '*.css'\n---\ncss");
    machine.repo("pkg/ui/CLAUDE.local.md", "@./gone.md");
    let memory = Arc::new(machine.load());
    assert_eq!(contents(&memory.files), ["root"]);
    let mut tracker = MemoryTracker::new(memory);
    assert_eq!(contents(&tracker.rules_for(Path::new("pkg/x.rs")).files), ["pkg"]);
    let applied = tracker.rules_for(Path::new("pkg/ui/x.rs"));
    assert_eq!(contents(&applied.files), ["ui", "@./gone.md"]);
    assert_eq!(applied.problems.len(), 1);
    assert_eq!(contents(&tracker.rules_for(Path::new("pkg/ui/x.css")).files), ["css"]);
    assert!(tracker.rules_for(Path::new("pkg/ui/y.css")).files.is_empty());
    assert!(tracker.rules_for(Path::new("/etc/hosts")).files.is_empty());
}

#[test]
fn a_file_elsewhere_in_the_repository_brings_its_directorys_instructions() {
    let machine = Machine::new();
    machine.repo("one/x", "").repo("two/CLAUDE.md", "two").repo("CLAUDE.md", "root");
    let cwd = machine.path("home/code/repo/one");
    let memory = Memory::load(MemorySources { cwd, ..machine.sources() });
    assert_eq!(contents(&memory.files), ["root"]);
    let mut tracker = MemoryTracker::new(Arc::new(memory));
    assert_eq!(contents(&tracker.rules_for(Path::new("../two/x.rs")).files), ["two"]);
}

#[test]
fn added_directories_bring_their_instructions() {
    let machine = Machine::new();
    machine.write("extra/CLAUDE.md", "@more.md").write("extra/more.md", "more");
    machine.write("extra/sub/CLAUDE.md", "sub");
    let additional_dirs = vec![machine.path("extra")];
    let memory = Memory::load(MemorySources { additional_dirs, ..machine.sources() });
    assert_eq!(contents(&memory.files), ["@more.md", "more"]);
    let mut tracker = MemoryTracker::new(Arc::new(memory));
    let file = machine.path("extra/sub/x.rs");
    assert_eq!(contents(&tracker.rules_for(&file).files), ["sub"]);
}

#[test]
fn a_worktree_does_not_repeat_the_checkout_around_it() {
    let machine = Machine::new();
    machine.repo("CLAUDE.md", "main").repo("CLAUDE.local.md", "private");
    machine.write("home/code/CLAUDE.md", "outer");
    machine.repo(".claude/worktrees/agent-1/CLAUDE.md", "copy");
    let worktree = machine.path("home/code/repo/.claude/worktrees/agent-1");
    let sources =
        MemorySources { cwd: worktree.clone(), repo_root: Some(worktree), ..machine.sources() };
    assert_eq!(contents(&Memory::load(sources).files), ["outer", "private", "copy"]);
}

#[test]
fn a_broken_rule_is_noted_with_its_line() {
    let machine = Machine::new();
    machine.repo(".claude/rules/a.md", "---\nname: x\nbody");
    machine.repo(".claude/rules/b.md", format!("---\npaths: '{}'\n---\nb", "{a,b}".repeat(11)));
    let memory = machine.load();
    assert_eq!(contents(&memory.files), ["---\nname: x\nbody"]);
    let problems: Vec<String> = memory.problems.iter().map(ToString::to_string).collect();
    assert!(problems[0].contains("a.md:1: the frontmatter has no closing `---`"), "{problems:?}");
    assert!(problems[1].contains("b.md:2: ") && problems[1].contains("1000"), "{problems:?}");
}

#[test]
fn the_text_names_each_file_and_what_it_is() {
    let machine = Machine::new();
    assert_eq!(machine.load().render(), None);
    machine.write("home/.claude/CLAUDE.md", "be kind\n").repo("CLAUDE.md", "use tabs @more.md\n");
    machine.repo("more.md", "and semicolons").repo(".claude/rules/r.md", "a rule");
    machine.repo("CLAUDE.local.md", "my port is 3000");
    let text = machine.load().render().unwrap();
    let root = format!("{}/", machine.path("").display()).replace("//", "/");
    let text = text.replace(&root, "");
    assert!(text.ends_with(
        "counts.\n\n\
         # home/.claude/CLAUDE.md (the user's own instructions for all projects)\n\nbe kind\n\n\
         # home/code/repo/CLAUDE.md (instructions of this project)\n\nuse tabs @more.md\n\n\
         # home/code/repo/more.md (instructions of this project, imported by home/code/repo/CLAUDE.md)\n\n\
         and semicolons\n\n\
         # home/code/repo/.claude/rules/r.md (a rule among instructions of this project)\n\na rule\n\n\
         # home/code/repo/CLAUDE.local.md (the user's own instructions for this project)\n\n\
         my port is 3000"
    ), "{text}");
}

#[test]
fn what_managed_settings_say_is_there_when_files_are_read_again() {
    // D-52
    let machine = Machine::new();
    let managed_text = Some((machine.path("managed-settings.json"), "ASK-TWICE".to_owned()));
    let memory = Memory::load(MemorySources { managed_text, ..machine.sources() });
    let tracker = MemoryTracker::new(Arc::new(memory));
    for tracker in [&tracker, &tracker.reloaded()] {
        assert!(tracker.render().unwrap().contains("ASK-TWICE"));
    }
}
