//! File commands: the ones that `acceptEdits` runs, and the files that they would write.

use std::path::{Component, Path, PathBuf};

use super::names;
use super::options::{Arguments, Options};
use super::removal::is_critical;
use super::script::{Command, Word};
use super::sed;
use super::wrappers::unwrapped;
use crate::links::PathKind;
use crate::paths::normalize;
use crate::protected::is_protected;
use crate::scene::Scene;

/// Files that discard or print everything.
const SINKS: [&str; 5] = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2"];

pub(crate) fn is_sink(target: &str) -> bool {
    SINKS.contains(&target)
}

/// The most files in a directory that is removed without a question.
const LARGEST_REMOVAL: usize = 20_000;

/// A command that makes, moves, copies or removes files, with the options that leave the affected paths clear.
///
/// Not here: commands and options that copy directories (their names and links are not in the words), make backups,
/// links or parents, or name the destination in an option.
struct FileCommand {
    name: &'static str,
    options: Options,
}

const FILE_COMMANDS: [FileCommand; 6] = [
    FileCommand {
        name: "cp",
        options: Options {
            plain: "finpuvT force interactive no-clobber verbose no-target-directory \
                    remove-destination",
            optional: " update",
            ..Options::NONE
        },
    },
    FileCommand {
        name: "mkdir",
        options: Options { plain: "pv parents verbose", text: "m mode", ..Options::NONE },
    },
    FileCommand {
        name: "mv",
        options: Options {
            plain: "finuvT force interactive no-clobber verbose no-target-directory",
            optional: " update",
            ..Options::NONE
        },
    },
    FileCommand {
        name: "rm",
        options: Options {
            plain: "fiIrRdv force recursive dir verbose one-file-system",
            optional: " interactive",
            ..Options::NONE
        },
    },
    FileCommand {
        name: "rmdir",
        options: Options { plain: "v verbose ignore-fail-on-non-empty", ..Options::NONE },
    },
    FileCommand {
        name: "touch",
        options: Options {
            plain: "acmh no-create no-dereference",
            text: "dt date time",
            path: "r reference",
            ..Options::NONE
        },
    },
];

/// Whether the command only makes, moves, copies, changes or removes files inside the working directories, none of them
/// protected, by their names and by their targets.
///
/// All commands of a line are judged before the first one runs. That holds because no command that is permitted here
/// makes a link, or moves a link or a directory, or removes a link beside another command: the targets of paths stay
/// the same. A file whose name a `mkdir` of the same line makes may be a directory by the time it is moved.
pub(crate) fn edits_inside(command: &Command, line: &[Command], scene: Scene<'_>) -> bool {
    let inner = unwrapped(&command.words);
    let Some(edit) = Edit::of(command, &inner) else { return false };
    let places = command.places.known();
    !places.is_empty()
        && places.iter().all(|place| {
            edit.stays_inside(place, scene)
                && (line.len() == 1 || !edit.loses_links(place, scene))
                && !(edit.program == "mv"
                    && line.iter().any(|other| edit.moves_what_is_made(other, place, scene)))
        })
}

/// A file command whose words are understood.
struct Edit<'a> {
    program: &'a str,
    operands: Vec<&'a str>,
    /// Files that are only read.
    sources: Vec<&'a str>,
}

impl<'a> Edit<'a> {
    /// Parses a command as an edit. `inner` is the command inside its wrappers.
    fn of(command: &Command, inner: &'a [Word]) -> Option<Self> {
        let words: Option<Vec<&str>> = inner.iter().map(|word| word.value.as_deref()).collect();
        let words = words.filter(|_| command.assignments.iter().all(names::is_safe))?;
        let (program, arguments) = words.split_first()?;
        Self::read(program, arguments)
    }

