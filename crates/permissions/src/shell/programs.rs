//! Families of programs.

const SHELLS: [&str; 10] =
    ["ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "sh", "tcsh", "zsh"];

/// Programs that run a text as code.
const INTERPRETERS: [&str; 26] = [
    "awk",
    "bun",
    "deno",
    "ed",
    "elixir",
    "erl",
    "ex",
    "expect",
    "gawk",
    "gdb",
    "ghci",
    "irb",
    "julia",
    "lua",
    "m4",
    "mawk",
    "mysql",
    "node",
    "nodejs",
    "osascript",
    "perl",
    "php",
    "psql",
    "ruby",
    "sqlite3",
    "tclsh",
];

/// Programs that fetch or find a package and run it.
const PACKAGE_RUNNERS: [&str; 16] = [
    "bunx", "cargo", "devbox", "direnv", "docker", "go", "make", "mise", "npm", "npx", "pipx",
    "pnpm", "pnpx", "uv", "uvx", "yarn",
];

pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(program)
}

pub(crate) fn is_shell(program: &str) -> bool {
    SHELLS.contains(&program)
}

/// Whether the program runs what it reads, in whatever version: `python3.12` is `python`.
pub(crate) fn is_interpreter(program: &str) -> bool {
    let family = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    is_shell(program)
        || INTERPRETERS.contains(&program)
        || INTERPRETERS.contains(&family)
        || matches!(family, "python" | "pypy" | "ipython")
}

pub(crate) fn is_package_runner(program: &str) -> bool {
    PACKAGE_RUNNERS.contains(&program)
}
