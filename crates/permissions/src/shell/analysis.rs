//! A command line, read once for all the rules that ask about it.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::names;
use super::parse::parse;
use super::programs::{base_name, is_shell};
use super::removal;
use super::rough::{mentioned_paths, rough_commands, views};
use super::script::{Command, Script, Unclear, join};
use super::wrappers::{runs_another, runs_input, takes_arguments, unwrapped};
use crate::policy::Policy;

/// Command lines in the arguments of shells in command lines, at most.
const DEEPEST: usize = 4;

pub(crate) struct Analysis<'a> {
    text: &'a str,
    policy: &'a Policy,
    script: OnceCell<Script>,
    views: OnceCell<Vec<Vec<String>>>,
    view_texts: OnceCell<Vec<String>>,
}

impl<'a> Analysis<'a> {
    pub(crate) fn new(text: &'a str, policy: &'a Policy) -> Self {
        Self {
            text: text.trim(),
            policy,
            script: OnceCell::new(),
            views: OnceCell::new(),
            view_texts: OnceCell::new(),
        }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    pub(crate) fn script(&self) -> &Script {
        self.script.get_or_init(|| parse(self.text, &self.policy.cwd, self.policy.home.as_deref()))
    }

    pub(crate) fn unclear(&self) -> Option<Unclear> {
        self.script().unclear
    }

    /// Everything that might be a command in it, for rules that take.
    pub(crate) fn views(&self) -> &[Vec<String>] {
        self.views.get_or_init(|| {
            let mut found = rough_commands(self.text);
            self.collect(self.script(), 0, &mut found);
            found.sort();
            found.dedup();
            found
        })
    }

    /// The views as texts, and the whole as it is written.
    pub(crate) fn view_texts(&self) -> &[String] {
        self.view_texts.get_or_init(|| {
            let views = self.views().iter().map(|words| words.join(" "));
            std::iter::once(self.text.to_owned()).chain(views).collect()
        })
    }

    fn collect(&self, script: &Script, depth: usize, found: &mut Vec<Vec<String>>) {
        for command in &script.commands {
            let words = command.best_values();
            found.extend(views(&words));
            let runs_text = words.iter().any(|word| is_shell(base_name(word)) || word == "eval");
            if !runs_text || depth >= DEEPEST {
                continue;
            }
            for word in words.iter().skip(1).filter(|word| word.contains(char::is_whitespace)) {
                found.extend(rough_commands(word));
                let home = self.policy.home.as_deref();
                self.collect(&parse(word, &self.policy.cwd, home), depth + 1, found);
            }
        }
    }

    /// What it might remove that nobody means to lose.
    pub(crate) fn critical_removal(&self) -> Option<String> {
        removal::critical_removal(self.views(), &self.policy.cwd, self.policy).or_else(|| {
            self.script().commands.iter().find_map(|command| {
                let views = views(&command.best_values());
                let mut places = command.places.known().iter();
                places.find_map(|place| removal::critical_removal(&views, place, self.policy))
            })
        })
    }

    /// Every path that it might touch, relative ones in every directory where they may hang.
    pub(crate) fn mentioned_paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = mentioned_paths(self.text)
            .iter()
            .map(|word| self.absolute(word, &self.policy.cwd))
            .collect();
        for command in &self.script().commands {
            let targets = command.redirections.iter().map(|redirection| &redirection.target);
            let words = command.words.iter().chain(targets);
            for value in words.filter_map(|word| word.value.as_deref()) {
                let attached = value.split_once('=').map(|(_, value)| value);
                for word in [Some(value), attached].into_iter().flatten() {
                    let places = command.places.known().iter();
                    paths.extend(places.map(|place| self.absolute(word, place)));
                }
            }
        }
        paths.sort();
        paths.dedup();
        paths
    }

    fn absolute(&self, word: &str, place: &Path) -> PathBuf {
        match (word.strip_prefix("~/"), &self.policy.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => place.join(word),
        }
    }

    /// The commands that must each be allowed.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.script().commands.iter().map(Part::new)
    }
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
