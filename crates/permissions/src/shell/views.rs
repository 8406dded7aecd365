//! Everything that a script may run, for ask and deny rules.
//!
//! A command yields itself, the command that its program runs, and every text in it that is a script again. A deny rule
//! denies a certain command; a merely possible command asks a person.

mod feed;
mod interpreters;
mod obeyed;
mod shells;
mod tools;
mod words;

use std::path::Path;

use super::characters::{has_blank, words as split_words};
use super::command_parser::parse_program;
use super::git_runs as git;
use super::names;
use super::places::Places;
use super::programs::{ProgramKind, base_name, is_interpreter, kind};
use super::script::{Assigned, Command, Script, Unclear, Word};
use super::shape::Shape;
use super::walker;
use super::writes;
use feed::{Feed, OwnFeed};
use words::{attached, has_word, is_value, last_name, peel, reads_names, shape_of};

pub(super) use words::{best_values, directories, is_option, readings};

/// The deepest nesting of scripts in the words of scripts.
const DEEPEST: usize = 6;

/// The most words of an inner command that are examined: with all of them, a long line would need quadratic time and
/// memory.
const LONGEST_VIEW: usize = 40;

/// The most commands that are examined: programs that run others in many ways could be nested without end.
const MOST_VIEWS: usize = 4_000;

/// Words behind which the name of a program is the name of a package.
const INSTALLING: [&str; 10] = [
    "add",
    "info",
    "install",
    "list",
    "reinstall",
    "remove",
    "search",
    "uninstall",
    "update",
    "upgrade",
];

/// Whether a word names a program that runs code or a file.
fn is_shell_word(word: &Word) -> bool {
    word.value.as_deref().is_some_and(|value| is_interpreter(base_name(value)))
}

/// The commands that a script may run.
#[derive(Debug, Default)]
pub(crate) struct Views {
    /// Commands that it runs, or may run according to its text.
    pub(crate) certain: Vec<String>,
    /// Commands that it might run if a program does more than is known of it.
    pub(crate) possible: Vec<String>,
    /// Commands with unknown words.
    pub(crate) shapes: Vec<Shape>,
    /// The reason that it may run anything else.
    pub(crate) opaque: Option<Unclear>,
    /// The reason that it may touch paths that it does not name: words of a shell command are unknown.
    pub(crate) hides_paths: Option<Unclear>,
    /// Scripts in its words.
    pub(crate) nested: Vec<Script>,
    /// Commands that other commands run, with their directories.
    pub(crate) wrapped: Vec<Command>,
    /// Words of code that may be paths.
    pub(crate) code_words: Vec<String>,
}

/// Whether a command runs, or runs only if a program does more than is known of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Certainty {
    Certain,
    Possible,
}

/// Finds the commands that a script may run.
pub(super) struct Finder<'a> {
    home: Option<&'a Path>,
    /// The directories of the examined command.
    places: Places,
    /// The variables that the scripts around it assign.
    outer: Assigned,
    /// The standard input of the command around it: a script in its words reads it, too.
    feed: OwnFeed,
    views: Views,
    certainty: Certainty,
    depth: usize,
    /// The number of examined commands.
    seen: usize,
    /// Names of files that the script may have made, and of files that it runs.
    made: Vec<Shape>,
    run: Vec<Shape>,
    /// Names of files that it writes without git, and whether it runs git.
    written: Vec<String>,
    uses_git: bool,
}

impl<'a> Finder<'a> {
    pub(super) fn new(cwd: &Path, home: Option<&'a Path>) -> Self {
        Self {
            home,
            places: Places::at(cwd),
            outer: Assigned::default(),
            feed: OwnFeed::default(),
            views: Views::default(),
            certainty: Certainty::Certain,
            depth: 0,
            seen: 0,
            made: Vec::new(),
            run: Vec::new(),
            written: Vec::new(),
            uses_git: false,
        }
    }

