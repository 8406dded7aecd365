//! Commands that change nothing, start nothing, and read nothing outside the working directories and the readable
//! paths.
//!
//! A command is free only if all its options are known ([`free_programs`](super::free_programs)) and every path that it
//! reads is readable: by its name, by its target, and by the rules.

use std::path::Path;

use super::find;
use super::free_programs::{FreeProgram, Operands, PROGRAMS};
use super::git;
use super::jq;
use super::names;
use super::options::Arguments;
use super::script::{Command, Word};
use super::sed;
use super::told_words;
use super::wrappers::{Move, moves_shell, unwrapped};
use crate::links::PathKind;
use crate::paths::join;
use crate::scene::Scene;

pub(super) use super::find::acts as find_acts;

/// The files that a command reads.
#[derive(Default)]
pub(super) struct ReadFiles<'a> {
    /// Files and directories. Of a directory, only the names are printed, not the contents.
    pub(super) paths: Vec<&'a str>,
    /// Files that must not be directories.
    pub(super) files: Vec<&'a str>,
    /// Whether it prints the contents of files that no argument names.
    pub(super) searches: bool,
}

impl<'a> ReadFiles<'a> {
    fn paths(paths: Vec<&'a str>) -> Self {
        Self { paths, ..Self::default() }
    }

    fn is_nothing(&self) -> bool {
        self.paths.is_empty() && self.files.is_empty() && !self.searches
    }
}

/// Whether the command needs no permission, in every reading of its words. Its redirections are judged separately.
pub(crate) fn is_free(command: &Command, scene: Scene<'_>) -> bool {
    let words = unwrapped(&command.words);
    if words.iter().all(|word| word.value.is_some()) {
        return are_free(&words, command, scene);
    }
    let readings = told_words::readings(&words, command.places.known(), scene);
    readings.is_some_and(|readings| readings.iter().all(|words| are_free(words, command, scene)))
}

/// Whether a command with these words needs no permission.
fn are_free(words: &[Word], command: &Command, scene: Scene<'_>) -> bool {
    let places = command.places.known();
    match act(words, command, scene) {
        None => false,
        Some(HarmlessEffect::Moves(targets)) => {
            !places.is_empty()
                && places
                    .iter()
                    .all(|place| targets.iter().all(|target| scene.is_inside(&place.join(target))))
        }
        Some(HarmlessEffect::Reads(reads)) => {
            reads.is_nothing()
                || (!places.is_empty()
                    && places.iter().all(|place| is_open(&reads, place, scene))
                    && !(reads.searches && scene.policy.guards_files()))
        }
    }
}

/// Whether the command changes nothing and starts nothing, whatever it reads. Its redirections are judged separately.
pub(crate) fn changes_nothing(command: &Command, scene: Scene<'_>) -> bool {
    act(&unwrapped(&command.words), command, scene).is_some()
}

/// The effect of a command that changes nothing.
enum HarmlessEffect<'a> {
    /// Moves the shell to one of these directories.
    Moves(Vec<String>),
    Reads(ReadFiles<'a>),
}

/// The effect of these words of a command, taken from inside its wrappers.
fn act<'a>(words: &'a [Word], command: &Command, scene: Scene<'_>) -> Option<HarmlessEffect<'a>> {
    if !command.assignments.iter().all(|assignment| {
        names::is_safe(assignment)
            || (command.words.is_empty() && names::is_private(&assignment.name))
    }) {
        return None;
    }
    let words: Vec<&str> = words.iter().map(|word| word.value.as_deref()).collect::<Option<_>>()?;
    let reads = match words.split_first() {
        None => Some(ReadFiles::default()),
        Some((&"cd", _)) => match moves_shell(command, scene.policy.home.as_deref()) {
            Move::To(targets) => return Some(HarmlessEffect::Moves(targets)),
            Move::None | Move::Back | Move::Somewhere => None,
        },
        Some((&"git", _)) if !git::is_ours(command.places.known(), scene) => None,
        // The zone of a time is a file.
        Some((&("date" | "find"), arguments)) if arguments.iter().any(|it| it.contains("TZ=")) => {
            None
        }
        Some((program, arguments)) => reads(program, arguments),
    };
    reads.map(HarmlessEffect::Reads)
}

/// The files that a program reads with these arguments, if it does nothing else.
fn reads<'a>(program: &str, arguments: &[&'a str]) -> Option<ReadFiles<'a>> {
    match program {
        "command" => asks_where(arguments).then(ReadFiles::default),
        "find" => find::reads(arguments).map(ReadFiles::paths),
        "git" => git::reads(arguments),
        "jq" => jq::reads(arguments).map(ReadFiles::paths),
        "printf" => is_plain_printf(arguments).then(ReadFiles::default),
        "sed" => sed::reads(arguments).map(ReadFiles::paths),
        // An index of an array is arithmetic, and arithmetic can run commands.
        "test" | "[" => (!arguments.iter().any(|word| matches!(*word, "-v" | "-R")))
            .then(|| ReadFiles::paths(arguments.to_vec())),
        "tree" => tree(arguments).map(ReadFiles::paths),
        name => {
            let program = PROGRAMS.iter().find(|program| program.name == name)?;
            table_reads(program, arguments)
        }
    }
}

