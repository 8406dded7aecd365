//! A command line, analysed once for all the rules that ask about it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::characters::as_run;
use super::command_parser::parse_program;
use super::git_runs::without_global_options;
use super::mentions::{Mentions, mentions};
use super::names;
use super::places::Places;
use super::programs::base_name;
use super::removal::Removal;
use super::script::{Assigned, Command, Script, Unclear, Word, join};
use super::shape::Shape;
use super::tree_moves::TreeMove;
use super::views::{Finder, Views, best_values};
use super::walker;
use super::wrappers::{runs_another, runs_input, takes_arguments, unwrapped};
use crate::policy::Policy;

/// The analysis of a command line, for a shell in one directory.
#[derive(Debug)]
pub(crate) struct Analysis {
    text: String,
    cwd: PathBuf,
    home: Option<PathBuf>,
    script: Script,
    views: Views,
    removals: Vec<Removal>,
    mentions: Mentions,
    /// Computed on first use.
    parts: OnceLock<Vec<PartTexts>>,
}

impl Analysis {
    pub(crate) fn new(text: &str, policy: &Policy) -> Self {
        let text = as_run(text);
        let home = policy.home.as_deref();
        let mut finder = Finder::new(&policy.cwd, home);
        let script = match parse_program(text) {
            Ok(program) => {
                walker::walk(&program, &Places::at(&policy.cwd), home, &Assigned::default())
            }
            Err(why) => {
                finder.rough(text);
                Script { unclear: Some(why), opaque: Some(why), ..Script::default() }
            }
        };
        finder.script(&script);
        let views = finder.finish();
        let removals = removals(&script, &views, &policy.cwd);
        let mentions = mentions(text, &script, &views, &policy.cwd, home);
        Self {
            text: text.to_owned(),
            cwd: policy.cwd.clone(),
            home: policy.home.clone(),
            script,
            views,
            removals,
            mentions,
            parts: OnceLock::new(),
        }
    }

    /// Whether this analysis holds for a shell of this policy.
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

    /// The reason that the text cannot be read at all, if so.
    pub(crate) fn unreadable(&self) -> Option<Unclear> {
        self.script.unclear.filter(|why| why.is_unreadable())
    }

    /// The reason that it may run programs that it does not name, if so.
    pub(crate) fn opaque(&self) -> Option<Unclear> {
        self.views.opaque
    }

    /// The reason that it may touch paths that it does not name, if so.
    pub(crate) fn hides_paths(&self) -> Option<Unclear> {
        self.views.hides_paths
    }

    /// Every command, including those of scripts in its words.
    pub(crate) fn all_commands(&self) -> impl Iterator<Item = &Command> {
        let nested = self.views.nested.iter().flat_map(|script| &script.commands);
        self.script.commands.iter().chain(nested)
    }

    /// The whole line as written, and every command that it runs or may run, for ask and deny rules.
    pub(crate) fn view_texts(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.text.as_str()).chain(self.views.certain.iter().map(String::as_str))
    }

    /// Commands that it would run if a program did more than is known of it.
    pub(crate) fn possible_texts(&self) -> impl Iterator<Item = &str> {
        self.views.possible.iter().map(String::as_str)
    }

    /// Commands with unknown words.
    pub(crate) fn shapes(&self) -> &[Shape] {
        &self.views.shapes
    }

    /// The critical directory that it might remove.
    pub(crate) fn critical_removal(&self, policy: &Policy) -> Option<String> {
        self.removals.iter().find_map(|removal| removal.critical(policy)).map(str::to_owned)
    }

    /// Its git commands that change a checkout.
    pub(crate) fn tree_moves(&self) -> Vec<TreeMove> {
        let commands: Vec<&Command> = self.all_commands().chain(&self.views.wrapped).collect();
        let texts: Vec<String> = commands.iter().flat_map(|command| told_texts(command)).collect();
        let hidden = self.views.certain.iter().filter(|text| !texts.contains(text));
        let moves = commands.iter().filter_map(|command| TreeMove::of(command));
        let moves = moves.chain(hidden.filter_map(|text| TreeMove::of_text(text)));
        // These variables name another repository to git.
        let leads_git = ["GIT_DIR", "GIT_WORK_TREE"].iter().any(|name| self.text.contains(name));
        moves.map(|it| if leads_git { it.anywhere() } else { it }).collect()
    }

    /// Every path that it might touch.
    pub(crate) fn mentions(&self) -> &Mentions {
        &self.mentions
    }

    /// The commands that must each be allowed.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let commands = &self.script.commands;
        let texts = self.parts.get_or_init(|| commands.iter().map(PartTexts::new).collect());
        commands.iter().zip(texts).map(|(command, texts)| Part { command, texts })
    }

    /// An estimate of its size in bytes.
    pub(super) fn weight(&self) -> usize {
        let texts = self.view_texts().chain(self.possible_texts());
        let texts = texts.map(|text| text.len() + size_of::<String>());
        let shapes = self.views.shapes.iter().map(Shape::weight);
        let removals = self.removals.iter().map(Removal::weight);
        // The texts of its parts are about as large as the commands.
        let commands = self.all_commands().chain(&self.views.wrapped).chain(&self.script.commands);
        let commands = commands.map(Command::weight);
        size_of::<Self>()
            + self.cwd.as_os_str().len()
            + self.mentions.weight()
            + texts.chain(shapes).chain(removals).chain(commands).sum::<usize>()
    }
}

