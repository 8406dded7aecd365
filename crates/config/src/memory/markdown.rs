//! As much Markdown as memory files need: where code is, which comments are hidden, which files are
//! imported.

use std::borrow::Cow;

/// A text as a model shall see it, and the files that it imports.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scan<'t> {
    pub(super) text: Cow<'t, str>,
    pub(super) imports: Vec<Import>,
}

/// An `@path` outside of code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) path: String,
    pub(super) line: usize,
}

/// Removes block comments and finds imports. Lines are counted from `first_line`.
pub(super) fn scan(text: &str, first_line: usize) -> Scan<'_> {
    let (comments, mentions) = (text.contains("<!--"), text.contains('@'));
    if !comments && !mentions {
        return Scan { text: Cow::Borrowed(text), imports: Vec::new() };
    }
    let mut scanner =
        MarkdownScanner { kept: String::with_capacity(text.len()), ..MarkdownScanner::default() };
    let mut offset = 0;
    for (number, line) in (first_line..).zip(text.split_inclusive('\n')) {
        let after = text.get(offset..).unwrap_or_default();
        offset += line.len();
        scanner.line(number, line, after);
    }
    scanner.end_paragraph();
    let text = if comments { Cow::Owned(scanner.kept) } else { Cow::Borrowed(text) };
    Scan { text, imports: scanner.imports }
}

#[derive(Default)]
struct MarkdownScanner {
    kept: String,
    imports: Vec<Import>,
    fence: Option<Fence>,
    in_comment: bool,
    /// The lines of the paragraph under way and the number of its first: a code span may go over
    /// several lines, but never past a blank one.
    paragraph: String,
    paragraph_line: usize,
}

#[derive(Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
}

impl MarkdownScanner {
    /// Takes one line; `rest` is the text from its start on.
    fn line(&mut self, number: usize, line: &str, rest: &str) {
        if let Some(fence) = self.fence {
            self.kept.push_str(line);
            if fence.is_closed_by(line) {
                self.fence = None;
            }
        } else if self.in_comment {
            self.comment_line(line);
        } else if let Some(fence) = Fence::opened_by(line) {
            self.end_paragraph();
            self.fence = Some(fence);
            self.kept.push_str(line);
        } else if unindented(line).starts_with("<!--") && rest.contains("-->") {
            self.end_paragraph();
            self.in_comment = true;
            self.comment_line(line);
        } else {
            self.kept.push_str(line);
            if line.trim().is_empty() {
                self.end_paragraph();
            } else {
                if self.paragraph.is_empty() {
                    self.paragraph_line = number;
                }
                self.paragraph.push_str(line);
            }
        }
    }

    /// Drops a line of a comment, keeping what stands after its end.
    fn comment_line(&mut self, line: &str) {
        if let Some((_, after)) = line.split_once("-->") {
            self.in_comment = false;
            if !after.trim().is_empty() {
                self.kept.push_str(after);
            }
        }
    }

    fn end_paragraph(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        if paragraph.contains('@') {
            find_imports(&paragraph, self.paragraph_line, &mut self.imports);
        }
    }
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let line = unindented(line);
        let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = line.chars().take_while(|c| *c == mark).count();
        let info = line.get(length..)?;
        // Backticks after backticks are a code span.
        (length >= 3 && !(mark == '`' && info.contains('`'))).then_some(Self { mark, length })
    }

    fn is_closed_by(self, line: &str) -> bool {
        let line = unindented(line).trim_end();
        line.chars().all(|c| c == self.mark) && line.len() >= self.length
    }
}

/// A line without the few spaces that do not matter.
fn unindented(line: &str) -> &str {
    let trimmed = line.trim_start_matches(' ');
    if line.len() - trimmed.len() <= 3 { trimmed } else { line }
}

fn find_imports(paragraph: &str, first_line: usize, imports: &mut Vec<Import>) {
    let mut rest = paragraph;
    let mut line = first_line;
    let mut at_word_start = true;
    while let Some(character) = rest.chars().next() {
        let taken = match character {
            '`' => {
                let run = rest.len() - rest.trim_start_matches('`').len();
                code_span(rest, run).unwrap_or(run)
            }
            '@' if at_word_start => {
                let (path, length) = import_path(rest.get(1..).unwrap_or_default());
                if !path.is_empty() {
                    imports.push(Import { path, line });
                }
                1 + length
            }
            other => other.len_utf8(),
        };
        let (passed, after) = rest.split_at(taken);
        line += passed.matches('\n').count();
        at_word_start = passed.ends_with(char::is_whitespace);
        rest = after;
    }
}

/// The length of the code span that starts with `run` backticks, if one does.
fn code_span(text: &str, run: usize) -> Option<usize> {
    let mut at = run;
    loop {
        let next = at + text.get(at..)?.find('`')?;
        let from = text.get(next..)?;
        let length = from.len() - from.trim_start_matches('`').len();
        if length == run {
            return Some(next + length);
        }
        at = next + length;
    }
}

/// The path at the start of `text` and how many bytes it takes; `\ ` stands for a space in it.
fn import_path(text: &str) -> (String, usize) {
    let mut path = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' if characters.next_if(|(_, next)| *next == ' ').is_some() => path.push(' '),
            c if c.is_whitespace() || c == '`' => return (path, at),
            c => path.push(c),
        }
    }
    (path, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(text: &str) -> Vec<(usize, String)> {
        scan(text, 1).imports.into_iter().map(|import| (import.line, import.path)).collect()
    }

    #[test]
    fn imports_are_words_that_start_with_an_at_sign() {
        assert_eq!(
            imports("@a.md see @~/b.md\n- @./my\\ file.md x\nmail@c.md, (@d.md)\n"),
            [(1, "a.md".into()), (1, "~/b.md".into()), (2, "./my file.md".into())]
        );
    }

    #[test]
    fn code_imports_nothing() {
        let text = "`@a` and ``@b ` @c`` then @d\n\n```rust\n@e\n```\n~~~\n@f\n```\n@g\n~~~\n@h\n";
        assert_eq!(imports(text), [(1, "d".into()), (11, "h".into())]);
        assert_eq!(imports("a `span\nwith @x` end @y"), [(2, "y".into())]);
        assert_eq!(imports("a lone ` tick\n\n@x"), [(3, "x".into())]);
        assert_eq!(imports("a lone ` tick @x"), [(1, "x".into())]);
    }

    #[test]
    fn block_comments_are_hidden_and_import_nothing() {
        let text = "one\n<!-- note\n@x\n-->\ntwo <!-- inline -->\n  <!-- y --> three\n@z\n";
        let scan = scan(text, 10);
        assert_eq!(scan.text, "one\ntwo <!-- inline -->\n three\n@z\n");
        assert_eq!(scan.imports, [Import { path: "z".into(), line: 16 }]);
    }

    #[test]
    fn comments_in_code_and_comments_without_end_stay() {
        for text in ["```\n<!-- a -->\n```\n", "<!-- never\nends\n", "    <!-- code -->\n"] {
            assert_eq!(scan(text, 1).text, text);
        }
    }

    #[test]
    fn a_plain_text_is_not_copied() {
        assert!(matches!(scan("plain\ntext", 1).text, Cow::Borrowed(_)));
    }
}
