//! Names with a special meaning: variables that programs obey, and builtins that change the meaning of later words.

use super::script::{Assignment, Command};

/// Builtins that change the meaning of later words, or that run text.
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

/// Variables that only change the output format of programs.
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

/// Variables that name programs, code or search paths of programs. With one of them set, a command may run a program
/// that its words do not name.
const STEERING: [&str; 175] = [
    "ANSIBLE_CONFIG",
    "ANT_ARGS",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "BASHOPTS",
    "BASH_ALIASES",
    "BASH_CMDS",
    "BASH_COMPAT",
    "BASH_ENV",
    "BASH_FUNC",
    "BASH_LOADABLES_PATH",
    "BASH_XTRACEFD",
    "BOTO_CONFIG",
    "BROWSER",
    "BUNDLE_GEMFILE",
    "CCACHE_COMPILER",
    "CCACHE_PREFIX",
    "CDPATH",
    "CLASSPATH",
    "CLOUDSDK_PYTHON",
    "CLOUDSDK_PYTHON_ARGS",
    "CMP",
    "COMPILER_PATH",
    "COMSPEC",
    "COREPACK_HOME",
    "CURL_HOME",
    "DIFF",
    "DISPLAY",
    "DOCKER_CONFIG",
    "EDITOR",
    "EMACS",
    "EMACSLOADPATH",
    "ENV",
    "ERL_AFLAGS",
    "ERL_FLAGS",
    "ERL_LIBS",
    "ERL_ZFLAGS",
    "EXECIGNORE",
    "EXINIT",
    "FCEDIT",
    "FIGNORE",
    "FPATH",
    "FUNCNEST",
    "GCC_EXEC_PREFIX",
    "GCONV_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GIO_EXTRA_MODULES",
    "GLIBC_TUNABLES",
    "GLOBIGNORE",
    "GNUMAKEFLAGS",
    "GNUPGHOME",
    "GOENV",
    "GOROOT",
    "GOTOOLDIR",
    "GRADLE_HOME",
    "GRADLE_USER_HOME",
    "GREP",
    "GREP_OPTIONS",
    "GROFF_BIN_PATH",
    "GROFF_COMMAND_PREFIX",
    "GROFF_TMAC_PATH",
    "GST_PLUGIN_PATH",
    "GTK_MODULES",
    "GTK_PATH",
    "GUILE_LOAD_PATH",
    "HARNESS_OPTIONS",
    "HARNESS_PERL",
    "HARNESS_PERL_SWITCHES",
    "HELM_PLUGINS",
    "HGRCPATH",
    "HISTFILE",
    "HOME",
    "IFS",
    "INPUTRC",
    "JAVACMD",
    "JAVA_HOME",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JULIA_DEPOT_PATH",
    "JULIA_LOAD_PATH",
    "KRB5_CONFIG",
    "KUBECONFIG",
    "LESS",
    "LESSCLOSE",
    "LESSKEY",
    "LESSKEYIN",
    "LESSOPEN",
    "LOCPATH",
    "LUA_CPATH",
    "LUA_INIT",
    "LUA_PATH",
    "M2_HOME",
    "MAGICK_CONFIGURE_PATH",
    "MAILPATH",
    "MAKEFILES",
    "MAKEFLAGS",
    "MANOPT",
    "MANPATH",
    "MANROFFOPT",
    "MAVEN_ARGS",
    "MAVEN_HOME",
    "MFLAGS",
    "MYSQL_HOME",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NVIM_APPNAME",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PATH",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PERL_MB_OPT",
    "PERL_MM_OPT",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PIPENV_PIPFILE",
    "PIP_CONFIG_FILE",
    "PIP_PYTHON",
    "POSIXLY_CORRECT",
    "PROMPT_COMMAND",
    "PSQLRC",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "PYTHONBREAKPOINT",
    "PYTHONEXECUTABLE",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "QT_PLUGIN_PATH",
    "RIPGREP_CONFIG_PATH",
    "RSYNC_CONNECT_PROG",
    "RSYNC_RSH",
    "RUBYLIB",
    "RUBYOPT",
    "RUBYPATH",
    "RUBYSHELL",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "RUSTUP_HOME",
    "R_HOME",
    "R_LIBS",
    "SCREENRC",
    "SHELL",
    "SHELLOPTS",
    "SVN_SSH",
    "SYSTEM_WGETRC",
    "TAR_OPTIONS",
    "TCLLIBPATH",
    "TEXMFCNF",
    "TF_CLI_CONFIG_FILE",
    "TMUX_TMPDIR",
    "UNZIP",
    "UNZIPOPT",
    "VALGRIND_LIB",
    "VIMINIT",
    "VIMRUNTIME",
    "VISUAL",
    "WGETRC",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "YARN_RC_FILENAME",
    "ZDOTDIR",
    "ZIP",
    "ZIPINFO",
    "ZIPINFOOPT",
    "ZIPOPT",
    "_JAVA_OPTIONS",
];

/// Variables that name a program for build tools. One plain word is examined as a command.
const BUILDERS: [&str; 26] = [
    "AR",
    "AS",
    "CC",
    "CO",
    "CPP",
    "CTANGLE",
    "CWEAVE",
    "CXX",
    "FC",
    "GET",
    "HOSTCC",
    "LD",
    "LEX",
    "LINT",
    "M2C",
    "MAKE",
    "MAKEINFO",
    "OBJC",
    "PC",
    "RM",
    "RUSTUP_TOOLCHAIN",
    "TANGLE",
    "TEX",
    "TEXI2DVI",
    "WEAVE",
    "YACC",
];

