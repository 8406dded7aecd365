//! Differences between two texts by lines, between two lines by words, and between two words by letters.
//!
//! One search serves all, because the generic search is large and compiled anew for each type.

use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::algorithms::{
    Capture, Compact, DiffHook as _, IdentifyDistinct, NoFinishHook, Replace, myers,
};
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffOp, DiffTag, DiffableStr as _, diff_ratio, group_diff_ops};

/// The time after which a search takes a difference that is not the smallest, unless the caller says another.
const PATIENCE: Duration = Duration::from_millis(200);

/// The remark behind a line without an end, in any unified diff.
const NO_NEWLINE: &str = "\\ No newline at end of file";

/// The similarity from which two words may have been confused, from 0 to 1.
const ALIKE: f32 = 0.6;

/// The difference from one text to another, by lines.
pub struct LineDiff<'t> {
    old: Vec<&'t str>,
    new: Vec<&'t str>,
    operations: Vec<DiffOp>,
}

/// Adjacent changed lines, with the lines around them.
pub struct Hunk<'d> {
    diff: &'d LineDiff<'d>,
    operations: Vec<DiffOp>,
}

/// A line of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HunkLine<'t> {
    /// ` `, `-` or `+`.
    pub sign: char,
    /// The line with its end.
    pub text: &'t str,
}

impl<'t> LineDiff<'t> {
    pub fn new(old: &'t str, new: &'t str) -> Self {
        Self::within(PATIENCE, old, new)
    }

    /// The difference that is found in this time.
    pub fn within(patience: Duration, old: &'t str, new: &'t str) -> Self {
        let (old, new) = (old.tokenize_lines(), new.tokenize_lines());
        let operations = search(&old, &new, patience);
        Self { old, new, operations }
    }

    /// The changes with this many lines of context.
    pub fn hunks(&self, context: usize) -> impl Iterator<Item = Hunk<'_>> {
        let groups = group_diff_ops(self.operations.clone(), context).into_iter();
        groups.map(|operations| Hunk { diff: self, operations })
    }

    /// The numbers of inserted and of deleted lines.
    pub fn counts(&self) -> (usize, usize) {
        let changes = self.operations.iter().filter(|it| it.tag() != DiffTag::Equal);
        changes
            .fold((0, 0), |(come, go), it| (come + it.new_range().len(), go + it.old_range().len()))
    }
}

impl Hunk<'_> {
    /// The ranges of lines that it covers, in the old text and in the new one.
    pub fn ranges(&self) -> (Range<usize>, Range<usize>) {
        let (Some(first), Some(last)) = (self.operations.first(), self.operations.last()) else {
            return (0..0, 0..0);
        };
        (
            first.old_range().start..last.old_range().end,
            first.new_range().start..last.new_range().end,
        )
    }

    pub fn lines(&self) -> impl Iterator<Item = HunkLine<'_>> {
        self.operations.iter().flat_map(|it| {
            let (sign, new_range) = match it.tag() {
                DiffTag::Equal => (' ', 0..0),
                DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => ('-', it.new_range()),
            };
            let old = self.diff.old.get(it.old_range()).unwrap_or_default();
            let new = self.diff.new.get(new_range).unwrap_or_default();
            let removed = old.iter().map(move |text| HunkLine { sign, text });
            removed.chain(new.iter().map(|text| HunkLine { sign: '+', text }))
        })
    }
}

impl<'t> HunkLine<'t> {
    /// The line without its end.
    pub fn content(&self) -> &'t str {
        self.text.trim_end_matches(['\r', '\n'])
    }

    /// The remark about a line without an end.
    pub fn remark(&self) -> Option<&'static str> {
        (!self.text.ends_with(['\r', '\n'])).then_some(NO_NEWLINE)
    }
}

/// As in a unified diff.
impl fmt::Display for Hunk<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}", UnifiedHunkHeader::new(&self.operations))?;
        for line in self.lines() {
            write!(formatter, "{}{}", line.sign, line.text)?;
            if let Some(remark) = line.remark() {
                writeln!(formatter, "\n{remark}")?;
            }
        }
        Ok(())
    }
}

