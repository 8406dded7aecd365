//! The syntax tree of a command line, as bash would build it.

/// A parsed text, with the here-documents that its redirections refer to by number.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) list: List,
    pub(crate) documents: Vec<Document>,
}

/// A sequence of commands.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) items: Vec<(AndOr, Separator)>,
}

/// The separator after a command of a list.
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
    /// Whether `time` precedes it.
    pub(crate) is_timed: bool,
    pub(crate) commands: Vec<Node>,
}

/// One command of a pipeline.
#[derive(Debug)]
pub(crate) enum Node {
    Simple(Vec<Item>),
    Compound(Box<Compound>, Vec<Redirect>),
    Function(Box<Node>),
    /// The variable for the descriptors, and the command.
    Coprocess(Option<String>, Box<Node>),
}

#[derive(Debug)]
pub(crate) enum Compound {
    Group(List),
    Subshell(List),
    /// Conditions with their bodies, and the last `else`.
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

/// A word of `[[ … ]]` and its use.
#[derive(Debug)]
pub(crate) enum TestPiece {
    Operator,
    Word(SyntaxWord),
}

/// A piece of a simple command, in written order.
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
    /// Elements, each with its optional index.
    Array(Vec<(Option<Arithmetic>, SyntaxWord)>),
}

#[derive(Debug)]
pub(crate) struct Redirect {
    /// The variable that receives the descriptor: `{name}>file`.
    pub(crate) variable: Option<String>,
    /// Whether standard input is redirected.
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

/// A word as written, and its parts.
#[derive(Debug, Default)]
pub(crate) struct SyntaxWord {
    pub(crate) written: String,
    pub(crate) parts: Vec<WordPart>,
}

#[derive(Debug)]
pub(crate) enum WordPart {
    /// Text outside quotes: patterns, braces and a tilde have their meaning.
    Bare(String),
    /// Literal text.
    Quoted(String),
    /// Quoted text that is not known, such as a byte that is no character.
    Unknown,
    Parameter(Box<ParameterExpansion>),
    /// `$(…)` or backquotes.
    Command(List, IsQuoted),
    Arithmetic(Arithmetic),
    /// `<(…)` or `>(…)`
    Process(List, IsFed),
}

/// Whether a process reads its standard input from the command, as in `>(…)`.
pub(crate) type IsFed = bool;

/// Whether a part is in double quotes.
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
    /// The variables in it.
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
