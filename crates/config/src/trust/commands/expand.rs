//! The texts that a word of a command may stand for: without its quotes, with what variables may hold.

use super::segments::{balanced, position};
use super::{CommandReader, DEEPEST, UNKNOWN};

/// The most texts that one word may stand for.
const MOST_ALTERNATIVES: usize = 256;

/// The names under which commands know the directory of the project.
const PROJECT: [&str; 2] = ["CLAUDE_PROJECT_DIR", "PWD"];

impl CommandReader<'_> {
    /// The texts that a token may stand for, without its quotes. Commands in it go to `inner`.
    pub(super) fn expand(
        &self,
        token: &str,
        mut is_quoted: bool,
        depth: usize,
        inner: &mut Vec<String>,
    ) -> Vec<String> {
        let letters: Vec<char> = token.chars().collect();
        let mut texts = Alternatives::default();
        let mut at = 0;
        while let Some(&letter) = letters.get(at) {
            at += 1;
            match letter {
                '"' => is_quoted = !is_quoted,
                '\'' if !is_quoted => {
                    let end = position(&letters, at, |it| it == '\'');
                    letters[at..end].iter().for_each(|letter| texts.push(*letter));
                    at = end + 1;
                }
                '\\' => {
                    letters.get(at).into_iter().for_each(|letter| texts.push(*letter));
                    at += 1;
                }
                '`' => {
                    let end = position(&letters, at, |it| it == '`');
                    inner.push(letters[at..end].iter().collect());
                    texts.push(UNKNOWN);
                    at = end + 1;
                }
                '$' => match letters.get(at) {
                    Some('(') => {
                        let end = balanced(&letters, at, is_quoted, 0);
                        inner.push(letters[at + 1..end].iter().collect());
                        texts.push(UNKNOWN);
                        at = end + 1;
                    }
                    Some('{') => {
                        let end = balanced(&letters, at, is_quoted, 0);
                        let content: String = letters[at + 1..end].iter().collect();
                        texts.extend(&self.parameter(&content, is_quoted, depth, inner));
                        at = end + 1;
                    }
                    // `$'…'` and `$"…"`.
                    Some('\'' | '"') if !is_quoted => {}
                    _ => {
                        let end = position(&letters, at, |it| !is_name(it));
                        // `$1`, `$@`.
                        let end = if end == at { (at + 1).min(letters.len()) } else { end };
                        let name: String = letters[at..end].iter().collect();
                        texts.extend(&self.variable(&name));
                        at = end;
                    }
                },
                '~' if texts.are_empty() && !is_quoted => match (letters.get(at), self.home) {
                    (Some('/') | None, Some(home)) => {
                        texts.extend(&[home.to_string_lossy().into_owned()]);
                    }
                    (Some('+'), _) => {
                        texts.push('.');
                        at += 1;
                    }
                    _ => texts.push('~'),
                },
                '{' if !is_quoted && letters.get(at..).is_some_and(|rest| rest.contains(&'}')) => {
                    // A list of words.
                    texts.push(UNKNOWN);
                    at = position(&letters, at, |it| it == '}') + 1;
                }
                letter => texts.push(letter),
            }
        }
        self.cut.set(self.cut.get() || texts.is_cut);
        texts.texts
    }

    /// The texts that `${…}` may stand for: the value, or the word that stands in for it, such as `b` in `${a:-b}`
    /// and `${a/x/b}`.
    fn parameter(
        &self,
        content: &str,
        is_quoted: bool,
        depth: usize,
        inner: &mut Vec<String>,
    ) -> Vec<String> {
        let start = content.trim_start_matches(['!', '#']);
        let name = start.trim_start_matches(is_name);
        let (name, rest) = start.split_at(start.len() - name.len());
        let operator = rest.trim_start_matches(':').chars().next();
        let word = rest.trim_start_matches(|it| ":-=+?#%/^,@".contains(it));
        let word = match (operator, word.split_once('/')) {
            (Some('/'), Some((_, instead))) => instead,
            _ => word,
        };
        if depth > DEEPEST {
            inner.push(word.to_owned());
            return self.variable(name);
        }
        let words = self.expand(word, is_quoted, depth + 1, inner);
        let stands_in = matches!(operator, Some('-' | '=' | '+' | '?' | '/'));
        let words = words.into_iter().filter(|it| stands_in && !it.is_empty());
        self.variable(name).into_iter().chain(words).collect()
    }

    /// The texts that a variable may stand for.
    fn variable(&self, name: &str) -> Vec<String> {
        let first = match self.home {
            _ if PROJECT.contains(&name) => ".".to_owned(),
            Some(home) if name == "HOME" => home.to_string_lossy().into_owned(),
            _ => UNKNOWN.to_string(),
        };
        let assigned = self.assigned.get(name).into_iter().flatten().cloned();
        std::iter::once(first).chain(assigned).collect()
    }
}

/// The texts that one word may be.
struct Alternatives {
    texts: Vec<String>,
    is_cut: bool,
}

impl Default for Alternatives {
    fn default() -> Self {
        Self { texts: vec![String::new()], is_cut: false }
    }
}

impl Alternatives {
    fn are_empty(&self) -> bool {
        self.texts.iter().all(String::is_empty)
    }

    fn push(&mut self, letter: char) {
        self.texts.iter_mut().for_each(|text| text.push(letter));
    }

    /// Continues with each of these.
    fn extend(&mut self, endings: &[String]) {
        let texts = endings
            .iter()
            .flat_map(|ending| self.texts.iter().map(move |text| format!("{text}{ending}")));
        let mut texts: Vec<String> = texts.take(MOST_ALTERNATIVES + 1).collect();
        self.is_cut |= texts.len() > MOST_ALTERNATIVES;
        texts.truncate(MOST_ALTERNATIVES);
        self.texts = texts;
    }
}

fn is_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}
