//! The beginning and the end of frontmatter, as people mark them.

use std::borrow::Cow;
use std::ops::Range;

use super::lines::key_of;
use super::{FrontmatterError, LARGEST, LineNote};

/// The widest indent of a whole file, as text has that is copied out of a document.
const WIDEST_INDENT: usize = 8;

/// The parts of a text. Line numbers count from one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fences {
    pub(super) block: Range<usize>,
    pub(super) first_line: usize,
    pub(super) body: usize,
    pub(super) body_line: usize,
    /// Parts that had to be overlooked.
    pub(super) notes: Vec<LineNote>,
}

/// A line with its place in the text.
struct Line<'t> {
    text: &'t str,
    start: usize,
    end: usize,
    number: usize,
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    (1..).zip(text.split_inclusive('\n')).map(move |(number, line)| {
        let place = start;
        start += line.len();
        Line { text: line.strip_suffix('\n').unwrap_or(line), start: place, end: start, number }
    })
}

/// Takes away the indent that a file has as a whole, its opening fence included.
pub(super) fn dedent(text: &str) -> Cow<'_, str> {
    let fence = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let indent = fence.len() - fence.trim_start_matches(' ').len();
    if indent == 0 || indent > WIDEST_INDENT || fence.trim() != "---" {
        return Cow::Borrowed(text);
    }
    let dedented = |line: &str| -> String {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        line.get(blanks.min(indent)..).unwrap_or_default().to_owned()
    };
    Cow::Owned(text.split_inclusive('\n').map(dedented).collect())
}

/// Finds the frontmatter of a text; `None` where there is none.
pub(super) fn find(text: &str) -> Result<Option<Fences>, FrontmatterError> {
    let mut lines_left = lines(text).skip_while(|line| line.text.trim().is_empty());
    let Some(open) = lines_left.next().filter(|line| line.text.trim_end() == "---") else {
        return Ok(None);
    };
    let mut long_close = None;
    let mut close = None;
    let mut starts_with_key = None;
    for line in lines_left {
        let trimmed = line.text.trim_end();
        if trimmed == "---" || trimmed == "..." {
            close = Some((line, None));
            break;
        }
        if starts_with_key.is_none() && !trimmed.is_empty() && !trimmed.starts_with('#') {
            starts_with_key = Some(key_of(line.text).is_some());
        }
        if long_close.is_none() && trimmed.len() > 3 && trimmed.bytes().all(|it| it == b'-') {
            long_close = Some(line);
        }
    }
    let close = close.or_else(|| {
        let line = long_close?;
        let message = "the frontmatter is closed by a long rule; write `---`";
        let note = LineNote { line: line.number, message: message.to_owned() };
        Some((line, Some(note)))
    });
    let has_keys = starts_with_key == Some(true);
    let fences = match close {
        Some((close, note)) => Fences {
            block: open.end..close.start,
            first_line: open.number + 1,
            body: close.end,
            body_line: close.number + 1,
            notes: note.into_iter().collect(),
        },
        None if has_keys => unclosed(text, &open)?,
        None => return Ok(None),
    };
    if fences.block.len() > LARGEST {
        // A rule at the top of a long text is not the beginning of anything.
        return if has_keys { Err(FrontmatterError::TooLarge) } else { Ok(None) };
    }
    Ok(Some(fences))
}

/// Frontmatter that nothing closes ends at the first empty line, if all lines before it are keys.
fn unclosed(text: &str, open: &Line<'_>) -> Result<Fences, FrontmatterError> {
    let mut end = (open.end, open.number + 1);
    for line in lines(text).skip(open.number) {
        if line.text.trim().is_empty() {
            break;
        }
        if key_of(line.text).is_none() {
            return Err(FrontmatterError::Unclosed);
        }
        end = (line.end, line.number + 1);
    }
    let message = "the frontmatter has no closing `---`; it ends at the first empty line";
    let note = LineNote { line: end.1.saturating_sub(1), message: message.to_owned() };
    Ok(Fences {
        block: open.end..end.0,
        first_line: open.number + 1,
        body: end.0,
        body_line: end.1,
        notes: vec![note],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<(String, String, usize, usize)> {
        let text = dedent(text);
        let fences = find(&text).unwrap()?;
        let (block, body) = (&text[fences.block.clone()], &text[fences.body..]);
        Some((block.to_owned(), body.to_owned(), fences.first_line, fences.body_line))
    }

    fn expect(text: &str, block: &str, body: &str, lines: (usize, usize)) {
        let expected = Some((block.to_owned(), body.to_owned(), lines.0, lines.1));
        assert_eq!(parts(text), expected, "{text:?}");
    }

    #[test]
    fn usual_fences_are_found() {
        expect("---\na: 1\n---\nbody\n", "a: 1\n", "body\n", (2, 4));
        expect("---  \na: 1\n...\nbody", "a: 1\n", "body", (2, 4));
        expect("---\n---\n", "", "", (2, 3));
        expect("---\na: 1\n--- \n---\n", "a: 1\n", "---\n", (2, 4));
    }

    #[test]
    fn odd_fences_are_found() {
        expect("\n \n---\na: 1\n---\nx", "a: 1\n", "x", (4, 6));
        expect("    ---\n    a: 1\n      b\n    ---\n  x\n", "a: 1\n  b\n", "x\n", (2, 5));
        expect("---\na: 1\n------\nbody", "a: 1\n", "body", (2, 4));
        expect("---\na: 1\n------\nb: 2\n---\nbody", "a: 1\n------\nb: 2\n", "body", (2, 6));
        expect("---\na: 1\nb: 2\n\nbody", "a: 1\nb: 2\n", "\nbody", (2, 4));
    }

    #[test]
    fn texts_without_frontmatter_are_left_alone() {
        let indented = format!("{}---\na: 1\n---\n", " ".repeat(9));
        for text in ["", "text\n---\na: 1\n---\n", "---\nprose\n", "<!-- -->\n---\n", &indented] {
            assert_eq!(parts(text), None, "{text:?}");
        }
        let long = format!("---\nprose\n{}---\n", "more\n".repeat(LARGEST));
        assert_eq!(parts(&long), None);
    }

    #[test]
    fn what_never_closes_or_is_huge_is_refused() {
        assert_eq!(find("---\na: 1\nprose\n"), Err(FrontmatterError::Unclosed));
        let huge = format!("---\n{}---\n", "a: 1\n".repeat(LARGEST / 4));
        assert_eq!(find(&huge), Err(FrontmatterError::TooLarge));
        let huge = format!("---\n{}", "a: 1\n".repeat(LARGEST / 4));
        assert_eq!(find(&huge), Err(FrontmatterError::TooLarge));
    }
}
