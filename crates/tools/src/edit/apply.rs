//! Replaces a piece of text by another: a pure function, linear in the size of the text.
//!
//! All line ends count as equal here. Models read a text with CR LF line ends without the CR, so their text is matched
//! without it, and inserted with the line ends of its place.

use std::borrow::Cow;
use std::ops::Range;

use centurion_protocol::markup::restore;
use thiserror::Error;

use super::mismatch::Mismatch;

/// The line numbers that an error about several matches names.
const MAX_LINES_NAMED: usize = 20;

/// A text after an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    pub content: String,
    /// The ranges of the replacements in `content`, in order.
    pub replaced: Vec<Range<usize>>,
}

/// The reason that an edit was not made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EditError {
    #[error("old_string and new_string are the same: there is nothing to change")]
    NoChange,
    #[error("old_string is empty, but the file is not: give the text to replace")]
    EmptyOld,
    #[error("old_string is not in the file{0}")]
    NotFound(Mismatch),
    #[error(
        "old_string is in the file {count} times (lines {lines}); add lines around it until it is \
         unique, or set replace_all"
    )]
    Several { count: usize, lines: String },
}

/// Replaces `old` by `new` in `content`: the only occurrence, or each one with `replace_all`.
///
/// A model reads this program's own tags in a file with defused brackets, and quotes them like that.
pub fn apply(content: &str, old: &str, new: &str, replace_all: bool) -> Result<Applied, EditError> {
    let as_written = replace(content, old, new, replace_all);
    match (&as_written, restore(old)) {
        (Err(EditError::NotFound(_)), Cow::Owned(old)) => {
            replace(content, &old, &restore(new), replace_all).or(as_written)
        }
        _ => as_written,
    }
}

fn replace(content: &str, old: &str, new: &str, replace_all: bool) -> Result<Applied, EditError> {
    if old == new {
        return Err(EditError::NoChange);
    }
    if old.is_empty() {
        return match content {
            "" => {
                let replaced = std::iter::once(0..new.len()).collect();
                Ok(Applied { content: new.to_owned(), replaced })
            }
            _ => Err(EditError::EmptyOld),
        };
    }
    // A model that writes CR means it, if the file has it.
    if (old.contains('\r') || new.contains('\r')) && content.contains(old) {
        let matches = find(content, old, replace_all)?;
        return Ok(splice(content, &matches, |_| new));
    }
    let plain = LfText::of(content);
    let matches: Vec<Range<usize>> = find(&plain.text, &without_cr(old), replace_all)?
        .into_iter()
        .map(|found| plain.original(found.start)..plain.original(found.end))
        .collect();
    let new = without_cr(new);
    if plain.dropped.is_empty() || !new.contains('\n') {
        return Ok(splice(content, &matches, |_| &new));
    }
    let with_cr = new.replace('\n', "\r\n");
    let ends = LineEnds::of(content);
    Ok(splice(content, &matches, |place| if ends.have_cr(place) { &with_cr } else { &new }))
}

/// The occurrences of `old` in `text`, in order and without overlap; exactly one unless all are wanted.
fn find(text: &str, old: &str, replace_all: bool) -> Result<Vec<Range<usize>>, EditError> {
    let found: Vec<Range<usize>> =
        text.match_indices(old).map(|(at, _)| at..at + old.len()).collect();
    let Some(first) = found.first() else {
        return Err(EditError::NotFound(Mismatch::between(text, old)));
    };
    // Overlapping occurrences are as ambiguous as others: `aa` occurs twice in `aaa`.
    let second = first.start + old.chars().next().map_or(1, char::len_utf8);
    let next = text.get(second..).and_then(|rest| rest.find(old)).map(|at| second + at);
    let Some(next) = next.filter(|_| !replace_all) else {
        return Ok(found);
    };
    let mut starts: Vec<usize> = found.iter().map(|found| found.start).collect();
    starts.push(next);
    starts.sort_unstable();
    starts.dedup();
    Err(EditError::Several { count: starts.len(), lines: name_lines(text, &starts) })
}

