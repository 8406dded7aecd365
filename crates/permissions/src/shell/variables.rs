//! The possible values of a script's variables.
//!
//! Every assignment anywhere in the script counts, in any order: the values of a variable are all that the script ever
//! assigns to it, and no value.

use std::collections::HashMap;

use super::builtins::{self, GivenArgument};
use super::characters::is_name;
use super::script::Assigned;
use super::syntax::{
    Arithmetic, AssignedValue, Compound, Item, List, Node, Operation, Program, Redirect,
    RedirectKind, SyntaxAssignment, SyntaxWord, TestPiece, WordPart,
};

/// The source of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    /// The word is assigned.
    Word(&'a SyntaxWord),
    /// The word is expanded, also to names of files, and each result assigned.
    Results(&'a SyntaxWord),
    Number,
    Unknown,
}

/// The assignments of a script.
#[derive(Debug, Default)]
pub(super) struct Variables<'a> {
    sources: HashMap<&'a str, Vec<Source<'a>>>,
    /// Whether the script may assign variables that cannot be named.
    is_lost: bool,
    /// Whether the script runs a file, or text at another time, which may assign any variable.
    runs_text: bool,
    /// The number of functions: a program may be one of them.
    functions: usize,
    /// Variables that may be arrays.
    arrays: Vec<&'a str>,
    /// Whether text is evaluated, which may make any variable an array.
    evaluates: bool,
}

/// Builtins that run a file, or text at another time: they may assign any variable.
const LOSING: [&str; 3] = [".", "source", "trap"];

impl<'a> Variables<'a> {
    /// The assignments of a program inside another script, which may also assign its variables.
    pub(super) fn of(program: &'a Program, outer: &'a Assigned) -> Self {
        let mut variables = Self { runs_text: outer.is_lost, ..Self::default() };
        variables.list(&program.list);
        for document in &program.documents {
            variables.parts(&document.parts);
        }
        for name in &outer.names {
            variables.add(name, Source::Unknown);
        }
        variables
    }

    /// The assigned variables.
    pub(super) fn assigned(&self) -> Assigned {
        let names = self.sources.keys().map(|name| (*name).to_owned()).collect();
        Assigned { names, is_lost: self.is_lost || self.runs_text }
    }

    /// The values assigned to a variable; `None` if they are not known.
    pub(super) fn sources(&self, name: &str) -> Option<&[Source<'a>]> {
        if self.is_lost || self.runs_text {
            return None;
        }
        Some(self.sources.get(name).map(Vec::as_slice).unwrap_or_default())
    }

    /// Whether the text itself may assign a variable, apart from files that it runs.
    pub(super) fn assigns(&self, name: &str) -> bool {
        self.is_lost || self.sources.contains_key(name)
    }

    /// Whether every program name means that program, as far as the text tells.
    pub(super) fn has_plain_programs(&self) -> bool {
        self.functions == 0 && !self.is_lost && !self.runs_text
    }

    fn add(&mut self, name: &'a str, source: Source<'a>) {
        self.sources.entry(name).or_default().push(source);
    }

    fn list(&mut self, list: &'a List) {
        for (and_or, _) in &list.items {
            let pipelines = std::iter::once(&and_or.first);
            for pipeline in pipelines.chain(and_or.rest.iter().map(|(_, pipeline)| pipeline)) {
                pipeline.commands.iter().for_each(|node| self.node(node));
            }
        }
    }

    fn node(&mut self, node: &'a Node) {
        match node {
            Node::Simple(items) => self.simple(items),
            Node::Compound(compound, redirects) => {
                self.compound(compound);
                for redirect in redirects {
                    self.redirect(redirect);
                }
            }
            Node::Function(body) => {
                self.functions += 1;
                self.node(body);
            }
            Node::Coprocess(name, body) => {
                self.add(name.as_deref().unwrap_or("COPROC"), Source::Number);
                self.node(body);
            }
        }
    }

