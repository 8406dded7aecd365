//! The expansion of a word by bash: the resulting words, with their text where it is known and their shape where it is
//! not.

use std::cell::OnceCell;
use std::path::Path;

use super::braces::{Unit, spread, units};
use super::characters::is_name;
use super::names;
use super::script::{Assigned, Word};
use super::shape::{Shape, Step};
use super::syntax::{
    Arithmetic, Item, List, Node, Operation, ParameterExpansion, Program, RedirectKind, Separator,
    SyntaxWord, WordPart,
};
use super::variables::{Source, Variables};

/// The deepest lookup of variables inside the values of others.
const DEEPEST: usize = 6;

/// The most values of a variable that are distinguished.
const MOST_VALUES: usize = 32;

/// The most steps of a shape: beyond, anything is possible.
const MOST_STEPS: usize = 4_096;

/// Expands the words of one program.
pub(super) struct Expander<'a> {
    program: &'a Program,
    outer: &'a Assigned,
    home: Option<&'a Path>,
    variables: OnceCell<Variables<'a>>,
    patterns: Patterns,
}

/// The names that patterns match.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Patterns {
    Usual,
    /// More than usual: the script may have changed an option of the shell.
    Wide,
}

/// Whether a word can become several words and names of files at its position.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WordPosition {
    Argument,
    /// Behind `name=`, or where the shell expects a single text.
    Value,
}

impl<'a> Expander<'a> {
    pub(super) fn new(
        program: &'a Program,
        outer: &'a Assigned,
        home: Option<&'a Path>,
        patterns: Patterns,
    ) -> Self {
        Self { program, outer, home, variables: OnceCell::new(), patterns }
    }

