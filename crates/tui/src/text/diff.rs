//! Diffs: lines with their numbers, and the words that changed in them.

use std::time::Duration;

use similar::{ChangeTag, DiffOp, TextDiff};

use crate::frame::{Colour, Line, Style};
use crate::text::foreign;

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// Longer lines are compared as wholes.
const LONGEST_LINE: usize = 2000;

/// After this time a diff is as good as it is.
const PATIENCE: Duration = Duration::from_millis(100);

const GONE: Style = Style::of(Colour::Red);
const NEW: Style = Style::of(Colour::Green);

/// The flush lines of a change: number, mark and text. Signs and looks say what changed, without colours too.
pub fn diff(old: &str, new: &str) -> Vec<Line> {
    let all = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let most = old.lines().count().max(new.lines().count());
    let made = DiffRows { digits: most.max(1).ilog10() as usize + 1 };
    let mut lines = Vec::new();
    for (index, group) in all.grouped_ops(CONTEXT).iter().enumerate() {
        if index > 0 {
            lines.push(Line::flush().with("…", Style::DIM));
        }
        for op in group {
            made.op(op, &all, &mut lines);
        }
    }
    lines
}

struct DiffRows {
    digits: usize,
}

impl DiffRows {
    fn op<'a>(&self, op: &DiffOp, all: &TextDiff<'a, 'a, str>, lines: &mut Vec<Line>) {
        let changes: Vec<(ChangeTag, usize, &str)> = all
            .iter_changes(op)
            .map(|change| {
                let number = match change.tag() {
                    ChangeTag::Delete => change.old_index(),
                    ChangeTag::Insert | ChangeTag::Equal => change.new_index(),
                };
                let text = change.value();
                (
                    change.tag(),
                    number.unwrap_or_default() + 1,
                    text.strip_suffix('\n').unwrap_or(text),
                )
            })
            .collect();
        let of = |tag| changes.iter().filter(move |change| change.0 == tag).collect::<Vec<_>>();
        let (gone, new) = (of(ChangeTag::Delete), of(ChangeTag::Insert));
        let is_pairs = gone.len() == new.len();
        for (index, change) in changes.iter().enumerate() {
            let (tag, number, text) = *change;
            let other = match tag {
                _ if !is_pairs => None,
                ChangeTag::Delete => new.get(index).map(|it| it.2),
                ChangeTag::Insert => {
                    index.checked_sub(gone.len()).and_then(|at| gone.get(at)).map(|it| it.2)
                }
                ChangeTag::Equal => None,
            };
            lines.push(self.line(tag, number, text, other));
        }
    }

    fn line(&self, tag: ChangeTag, number: usize, text: &str, other: Option<&str>) -> Line {
        let (mark, style) = match tag {
            ChangeTag::Delete => ("-", GONE),
            ChangeTag::Insert => ("+", NEW),
            ChangeTag::Equal => (" ", Style::PLAIN),
        };
        let digits = self.digits;
        let mut line = Line::flush().with(format!("{number:>digits$} "), Style::DIM);
        line.push(format!("{mark} "), style);
        let is_short = |text: &&str| text.len() <= LONGEST_LINE;
        match other.filter(is_short).filter(|_| is_short(&text)) {
            None => line.spans.extend(foreign(text, style)),
            Some(other) => {
                for (part, is_changed) in words(text, other) {
                    let style = if is_changed { style.bold().underlined() } else { style };
                    line.spans.extend(foreign(&part, style));
                }
            }
        }
        line
    }
}

/// The parts of a line, each with whether the other line lacks it.
fn words(text: &str, other: &str) -> Vec<(String, bool)> {
    let mut parts: Vec<(String, bool)> = Vec::new();
    let all = TextDiff::from_words(other, text);
    for change in all.iter_all_changes().filter(|change| change.tag() != ChangeTag::Delete) {
        let is_changed = change.tag() == ChangeTag::Insert;
        match parts.last_mut().filter(|last| last.1 == is_changed) {
            Some(last) => last.0.push_str(change.value()),
            None => parts.push((change.value().to_owned(), is_changed)),
        }
    }
    parts
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
    fn far_lines_are_left_out() {
        let old: String = (0..100).flat_map(|line| [line.to_string(), "\n".to_owned()]).collect();
        let new = old.replace("5\n", "five\n");
        let lines = diff(&old, &new);
        assert!(lines.iter().any(|line| line.text() == "…"));
        assert!(diff(&old, &old).is_empty());
    }
}