fn name_lines(text: &str, starts: &[usize]) -> String {
    let (mut line, mut from) = (1, 0);
    let mut named = Vec::new();
    for start in starts.iter().take(MAX_LINES_NAMED) {
        line += text.get(from..*start).unwrap_or_default().matches('\n').count();
        from = *start;
        named.push(line.to_string());
    }
    if starts.len() > named.len() {
        named.push("…".to_owned());
    }
    named.join(", ")
}

fn splice<'a>(
    content: &str,
    places: &[Range<usize>],
    new: impl Fn(&Range<usize>) -> &'a str,
) -> Applied {
    let mut result = String::with_capacity(content.len());
    let mut replaced = Vec::with_capacity(places.len());
    let mut from = 0;
    for place in places {
        result.push_str(content.get(from..place.start).unwrap_or_default());
        let start = result.len();
        result.push_str(new(place));
        replaced.push(start..result.len());
        from = place.end;
    }
    result.push_str(content.get(from..).unwrap_or_default());
    Applied { content: result, replaced }
}

fn without_cr(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// The line ends of a text: their offsets, and whether a CR precedes each.
struct LineEnds(Vec<(usize, bool)>);

impl LineEnds {
    fn of(content: &str) -> Self {
        let mut before = 0;
        let ends = content.bytes().enumerate().filter_map(|(at, byte)| {
            let after_cr = std::mem::replace(&mut before, byte) == b'\r';
            (byte == b'\n').then_some((at, after_cr))
        });
        Self(ends.collect())
    }

    /// Whether lines end with CR LF at `place`: inside it, else on its line, else on the line before.
    fn have_cr(&self, place: &Range<usize>) -> bool {
        let after = self.0.partition_point(|(at, _)| *at < place.start);
        self.0.get(after).or(self.0.last()).is_some_and(|(_, cr)| *cr)
    }
}

/// A text in which every line ends with LF alone, with the mapping to the original.
struct LfText<'a> {
    text: Cow<'a, str>,
    /// The offsets in `text` of the line ends that had a CR before them.
    dropped: Vec<usize>,
}

impl<'a> LfText<'a> {
    fn of(content: &'a str) -> Self {
        if !content.contains("\r\n") {
            return Self { text: Cow::Borrowed(content), dropped: Vec::new() };
        }
        let mut text = String::with_capacity(content.len());
        let mut dropped = Vec::new();
        let mut pieces = content.split("\r\n").peekable();
        while let Some(piece) = pieces.next() {
            text.push_str(piece);
            if pieces.peek().is_some() {
                dropped.push(text.len());
                text.push('\n');
            }
        }
        Self { text: Cow::Owned(text), dropped }
    }