    pub(super) fn finish(mut self) -> Views {
        let runs_made = self.run.iter().any(|run| self.made.iter().any(|it| it.intersects(run)));
        let is_obeyed = |name: &String| git::OBEYED_FILES.contains(&name.as_str());
        if runs_made || self.uses_git && self.written.iter().any(is_obeyed) {
            self.hidden(Unclear::MadeFile);
        }
        for texts in [&mut self.views.certain, &mut self.views.possible] {
            texts.sort_unstable();
            texts.dedup();
        }
        self.views
    }

    pub(super) fn script(&mut self, script: &Script) {
        match script.opaque {
            // The text runs as shell code, which may name any file.
            Some(why) if why.runs_text() => self.hidden(why),
            Some(why) => self.opaque(why),
            None => {}
        }
        // The inner script may see the variables that are assigned here.
        let both = self.outer.and(&script.assigned);
        let before = std::mem::replace(&mut self.outer, both);
        for command in &script.commands {
            self.command(command);
        }
        self.outer = before;
    }

    fn opaque(&mut self, why: Unclear) {
        self.views.opaque.get_or_insert(why);
    }

    /// Records that unknown shell commands run.
    fn hidden(&mut self, why: Unclear) {
        self.opaque(why);
        self.views.hides_paths.get_or_insert(why);
    }

    fn command(&mut self, command: &Command) {
        self.places = command.places.clone();
        for redirection in command.redirections.iter().filter(|redirection| redirection.writes) {
            let names = writes::last_names(&redirection.target.to_shape());
            self.written.extend(names.iter().filter_map(Shape::text));
            self.made.extend(names);
        }
        for assignment in &command.assignments {
            if let Some(value) = assignment.value.as_deref()
                && names::is_obeyed(&assignment.name)
            {
                self.text(value.trim_start_matches('!'));
            }
        }
        if !command.words.is_empty() {
            for assignment in &command.assignments {
                self.setting(assignment.value.as_deref().unwrap_or_default());
            }
        }
        if command.fed || command.input.is_some() {
            let feed = Feed { is_fed: command.fed, text: command.input.as_deref() };
            self.program(&command.words, feed);
        } else {
            let around = self.feed.clone();
            self.program(&command.words, around.borrowed());
        }
    }

    /// Examines the value of a program's variable: it may name a program to run.
    fn setting(&mut self, value: &str) {
        let before = std::mem::replace(&mut self.certainty, Certainty::Possible);
        let words: Vec<&str> = split_words(value).take(LONGEST_VIEW).collect();
        self.keep(&words);
        let runs_another = words.len() > 1
            && words.first().is_some_and(|program| {
                kind(base_name(program)).is_some_and(|kind| kind != ProgramKind::Plain)
            });
        if runs_another || value.contains(['"', '\'', '\\']) {
            let (opaque, hides_paths) = (self.views.opaque, self.views.hides_paths);
            let code_words = self.views.code_words.len();
            self.text(value);
            // It may be any text, not only a command.
            (self.views.opaque, self.views.hides_paths) = (opaque, hides_paths);
            self.views.code_words.truncate(code_words);
        }
        self.certainty = before;
    }

    /// Records a file that is run.
    fn runs(&mut self, file: &Word) {
        self.run.extend(writes::last_names(&file.to_shape()));
    }

    fn runs_any(&mut self, names: &[&str]) {
        self.run.extend(names.iter().map(|name| Shape::literal(name)));
    }

    /// Records all files that a program builds and runs, by the suffixes of their names.
    fn runs_sources(&mut self, endings: &[&str]) {
        let ending = |ending: &&str| Shape::any_then(&Shape::literal(ending));
        self.run.extend(endings.iter().map(ending));
    }

