//! The form of source files, and the calls that libraries leave alone.

use std::collections::BTreeSet;

use crate::tree::{self, File, assert_none};

#[test]
fn every_source_file_says_what_it_owns() {
    let complaints: Vec<String> = tree::sources()
        .iter()
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| format!("{}: the first line is no `//!` sentence", file.path))
        .collect();
    assert_none(&complaints);
}

#[test]
fn no_line_ends_in_white_space() {
    let files = tree::files(&["rs", "toml", "md", "yml", "json"]);
    assert_none(&files.iter().flat_map(trailing_space).collect::<Vec<_>>());
}

#[test]
fn nothing_is_unfinished_or_silenced() {
    let sources = tree::sources();
    assert_none(&sources.iter().flat_map(silenced).collect::<Vec<_>>());
}

#[test]
fn libraries_leave_the_surroundings_to_the_binary() {
    let product = product();
    let libraries = product.iter().filter(|file| is_library_code(&file.path));
    assert_none(&libraries.flat_map(reaches_out).collect::<Vec<_>>());
}

/// The files of the engine in which a value is computed once, when it is first wanted.
const LAZY: [&str; 5] = [
    "agent/fork_point.rs",
    "agent/isolation.rs",
    "delegate/inherit.rs",
    "tools/agent_tool.rs",
    "turn/driver/calls.rs",
];

#[test]
fn no_part_of_a_session_is_filled_in_later() {
    const COMPLAINT: &str =
        "a value that may be missing while a session runs: build it with its owner";
    let filled_later = |file: &File| {
        complain(file, |line| {
            let code = line.split("//").next().unwrap_or_default();
            ["OnceLock", "OnceCell"].iter().any(|name| code.contains(name)).then_some(COMPLAINT)
        })
    };
    let complaints: Vec<String> = tree::sources()
        .iter()
        .filter_map(|file| Some((file, file.path.strip_prefix("crates/engine/src/")?)))
        .filter(|(_, path)| !LAZY.contains(path))
        .flat_map(|(file, _)| filled_later(file))
        .collect();
    assert_none(&complaints);
}

#[test]
fn every_task_belongs_to_a_tracker() {
    let product = product();
    let product = product.iter().filter(|file| !file.path.contains("testkit"));
    assert_none(&product.flat_map(detached).collect::<Vec<_>>());
}

/// The files that start programs by themselves, and why the program needs no guard, or is one. All others start them below a
/// guard (`Piped`), bound to this process (`Bound`), or as the git that can start nothing (`InstalledGit`).
const STARTS_PROGRAMS: [(&str, &str); 20] = [
    ("crates/cli/src/demo/repository.rs", "a script of our own, waited for"),
    ("crates/cli/src/interactive/desk.rs", "the user's editor, waited for; this program itself"),
    ("crates/cli/src/interactive/images.rs", "programs of the desktop that print what was copied"),
    ("crates/cli/src/mcp/browser.rs", "the user's browser, which is to stay"),
    ("crates/cli/src/teammates/pane.rs", "the process becomes the program"),
    (
        "crates/cli/src/teammates/tmux.rs",
        "tmux, whose server is to stay; the guard of a member is in its pane",
    ),
    ("crates/sandbox/src/bin/centurion_sandboxed.rs", "the process becomes the program"),
    ("crates/sandbox/src/bubblewrap.rs", "what the guard starts"),
    ("crates/sandbox/src/reader.rs", "the git that can start nothing"),
    ("crates/sandbox/src/support.rs", "this program itself, which tries what the kernel can do"),
    ("crates/tools/src/bound.rs", "starts programs that end with this process"),
    ("crates/tools/src/git.rs", "the git that can start nothing, and the git that fetches"),
    ("crates/tools/src/guard/family.rs", "the second watcher"),
    ("crates/tools/src/guard/launch.rs", "below the guard"),
    ("crates/tools/src/guard/pipe.rs", "below the guard"),
    ("crates/tools/src/guard/watch.rs", "below the guard"),
    ("crates/tools/src/process.rs", "the guard"),
    ("crates/tools/src/shell/guarded.rs", "the guard"),
    (
        "crates/worktree/src/git.rs",
        "for a program that gives no way of its own, such as a benchmark",
    ),
    ("crates/tui/src/keeper.rs", "the keeper, which puts the terminal back as it was"),
];

