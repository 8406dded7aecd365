//! A position in a command line: characters, blanks, comments, continued lines and here-documents.

use super::characters::{is_blank, is_metacharacter, is_unreadable};
use super::script::Unclear;
use super::syntax::Document;

/// The longest text that is parsed.
pub(crate) const LONGEST: usize = 1 << 20;

/// The deepest nesting of commands, words and expansions.
const DEEPEST: usize = 60;

pub(super) type Parsed<T> = Result<T, Unclear>;

/// Reads a command line from its beginning.
pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// The here-documents so far, some of them still without a body.
    pub(super) documents: Vec<Document>,
    /// The here-documents whose body begins after the next newline.
    pending: Vec<Pending>,
}

/// A here-document without its body yet.
pub(super) struct Pending {
    pub(super) number: usize,
    pub(super) delimiter: String,
    pub(super) is_quoted: bool,
    pub(super) strips_tabs: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Parsed<Self> {
        if text.len() > LONGEST {
            return Err(Unclear::TooLong);
        }
        if text.contains(is_unreadable) {
            return Err(Unclear::OddCharacter);
        }
        Ok(Self::inside(text, 0, Vec::new()))
    }

    /// A reader for a piece of a text, at this depth.
    fn inside(text: &'a str, depth: usize, documents: Vec<Document>) -> Self {
        Self { text, at: 0, depth, documents, pending: Vec::new() }
    }

    /// Runs a reader over a piece of this one.
    pub(super) fn with_piece<T>(
        &mut self,
        piece: &str,
        read: impl FnOnce(&mut Reader<'_>) -> Parsed<T>,
    ) -> Parsed<T> {
        let documents = std::mem::take(&mut self.documents);
        let mut inner = Reader::inside(piece, self.depth, documents);
        let result = inner.nested(read);
        self.documents = inner.documents;
        result
    }

    /// Parses a nested construct.
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEEPEST {
            return Err(Unclear::TooDeep);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The text from a position up to here.
    pub(super) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn peek_second(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at + 1).copied()
    }

    fn before(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at.checked_sub(1)?).copied()
    }

    /// Takes one character.
    pub(super) fn next(&mut self) -> Option<char> {
        let character = self.rest().chars().next()?;
        self.at += character.len_utf8();
        Some(character)
    }

    /// Takes the text if it comes next.
    pub(super) fn takes(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len();
        }
        found
    }

    /// Takes the text, which must come next.
    pub(super) fn expect(&mut self, wanted: &str) -> Parsed<()> {
        if self.takes(wanted) { Ok(()) } else { Err(Unclear::Syntax) }
    }

    /// Takes bytes while they satisfy the condition.
    pub(super) fn take_while(&mut self, condition: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(&condition) {
            self.at += 1;
        }
        self.since(start)
    }

    /// Takes everything up to a mark, and the mark.
    pub(super) fn take_past(&mut self, mark: char) -> Parsed<&'a str> {
        let (inner, _) = self.rest().split_once(mark).ok_or(Unclear::Syntax)?;
        self.at += inner.len() + mark.len_utf8();
        Ok(inner)
    }

    /// Refuses a newline inside quotes or an expansion while a here-document is pending: it is not clear which of the
    /// two comes first.
    pub(super) fn check_pending(&self, passed: &str) -> Parsed<()> {
        if !self.pending.is_empty() && passed.contains('\n') {
            return Err(Unclear::Syntax);
        }
        Ok(())
    }

    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(super) fn add_pending(&mut self, pending: Pending) {
        self.pending.push(pending);
    }

    /// Skips blanks, continued lines and a comment.
    pub(super) fn skip_blanks(&mut self) -> Parsed<()> {
        loop {
            match self.peek() {
                Some(byte) if is_blank(byte) => self.at += 1,
                Some(b'\\') if self.peek_second() == Some(b'\n') => self.skip_continuation()?,
                Some(b'#') if self.before().is_none_or(is_metacharacter) => {
                    self.take_while(|byte| byte != b'\n');
                    return Ok(());
                }
                _ => return Ok(()),
            }
        }
    }

    /// Skips a backslash before a newline, which joins two lines. Only between words: elsewhere it may also join two
    /// halves of an operator or a name.
    fn skip_continuation(&mut self) -> Parsed<()> {
        let before = self.before();
        self.at += 2;
        let after = self.peek();
        let apart = before.is_none_or(|byte| is_blank(byte) || byte == b'\n');
        let plain = match after {
            None => true,
            Some(b'#' | b'\\') => false,
            Some(byte) if is_blank(byte) || byte == b'\n' => true,
            Some(byte) if apart => byte != b'(',
            // Between a word and an operator, or between an operator and a word.
            Some(byte) => {
                before.is_some_and(|before| matches!(before, b'|' | b'&' | b';'))
                    && byte.is_ascii_alphanumeric()
            }
        };
        if plain { Ok(()) } else { Err(Unclear::Syntax) }
    }

    /// Skips blanks, comments and newlines, with the here-documents behind them.
    pub(super) fn skip_lines(&mut self) -> Parsed<()> {
        loop {
            self.skip_blanks()?;
            if !self.take_newline()? {
                return Ok(());
            }
        }
    }

    /// Takes a newline, if it comes next, and the bodies of the pending here-documents.
    pub(super) fn take_newline(&mut self) -> Parsed<bool> {
        if self.peek() != Some(b'\n') {
            return Ok(false);
        }
        self.at += 1;
        for pending in std::mem::take(&mut self.pending) {
            self.read_document(&pending)?;
        }
        Ok(true)
    }

    fn read_document(&mut self, pending: &Pending) -> Parsed<()> {
        let start = self.at;
        let mut body = String::new();
        loop {
            let line = self.take_while(|byte| byte != b'\n');
            let line = if pending.strips_tabs { line.trim_start_matches('\t') } else { line };
            let has_newline = self.takes("\n");
            if line == pending.delimiter {
                // The newline behind it ends a line again.
                if has_newline {
                    self.at -= 1;
                }
                break;
            }
            // A continued line is joined before the comparison.
            if !has_newline || (!pending.is_quoted && line.ends_with('\\')) {
                return Err(Unclear::Syntax);
            }
            body.push_str(line);
            body.push('\n');
        }
        debug_assert!(self.at >= start, "the reader went backwards");
        let document = if pending.is_quoted {
            Document { parts: vec![super::syntax::WordPart::Quoted(body)] }
        } else {
            #[expect(
                clippy::redundant_closure_for_method_calls,
                reason = "the lifetime of the reader differs"
            )]
            self.with_piece(&body, |reader| reader.document())?
        };
        if let Some(place) = self.documents.get_mut(pending.number) {
            *place = document;
        }
        Ok(())
    }
}
