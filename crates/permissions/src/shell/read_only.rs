//! Commands that change nothing and reach nothing outside the working directories and the places that
//! are open to reading.
//!
//! A program is here only if no argument makes it write, run something or talk to another machine,
//! or if those arguments are known and refused.

use std::path::Path;

use super::words::simple_command;
use crate::paths::is_inside;
use crate::policy::Policy;
use crate::rule::Specifier;

/// Programs that print what they are told or know, and open no file.
const TALKERS: [&str; 8] =
    ["basename", "dirname", "echo", "pwd", "true", "uname", "which", "whoami"];

/// Programs that only read, whatever their arguments.
const READERS: [&str; 10] =
    ["cat", "df", "du", "head", "ls", "realpath", "stat", "tail", "test", "wc"];

/// Whether the command needs no permission: simple, read-only, run in a working directory, reading only
/// what is open to reading, and not past a rule that guards what is read.
pub(crate) fn is_read_only(command: &str, policy: &Policy) -> bool {
    let Some(words) = simple_command(command) else { return false };
    let Some((program, arguments)) = words.split_first() else { return false };
    let program = program.as_str();
    if TALKERS.contains(&program) {
        return true;
    }
    let harmless = match program {
        "date" => date(arguments),
        "diff" => refuses(arguments, &["--paginate"], &["l"]),
        "file" => refuses(
            arguments,
            &["--compile", "--files-from", "--magic-file", "--uncompress", "--uncompress-noreport"],
            &["C", "f", "m", "z", "Z"],
        ),
        "find" => !find_acts(&words),
        "git" => git(arguments),
        "grep" => true,
        "rg" => refuses(arguments, &["--pre", "--search-zip", "--hostname-bin"], &["z"]),
        "tree" => refuses(arguments, &["--output", "--fromfile"], &["o", "R"]),
        reader => READERS.contains(&reader),
    };
    harmless
        && is_inside(&policy.cwd, &policy.directories)
        && arguments.iter().all(|word| stays_open(word, policy))
        && !(reads_whole_trees(program, arguments) && guards_files(policy))
}

/// Whether a word, read as a path or as an option with a path in it, stays where reading is open.
fn stays_open(word: &str, policy: &Policy) -> bool {
    let is_open = |path: &str| policy.is_open_to_reading(&policy.cwd.join(Path::new(path)));
    if !word.starts_with('-') {
        return is_open(word);
    }
    // Where an option's value begins is the program's business: look at every place it may.
    let value = word.split_once('=').map_or("", |(_, value)| value);
    let rooted = word.find('/').and_then(|start| word.get(start..));
    let climbs = word.split('/').any(|segment| segment.ends_with(".."));
    is_open(value) && !climbs && rooted.is_none_or(|path| word_is_relative(word) || is_open(path))
}

/// Whether the first slash of an option stands inside a relative path, as in `--include=src/a`.
fn word_is_relative(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, value)| !name.contains('/') && !value.starts_with('/'))
}

/// Whether some deny or ask rule guards certain paths: a search through a tree could pass it.
fn guards_files(policy: &Policy) -> bool {
    policy.deny.iter().chain(&policy.ask).any(|rule| {
        matches!(rule.specifier, Specifier::Path(_)) && rule.tool.name() == Some("Read")
    })
}

/// Whether the program prints what is in files that its arguments do not name.
fn reads_whole_trees(program: &str, arguments: &[String]) -> bool {
    match program {
        "rg" => true,
        "git" => arguments
            .first()
            .is_some_and(|sub| matches!(sub.as_str(), "diff" | "show" | "log" | "stash")),
        "grep" | "diff" => !refuses(
            arguments,
            &["--recursive", "--dereference-recursive", "--directories"],
            &["r", "R", "d"],
        ),
        _ => false,
    }
}

/// Whether none of these options is given. Long options count when cut short, as programs read them
/// so; a short one counts anywhere in a bundle.
fn refuses(arguments: &[String], long: &[&str], short: &[&str]) -> bool {
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
fn date(arguments: &[String]) -> bool {
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        match word {
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

/// Whether this is a `find` that runs, deletes or writes.
pub(super) fn find_acts(words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    program == "find"
        && arguments.iter().any(|word| {
            matches!(word.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir" | "-delete" | "-fls")
                || word.starts_with("-fprint")
        })
}

/// Read-only forms of `git`. Options before the subcommand may load another configuration, and a
/// configuration can name programs to run.
fn git(arguments: &[String]) -> bool {
    const LONG: [&str; 7] = [
        "--exec-path",
        "--ext-diff",
        "--open-files-in-pager",
        "--output",
        "--textconv",
        "--upload-pack",
        "--filters",
    ];
    let arguments = match arguments.split_first() {
        Some((first, rest)) if first == "--no-pager" => rest,
        _ => arguments,
    };
    let Some((subcommand, rest)) = arguments.split_first() else { return false };
    let dangerous = !refuses(rest, &LONG, &[])
        || rest.iter().any(|word| word.starts_with("-c") || word.starts_with("-o"));
    if dangerous {
        return false;
    }
    match subcommand.as_str() {
        "status" | "log" | "diff" | "show" | "rev-parse" | "ls-files" | "blame" | "describe" => {
            true
        }
        "branch" => lists(rest, &["-a", "-r", "-v", "-vv", "--all", "--remotes", "--show-current"]),
        "tag" => lists(rest, &[]),
        "remote" => rest.iter().all(|word| word == "-v" || word == "--verbose"),
        "stash" => rest.first().is_some_and(|word| word == "list"),
        _ => false,
    }
}

/// Whether `git branch` or `git tag` only lists: every option is known to, and a bare argument, which
/// would otherwise name something to create, stands beside one that makes it a pattern.
fn lists(arguments: &[String], more: &[&str]) -> bool {
    const FILTERS: [&str; 5] = ["--list", "--contains", "--merged", "--no-merged", "--points-at"];
    const SHAPES: [&str; 4] = ["--sort=", "--format=", "--color", "--no-color"];
    let name = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
    let filters = arguments.iter().any(|word| FILTERS.contains(&name(word).as_str()));
    arguments.iter().all(|word| {
        if !word.starts_with('-') {
            return filters;
        }
        FILTERS.contains(&name(word).as_str())
            || SHAPES.iter().any(|shape| word.starts_with(shape))
            || more.contains(&word.as_str())
    })
}
