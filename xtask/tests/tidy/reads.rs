//! Nothing gets into memory without a limit: whole files and streams are read by `bounded`, and every other
//! place is named here with what bounds it.

use crate::sources::{before_tests, complain, product};
use crate::tree::{self, File, assert_none};

/// Calls that read to an end that the other side decides on.
const UNBOUNDED: [&str; 15] = [
    "fs::read(",
    "fs::read_to_string(",
    ".read_to_end(",
    ".read_to_string(",
    ".read_line(",
    ".read_until(",
    ".next_line()",
    ".next_segment()",
    ".bytes().await",
    ".text().await",
    ".json().await",
    ".json::<",
    ".wait_with_output()",
    ".output()",
    ".split(b'\\n').take(",
];

/// Files that may, and what bounds them there.
const BOUNDED_OTHERWISE: [(&str, &str); 32] = [
    ("crates/protocol/src/bounded.rs", "the one place"),
    ("crates/cli/src/demo/", "files and programs of our own"),
    ("crates/cli/src/interactive/desk.rs", "`take`"),
    ("crates/cli/src/interactive/images.rs", "`take`"),
    ("crates/cli/src/plugin/git.rs", "a program of the user's, asked for one line"),
    ("crates/cli/src/stdin.rs", "`take`"),
    ("crates/cli/src/teammates/tmux.rs", "a program of the user's, asked for one line"),
    ("crates/config/src/agent_memory/text.rs", "`take`"),
    ("crates/config/src/files.rs", "`take`"),
    ("crates/config/src/scan.rs", "`take`"),
    ("crates/config/src/trust/programs.rs", "`take`"),
    ("crates/engine/src/delegate/summary.rs", "`take`"),
    ("crates/files/src/replace.rs", "the length that was read before"),
    ("crates/journal/src/glance.rs", "`take`"),
    ("crates/mcp/src/headers.rs", "`take`"),
    ("crates/sandbox/src/proxy/broker.rs", "files of the kernel"),
    ("crates/sandbox/src/support.rs", "a program of our own"),
    ("crates/tools/src/bound.rs", "`take`"),
    ("crates/tools/src/disk.rs", "`take`"),
    ("crates/tools/src/git.rs", "`take`"),
    ("crates/tools/src/guard/cgroup.rs", "files of the kernel"),
    ("crates/tools/src/guard/confinement.rs", "a file of our own"),
    ("crates/tools/src/guard/tree.rs", "files of the kernel"),
    ("crates/tools/src/host_files.rs", "`take`"),
    ("crates/tools/src/process.rs", "what our own guard reports"),
    ("crates/tools/src/read.rs", "`take`, and a stream of bounded lines behind it"),
    ("crates/tools/src/shell.rs", "the name of a file, no reading"),
    ("crates/tools/src/shell/guarded.rs", "what our own guard reports"),
    ("crates/tools/src/shell/output.rs", "`take`"),
    ("crates/tools/src/walk/ignored.rs", "`take`"),
    ("crates/tui/src/keeper.rs", "`take`"),
    ("crates/worktree/src/git.rs", "`take`"),
];

#[test]
fn nothing_is_read_without_a_limit() {
    let product = product();
    let programs = product.iter().filter(|file| is_program(&file.path));
    assert_none(&programs.flat_map(reads_without_limit).collect::<Vec<_>>());
}

#[test]
fn every_place_that_may_read_without_a_limit_does() {
    let sources = tree::sources();
    let reads = |known: &str| {
        let own = sources.iter().filter(|file| file.path.starts_with(known));
        own.flat_map(reads_without_limit).next().is_some()
    };
    let idle = BOUNDED_OTHERWISE.iter().filter(|(known, _)| !reads(known));
    assert_none(
        &idle.map(|(known, _)| format!("{known} reads nothing: remove it")).collect::<Vec<_>>(),
    );
}

fn is_program(path: &str) -> bool {
    path.starts_with("crates/")
        && path.contains("/src/")
        && !path.starts_with("crates/testkit/")
        && !BOUNDED_OTHERWISE.iter().any(|(known, _)| path.starts_with(known))
}

fn reads_without_limit(file: &File) -> Vec<String> {
    let code = File { path: file.path.clone(), text: before_tests(&file.text).to_owned() };
    complain(&code, |line| {
        let line = line.split("//").next().unwrap_or_default();
        UNBOUNDED.iter().any(|text| line.contains(text)).then_some(
            "reads without a limit: use `centurion_protocol::bounded`, or say what bounds it",
        )
    })
}

#[test]
fn reading_without_a_limit_is_found_outside_tests_and_comments_only() {
    let complaints = |text: &str| {
        reads_without_limit(&File { path: "crates/x/src/a.rs".to_owned(), text: text.to_owned() })
            .len()
    };
    assert_eq!(complaints("let a = fs::read(path)?;\nlet b = response.text().await?;\n"), 2);
    assert_eq!(complaints("// fs::read(path)\nlet text = last.text();\n"), 0);
    assert_eq!(complaints("#[cfg(test)]\nmod tests {\n    fs::read(path);\n}\n"), 0);
}