/// Commands of settings once outlived the program, because each had a way of its own to start one.
#[test]
fn programs_are_started_below_a_guard_or_bound_to_this_process() {
    const COMPLAINT: &str = "starts a program by itself: use `Piped`, `Bound` or `InstalledGit`";
    let mut product = product();
    product.retain(|file| !file.path.starts_with("xtask") && !file.path.contains("testkit"));
    let starts = |file: &File| {
        complain(file, |line| {
            let code = line.split("//").next().unwrap_or_default();
            let mut starts = code.match_indices("Command::new(");
            // Types of ours end in the same word.
            let is_whole = |at: usize| !code[..at].ends_with(|it: char| it.is_alphanumeric());
            starts.any(|(at, _)| is_whole(at)).then_some(COMPLAINT)
        })
    };
    let is_known = |path: &str| STARTS_PROGRAMS.iter().any(|(known, _)| *known == path);
    let complaints: Vec<String> =
        product.iter().filter(|file| !is_known(&file.path)).flat_map(starts).collect();
    assert_none(&complaints);
    let idle: Vec<&str> = STARTS_PROGRAMS
        .iter()
        .map(|(known, _)| *known)
        .filter(|known| !product.iter().any(|file| file.path == *known && !starts(file).is_empty()))
        .collect();
    assert!(idle.is_empty(), "these files start no program any more: {idle:?}");
}

/// Places where a task is started that nothing waits for: with no tracker, or with a handle that is dropped at once.
fn detached(file: &File) -> Vec<String> {
    const COMPLAINT: &str = "a task that nothing waits for: use a tracker, or keep its handle";
    let product = File { path: file.path.clone(), text: before_tests(&file.text).to_owned() };
    let spawned = complain(&product, |line| {
        let code = line.split("//").next().unwrap_or_default();
        (code.contains("tokio::spawn(") || code.contains("task::spawn(")).then_some(COMPLAINT)
    });
    let lines: Vec<&str> = product.text.lines().collect();
    let dropped = (0..lines.len())
        .filter(|index| drops_blocking(&lines, *index))
        .map(|index| format!("{}:{}: {COMPLAINT}", file.path, index + 1));
    spawned.into_iter().chain(dropped).collect()
}

/// Whether a statement that begins in this line is `spawn_blocking(…);` and no more.
fn drops_blocking(lines: &[&str], index: usize) -> bool {
    let line = lines[index];
    let code = line.trim_start().trim_start_matches("let _ = ").trim_start_matches("drop(");
    let code = code.trim_start_matches("tokio::").trim_start_matches("task::");
    if !code.starts_with("spawn_blocking(") {
        return false;
    }
    let before = lines[..index].iter().rev().find(|it| !it.trim_start().starts_with("//"));
    let begins = before.is_none_or(|it| it.trim().is_empty() || it.ends_with([';', '{', '}']));
    let indent = line.len() - line.trim_start().len();
    let is_end = |it: &&&str| it.len() - it.trim_start().len() == indent && !it.trim().is_empty();
    let is_whole = line.matches('(').count() == line.matches(')').count();
    let end = if is_whole { Some(&line) } else { lines[index + 1..].iter().find(is_end) };
    begins && end.is_some_and(|it| it.ends_with(");") && !it.contains(".await"))
}

fn trailing_space(file: &File) -> Vec<String> {
    complain(file, |line| line.ends_with([' ', '\t', '\r']).then_some("white space at the end"))
}

fn silenced(file: &File) -> Vec<String> {
    // Written in two halves, or this file would complain about itself.
    let forbidden = [
        (concat!("to", "do!("), "unfinished"),
        (concat!("unimple", "mented!("), "unfinished"),
        (concat!("#[ig", "nore"), "a test that never runs"),
        (concat!("#[al", "low("), "a silenced lint: use `expect` with a reason"),
        (concat!("#![al", "low("), "a silenced lint: use `expect` with a reason"),
    ];
    complain(file, |line| {
        forbidden.iter().find(|(text, _)| line.contains(text)).map(|(_, complaint)| *complaint)
    })
}

/// Places where a library asks for the environment, the home directory, the arguments or an end.
fn reaches_out(file: &File) -> Vec<String> {
    const FORBIDDEN: [&str; 9] = [
        "env::var(",
        "env::var_os(",
        "env::vars(",
        "env::vars_os(",
        "env::args",
        "env::home_dir",
        "env::current_dir",
        "env::temp_dir",
        "process::exit",
    ];
    let library = File { path: file.path.clone(), text: before_tests(&file.text).to_owned() };
    complain(&library, |line| {
        let code = line.split("//").next().unwrap_or_default();
        FORBIDDEN
            .iter()
            .any(|text| code.contains(text))
            .then_some("only the binary knows its surroundings: hand the value in")
    })
}

/// The sources of libraries and programs, without their tests.
pub(crate) fn product() -> Vec<File> {
    let mut sources = tree::sources();
    let tests: BTreeSet<String> = sources.iter().flat_map(test_modules).collect();
    sources.retain(|file| file.path.contains("/src/") && !is_below(&file.path, &tests));
    for file in &mut sources {
        file.text.truncate(before_tests(&file.text).len());
    }
    sources
}