    /// Examines a text that is run as a script.
    fn text(&mut self, text: &str) {
        if self.depth >= DEEPEST {
            return self.opaque(Unclear::TooDeep);
        }
        match parse_program(text) {
            Ok(program) => {
                let script = walker::walk(&program, &self.places, self.home, &self.outer);
                let places = self.places.clone();
                self.depth += 1;
                self.script(&script);
                self.depth -= 1;
                self.places = places;
                if self.certainty == Certainty::Certain {
                    self.views.nested.push(script);
                }
            }
            Err(why) => {
                self.hidden(why);
                self.rough(text);
            }
        }
    }

    /// Examines every run of words in a text that cannot be parsed.
    pub(super) fn rough(&mut self, text: &str) {
        const MARKS: [char; 14] =
            ['"', '\'', '`', '(', ')', '{', '}', ';', '|', '&', ',', '<', '>', '\\'];
        let flat = text.replace(['"', '\'', '\\'], "");
        let spaced = text.replace(MARKS, " ");
        for reading in [flat.replace(MARKS, " "), spaced] {
            let words: Vec<&str> = split_words(&reading).collect();
            self.views.code_words.extend(words.iter().map(|word| (*word).to_owned()));
            for start in 0..words.len().min(4 * LONGEST_VIEW) {
                let view: Vec<&str> =
                    words.iter().skip(start).take(LONGEST_VIEW).copied().collect();
                self.keep(&view);
            }
        }
    }

    fn keep(&mut self, words: &[&str]) {
        let Some((program, arguments)) = words.split_first() else { return };
        self.seen += 1;
        let mut text = base_name(program).to_owned();
        for word in arguments {
            text.push(' ');
            text.push_str(word);
        }
        match self.certainty {
            Certainty::Certain => self.views.certain.push(text),
            Certainty::Possible => self.views.possible.push(text),
        }
    }

    /// Examines the words of an inner command.
    fn words(&mut self, words: &[Word], feed: Feed<'_>) {
        if self.certainty == Certainty::Certain && self.views.wrapped.len() < MOST_VIEWS {
            let (words, places) = (words.to_vec(), self.places.clone());
            self.views.wrapped.push(Command { words, places, ..Command::default() });
        }
        self.program(words, feed);
    }

    /// Examines the words of a command, and the commands that they run.
    fn program(&mut self, words: &[Word], feed: Feed<'_>) {
        let Some((first, arguments)) = words.split_first() else { return };
        if self.depth >= DEEPEST || (self.depth > 0 && self.seen > MOST_VIEWS) {
            return self.opaque(Unclear::TooDeep);
        }
        let is_known = arguments.iter().all(|word| word.value.is_some());
        let Some(program) = first.value.as_deref() else {
            // With an unknown directory it is still that program; any other program may run others.
            let Some(name) = last_name(first) else { return self.hidden(Unclear::Program) };
            // It is a file that the line may have made.
            self.run.push(Shape::literal(&name));
            let program = Word::known(&name, name.clone());
            return self.words(&[std::slice::from_ref(&program), arguments].concat(), feed);
        };
        let values: Vec<&str> = best_values(words);
        self.keep(&values);
        if !is_known {
            self.views.shapes.push(shape_of(words));
            self.substituted(words, feed);
        }
        let name = base_name(program);
        if program.contains('/') {
            self.run.push(Shape::literal(name));
        }
        if self.certainty == Certainty::Certain {
            let names = writes::made(words);
            if name == "git" {
                self.uses_git = true;
            } else {
                self.written.extend(names.iter().filter_map(Shape::text));
            }
            self.made.extend(names);
        }
        if matches!(name, "export" | "declare" | "typeset" | "readonly") {
            for (_, value) in values.iter().filter_map(|word| word.split_once('=')) {
                self.setting(value);
            }
        }
        let places = self.places.clone();
        if directories(words).is_some() {
            self.places = Places::unknown();
        }
        let around = std::mem::replace(&mut self.feed, feed.owned());
        self.depth += 1;
        self.inner(name, words, feed);
        self.depth -= 1;
        self.feed = around;
        self.places = places;
    }