    /// The offset in the original; for the line end after a dropped CR, that of the CR.
    fn original(&self, at: usize) -> usize {
        at + self.dropped.partition_point(|dropped| *dropped < at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edited(content: &str, old: &str, new: &str) -> String {
        apply(content, old, new, false).unwrap().content
    }

    #[test]
    fn the_only_match_is_replaced() {
        let applied = apply("let a = 1;\nlet b = 2;\n", "b = 2", "b = 30", false).unwrap();
        assert_eq!(applied.content, "let a = 1;\nlet b = 30;\n");
        assert_eq!(&applied.content[applied.replaced[0].clone()], "b = 30");
    }

    #[test]
    fn several_matches_are_counted_and_located() {
        let error = apply("x\ny\nx\nx", "x", "z", false).unwrap_err();
        assert_eq!(error, EditError::Several { count: 3, lines: "1, 3, 4".to_owned() });
        assert_eq!(apply("x\ny\nx\nx", "x", "z", true).unwrap().content, "z\ny\nz\nz");
    }

    #[test]
    fn overlapping_matches_are_ambiguous() {
        let error = apply("aaa", "aa", "b", false).unwrap_err();
        assert!(matches!(error, EditError::Several { count: 2, .. }), "{error:?}");
        let error = apply("é-é-é tail", "é-é", "b", false).unwrap_err();
        assert!(matches!(error, EditError::Several { count: 2, .. }), "{error:?}");
        assert_eq!(edited("aab", "aa", "b"), "bb");
    }

    #[test]
    fn nothing_to_change_is_an_error() {
        assert_eq!(apply("a", "a", "a", false), Err(EditError::NoChange));
        assert_eq!(apply("a", "", "b", false), Err(EditError::EmptyOld));
        assert_eq!(edited("", "", "b"), "b");
    }

    #[test]
    fn lines_that_end_with_cr_lf_keep_their_ends() {
        let content = "one\r\ntwo\r\nthree\r\n";
        assert_eq!(edited(content, "one\ntwo", "1\n2\n2b"), "1\r\n2\r\n2b\r\nthree\r\n");
        assert_eq!(edited(content, "three", "3\n4"), "one\r\ntwo\r\n3\r\n4\r\n");
        assert_eq!(edited(content, "\ntwo", "\n2"), "one\r\n2\r\nthree\r\n");
        assert_eq!(edited(content, "one\n", ""), "two\r\nthree\r\n");
        assert_eq!(edited("a\r\nb", "b", "b\nc"), "a\r\nb\r\nc");
    }

    #[test]
    fn mixed_line_ends_stay_outside_the_edit() {
        let content = "a\r\nb\nc\r\nd\n";
        assert_eq!(edited(content, "b", "b\nB"), "a\r\nb\nB\nc\r\nd\n");
        assert_eq!(edited(content, "c", "c\nC"), "a\r\nb\nc\r\nC\r\nd\n");
    }

    #[test]
    fn a_written_cr_is_meant() {
        assert_eq!(edited("a\r\nb\r\n", "a\r\nb", "a\nb"), "a\nb\r\n");
        assert_eq!(edited("a\nb\n", "a\nb", "a\r\nb"), "a\r\nb\n");
        assert_eq!(edited("a\nb\n", "a\r\nb", "x\r\ny"), "x\ny\n");
    }

    proptest! {
        #[test]
        fn never_panics_and_keeps_what_is_around(
            content in "[ab\r\né]{0,40}", old in "[ab\r\né]{0,4}", new in "[ab\r\né]{0,4}",
            replace_all: bool,
        ) {
            if let Ok(applied) = apply(&content, &old, &new, replace_all) {
                let first = applied.replaced.first().unwrap();
                let last = applied.replaced.last().unwrap();
                prop_assert!(content.starts_with(&applied.content[..first.start]));
                prop_assert!(content.ends_with(&applied.content[last.end..]));
                prop_assert!(replace_all || applied.replaced.len() == 1);
            }
        }

        #[test]
        fn arbitrary_strings_never_panic(content: String, old: String, new: String, all: bool) {
            let _ = apply(&content, &old, &new, all);
        }

        #[test]
        fn an_edit_and_its_inverse_cancel(
            before in "[a-c\n]{0,30}", after in "[a-c\n]{0,30}", old in "[a-c\n]{1,8}",
        ) {
            let content = format!("{before}{old}{after}");
            if let Ok(applied) = apply(&content, &old, "<unique>", false) {
                prop_assert_eq!(edited(&applied.content, "<unique>", &old), content);
            }
        }

        #[test]
        fn replacing_all_replaces_exactly_the_number_there_is(
            pieces in proptest::collection::vec("[a-c\n]{0,6}", 1..10)
        ) {
            let content = pieces.join("X");
            let result = apply(&content, "X", "YY", true);
            if pieces.len() == 1 {
                prop_assert!(matches!(result, Err(EditError::NotFound(_))));
            } else {
                let applied = result.unwrap();
                prop_assert_eq!(applied.replaced.len(), pieces.len() - 1);
                prop_assert_eq!(applied.content, pieces.join("YY"));
            }
        }

        #[test]
        fn cr_lf_files_behave_like_lf_files(
            content in "[ab\n]{0,40}", old in "[ab\n]{1,5}", new in "[ab\n]{0,5}", all: bool,
        ) {
            let with_cr = |text: &str| text.replace('\n', "\r\n");
            let plain = apply(&content, &old, &new, all);
            let dos = apply(&with_cr(&content), &old, &new, all);
            match (plain, dos) {
                // Without a line end in the file, there is nothing to infer.
                (Ok(plain), Ok(dos)) if content.contains('\n') => {
                    prop_assert_eq!(with_cr(&plain.content), dos.content);
                }
                (plain, dos) => prop_assert_eq!(plain.is_ok(), dos.is_ok()),
            }
        }
    }
}