/// The parts of a line, in order, each with whether the other line lacks it.
pub fn changed_words<'t>(line: &'t str, other: &str, patience: Duration) -> Vec<(&'t str, bool)> {
    let words = line.tokenize_words();
    let mut parts = Vec::new();
    let mut rest = line;
    for operation in search(&other.tokenize_words(), &words, patience) {
        let part = words.get(operation.new_range()).unwrap_or_default();
        let (part, behind) = rest.split_at(part.iter().map(|word| word.len()).sum());
        rest = behind;
        if !part.is_empty() {
            parts.push((part, operation.tag() != DiffTag::Equal));
        }
    }
    parts
}

/// The words that are most like the given one, best first.
pub fn close_words<'w>(word: &str, words: &[&'w str], most: usize) -> Vec<&'w str> {
    let wanted = word.tokenize_chars();
    let mut close: Vec<(f32, &str)> = Vec::new();
    for candidate in words {
        let letters = candidate.tokenize_chars();
        let (shorter, longer) = (wanted.len().min(letters.len()), wanted.len().max(letters.len()));
        // Words of such different lengths cannot be alike.
        let best = (2 * shorter) as f32 / (shorter + longer) as f32;
        if best < ALIKE {
            continue;
        }
        let ratio = diff_ratio(&search(&wanted, &letters, PATIENCE), wanted.len(), letters.len());
        if ratio >= ALIKE {
            close.push((ratio, candidate));
        }
    }
    close.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(other.1)));
    close.into_iter().take(most).map(|(_, word)| word).collect()
}

/// The operations that turn one list into another. Searches only between their common ends.
fn search(old: &[&str], new: &[&str], patience: Duration) -> Vec<DiffOp> {
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = old.iter().zip(new).take_while(same).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(same).count();
    let (old_range, new_range) = (head..old.len() - tail, head..new.len() - tail);
    let mut found = Compact::new(Replace::new(Capture::new()), old, new);
    // Capturing cannot fail.
    if head > 0 {
        let _ = found.equal(0, 0, head);
    }
    if old_range.is_empty() && !new_range.is_empty() {
        let _ = found.insert(old_range.start, new_range.start, new_range.len());
    } else if new_range.is_empty() && !old_range.is_empty() {
        let _ = found.delete(old_range.start, old_range.len(), new_range.start);
    } else if !old_range.is_empty() {
        let numbers = IdentifyDistinct::<u32>::new(old, old_range, new, new_range);
        let _ = myers::diff_deadline(
            &mut NoFinishHook::new(&mut found),
            numbers.old_lookup(),
            numbers.old_range(),
            numbers.new_lookup(),
            numbers.new_range(),
            Some(Instant::now() + patience),
        );
    }
    if tail > 0 {
        let _ = found.equal(old.len() - tail, new.len() - tail, tail);
    }
    let _ = found.finish();
    found.into_inner().into_inner().into_ops()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use similar::TextDiff;

    use super::*;

    fn text(numbers: &[u8]) -> String {
        numbers.iter().flat_map(|number| [number.to_string(), "\n".to_owned()]).collect()
    }

    proptest! {
        #[test]
        fn a_difference_is_the_one_that_the_library_shows(
            old in proptest::collection::vec(0_u8..6, 0..60),
            new in proptest::collection::vec(0_u8..6, 0..60),
            cut in 0_usize..2,
        ) {
            let (old, mut new) = (text(&old), text(&new));
            new.truncate(new.len().saturating_sub(cut));
            let expected = TextDiff::from_lines(&old, &new).unified_diff().context_radius(1).to_string();
            let diff = LineDiff::new(&old, &new);
            let ours: String = diff.hunks(1).map(|hunk| hunk.to_string()).collect();
            prop_assert_eq!(ours, expected);
        }
    }

    #[test]
    fn words_that_the_other_line_lacks_are_marked() {
        let parts = changed_words("a new word", "an old word", PATIENCE);
        let expected = [("a", true), (" ", false), ("new", true), (" word", false)];
        assert_eq!(parts, expected);
        assert_eq!(changed_words("same", "same", PATIENCE), [("same", false)]);
        assert_eq!(changed_words("all", "", PATIENCE), [("all", true)]);
        assert_eq!(changed_words("", "all", PATIENCE), []);
    }

    #[test]
    fn words_alike_come_best_first() {
        let words = ["main.rs", "mian.rs", "mail.rs", "README.md", "m"];
        let expected = similar::get_close_matches("main.rs", &words, 3, ALIKE);
        assert_eq!(close_words("main.rs", &words, 3), expected);
        assert_eq!(close_words("", &["a"], 3), Vec::<&str>::new());
        assert_eq!(close_words("x", &[], 3), Vec::<&str>::new());
    }
}
