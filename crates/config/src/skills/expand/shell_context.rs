//! Reading of a value by bash at the end of a beginning of a command: as a word, or in which quotes.
//!
//! Follows the quotes, parentheses and words of ordinary commands, byte by byte. Whatever is not followed
//! (arithmetic, tests, patterns of `case` in parentheses, nested quoting in `${…}`) makes the rest of the
//! command unknown: it is better to refuse a value than to quote it for another place than it has.

use super::QuotingError;
use super::evaluating::SimpleWords;

/// Reading of a value at one point of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    /// Outside of quotes.
    Unquoted {
        /// The value begins a word.
        begins_word: bool,
        /// The shell takes one word here: in an assignment, after a redirection.
        takes_one_word: bool,
    },
    DoubleQuotes,
    SingleQuotes,
    /// Nothing is known about quoting.
    Unknown,
    /// No value may stand here.
    Refused(QuotingError),
}

/// Enclosure of the text at one point of a command. Outside of all is a list of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    /// A list of commands in parentheses. Where it is part of a word, `outer` is the state of that word.
    Parentheses {
        outer: Word,
        /// The words of the simple command that they are part of.
        outer_words: SimpleWords,
    },
    DoubleQuotes,
    SingleQuotes,
    /// `$'…'`
    AnsiQuotes,
    Backquotes,
    /// `${…}` and the subscript of `name[…]`, as far as they hold no syntax of their own.
    Simple {
        closing: u8,
    },
    Comment,
}

/// State of the word at the end of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// There is none yet.
    Start,
    /// There is none yet, and the next is the target of a redirection.
    TargetStart,
    Target,
    /// A number or `-` after `>&` or `<&`. Bash expands this word twice, so that it is no place for values.
    Descriptor,
    /// It may become an assignment.
    Name,
    Assignment,
    /// A single `[`.
    Bracket,
    Other,
}

impl Word {
    /// The state after one more byte of the word.
    fn with(self, byte: u8) -> Self {
        match self {
            Self::Start if byte.is_ascii_alphabetic() || byte == b'_' => Self::Name,
            Self::Start if byte == b'[' => Self::Bracket,
            Self::Name if byte.is_ascii_alphanumeric() || b"_+".contains(&byte) => Self::Name,
            Self::Name if byte == b'=' => Self::Assignment,
            Self::TargetStart | Self::Target => Self::Target,
            Self::Assignment | Self::Descriptor => self,
            Self::Start | Self::Name | Self::Bracket | Self::Other => Self::Other,
        }
    }

    fn is_start(self) -> bool {
        matches!(self, Self::Start | Self::TargetStart)
    }
}

/// Certainty of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certainty {
    Known,
    /// Something was not followed.
    Lost,
    /// A here-document may have begun, which a line of a value could end.
    HereDocument,
}

/// In the place of the byte before: an escaped character, which means nothing to what follows.
const ESCAPED: u8 = 0;
/// In the place of the byte before: `$$`.
const TWO_DOLLARS: u8 = 1;

/// Reads a command from its beginning.
#[derive(Debug)]
pub(super) struct ShellReader {
    frames: Vec<Frame>,
    word: Word,
    previous: u8,
    is_escaped: bool,
    /// Number of `<` directly before.
    less: u8,
    /// Number of letters of `case` that the word has; more than four once it is another word.
    case_letters: u8,
    certainty: Certainty,
    /// The words of the simple command at the end of the text.
    words: SimpleWords,
    /// A variable may evaluate what is assigned to it.
    has_evaluating_variable: bool,
}

impl ShellReader {
    /// Reads a command of bash.
    pub(super) fn new() -> Self {
        Self {
            frames: Vec::new(),
            word: Word::Start,
            previous: b'\n',
            is_escaped: false,
            less: 0,
            case_letters: 0,
            certainty: Certainty::Known,
            words: SimpleWords::default(),
            has_evaluating_variable: false,
        }
    }

    /// Reads a command of a shell whose quoting is unknown.
    pub(super) fn lost() -> Self {
        Self { certainty: Certainty::Lost, ..Self::new() }
    }

