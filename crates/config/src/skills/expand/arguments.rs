//! The words of an argument text, cut as a shell cuts them. Nothing else of a shell is in force here: `$`,
//! `*`, `;` and `#` are ordinary characters.

/// The words of a text. Quotes keep blanks together and are taken away, and a backslash takes the meaning
/// of the next character. What cannot be quoting is taken literally: a quote that is never closed, a
/// backslash at the end.
pub fn split_arguments(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = text;
    let mut has_closing_double = true;
    while let Some(character) = rest.chars().next() {
        let after = rest.get(character.len_utf8()..).unwrap_or_default();
        rest = after;
        match character {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => match after.split_once('\'') {
                Some((quoted, after)) => {
                    word.get_or_insert_default().push_str(quoted);
                    rest = after;
                }
                None => word.get_or_insert_default().push('\''),
            },
            '"' => {
                let found = has_closing_double.then(|| double_quoted(after)).flatten();
                // Not looked for again, so that a text of quotes is read in one pass.
                has_closing_double = found.is_some();
                let (quoted, after) = found.unwrap_or(("\"".to_owned(), after));
                word.get_or_insert_default().push_str(&quoted);
                rest = after;
            }
            '\\' => {
                let escaped = after.chars().next();
                rest = after.get(escaped.map_or(0, char::len_utf8)..).unwrap_or_default();
                match escaped {
                    // A continued line.
                    Some('\n') => {}
                    escaped => word.get_or_insert_default().push(escaped.unwrap_or('\\')),
                }
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
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
