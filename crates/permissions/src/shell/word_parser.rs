//! Words: quotes, escapes and every kind of expansion.

use super::ansi_c;
use super::characters::{
    continues_name, has_blank, is_blank_or_newline, is_metacharacter, starts_name,
};
use super::reader::{Parsed, Reader};
use super::script::Unclear;
use super::syntax::{
    Arithmetic, Document, IsQuoted, Operation, ParameterExpansion, SyntaxWord, WordPart,
};

/// The position of a word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WordPlace {
    Command,
    /// Behind `=~`, where parentheses and bars belong to the word.
    Pattern,
}

/// The end of an arithmetic expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ArithmeticEnd {
    /// `))`
    Parentheses,
    /// `]`
    Bracket,
    /// `}`
    Brace,
}

impl<'a> Reader<'a> {
    /// A word, or `None` where none begins.
    pub(super) fn word(&mut self, place: WordPlace) -> Parsed<Option<SyntaxWord>> {
        let start = self.position();
        let mut parts = Vec::new();
        loop {
            match self.peek() {
                Some(sign @ (b'<' | b'>')) if self.peek_second() == Some(b'(') => {
                    self.next();
                    self.next();
                    let list = self.nested(Self::substitution)?;
                    parts.push(WordPart::Process(list, sign == b'>'));
                }
                Some(b'(') if place == WordPlace::Pattern => self.pattern_group(&mut parts)?,
                Some(b'|') if place == WordPlace::Pattern => {
                    self.next();
                    push_bare(&mut parts, "|");
                }
                None => break,
                Some(byte) if is_metacharacter(byte) => break,
                // Between words only: elsewhere a continued line joins the texts around it.
                Some(b'\\') if self.peek_second() == Some(b'\n') => {
                    let after = self.rest().as_bytes().get(2).copied();
                    if parts.is_empty() || after.is_none_or(is_blank_or_newline) {
                        break;
                    }
                    return Err(Unclear::Syntax);
                }
                Some(_) => self.word_part(&mut parts)?,
            }
        }
        let written = self.since(start);
        self.check_pending(written)?;
        let word = SyntaxWord { written: written.to_owned(), parts };
        Ok((!written.is_empty()).then_some(word))
    }

    /// A part of a word outside quotes, at a character that does not end the word.
    pub(super) fn word_part(&mut self, parts: &mut Vec<WordPart>) -> Parsed<()> {
        match self.peek() {
            Some(b'\\') => {
                self.next();
                // A backslash at the very end is literal only in some positions.
                let escaped = self.next().filter(|c| *c != '\n').ok_or(Unclear::Syntax)?;
                parts.push(WordPart::Quoted(escaped.to_string()));
            }
            Some(b'\'') => {
                self.next();
                parts.push(WordPart::Quoted(self.take_past('\'')?.to_owned()));
            }
            Some(b'"') => {
                self.next();
                // The word exists even if it is empty.
                parts.push(WordPart::Quoted(String::new()));
                self.double_quoted(parts)?;
            }
            Some(b'$') => self.dollar(parts, false)?,
            Some(b'`') => self.backquoted(parts, false)?,
            _ => {
                let text = self.take_while(|byte| {
                    !is_metacharacter(byte) && !matches!(byte, b'\\' | b'\'' | b'"' | b'$' | b'`')
                });
                push_bare(parts, text);
            }
        }
        Ok(())
    }

    /// `(…)` in a pattern behind `=~`.
    fn pattern_group(&mut self, parts: &mut Vec<WordPart>) -> Parsed<()> {
        self.expect("(")?;
        push_bare(parts, "(");
        loop {
            match self.peek() {
                None | Some(b'\n') => return Err(Unclear::Syntax),
                Some(b')') => break,
                Some(b'(') => self.nested(|reader| reader.pattern_group(parts))?,
                Some(byte) if is_metacharacter(byte) => {
                    let character = self.next().ok_or(Unclear::Syntax)?;
                    push_bare(parts, character.encode_utf8(&mut [0; 4]));
                }
                Some(_) => self.word_part(parts)?,
            }
        }
        self.expect(")")?;
        push_bare(parts, ")");
        Ok(())
    }

    /// The text in double quotes, with the closing one.
    fn double_quoted(&mut self, parts: &mut Vec<WordPart>) -> Parsed<()> {
        loop {
            match self.peek().ok_or(Unclear::Syntax)? {
                b'"' => {
                    self.next();
                    return Ok(());
                }
                b'\\' => self.escape_in_quotes(parts, b'"')?,
                b'$' => self.dollar(parts, true)?,
                b'`' => self.backquoted(parts, true)?,
                _ => {
                    let text = self.take_while(|byte| !matches!(byte, b'"' | b'\\' | b'$' | b'`'));
                    push_quoted(parts, text);
                }
            }
        }
    }

