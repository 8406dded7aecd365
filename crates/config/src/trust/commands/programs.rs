//! Programs that commands name, and what they do with their arguments.

use super::{UNKNOWN, is_assignment};

/// Words that stand before a command.
pub(super) const KEYWORDS: [&str; 10] =
    ["if", "then", "elif", "else", "while", "until", "do", "!", "time", "{"];

/// Commands that compare what they are given.
pub(super) const TESTS: [&str; 3] = ["[", "[[", "test"];

/// Builtin commands of a shell that run nothing.
pub(super) const BUILTINS: [&str; 6] = [":", "cd", "exit", "read", "return", "shift"];

/// Commands that run what they are given.
pub(super) const RUNNERS: [&str; 14] = [
    "alias", "builtin", "chroot", "command", "doas", "env", "nice", "nohup", "parallel", "setsid",
    "sudo", "timeout", "trap", "watch",
];

/// Commands that only read what they are given, unless something else runs what they print.
pub(super) const READERS: [&str; 19] = [
    "basename", "cat", "cmp", "diff", "dirname", "echo", "false", "grep", "head", "jq", "ls",
    "mkdir", "printf", "rg", "stat", "tail", "touch", "true", "wc",
];

/// Commands that read the file they are given and carry it out.
pub(super) const INTERPRETERS: [&str; 26] = [
    ".",
    "ash",
    "bash",
    "bun",
    "dash",
    "deno",
    "eval",
    "exec",
    "fish",
    "ksh",
    "lua",
    "node",
    "nodejs",
    "perl",
    "php",
    "pwsh",
    "python",
    "Rscript",
    "ruby",
    "run-parts",
    "sh",
    "source",
    "ts-node",
    "tsx",
    "xargs",
    "zsh",
];

/// The endings that an interpreter adds to the name of a script.
pub(super) const ENDINGS: [&str; 11] = [
    ".js",
    ".cjs",
    ".mjs",
    ".json",
    ".ts",
    "/index.js",
    "/index.cjs",
    "/index.mjs",
    "/index.ts",
    "/package.json",
    "/__main__.py",
];

/// The words before a command, and its own.
pub(super) fn without_prefix(texts: &[String]) -> (&[String], &[String]) {
    let is_before = |text: &&String| KEYWORDS.contains(&text.as_str()) || is_assignment(text);
    texts.split_at(texts.iter().take_while(is_before).count())
}

pub(super) fn name_of(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether a command runs what a variable or another command holds.
pub(super) fn runs_variable(texts: &[String]) -> bool {
    let (_, words) = without_prefix(texts);
    let Some((program, arguments)) = words.split_first() else { return false };
    let is_unknown = |word: &String| word.starts_with(UNKNOWN);
    is_unknown(program) || RUNNERS.contains(&name_of(program)) && arguments.iter().any(is_unknown)
}

/// Whether a command runs nothing, whatever it is given.
pub(super) fn is_harmless(texts: &[String]) -> bool {
    let (_, words) = without_prefix(texts);
    let Some(program) = words.first() else { return true };
    let name = program.as_str();
    only_reads(words)
        || TESTS.contains(&name)
        || BUILTINS.contains(&name)
        || matches!(name, "case" | "done" | "esac" | "fi" | "for" | "in" | "}")
}

/// Whether a command only reads what it is given. `rg` may be told to run something for it.
pub(super) fn only_reads(words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let usual = ["/usr/bin/", "/bin/"].iter().find_map(|place| program.strip_prefix(place));
    let name = usual.unwrap_or(program);
    let is_helper = |word: &String| {
        ["--pre", "--host"].iter().any(|it| word.starts_with(it)) || word.starts_with(UNKNOWN)
    };
    READERS.contains(&name) && !(name == "rg" && arguments.iter().any(is_helper))
}

pub(super) fn is_interpreter(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    // `python3.12` is one as well.
    let bare = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&bare)
}
