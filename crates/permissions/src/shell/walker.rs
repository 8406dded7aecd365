//! Finds every command in a syntax tree: in lists, pipes, groups, conditions, loops, and in every expansion of every
//! word.

use std::ops::Range;
use std::path::Path;

use super::builtins;
use super::expansion::{Expander, Patterns};
use super::names;
use super::places::{Ending, Places};
use super::script::{Assigned, Assignment, Command, Redirection, Script, Unclear, Word};
use super::shape::{Shape, Step};
use super::syntax::{
    AndOr, Arithmetic, AssignedValue, Compound, Item, Joint, List, Node, Operation,
    ParameterExpansion, Pipeline, Program, Redirect, RedirectKind, Separator, SyntaxAssignment,
    SyntaxWord, TestPiece, WordPart,
};
use super::wrappers::{Move, moves_shell};

/// The commands of a program, in a shell at `places`. It may run inside another script, which assigns variables.
pub(crate) fn walk(
    program: &Program,
    places: &Places,
    home: Option<&Path>,
    outer: &Assigned,
) -> Script {
    let script = walk_with(program, places, home, outer, Patterns::Usual);
    if builtins::widens_patterns(&script) {
        return walk_with(program, places, home, outer, Patterns::Wide);
    }
    script
}

fn walk_with(
    program: &Program,
    places: &Places,
    home: Option<&Path>,
    outer: &Assigned,
    patterns: Patterns,
) -> Script {
    let expander = Expander::new(program, outer, home, patterns);
    let mut walker = Walker {
        script: Script::default(),
        program,
        home,
        expander,
        fed: OwnedFeed::default(),
        has_moved_input: false,
        visited: places.clone(),
        loops: Vec::new(),
        functions: Vec::new(),
        is_moved: false,
    };
    walker.list(&program.list, places.clone());
    walker.settle(places);
    walker.script.assigned = walker.expander.variables().assigned();
    walker.script
}

struct Walker<'a> {
    script: Script,
    program: &'a Program,
    home: Option<&'a Path>,
    expander: Expander<'a>,
    /// The standard input of the current commands.
    fed: OwnedFeed,
    /// Whether the shell has replaced its own standard input.
    has_moved_input: bool,
    /// Every directory in which the shell may have been.
    visited: Places,
    /// The variables of the surrounding loops: the text tells all their values.
    loops: Vec<&'a str>,
    /// The commands of each function.
    functions: Vec<Range<usize>>,
    /// Whether a call or a signal may move the shell at any time.
    is_moved: bool,
}

/// Whether a standard input is connected, and its text where it is known.
#[derive(Clone, Default)]
struct OwnedFeed {
    is_fed: bool,
    text: Option<String>,
}

impl<'a> Walker<'a> {
    fn unclear(&mut self, why: Unclear) {
        self.script.unclear.get_or_insert(why);
    }

    /// Records that a program may run that no command names.
    fn opaque(&mut self, why: Unclear) {
        self.unclear(why);
        let before = self.script.opaque;
        // Running text as shell code counts most.
        if before.is_none_or(|before| why.runs_text() && !before.runs_text()) {
            self.script.opaque = Some(why);
        }
    }

    /// Assigns directories to commands that do not run where they are written: functions run where they are called, and
    /// may move the shell there.
    fn settle(&mut self, start: &Places) {
        if !self.is_moved && self.visited == *start {
            return;
        }
        let is_moved = self.is_moved;
        let functions = &self.functions;
        for (index, command) in self.script.commands.iter_mut().enumerate() {
            if is_moved || functions.iter().any(|range| range.contains(&index)) {
                command.places = Places::unknown();
            }
        }
    }

    fn list(&mut self, list: &'a List, places: Places) -> Places {
        let mut places = places;
        for (and_or, separator) in &list.items {
            let after = self.and_or(and_or, &places).either();
            if *separator == Separator::Sequence {
                places = after;
            }
        }
        places
    }

    /// Walks a list in a subshell with this input: its `cd` ends with it.
    fn inner_list(&mut self, list: &'a List, places: &Places, fed: OwnedFeed) {
        let before = std::mem::replace(&mut self.fed, fed);
        self.list(list, places.clone());
        self.fed = before;
    }