    /// Examines the same words with the texts that they may have: a variable can contain an option.
    fn substituted(&mut self, words: &[Word], feed: Feed<'_>) {
        let Some(readings) = readings(words) else { return self.opaque(Unclear::Expansion) };
        let before = std::mem::replace(&mut self.certainty, Certainty::Possible);
        for words in readings {
            if self.views.wrapped.len() < MOST_VIEWS {
                let (words, places) = (words.clone(), self.places.clone());
                self.views.wrapped.push(Command { words, places, ..Command::default() });
            }
            self.program(&words, feed);
        }
        self.certainty = before;
    }

    /// Examines the commands that a program runs.
    fn inner(&mut self, name: &str, words: &[Word], feed: Feed<'_>) {
        let arguments = words.get(1..).unwrap_or_default();
        match name {
            "eval" => return self.texts(arguments),
            "trap" => return self.trap(arguments),
            "." | "source" => return self.source(arguments, feed),
            "find" | "fd" | "fdfind" => return self.find(words, feed),
            "xargs" => return self.xargs(arguments, feed),
            "make" | "gmake" => return self.make(arguments, feed),
            "patch" | "git" if name == "patch" || has_word(arguments, &["apply", "am"]) => {
                // The patch contains the paths that it changes.
                if let Some(text) = feed.text {
                    self.patch(text);
                }
                if name == "patch" {
                    return;
                }
                return self.git(words);
            }
            "git" => return self.git(words),
            "sed" | "gsed" => return self.sed(arguments),
            _ => self.obeyed(name, arguments),
        }
        if matches!(name, "npm" | "pnpm" | "yarn") {
            // A shell of their own, or a text for it.
            if arguments.iter().any(|word| is_option(word, &["--script-shell"])) {
                self.opaque(Unclear::Code);
            }
            if has_word(arguments, &["exec", "x", "dlx", "explore"]) {
                return self.everywhere(words, feed);
            }
        }
        if reads_names(name, arguments, feed.is_fed) {
            self.views.hides_paths.get_or_insert(Unclear::Code);
        }
        match kind(name) {
            Some(ProgramKind::Wrapper { valued, operands }) => {
                self.wrapper(name, words, valued, operands, feed);
            }
            Some(ProgramKind::Runner | ProgramKind::Launcher) => {
                let obeys = matches!(
                    name,
                    "newgrp"
                        | "runuser"
                        | "screen"
                        | "script"
                        | "sem"
                        | "sg"
                        | "su"
                        | "tmux"
                        | "watch"
                );
                if name == "parallel" || (obeys && feed.is_fed) {
                    self.opaque(Unclear::Code);
                }
                self.everywhere(words, feed);
            }
            Some(ProgramKind::Shell) => self.shell(arguments, feed),
            Some(ProgramKind::Interpreter(_)) if name.ends_with("awk") => self.awk(arguments, feed),
            Some(ProgramKind::Interpreter(code)) => self.interpreter(name, arguments, code, feed),
            Some(ProgramKind::Options(options)) => {
                // The first word of `tar` may be a bundle without a dash.
                let bundle = arguments.first().and_then(|word| word.value.as_deref());
                let is_bundled = name.ends_with("tar")
                    && bundle.is_some_and(|word| !word.contains('.') && word.contains(['I', 'F']));
                if is_bundled || arguments.iter().any(|word| is_option(word, options)) {
                    self.opaque(Unclear::Code);
                    self.everywhere(words, feed);
                }
            }
            Some(ProgramKind::Opaque) => {
                self.opaque(Unclear::Code);
                self.everywhere(words, feed);
            }
            Some(ProgramKind::Plain) => {}
            None => self.possibly(words, feed),
        }
    }

