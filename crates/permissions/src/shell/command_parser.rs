//! Commands: lists, pipelines, compound commands, simple commands and their redirections.

use super::characters::{continues_name, is_metacharacter, is_name, starts_name};
use super::reader::{Parsed, Pending, Reader};
use super::script::Unclear;
use super::syntax::{
    AndOr, Arithmetic, AssignedValue, Compound, Document, Item, Joint, List, Node, Pipeline,
    Program, Redirect, RedirectKind, Separator, SyntaxAssignment, SyntaxWord, TestPiece, WordPart,
};
use super::word_parser::{ArithmeticEnd, WordPlace, ends_keyword};

/// Words that end a list of commands.
const CLOSING: [&str; 8] = ["then", "else", "elif", "fi", "do", "done", "esac", "}"];

/// Builtins whose arguments may be assignments.
const DECLARING: [&str; 5] = ["declare", "export", "local", "readonly", "typeset"];

/// A longer number before `<` or `>` is no file descriptor.
const LONGEST_DESCRIPTOR: usize = 3;

/// Parses a whole text as bash does, or tells why not.
pub(crate) fn parse_program(text: &str) -> Parsed<Program> {
    let mut reader = Reader::new(text)?;
    let list = reader.whole_list()?;
    Ok(Program { list, documents: reader.documents })
}

