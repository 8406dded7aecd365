//! A command line, read once for all the rules that ask about it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::names;
use super::parse::parse;
use super::programs::{base_name, is_shell};
use super::removal::Removal;
use super::rough::{parts, possible_paths, readings, views};
use super::script::{Command, Script, Unclear, join};
use super::wrappers::{runs_another, runs_input, takes_arguments, unwrapped};
use crate::paths::join as join_path;
use crate::policy::Policy;

/// Command lines in the arguments of shells in command lines, at most.
const DEEPEST: usize = 4;

/// What a command line does, for a shell that stands in one place.
#[derive(Debug)]
pub(crate) struct Analysis {
    text: String,
    cwd: PathBuf,
    home: Option<PathBuf>,
    script: Script,
    view_texts: Vec<String>,
    removals: Vec<Removal>,
    mentioned_paths: Vec<PathBuf>,
}

impl Analysis {
    pub(crate) fn new(text: &str, policy: &Policy) -> Self {
        let text = text.trim();
        let home = policy.home.as_deref();
        let mut gathering = Gathering { cwd: &policy.cwd, home, texts: vec![], removals: vec![] };
        let (script, readings) = gathering.read(text, 0);
        let Gathering { mut texts, mut removals, .. } = gathering;
        texts.sort_unstable();
        texts.dedup();
        texts.insert(0, text.to_owned());
        for command in &script.commands {
            let views = views(&command.best_values());
            let elsewhere = command.places.known().iter().filter(|place| **place != policy.cwd);
            removals.extend(
                elsewhere.flat_map(|place| {
                    views.iter().filter_map(move |words| Removal::of(words, place))
                }),
            );
        }
        let words = readings.iter().flat_map(|reading| parts(reading)).flatten();
        let mentioned_paths = mentioned_paths(words, &script, &policy.cwd, home);
        Self {
            text: text.to_owned(),
            cwd: policy.cwd.clone(),
            home: policy.home.clone(),
            script,
            view_texts: texts,
            removals,
            mentioned_paths,
        }
    }

    /// Whether this is what the text says to a shell of this policy.
    pub(super) fn is_of(&self, policy: &Policy) -> bool {
        self.cwd == policy.cwd && self.home == policy.home
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn script(&self) -> &Script {
        &self.script
    }

    pub(crate) fn unclear(&self) -> Option<Unclear> {
        self.script.unclear
    }

    /// The whole as it is written, and everything in it that might be a command, for rules that take.
    pub(crate) fn view_texts(&self) -> &[String] {
        &self.view_texts
    }

    /// What it might remove that nobody means to lose.
    pub(crate) fn critical_removal(&self, policy: &Policy) -> Option<String> {
        self.removals.iter().find_map(|removal| removal.critical(policy)).map(str::to_owned)
    }

    /// Every path that it might touch, relative ones in every directory where they may hang.
    pub(crate) fn mentioned_paths(&self) -> &[PathBuf] {
        &self.mentioned_paths
    }

    /// The commands that must each be allowed.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.script.commands.iter().map(Part::new)
    }

    /// About how many bytes it holds.
    pub(super) fn weight(&self) -> usize {
        let texts = self.view_texts.iter().map(|text| text.len() + size_of::<String>());
        let paths = self.mentioned_paths.iter();
        let paths = paths.map(|path| path.as_os_str().len() + size_of::<PathBuf>());
        let removals = self.removals.iter().map(Removal::weight);
        let commands = self.script.commands.iter().map(Command::weight);
        let cwd = self.cwd.as_os_str().len();
        size_of::<Self>()
            + self.text.len()
            + cwd
            + texts.chain(paths).chain(removals).chain(commands).sum::<usize>()
    }
}

/// What is found in a command line and in those inside its words.
struct Gathering<'a> {
    cwd: &'a Path,
    home: Option<&'a Path>,
    texts: Vec<String>,
    removals: Vec<Removal>,
}

impl Gathering<'_> {
    /// Reads a text strictly and, where it is not plain, roughly; keeps what it might run.
    fn read(&mut self, text: &str, depth: usize) -> (Script, Vec<String>) {
        let (script, is_plain) = parse(text, self.cwd, self.home);
        let readings = if is_plain { Vec::new() } else { readings(text) };
        for reading in &readings {
            parts(reading).for_each(|words| self.keep(&words));
        }
        for command in &script.commands {
            let words = command.best_values();
            self.keep(&words);
            let runs_text = words.iter().any(|word| is_shell(base_name(word)) || *word == "eval");
            if !runs_text || depth >= DEEPEST {
                continue;
            }
            for word in words.iter().skip(1).filter(|word| word.contains(char::is_whitespace)) {
                self.read(word, depth + 1);
            }
        }
        (script, readings)
    }

    fn keep(&mut self, words: &[&str]) {
        for words in views(words) {
            self.removals.extend(Removal::of(&words, self.cwd));
            self.texts.push(words.join(" "));
        }
    }
}