    fn compound(&mut self, compound: &'a Compound) {
        match compound {
            Compound::Group(list) | Compound::Subshell(list) => self.list(list),
            Compound::If(branches, otherwise) => {
                for (condition, body) in branches {
                    self.list(condition);
                    self.list(body);
                }
                if let Some(list) = otherwise {
                    self.list(list);
                }
            }
            Compound::While(condition, body) => {
                self.list(condition);
                self.list(body);
            }
            Compound::For(name, words, body) => {
                match words {
                    Some(words) => {
                        for word in words {
                            self.add(name, Source::Results(word));
                            self.parts(&word.parts);
                        }
                        // `select` assigns the input to another variable.
                        self.add("REPLY", Source::Unknown);
                    }
                    None => self.add(name, Source::Unknown),
                }
                self.list(body);
            }
            Compound::ArithmeticFor(arithmetic, body) => {
                self.arithmetic(arithmetic);
                self.list(body);
            }
            Compound::Case(word, arms) => {
                self.parts(&word.parts);
                for (patterns, list) in arms {
                    for pattern in patterns {
                        self.parts(&pattern.parts);
                    }
                    self.list(list);
                }
            }
            Compound::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
            Compound::Test(pieces) => {
                for piece in pieces {
                    if let TestPiece::Word(word) = piece {
                        self.parts(&word.parts);
                        // `[[ x=3 -eq 3 ]]` assigns.
                        let compares = ["=", "==", "!=", "=~"].contains(&word.written.as_str());
                        self.is_lost |= word.written.contains('=') && !compares;
                    }
                }
                self.add("BASH_REMATCH", Source::Unknown);
            }
        }
    }

    fn simple(&mut self, items: &'a [Item]) {
        let mut words: Vec<&SyntaxWord> = Vec::new();
        for item in items {
            match item {
                Item::Assignment(assignment) => self.assignment(assignment),
                Item::Word(word) => {
                    self.parts(&word.parts);
                    words.push(word);
                }
                Item::Redirect(redirect) => self.redirect(redirect),
            }
        }
        // `command read x` reads x.
        let skipped = words.iter().take_while(|word| {
            matches!(plain(word), Some("command" | "builtin")) || word.written.starts_with('-')
        });
        let skipped = skipped.count();
        let Some((program, arguments)) = words.get(skipped..).and_then(<[_]>::split_first) else {
            return;
        };
        match plain(program) {
            // An unknown program may be one of these.
            None => self.is_lost = true,
            Some("eval") => {
                self.is_lost = true;
                self.evaluates = true;
            }
            Some(name) if LOSING.contains(&name) => self.runs_text = true,
            Some("let") => {
                for argument in arguments {
                    match plain(argument) {
                        Some(text) => {
                            for name in names_in(text) {
                                self.add(name, Source::Number);
                            }
                        }
                        None => self.is_lost = true,
                    }
                }
            }
            Some(name) if builtins::names_variables(name) => self.builtin(name, arguments),
            Some(_) => {}
        }
    }

