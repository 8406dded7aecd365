//! Finds every command in a parsed command line: in lists, pipes, groups, conditions, loops, and in
//! every expansion of every word.

use std::path::Path;

use brush_parser::ParserOptions;
use brush_parser::ast;

use super::literal::{Reading, is_plain_arithmetic};
use super::names;
use super::parse::parse_program;
use super::places::{Ending, Places};
use super::script::{Assignment, Command, Redirection, Script, Unclear, Word};
use super::wrappers::{Move, moves_shell};

/// Command lines inside command lines, at most.
const DEEPEST: usize = 12;

pub(crate) struct Walker<'a> {
    pub(crate) script: Script,
    /// The program words as they are written, to compare with another grammar's.
    pub(crate) programs: Vec<String>,
    home: Option<&'a Path>,
    options: &'a ParserOptions,
    depth: usize,
    /// Whether something is written to the standard input of the commands being walked.
    fed: bool,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(home: Option<&'a Path>, options: &'a ParserOptions) -> Self {
        Self {
            script: Script::default(),
            programs: Vec::new(),
            home,
            options,
            depth: 0,
            fed: false,
        }
    }

    fn unclear(&mut self, why: Unclear) {
        self.script.unclear.get_or_insert(why);
    }

    pub(crate) fn program(&mut self, program: &ast::Program, places: Places) {
        let mut places = places;
        for list in &program.complete_commands {
            places = self.list(list, places);
        }
    }

    /// A command line inside a word. What it does to the shell's directory ends with it.
    fn text(&mut self, text: &str, places: &Places) {
        if self.depth >= DEEPEST {
            return self.unclear(Unclear::TooDeep);
        }
        match parse_program(text, self.options) {
            Ok(program) => {
                self.depth += 1;
                self.program(&program, places.clone());
                self.depth -= 1;
            }
            Err(why) => self.unclear(why),
        }
    }

    fn list(&mut self, list: &ast::CompoundList, places: Places) -> Places {
        let mut places = places;
        for ast::CompoundListItem(item, separator) in &list.0 {
            let after = self.and_or(item, &places).either();
            if !matches!(separator, ast::SeparatorOperator::Async) {
                places = after;
            }
        }
        places
    }

    fn and_or(&mut self, list: &ast::AndOrList, places: &Places) -> Ending {
        let mut ending = self.pipeline(&list.first, places);
        for next in &list.additional {
            ending = match next {
                ast::AndOr::And(pipeline) => {
                    let then = self.pipeline(pipeline, &ending.success);
                    ending.and(then)
                }
                ast::AndOr::Or(pipeline) => {
                    let then = self.pipeline(pipeline, &ending.failure);
                    ending.or(then)
                }
            };
        }
        ending
    }

    fn pipeline(&mut self, pipeline: &ast::Pipeline, places: &Places) -> Ending {
        let ending = match pipeline.seq.as_slice() {
            [single] => self.command(single, places),
            several => {
                let mut last = Ending::same(places.clone());
                for (index, command) in several.iter().enumerate() {
                    let fed = self.fed;
                    self.fed = fed || index > 0;
                    last = self.command(command, places);
                    self.fed = fed;
                }
                Ending::of_pipe(places, &last)
            }
        };
        if pipeline.bang { ending.swapped() } else { ending }
    }

    fn command(&mut self, command: &ast::Command, places: &Places) -> Ending {
        match command {
            ast::Command::Simple(simple) => self.simple(simple, places),
            ast::Command::Compound(compound, redirections) => {
                let fed = self.fed;
                self.group_redirections(redirections.as_ref(), places);
                let after = self.compound(compound, places);
                self.fed = fed;
                Ending::same(after)
            }
            ast::Command::Function(function) => {
                self.unclear(Unclear::Function);
                Ending::same(self.compound(&function.body.0, places))
            }
            ast::Command::ExtendedTest(test, redirections) => {
                self.group_redirections(redirections.as_ref(), places);
                self.test(&test.expr, places);
                Ending::same(places.clone())
            }
        }
    }

    fn compound(&mut self, compound: &ast::CompoundCommand, places: &Places) -> Places {
        match compound {
            ast::CompoundCommand::BraceGroup(group) => self.list(&group.list, places.clone()),
            ast::CompoundCommand::Subshell(subshell) => {
                self.list(&subshell.list, places.clone());
                places.clone()
            }
            ast::CompoundCommand::IfClause(clause) => self.condition(clause, places),
            ast::CompoundCommand::ForClause(clause) => {
                if !names::is_private(&clause.variable_name) {
                    self.unclear(Unclear::Variable);
                }
                for word in clause.values.iter().flatten() {
                    self.word(word, places);
                }
                self.repeated(places, |walker| walker.list(&clause.body.list, places.clone()))
            }
            ast::CompoundCommand::WhileClause(clause)
            | ast::CompoundCommand::UntilClause(clause) => self.repeated(places, |walker| {
                let after = walker.list(&clause.0, places.clone());
                walker.list(&clause.1.list, after)
            }),
            ast::CompoundCommand::CaseClause(clause) => {
                self.word(&clause.value, places);
                let mut after = places.clone();
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.word(pattern, places);
                    }
                    if let Some(list) = &case.cmd {
                        // `;&` falls through: begin wherever an earlier case may have ended.
                        let from = after.clone();
                        after = after.or(&self.list(list, from));
                    }
                }
                after
            }
            ast::CompoundCommand::Arithmetic(arithmetic) => {
                if !is_plain_arithmetic(&arithmetic.expr.value) {
                    self.unclear(Unclear::Arithmetic);
                }
                places.clone()
            }
            ast::CompoundCommand::ArithmeticForClause(clause) => {
                self.unclear(Unclear::Arithmetic);
                self.repeated(places, |walker| walker.list(&clause.body.list, places.clone()))
            }
            ast::CompoundCommand::Coprocess(coprocess) => {
                self.unclear(Unclear::Coprocess);
                self.command(&coprocess.body, places);
                places.clone()
            }
        }
    }

    fn condition(&mut self, clause: &ast::IfClauseCommand, places: &Places) -> Places {
        let tested = self.list(&clause.condition, places.clone());
        let mut after = self.list(&clause.then, tested.clone()).or(&tested);
        for branch in clause.elses.iter().flatten() {
            let start = match &branch.condition {
                Some(condition) => self.list(condition, after.clone()),
                None => after.clone(),
            };
            after = after.or(&self.list(&branch.body, start));
        }
        after
    }

    /// Walks what may run many times. If the shell moves in it, the next round begins elsewhere.
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

    fn test(&mut self, expression: &ast::ExtendedTestExpr, places: &Places) {
        use ast::{BinaryPredicate, ExtendedTestExpr, UnaryPredicate};
        match expression {
            ExtendedTestExpr::And(left, right) | ExtendedTestExpr::Or(left, right) => {
                self.test(left, places);
                self.test(right, places);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
                self.test(inner, places);
            }
            ExtendedTestExpr::UnaryTest(predicate, word) => {
                // An index of an array is arithmetic, and arithmetic can run commands.
                if matches!(
                    predicate,
                    UnaryPredicate::ShellVariableIsSetAndAssigned
                        | UnaryPredicate::ShellVariableIsSetAndNameRef
                        | UnaryPredicate::FdIsOpenTerminal
                ) {
                    self.unclear(Unclear::Arithmetic);
                }
                self.word(word, places);
            }
            ExtendedTestExpr::BinaryTest(predicate, left, right) => {
                if matches!(
                    predicate,
                    BinaryPredicate::ArithmeticEqualTo
                        | BinaryPredicate::ArithmeticNotEqualTo
                        | BinaryPredicate::ArithmeticLessThan
                        | BinaryPredicate::ArithmeticLessThanOrEqualTo
                        | BinaryPredicate::ArithmeticGreaterThan
                        | BinaryPredicate::ArithmeticGreaterThanOrEqualTo
                ) {
                    self.unclear(Unclear::Arithmetic);
                }
                self.word(left, places);
                self.word(right, places);
            }
        }
    }

    fn simple(&mut self, simple: &ast::SimpleCommand, places: &Places) -> Ending {
        let mut command = Command { places: places.clone(), fed: self.fed, ..Command::default() };
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            self.item(item, true, &mut command);
        }
        if let Some(word) = &simple.word_or_name {
            self.programs.push(word.value.clone());
            let word = self.word(word, places);
            command.words.push(word);
        }
        for item in simple.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.item(item, false, &mut command);
        }
        self.finish(command)
    }

    /// Takes in a command whose words are known, and says where it leaves the shell.
    pub(super) fn finish(&mut self, command: Command) -> Ending {
        if let Some(program) = command.words.first()
            && program.value.as_deref() != Some(&program.written)
        {
            self.unclear(Unclear::Program);
        }
        if names::changes_meaning(&command) {
            self.unclear(Unclear::Builtin);
        }
        let obeyed = |assignment: &Assignment| !names::is_private(&assignment.name);
        if command.words.is_empty() && command.assignments.iter().any(obeyed) {
            self.unclear(Unclear::Variable);
        }
        let ending = self.ending(&command);
        self.script.commands.push(command);
        ending
    }

    fn ending(&self, command: &Command) -> Ending {
        let here = command.places.clone();
        match moves_shell(command, self.home) {
            Move::None => Ending::same(here),
            Move::Somewhere => Ending { success: Places::unknown(), failure: here },
            Move::To(directory) => Ending { success: here.enter(&directory), failure: here },
        }
    }

    fn item(
        &mut self,
        item: &ast::CommandPrefixOrSuffixItem,
        is_prefix: bool,
        command: &mut Command,
    ) {
        let places = command.places.clone();
        match item {
            ast::CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                self.redirect(redirect, command);
            }
            ast::CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) if is_prefix => {
                self.assignment(assignment, word, command);
            }
            ast::CommandPrefixOrSuffixItem::Word(word)
            | ast::CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                let word = self.word(word, &places);
                command.words.push(word);
            }
            ast::CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                self.list(&subshell.list, places);
                command.words.push(Word::unknown("<()"));
            }
        }
    }

    fn assignment(
        &mut self,
        assignment: &ast::Assignment,
        word: &ast::Word,
        command: &mut Command,
    ) {
        let places = command.places.clone();
        let scalar = match (&assignment.name, &assignment.value) {
            (ast::AssignmentName::VariableName(_), ast::AssignmentValue::Scalar(value)) => {
                Some(value)
            }
            _ => None,
        };
        // Indexes are arithmetic, and arithmetic can run commands.
        if scalar.is_none() {
            self.unclear(Unclear::Arithmetic);
        }
        let value = self.word(scalar.unwrap_or(word), &places).value.filter(|_| scalar.is_some());
        let name = match &assignment.name {
            ast::AssignmentName::VariableName(name)
            | ast::AssignmentName::ArrayElementName(name, _) => name.clone(),
        };
        command.assignments.push(Assignment { name, value });
    }

    /// Redirections of a group: nobody's words, but files that are opened.
    fn group_redirections(&mut self, redirections: Option<&ast::RedirectList>, places: &Places) {
        let Some(redirections) = redirections else { return };
        let mut command = Command { places: places.clone(), ..Command::default() };
        for redirect in &redirections.0 {
            self.redirect(redirect, &mut command);
        }
        self.fed |= command.fed;
        self.finish(command);
    }

    fn redirect(&mut self, redirect: &ast::IoRedirect, command: &mut Command) {
        let places = command.places.clone();
        match redirect {
            ast::IoRedirect::File(_, kind, target) => self.file(kind, target, command),
            ast::IoRedirect::HereDocument(_, document) => {
                command.fed = true;
                if document.requires_expansion {
                    let reading = Reading::here_document(&document.doc.value, self.options);
                    self.take_in(&reading, &places);
                }
            }
            ast::IoRedirect::HereString(_, word) => {
                command.fed = true;
                self.word(word, &places);
            }
            ast::IoRedirect::OutputAndError(word, _) => {
                let target = self.word(word, &places);
                command.redirections.push(Redirection { writes: true, target });
            }
        }
    }

    fn file(
        &mut self,
        kind: &ast::IoFileRedirectKind,
        target: &ast::IoFileRedirectTarget,
        command: &mut Command,
    ) {
        use ast::{IoFileRedirectKind, IoFileRedirectTarget};
        let places = command.places.clone();
        let reads = matches!(
            kind,
            IoFileRedirectKind::Read
                | IoFileRedirectKind::ReadAndWrite
                | IoFileRedirectKind::DuplicateInput
        );
        command.fed |= reads;
        match target {
            IoFileRedirectTarget::Fd(_) => {}
            IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                self.list(&subshell.list, places);
            }
            IoFileRedirectTarget::Filename(word) => {
                let target = self.word(word, &places);
                let writes = !matches!(kind, IoFileRedirectKind::Read);
                command.redirections.push(Redirection { writes, target });
            }
            IoFileRedirectTarget::Duplicate(word) => {
                let target = self.word(word, &places);
                let is_descriptor = target.value.as_deref().is_some_and(|text| {
                    let digits = text.strip_suffix('-').unwrap_or(text);
                    digits.chars().all(|c| c.is_ascii_digit())
                });
                if !is_descriptor {
                    // `>&file` is `&>file`.
                    command.redirections.push(Redirection { writes: true, target });
                }
            }
        }
    }

    fn word(&mut self, word: &ast::Word, places: &Places) -> Word {
        let (word, reading) = Reading::word(&word.value, self.home, self.options);
        self.take_in(&reading, places);
        word
    }

    fn take_in(&mut self, reading: &Reading, places: &Places) {
        if let Some(why) = reading.unclear {
            self.unclear(why);
        }
        for inner in &reading.inner {
            self.text(inner, places);
        }
    }
}
