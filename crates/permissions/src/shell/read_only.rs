//! Commands that change nothing and reach nothing outside the working directories and the places that
//! are open to reading.
//!
//! A program is here only if no argument makes it write, run something or talk to another machine,
//! or if those arguments are known and refused. Following links while walking a tree is refused, too:
//! nobody can say where that leads.

use std::path::Path;

use super::git;
use super::names;
use super::script::Command;
use super::sed;
use super::wrappers::{Move, moves_shell, unwrapped};
use crate::paths::join;
use crate::scene::Scene;

/// Programs that print what they are told or know, and open no file.
const TALKERS: [&str; 19] = [
    ":", "arch", "basename", "dirname", "echo", "false", "id", "nproc", "printf", "pwd", "seq",
    "sleep", "tr", "true", "tty", "type", "uname", "which", "whoami",
];

/// Programs that only read, whatever their arguments.
const READERS: [&str; 20] = [
    "cat", "cmp", "column", "comm", "cut", "df", "expand", "fold", "head", "join", "nl", "od",
    "paste", "readlink", "realpath", "rev", "stat", "tac", "tail", "unexpand",
];

/// Whether the command needs no permission: read-only, run in a working directory, reading only what
/// is open to reading, and not past a rule that guards what is read. Its redirections are judged apart.
pub(crate) fn is_free(command: &Command, scene: Scene<'_>) -> bool {
    if !command.assignments.iter().all(|assignment| {
        names::is_safe(assignment)
            || (command.words.is_empty() && names::is_private(&assignment.name))
    }) {
        return false;
    }
    let inner = unwrapped(&command.words);
    let words: Option<Vec<&str>> = inner.iter().map(|word| word.value.as_deref()).collect();
    let Some(words) = words else { return false };
    let Some((program, arguments)) = words.split_first() else { return true };
    if TALKERS.contains(program) {
        return !(*program == "printf"
            && arguments.first().is_some_and(|word| word.starts_with("-v")));
    }
    if *program == "hostname" {
        return arguments.is_empty();
    }
    let places = command.places.known();
    if places.is_empty() {
        return false;
    }
    if *program == "cd" {
        let Move::To(target) = moves_shell(command, scene.policy.home.as_deref()) else {
            return false;
        };
        return places.iter().all(|place| scene.is_inside(&place.join(&target)));
    }
    is_harmless(program, arguments)
        && (*program != "git" || git::is_ours(places, scene))
        && places.iter().all(|place| {
            scene.is_inside(place) && arguments.iter().all(|word| stays_open(word, place, scene))
        })
        && !(reads_whole_trees(program, arguments) && scene.policy.guards_files())
}

/// Whether no argument makes this program do more than read.
fn is_harmless(program: &str, arguments: &[&str]) -> bool {
    match program {
        "date" => date(arguments),
        "diff" => refuses(arguments, &["--paginate", "--recursive"], &["l", "r"]),
        "du" => refuses(
            arguments,
            &["--dereference", "--dereference-args", "--files0-from"],
            &["L", "D", "H"],
        ),
        "file" => refuses(
            arguments,
            &["--compile", "--files-from", "--magic-file", "--uncompress", "--uncompress-noreport"],
            &["C", "f", "m", "z", "Z"],
        ),
        "find" => !find_acts_on(arguments) && !find_follows(arguments),
        "git" => git::reads(arguments),
        "grep" => refuses(arguments, &["--dereference-recursive"], &["R"]),
        "jq" => jq(arguments),
        "ls" => refuses(arguments, &["--dereference"], &["L"]),
        "md5sum" | "sha1sum" | "sha256sum" | "sha512sum" => {
            refuses(arguments, &["--check"], &["c"])
        }
        "rg" => refuses(
            arguments,
            &["--pre", "--search-zip", "--hostname-bin", "--follow"],
            &["z", "L"],
        ),
        "sed" => sed::reads(arguments),
        "sort" => refuses(
            arguments,
            &["--output", "--compress-program", "--temporary-directory", "--files0-from"],
            &["o", "T"],
        ),
        "test" | "[" => !arguments.iter().any(|word| matches!(*word, "-v" | "-R")),
        "tree" => refuses(arguments, &["--output", "--fromfile"], &["o", "R", "l"]),
        // Files named in a file may be anywhere.
        "wc" => refuses(arguments, &["--files0-from"], &[]),
        // The second operand is a file to write.
        "uniq" => arguments.iter().filter(|word| !word.starts_with('-')).count() <= 1,
        reader => READERS.contains(&reader),
    }
}