    /// Examines everything that a program would run if it ran its arguments.
    fn possibly(&mut self, words: &[Word], feed: Feed<'_>) {
        let before = std::mem::replace(&mut self.certainty, Certainty::Possible);
        let opaque = self.views.opaque;
        self.everywhere(words, feed);
        // An unknown program is not assumed to run a script in its arguments.
        self.views.opaque = opaque;
        if let Some(start) = words.iter().skip(1).position(is_shell_word) {
            let installs = words.get(start).is_some_and(|word| {
                word.value.as_deref().is_some_and(|value| INSTALLING.contains(&value))
            });
            // A shell among the words is assumed to run.
            if !installs && self.seen <= MOST_VIEWS {
                self.program(words.get(start + 1..).unwrap_or_default(), feed);
            }
        }
        self.certainty = before;
    }

    /// Looks for a command at every word, and for a script in every text.
    fn everywhere(&mut self, words: &[Word], feed: Feed<'_>) {
        let certain = self.certainty == Certainty::Certain;
        for start in 1..words.len().min(LONGEST_VIEW) {
            if self.seen > MOST_VIEWS {
                return self.opaque(Unclear::TooDeep);
            }
            let rest = words.get(start..).unwrap_or_default();
            let Some(value) = rest.first().and_then(|word| word.value.as_deref()) else {
                if certain && !is_value(words, start) {
                    self.opaque(Unclear::Program);
                }
                continue;
            };
            let rest = rest.get(..rest.len().min(LONGEST_VIEW)).unwrap_or_default();
            let values = best_values(rest);
            self.keep(&values);
            // `-Scommand` of `env`, `--exec=command` of many.
            let attached = [value.split_once('=').map(|(_, value)| value), attached(value)];
            for attached in attached.into_iter().flatten().filter(|attached| !attached.is_empty()) {
                let mut words = vec![attached];
                words.extend(values.iter().skip(1));
                self.keep(&words);
                if has_blank(attached) {
                    self.text(attached);
                }
            }
            if has_blank(value) {
                self.text(value.trim_start_matches('!'));
            } else if certain && !value.starts_with('-') && kind(base_name(value)).is_some() {
                self.words(rest, feed);
            }
        }
    }

    /// Examines a program that runs the words behind its options.
    fn wrapper(
        &mut self,
        name: &str,
        words: &[Word],
        valued: &str,
        operands: usize,
        feed: Feed<'_>,
    ) {
        let arguments = words.get(1..).unwrap_or_default();
        let sets = |word: &&Word| {
            let known = word.value.as_deref().and_then(|value| value.split_once('='));
            let name = word.written.split('=').next().unwrap_or_default();
            match known {
                Some((name, value)) => names::steers(name, Some(value)),
                None => word.written.contains('=') && names::steers(name, None),
            }
        };
        let takes_variables = matches!(name, "env" | "genv" | "sudo" | "doas");
        if takes_variables && arguments.iter().any(|word| sets(&word)) {
            self.opaque(Unclear::Variable);
        }
        // A text that is split into words, by its own rules.
        let splits = |word: &Word| is_option(word, &["-S", "--split-string"]);
        if matches!(name, "env" | "genv") && arguments.iter().any(splits) {
            self.hidden(Unclear::Code);
            self.rough(&best_values(arguments).join(" "));
            return self.everywhere(words, feed);
        }
        // Its output may go to a command.
        if matches!(name, "strace" | "ltrace") {
            let marks =
                |word: &Word| word.value.as_deref().is_none_or(|value| value.contains(['|', '!']));
            if arguments.iter().any(marks) {
                self.opaque(Unclear::Code);
                return self.everywhere(words, feed);
            }
        }
        match peel(arguments, valued, operands, takes_variables) {
            Some(start) => {
                self.words(arguments.get(start..).unwrap_or_default(), feed);
                // There may be fewer operands than usual, and an option may take the next word.
                let is_plain = matches!(name, "timeout" | "env" | "nice" | "command" | "builtin");
                if (operands > 0 || start > 0) && !is_plain {
                    self.possibly(words, feed);
                }
            }
            None => self.everywhere(words, feed),
        }
    }
}