    fn and_or(&mut self, list: &'a AndOr, places: &Places) -> Ending {
        let mut ending = self.pipeline(&list.first, places);
        for (joint, pipeline) in &list.rest {
            ending = match joint {
                Joint::And => {
                    let then = self.pipeline(pipeline, &ending.success);
                    ending.and(then)
                }
                Joint::Or => {
                    let then = self.pipeline(pipeline, &ending.failure);
                    ending.or(then)
                }
            };
        }
        ending
    }

    fn pipeline(&mut self, pipeline: &'a Pipeline, places: &Places) -> Ending {
        let ending = match pipeline.commands.as_slice() {
            [single] => self.node(single, places),
            several => {
                let mut last = Ending::same(places.clone());
                for (index, node) in several.iter().enumerate() {
                    let fed = self.fed.clone();
                    if index > 0 {
                        self.fed = OwnedFeed { is_fed: true, text: None };
                    }
                    last = self.node(node, places);
                    self.fed = fed;
                }
                Ending::of_pipe(places, &last)
            }
        };
        if pipeline.is_negated { ending.swapped() } else { ending }
    }

    fn node(&mut self, node: &'a Node, places: &Places) -> Ending {
        match node {
            Node::Simple(items) => self.simple(items, places),
            Node::Compound(compound, redirects) => {
                let fed = self.fed.clone();
                self.group_redirections(redirects, places);
                let after = self.compound(compound, places);
                self.fed = fed;
                Ending::same(after)
            }
            Node::Function(body) => {
                self.unclear(Unclear::Function);
                // It runs where it is called, with the input of its caller.
                let fed = std::mem::replace(&mut self.fed, OwnedFeed { is_fed: true, text: None });
                let first = self.script.commands.len();
                let after = self.node(body, places).either();
                self.fed = fed;
                self.is_moved |= after != *places;
                self.functions.push(first..self.script.commands.len());
                Ending::same(places.clone())
            }
            Node::Coprocess(_, body) => {
                // Inside a substitution, bash prints the command and parses it again, differently.
                self.opaque(Unclear::Coprocess);
                let fed = std::mem::replace(&mut self.fed, OwnedFeed { is_fed: true, text: None });
                self.node(body, places);
                self.fed = fed;
                Ending::same(places.clone())
            }
        }
    }

    fn compound(&mut self, compound: &'a Compound, places: &Places) -> Places {
        match compound {
            Compound::Group(list) => self.list(list, places.clone()),
            Compound::Subshell(list) => {
                self.list(list, places.clone());
                places.clone()
            }
            Compound::If(branches, otherwise) => {
                self.condition(branches, otherwise.as_ref(), places)
            }
            Compound::For(name, words, body) => {
                if !names::is_private(name) {
                    self.unclear(Unclear::Variable);
                }
                if names::is_obeyed(name) || names::is_integer(name) {
                    self.opaque(Unclear::Variable);
                }
                for word in words.iter().flatten() {
                    self.expansions(&word.parts, places);
                }
                self.loops.push(name);
                let after = self.repeated(places, |walker| walker.list(body, places.clone()));
                self.loops.pop();
                after
            }
            Compound::While(condition, body) => self.repeated(places, |walker| {
                let after = walker.list(condition, places.clone());
                walker.list(body, after)
            }),
            Compound::Case(word, arms) => {
                self.expansions(&word.parts, places);
                let mut after = places.clone();
                for (patterns, list) in arms {
                    for pattern in patterns {
                        self.expansions(&pattern.parts, places);
                    }
                    // `;&` falls through: begin in every directory in which an earlier case may have ended.
                    let from = after.clone();
                    after = after.or(&self.list(list, from));
                }
                after
            }
            Compound::Arithmetic(arithmetic) => {
                self.arithmetic(arithmetic, places);
                places.clone()
            }
            Compound::ArithmeticFor(arithmetic, body) => {
                self.arithmetic(arithmetic, places);
                self.repeated(places, |walker| walker.list(body, places.clone()))
            }
            Compound::Test(pieces) => {
                self.test(pieces, places);
                places.clone()
            }
        }
    }