/// Whether a word, read as a path or as an option with a path in it, stays where reading is open.
fn stays_open(word: &str, place: &Path, scene: Scene<'_>) -> bool {
    // Without any text it is the place itself, which is inside.
    let is_open = |path: &str| path.is_empty() || scene.is_open_to_reading(&join(place, path));
    if !word.starts_with('-') {
        return is_open(word);
    }
    // Where an option's value begins is the program's business: look at every place it may.
    let value = word.split_once('=').map_or("", |(_, value)| value);
    let attached: String = word.chars().skip(2).collect();
    let rooted = word.find('/').and_then(|start| word.get(start..));
    let climbs = word.split('/').any(|segment| segment.ends_with(".."));
    is_open(value)
        && (word.starts_with("--") || is_open(&attached))
        && !climbs
        && rooted.is_none_or(|path| word_is_relative(word) || is_open(path))
}

/// Whether the first slash of an option stands inside a relative path, as in `--include=src/a`.
fn word_is_relative(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, value)| !name.contains('/') && !value.starts_with('/'))
}

/// Whether the program prints what is in files that its arguments do not name.
fn reads_whole_trees(program: &str, arguments: &[&str]) -> bool {
    match program {
        "rg" => true,
        "git" => arguments.iter().any(|word| matches!(*word, "diff" | "show" | "log" | "stash")),
        "grep" => !refuses(arguments, &["--recursive", "--directories"], &["r", "d"]),
        _ => false,
    }
}

/// Whether none of these options is given. Long options count when cut short, as programs read them
/// so; a short one counts anywhere in a bundle.
pub(super) fn refuses(arguments: &[&str], long: &[&str], short: &[&str]) -> bool {
    arguments.iter().all(|word| {
        if word.starts_with("--") {
            let name = word.split('=').next().unwrap_or(word);
            name == "--" || !long.iter().any(|option| option.starts_with(name))
        } else if let Some(bundle) = word.strip_prefix('-') {
            !short.iter().any(|option| bundle.contains(option))
        } else {
            true
        }
    })
}

/// `date` sets the clock with `-s` or a bare argument, and prints files with `-f`.
fn date(arguments: &[&str]) -> bool {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "-u" | "--utc" | "-R" | "--rfc-email" | "-I" => {}
            "-d" => {
                if words.next().is_none() {
                    return false;
                }
            }
            other => {
                let prints = ["+", "-I", "--iso-8601", "--rfc-3339=", "--date="];
                if !prints.iter().any(|start| other.starts_with(start)) {
                    return false;
                }
            }
        }
    }
    true
}

/// `jq` can print the environment and load modules.
fn jq(arguments: &[&str]) -> bool {
    let reaches = ["env", "ENV", "import", "include", "getpath(\"/", "input_filename", "debug"];
    refuses(arguments, &["--from-file", "--library-path", "--run-tests"], &["f", "L"])
        && !arguments.iter().any(|word| reaches.iter().any(|part| word.contains(part)))
}

/// Whether this is a `find` that runs, deletes or writes.
pub(super) fn find_acts(words: &[&str]) -> bool {
    words
        .split_first()
        .is_some_and(|(program, arguments)| *program == "find" && find_acts_on(arguments))
}

fn find_acts_on(arguments: &[&str]) -> bool {
    arguments.iter().any(|word| {
        matches!(*word, "-exec" | "-execdir" | "-ok" | "-okdir" | "-delete" | "-fls")
            || word.starts_with("-fprint")
    })
}

fn find_follows(arguments: &[&str]) -> bool {
    arguments.iter().any(|word| matches!(*word, "-L" | "-H" | "-follow" | "-files0-from"))
}
