//! File commands: which of them `acceptEdits` runs, and what they would write.

use std::path::{Path, PathBuf};

use super::names;
use super::programs::base_name;
use super::read_only::refuses;
use super::removal::is_critical;
use super::script::Command;
use super::sed;
use super::wrappers::unwrapped;
use crate::paths::normalize;
use crate::scene::Scene;

/// Files that take everything and keep nothing.
const SINKS: [&str; 5] = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2"];

pub(crate) fn is_sink(target: &str) -> bool {
    SINKS.contains(&target)
}

/// Whether the command only makes, moves, copies, changes or removes files inside the working
/// directories, none of them protected, by their names and by where they lead.
pub(crate) fn edits_inside(command: &Command, scene: Scene<'_>) -> bool {
    if !command.assignments.iter().all(names::is_safe) {
        return false;
    }
    let inner = unwrapped(&command.words);
    let words: Option<Vec<&str>> = inner.iter().map(|word| word.value.as_deref()).collect();
    let Some(words) = words else { return false };
    let Some((program, arguments)) = words.split_first() else { return false };
    let operands: Vec<&str> = if *program == "sed" {
        match sed::edits(arguments) {
            Some(files) => files,
            None => return false,
        }
    } else {
        // An option that may hold a path could hide where the command writes.
        let hides = |word: &&&str| word.starts_with('-') && word.contains(['/', '.']);
        if arguments.iter().any(|word| hides(&word)) || !copies_plainly(program, arguments) {
            return false;
        }
        arguments.iter().copied().filter(|word| !word.starts_with('-')).collect()
    };
    let places = command.places.known();
    !operands.is_empty()
        && !places.is_empty()
        && places.iter().all(|place| touches_only_inside(program, &operands, place, scene))
}

/// Whether `cp` copies files as files: links that it makes, or follows, lead elsewhere.
fn copies_plainly(program: &str, arguments: &[&str]) -> bool {
    program != "cp"
        || refuses(
            arguments,
            &["--dereference", "--symbolic-link", "--link"],
            &["L", "H", "s", "l"],
        )
}

fn touches_only_inside(program: &str, operands: &[&str], place: &Path, scene: Scene<'_>) -> bool {
    let paths: Vec<PathBuf> = operands.iter().map(|word| place.join(word)).collect();
    let fine = |path: &PathBuf| scene.is_inside(path) && !scene.is_protected(path);
    if !paths.iter().chain(&landings(program, &paths)).all(fine) {
        return false;
    }
    let lost = match program {
        "mkdir" | "touch" | "cp" | "sed" => &[],
        "rm" | "rmdir" => paths.as_slice(),
        // The last operand is where things go.
        "mv" => paths.split_last().map_or(&[][..], |(_, moved)| moved),
        _ => return false,
    };
    !lost.iter().any(|path| is_critical(&normalize(path), scene.policy))
}

/// The files that come to be if the last operand of a copy or a move is a directory.
fn landings(program: &str, paths: &[PathBuf]) -> Vec<PathBuf> {
    match (program, paths.split_last()) {
        ("cp" | "mv", Some((into, moved))) => {
            moved.iter().filter_map(|path| Some(into.join(normalize(path).file_name()?))).collect()
        }
        _ => Vec::new(),
    }
}

/// A protected path that the command would plainly write.
pub(crate) fn protected_write(command: &Command, scene: Scene<'_>) -> Option<PathBuf> {
    let words = unwrapped(&command.words);
    let values: Vec<&str> = words.iter().filter_map(|word| word.value.as_deref()).collect();
    let redirected = command
        .redirections
        .iter()
        .filter(|redirection| redirection.writes)
        .filter_map(|redirection| redirection.target.value.as_deref());
    let mut targets: Vec<&str> = redirected.collect();
    if let Some((program, arguments)) = values.split_first() {
        targets.extend(written_operands(base_name(program), arguments));
    }
    let program = values.first().copied().map(base_name).unwrap_or_default();
    let moves = matches!(program, "cp" | "mv");
    if targets.is_empty() && !moves {
        return None;
    }
    let unknown = [PathBuf::from("/")];
    let places = match command.places.known() {
        [] => &unknown[..],
        known => known,
    };
    let operands = values.iter().skip(1).filter(|word| moves && !word.starts_with('-'));
    let operands: Vec<&str> = operands.copied().collect();
    places
        .iter()
        .flat_map(|place| {
            let join =
                |words: &[&str]| words.iter().map(|word| place.join(word)).collect::<Vec<_>>();
            [join(&targets), landings(program, &join(&operands))].concat()
        })
        .find(|path| scene.is_protected(path))
        .map(|path| normalize(&path))
}

/// The words that a file command writes to, with the values of its options.
fn written_operands<'a>(program: &str, arguments: &[&'a str]) -> Vec<&'a str> {
    let values = |words: &[&'a str]| -> Vec<&'a str> {
        words
            .iter()
            .map(|word| match word.split_once('=') {
                Some((_, value)) if word.starts_with('-') || program == "dd" => value,
                _ => word.strip_prefix("-t").unwrap_or(word),
            })
            .collect()
    };
    match program {
        "cp" | "install" | "ln" | "rsync" => {
            let options = arguments.iter().copied().filter(|word| word.starts_with('-'));
            let last = arguments.iter().rev().find(|word| !word.starts_with('-')).copied();
            values(&options.chain(last).collect::<Vec<_>>())
        }
        "sed" if !arguments.iter().any(|word| word.starts_with("-i") || *word == "--in-place") => {
            Vec::new()
        }
        "chmod" | "chown" | "dd" | "mkdir" | "mv" | "rm" | "rmdir" | "sed" | "tee" | "touch"
        | "truncate" => values(arguments),
        _ => Vec::new(),
    }
}