    fn condition(
        &mut self,
        branches: &'a [(List, List)],
        otherwise: Option<&'a List>,
        places: &Places,
    ) -> Places {
        let mut after = places.clone();
        for (condition, body) in branches {
            let tested = self.list(condition, after.clone());
            let done = self.list(body, tested.clone());
            after = after.or(&tested).or(&done);
        }
        if let Some(otherwise) = otherwise {
            after = after.or(&self.list(otherwise, after.clone()));
        }
        after
    }

    /// Walks a body that may run many times. If the shell moves in it, the next round begins elsewhere.
    fn repeated(&mut self, places: &Places, body: impl FnOnce(&mut Self) -> Places) -> Places {
        let first = self.script.commands.len();
        if body(self) == *places {
            return places.clone();
        }
        for command in self.script.commands.iter_mut().skip(first) {
            command.places = Places::unknown();
        }
        Places::unknown()
    }

    fn test(&mut self, pieces: &'a [TestPiece], places: &Places) {
        const ARITHMETIC: [&str; 9] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R", "-t"];
        self.tested_files(pieces, places);
        let mut is_arithmetic = false;
        for piece in pieces {
            if let TestPiece::Word(word) = piece {
                is_arithmetic |= ARITHMETIC.contains(&word.written.as_str());
                self.expansions(&word.parts, places);
            }
        }
        if !is_arithmetic {
            return;
        }
        // An index of an array is arithmetic, and arithmetic can run commands.
        self.unclear(Unclear::Arithmetic);
        let is_harmless = |piece: &TestPiece| match piece {
            TestPiece::Operator => true,
            TestPiece::Word(word) => self.is_number(word),
        };
        if !pieces.iter().all(is_harmless) {
            self.opaque(Unclear::Arithmetic);
        }
    }

    /// Walks `[[ -e file ]]`, which tests files as `test` does.
    fn tested_files(&mut self, pieces: &'a [TestPiece], places: &Places) {
        const LOOKS: [&str; 3] = ["-nt", "-ot", "-ef"];
        let is_unary =
            |text: &str| text.len() == 2 && text.starts_with('-') && !"vRztno".contains(&text[1..]);
        let words: Vec<&SyntaxWord> = pieces
            .iter()
            .filter_map(|piece| match piece {
                TestPiece::Word(word) => Some(word),
                TestPiece::Operator => None,
            })
            .collect();
        let looks =
            |word: &&SyntaxWord| is_unary(&word.written) || LOOKS.contains(&word.written.as_str());
        if !words.iter().any(looks) {
            return;
        }
        let mut command = Command { places: places.clone(), ..Command::default() };
        command.words.push(Word::known("test", "test".to_owned()));
        command.words.extend(words.into_iter().map(|word| self.expander.value(word)));
        // An unknown word only tells whether a file exists.
        if command.words.iter().all(|word| word.value.is_some()) {
            self.script.commands.push(command);
        }
    }

    /// Whether a word evaluated as arithmetic can run nothing.
    fn is_number(&self, word: &SyntaxWord) -> bool {
        let parts = word.parts.iter().map(|part| match part {
            WordPart::Bare(text) | WordPart::Quoted(text) => {
                let expression = Arithmetic { parts: vec![WordPart::Bare(text.clone())] };
                !text.contains(['[', '$', '`']) && self.expander.is_harmless(&expression)
            }
            WordPart::Parameter(expansion) => {
                matches!(expansion.operation, Operation::Length | Operation::Value)
                    && self.expander.is_harmless_parameter(expansion)
            }
            WordPart::Arithmetic(inner) => self.expander.is_harmless(inner),
            WordPart::Unknown | WordPart::Command(..) | WordPart::Process(..) => false,
        });
        parts.into_iter().all(|fine| fine)
    }

