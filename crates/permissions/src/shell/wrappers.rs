//! Programs that run another one: which of them permission looks through, and which it never does.

use std::borrow::Cow;
use std::path::Path;

use super::builtins::inner;
use super::git_runs;
use super::programs::{ProgramKind, base_name, is_interpreter, is_shell, kind};
use super::read_only::find_acts;
use super::script::{Command, Word};
use super::told_programs;

/// The command inside wrappers that do not change its effect: `timeout 5 make` is `make`. The words that `xargs` adds
/// are an unknown word.
pub(crate) fn unwrapped(words: &[Word]) -> Cow<'_, [Word]> {
    let mut words = Cow::Borrowed(words);
    while let Some(inner) = unwrap_once(&words) {
        words = Cow::Owned(inner);
    }
    words
}

fn unwrap_once(words: &[Word]) -> Option<Vec<Word>> {
    let (program, arguments) = words.split_first()?;
    let program = plain(program)?;
    let skipped = match program {
        "timeout" => {
            let after = skip_options(arguments, &["-k", "-s"], &TIMEOUT_FLAGS)?;
            let duration = plain(arguments.get(after)?)?;
            duration.starts_with(|c: char| c.is_ascii_digit()).then_some(after + 1)?
        }
        "nice" => skip_options(arguments, &["-n"], &["--adjustment"])?,
        "stdbuf" => {
            skip_options(arguments, &["-i", "-o", "-e"], &["--input", "--output", "--error"])?
        }
        "time" => skip_options(arguments, &[], &["-p"])?,
        "nohup" | "command" | "builtin" | "noglob" | "xargs" => skip_options(arguments, &[], &[])?,
        _ => return None,
    };
    let mut inner = arguments.get(skipped..)?.to_vec();
    if inner.is_empty() {
        return None;
    }
    if program == "xargs" {
        inner.push(Word::unknown("…"));
    }
    Some(inner)
}

const TIMEOUT_FLAGS: [&str; 5] =
    ["--foreground", "--kill-after", "--preserve-status", "--signal", "-v"];

/// The number of leading words that are options: flags, alone or with `=value`, and short options with an attached or a
/// following value. `None` if an option is unknown.
fn skip_options(arguments: &[Word], valued: &[&str], flags: &[&str]) -> Option<usize> {
    let mut index = 0;
    while let Some(word) = arguments.get(index) {
        let word = plain(word)?;
        if word == "--" {
            return Some(index + 1);
        }
        if !word.starts_with('-') {
            return Some(index);
        }
        let name = word.split('=').next().unwrap_or(word);
        if valued.contains(&word) {
            plain(arguments.get(index + 1)?)?;
            index += 2;
        } else if flags.contains(&name) || valued.iter().any(|option| word.starts_with(option)) {
            index += 1;
        } else {
            return None;
        }
    }
    Some(index)
}

/// The word, if its text is literal.
fn plain(word: &Word) -> Option<&str> {
    word.value.as_deref().filter(|value| *value == word.written)
}

/// Whether the command runs another one that a pattern for the outer one does not cover.
pub(crate) fn runs_another(words: &[Word]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let Some(program) = program.value.as_deref().map(base_name) else { return true };
    let values = || arguments.iter().map(|word| word.value.as_deref().unwrap_or(&word.written));
    let has = |options: &[&str]| values().any(|word| options.contains(&word));
    if program == "xargs"
        || matches!(kind(program), Some(ProgramKind::Wrapper { .. } | ProgramKind::Runner))
    {
        return true;
    }
    // An unknown word may be any option.
    let is_sure = arguments.iter().all(|word| word.value.is_some());
    match program {
        "find" | "fd" | "fdfind" if !is_sure => true,
        shell if is_shell(shell) && !is_sure => true,
        "find" => {
            let words: Vec<&str> = std::iter::once(program).chain(values()).collect();
            find_acts(&words)
        }
        // The words of a shell follow two dashes.
        "capsh" => true,
        "fd" | "fdfind" => has(&["-x", "-X", "--exec", "--exec-batch"]),
        // Options before the subcommand can name programs to run.
        "git" => git_runs::may_load(words) || told_programs::are_told(program, words),
        shell if is_shell(shell) => values()
            .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('c')),
        _ => told_programs::are_told(program, words),
    }
}

/// Whether the command runs its standard input, or takes arguments from there that it runs.
pub(crate) fn runs_input(command: &Command, words: &[Word]) -> bool {
    let program = words.first().and_then(|word| word.value.as_deref()).map(base_name);
    let runs = |program| is_interpreter(program) || matches!(program, "xargs" | "parallel");
    command.fed && program.is_some_and(runs)
}

/// Whether the command adds its standard input to the words of another.
pub(crate) fn takes_arguments(command: &Command) -> bool {
    command.words.iter().any(|word| word.value.as_deref() == Some("xargs"))
}

/// The move of the shell by a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    None,
    /// To one of these directories.
    To(Vec<String>),
    /// To the previous directory.
    Back,
    /// Its text does not tell the directory.
    Somewhere,
}

/// The most values of a directory that are distinguished.
const MOST_TARGETS: usize = 8;

/// The move by which a command changes the directory of its shell.
pub(crate) fn moves_shell(command: &Command, home: Option<&Path>) -> Move {
    let Some((program, arguments)) = inner(&command.words).split_first() else { return Move::None };
    let pushes = match program.value.as_deref() {
        Some("cd") => false,
        Some("pushd") => true,
        Some("popd") if arguments.is_empty() => return Move::Back,
        Some("popd") => return Move::Somewhere,
        _ => return Move::None,
    };
    if !command.assignments.is_empty() {
        return Move::Somewhere;
    }
    let home = home.and_then(Path::to_str).map(str::to_owned);
    let operand = match arguments {
        [] if pushes => return Move::Back,
        [] => return home.map_or(Move::Somewhere, |home| Move::To(vec![home])),
        [mark, operand] if mark.value.as_deref() == Some("--") => operand,
        [operand] => operand,
        _ => return Move::Somewhere,
    };
    if operand.value.as_deref() == Some("-") {
        return Move::Back;
    }
    let Some(mut targets) = operand.to_shape().texts(MOST_TARGETS) else { return Move::Somewhere };
    // Without a word it goes home, with an empty one it stays.
    if operand.splits && targets.iter().any(String::is_empty) {
        match home {
            Some(home) if !pushes => targets.push(home),
            _ => return Move::Somewhere,
        }
    }
    let is_odd = |target: &String| target.starts_with('-') || (pushes && target.starts_with('+'));
    if operand.value.as_deref() == Some("") || targets.iter().any(is_odd) {
        return Move::Somewhere;
    }
    targets.retain(|target| !target.is_empty());
    Move::To(targets)
}
