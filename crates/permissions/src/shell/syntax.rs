//! The syntax tree of a command line, as bash would build it.

/// What one text says, with the here-documents that its redirections name by number.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) list: List,
    pub(crate) documents: Vec<Document>,
}

/// Commands in a row.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) items: Vec<(AndOr, Separator)>,
}

/// What follows a command of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// `;`, a newline or the end.
    Sequence,
    /// `&`
    Background,
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug)]
pub(crate) struct AndOr {
    pub(crate) first: Pipeline,
    pub(crate) rest: Vec<(Joint, Pipeline)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joint {
    And,
    Or,
}

#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) is_negated: bool,
    /// Whether `time` stands before it.
    pub(crate) is_timed: bool,
    pub(crate) commands: Vec<Node>,
}

/// One command of a pipeline.
#[derive(Debug)]
pub(crate) enum Node {
    Simple(Vec<Item>),
    Compound(Box<Compound>, Vec<Redirect>),
    Function(Box<Node>),
    /// The variable that holds the descriptors, and the command.
    Coprocess(Option<String>, Box<Node>),
}

#[derive(Debug)]
pub(crate) enum Compound {
    Group(List),
    Subshell(List),
    /// Conditions with what follows them, and the last `else`.
    If(Vec<(List, List)>, Option<List>),
    /// `while` or `until`.
    While(List, List),
    /// `for` or `select`; without words, over the positional parameters.
    For(String, Option<Vec<SyntaxWord>>, List),
    ArithmeticFor(Arithmetic, List),
    Case(SyntaxWord, Vec<(Vec<SyntaxWord>, List)>),
    Arithmetic(Arithmetic),
    /// `[[ … ]]`
    Test(Vec<TestPiece>),
}

/// A word of `[[ … ]]` and what is done with it.
#[derive(Debug)]
pub(crate) enum TestPiece {
    Operator,
    Word(SyntaxWord),
}

/// A piece of a simple command, in the order in which they are written.
#[derive(Debug)]
pub(crate) enum Item {
    Assignment(SyntaxAssignment),
    Word(SyntaxWord),
    Redirect(Redirect),
}

/// `name=value`, `name[index]=value`, `name=(…)`, each also with `+=`.
#[derive(Debug)]
pub(crate) struct SyntaxAssignment {
    pub(crate) name: String,
    pub(crate) index: Option<Arithmetic>,
    pub(crate) appends: bool,
    pub(crate) value: AssignedValue,
    pub(crate) written: String,
}

#[derive(Debug)]
pub(crate) enum AssignedValue {
    Scalar(SyntaxWord),
    /// Elements, each with its index if it has one.
    Array(Vec<(Option<Arithmetic>, SyntaxWord)>),
}

#[derive(Debug)]
pub(crate) struct Redirect {
    /// The variable that gets the descriptor: `{name}>file`.
    pub(crate) variable: Option<String>,
    /// Whether it is standard input that is redirected.
    pub(crate) is_input: bool,
    pub(crate) kind: RedirectKind,
}

#[derive(Debug)]
pub(crate) enum RedirectKind {
    Read(SyntaxWord),
    Write(SyntaxWord),
    ReadWrite(SyntaxWord),
    /// `<&` and `>&`: a descriptor, `-`, or a file.
    Duplicate(SyntaxWord),
    /// A here-document, by its number.
    Document(usize),
    HereString(SyntaxWord),
}

/// The body of a here-document.
#[derive(Debug, Default)]
pub(crate) struct Document {
    pub(crate) parts: Vec<WordPart>,
}

/// A word as it is written, and its parts.
#[derive(Debug, Default)]
pub(crate) struct SyntaxWord {
    pub(crate) written: String,
    pub(crate) parts: Vec<WordPart>,
}

#[derive(Debug)]
pub(crate) enum WordPart {
    /// Text outside quotes: patterns, braces and a tilde have their meaning.
    Bare(String),
    /// Text that stands for itself.
    Quoted(String),
    /// Quoted text that cannot be told, such as a byte that is no character.
    Unknown,
    Parameter(Box<ParameterExpansion>),
    /// `$(…)` or backquotes.
    Command(List, IsQuoted),
    Arithmetic(Arithmetic),
    /// `<(…)` or `>(…)`
    Process(List, IsFed),
}

/// Whether a process reads what is written to it, as that of `>(…)` does.
pub(crate) type IsFed = bool;

/// Whether a part stands in double quotes.
pub(crate) type IsQuoted = bool;

#[derive(Debug)]
pub(crate) struct ParameterExpansion {
    pub(crate) name: String,
    pub(crate) is_quoted: IsQuoted,
    pub(crate) is_indirect: bool,
    pub(crate) index: Option<Arithmetic>,
    pub(crate) operation: Operation,
}

#[derive(Debug)]
pub(crate) enum Operation {
    /// The value.
    Value,
    /// The length of the value.
    Length,
    /// `${!name*}` and `${!name[@]}`: names or indexes.
    Names,
    /// `:-`
    Default(SyntaxWord),
    /// `:=`
    Assign(SyntaxWord),
    /// `:+`
    Alternative(SyntaxWord),
    /// `:?`, `#`, `%`, `/`, `^`, `,`: another value, with a word that is expanded.
    Change(SyntaxWord),
    /// `${name:offset:length}`
    Slice(Arithmetic),
    /// `@Q` and the like.
    Transform(char),
}

/// An arithmetic expression: names in it are variables, whose values are expressions again.
#[derive(Debug, Default)]
pub(crate) struct Arithmetic {
    pub(crate) parts: Vec<WordPart>,
}

impl Arithmetic {
    /// The variables that are named in it.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let texts = self.parts.iter().filter_map(|part| match part {
            WordPart::Bare(text) => Some(text.as_str()),
            _ => None,
        });
        texts.flat_map(|text| {
            text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '#' | '@')))
                .filter(|word| word.bytes().next().is_some_and(super::characters::starts_name))
        })
    }
}