    fn simple(&mut self, items: &'a [Item], places: &Places) -> Ending {
        let mut command = Command {
            places: places.clone(),
            fed: self.fed.is_fed || self.has_moved_input,
            input: self.fed.text.clone(),
            ..Command::default()
        };
        for item in items {
            match item {
                Item::Assignment(assignment) => self.assignment(assignment, &mut command),
                Item::Word(word) => {
                    self.expansions(&word.parts, places);
                    let is_told = word.parts.iter().all(|part| self.is_told(part));
                    let words = self.expander.words(word).into_iter();
                    command.words.extend(words.map(|word| word.told(is_told)));
                }
                Item::Redirect(redirect) => self.redirect(redirect, &mut command),
            }
        }
        self.finish(command)
    }

    /// Whether the text, or the shell itself, determines all possible values of a part of a word.
    fn is_told(&self, part: &WordPart) -> bool {
        match part {
            // Arithmetic that is not plain makes the whole unclear.
            WordPart::Bare(_) | WordPart::Quoted(_) | WordPart::Arithmetic(_) => true,
            WordPart::Parameter(expansion) => {
                let name = expansion.name.as_str();
                let is_plain = matches!(expansion.operation, Operation::Value)
                    && expansion.index.is_none()
                    && !expansion.is_indirect;
                let is_home = name == "HOME" && self.expander.is_unchanged(name);
                let is_loop = self.loops.contains(&name) && !names::is_filled(name);
                is_plain && (matches!(name, "?" | "#" | "$") || is_home || is_loop)
            }
            WordPart::Unknown | WordPart::Command(..) | WordPart::Process(..) => false,
        }
    }

    /// Adds a command whose words are known, and returns the shell's directories after it.
    fn finish(&mut self, command: Command) -> Ending {
        if let Some(program) = command.words.first()
            && program.value.as_deref() != Some(&program.written)
        {
            self.unclear(Unclear::Program);
        }
        // `exec < file` changes the input of every later command.
        let is_exec = |word: &Word| word.value.as_deref() == Some("exec");
        self.has_moved_input |= command.fed && command.words.first().is_some_and(is_exec);
        if names::changes_meaning(&command) {
            self.unclear(Unclear::Builtin);
        }
        if let Some(why) = builtins::opaque(&command, &self.expander) {
            self.opaque(why);
        }
        let unsafe_name = |assignment: &Assignment| !names::is_private(&assignment.name);
        if command.words.is_empty() && command.assignments.iter().any(unsafe_name) {
            self.unclear(Unclear::Variable);
        }
        // `IFS= read -r line` sets it for that builtin alone.
        let reads = command.words.first().is_some_and(|word| word.value.as_deref() == Some("read"));
        let steers = |assignment: &Assignment| {
            names::steers(&assignment.name, assignment.value.as_deref())
                && !(reads && assignment.name == "IFS")
        };
        if command.assignments.iter().any(steers) {
            self.opaque(Unclear::Variable);
        }
        let ending = self.ending(&command);
        self.script.commands.push(command);
        ending
    }

    fn ending(&mut self, command: &Command) -> Ending {
        let here = command.places.clone();
        let success = match self.moves(command) {
            Move::None => return Ending::same(here),
            Move::Somewhere => Places::unknown(),
            Move::To(directories) => here.enter_any(&directories),
            Move::Back => self.visited.clone(),
        };
        self.visited = self.visited.or(&success);
        Ending { success, failure: here }
    }

    fn moves(&mut self, command: &Command) -> Move {
        let program =
            builtins::inner(&command.words).first().and_then(|word| word.value.as_deref());
        // Text that the shell runs may move it.
        let mut texts = command.words.iter().skip(1);
        let may_move = |word: &Word| {
            word.value.as_deref().is_none_or(|text| {
                ["cd", "pushd", "popd"].iter().any(|program| text.contains(program))
            })
        };
        match program {
            Some("eval") if texts.any(may_move) => return Move::Somewhere,
            Some("trap") if texts.any(may_move) => self.is_moved = true,
            _ => {}
        }
        let found = moves_shell(command, self.home);
        let obeyed: &[&str] = match &found {
            Move::None | Move::Somewhere => &[],
            Move::To(_) => &["CDPATH", "HOME"],
            Move::Back => &["DIRSTACK", "OLDPWD"],
        };
        // Before its first move, the previous directory is not known.
        let is_lost = found == Move::Back && self.visited == command.places;
        if is_lost || !obeyed.iter().all(|name| self.expander.is_unchanged(name)) {
            return Move::Somewhere;
        }
        found
    }