/// The texts of a git command as views have them: with and without the options before its name.
fn told_texts(command: &Command) -> Vec<String> {
    let words = unwrapped(&command.words);
    let plain = without_global_options(&words);
    let text = |words: &[Word]| {
        let values = best_values(words);
        let program = values.first().map(|program| base_name(program));
        program.into_iter().chain(values.iter().skip(1).copied()).collect::<Vec<_>>().join(" ")
    };
    std::iter::once(text(&words)).chain(plain.as_deref().map(text)).collect()
}

/// The text of a word, or else the name of its variable without quotes and braces.
fn most_likely(word: &Word) -> String {
    let text = word.value.clone().or_else(|| word.to_shape().text());
    text.unwrap_or_else(|| word.written.replace(['"', '\'', '{', '}'], ""))
}

/// The removals that the script might make: its commands in their directories, and everything that it may run in the
/// shell's directory.
fn removals(script: &Script, views: &Views, cwd: &Path) -> Vec<Removal> {
    let split = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut removals = Vec::new();
    for text in &views.certain {
        if text.starts_with("rm") {
            let words = split(text);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            removals.extend(Removal::of(&words, cwd));
        }
    }
    for command in &script.commands {
        let inner = unwrapped(&command.words);
        let words: Vec<String> = inner.iter().map(most_likely).collect();
        let words: Vec<String> =
            words.iter().flat_map(|word| split(&word.replace("$IFS", " "))).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        for place in command.places.known() {
            removals.extend(Removal::of(&words, place));
        }
    }
    removals
}

/// One command, as allow rules see it.
pub(crate) struct Part<'a> {
    pub(crate) command: &'a Command,
    texts: &'a PartTexts,
}

#[derive(Debug)]
struct PartTexts {
    /// The text as written.
    text: String,
    /// The text inside its wrappers, where that differs.
    inner: Option<String>,
    /// Whether the inner command is one that a pattern for the outer one does not cover.
    runs_another: bool,
    is_steered: bool,
    takes_arguments: bool,
}

impl PartTexts {
    fn new(command: &Command) -> Self {
        let inner = unwrapped(&command.words);
        let text = command.text();
        let inner_text = Some(join(&inner)).filter(|inner| *inner != text);
        let obeys = !command.words.is_empty() && !command.assignments.iter().all(names::is_safe);
        Self {
            text,
            inner: inner_text,
            runs_another: runs_another(&inner),
            is_steered: obeys || runs_input(command, &inner),
            takes_arguments: takes_arguments(command),
        }
    }
}

impl<'a> Part<'a> {
    pub(crate) fn text(&self) -> &'a str {
        &self.texts.text
    }

    /// Whether its words do not tell its effect: it obeys a variable, or runs its input.
    pub(crate) fn is_steered(&self) -> bool {
        self.texts.is_steered
    }

    /// The texts that a pattern may match, each with whether the match must be exact: a wrapper is approved by its
    /// inner command, or as written.
    pub(crate) fn readings(&self) -> impl Iterator<Item = (&'a str, bool)> {
        let PartTexts { text, inner, runs_another, is_steered, takes_arguments } = self.texts;
        let outer = match inner {
            Some(_) if *takes_arguments => None,
            Some(_) => Some((text.as_str(), true)),
            None => Some((text.as_str(), *runs_another)),
        };
        let inner = inner.as_deref().map(|inner| (inner, *runs_another));
        outer.into_iter().chain(inner).filter(move |_| !is_steered)
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
            let mut texts = analysis.view_texts();
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
            let paths = analysis.mentions().paths();
            assert!(paths.iter().any(|path| path == wanted), "{command:?} gave {paths:?}");
        }
    }

    #[test]
    fn paths_hang_where_the_command_runs() {
        let analysis = analysis("cd src && cat a ~/b");
        let paths = analysis.mentions().paths();
        for wanted in ["/home/ada/project/src/a", "/home/ada/project/a"] {
            assert!(paths.iter().any(|path| path == Path::new(wanted)), "{wanted}: {paths:?}");
        }
    }
}