/// Texts in options for a compiler, a build tool or a virtual machine that make it run another program.
const RUNNING_FLAGS: [&str; 13] = [
    "-B", "-XX:On", "@", "agent", "exec", "init", "linker", "plugin", "settings", "specs",
    "use-ld", "vettool", "wrapper",
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

/// Whether an assignment before a program changes only its output format.
pub(crate) fn is_safe(assignment: &Assignment) -> bool {
    let plain =
        |value: &str| value.chars().all(|c| c.is_ascii_alphanumeric() || "_-.,:=+;@".contains(c));
    SAFE.contains(&assignment.name.as_str()) && assignment.value.as_deref().is_some_and(plain)
}

/// Whether setting the variable may make a command run a program that its words do not name.
pub(crate) fn is_obeyed(name: &str) -> bool {
    let name = name.split(['[', '=', '+']).next().unwrap_or(name);
    let starts = [
        "LD_",
        "DYLD_",
        "GIT_",
        "SSH_",
        "BASH_FUNC",
        "SUDO_",
        "npm_config_",
        "NPM_CONFIG_",
        "CARGO_",
        "LESSKEY",
        "LUA_INIT",
        "PERL5",
        "R_ENVIRON",
        "R_PROFILE",
        "TF_CLI_ARGS",
    ];
    let ends = [
        "PAGER",
        "EDITOR",
        "_COMMAND",
        "_WRAPPER",
        "_RUNNER",
        "_PROGRAM",
        "_ASKPASS",
        "_LINKER",
        "_RSH",
        "_RUSTFLAGS",
    ];
    let harmless = [
        "GIT_AUTHOR_",
        "GIT_COMMITTER_",
        "GIT_TERMINAL_PROMPT",
        "CARGO_TERM_",
        "CARGO_INCREMENTAL",
    ];
    (STEERING.contains(&name)
        || starts.iter().any(|start| name.starts_with(start))
        || ends.iter().any(|end| name.ends_with(end))
        || matches!(name, "PS0" | "PS1" | "PS2" | "PS3" | "PS4"))
        && !harmless.iter().any(|start| name.starts_with(start))
}

/// Whether setting the variable to this value may make a command run a program that its words do not name. `None` is an
/// unknown value.
pub(crate) fn steers(name: &str, value: Option<&str>) -> bool {
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_plain =
        |value: &str| value.chars().all(|c| c.is_ascii_alphanumeric() || "_-.+".contains(c));
    let runs = |value: &str| RUNNING_FLAGS.iter().any(|part| value.contains(part));
    let has_flags = ["FLAGS", "_OPTS", "_OPTIONS", "LDLIBS"].iter().any(|end| name.ends_with(end));
    is_obeyed(name)
        || BUILDERS.contains(&name) && !value.is_some_and(is_plain)
        || has_flags && value.is_some_and(|value| runs(value) || expands(value))
        || !is_private(name) && value.is_some_and(expands)
}

/// Whether a shell that runs the text would expand it.
fn expands(value: &str) -> bool {
    let is_expansion =
        |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || "_({'\"".contains(c));
    value.contains('`') || value.split('$').skip(1).any(is_expansion)
}

/// Variables whose value the shell computes on assignment: text for them is arithmetic.
const INTEGERS: [&str; 10] = [
    "BASHPID",
    "EPOCHREALTIME",
    "EPOCHSECONDS",
    "HISTCMD",
    "LINENO",
    "OPTIND",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SRANDOM",
];

/// Variables that the shell itself sets to any text.
const FILLED: [&str; 23] = [
    "0",
    "BASH_ARGV",
    "BASH_ARGV0",
    "BASH_COMMAND",
    "BASH_EXECUTION_STRING",
    "BASH_REMATCH",
    "BASH_SOURCE",
    "COMP_LINE",
    "COMP_WORDS",
    "COMPREPLY",
    "DIRSTACK",
    "FUNCNAME",
    "HISTFILE",
    "MAPFILE",
    "OLDPWD",
    "OPTARG",
    "PATH",
    "PS4",
    "PWD",
    "READLINE_LINE",
    "REPLY",
    "SHELLOPTS",
    "_",
];

/// Whether the shell computes the value of this variable on assignment.
pub(crate) fn is_integer(name: &str) -> bool {
    INTEGERS.contains(&name.split(['[', '=', '+']).next().unwrap_or(name))
}

/// Whether the shell itself sets this variable to any text.
pub(crate) fn is_filled(name: &str) -> bool {
    FILLED.contains(&name)
}

/// Whether only the command line itself reads a variable.
pub(crate) fn is_private(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !OBEYED.contains(&name)
}

/// Whether the command changes the meaning of later words, or runs its arguments as text.
pub(crate) fn changes_meaning(command: &Command) -> bool {
    let mut words = command.words.iter().filter_map(|word| word.value.as_deref());
    let mut program = words.next();
    while matches!(program, Some("command" | "builtin")) {
        program = words.find(|word| !word.starts_with('-'));
    }
    program.is_some_and(|program| MEANING_CHANGERS.contains(&program))
}
