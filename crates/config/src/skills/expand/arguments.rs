//! The words of an argument text, cut as a shell cuts them. Nothing else of a shell is in force here: `$`,
//! `*`, `;` and `#` are ordinary characters.

/// The words of a text. Quotes keep blanks together and are taken away, and a backslash takes the meaning
/// of the next character. What cannot be quoting is taken literally: a quote that is never closed, a
/// backslash at the end.
pub fn split_arguments(text: &str) -> Vec<String> {
    ArgumentWords::new(text).collect()
}

/// The words of a text, one after the other, as [`split_arguments`] has them.
#[derive(Clone, Debug)]
pub struct ArgumentWords<'t> {
    rest: &'t str,
    has_closing_double: bool,
}

impl<'t> ArgumentWords<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { rest: text, has_closing_double: true }
    }

    /// The text behind the words that were taken, as it is written.
    pub fn rest(&self) -> &'t str {
        self.rest
    }
}

impl Iterator for ArgumentWords<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let mut word: Option<String> = None;
        while let Some(character) = self.rest.chars().next() {
            let after = self.rest.get(character.len_utf8()..).unwrap_or_default();
            self.rest = after;
            match character {
                ' ' | '\t' | '\n' | '\r' if word.is_some() => return word,
                ' ' | '\t' | '\n' | '\r' => {}
                '\'' => match after.split_once('\'') {
                    Some((quoted, after)) => {
                        word.get_or_insert_default().push_str(quoted);
                        self.rest = after;
                    }
                    None => word.get_or_insert_default().push('\''),
                },
                '"' => {
                    let found = self.has_closing_double.then(|| double_quoted(after)).flatten();
                    // Not looked for again, so that a text of quotes is read in one pass.
                    self.has_closing_double = found.is_some();
                    let (quoted, after) = found.unwrap_or(("\"".to_owned(), after));
                    word.get_or_insert_default().push_str(&quoted);
                    self.rest = after;
                }
                '\\' => {
                    let escaped = after.chars().next();
                    self.rest = after.get(escaped.map_or(0, char::len_utf8)..).unwrap_or_default();
                    match escaped {
                        // A continued line.
                        Some('\n') => {}
                        escaped => word.get_or_insert_default().push(escaped.unwrap_or('\\')),
                    }
                }
                other => word.get_or_insert_default().push(other),
            }
        }
        word
    }
}

/// Splits a text at the closing double quote.
fn double_quoted(text: &str) -> Option<(String, &str)> {
    let mut quoted = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_at(rest.find(['"', '\\'])?);
        quoted.push_str(before);
        if let Some(after) = after.strip_prefix('"') {
            return Some((quoted, after));
        }
        let after = after.get(1..)?;
        let escaped = after.chars().next()?;
        match escaped {
            '"' | '\\' | '$' | '`' => quoted.push(escaped),
            '\n' => {}
            other => quoted.extend(['\\', other]),
        }
        rest = after.get(escaped.len_utf8()..)?;
    }
}