    /// The reading of a value that comes next.
    pub(super) fn context(&self) -> Context {
        let frame = self.frames.last();
        if self.certainty == Certainty::HereDocument
            || (self.certainty == Certainty::Known && self.less == 2)
        {
            return Context::Refused(QuotingError::HereDocument);
        }
        if self.certainty == Certainty::Known && frame == Some(&Frame::SingleQuotes) {
            return Context::SingleQuotes;
        }
        if matches!(self.previous, b'$' | TWO_DOLLARS) {
            return Context::Refused(QuotingError::AfterDollar);
        }
        if self.certainty == Certainty::Lost || self.is_escaped {
            return Context::Unknown;
        }
        match frame {
            _ if self.word == Word::Descriptor => Context::Unknown,
            None | Some(Frame::Parentheses { .. }) => Context::Unquoted {
                begins_word: self.word.is_start(),
                takes_one_word: matches!(
                    self.word,
                    Word::Assignment | Word::TargetStart | Word::Target
                ),
            },
            Some(Frame::DoubleQuotes) => Context::DoubleQuotes,
            Some(_) => Context::Unknown,
        }
    }

    /// Checks that a value here is a word of a builtin that would evaluate it, however it is quoted.
    pub(super) fn is_evaluated(&self) -> bool {
        let is_assignment = self.word == Word::Assignment;
        self.words.evaluate(is_assignment) || (is_assignment && self.has_evaluating_variable)
    }

    /// Reads on.
    pub(super) fn read(&mut self, text: &str) {
        for byte in text.bytes() {
            self.words.read(byte);
            self.has_evaluating_variable |= self.words.declare_evaluating();
            self.read_byte(byte);
        }
    }

    fn read_byte(&mut self, byte: u8) {
        if self.certainty == Certainty::Known && self.less == 2 && byte != b'<' {
            self.certainty = Certainty::HereDocument;
        }
        if self.certainty != Certainty::Known {
            self.find_here_document(byte);
            self.previous = byte;
            return;
        }
        if self.is_escaped {
            self.is_escaped = false;
            self.read_escaped(byte);
            return;
        }
        let frame = self.frames.last().copied();
        if byte == b'\\' && !matches!(frame, Some(Frame::SingleQuotes | Frame::Comment)) {
            // The next letter decides what it escapes; until then nothing has changed.
            self.is_escaped = true;
            return;
        }
        match frame {
            None | Some(Frame::Parentheses { .. }) => self.read_plain(byte),
            Some(Frame::DoubleQuotes) => self.read_double_quoted(byte),
            Some(Frame::SingleQuotes | Frame::AnsiQuotes) => self.close_at(byte, b'\''),
            Some(Frame::Backquotes) => {
                self.find_here_document(byte);
                self.close_at(byte, b'`');
            }
            Some(Frame::Simple { closing }) => self.read_simple(byte, closing),
            Some(Frame::Comment) if byte == b'\n' => {
                self.frames.pop();
                self.read_plain(byte);
            }
            Some(Frame::Comment) => {}
        }
        let is_pair = byte == b'$' && self.previous == b'$';
        self.previous = if is_pair { TWO_DOLLARS } else { byte };
    }

    /// A byte after a backslash that is not quoted.
    fn read_escaped(&mut self, byte: u8) {
        match self.frames.last() {
            // A continued line. One that parts an operator is not followed.
            None | Some(Frame::Parentheses { .. } | Frame::DoubleQuotes) if byte == b'\n' => {
                if matches!(self.previous, b'$' | TWO_DOLLARS | b'<' | b'>' | b'(' | b'[' | b'&') {
                    self.lose(byte);
                }
                return;
            }
            None | Some(Frame::Parentheses { .. }) => {
                self.less = 0;
                self.extend_word(ESCAPED);
            }
            Some(Frame::Simple { .. }) => self.lose(byte),
            Some(Frame::Backquotes) => self.find_here_document(byte),
            Some(_) => {}
        }
        self.previous = ESCAPED;
    }

    /// A byte of a list of commands.
    fn read_plain(&mut self, byte: u8) {
        let after_pair = self.previous == TWO_DOLLARS;
        self.less = if byte == b'<' { self.less % 3 + 1 } else { 0 };
        match byte {
            b'0'..=b'9' | b'-' if self.word == Word::Descriptor => {}
            _ if self.word == Word::Descriptor && !self.ends_descriptor(byte) => self.lose(byte),
            b'\'' | b'"' | b'(' | b'{' | b'[' if after_pair => self.lose(byte),
            b'\'' if self.previous == b'$' => self.enter_quotes(Frame::AnsiQuotes),
            b'\'' => self.enter_quotes(Frame::SingleQuotes),
            b'"' => self.enter_quotes(Frame::DoubleQuotes),
            b'`' => self.enter_quotes(Frame::Backquotes),
            b'#' if self.word.is_start() => self.frames.push(Frame::Comment),
            b'<' | b'>' => self.end_word(byte, Word::TargetStart),
            b'&' if matches!(self.previous, b'<' | b'>') => self.start_word(Word::Descriptor),
            b'|' if self.previous == b'>' => {}
            b' ' | b'\t' if self.word == Word::TargetStart => {}
            b' ' | b'\t' => self.end_word(byte, Word::Start),
            b'\n' | b';' | b'&' | b'|' => {
                self.words = SimpleWords::default();
                self.end_word(byte, Word::Start);
            }
            b'(' => self.open_parenthesis(byte),
            b')' => self.close_parenthesis(byte),
            b'{' if self.previous == b'$' => self.frames.push(Frame::Simple { closing: b'}' }),
            b'[' if self.previous == b'$' || self.word == Word::Bracket => self.lose(byte),
            b'[' if self.word == Word::Name => self.frames.push(Frame::Simple { closing: b']' }),
            _ => self.extend_word(byte),
        }
    }

