//! What a shell makes of a word, where the text alone tells.
//!
//! Quotes, escapes and a leading `~` are resolved; a word with a pattern, a brace list or an expansion
//! has no value. Commands inside expansions are handed out as text.

use std::path::Path;

use brush_parser::ParserOptions;
use brush_parser::word::{self, Parameter, ParameterExpr, WordPiece, WordPieceWithSource};

use super::ansi_c;
use super::script::{Unclear, Word};
use super::words::is_plain_word;

/// `$(` in one word, at most.
const MOST_SUBSTITUTIONS: usize = 8;

/// `${` in one word, at most.
const MOST_EXPANSIONS: usize = 30;

/// Parentheses in a word with arithmetic, at most.
const MOST_PARENTHESES: usize = 12;

/// What stands in a word: its value, and the command lines that run while it is expanded.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    value: Option<String>,
    pub(crate) inner: Vec<String>,
    pub(crate) unclear: Option<Unclear>,
}

impl Reading {
    pub(crate) fn word(
        written: &str,
        home: Option<&Path>,
        options: &ParserOptions,
    ) -> (Word, Self) {
        if is_plain_word(written) {
            let value = Some(written.to_owned());
            return (Word { written: written.to_owned(), value }, Self::default());
        }
        let mut reading = Self { value: Some(String::new()), ..Self::default() };
        if is_too_deep(written) {
            reading.fail(Unclear::TooDeep);
            return (Word::unknown(written), reading);
        }
        match word::parse(written, options) {
            Ok(pieces) => reading.pieces(&pieces, Quoting::None, options),
            Err(_) => reading.fail(Unclear::Syntax),
        }
        if has_tilde(written) {
            reading.value = reading.value.and_then(|value| expand_tilde(written, &value, home));
        }
        (Word { written: written.to_owned(), value: reading.value.take() }, reading)
    }

    /// The expansions of a here-document whose end is not quoted.
    pub(crate) fn here_document(text: &str, options: &ParserOptions) -> Self {
        let mut reading = Self::default();
        if is_too_deep(text) {
            reading.fail(Unclear::TooDeep);
            return reading;
        }
        match word::parse_heredoc(text, options) {
            Ok(pieces) => reading.pieces(&pieces, Quoting::Double, options),
            Err(_) => reading.fail(Unclear::Syntax),
        }
        reading
    }

    fn fail(&mut self, why: Unclear) {
        self.unclear.get_or_insert(why);
        self.value = None;
    }

    fn push(&mut self, text: &str) {
        if let Some(value) = &mut self.value {
            value.push_str(text);
        }
    }

    fn pieces(
        &mut self,
        pieces: &[WordPieceWithSource],
        quoting: Quoting,
        options: &ParserOptions,
    ) {
        for piece in pieces {
            self.piece(&piece.piece, quoting, options);
        }
    }

    fn piece(&mut self, piece: &WordPiece, quoting: Quoting, options: &ParserOptions) {
        match piece {
            WordPiece::Text(text) => match quoting {
                Quoting::Double if text.contains("\\\n") => self.value = None,
                Quoting::None if text.contains(['*', '?', '[', '{', '}']) => self.value = None,
                _ => self.push(text),
            },
            WordPiece::SingleQuotedText(text) => self.push(text),
            WordPiece::AnsiCQuotedText(text) => match ansi_c::decode(text) {
                Some(decoded) => self.push(&decoded),
                None => self.value = None,
            },
            WordPiece::DoubleQuotedSequence(inner) => self.pieces(inner, Quoting::Double, options),
            WordPiece::GettextDoubleQuotedSequence(inner) => {
                self.pieces(inner, Quoting::Double, options);
                self.value = None;
            }
            WordPiece::EscapeSequence(text) => match text.strip_prefix('\\') {
                Some("\n") => {}
                Some(rest) => self.push(rest),
                None => self.value = None,
            },
            WordPiece::CommandSubstitution(command) => {
                self.inner.push(command.clone());
                self.value = None;
            }
            WordPiece::BackquotedCommandSubstitution(command) => {
                // A backslash inside backquotes is read twice.
                if command.contains('\\') {
                    self.fail(Unclear::Expansion);
                }
                self.inner.push(command.clone());
                self.value = None;
            }
            WordPiece::ArithmeticExpression(expression) => {
                if !is_plain_arithmetic(&expression.value) {
                    self.fail(Unclear::Arithmetic);
                }
                self.value = None;
            }
            WordPiece::ParameterExpansion(expression) => {
                self.parameter(expression, options);
                self.value = None;
            }
            WordPiece::TildeExpansion(_) => self.value = None,
        }
    }

    /// Reading a variable is harmless; anything more may run or set something.
    fn parameter(&mut self, expression: &ParameterExpr, options: &ParserOptions) {
        let (parameter, indirect, word) = match expression {
            ParameterExpr::Parameter { parameter, indirect }
            | ParameterExpr::ParameterLength { parameter, indirect } => (parameter, indirect, None),
            ParameterExpr::UseDefaultValues { parameter, indirect, default_value, .. } => {
                (parameter, indirect, default_value.as_ref())
            }
            ParameterExpr::UseAlternativeValue {
                parameter, indirect, alternative_value, ..
            } => (parameter, indirect, alternative_value.as_ref()),
            _ => return self.fail(Unclear::Expansion),
        };
        let plain = matches!(
            parameter,
            Parameter::Named(_) | Parameter::Positional(_) | Parameter::Special(_)
        );
        if *indirect || !plain {
            self.fail(Unclear::Expansion);
        }
        if let Some(word) = word {
            let (_, reading) = Self::word(word, None, options);
            self.inner.extend(reading.inner);
            if let Some(why) = reading.unclear {
                self.fail(why);
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quoting {
    None,
    Double,
}

/// Whether a word has more substitutions than the grammar can fail on quickly: where one is not closed,
/// it has tried every one of them in several ways.
fn is_too_deep(text: &str) -> bool {
    let count = |opening: &str| text.matches(opening).count();
    let arithmetic = text.contains("$((") || text.contains("$[");
    count("$(") > MOST_SUBSTITUTIONS
        || count("${") > MOST_EXPANSIONS
        || (arithmetic && count("(") > MOST_PARENTHESES)
}

/// Whether arithmetic has only numbers in it: a name may hold text that is run.
pub(crate) fn is_plain_arithmetic(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || " \t+-*/%()".contains(c))
}

/// Whether a `~` in the word may be a home directory: at its start, or after `=` or `:`.
fn has_tilde(written: &str) -> bool {
    written.starts_with('~') || written.contains("=~") || written.contains(":~")
}

fn expand_tilde(written: &str, value: &str, home: Option<&Path>) -> Option<String> {
    let elsewhere = written.contains("=~") || written.contains(":~");
    if elsewhere || !(written == "~" || written.starts_with("~/")) {
        return None;
    }
    Some(format!("{}{}", home?.to_str()?, value.strip_prefix('~')?))
}