    fn read(program: &'a str, words: &[&'a str]) -> Option<Self> {
        if program == "sed" {
            return Some(Self { program, operands: sed::edits(words)?, sources: Vec::new() });
        }
        let command = FILE_COMMANDS.iter().find(|command| command.name == program)?;
        let arguments = Arguments::read(words, &command.options)?;
        // Some parsers treat such words as files.
        if arguments.has_late_options() || arguments.operands.is_empty() {
            return None;
        }
        Some(Self { program, operands: arguments.operands, sources: arguments.paths })
    }

    fn stays_inside(&self, place: &Path, scene: Scene<'_>) -> bool {
        let join = |word: &&str| place.join(word);
        let paths: Vec<PathBuf> = self.operands.iter().map(join).collect();
        let may_change = |path: &PathBuf| {
            scene.is_inside(path) && !scene.is_protected(path) && !scene.is_guarded(path, true)
        };
        let may_read = |path: PathBuf| scene.is_inside(&path) && !scene.is_guarded(&path, false);
        (self.program != "mkdir" || self.operands.iter().all(|word| names_plainly(word)))
            && paths.iter().chain(&landings(self.program, &paths)).all(may_change)
            && self.sources.iter().map(join).all(may_read)
            && self.lost(&paths).iter().all(|path| {
                !is_critical(&normalize(path), scene.policy) && self.loses_only_files(path, scene)
            })
    }

    /// Whether another command of the line makes a directory by a name that this one moves, or below it.
    fn moves_what_is_made(&self, other: &Command, place: &Path, scene: Scene<'_>) -> bool {
        let inner = unwrapped(&other.words);
        let Some(edit) = Edit::of(other, &inner).filter(|edit| edit.program == "mkdir") else {
            return false;
        };
        let resolve = |place: &Path, words: &[&str]| -> Vec<PathBuf> {
            words.iter().map(|word| scene.links.resolve(&place.join(word))).collect()
        };
        let moved = self.operands.split_last().map_or(&[][..], |(_, moved)| moved);
        let moved = resolve(place, moved);
        let mut made = other.places.known().iter().flat_map(|place| resolve(place, &edit.operands));
        made.any(|made| moved.iter().any(|path| made.starts_with(path)))
    }

    /// The operands that no longer exist afterwards.
    fn lost<'p>(&self, paths: &'p [PathBuf]) -> &'p [PathBuf] {
        match self.program {
            "rm" | "rmdir" => paths,
            // The last operand is the destination.
            "mv" => paths.split_last().map_or(&[][..], |(_, moved)| moved),
            _ => &[],
        }
    }

    /// Whether a link is removed, or may be.
    fn loses_links(&self, place: &Path, scene: Scene<'_>) -> bool {
        let paths: Vec<PathBuf> = self.operands.iter().map(|word| place.join(word)).collect();
        let is_link = |path: &PathBuf| scene.links.kind(path) == PathKind::Link;
        self.lost(&paths).iter().any(|path| match scene.links.kind(path) {
            PathKind::Directory => {
                let below = scene.links.tree(&scene.links.resolve(path), LARGEST_REMOVAL);
                below.is_none_or(|below| below.iter().any(is_link))
            }
            kind => kind == PathKind::Link,
        })
    }

    /// Whether all files that go with a path are known: a file alone or, for a removal, a directory in which everything
    /// may be removed.
    fn loses_only_files(&self, path: &Path, scene: Scene<'_>) -> bool {
        let may_remove = |path: &PathBuf| !is_protected(path) && !scene.policy.guards(path, true);
        match (self.program, scene.links.kind(path)) {
            ("mv", kind) => kind == PathKind::File,
            (_, PathKind::Directory) => {
                let below = scene.links.tree(&scene.links.resolve(path), LARGEST_REMOVAL);
                below.is_some_and(|below| below.iter().all(may_remove))
            }
            (_, kind) => kind != PathKind::Unknown,
        }
    }
}

/// Whether `mkdir -p` makes only the directories of the cleaned path: for `a/../b` it makes `a`, too.
fn names_plainly(word: &str) -> bool {
    let mut parts = Path::new(word).components().skip_while(|part| *part == Component::ParentDir);
    !word.is_empty() && !parts.any(|part| part == Component::ParentDir)
}

/// The resulting files if the last operand of a copy or a move is a directory.
fn landings(program: &str, paths: &[PathBuf]) -> Vec<PathBuf> {
    match (program, paths.split_last()) {
        ("cp" | "mv", Some((into, moved))) => {
            moved.iter().filter_map(|path| Some(into.join(normalize(path).file_name()?))).collect()
        }
        _ => Vec::new(),
    }
}
