//! What a command line does, command by command, after the shell's grammar was read.

use std::fmt;

use super::places::Places;

/// Every command that a command line may run, in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) commands: Vec<Command>,
    /// Why the commands may not be all there is. Nothing that gives permission looks past it.
    pub(crate) unclear: Option<Unclear>,
}

/// One program with its arguments, assignments and redirections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) assignments: Vec<Assignment>,
    /// The program and its arguments; empty where only variables or redirections are written.
    pub(crate) words: Vec<Word>,
    pub(crate) redirections: Vec<Redirection>,
    /// Where the command may run.
    pub(crate) places: Places,
    /// Whether something is written to its standard input: a pipe, a here-document, a file.
    pub(crate) fed: bool,
}

impl Command {
    /// The words as they are written, one space apart.
    pub(crate) fn text(&self) -> String {
        join(&self.words)
    }

    /// About how many bytes it holds.
    pub(crate) fn weight(&self) -> usize {
        let targets = self.redirections.iter().map(|redirection| &redirection.target);
        let words = self.words.iter().chain(targets).map(Word::weight);
        let assignments = self.assignments.iter().map(Assignment::weight);
        size_of::<Self>() + self.places.weight() + words.chain(assignments).sum::<usize>()
    }

    /// The words, with those that are not known as they are written.
    pub(crate) fn best_values(&self) -> Vec<&str> {
        self.words.iter().map(|word| word.value.as_deref().unwrap_or(&word.written)).collect()
    }
}

/// Words as they are written, one space apart.
pub(crate) fn join(words: &[Word]) -> String {
    let written: Vec<&str> = words.iter().map(|word| word.written.as_str()).collect();
    written.join(" ")
}

/// A word as it is written, and what the shell makes of it where the text tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) written: String,
    pub(crate) value: Option<String>,
}

impl Word {
    pub(crate) fn unknown(written: &str) -> Self {
        Self { written: written.to_owned(), value: None }
    }

    fn weight(&self) -> usize {
        size_of::<Self>() + self.written.len() + self.value.as_ref().map_or(0, String::len)
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

/// Why a command line was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unclear {
    TooLong,
    TooDeep,
    OddCharacter,
    Syntax,
    /// Two grammars read different commands.
    TwoReadings,
    /// The program is named by an expansion, a pattern or pieces.
    Program,
    Function,
    Coprocess,
    Arithmetic,
    /// An expansion that can run something or change a variable.
    Expansion,
    /// A builtin that changes what later words mean, such as `eval` or `alias`.
    Builtin,
    /// A variable that later commands may obey.
    Variable,
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "it is too long",
            Self::TooDeep => "it is nested too deeply",
            Self::OddCharacter => "it has a control character or an unusual space in it",
            Self::Syntax => "its syntax is broken or unusual",
            Self::TwoReadings => "it can be read in more than one way",
            Self::Program => "the program is not named plainly",
            Self::Function => "it defines a function",
            Self::Coprocess => "it starts a coprocess",
            Self::Arithmetic => "it has arithmetic with names in it",
            Self::Expansion => "it has an expansion that can do more than read a variable",
            Self::Builtin => "it has a builtin that runs text or changes what words mean",
            Self::Variable => "it sets a variable that other programs may obey",
        })
    }
}
