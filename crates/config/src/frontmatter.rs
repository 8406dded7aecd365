//! Splitting a Markdown file into its frontmatter and its body, with line numbers.
//!
//! What the frontmatter says is for its readers to find out.

use thiserror::Error;

/// Frontmatter describes a file; what is larger than this is none.
const LARGEST: usize = 64 * 1024;

/// A file in two parts. Lines are counted from one, in the whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    pub frontmatter: Option<Part<'a>>,
    pub body: Part<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    pub text: &'a str,
    pub first_line: usize,
}

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum FrontmatterError {
    #[error("the frontmatter has no closing `---`")]
    Unclosed,
    #[error("the frontmatter is larger than {} KiB", LARGEST / 1024)]
    TooLarge,
}

/// Splits at the `---` lines. A file whose first line is none has no frontmatter; a byte order mark
/// before it and carriage returns after it do not matter.
pub fn split(text: &str) -> Result<Document<'_>, FrontmatterError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let whole = Document { frontmatter: None, body: Part { text, first_line: 1 } };
    let Some((first, rest)) = text.split_once('\n') else {
        return if is_fence(text) { Err(FrontmatterError::Unclosed) } else { Ok(whole) };
    };
    if !is_fence(first) {
        return Ok(whole);
    }
    let mut end = 0;
    for (number, line) in (2..).zip(rest.split_inclusive('\n')) {
        if is_fence(line) {
            let (inside, after) = rest.split_at(end);
            let body = after.get(line.len()..).unwrap_or_default();
            return Ok(Document {
                frontmatter: Some(Part { text: inside, first_line: 2 }),
                body: Part { text: body, first_line: number + 1 },
            });
        }
        end += line.len();
        if end > LARGEST {
            return Err(FrontmatterError::TooLarge);
        }
    }
    Err(FrontmatterError::Unclosed)
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (Option<&str>, &str, usize) {
        let document = split(text).unwrap();
        let frontmatter = document.frontmatter.map(|part| part.text);
        (frontmatter, document.body.text, document.body.first_line)
    }

    #[test]
    fn a_file_is_split_where_its_fences_are() {
        assert_eq!(parts("---\na: 1\nb: 2\n---\nbody\n"), (Some("a: 1\nb: 2\n"), "body\n", 5));
        assert_eq!(parts("---\n---\nbody"), (Some(""), "body", 3));
        assert_eq!(parts("---\na: 1\n---"), (Some("a: 1\n"), "", 4));
        assert_eq!(parts("just text\n---\nmore"), (None, "just text\n---\nmore", 1));
        assert_eq!(parts(""), (None, "", 1));
    }

    #[test]
    fn editors_of_all_kinds_are_welcome() {
        assert_eq!(
            parts("\u{feff}--- \r\na: 1\r\n---\r\nbody\r\n"),
            (Some("a: 1\r\n"), "body\r\n", 4)
        );
        assert_eq!(parts("\u{feff}text"), (None, "text", 1));
    }

    #[test]
    fn what_never_closes_or_is_huge_is_refused() {
        assert_eq!(split("---\na: 1\n"), Err(FrontmatterError::Unclosed));
        assert_eq!(split("---"), Err(FrontmatterError::Unclosed));
        let huge = format!("---\n{}---\n", "a: 1\n".repeat(LARGEST / 4));
        assert_eq!(split(&huge), Err(FrontmatterError::TooLarge));
    }
}