    pub(super) fn variables(&self) -> &Variables<'a> {
        self.variables.get_or_init(|| Variables::of(self.program, self.outer))
    }

    /// Whether the program assigns nothing to a variable.
    pub(super) fn is_unchanged(&self, name: &str) -> bool {
        !self.variables().assigns(name)
    }

    /// The words that a word expands to.
    pub(super) fn words(&self, word: &SyntaxWord) -> Vec<Word> {
        if let [WordPart::Bare(text)] = word.parts.as_slice()
            && is_plain(text)
        {
            return vec![Word::known(&word.written, text.clone())];
        }
        let units = units(&word.parts);
        let Some(spread) = spread(&units) else { return vec![Word::unknown(&word.written)] };
        let is_one = spread.len() == 1;
        spread
            .iter()
            .filter(|units| is_one || !units.is_empty())
            .map(|units| self.word(units, &word.written, WordPosition::Argument, 0))
            .collect()
    }

    /// The single text that a word expands to.
    pub(super) fn value(&self, word: &SyntaxWord) -> Word {
        self.value_at(word, 0)
    }

    fn value_at(&self, word: &SyntaxWord, depth: usize) -> Word {
        self.word(&units(&word.parts), &word.written, WordPosition::Value, depth)
    }

    /// The text of quoted parts, such as a here-document.
    pub(super) fn text(&self, parts: &[WordPart]) -> Option<String> {
        let word = self.word(&units(parts), "", WordPosition::Value, 0);
        word.value
    }

    fn word(
        &self,
        units: &[Unit<'_>],
        written: &str,
        standing: WordPosition,
        depth: usize,
    ) -> Word {
        let mut draft = Draft { shape: Shape::default(), is_exact: true, splits: false };
        let mut at = self.tilde(units, &mut draft);
        let mut starts_name = at == 0;
        while let Some(unit) = units.get(at) {
            at += 1;
            match unit {
                Unit::Character(character) => {
                    let before = at.checked_sub(2).and_then(|index| units.get(index));
                    let after_mark = matches!(before, Some(Unit::Character('=' | ':')));
                    match character {
                        // It may be a home directory.
                        '~' if after_mark => {
                            draft.unknown(Step::Any);
                            let is_name =
                                |unit: &&Unit<'_>| !matches!(unit, Unit::Character('/' | ':'));
                            at += units.iter().skip(at).take_while(is_name).count();
                        }
                        '*' | '?' | '[' if standing == WordPosition::Argument => {
                            at = self.pattern(units, at - 1, starts_name, &mut draft);
                        }
                        other => draft.shape.push(Step::Literal(*other)),
                    }
                    starts_name = *character == '/';
                }
                Unit::Range => {
                    draft.unknown(Step::Name);
                    draft.splits = true;
                    starts_name = false;
                }
                Unit::Part(part) => {
                    self.part(part, standing, depth, &mut draft);
                    let slash = |step: &Step| *step == Step::Literal('/');
                    starts_name = draft.shape.steps().last().is_some_and(slash);
                }
            }
        }
        draft.into_word(written)
    }

    /// Expands a `~` at the start; returns the number of consumed units.
    fn tilde(&self, units: &[Unit<'_>], draft: &mut Draft) -> usize {
        if !matches!(units.first(), Some(Unit::Character('~'))) {
            return 0;
        }
        let end = units.iter().position(|unit| matches!(unit, Unit::Character('/')));
        let name = units.get(1..end.unwrap_or(units.len())).unwrap_or_default();
        match (name, self.home.and_then(Path::to_str)) {
            ([], Some(home)) if self.is_unchanged("HOME") => draft.shape.push_text(home),
            _ => draft.unknown(Step::Any),
        }
        end.unwrap_or(units.len())
    }

    /// Parses a pattern character; returns the next position.
    fn pattern(
        &self,
        units: &[Unit<'_>],
        at: usize,
        starts_name: bool,
        draft: &mut Draft,
    ) -> usize {
        let next = at + 1;
        if self.patterns == Patterns::Wide {
            draft.unknown(Step::Any);
            draft.splits = true;
            return next;
        }
        let length = match units.get(at) {
            Some(Unit::Character('[')) => {
                let length = class_length(units.get(next..).unwrap_or_default());
                if length.is_none() {
                    // Without an end it is literal, unless an expansion contains the end.
                    let opaque = |unit: &Unit<'_>| !matches!(unit, Unit::Character(_));
                    if units.iter().skip(next).any(opaque) {
                        draft.unknown(Step::Any);
                    } else {
                        draft.shape.push(Step::Literal('['));
                    }
                    return next;
                }
                length
            }
            _ => None,
        };
        if starts_name {
            draft.shape.push(Step::NoDot);
        }
        draft.splits = true;
        let step = match units.get(at) {
            Some(Unit::Character('*')) => Step::Name,
            _ => Step::Character,
        };
        let class = length.and_then(|length| units.get(next..next + length)).unwrap_or_default();
        let plain = |unit: &Unit<'_>| matches!(unit, Unit::Character(c) if *c != '/');
        draft.unknown(if class.iter().all(plain) { step } else { Step::Any });
        next + length.unwrap_or(0)
    }

    fn part(&self, part: &WordPart, standing: WordPosition, depth: usize, draft: &mut Draft) {
        match part {
            WordPart::Bare(text) | WordPart::Quoted(text) => draft.shape.push_text(text),
            WordPart::Unknown => draft.unknown(Step::Any),
            WordPart::Command(list, is_quoted) => {
                match self.printed(list, *is_quoted, depth) {
                    Some(shape) => {
                        draft.is_exact &= shape.text().is_some();
                        draft.shape.append(&shape);
                        return;
                    }
                    None => draft.unknown(Step::Any),
                }
                draft.splits |= !is_quoted;
            }
            WordPart::Arithmetic(..) => draft.unknown(Step::Number),
            WordPart::Process(list, _) => {
                let mut name = Shape::literal("/dev/fd/");
                name.push(Step::Name);
                draft.is_exact = false;
                if list.items.is_empty() {
                    // Without a command in it, it is no file, but empty.
                    draft.splits = true;
                    draft.shape.append_optional(&name);
                } else {
                    draft.shape.append(&name);
                }
            }
            WordPart::Parameter(expansion) => {
                let is_whole = |shape: &Shape| {
                    // Outside quotes the value is split at blanks and read as a pattern.
                    expansion.is_quoted
                        || standing == WordPosition::Value
                        || !shape.may_have(|c| matches!(c, ' ' | '\t' | '\n' | '*' | '?' | '['))
                        || is_result(shape)
                };
                let shape = self.parameter(expansion, depth).and_then(|shape| {
                    if is_whole(&shape) {
                        return Some(shape);
                    }
                    let mut alternatives = shape.alternatives(MOST_VALUES)?;
                    for alternative in &mut alternatives {
                        if !is_whole(alternative) {
                            *alternative = Shape::any();
                        }
                    }
                    Some(Shape::one_of(&alternatives))
                });
                draft.is_exact = false;
                draft.splits |=
                    !expansion.is_quoted || expansion.name == "@" || expansion.index.is_some();
                match shape {
                    Some(shape) => draft.shape.append(&shape),
                    None => draft.shape.push(Step::Any),
                }
            }
        }
    }

    /// The output of a command, where its text tells: a number, or a here-document.
    fn printed(&self, list: &List, is_quoted: bool, depth: usize) -> Option<Shape> {
        let [(and_or, Separator::Sequence)] = list.items.as_slice() else { return None };
        let [Node::Simple(items)] = and_or.first.commands.as_slice() else { return None };
        if and_or.first.is_negated || !and_or.rest.is_empty() || depth >= DEEPEST {
            return None;
        }
        let program = match items.first() {
            Some(Item::Word(word)) => match word.parts.as_slice() {
                [WordPart::Bare(text)] => text.as_str(),
                _ => return None,
            },
            _ => return None,
        };
        match (program, items.get(1..)?) {
            ("nproc", []) if self.variables().has_plain_programs() => {
                Some(Shape::from_steps(&[Step::Number]))
            }
            ("cat", [Item::Redirect(redirect)])
                if is_quoted && redirect.is_input && self.variables().has_plain_programs() =>
            {
                let RedirectKind::Document(number) = &redirect.kind else { return None };
                let document = self.program.documents.get(*number)?;
                let text = self.word(&units(&document.parts), "", WordPosition::Value, depth + 1);
                let text = text.value?;
                Some(Shape::literal(text.trim_end_matches('\n')))
            }
            _ => None,
        }
    }

    /// The possible values of a parameter, where they are known.
    fn parameter(&self, expansion: &ParameterExpansion, depth: usize) -> Option<Shape> {
        let number = || Some(Shape::from_steps(&[Step::Number]));
        if matches!(expansion.operation, Operation::Length) && !expansion.is_indirect {
            return number();
        }
        if matches!(expansion.name.as_str(), "?" | "#" | "$" | "!")
            && matches!(expansion.operation, Operation::Value)
        {
            return number();
        }
        if expansion.is_indirect || depth >= DEEPEST {
            return None;
        }
        let values = || self.values(&expansion.name, depth + 1);
        match &expansion.operation {
            Operation::Value => values(),
            Operation::Default(word) | Operation::Assign(word) => {
                let values = values().unwrap_or_else(Shape::any);
                Some(Shape::one_of(&[values, self.value_at(word, depth + 1).to_shape()]))
            }
            Operation::Alternative(word) => {
                Some(Shape::one_of(&[Shape::default(), self.value_at(word, depth + 1).to_shape()]))
            }
            Operation::Names
            | Operation::Change(_)
            | Operation::Slice(_)
            | Operation::Transform(_) => None,
            Operation::Length => number(),
        }
    }

    /// The values of a variable.
    fn values(&self, name: &str, depth: usize) -> Option<Shape> {
        let sources = self.variables().sources(name)?;
        if sources.is_empty() {
            let known = if name == "HOME" { self.home.and_then(Path::to_str) } else { None };
            return known.map(Shape::literal);
        }
        if sources.len() > MOST_VALUES {
            return None;
        }
        // Before the first assignment it may be empty.
        let mut shapes = vec![Shape::default()];
        for source in sources {
            shapes.push(match source {
                Source::Word(word) => self.value_at(word, depth).to_shape(),
                Source::Results(word) => {
                    let spread = spread(&units(&word.parts))?
                        .iter()
                        .map(|units| {
                            self.word(units, &word.written, WordPosition::Argument, depth)
                                .to_shape()
                        })
                        .collect::<Vec<_>>();
                    Shape::one_of(&spread)
                }
                Source::Number => Shape::from_steps(&[Step::Number]),
                Source::Unknown => return None,
            });
        }
        let joined = Shape::one_of(&shapes);
        (joined.steps().len() <= MOST_STEPS).then_some(joined)
    }

    /// Whether an expression can run nothing: the value of a variable in it is an expression again, and the index of an
    /// array in that may contain a command.
    pub(super) fn is_harmless(&self, arithmetic: &Arithmetic) -> bool {
        arithmetic.names().all(|name| self.holds_numbers(name))
            && arithmetic.parts.iter().all(|part| match part {
                WordPart::Bare(_) => true,
                WordPart::Arithmetic(inner) => self.is_harmless(inner),
                WordPart::Parameter(expansion) => self.is_harmless_parameter(expansion),
                _ => false,
            })
    }

    /// Whether the value of a parameter, evaluated as an expression, can run nothing.
    pub(super) fn is_harmless_parameter(&self, expansion: &ParameterExpansion) -> bool {
        let name = expansion.name.as_str();
        match expansion.operation {
            Operation::Length => true,
            Operation::Value => {
                matches!(name, "?" | "#" | "$" | "!") || (is_name(name) && self.holds_numbers(name))
            }
            _ => false,
        }
    }

    /// Whether every value of a variable is a number, or comes from the environment.
    fn holds_numbers(&self, name: &str) -> bool {
        let is_number = |value: &str| {
            value
                .bytes()
                .all(|byte| byte.is_ascii_digit() || b" \t+-*/%()<>=&|^!~?:,".contains(&byte))
        };
        // `_` contains the last argument of the program before this one.
        if names::is_filled(name) {
            return false;
        }
        self.variables().sources(name).is_some_and(|sources| {
            sources.iter().all(|source| match source {
                Source::Number => true,
                Source::Unknown => false,
                Source::Word(word) => match word.parts.as_slice() {
                    [WordPart::Arithmetic(..)] => true,
                    _ => self.value(word).value.is_some_and(|value| is_number(&value)),
                },
                Source::Results(word) => {
                    self.words(word).iter().all(|word| word.value.as_deref().is_some_and(is_number))
                }
            })
        })
    }
}
/// Whether a shape consists of file names that a pattern produced: they are patterns again only if the names are
/// strange, and then they name files in the same directory.
fn is_result(shape: &Shape) -> bool {
    !shape.has_any()
        && !shape
            .steps()
            .iter()
            .any(|step| matches!(step, Step::Literal(' ' | '\t' | '\n' | '*' | '?' | '[')))
}

/// The number of units after `[` that belong to the class, with the closing bracket. In it, `[:name:]`, `[.x.]` and
/// `[=x=]` have brackets of their own.
fn class_length(units: &[Unit<'_>]) -> Option<usize> {
    let is = |index: usize, wanted: char| matches!(units.get(index), Some(Unit::Character(character)) if *character == wanted);
    let mut index = usize::from(is(0, '!') || is(0, '^'));
    if is(index, ']') {
        index += 1;
    }
    while index < units.len() {
        if is(index, ']') {
            return Some(index + 1);
        }
        let mark = [':', '.', '='].into_iter().find(|mark| is(index, '[') && is(index + 1, *mark));
        let end = mark.and_then(|mark| {
            (index + 2..units.len()).find(|end| is(*end, mark) && is(end + 1, ']'))
        });
        index = end.map_or(index + 1, |end| end + 2);
    }
    None
}

/// A word under construction.
struct Draft {
    shape: Shape,
    /// Whether the shape is exactly the text, without unknown parts.
    is_exact: bool,
    splits: bool,
}

impl Draft {
    fn unknown(&mut self, step: Step) {
        self.is_exact = false;
        self.shape.push(step);
    }

    fn into_word(self, written: &str) -> Word {
        let value = if self.is_exact { self.shape.text() } else { None };
        match value {
            Some(value) => Word::known(written, value),
            None => Word::shaped(written, self.shape, self.splits),
        }
    }
}

/// Whether a text outside quotes is literal.
fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_./,:@%+=^".contains(&byte) || byte >= 0x80)
}
