//! The rows of a draft at a width.

use std::ops::Range;

use super::unit::Unit;
use crate::frame::{Line, Place, Style};
use crate::text::{foreign, text_width};

/// The look of a chip.
const CHIP: Style = Style::PLAIN.reversed();

pub(super) struct DraftLayout {
    /// The units of each row, line ends left out.
    rows: Vec<Range<usize>>,
}

impl DraftLayout {
    /// Breaks lines between words; a word that is longer than a row is broken where the row ends.
    pub(super) fn new(units: &[Unit], width: u16) -> Self {
        // The cursor behind the last letter of a row needs a cell too.
        let most = usize::from(width.max(2)) - 1;
        let mut rows = Vec::new();
        let (mut start, mut used, mut after_blank) = (0, 0, None);
        for (at, unit) in units.iter().enumerate() {
            if unit.is_line_end() {
                rows.push(start..at);
                (start, used, after_blank) = (at + 1, 0, None);
                continue;
            }
            let cells = cells(unit);
            if used + cells > most && at > start {
                let next =
                    after_blank.filter(|next| *next > start && !unit.is_blank()).unwrap_or(at);
                rows.push(start..next);
                start = next;
                used = units[next..at].iter().map(self::cells).sum();
                after_blank = None;
            }
            used += cells;
            if unit.is_blank() {
                after_blank = Some(at + 1);
            }
        }
        rows.push(start..units.len());
        Self { rows }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn lines(&self, units: &[Unit]) -> Vec<Line> {
        let line = |row: &Range<usize>| {
            let mut line = Line::flush();
            for unit in &units[row.clone()] {
                let style = if unit.is_chip() { CHIP } else { Style::PLAIN };
                for span in foreign(unit.shown(), style) {
                    match line.spans.last_mut() {
                        Some(last) if last.style == span.style => last.text.push_str(&span.text),
                        _ => line.spans.push(span),
                    }
                }
            }
            line
        };
        self.rows.iter().map(line).collect()
    }

    /// The place of the cursor before a unit.
    pub(super) fn place(&self, units: &[Unit], cursor: usize) -> Place {
        let row = self.rows.iter().rposition(|row| row.start <= cursor).unwrap_or_default();
        let before = &units[self.rows[row].start..cursor];
        let column: usize = before.iter().map(cells).sum();
        let short = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        Place { row: short(row), column: short(column) }
    }

    /// The unit in a row that stands at a column, or where the row ends.
    pub(super) fn unit_at(&self, units: &[Unit], row: u16, column: u16) -> usize {
        let range = self.rows[usize::from(row)].clone();
        let mut used = 0;
        for at in range.clone() {
            used += cells(&units[at]);
            if used > usize::from(column) {
                return at;
            }
        }
        // The end of a row that continues is the start of the next one: stay in the row.
        let continues =
            self.rows.get(usize::from(row) + 1).is_some_and(|next| next.start == range.end);
        if continues { range.end.saturating_sub(1).max(range.start) } else { range.end }
    }
}

/// The cells of a unit, as it is shown.
fn cells(unit: &Unit) -> usize {
    // The characters that are typed most.
    if matches!(unit.shown().as_bytes(), [0x20..0x7f]) {
        return 1;
    }
    foreign(unit.shown(), Style::PLAIN).iter().map(|span| text_width(&span.text)).sum()
}