    /// A backslash where only some characters can be escaped.
    fn escape_in_quotes(&mut self, parts: &mut Vec<WordPart>, mark: u8) -> Parsed<()> {
        self.next();
        match self.peek().ok_or(Unclear::Syntax)? {
            b'\n' => {
                self.next();
                // Joined to the next line, it may begin an expansion.
                let joins =
                    |last: &WordPart| matches!(last, WordPart::Quoted(text) if text.ends_with('$'));
                if parts.last().is_some_and(joins) {
                    return Err(Unclear::Syntax);
                }
            }
            escaped @ (b'$' | b'`' | b'\\') => {
                self.next();
                push_quoted(parts, char::from(escaped).encode_utf8(&mut [0; 4]));
            }
            escaped if escaped == mark => {
                self.next();
                push_quoted(parts, char::from(escaped).encode_utf8(&mut [0; 4]));
            }
            _ => push_quoted(parts, "\\"),
        }
        Ok(())
    }

    /// The body of a here-document whose delimiter is not quoted.
    pub(super) fn document(&mut self) -> Parsed<Document> {
        let mut parts = Vec::new();
        while let Some(byte) = self.peek() {
            match byte {
                b'\\' => self.escape_in_quotes(&mut parts, b'\\')?,
                b'$' => self.dollar(&mut parts, true)?,
                b'`' => self.backquoted(&mut parts, true)?,
                _ => {
                    let text = self.take_while(|byte| !matches!(byte, b'\\' | b'$' | b'`'));
                    push_quoted(&mut parts, text);
                }
            }
        }
        Ok(Document { parts })
    }