    /// Adds the assignments of a builtin to variables that its arguments name.
    fn builtin(&mut self, program: &str, arguments: &[&'a SyntaxWord]) {
        for default in ["REPLY", "MAPFILE", "OPTARG", "OPTIND"] {
            self.add(default, Source::Unknown);
        }
        let words: Vec<GivenArgument<'a>> = arguments.iter().map(|word| given(word)).collect();
        let Some(told) = builtins::told(program, &words) else {
            self.is_lost = true;
            return;
        };
        let fills_array = matches!(program, "mapfile" | "readarray") || told.flags.contains('a');
        for name in told.variables {
            let name = name.split('[').next().unwrap_or(name);
            self.add(name, Source::Unknown);
            if fills_array {
                self.arrays.push(name);
            }
        }
        if !builtins::declares(program) {
            // `%n` of `printf` assigns to an argument.
            let format = arguments.get(told.operands).and_then(|word| plain(word));
            self.is_lost |= program == "printf" && format.is_some_and(counts);
            return;
        }
        // A name reference, or a value that is changed.
        self.is_lost |= told.flags.contains(['n', 'i', 'u', 'l', 'c']);
        for argument in arguments.iter().skip(told.operands) {
            let start = match argument.parts.first() {
                Some(WordPart::Bare(text) | WordPart::Quoted(text)) => text.as_str(),
                _ => "",
            };
            let name = start.split(['=', '+', '[']).next().unwrap_or_default();
            let has_value = start.contains('=');
            if !is_name(name) || (!has_value && plain(argument).is_none()) {
                self.is_lost = true;
                continue;
            }
            if has_value {
                self.add(name, Source::Unknown);
            }
            if told.flags.contains(['a', 'A']) {
                self.arrays.push(name);
            }
        }
    }

    /// Whether a variable may be an array.
    pub(super) fn may_be_array(&self, name: &str) -> bool {
        self.evaluates || self.arrays.contains(&name)
    }

    fn assignment(&mut self, assignment: &'a SyntaxAssignment) {
        let name = assignment.name.as_str();
        if let Some(index) = &assignment.index {
            self.arithmetic(index);
            self.arrays.push(name);
        }
        match &assignment.value {
            AssignedValue::Scalar(word) => {
                let source = if assignment.appends { Source::Unknown } else { Source::Word(word) };
                self.add(name, source);
                self.parts(&word.parts);
            }
            AssignedValue::Array(elements) => {
                self.add(name, Source::Number);
                self.arrays.push(name);
                for (index, word) in elements {
                    if let Some(index) = index {
                        self.arithmetic(index);
                    }
                    self.add(name, Source::Results(word));
                    self.parts(&word.parts);
                }
            }
        }
    }

    fn redirect(&mut self, redirect: &'a Redirect) {
        if let Some(variable) = &redirect.variable {
            self.add(variable, Source::Number);
        }
        match &redirect.kind {
            RedirectKind::Read(word)
            | RedirectKind::Write(word)
            | RedirectKind::ReadWrite(word)
            | RedirectKind::Duplicate(word)
            | RedirectKind::HereString(word) => self.parts(&word.parts),
            RedirectKind::Document(_) => {}
        }
    }

    fn arithmetic(&mut self, arithmetic: &'a Arithmetic) {
        self.parts(&arithmetic.parts);
        // Any name in it may be assigned, and then has a number.
        for name in arithmetic.names() {
            self.add(name, Source::Number);
        }
    }

    fn parts(&mut self, parts: &'a [WordPart]) {
        for part in parts {
            match part {
                WordPart::Bare(_) | WordPart::Quoted(_) | WordPart::Unknown => {}
                WordPart::Command(list, _) | WordPart::Process(list, _) => self.list(list),
                WordPart::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
                WordPart::Parameter(expansion) => {
                    expansion.index.iter().for_each(|index| self.arithmetic(index));
                    match &expansion.operation {
                        Operation::Assign(word) => {
                            self.is_lost |= expansion.is_indirect;
                            self.add(&expansion.name, Source::Word(word));
                            self.parts(&word.parts);
                        }
                        Operation::Default(word)
                        | Operation::Alternative(word)
                        | Operation::Change(word) => self.parts(&word.parts),
                        Operation::Slice(arithmetic) => self.arithmetic(arithmetic),
                        Operation::Value
                        | Operation::Length
                        | Operation::Names
                        | Operation::Transform(_) => {}
                    }
                }
            }
        }
    }
}

/// The text of a word without quotes and expansions.
fn plain(word: &SyntaxWord) -> Option<&str> {
    match word.parts.as_slice() {
        [WordPart::Quoted(text)] => Some(text),
        // A pattern or braces expand to other words.
        [WordPart::Bare(text)] => {
            (text == "[" || !text.contains(['*', '?', '[', '{', '~'])).then_some(text.as_str())
        }
        _ => None,
    }
}

/// A word for the argument parser of a builtin.
fn given(word: &SyntaxWord) -> GivenArgument<'_> {
    let value = plain(word);
    let is_number = |part: &WordPart| match part {
        WordPart::Arithmetic(_) => true,
        WordPart::Parameter(expansion) => {
            matches!(expansion.operation, Operation::Length)
                || matches!(expansion.name.as_str(), "?" | "#" | "$" | "!")
                    && matches!(expansion.operation, Operation::Value)
        }
        _ => false,
    };
    let is_whole = |part: &WordPart| match part {
        WordPart::Quoted(_) | WordPart::Unknown => true,
        WordPart::Bare(text) => !text.contains(['*', '?', '[', '{', '~']),
        WordPart::Parameter(expansion) => {
            expansion.is_quoted && expansion.name != "@" && expansion.index.is_none()
        }
        WordPart::Command(_, is_quoted) => *is_quoted,
        WordPart::Arithmetic(_) | WordPart::Process(..) => false,
    };
    let starts_plainly = match word.parts.first() {
        Some(WordPart::Bare(text) | WordPart::Quoted(text)) => {
            !text.is_empty() && !text.starts_with(['-', '+', '{', '[', '*', '?'])
        }
        _ => false,
    };
    let is_number = word.parts.iter().all(is_number);
    GivenArgument {
        value,
        may_be_option: value.is_none() && !is_number && !starts_plainly,
        splits: value.is_none() && !is_number && !word.parts.iter().all(is_whole),
    }
}

/// The variables that a text names as arithmetic.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| is_name(word))
}

/// Whether a format of `printf` has `%n`, which assigns to an argument.
fn counts(format: &str) -> bool {
    format.split('%').skip(1).any(|conversion| {
        let is_modifier = |c: char| c.is_ascii_digit() || "-+ #'.*$hlLjzt".contains(c);
        conversion.trim_start_matches(is_modifier).starts_with('n')
    })
}