pub(crate) fn complain(file: &File, check: impl Fn(&str) -> Option<&str>) -> Vec<String> {
    file.text
        .split('\n')
        .enumerate()
        .filter_map(|(index, line)| {
            check(line).map(|complaint| format!("{}:{}: {complaint}", file.path, index + 1))
        })
        .collect()
}

pub(crate) fn before_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests {").map_or(text, |start| &text[..start])
}

fn is_library_code(path: &str) -> bool {
    let is_program = ["crates/cli/", "crates/testkit/", "xtask/", "fuzz/"]
        .iter()
        .any(|beginning| path.starts_with(beginning));
    let is_other = ["/tests/", "/src/bin/", "/examples/"].iter().any(|part| path.contains(part));
    !is_program && !is_other
}

/// The modules that a file declares for tests only, as paths without `.rs`.
fn test_modules(file: &File) -> Vec<String> {
    let (directory, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
    let stem = name.trim_end_matches(".rs");
    let children = match stem {
        "lib" | "main" => directory.to_owned(),
        module => format!("{directory}/{module}"),
    };
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    lines
        .windows(2)
        .filter(|pair| pair[0] == "#[cfg(test)]")
        .filter_map(|pair| {
            let declared = pair[1].strip_suffix(';')?;
            let (_, module) = declared.rsplit_once("mod ")?;
            Some(format!("{children}/{module}"))
        })
        .collect()
}

fn is_below(path: &str, modules: &BTreeSet<String>) -> bool {
    let path = path.trim_end_matches(".rs");
    modules.iter().any(|module| path == module || path.starts_with(&format!("{module}/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn white_space_is_found_with_its_line() {
        let complaints = trailing_space(&file("a.rs", "//! a\nlet b; \n\tc\t\n"));
        assert_eq!(
            complaints,
            ["a.rs:2: white space at the end", "a.rs:3: white space at the end"]
        );
    }

    #[test]
    fn a_dropped_handle_is_found_and_an_awaited_one_is_not() {
        let dropped = "fn a() {\n    tokio::task::spawn_blocking(move || b());\n}\n";
        let long = "fn a() {\n    let b = 1;\n    tokio::task::spawn_blocking(move || {\n        b;\n    });\n}\n";
        let ignored = "fn a() {\n    let _ = tokio::task::spawn_blocking(b);\n}\n";
        for text in [dropped, long, ignored] {
            assert_eq!(detached(&file("a.rs", text)).len(), 1, "{text}");
        }
        let awaited = "fn a() {\n    let c =\n        spawn_blocking(b);\n    tokio::task::spawn_blocking(b).await;\n}\n";
        let returned = "fn a() -> JoinHandle<()> {\n    tokio::task::spawn_blocking(b)\n}\n";
        for text in [awaited, returned] {
            assert_eq!(detached(&file("a.rs", text)), [""; 0], "{text}");
        }
    }

    #[test]
    fn unfinished_code_is_found() {
        let text = format!("fn a() {{\n    {}o!()\n}}\n{}ore]\n", "tod", "#[ign");
        assert_eq!(silenced(&file("a.rs", &text)).len(), 2);
    }

    #[test]
    fn reaching_out_is_found_outside_tests_and_comments_only() {
        let text = "//! a\nlet a = std::env::var(\"HOME\");\n// std::env::var(\nstd::env::consts::OS;\n\
                    #[cfg(test)]\nmod tests {\nstd::env::var(\"X\");\n}\n";
        let complaints = reaches_out(&file("crates/a/src/lib.rs", text));
        assert_eq!(complaints.len(), 1, "{complaints:?}");
        assert!(complaints[0].starts_with("crates/a/src/lib.rs:2:"));
    }

    #[test]
    fn modules_for_tests_are_known_by_their_declaration() {
        let lib = file("crates/a/src/lib.rs", "#[cfg(test)]\npub(crate) mod testing;\nmod b;\n");
        let b = file("crates/a/src/b.rs", "#[cfg(test)]\nmod fixture;\n");
        let modules: BTreeSet<String> = [lib, b].iter().flat_map(test_modules).collect();
        for (path, expected) in [
            ("crates/a/src/testing.rs", true),
            ("crates/a/src/testing/more.rs", true),
            ("crates/a/src/b/fixture.rs", true),
            ("crates/a/src/b.rs", false),
            ("crates/a/src/testing_tool.rs", false),
        ] {
            assert_eq!(is_below(path, &modules), expected, "{path}");
        }
    }
}
