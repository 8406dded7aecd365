//! Explains why a text is not in a file, as far as possible: finds nearly equal text, and its place.
//!
//! Each search is linear in the size of the file.

use std::fmt;

/// The lines of the file that an explanation shows.
const MAX_LINES: usize = 12;

/// The characters shown of each line.
const MAX_COLUMNS: usize = 200;

/// The text of a file that comes nearest to a text that it does not contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Every line starts with a number and a tab, as Read shows them.
    LineNumbers,
    /// The same text but for the characters in `difference`.
    Nearly {
        difference: &'static str,
        found: Excerpt,
    },
    /// Similar lines.
    Similar(Excerpt),
    Nothing,
}

/// Maps a character to the one it is compared as, or drops it.
type Fold = fn(char) -> Option<char>;

/// A few lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    first: usize,
    lines: Vec<String>,
}

impl Mismatch {
    /// Finds the reason why `old` is not in `text`.
    pub(super) fn between(text: &str, old: &str) -> Self {
        if has_line_numbers(old) {
            return Self::LineNumbers;
        }
        let looks: [(&'static str, Fold); 3] = [
            ("typographic quotes, dashes or spaces", |character| Some(plain(character))),
            ("indentation or other white space", solid),
            ("upper and lower case, or white space", caseless),
        ];
        for (difference, fold) in looks {
            if let Some(line) = find_folded(text, old, fold) {
                let count = old.trim_matches('\n').split('\n').count();
                return Self::Nearly { difference, found: Excerpt::of(text, line, count) };
            }
        }
        nearest(text, old).map_or(Self::Nothing, Self::Similar)
    }
}

fn has_line_numbers(old: &str) -> bool {
    let mut lines = old.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            let rest = line.trim_start().trim_start_matches(|digit: char| digit.is_ascii_digit());
            rest.len() < line.trim_start().len() && rest.starts_with('\t')
        })
}

fn plain(character: char) -> char {
    match character {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' => ' ',
        other => other,
    }
}

fn solid(character: char) -> Option<char> {
    Some(plain(character)).filter(|character| !character.is_whitespace())
}

fn caseless(character: char) -> Option<char> {
    solid(character).map(|character| character.to_lowercase().next().unwrap_or(character))
}

/// The line on which `old` begins in `text` when both are folded; folding may drop characters.
fn find_folded(text: &str, old: &str, fold: Fold) -> Option<usize> {
    let needle: String = old.chars().filter_map(fold).collect();
    if needle.is_empty() {
        return None;
    }
    let folded: String = text.chars().filter_map(fold).collect();
    let at = folded.find(&needle)?;
    // Walks along the original until the same amount of folded text has passed.
    let (mut gone, mut line) = (0, 1);
    for character in text.chars() {
        if let Some(folded) = fold(character) {
            if gone >= at {
                break;
            }
            gone += folded.len_utf8();
        }
        if character == '\n' {
            line += 1;
        }
    }
    Some(line)
}

/// The lines that agree best with the longest line of `old`, by their beginnings and ends.
fn nearest(text: &str, old: &str) -> Option<Excerpt> {
    let (index, wanted) = old
        .lines()
        .map(str::trim)
        .enumerate()
        .max_by_key(|(index, line)| (line.len(), std::cmp::Reverse(*index)))?;
    if wanted.len() < 4 {
        return None;
    }
    let score = |line: &str| {
        let line = line.trim();
        let start = line.bytes().zip(wanted.bytes()).take_while(|(a, b)| a == b).count();
        let rest = line.len().min(wanted.len()) - start;
        let pairs = line.bytes().rev().zip(wanted.bytes().rev());
        start + pairs.take(rest).take_while(|(a, b)| a == b).count()
    };
    let (best, line) = text
        .lines()
        .enumerate()
        .map(|(number, line)| (score(line), number))
        .max_by_key(|(score, number)| (*score, std::cmp::Reverse(*number)))?;
    if best * 2 < wanted.len() {
        return None;
    }
    Some(Excerpt::of(text, (line + 1).saturating_sub(index).max(1), old.lines().count()))
}

impl Excerpt {
    fn of(text: &str, first: usize, count: usize) -> Self {
        let lines = text.lines().skip(first - 1).take(count.clamp(1, MAX_LINES));
        Self { first, lines: lines.map(|line| line.chars().take(MAX_COLUMNS).collect()).collect() }
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, line) in (self.first..).zip(&self.lines) {
            write!(formatter, "\n{number}\t{line}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LineNumbers => formatter
                .write_str("; leave out the line numbers and tabs that Read puts before lines"),
            Self::Nearly { difference, found } => write!(
                formatter,
                "; this differs from it only in {difference}:{found}\nCopy it exactly as it stands."
            ),
            Self::Similar(lines) => {
                write!(formatter, "; the most similar lines are:{lines}\nCopy the text exactly.")
            }
            Self::Nothing => formatter.write_str(", nor anything like it; Read the part to change"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, old: &str) -> String {
        Mismatch::between(text, old).to_string()
    }

    #[test]
    fn indentation_is_found_out() {
        let said = said("fn a() {\n\tif x {\n\t\ty();\n\t}\n}\n", "    if x {\n        y();");
        assert!(said.contains("indentation"), "{said}");
        assert!(said.contains("\n2\t\tif x {\n3\t\t\ty();"), "{said}");
    }

    #[test]
    fn typographic_quotes_are_found_out() {
        let said = said("a\nsay “hello” — now\n", "say \"hello\" - now");
        assert!(said.contains("typographic") && said.contains("2\tsay “hello”"), "{said}");
    }

    #[test]
    fn letter_case_is_found_out() {
        let said = said("const LIMIT: usize = 3;\n", "const limit: usize = 3;");
        assert!(said.contains("lower case") && said.contains("1\tconst LIMIT"), "{said}");
    }

    #[test]
    fn pasted_line_numbers_are_found_out() {
        assert!(said("a\nb\n", "1\ta\n2\tb").contains("line numbers"));
        assert!(!said("a\nb\n", "1\ta\nb").contains("line numbers"));
    }

    #[test]
    fn otherwise_the_most_similar_lines_are_shown() {
        let text = "start\nlet total = sum(values);\nend\n";
        let said = said(text, "let total = sum(items);\nend");
        assert!(said.contains("2\tlet total = sum(values);\n3\tend"), "{said}");
        assert_eq!(Mismatch::between(text, "completely different"), Mismatch::Nothing);
    }

    #[test]
    fn an_explanation_is_bounded() {
        let text = format!("{}\n", " x".repeat(10_000)).repeat(50);
        let old = format!("{}\n", "\tx".repeat(10_000)).repeat(40);
        assert!(said(&text, &old).len() < MAX_LINES * (MAX_COLUMNS + 20) + 200);
    }
}
