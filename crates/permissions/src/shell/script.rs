//! The commands of a parsed command line.

use std::fmt;

use super::places::Places;
use super::shape::Shape;

/// Every command that a command line may run, in written order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) commands: Vec<Command>,
    /// The reason that the commands may be incomplete. Only an allow rule for everything applies then.
    pub(crate) unclear: Option<Unclear>,
    /// The reason that a program may run that the commands do not name. An ask or deny rule may match it.
    pub(crate) opaque: Option<Unclear>,
    /// Variables that it assigns.
    pub(crate) assigned: Assigned,
}

/// Variables that a script assigns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Assigned {
    pub(crate) names: Vec<String>,
    /// Whether there may be more.
    pub(crate) is_lost: bool,
}

impl Assigned {
    /// The union of both.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let names = self.names.iter().chain(&other.names).cloned().collect();
        Self { names, is_lost: self.is_lost || other.is_lost }
    }
}

/// One program with its arguments, assignments and redirections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) assignments: Vec<Assignment>,
    /// The program and its arguments; empty for a command of only variables or redirections.
    pub(crate) words: Vec<Word>,
    pub(crate) redirections: Vec<Redirection>,
    /// The directories in which the command may run.
    pub(crate) places: Places,
    /// Whether its standard input is connected: to a pipe, a here-document, a file.
    pub(crate) fed: bool,
    /// The text of its standard input, where it is known.
    pub(crate) input: Option<String>,
}

impl Command {
    /// The words as written, one space apart.
    pub(crate) fn text(&self) -> String {
        join(&self.words)
    }

    /// An estimate of its size in bytes.
    pub(crate) fn weight(&self) -> usize {
        let targets = self.redirections.iter().map(|redirection| &redirection.target);
        let words = self.words.iter().chain(targets).map(Word::weight);
        let assignments = self.assignments.iter().map(Assignment::weight);
        size_of::<Self>() + self.places.weight() + words.chain(assignments).sum::<usize>()
    }
}

/// Words as written, one space apart.
pub(crate) fn join(words: &[Word]) -> String {
    let written: Vec<&str> = words.iter().map(|word| word.written.as_str()).collect();
    written.join(" ")
}

/// A word as written, and its expansion where the text tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) written: String,
    pub(crate) value: Option<String>,
    /// The possible values where the value is not known.
    shape: Option<Box<Shape>>,
    /// Whether it may become zero or several words.
    pub(crate) splits: bool,
    /// Whether its shape is complete: no part of it comes from the environment or from a command.
    pub(crate) is_told: bool,
}

impl Word {
    pub(crate) fn known(written: &str, value: String) -> Self {
        let written = written.to_owned();
        Self { written, value: Some(value), shape: None, splits: false, is_told: true }
    }

    /// A word that may be anything.
    pub(crate) fn unknown(written: &str) -> Self {
        let written = written.to_owned();
        Self { written, value: None, shape: None, splits: true, is_told: false }
    }

    pub(crate) fn shaped(written: &str, shape: Shape, splits: bool) -> Self {
        let (written, shape) = (written.to_owned(), Some(Box::new(shape)));
        Self { written, value: None, shape, splits, is_told: false }
    }

    /// The same word with this flag.
    pub(crate) fn told(mut self, is_told: bool) -> Self {
        self.is_told = is_told;
        self
    }

    /// The texts that it may be.
    pub(crate) fn to_shape(&self) -> Shape {
        match (&self.value, &self.shape) {
            (Some(value), _) => Shape::literal(value),
            (None, Some(shape)) => (**shape).clone(),
            (None, None) => Shape::any(),
        }
    }

    fn weight(&self) -> usize {
        size_of::<Self>()
            + self.written.len()
            + self.value.as_ref().map_or(0, String::len)
            + self.shape.as_ref().map_or(0, |shape| shape.weight())
    }
}

/// `NAME=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
}

impl Assignment {
    fn weight(&self) -> usize {
        size_of::<Self>() + self.name.len() + self.value.as_ref().map_or(0, String::len)
    }
}

/// A file that the shell opens for a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirection {
    pub(crate) writes: bool,
    pub(crate) target: Word,
}

/// The reason that a command line was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unclear {
    TooLong,
    TooDeep,
    OddCharacter,
    Syntax,
    /// An expansion, a pattern or several pieces name the program.
    Program,
    Function,
    Coprocess,
    Arithmetic,
    /// An expansion that can run a program or change a variable.
    Expansion,
    /// A builtin that changes the meaning of later words, such as `eval` or `alias`.
    Builtin,
    /// A variable that later commands may obey.
    Variable,
    /// Code for an interpreter, or text that a program runs.
    Code,
    /// The script runs a file that it may have written.
    MadeFile,
}

impl Unclear {
    /// Whether text runs as shell code.
    pub(crate) fn runs_text(self) -> bool {
        matches!(self, Self::Arithmetic | Self::Expansion | Self::Builtin)
    }

    /// Whether the text could not be read at all.
    pub(crate) fn is_unreadable(self) -> bool {
        matches!(self, Self::TooLong | Self::TooDeep | Self::OddCharacter | Self::Syntax)
    }
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "it is too long",
            Self::TooDeep => "it is nested too deeply",
            Self::OddCharacter => "it has a control character or an unusual space in it",
            Self::Syntax => "its syntax is broken or unusual",
            Self::Program => "the program is not named plainly",
            Self::Function => "it defines a function",
            Self::Coprocess => "it starts a coprocess",
            Self::Arithmetic => "it has arithmetic with names in it",
            Self::Expansion => "it has an expansion that can do more than read a variable",
            Self::Builtin => "it has a builtin that runs text or changes what words mean",
            Self::Variable => "it sets a variable that other programs may obey",
            Self::Code => "it hands code or text to a program that runs it",
            Self::MadeFile => "it runs a file that it may have written itself",
        })
    }
}
