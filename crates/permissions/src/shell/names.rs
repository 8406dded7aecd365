//! Names with a meaning of their own: variables that programs obey, and builtins that change what
//! later words mean.

use super::script::{Assignment, Command};

/// Builtins after which words no longer mean what they say, or that run text.
const MEANING_CHANGERS: [&str; 27] = [
    ".",
    "alias",
    "bind",
    "compgen",
    "complete",
    "coproc",
    "declare",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "getopts",
    "hash",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "source",
    "trap",
    "typeset",
    "unalias",
    "unset",
];

/// Variables that change how programs print and nothing else.
const SAFE: [&str; 28] = [
    "BLOCKSIZE",
    "BLOCK_SIZE",
    "CARGO_TERM_COLOR",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "GCC_COLORS",
    "GOARCH",
    "GOOS",
    "GREP_COLORS",
    "LANG",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_NUMERIC",
    "LC_TIME",
    "LINES",
    "LS_COLORS",
    "NODE_ENV",
    "NO_COLOR",
    "PYTHONUNBUFFERED",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "TZ",
];

/// Lower-case names that shells or programs obey.
const OBEYED: [&str; 21] = [
    "all_proxy",
    "argv",
    "cdpath",
    "fignore",
    "fpath",
    "ftp_proxy",
    "histchars",
    "home",
    "http_proxy",
    "https_proxy",
    "mailpath",
    "manpath",
    "module_path",
    "no_proxy",
    "path",
    "prompt",
    "psvar",
    "status",
    "term",
    "watch",
    "zsh_eval_context",
];

/// Whether an assignment before a program changes nothing but what it prints.
pub(crate) fn is_safe(assignment: &Assignment) -> bool {
    let plain =
        |value: &str| value.chars().all(|c| c.is_ascii_alphanumeric() || "_-.,:=+;@".contains(c));
    SAFE.contains(&assignment.name.as_str()) && assignment.value.as_deref().is_some_and(plain)
}

/// Whether a variable is one that only the command line itself reads.
pub(crate) fn is_private(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !OBEYED.contains(&name)
}

/// Whether the command makes later words mean something else, or runs its arguments as text.
pub(crate) fn changes_meaning(command: &Command) -> bool {
    let mut words = command.words.iter().filter_map(|word| word.value.as_deref());
    let mut program = words.next();
    while matches!(program, Some("command" | "builtin")) {
        program = words.find(|word| !word.starts_with('-'));
    }
    program.is_some_and(|program| MEANING_CHANGERS.contains(&program))
}
