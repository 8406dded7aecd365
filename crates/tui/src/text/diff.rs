//! Diffs: lines with their numbers, and the words that changed in them.

use std::time::Duration;

use centurion_diff::{Hunk, LineDiff, changed_words};

use crate::frame::{Colour, Line, Style};
use crate::text::foreign;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// Longer lines are compared as wholes.
const LONGEST_LINE: usize = 2000;

/// After this time a diff is as good as it is.
const PATIENCE: Duration = Duration::from_millis(100);

/// The most pairs of lines, of those before and those behind, that are compared where a diff must be quick.
const MOST_PAIRS: usize = 250_000;

const GONE: Style = Style::of(Colour::Red);
const NEW: Style = Style::of(Colour::Green);

/// The flush lines of a change: number, mark and text. Signs and looks say what changed, without colours too.
pub fn diff(old: &str, new: &str) -> Vec<Line> {
    let all = LineDiff::within(PATIENCE, old, new);
    let made = DiffRows::of(old.lines().count().max(new.lines().count()));
    let mut lines = Vec::new();
    for (index, hunk) in all.hunks(CONTEXT).enumerate() {
        if index > 0 {
            lines.push(Line::flush().with("…", Style::DIM));
        }
        made.hunk(&hunk, usize::MAX, &mut lines);
    }
    lines
}

/// The first lines of a change, at most so many, and the number of the others: quick, whatever the texts are.
pub(crate) fn diff_beginning(old: &str, new: &str, most: usize) -> (Vec<Line>, usize) {
    let (before, after): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let alike = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let (rest_before, rest_after) = (&before[alike..], &after[alike..]);
    let ends = rest_before.iter().rev().zip(rest_after.iter().rev());
    let alike_ends = ends.take_while(|(one, other)| one == other).count();
    let (gone, came) = (rest_before.len() - alike_ends, rest_after.len() - alike_ends);
    let made = DiffRows::of(before.len().max(after.len()));
    if gone.saturating_mul(came) > MOST_PAIRS {
        // Too many to be told apart in a moment: all that was there goes, and all that is there comes.
        let row = |sign, at: usize, text: &'_ str| (sign, at + 1, text.to_owned());
        let kept = (alike.saturating_sub(CONTEXT)..alike).map(|at| row(' ', at, before[at]));
        let went = (alike..alike + gone).map(|at| row('-', at, before[at]));
        let new = (alike..alike + came).map(|at| row('+', at, after[at]));
        let shown = kept.chain(went).chain(new).take(most);
        let line = |(sign, number, text): (char, usize, String)| {
            made.line(DiffRow { sign, number, text: &text }, None)
        };
        let count = alike.min(CONTEXT) + gone + came;
        return (shown.map(line).collect(), count.saturating_sub(most));
    }
    let all = LineDiff::within(PATIENCE, old, new);
    let (mut lines, mut left_out) = (Vec::new(), 0);
    for (index, hunk) in all.hunks(CONTEXT).enumerate() {
        if index > 0 && lines.len() < most {
            lines.push(Line::flush().with("…", Style::DIM));
        }
        let before = lines.len();
        made.hunk(&hunk, most, &mut lines);
        left_out += hunk.lines().count() - (lines.len() - before);
    }
    (lines, left_out)
}

/// A line of a hunk, with its number in the text that it is of.
#[derive(Clone, Copy)]
struct DiffRow<'t> {
    sign: char,
    number: usize,
    text: &'t str,
}

struct DiffRows {
    digits: usize,
}

impl DiffRows {
    /// Rows of texts that have so many lines.
    fn of(most: usize) -> Self {
        Self { digits: most.max(1).ilog10() as usize + 1 }
    }