    /// Backquotes: bash finds the closing one without regard to the text between them.
    fn backquoted(&mut self, parts: &mut Vec<WordPart>, is_quoted: IsQuoted) -> Parsed<()> {
        self.expect("`")?;
        let inner = self.take_past('`')?;
        // A backslash inside is read twice, and quotes have another meaning in double quotes.
        if inner.contains('\\') || (is_quoted && inner.contains('"')) {
            return Err(Unclear::Syntax);
        }
        self.check_pending(inner)?;
        #[expect(
            clippy::redundant_closure_for_method_calls,
            reason = "the lifetime of the reader differs"
        )]
        let list = self.with_piece(inner, |reader| reader.whole_list())?;
        parts.push(WordPart::Command(list, is_quoted));
        Ok(())
    }

    fn dollar(&mut self, parts: &mut Vec<WordPart>, is_quoted: IsQuoted) -> Parsed<()> {
        self.expect("$")?;
        match self.peek() {
            Some(b'\'') if !is_quoted => {
                self.next();
                let raw = self.ansi_c_text()?;
                parts.push(ansi_c::decode(raw).map_or(WordPart::Unknown, WordPart::Quoted));
            }
            // Translated text.
            Some(b'"') if !is_quoted => return Err(Unclear::Syntax),
            Some(b'(') if self.peek_second() == Some(b'(') => {
                self.expect("((")?;
                let arithmetic =
                    self.nested(|reader| reader.arithmetic(ArithmeticEnd::Parentheses))?;
                parts.push(WordPart::Arithmetic(arithmetic));
            }
            Some(b'(') => {
                self.next();
                parts.push(WordPart::Command(self.nested(Self::substitution)?, is_quoted));
            }
            Some(b'[') => {
                self.next();
                let arithmetic = self.nested(|reader| reader.arithmetic(ArithmeticEnd::Bracket))?;
                parts.push(WordPart::Arithmetic(arithmetic));
            }
            Some(b'{') => {
                self.next();
                let expansion = self.nested(|reader| reader.braced_parameter(is_quoted))?;
                parts.push(WordPart::Parameter(Box::new(expansion)));
            }
            Some(byte) if starts_name(byte) => {
                let name = self.take_while(continues_name).to_owned();
                parts.push(parameter(name, is_quoted));
            }
            Some(b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => {
                let name = self.next().map(String::from).unwrap_or_default();
                parts.push(parameter(name, is_quoted));
            }
            Some(b'\\') if self.peek_second() == Some(b'\n') => return Err(Unclear::Syntax),
            _ if is_quoted => push_quoted(parts, "$"),
            _ => parts.push(WordPart::Bare("$".to_owned())),
        }
        Ok(())
    }

    /// The inside of `$'…'`, with its escapes.
    fn ansi_c_text(&mut self) -> Parsed<&'a str> {
        let rest = self.rest();
        let mut escaped = false;
        for (index, byte) in rest.bytes().enumerate() {
            if byte == b'\'' && !escaped {
                let inner = rest.get(..index).unwrap_or_default();
                self.check_pending(inner)?;
                for _ in inner.chars() {
                    self.next();
                }
                self.expect("'")?;
                return Ok(inner);
            }
            escaped = byte == b'\\' && !escaped;
        }
        Err(Unclear::Syntax)
    }

    /// A parameter in braces, after `${`.
    fn braced_parameter(&mut self, is_quoted: IsQuoted) -> Parsed<ParameterExpansion> {
        let plain = |name: String, operation| ParameterExpansion {
            name,
            is_quoted,
            is_indirect: false,
            index: None,
            operation,
        };
        if self.peek() == Some(b'#') && self.peek_second() != Some(b'}') {
            self.next();
            let name = self.parameter_name()?;
            let index = self.index()?;
            self.expect("}")?;
            return Ok(ParameterExpansion { index, ..plain(name, Operation::Length) });
        }
        let is_indirect = self.peek() == Some(b'!') && self.peek_second() != Some(b'}');
        if is_indirect {
            self.next();
        }
        let name = self.parameter_name()?;
        let lists =
            |reader: &mut Self| ["*}", "@}", "[@]}", "[*]}"].iter().any(|mark| reader.takes(mark));
        if is_indirect && lists(self) {
            return Ok(plain(name, Operation::Names));
        }
        let index = self.index()?;
        let operation = self.operation(is_quoted)?;
        Ok(ParameterExpansion { is_indirect, index, ..plain(name, operation) })
    }

    fn parameter_name(&mut self) -> Parsed<String> {
        let name = match self.peek() {
            Some(byte) if starts_name(byte) => self.take_while(continues_name),
            Some(b'0'..=b'9') => self.take_while(|byte| byte.is_ascii_digit()),
            Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => {
                let start = self.position();
                self.next();
                self.since(start)
            }
            _ => return Err(Unclear::Syntax),
        };
        Ok(name.to_owned())
    }

    /// `[index]`, if it comes next.
    pub(super) fn index(&mut self) -> Parsed<Option<Arithmetic>> {
        if !self.takes("[") {
            return Ok(None);
        }
        if self.takes("@]") || self.takes("*]") {
            return Ok(Some(Arithmetic::default()));
        }
        self.nested(|reader| reader.arithmetic(ArithmeticEnd::Bracket)).map(Some)
    }

    /// The operation on a parameter, up to the closing brace.
    fn operation(&mut self, is_quoted: IsQuoted) -> Parsed<Operation> {
        if self.takes("}") {
            return Ok(Operation::Value);
        }
        for (mark, make) in [
            ("-", Operation::Default as fn(SyntaxWord) -> Operation),
            ("=", Operation::Assign),
            ("?", Operation::Change),
            ("+", Operation::Alternative),
        ] {
            if self.takes(&format!(":{mark}")) || self.takes(mark) {
                return Ok(make(self.brace_word(is_quoted)?));
            }
        }
        if self.takes(":") {
            return self.arithmetic(ArithmeticEnd::Brace).map(Operation::Slice);
        }
        if self.takes("@") {
            let kind = self.next().filter(char::is_ascii_alphabetic).ok_or(Unclear::Syntax)?;
            self.expect("}")?;
            return Ok(Operation::Transform(kind));
        }
        match self.peek() {
            Some(b'#' | b'%' | b'/' | b'^' | b',') => {
                self.next();
                Ok(Operation::Change(self.brace_word(is_quoted)?))
            }
            _ => Err(Unclear::Syntax),
        }
    }

    /// A word inside a parameter expansion, with the closing brace. The meaning of quotes there depends on the context,
    /// so only the plain cases are parsed.
    fn brace_word(&mut self, is_quoted: IsQuoted) -> Parsed<SyntaxWord> {
        let start = self.position();
        let mut parts = Vec::new();
        loop {
            match self.peek().ok_or(Unclear::Syntax)? {
                b'}' => break,
                b'\'' | b'"' if is_quoted => return Err(Unclear::Syntax),
                b'\\' if is_quoted => {
                    self.next();
                    self.next().filter(|c| *c != '\n').ok_or(Unclear::Syntax)?;
                    parts.push(WordPart::Unknown);
                }
                b'<' | b'>' if self.peek_second() == Some(b'(') => return Err(Unclear::Syntax),
                b'$' => self.dollar(&mut parts, is_quoted)?,
                b'`' => self.backquoted(&mut parts, is_quoted)?,
                b'\\' | b'\'' | b'"' => self.word_part(&mut parts)?,
                _ => {
                    let text = self.take_while(|byte| {
                        !matches!(byte, b'}' | b'\'' | b'"' | b'\\' | b'$' | b'`' | b'<' | b'>')
                    });
                    let angle = if text.is_empty() { self.next() } else { None };
                    let angle = angle.map(String::from).unwrap_or_default();
                    let push = if is_quoted { push_quoted } else { push_bare };
                    push(&mut parts, text);
                    push(&mut parts, &angle);
                }
            }
        }
        let written = self.since(start).to_owned();
        self.check_pending(&written)?;
        self.expect("}")?;
        Ok(SyntaxWord { written, parts })
    }

    /// An arithmetic expression with its end.
    pub(super) fn arithmetic(&mut self, end: ArithmeticEnd) -> Parsed<Arithmetic> {
        let mut parts = Vec::new();
        let mut open: Vec<u8> = Vec::new();
        loop {
            let byte = self.peek().ok_or(Unclear::Syntax)?;
            match byte {
                b')' if open.is_empty() && end == ArithmeticEnd::Parentheses => {
                    self.expect("))")?;
                    return Ok(Arithmetic { parts });
                }
                b']' if open.is_empty() && end == ArithmeticEnd::Bracket => {
                    self.next();
                    return Ok(Arithmetic { parts });
                }
                b'}' if open.is_empty() && end == ArithmeticEnd::Brace => {
                    self.next();
                    return Ok(Arithmetic { parts });
                }
                b'"' if end == ArithmeticEnd::Bracket => {
                    self.next();
                    let mut inner = Vec::new();
                    self.double_quoted(&mut inner)?;
                    parts.extend(inner.into_iter().map(|part| match part {
                        WordPart::Quoted(text) => WordPart::Bare(text),
                        part => part,
                    }));
                    continue;
                }
                b'(' | b'[' => open.push(byte),
                b')' if open.pop() != Some(b'(') => return Err(Unclear::Syntax),
                b']' if open.pop() != Some(b'[') => return Err(Unclear::Syntax),
                b'\'' | b'"' | b'\\' | b'{' | b'}' | b'#' => return Err(Unclear::Syntax),
                b'\n' if self.has_pending() => return Err(Unclear::Syntax),
                b'$' => {
                    self.dollar(&mut parts, true)?;
                    continue;
                }
                b'`' => {
                    self.backquoted(&mut parts, true)?;
                    continue;
                }
                _ => {}
            }
            let character = self.next().ok_or(Unclear::Syntax)?;
            push_bare(&mut parts, character.encode_utf8(&mut [0; 4]));
        }
    }

    /// The delimiter of a here-document: its text, and whether a part of it is quoted.
    pub(super) fn delimiter(&mut self) -> Parsed<(String, bool)> {
        let word = self.word(WordPlace::Command)?.ok_or(Unclear::Syntax)?;
        let mut delimiter = String::new();
        let mut is_quoted = false;
        for part in &word.parts {
            match part {
                WordPart::Bare(text) => delimiter.push_str(text),
                WordPart::Quoted(text) => {
                    is_quoted = true;
                    delimiter.push_str(text);
                }
                _ => return Err(Unclear::Syntax),
            }
        }
        // A dollar sign that begins nothing is not clearly quoted in either of them.
        let plain = !word.written.contains(['$', '`']) && !delimiter.contains('\n');
        let fits = plain && !delimiter.is_empty() && (is_quoted || !has_blank(&delimiter));
        if fits { Ok((delimiter, is_quoted)) } else { Err(Unclear::Syntax) }
    }
}

fn parameter(name: String, is_quoted: IsQuoted) -> WordPart {
    WordPart::Parameter(Box::new(ParameterExpansion {
        name,
        is_quoted,
        is_indirect: false,
        index: None,
        operation: Operation::Value,
    }))
}

pub(super) fn push_bare(parts: &mut Vec<WordPart>, text: &str) {
    match parts.last_mut() {
        Some(WordPart::Bare(last)) => last.push_str(text),
        _ => parts.push(WordPart::Bare(text.to_owned())),
    }
}

fn push_quoted(parts: &mut Vec<WordPart>, text: &str) {
    match parts.last_mut() {
        Some(WordPart::Quoted(last)) => last.push_str(text),
        _ => parts.push(WordPart::Quoted(text.to_owned())),
    }
}

/// Whether a byte may follow a keyword.
pub(super) fn ends_keyword(byte: Option<u8>) -> bool {
    byte.is_none_or(|byte| is_blank_or_newline(byte) || is_metacharacter(byte))
}
