//! Values in commands, written so that the shell takes them for data: quoted as the place asks for where
//! the author put the placeholder.

use super::super::definition::Shell;
use super::QuotingError;
use super::shell_context::{Context, ShellReader};
use super::values::PlaceholderValue;

/// Words that begin or end a part of a command where they stand bare.
const RESERVED: [&str; 17] = [
    "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while",
];

/// Writes a command from the author's text and values.
pub(super) struct CommandWriter {
    command: String,
    /// Has read all of the command, values too.
    reader: ShellReader,
}

impl CommandWriter {
    pub(super) fn new(shell: Shell) -> Self {
        let reader = match shell {
            Shell::Bash => ShellReader::new(),
            Shell::PowerShell => ShellReader::lost(),
        };
        Self { command: String::new(), reader }
    }

    pub(super) fn len(&self) -> usize {
        self.command.len()
    }

    pub(super) fn finish(self) -> String {
        self.command
    }

    /// Adds what the author wrote.
    pub(super) fn push_literal(&mut self, text: &str) {
        self.reader.read(text);
        self.command.push_str(text);
    }

    /// Adds a value, before this byte of the author's.
    pub(super) fn push_value(
        &mut self,
        value: &PlaceholderValue<'_>,
        next: Option<u8>,
    ) -> Result<(), QuotingError> {
        let (text, words): (&str, &[String]) = match value {
            PlaceholderValue::Unset | PlaceholderValue::Missing => ("", &[]),
            PlaceholderValue::One(text) => (text, &[]),
            PlaceholderValue::All { raw, words } => (raw, words),
        };
        if text.contains('\0') {
            return Err(QuotingError::Nul);
        }
        let is_one = matches!(value, PlaceholderValue::One(_));
        let ends_word = next.is_none_or(|byte| b" \t\n".contains(&byte));
        let context = match self.reader.context() {
            Context::Unquoted { .. } | Context::DoubleQuotes | Context::SingleQuotes
                if self.reader.is_evaluated() =>
            {
                Context::Unknown
            }
            context => context,
        };
        let data = match context {
            // An empty value stands for no text in every context.
            _ if !is_one && words.is_empty() && text.trim().is_empty() => String::new(),
            Context::Unquoted { begins_word, takes_one_word } => {
                let may_be_bare = begins_word && ends_word;
                if is_one || takes_one_word {
                    as_word(text, may_be_bare)
                } else {
                    let words: Vec<_> =
                        words.iter().map(|word| as_word(word, may_be_bare)).collect();
                    words.join(" ")
                }
            }
            Context::DoubleQuotes => escape_double(text),
            Context::SingleQuotes => text.replace('\'', r"'\''"),
            Context::Unknown => {
                let word = match words {
                    [word] => word.as_str(),
                    _ => text,
                };
                // As a part of a longer word, a part of a reserved word may become that.
                let may_be_reserved = RESERVED.iter().any(|reserved| reserved.contains(word));
                if !is_safe(word) || may_be_reserved {
                    return Err(QuotingError::UnknownContext);
                }
                word.to_owned()
            }
            Context::Refused(reason) => return Err(reason),
        };
        self.push_literal(&data);
        Ok(())
    }
}

/// One word of a command.
fn as_word(text: &str, may_be_bare: bool) -> String {
    if may_be_bare && is_safe(text) && !RESERVED.contains(&text) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn escape_double(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '"' | '\\' | '$' | '`') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Checks that a text is made of characters that no shell gives a meaning.
fn is_safe(text: &str) -> bool {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:".contains(&byte);
    !text.is_empty() && text.bytes().all(is_safe)
}