/// Every path that may be meant: words of the rough readings where the shell stands, words of the
/// commands where those may run.
fn mentioned_paths<'a>(
    rough: impl Iterator<Item = &'a str>,
    script: &'a Script,
    cwd: &'a Path,
    home: Option<&Path>,
) -> Vec<PathBuf> {
    let mut found: Vec<(&str, &OsStr)> = Vec::with_capacity(32);
    let mut add = |place: &'a Path, word: &'a str| {
        found.extend(possible_paths(word).map(|path| (path, place.as_os_str())));
    };
    rough.for_each(|word| add(cwd, word));
    for command in &script.commands {
        let targets = command.redirections.iter().map(|redirection| &redirection.target);
        for word in command.words.iter().chain(targets) {
            add(cwd, word.value.as_deref().unwrap_or(&word.written));
            if let Some(value) = word.value.as_deref() {
                command.places.known().iter().for_each(|place| add(place, value));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    let absolute = |(word, place): (&str, &OsStr)| match (word.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => join_path(Path::new(place), word),
    };
    found.into_iter().map(absolute).collect()
}

/// One command, as allow rules see it.
pub(crate) struct Part<'a> {
    pub(crate) command: &'a Command,
    /// As it is written.
    text: String,
    /// As it is written inside its wrappers, where that is something else.
    inner: Option<String>,
    /// Whether what runs inside is something that a pattern for it says nothing about.
    runs_another: bool,
    /// Whether its words do not tell what it does: it obeys a variable, or runs what it is fed.
    pub(crate) is_steered: bool,
}

impl<'a> Part<'a> {
    fn new(command: &'a Command) -> Self {
        let inner = unwrapped(&command.words);
        let text = command.text();
        let inner_text = Some(join(&inner)).filter(|inner| *inner != text);
        let obeys = !command.words.is_empty() && !command.assignments.iter().all(names::is_safe);
        Self {
            command,
            text,
            inner: inner_text,
            runs_another: runs_another(&inner),
            is_steered: obeys || runs_input(command, &inner),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The texts that a pattern may fit, each with whether it must be meant word for word: a wrapper
    /// is approved by what it wraps, or as it stands.
    pub(crate) fn readings(&self) -> impl Iterator<Item = (&str, bool)> {
        let outer = match self.inner {
            Some(_) if takes_arguments(self.command) => None,
            Some(_) => Some((self.text.as_str(), true)),
            None => Some((self.text.as_str(), self.runs_another)),
        };
        let inner = self.inner.as_deref().map(|inner| (inner, self.runs_another));
        outer.into_iter().chain(inner).filter(|_| !self.is_steered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn analysis(command: &str) -> Analysis {
        let policy = Policy {
            cwd: "/home/ada/project".into(),
            home: Some("/home/ada".into()),
            ..Policy::default()
        };
        Analysis::new(command, &policy)
    }

    #[test]
    fn a_word_in_a_plain_argument_is_no_command() {
        for command in [
            "git commit -m 'docs; rm x'",
            "git add -A && git commit -m 'docs; rm x'",
            "echo rm x",
            "grep rm x | head -n 1",
            "cat ./rm",
            "ls > 'a; rm x'",
        ] {
            let analysis = analysis(command);
            let mut texts = analysis.view_texts().iter();
            assert!(!texts.any(|text| text.starts_with("rm")), "{command:?} gave {analysis:?}");
        }
    }

    #[test]
    fn paths_are_found_in_options_and_redirections() {
        for command in [
            "cat .env",
            "cat '.env'",
            "cat .e\"n\"v; true",
            "cat <.env",
            "echo a >.env",
            "popd; echo a >.env",
            "cp .env x && true",
            "tool --file=.env",
            "grep -f.env x",
            "echo $(cat .env)",
        ] {
            let analysis = analysis(command);
            let wanted = Path::new("/home/ada/project/.env");
            let paths = analysis.mentioned_paths();
            assert!(paths.iter().any(|path| path == wanted), "{command:?} gave {paths:?}");
        }
    }

    #[test]
    fn paths_hang_where_the_command_runs() {
        let analysis = analysis("cd src && cat a ~/b");
        let paths = analysis.mentioned_paths();
        for wanted in ["/home/ada/project/src/a", "/home/ada/project/a"] {
            assert!(paths.iter().any(|path| path == Path::new(wanted)), "{wanted}: {paths:?}");
        }
    }
}