fn table_reads<'a>(program: &FreeProgram, words: &[&'a str]) -> Option<ReadFiles<'a>> {
    if program.operands == Operands::Words {
        return Some(ReadFiles::default());
    }
    let arguments = Arguments::read(words, &program.options)?;
    let operands = arguments.operands.as_slice();
    let mut reads = ReadFiles::paths(arguments.paths.clone());
    match program.operands {
        Operands::Words | Operands::Text => return Some(reads),
        Operands::Nothing if operands.is_empty() => return Some(reads),
        Operands::Format if operands.len() <= 1 => {
            return operands.iter().all(|word| word.starts_with('+')).then_some(reads);
        }
        Operands::OnePath if operands.len() <= 1 && !arguments.has_late_options() => {
            reads.paths.extend(operands);
        }
        // With two operands, an option among them is an error where it counts as a third.
        Operands::Files if operands.len() == 2 => reads.files.extend(operands),
        Operands::Nothing | Operands::Format | Operands::OnePath | Operands::Files => return None,
        Operands::Paths => reads.paths.extend(operands),
        Operands::PathsOrHere => reads.paths.extend(or_here(operands)),
        Operands::PatternThenPaths(patterns) => {
            let is_pattern = usize::from(!arguments.has(patterns));
            let paths = operands.get(is_pattern..).unwrap_or_default();
            reads.searches = program.name == "rg" || arguments.has(&["r", "recursive"]);
            reads.paths.extend(if reads.searches { or_here(paths) } else { paths });
        }
    }
    if arguments.has_late_options() {
        reads.paths.extend(&arguments.late);
    }
    Some(reads)
}

/// The operands, or the current directory.
fn or_here<'a, 'b>(operands: &'b [&'a str]) -> &'b [&'a str] {
    if operands.is_empty() { &["."] } else { operands }
}

/// `command -v name` only tells which program would run.
fn asks_where(arguments: &[&str]) -> bool {
    match arguments.split_first() {
        Some((&("-v" | "-V"), names)) => !names.iter().any(|name| name.starts_with('-')),
        _ => false,
    }
}

/// `printf` sets a variable with `-v` and with `%n`.
fn is_plain_printf(arguments: &[&str]) -> bool {
    let is_option = |word: &&str| word.starts_with('-') && *word != "--";
    let counts = |word: &&str| {
        word.split('%').skip(1).any(|conversion| {
            let is_modifier = |c: char| c.is_ascii_digit() || "-+ #'.*$hlLjzt".contains(c);
            conversion.trim_start_matches(is_modifier).starts_with('n')
        })
    };
    !arguments.first().is_some_and(is_option) && !arguments.iter().any(counts)
}

/// `tree` takes a value only from the next word, even with text attached.
fn tree<'a>(arguments: &[&'a str]) -> Option<Vec<&'a str>> {
    const LETTERS: &str = "adfxpsughDFqNQiASnCvrtcUJX";
    const NAMES: [&str; 6] =
        ["--dirsfirst", "--noreport", "--prune", "--matchdirs", "--ignore-case", "--du"];
    let mut paths = Vec::new();
    let mut words = arguments.iter().copied();
    while let Some(word) = words.next() {
        match word.strip_prefix('-') {
            Some("L" | "P" | "I") => {
                words.next().filter(|value| !value.starts_with('-'))?;
            }
            Some(_) if NAMES.contains(&word) => {}
            Some(letters) if !letters.is_empty() => {
                letters.chars().all(|letter| LETTERS.contains(letter)).then_some(())?;
            }
            _ => paths.push(word),
        }
    }
    Some(or_here(&paths).to_vec())
}

/// Whether everything that is read from this directory is readable, by name and by target.
fn is_open(reads: &ReadFiles<'_>, place: &Path, scene: Scene<'_>) -> bool {
    let guards = scene.policy.guards_files();
    let is_readable = |word: &str| {
        let path = join(place, word);
        // An empty word is the directory itself, which is inside.
        word.is_empty()
            || (scene.is_open_to_reading(&path) && !(guards && scene.is_guarded(&path, false)))
    };
    let is_file = |word: &str| {
        word == "-" || scene.links.kind(&scene.links.resolve(&join(place, word))) == PathKind::File
    };
    scene.is_inside(place)
        && reads.paths.iter().chain(&reads.files).all(|word| is_readable(word))
        && reads.files.iter().all(|word| is_file(word))
}