    /// Adds the lines of a hunk until there are so many.
    fn hunk(&self, hunk: &Hunk<'_>, most: usize, lines: &mut Vec<Line>) {
        let rows = numbered(hunk);
        let is_same = |one: &DiffRow<'_>, other: &DiffRow<'_>| one.sign == other.sign;
        let runs: Vec<&[DiffRow<'_>]> = rows.chunk_by(is_same).collect();
        for (index, run) in runs.iter().enumerate() {
            let partner = match run.first().map(|row| row.sign) {
                Some('-') => {
                    runs.get(index + 1).filter(|next| next.iter().all(|it| it.sign == '+'))
                }
                Some('+') => index
                    .checked_sub(1)
                    .and_then(|before| runs.get(before))
                    .filter(|before| before.iter().all(|it| it.sign == '-')),
                _ => None,
            };
            // Only where as many lines came as went is it known which became which.
            let partner = partner.filter(|partner| partner.len() == run.len());
            let room = most.saturating_sub(lines.len());
            for (place, row) in run.iter().enumerate().take(room) {
                let other = partner.and_then(|partner| partner.get(place)).map(|it| it.text);
                lines.push(self.line(*row, other));
            }
        }
    }

    fn line(&self, row: DiffRow<'_>, other: Option<&str>) -> Line {
        let DiffRow { sign, number, text } = row;
        let style = match sign {
            '-' => GONE,
            '+' => NEW,
            _ => Style::PLAIN,
        };
        let digits = self.digits;
        let mut line = Line::flush().with(format!("{number:>digits$} "), Style::DIM);
        line.push(format!("{sign} "), style);
        let is_short = |text: &&str| text.len() <= LONGEST_LINE;
        match other.filter(is_short).filter(|_| is_short(&text)) {
            None => line.spans.extend(foreign(text, style)),
            Some(other) => {
                for (part, is_changed) in changed_words(text, other, PATIENCE) {
                    let style = if is_changed { style.bold().underlined() } else { style };
                    line.spans.extend(foreign(part, style));
                }
            }
        }
        line
    }
}

/// The lines of a hunk with their numbers: those of the new text, but for lines that went.
fn numbered<'d>(hunk: &'d Hunk<'_>) -> Vec<DiffRow<'d>> {
    let (old, new) = hunk.ranges();
    let (mut old, mut new) = (old.start, new.start);
    let rows = hunk.lines().map(|line| {
        old += usize::from(line.sign != '+');
        new += usize::from(line.sign != '-');
        let number = if line.sign == '-' { old } else { new };
        let text = line.text.strip_suffix('\n').unwrap_or(line.text);
        DiffRow { sign: line.sign, number, text }
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_has_numbers_and_marks_the_words_that_changed() {
        let lines = diff("a\nold word here\nc\n", "a\nnew word here\nc\n");
        let texts: Vec<String> = lines.iter().map(Line::text).collect();
        assert_eq!(texts, ["1   a", "2 - old word here", "2 + new word here", "3   c"]);
        let changed: Vec<&str> = lines
            .iter()
            .flat_map(|line| &line.spans)
            .filter(|span| span.style.underline)
            .map(|span| span.text.as_str())
            .collect();
        assert_eq!(changed, ["old", "new"]);
    }

    #[test]
    fn the_beginning_of_a_diff_is_that_of_the_whole_with_the_number_of_the_others() {
        let old: String = (0..200).flat_map(|line| [line.to_string(), "\n".to_owned()]).collect();
        let new = old.replace("5\n", "five\n").replace("77\n", "");
        let whole = diff(&old, &new);
        for most in [0, 1, 7, 40, 10_000] {
            let (lines, left_out) = diff_beginning(&old, &new, most);
            assert_eq!(lines, whole[..whole.len().min(most)], "{most}");
            // Marks between groups are no lines.
            let marks = whole[lines.len()..].iter().filter(|line| line.text() == "…").count();
            assert_eq!(whole.len() - lines.len(), left_out + marks, "{most}");
        }
        assert_eq!(diff_beginning(&old, &old, 40), (Vec::new(), 0));
    }

    #[test]
    fn texts_that_have_nothing_in_common_are_not_compared_line_by_line() {
        let text = |name: &str| {
            let lines = (0..20_000).map(|at| format!("{name}{at}\n"));
            format!("same\n{}", lines.collect::<Vec<_>>().concat())
        };
        let (lines, left_out) = diff_beginning(&text("a"), &text("b"), 3);
        let texts: Vec<String> = lines.iter().map(Line::text).collect();
        assert_eq!(texts, ["    1   same", "    2 - a0", "    3 - a1"]);
        assert_eq!(left_out, 40_001 - 3);
        assert!(lines.iter().flat_map(|it| &it.spans).all(|span| !span.style.underline));
    }

    #[test]
    fn far_lines_are_left_out() {
        let old: String = (0..100).flat_map(|line| [line.to_string(), "\n".to_owned()]).collect();
        let new = old.replace("5\n", "five\n");
        let lines = diff(&old, &new);
        assert!(lines.iter().any(|line| line.text() == "…"));
        assert!(diff(&old, &old).is_empty());
    }
}
