//! Shells, and the builtins that run text: which text, and its source.

use std::path::Path;

use super::super::builtins;
use super::super::script::{Unclear, Word};
use super::feed::Feed;
use super::words::best_values;
use super::{Certainty, Finder};
use crate::paths::{join, normal};

impl Finder<'_> {
    /// Examines arguments that are one script together.
    pub(super) fn texts(&mut self, arguments: &[Word]) {
        let texts: Option<Vec<&str>> = arguments.iter().map(|word| word.value.as_deref()).collect();
        if let Some(texts) = texts {
            self.text(&texts.join(" "));
        } else {
            self.hidden(Unclear::Code);
            self.rough(&best_values(arguments).join(" "));
        }
    }

    pub(super) fn trap(&mut self, arguments: &[Word]) {
        match arguments.first().map(|word| word.value.as_deref()) {
            None => {}
            Some(Some(text)) => {
                if text == "--" {
                    return self.trap(arguments.get(1..).unwrap_or_default());
                }
                if text != "-" && arguments.len() > 1 {
                    self.text(text);
                }
            }
            Some(None) => self.hidden(Unclear::Code),
        }
    }

    pub(super) fn source(&mut self, arguments: &[Word], feed: Feed<'_>) {
        let Some(file) = arguments.first() else { return };
        match file.value.as_deref() {
            Some(path) if self.may_be_descriptor(path, feed) => self.input(feed),
            Some(_) => self.script_file(file, feed),
            None => self.hidden(Unclear::Code),
        }
    }

    /// Examines a script in a file. The standard input runs if the file is a link to it.
    pub(super) fn script_file(&mut self, file: &Word, feed: Feed<'_>) {
        self.runs(file);
        let before = std::mem::replace(&mut self.certainty, Certainty::Possible);
        let (opaque, hides_paths) = (self.views.opaque, self.views.hides_paths);
        if feed.text.is_some() {
            self.input(feed);
        }
        (self.views.opaque, self.views.hides_paths) = (opaque, hides_paths);
        self.certainty = before;
    }

    /// Whether a path may be a descriptor, such as standard input, from any directory of the command.
    pub(super) fn may_be_descriptor(&self, path: &str, feed: Feed<'_>) -> bool {
        let is_descriptor = |path: &Path| {
            let path = normal(path);
            path.starts_with("/dev") || path.starts_with("/proc")
        };
        let places = self.places.known();
        if path.starts_with('/') {
            is_descriptor(Path::new(path))
        } else if places.is_empty() {
            feed.is_fed
        } else {
            places.iter().any(|place| is_descriptor(&join(place, path)))
        }
    }

    /// Examines a standard input that is run.
    pub(super) fn input(&mut self, feed: Feed<'_>) {
        match feed.text {
            Some(text) => {
                let text = text.to_owned();
                self.text(&text);
            }
            None if feed.is_fed => self.hidden(Unclear::Code),
            None => {}
        }
    }

    pub(super) fn shell(&mut self, arguments: &[Word], feed: Feed<'_>) {
        let mut words = arguments.iter();
        let (mut has_text, mut reads_input) = (false, false);
        while let Some(word) = words.next() {
            let Some(value) = word.value.as_deref() else { return self.hidden(Unclear::Code) };
            if value == "--" || value == "-" {
                break;
            }
            if let Some(flags) = value.strip_prefix(['-', '+']) {
                let is_short = !flags.starts_with('-');
                has_text |= is_short && flags.contains('c');
                reads_input |= is_short && flags.contains('s');
                // They change the parsing of text, or the names that patterns match.
                if is_short && flags.contains(['o', 'O']) || value.contains("file") {
                    let setting = words.next().and_then(|word| word.value.as_deref());
                    if flags.contains('O') || !setting.is_some_and(builtins::is_known_setting) {
                        self.hidden(Unclear::Code);
                    }
                }
                continue;
            }
            if has_text {
                return match word.value.as_deref() {
                    Some(text) => {
                        let text = text.to_owned();
                        self.text(&text);
                    }
                    None => self.hidden(Unclear::Code),
                };
            }
            return self.shell_operand(word, reads_input, feed);
        }
        match words.next() {
            Some(word) if has_text => match word.value.as_deref() {
                Some(text) => self.text(text),
                None => self.hidden(Unclear::Code),
            },
            Some(word) => self.shell_operand(word, reads_input, feed),
            None => self.input(feed),
        }
    }

    /// Examines the first operand of a shell: a file, unless the shell has an option to run its input.
    pub(super) fn shell_operand(&mut self, word: &Word, reads_input: bool, feed: Feed<'_>) {
        match word.value.as_deref() {
            _ if reads_input => self.input(feed),
            Some(file) if self.may_be_descriptor(file, feed) => self.hidden(Unclear::Code),
            Some(_) => self.script_file(word, feed),
            None => self.hidden(Unclear::Code),
        }
    }
}