    fn assignment(&mut self, assignment: &'a SyntaxAssignment, command: &mut Command) {
        let places = command.places.clone();
        if let Some(index) = &assignment.index {
            self.arithmetic(index, &places);
            self.unclear(Unclear::Arithmetic);
        }
        if names::is_integer(&assignment.name) && !self.is_number_value(&assignment.value) {
            self.opaque(Unclear::Arithmetic);
        }
        let mut shape = None;
        let value = match &assignment.value {
            AssignedValue::Scalar(word) => {
                self.expansions(&word.parts, &places);
                let value = self.expander.value(word);
                shape = Some(value.to_shape());
                value.value.filter(|_| assignment.index.is_none())
            }
            AssignedValue::Array(elements) => {
                self.unclear(Unclear::Arithmetic);
                for (index, word) in elements {
                    if let Some(index) = index {
                        self.arithmetic(index, &places);
                    }
                    self.expansions(&word.parts, &places);
                }
                None
            }
        };
        if command.words.is_empty() {
            let value = value.filter(|_| !assignment.appends);
            command.assignments.push(Assignment { name: assignment.name.clone(), value });
            return;
        }
        // An argument of `declare` or `export`.
        if names::is_obeyed(&assignment.name) {
            self.opaque(Unclear::Variable);
        }
        command.words.push(match value {
            Some(value) => {
                let text = format!("{}={value}", assignment.name);
                Word::known(&assignment.written, text)
            }
            None => match shape {
                Some(shape) => {
                    let mut text = Shape::literal(&format!("{}=", assignment.name));
                    text.append(&shape);
                    Word::shaped(&assignment.written, text, false)
                }
                // The name is known, and the value is a list that the shell has parsed.
                None => Word::shaped(
                    &assignment.written,
                    Shape::from_steps(
                        &[
                            Shape::literal(&format!("{}=", assignment.name)).steps(),
                            &[Step::Number],
                        ]
                        .concat(),
                    ),
                    false,
                ),
            },
        });
    }

    /// Whether an assigned value can run nothing if it is computed.
    fn is_number_value(&self, value: &AssignedValue) -> bool {
        matches!(value, AssignedValue::Scalar(word) if self.is_number(word))
    }

    /// Walks the redirections of a group: no words, but opened files.
    fn group_redirections(&mut self, redirects: &'a [Redirect], places: &Places) {
        if redirects.is_empty() {
            return;
        }
        let mut command = Command { places: places.clone(), ..Command::default() };
        for redirect in redirects {
            self.redirect(redirect, &mut command);
        }
        if command.fed {
            self.fed = OwnedFeed { is_fed: true, text: command.input.clone() };
        }
        self.finish(command);
    }

    fn redirect(&mut self, redirect: &'a Redirect, command: &mut Command) {
        let places = command.places.clone();
        if let Some(variable) = &redirect.variable {
            if !names::is_private(variable) {
                self.unclear(Unclear::Variable);
            }
            if names::is_obeyed(variable) {
                self.opaque(Unclear::Variable);
            }
        }
        let mut feed = |text: Option<String>| {
            command.input = text.filter(|_| redirect.is_input);
            command.fed = true;
        };
        let (word, writes) = match &redirect.kind {
            RedirectKind::Document(number) => {
                let program = self.program;
                let Some(document) = program.documents.get(*number) else { return };
                feed(self.expander.text(&document.parts));
                self.expansions(&document.parts, &places);
                return;
            }
            RedirectKind::HereString(word) => {
                feed(self.expander.value(word).value.map(|text| text + "\n"));
                self.expansions(&word.parts, &places);
                return;
            }
            RedirectKind::Read(word) => (word, false),
            RedirectKind::Write(word)
            | RedirectKind::ReadWrite(word)
            | RedirectKind::Duplicate(word) => (word, true),
        };
        if !matches!(redirect.kind, RedirectKind::Write(_)) {
            feed(None);
        }
        self.expansions(&word.parts, &places);
        let target = match self.expander.words(word).as_slice() {
            [single] => single.clone(),
            _ => Word::unknown(&word.written),
        };
        if matches!(redirect.kind, RedirectKind::Duplicate(_)) {
            if is_descriptor(&target) {
                return;
            }
            // A file name here is expanded a second time, without its quotes.
            let special = |c: char| "$`*?[~{\\'\" \t\n".contains(c);
            let shape = target.to_shape();
            if !shape.is_number() && shape.may_have(special) {
                self.opaque(Unclear::Expansion);
            }
        }
        // The process behind `> >(…)` is walked as an expansion.
        if matches!(word.parts.as_slice(), [WordPart::Process(..)]) {
            return;
        }
        // `>&file` is `&>file`.
        command.redirections.push(Redirection { writes, target });
    }

