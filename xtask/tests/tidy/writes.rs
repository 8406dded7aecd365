//! No file is written but by the few that write files, each named here with what keeps credentials out of it.

use crate::sources::{complain, product};
use crate::tree::{File, assert_none};

/// The calls that open a file for writing.
const WRITES: [&str; 9] = [
    "OpenOptions::new()",
    "File::options()",
    "File::create(",
    "File::create_new(",
    "fs::write(",
    "private::open(",
    "private::create(",
    "private::write(",
    "private::replace(",
];

/// Files that may, and what they write.
const WRITERS: [(&str, &str); 30] = [
    ("crates/redact/src/kept_file.rs", "what a session keeps, redacted"),
    ("crates/tools/src/shell/redacted.rs", "outputs of commands, redacted"),
    ("crates/journal/src/transcript_file.rs", "records, redacted"),
    ("crates/journal/src/output_file.rs", "what an agent does, redacted"),
    ("crates/model/src/cassette/record.rs", "recordings, redacted"),
    ("crates/cli/src/definitions/new_file.rs", "a definition that the user asked for"),
    ("crates/cli/src/demo", "files of our own"),
    ("crates/cli/src/interactive/desk.rs", "the beginning of a `keybindings.json`"),
    ("crates/cli/src/interactive/files.rs", "drafts and prompts, for their user alone"),
    ("crates/cli/src/log.rs", "the log of --debug-file, redacted"),
    ("crates/cli/src/retention.rs", "locks"),
    ("crates/config/src/agent_memory.rs", "what an agent is asked to remember"),
    ("crates/config/src/files.rs", "settings, as the user has them"),
    (
        "crates/config/src/scan/kept.rs",
        "names and descriptions of skills, as their files have them, for their user alone",
    ),
    ("crates/files/src/private.rs", "what its callers say, which are named here"),
    ("crates/files/src/replace.rs", "files of the user's, for the tools"),
    ("crates/mcp/src/bytes.rs", "bytes of servers that are no text; text is redacted"),
    ("crates/mcp/src/auth/store.rs", "locks, and tokens of servers, which are credentials"),
    ("crates/sandbox/src/devices.rs", "empty files"),
    ("crates/sandbox/src/mounts.rs", "empty files"),
    ("crates/sandbox/src/placeholders.rs", "empty files"),
    (
        "crates/tools/src/checkpoints.rs",
        "copies of the user's files, which come back byte for byte",
    ),
    (
        "crates/team/src",
        "tasks, whose texts are redacted before they are changes, and views of mail, redacted",
    ),
    ("crates/tools/src/disk.rs", "no text: files are opened to be read or emptied"),
    ("crates/tools/src/guard/", "files of the kernel"),
    ("crates/tools/src/shell/files.rs", "scratch files of one command, removed with it"),
    ("crates/worktree/src", "what git keeps of worktrees, and what we know of them"),
    ("crates/tools/src/odd_paths.rs", "tests"),
    ("crates/tools/src/races.rs", "tests"),
    ("crates/tui/src/draft/kept.rs", "drafts, as their user typed them, for their user alone"),
];

/// Files that may make directories with a mode.
const DIRECTORY_MAKERS: [(&str, &str); 2] = [
    ("crates/files/src/private.rs", "directories for their owner alone"),
    (
        "crates/sandbox/src/placeholders.rs",
        "directories that stand for missing ones, readable to all",
    ),
];

#[test]
fn private_directories_are_made_in_one_place() {
    let product = product();
    let others =
        product.iter().filter(|file| !DIRECTORY_MAKERS.iter().any(|(path, _)| file.path == *path));
    let complaints: Vec<String> = others
        .flat_map(|file| {
            complain(file, |line| {
                let code = line.split("//").next().unwrap_or_default();
                code.contains("DirBuilder").then_some("use `centurion_files::private`")
            })
        })
        .collect();
    assert_none(&complaints);
}

#[test]
fn what_a_session_keeps_is_written_by_those_who_redact() {
    let product = product();
    let programs = product.iter().filter(|file| is_program(&file.path));
    assert_none(&programs.flat_map(writes).collect::<Vec<_>>());
}

fn is_program(path: &str) -> bool {
    path.starts_with("crates/")
        && path.contains("/src/")
        && !path.starts_with("crates/testkit/")
        && !WRITERS.iter().any(|(known, _)| path.starts_with(known))
}

fn writes(file: &File) -> Vec<String> {
    complain(file, |line| {
        let line = line.split("//").next().unwrap_or_default();
        WRITES.iter().any(|text| line.contains(text)).then_some(
            "opens a file for writing: use `centurion_redact::keep`, or say what it writes",
        )
    })
}