impl Reader<'_> {
    /// A list up to the end of the text.
    pub(super) fn whole_list(&mut self) -> Parsed<List> {
        let list = self.list()?;
        if self.peek().is_some() || self.has_pending() {
            return Err(Unclear::Syntax);
        }
        Ok(list)
    }

    /// The list of a substitution, with the closing parenthesis.
    pub(super) fn substitution(&mut self) -> Parsed<List> {
        // A here-document from outside would begin in here.
        if self.has_pending() {
            return Err(Unclear::Syntax);
        }
        let list = self.list()?;
        if self.has_pending() {
            return Err(Unclear::Syntax);
        }
        self.expect(")")?;
        Ok(list)
    }

    /// Commands up to the end, a closing parenthesis, a closing word or the end of a case.
    fn list(&mut self) -> Parsed<List> {
        let mut items = Vec::new();
        loop {
            self.skip_lines()?;
            if self.is_at_end_of_list() {
                return Ok(List { items });
            }
            let and_or = self.and_or()?;
            self.skip_blanks()?;
            let separator = match self.peek() {
                Some(b'&') => {
                    self.next();
                    Separator::Background
                }
                Some(b';') if !matches!(self.peek_second(), Some(b';' | b'&')) => {
                    self.next();
                    Separator::Sequence
                }
                Some(b'\n') => Separator::Sequence,
                _ if self.is_at_end_of_list() => Separator::Sequence,
                _ => return Err(Unclear::Syntax),
            };
            items.push((and_or, separator));
        }
    }

    fn is_at_end_of_list(&self) -> bool {
        matches!(self.peek(), None | Some(b')'))
            || self.rest().starts_with(";;")
            || self.rest().starts_with(";&")
            || CLOSING.iter().any(|word| self.is_at_keyword(word))
    }

    /// Whether this word comes next, and is not a part of a longer one.
    fn is_at_keyword(&self, keyword: &str) -> bool {
        let rest = self.rest();
        rest.strip_prefix(keyword)
            .is_some_and(|after| ends_keyword(after.bytes().next()) || after.starts_with("\\\n"))
    }

    fn takes_keyword(&mut self, keyword: &str) -> bool {
        self.is_at_keyword(keyword) && self.takes(keyword)
    }

    fn expect_keyword(&mut self, keyword: &str) -> Parsed<()> {
        if self.takes_keyword(keyword) { Ok(()) } else { Err(Unclear::Syntax) }
    }

    /// A list with at least one command, as most constructs require it.
    fn some_list(&mut self) -> Parsed<List> {
        let list = self.nested(Self::list)?;
        if list.items.is_empty() { Err(Unclear::Syntax) } else { Ok(list) }
    }

    fn and_or(&mut self) -> Parsed<AndOr> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks()?;
            let joint = if self.takes("&&") {
                Joint::And
            } else if self.takes("||") {
                Joint::Or
            } else {
                return Ok(AndOr { first, rest });
            };
            self.skip_lines()?;
            rest.push((joint, self.pipeline()?));
        }
    }

    fn pipeline(&mut self) -> Parsed<Pipeline> {
        let (mut is_negated, mut is_timed) = (false, false);
        loop {
            self.skip_blanks()?;
            if self.takes_keyword("!") {
                is_negated = !is_negated;
            } else if self.takes_keyword("time") {
                is_timed = true;
                self.skip_blanks()?;
                if self.takes_keyword("-p") {
                    self.skip_blanks()?;
                }
                // The meaning of other options depends on the shell's mode.
                if self.peek() == Some(b'-') {
                    return Err(Unclear::Syntax);
                }
                if self.is_at_end_of_command() {
                    return Ok(Pipeline { is_negated, is_timed, commands: Vec::new() });
                }
            } else {
                break;
            }
        }
        let mut commands = vec![self.nested(Self::command)?];
        loop {
            self.skip_blanks()?;
            if self.rest().starts_with("||") || !(self.takes("|&") || self.takes("|")) {
                return Ok(Pipeline { is_negated, is_timed, commands });
            }
            self.skip_lines()?;
            commands.push(self.nested(Self::command)?);
        }
    }

    fn is_at_end_of_command(&self) -> bool {
        matches!(self.peek(), None | Some(b'\n' | b';' | b'&' | b'|' | b')'))
    }

    fn command(&mut self) -> Parsed<Node> {
        if self.takes_keyword("function") {
            return self.function();
        }
        if self.takes_keyword("coproc") {
            return self.coprocess();
        }
        match self.compound()? {
            Some(compound) => {
                let redirects = self.redirects()?;
                Ok(Node::Compound(Box::new(compound), redirects))
            }
            None => self.simple(),
        }
    }

    /// The redirections behind a compound command.
    fn redirects(&mut self) -> Parsed<Vec<Redirect>> {
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks()?;
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None if self.is_at_end_of_command() => return Ok(redirects),
                None => {
                    // A closing word may follow a group without a separator.
                    return if CLOSING.iter().any(|word| self.is_at_keyword(word)) {
                        Ok(redirects)
                    } else {
                        Err(Unclear::Syntax)
                    };
                }
            }
        }
    }

    fn compound(&mut self) -> Parsed<Option<Compound>> {
        if self.peek() == Some(b'(') {
            self.next();
            if self.takes("(") {
                return self
                    .arithmetic(ArithmeticEnd::Parentheses)
                    .map(Compound::Arithmetic)
                    .map(Some);
            }
            let list = self.some_list()?;
            self.expect(")")?;
            return Ok(Some(Compound::Subshell(list)));
        }
        #[expect(clippy::type_complexity, reason = "a table of words and what reads behind them")]
        let keywords: [(&str, fn(&mut Self) -> Parsed<Compound>); 8] = [
            ("{", Self::group),
            ("if", Self::condition),
            ("while", Self::repetition),
            ("until", Self::repetition),
            ("for", Self::iteration),
            ("select", Self::selection),
            ("case", Self::case),
            ("[[", Self::test),
        ];
        for (keyword, read) in keywords {
            if self.takes_keyword(keyword) {
                return read(self).map(Some);
            }
        }
        if CLOSING.iter().any(|word| self.is_at_keyword(word)) {
            return Err(Unclear::Syntax);
        }
        Ok(None)
    }

    fn group(&mut self) -> Parsed<Compound> {
        let list = self.some_list()?;
        self.expect_keyword("}")?;
        Ok(Compound::Group(list))
    }

    fn condition(&mut self) -> Parsed<Compound> {
        let mut branches = Vec::new();
        loop {
            let condition = self.some_list()?;
            self.expect_keyword("then")?;
            branches.push((condition, self.some_list()?));
            if self.takes_keyword("fi") {
                return Ok(Compound::If(branches, None));
            }
            if self.takes_keyword("else") {
                let otherwise = self.some_list()?;
                self.expect_keyword("fi")?;
                return Ok(Compound::If(branches, Some(otherwise)));
            }
            self.expect_keyword("elif")?;
        }
    }

    fn repetition(&mut self) -> Parsed<Compound> {
        let condition = self.some_list()?;
        Ok(Compound::While(condition, self.body()?))
    }

    /// `do … done`, or a group, which `for` also accepts.
    fn body(&mut self) -> Parsed<List> {
        self.expect_keyword("do")?;
        let body = self.some_list()?;
        self.expect_keyword("done")?;
        Ok(body)
    }

    fn iteration(&mut self) -> Parsed<Compound> {
        self.skip_blanks()?;
        if self.takes("((") {
            let arithmetic = self.arithmetic(ArithmeticEnd::Parentheses)?;
            self.skip_blanks()?;
            self.takes(";");
            self.skip_lines()?;
            return Ok(Compound::ArithmeticFor(arithmetic, self.body()?));
        }
        self.selection()
    }

    /// `for name in words; do … done` or the same with `select`.
    fn selection(&mut self) -> Parsed<Compound> {
        self.skip_blanks()?;
        let name = self.take_while(continues_name).to_owned();
        if !is_name(&name) || !ends_keyword(self.peek()) {
            return Err(Unclear::Syntax);
        }
        self.skip_lines()?;
        let mut words = None;
        if self.takes_keyword("in") {
            let mut found = Vec::new();
            loop {
                self.skip_blanks()?;
                match self.word(WordPlace::Command)? {
                    Some(word) => found.push(word),
                    None => break,
                }
            }
            words = Some(found);
            if self.peek() != Some(b'\n') {
                self.expect(";")?;
            }
        } else {
            self.takes(";");
        }
        self.skip_lines()?;
        Ok(Compound::For(name, words, self.body()?))
    }

    fn case(&mut self) -> Parsed<Compound> {
        self.skip_blanks()?;
        let subject = self.word(WordPlace::Command)?.ok_or(Unclear::Syntax)?;
        self.skip_lines()?;
        self.expect_keyword("in")?;
        let mut arms = Vec::new();
        loop {
            self.skip_lines()?;
            if self.takes_keyword("esac") {
                return Ok(Compound::Case(subject, arms));
            }
            self.takes("(");
            let mut patterns = Vec::new();
            loop {
                self.skip_blanks()?;
                patterns.push(self.word(WordPlace::Command)?.ok_or(Unclear::Syntax)?);
                self.skip_blanks()?;
                if !self.takes("|") {
                    break;
                }
            }
            self.expect(")")?;
            let list = self.nested(Self::list)?;
            arms.push((patterns, list));
            if !(self.takes(";;&") || self.takes(";;") || self.takes(";&")) {
                self.expect_keyword("esac")?;
                return Ok(Compound::Case(subject, arms));
            }
        }
    }

    /// `[[ … ]]`, after its opening.
    fn test(&mut self) -> Parsed<Compound> {
        let mut pieces = Vec::new();
        let mut open = 0_usize;
        // Newlines are allowed only where an operand is expected.
        let mut awaits_operand = true;
        loop {
            if awaits_operand {
                self.skip_lines()?;
            } else {
                self.skip_blanks()?;
            }
            if open == 0 && !pieces.is_empty() && self.takes_keyword("]]") {
                return Ok(Compound::Test(pieces));
            }
            let operator = ["&&", "||", "(", ")", "<", ">"].into_iter().find(|mark| {
                self.rest().starts_with(mark)
                    && !(matches!(*mark, "<" | ">") && self.peek_second() == Some(b'('))
            });
            if let Some(mark) = operator {
                self.expect(mark)?;
                open = match mark {
                    "(" => open + 1,
                    ")" => open.checked_sub(1).ok_or(Unclear::Syntax)?,
                    _ => open,
                };
                awaits_operand = !matches!(mark, ")");
                pieces.push(TestPiece::Operator);
                continue;
            }
            let is_pattern =
                matches!(pieces.last(), Some(TestPiece::Word(word)) if word.written == "=~");
            let place = if is_pattern { WordPlace::Pattern } else { WordPlace::Command };
            let word = self.word(place)?.ok_or(Unclear::Syntax)?;
            awaits_operand = false;
            pieces.push(TestPiece::Word(word));
        }
    }

    /// A function, after the word `function`.
    fn function(&mut self) -> Parsed<Node> {
        self.skip_blanks()?;
        let word = self.word(WordPlace::Command)?.ok_or(Unclear::Syntax)?;
        self.skip_blanks()?;
        if self.takes("(") {
            self.skip_blanks()?;
            self.expect(")")?;
        }
        self.function_body(&word)
    }

    fn function_body(&mut self, name: &SyntaxWord) -> Parsed<Node> {
        let [WordPart::Bare(text)] = name.parts.as_slice() else { return Err(Unclear::Syntax) };
        let plain =
            |byte: u8| continues_name(byte) || matches!(byte, b'-' | b'.' | b':' | b'+' | b'/');
        if !text.bytes().all(plain) {
            return Err(Unclear::Syntax);
        }
        self.skip_lines()?;
        let compound = self.compound()?.ok_or(Unclear::Syntax)?;
        let redirects = self.redirects()?;
        Ok(Node::Function(Box::new(Node::Compound(Box::new(compound), redirects))))
    }

    fn coprocess(&mut self) -> Parsed<Node> {
        self.skip_blanks()?;
        if self.starts_compound() {
            return Ok(Node::Coprocess(None, Box::new(self.command()?)));
        }
        let items = self.items()?;
        self.skip_blanks()?;
        match items.as_slice() {
            [Item::Word(name)] if self.starts_compound() => {
                let name = Some(name.written.clone()).filter(|name| is_name(name));
                let name = Some(name.ok_or(Unclear::Syntax)?);
                Ok(Node::Coprocess(name, Box::new(self.command()?)))
            }
            [] => Err(Unclear::Syntax),
            // `coproc name { … }` is parsed as words.
            [Item::Word(_), Item::Word(second), ..]
                if ["{", "[[", "if", "for", "while", "until", "case", "select"]
                    .contains(&second.written.as_str()) =>
            {
                Err(Unclear::Syntax)
            }
            _ => Ok(Node::Coprocess(None, Box::new(Node::Simple(items)))),
        }
    }

    fn starts_compound(&self) -> bool {
        self.peek() == Some(b'(')
            || ["{", "if", "while", "until", "for", "select", "case", "[["]
                .iter()
                .any(|word| self.is_at_keyword(word))
    }

    fn simple(&mut self) -> Parsed<Node> {
        let items = self.items()?;
        if self.peek() != Some(b'(') {
            return if items.is_empty() { Err(Unclear::Syntax) } else { Ok(Node::Simple(items)) };
        }
        // `name ()` defines a function; no other parenthesis is valid here.
        let [Item::Word(name)] = items.as_slice() else { return Err(Unclear::Syntax) };
        self.expect("(")?;
        self.skip_blanks()?;
        self.expect(")")?;
        self.function_body(name)
    }

    /// The assignments, words and redirections of a simple command.
    fn items(&mut self) -> Parsed<Vec<Item>> {
        let mut items = Vec::new();
        let mut takes_assignments = true;
        loop {
            self.skip_blanks()?;
            if let Some(redirect) = self.redirect()? {
                items.push(Item::Redirect(redirect));
                continue;
            }
            if self.is_at_end_of_command() || self.peek() == Some(b'(') {
                return Ok(items);
            }
            if takes_assignments && let Some(assignment) = self.assignment()? {
                items.push(Item::Assignment(assignment));
                continue;
            }
            let word = self.word(WordPlace::Command)?.ok_or(Unclear::Syntax)?;
            let is_program = !items.iter().any(|item| matches!(item, Item::Word(_)));
            if is_program {
                takes_assignments = DECLARING.contains(&word.written.as_str());
            }
            items.push(Item::Word(word));
        }
    }

    /// An assignment, if one comes next.
    fn assignment(&mut self) -> Parsed<Option<SyntaxAssignment>> {
        let start = self.position();
        let rest = self.rest();
        let length = rest.bytes().take_while(|byte| continues_name(*byte)).count();
        if length == 0 || !rest.bytes().next().is_some_and(starts_name) {
            return Ok(None);
        }
        let name = rest.get(..length).unwrap_or_default().to_owned();
        let after = rest.get(length..).unwrap_or_default();
        let begins = after.starts_with('=') || after.starts_with("+=") || after.starts_with('[');
        if !begins {
            return Ok(None);
        }
        self.expect(&name)?;
        let index = self.index()?;
        // Whether an operator in an index ends the word depends on the position of the word.
        if index.is_some() && self.since(start).bytes().any(is_metacharacter) {
            return Err(Unclear::Syntax);
        }
        let appends = self.takes("+");
        // Bash has its own rules for `name[…]` alone.
        self.expect("=")?;
        let value = if self.peek() == Some(b'(') {
            self.next();
            AssignedValue::Array(self.elements()?)
        } else {
            AssignedValue::Scalar(self.word(WordPlace::Command)?.unwrap_or_default())
        };
        let written = self.since(start).to_owned();
        self.check_pending(&written)?;
        if !self.peek().is_none_or(is_metacharacter) && !self.rest().starts_with("\\\n") {
            return Err(Unclear::Syntax);
        }
        Ok(Some(SyntaxAssignment { name, index, appends, value, written }))
    }

    /// The elements of an array, with the closing parenthesis.
    fn elements(&mut self) -> Parsed<Vec<(Option<Arithmetic>, SyntaxWord)>> {
        let mut elements = Vec::new();
        loop {
            if self.has_pending() {
                return Err(Unclear::Syntax);
            }
            self.skip_lines()?;
            if self.takes(")") {
                return Ok(elements);
            }
            let index = if self.peek() == Some(b'[') {
                let index = self.index()?;
                self.expect("=")?;
                index
            } else {
                None
            };
            let word = self.word(WordPlace::Command)?;
            let word = if index.is_some() { Some(word.unwrap_or_default()) } else { word };
            elements.push((index, word.ok_or(Unclear::Syntax)?));
        }
    }

    /// A redirection, if one comes next.
    fn redirect(&mut self) -> Parsed<Option<Redirect>> {
        let rest = self.rest();
        if self.takes("&>>") || self.takes("&>") {
            let target = self.target()?;
            let kind = RedirectKind::Write(target);
            return Ok(Some(Redirect { variable: None, is_input: false, kind }));
        }
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let variable = rest
            .strip_prefix('{')
            .and_then(|rest| rest.split_once('}'))
            .map(|(name, _)| name)
            .filter(|name| is_name(name));
        // An element of an array is possible here, and its index can run commands.
        if element_in_braces(rest) {
            return Err(Unclear::Syntax);
        }
        let prefix = variable.map_or(digits, |name| name.len() + 2);
        let operator = rest.get(prefix..).unwrap_or_default();
        let opens = operator.starts_with(['<', '>'])
            && !operator.starts_with("<(")
            && !operator.starts_with(">(");
        if !opens {
            return Ok(None);
        }
        if digits > LONGEST_DESCRIPTOR {
            return Err(Unclear::Syntax);
        }
        let descriptor = rest.get(..digits).unwrap_or_default();
        self.take_while(|byte| !matches!(byte, b'<' | b'>'));
        let writes_by_default = operator.starts_with('>');
        let is_input = variable.is_none()
            && if descriptor.is_empty() {
                !writes_by_default
            } else {
                descriptor.bytes().all(|b| b == b'0')
            };
        let kind = self.redirect_kind()?;
        Ok(Some(Redirect { variable: variable.map(str::to_owned), is_input, kind }))
    }

    fn redirect_kind(&mut self) -> Parsed<RedirectKind> {
        if self.takes("<<<") {
            return self.target().map(RedirectKind::HereString);
        }
        if self.takes("<<") {
            let strips_tabs = self.takes("-");
            self.skip_blanks()?;
            let (delimiter, is_quoted) = self.delimiter()?;
            let number = self.documents.len();
            self.documents.push(Document::default());
            self.add_pending(Pending { number, delimiter, is_quoted, strips_tabs });
            return Ok(RedirectKind::Document(number));
        }
        for (mark, make) in [
            ("<>", RedirectKind::ReadWrite as fn(SyntaxWord) -> RedirectKind),
            ("<&", RedirectKind::Duplicate),
            (">&", RedirectKind::Duplicate),
            (">>", RedirectKind::Write),
            (">|", RedirectKind::Write),
            ("<", RedirectKind::Read),
            (">", RedirectKind::Write),
        ] {
            if self.takes(mark) {
                // A dash closes a descriptor, whatever follows it directly.
                self.skip_blanks()?;
                if mark.ends_with('&') && self.takes("-") {
                    let dash = WordPart::Bare("-".to_owned());
                    return Ok(make(SyntaxWord { written: "-".to_owned(), parts: vec![dash] }));
                }
                return self.target().map(make);
            }
        }
        Err(Unclear::Syntax)
    }

    fn target(&mut self) -> Parsed<SyntaxWord> {
        self.skip_blanks()?;
        self.word(WordPlace::Command)?.ok_or(Unclear::Syntax)
    }
}

/// Whether a text begins with `{name[index]}` and a redirection may follow.
fn element_in_braces(text: &str) -> bool {
    let name = text.strip_prefix('{').and_then(|rest| rest.split_once('[')).map(|(name, _)| name);
    name.is_some_and(is_name) && ["]}<", "]}>"].iter().any(|end| text.contains(end))
}