    fn ends_descriptor(&self, byte: u8) -> bool {
        self.previous != b'&' && b" \t\n;&|<>)".contains(&byte)
    }

    fn open_parenthesis(&mut self, byte: u8) {
        let outer = match (self.previous, self.word) {
            // Arithmetic, or a pattern.
            (b'(' | b'+', _) => return self.lose(byte),
            (b'$', word) => word,
            (b'<' | b'>', _) => Word::Target,
            (_, Word::Start | Word::Name) => Word::Start,
            // A list of values, or a pattern, too.
            _ => return self.lose(byte),
        };
        self.open_commands(outer);
    }

    /// Opens a list of commands that stands in a word, or is one.
    fn open_commands(&mut self, outer: Word) {
        self.frames.push(Frame::Parentheses { outer, outer_words: self.words });
        self.words = SimpleWords::default();
        self.start_word(Word::Start);
    }

    fn close_parenthesis(&mut self, byte: u8) {
        self.end_word(byte, Word::Start);
        if self.certainty == Certainty::Known
            && let Some(Frame::Parentheses { outer, outer_words }) = self.frames.pop()
        {
            self.words = outer_words;
            self.word = outer;
            self.case_letters = u8::MAX;
        }
    }

    fn read_double_quoted(&mut self, byte: u8) {
        match (self.previous, byte) {
            (_, b'"') => {
                self.frames.pop();
            }
            (_, b'`') => self.frames.push(Frame::Backquotes),
            (TWO_DOLLARS, b'(' | b'{' | b'[') | (b'$', b'[') => self.lose(byte),
            (b'$', b'(') => self.open_commands(self.word),
            (b'$', b'{') => self.frames.push(Frame::Simple { closing: b'}' }),
            _ => {}
        }
    }

    fn read_simple(&mut self, byte: u8, closing: u8) {
        match byte {
            _ if byte == closing => {
                self.frames.pop();
            }
            b'[' | b']' if closing == b'}' => {}
            _ if byte.is_ascii_alphanumeric() || b"_:-+?=./,%@^*!#".contains(&byte) => {}
            _ => self.lose(byte),
        }
    }

    /// Looks for the beginning of a here-document, which matters also where nothing else is known.
    fn find_here_document(&mut self, byte: u8) {
        match byte {
            b'<' if self.less == 0 => self.less = 1,
            b'<' => self.certainty = Certainty::HereDocument,
            // Bash joins lines before it looks for operators.
            b'\\' | b'\n' => {}
            _ => self.less = 0,
        }
    }

    fn close_at(&mut self, byte: u8, closing: u8) {
        if byte == closing {
            self.frames.pop();
            self.less = 0;
        }
    }

    fn enter_quotes(&mut self, frame: Frame) {
        self.extend_word(ESCAPED);
        self.frames.push(frame);
    }

    fn extend_word(&mut self, byte: u8) {
        let is_next = b"case".get(usize::from(self.case_letters)) == Some(&byte);
        self.case_letters = if is_next { self.case_letters + 1 } else { u8::MAX };
        self.word = self.word.with(byte);
    }

    fn end_word(&mut self, byte: u8, next: Word) {
        // The patterns of `case` have parentheses without partners.
        if self.case_letters == 4 && !self.frames.is_empty() {
            return self.lose(byte);
        }
        self.start_word(next);
    }

    fn start_word(&mut self, word: Word) {
        self.word = word;
        self.case_letters = 0;
    }

    /// Gives up on the rest of the command, beginning with this byte.
    fn lose(&mut self, byte: u8) {
        self.certainty = Certainty::Lost;
        self.find_here_document(byte);
    }
}
