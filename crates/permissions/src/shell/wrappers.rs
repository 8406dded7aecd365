//! Programs that run another one: which of them permission looks through, and which it never does.

use std::borrow::Cow;
use std::path::Path;

use super::programs::{base_name, is_interpreter, is_shell};
use super::read_only::find_acts;
use super::script::{Command, Word};

/// Programs that run their arguments, with more than time, priority or buffering around them. A
/// pattern with a star never approves one: its author thought of the program, not of what it runs.
const RUNNERS: [&str; 29] = [
    "builtin", "busybox", "chroot", "command", "doas", "env", "flock", "ionice", "ltrace", "nice",
    "noglob", "nohup", "nsenter", "parallel", "runuser", "script", "setarch", "setpriv", "setsid",
    "stdbuf", "strace", "su", "sudo", "time", "timeout", "unshare", "watch", "xargs", "xvfb-run",
];

/// The command inside wrappers that change nothing about what it does: `timeout 5 make` is `make`.
/// What `xargs` adds is an unknown word.
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

/// How many words at the start are options: flags as they are or with `=value`, and short ones whose
/// value is attached or follows. Nothing if an option is not known.
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

/// The word, if it is written as it is meant.
fn plain(word: &Word) -> Option<&str> {
    word.value.as_deref().filter(|value| *value == word.written)
}

/// Whether the command runs another one that a pattern for the outer one says nothing about.
pub(crate) fn runs_another(words: &[Word]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let Some(program) = program.value.as_deref().map(base_name) else { return true };
    let values = || arguments.iter().map(|word| word.value.as_deref().unwrap_or(&word.written));
    let has = |options: &[&str]| values().any(|word| options.contains(&word));
    if RUNNERS.contains(&program) {
        return true;
    }
    // A word that is not known may be any option.
    let is_sure = arguments.iter().all(|word| word.value.is_some());
    match program {
        "find" | "fd" | "fdfind" if !is_sure => true,
        shell if is_shell(shell) && !is_sure => true,
        "find" => {
            let words: Vec<&str> = std::iter::once(program).chain(values()).collect();
            find_acts(&words)
        }
        "fd" | "fdfind" => has(&["-x", "-X", "--exec", "--exec-batch"]),
        // Options before the subcommand can name programs to run.
        "git" => values()
            .take_while(|word| word.starts_with(['-', '$', '`']) || word.contains('='))
            .any(|word| {
                word.starts_with(['$', '`'])
                    || word.starts_with("-c")
                    || word.starts_with("--exec-path")
                    || word.starts_with("--config")
            }),
        shell if is_shell(shell) => values()
            .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('c')),
        _ => false,
    }
}

/// Whether the command runs what is written to its standard input, or takes arguments from there that
/// it runs.
pub(crate) fn runs_input(command: &Command, words: &[Word]) -> bool {
    let program = words.first().and_then(|word| word.value.as_deref()).map(base_name);
    let runs = |program| is_interpreter(program) || matches!(program, "xargs" | "parallel");
    command.fed && program.is_some_and(runs)
}

/// Whether the command adds what it is fed to the words of another.
pub(crate) fn takes_arguments(command: &Command) -> bool {
    command.words.iter().any(|word| word.value.as_deref() == Some("xargs"))
}

/// Whether and where a command takes the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    None,
    To(String),
    /// Its text does not tell where.
    Somewhere,
}

/// Where the command takes the shell that runs it.
pub(crate) fn moves_shell(command: &Command, home: Option<&Path>) -> Move {
    let words = unwrapped(&command.words);
    let Some((program, arguments)) = words.split_first() else { return Move::None };
    match program.value.as_deref() {
        Some("cd") => {}
        Some("pushd" | "popd") => return Move::Somewhere,
        _ => return Move::None,
    }
    let arguments: Option<Vec<&str>> = arguments.iter().map(|word| word.value.as_deref()).collect();
    let target = match arguments.as_deref() {
        Some([]) => home.and_then(Path::to_str),
        Some([target] | ["--", target]) => {
            Some(*target).filter(|target| !target.is_empty() && !target.starts_with('-'))
        }
        _ => None,
    };
    match target {
        Some(target) if command.assignments.is_empty() => Move::To(target.to_owned()),
        _ => Move::Somewhere,
    }
}
