//! Read-only commands: they change nothing, open nothing outside, start no other program.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use centurion_permissions::Mode;

use crate::lines::{effort, lines, options};
use crate::scratch::{DENIED, OUTSIDE, Scratch, Watch, is_allowed, program_path};

/// The programs with free calls, except `git`, `cd` and builtins of the shell.
const READERS: [&str; 55] = [
    "arch",
    "basename",
    "cat",
    "cmp",
    "column",
    "comm",
    "cut",
    "date",
    "df",
    "diff",
    "dirname",
    "du",
    "echo",
    "expand",
    "false",
    "file",
    "find",
    "fold",
    "grep",
    "head",
    "hostname",
    "id",
    "join",
    "jq",
    "ls",
    "md5sum",
    "nl",
    "nproc",
    "od",
    "paste",
    "printf",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "rg",
    "sed",
    "seq",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "sort",
    "stat",
    "tac",
    "tail",
    "test",
    "tr",
    "tree",
    "true",
    "tty",
    "uname",
    "unexpand",
    "uniq",
    "wc",
    "whoami",
];

/// Words with a meaning for one program only.
fn vocabulary(program: &str) -> &'static [&'static str] {
    match program {
        "sed" => &[
            "p",
            "1,2p",
            "s/a/b/",
            "s/a/b/g",
            "s/a/b/w",
            "s/a/b/e",
            "w",
            "wout",
            "r",
            "rout-file",
            "e",
            "1e",
            "Rout-file",
            "/a/p",
            "/a/e",
            "$d",
            "q",
            "s,a,b,p",
            "y/a/b/",
            "=",
            "F",
        ],
        "jq" => &[
            ".",
            ".a",
            "env",
            "$ENV",
            ".a[0]",
            "input",
            "inputs",
            "import",
            "input_filename",
            "keys",
        ],
        "find" => &[
            "-name",
            "c.txt",
            "-exec",
            "{}",
            "+",
            "-newer",
            "-fprint",
            "made",
            "-type",
            "f",
            "-o",
            "!",
            "-printf",
            "%p",
            "-L",
            "-follow",
            "-samefile",
            "-delete",
        ],
        "grep" | "rg" => &["alpha", "CANARY", "C"],
        "test" => &["-f", "-e", "-nt", "=", "!", "-a"],
        "tr" => &["a", "b"],
        "seq" => &["3"],
        _ => &[],
    }
}

/// The first forbidden effect of a line.
fn misdeed(scratch: &Scratch, line: &str, denies: bool, watches: &Watches) -> Option<String> {
    let before = scratch.state();
    watches.outside.was_opened();
    watches.denied.was_opened();
    let words: Vec<&str> = line.split(' ').collect();
    let output = scratch.run(&words);
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if let Some(started) = scratch.started() {
        return Some(format!("started {started}"));
    }
    if watches.outside.was_opened() || text.contains(OUTSIDE) {
        return Some(format!("read outside: {text}"));
    }
    if denies && (watches.denied.was_opened() || text.contains(DENIED)) {
        return Some(format!("read what is denied: {text}"));
    }
    let after = scratch.state();
    (before != after).then(|| format!("changed something: {text}"))
}

/// Whether an option makes `tail` wait for more.
fn only_waits(word: &str) -> bool {
    let long = word.strip_prefix("--");
    let is_long = long.is_some_and(|it| it.starts_with('f') || it.starts_with("re"));
    is_long || (long.is_none() && word.starts_with(['-', '+']) && word.contains(['f', 'F']))
}

struct Watches {
    outside: Watch,
    denied: Watch,
}

impl Watches {
    fn new(scratch: &Scratch) -> Self {
        let paths = |names: &[&str]| -> Vec<PathBuf> {
            names.iter().map(|name| scratch.root.join(name)).collect()
        };
        let outside = ["outside", "outside/secret.txt", "outside/a.txt", "outside/c.txt", "home"];
        Self {
            outside: Watch::new(&paths(&outside)),
            denied: Watch::new(&paths(&["work/secret.env", "work/dir2/secret.env"])),
        }
    }
}

/// Free commands only read, and only readable files.
#[test]
fn free_commands_only_read_what_is_open() {
    let scratch = Scratch::new();
    let watches = Watches::new(&scratch);
    let open = scratch.policy(Mode::Default, false);
    let guarded = scratch.policy(Mode::Default, true);
    let mut wrong = Vec::new();
    let mut ran = 0;
    let missing: Vec<&str> =
        READERS.into_iter().filter(|name| program_path(name).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?} are missing: `cargo xtask needs` installs them");
    for program in READERS {
        let help = if program == "find" { "-help" } else { "--help" };
        let options = options(program, &[help]);
        let lines = lines(program, &options, vocabulary(program), 200 * effort());
        let mut left = 60 * effort();
        for (index, line) in lines.iter().enumerate() {
            let denies = index % 2 == 0;
            let waits = program == "tail" && line.split(' ').any(only_waits);
            let policy = if denies { &guarded } else { &open };
            if waits || left == 0 || !is_allowed(policy, line) {
                continue;
            }
            left -= 1;
            ran += 1;
            if let Some(misdeed) = misdeed(&scratch, line, denies, &watches) {
                wrong.push(format!("{line}: {misdeed}"));
                _ = fs::remove_file(scratch.trace());
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {ran} are not harmless:\n{}", wrong.len(), wrong.join("\n"));
    assert!(ran > 1_000, "only {ran} commands ran: the test proves little");
}

/// Every other installed program asks.
#[test]
fn no_program_is_free_that_no_table_lists() {
    let scratch = Scratch::new();
    let policy = scratch.policy(Mode::Default, false);
    let mut names = BTreeSet::new();
    for directory in ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"] {
        for entry in fs::read_dir(directory).into_iter().flatten() {
            names.insert(entry.unwrap().file_name().to_string_lossy().into_owned());
        }
    }
    let listed =
        |name: &str| READERS.contains(&name) || matches!(name, "[" | "sleep" | "time" | "which");
    let free: Vec<&String> = names
        .iter()
        .filter(|name| !listed(name))
        .filter(|name| {
            ["", " a.txt", " -l", " --version", " a.txt b.txt"]
                .iter()
                .any(|rest| is_allowed(&policy, &format!("{name}{rest}")))
        })
        .collect();
    assert!(free.is_empty(), "{free:?}");
    assert!(names.len() > 100, "only {} programs", names.len());
}