    /// Walks the commands that run while these parts are expanded.
    fn expansions(&mut self, parts: &'a [WordPart], places: &Places) {
        for part in parts {
            match part {
                WordPart::Bare(_) | WordPart::Quoted(_) | WordPart::Unknown => {}
                // It has the same standard input.
                WordPart::Command(list, _) | WordPart::Process(list, false) => {
                    self.inner_list(list, places, self.fed.clone());
                }
                WordPart::Process(list, true) => {
                    self.inner_list(list, places, OwnedFeed { is_fed: true, text: None });
                }
                WordPart::Arithmetic(arithmetic) => self.arithmetic(arithmetic, places),
                WordPart::Parameter(expansion) => self.parameter(expansion, places),
            }
        }
    }

    /// Reading a variable is harmless; anything more may run a program or set a variable.
    fn parameter(&mut self, expansion: &'a ParameterExpansion, places: &Places) {
        if let Some(index) = &expansion.index {
            self.unclear(Unclear::Expansion);
            self.arithmetic(index, places);
        }
        if expansion.is_indirect {
            self.unclear(Unclear::Expansion);
            if !self.expander.is_harmless_parameter(expansion) {
                self.opaque(Unclear::Expansion);
            }
        }
        match &expansion.operation {
            Operation::Value | Operation::Length | Operation::Names => {}
            Operation::Default(word) | Operation::Alternative(word) => {
                self.expansions(&word.parts, places);
            }
            Operation::Change(word) => {
                self.unclear(Unclear::Expansion);
                self.expansions(&word.parts, places);
            }
            Operation::Assign(word) => {
                self.unclear(Unclear::Expansion);
                self.expansions(&word.parts, places);
                if names::is_obeyed(&expansion.name) || names::is_integer(&expansion.name) {
                    self.opaque(Unclear::Variable);
                }
            }
            Operation::Slice(arithmetic) => {
                self.unclear(Unclear::Expansion);
                self.arithmetic(arithmetic, places);
            }
            // The value is expanded as a prompt, with the commands in it.
            Operation::Transform('P') => self.opaque(Unclear::Expansion),
            Operation::Transform(_) => self.unclear(Unclear::Expansion),
        }
    }

    fn arithmetic(&mut self, arithmetic: &'a Arithmetic, places: &Places) {
        let plain = |part: &WordPart| {
            matches!(part, WordPart::Bare(text)
                if text.chars().all(|c| c.is_ascii_digit() || " \t+-*/%()".contains(c)))
        };
        if arithmetic.parts.iter().all(plain) {
            return;
        }
        self.unclear(Unclear::Arithmetic);
        if !self.expander.is_harmless(arithmetic) {
            self.opaque(Unclear::Arithmetic);
        }
        for name in arithmetic.names() {
            if names::is_obeyed(name) {
                self.opaque(Unclear::Variable);
            }
        }
        self.expansions(&arithmetic.parts, places);
    }
}

/// Whether the target of `>&` is a descriptor, closed or moved.
fn is_descriptor(target: &Word) -> bool {
    target.value.as_deref().is_some_and(|text| {
        let digits = text.strip_suffix('-').unwrap_or(text);
        !text.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}
