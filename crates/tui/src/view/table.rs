//! A table: rows in columns, and below them what is known of the marked one.

use super::words::fitted;
use super::{Part, rule};
use crate::fold::table_screen;
use crate::frame::{Colour, Line, Place, Size, Style};
use crate::model::table::{Table, TableRow, Tone};
use crate::text::{foreign, text_width, wrapped};

/// The fewest rows of a window in which a detail stands below the rows.
const ROOM_FOR_DETAIL: usize = 10;
/// The columns from which on all cells are shown.
const WIDE: u16 = 60;
/// The most rows of the keys.
const KEY_ROWS: usize = 3;
/// The most rows of the words that are written.
const WORDS: usize = 3;

/// A table in at most so many rows.
pub(super) fn table(table: &Table, notice: Option<&str>, columns: u16, rows: u16) -> Part {
    let foot = foot(table, notice, columns);
    let room = usize::from(rows).saturating_sub(1 + foot.lines.len()).max(1);
    let fitting = table.fitting();
    let Shares { of_rows, of_detail, detail } = Shares::new(table, fitting.len(), room, columns);
    let mut lines = vec![rule(&headline(table, fitting.len()), columns)];
    lines.extend(row_lines(table, &fitting, columns, of_rows));
    if let Some((row, text)) = detail.filter(|_| of_detail > 0) {
        lines.push(rule(&row.name, columns));
        lines.extend(detail_lines(&text, table.state.scroll, of_detail));
    }
    let above = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    lines.extend(foot.lines);
    // In the smallest windows what is written goes before the rows.
    let surplus = lines.len().saturating_sub(usize::from(rows));
    lines.drain(..surplus);
    let surplus = u16::try_from(surplus).unwrap_or(u16::MAX);
    let row_of = |row: u16| (row + above).saturating_sub(surplus);
    let cursor = foot.cursor.map(|place| Place { row: row_of(place.row), ..place });
    Part { lines, cursor }
}

/// The row of the detail that is the first one at its end, in a window of so many cells.
pub(crate) fn last_scroll(table: &Table, notice: Option<&str>, size: Size) -> usize {
    let (columns, rows) = (size.columns, super::screen_rows(size));
    let foot = foot(table, notice, columns);
    let room = usize::from(rows).saturating_sub(1 + foot.lines.len()).max(1);
    let shares = Shares::new(table, table.fitting().len(), room, columns);
    let most = shares.of_detail.saturating_sub(1).max(1);
    shares.detail.map_or(0, |(_, lines)| lines.len().saturating_sub(most))
}

/// The place of the table's row in a row of the screen, counted from its title.
pub(super) fn entry(
    table: &Table,
    notice: Option<&str>,
    columns: u16,
    rows: u16,
    row: u16,
) -> Option<usize> {
    let foot = foot(table, notice, columns);
    let room = usize::from(rows).saturating_sub(1 + foot.lines.len()).max(1);
    let count = table.fitting().len();
    let shares = Shares::new(table, count, room, columns);
    let of_rows = shares.of_rows.max(1);
    // In the smallest windows the first rows have no room.
    let detail = if shares.detail.is_some() && shares.of_detail > 0 {
        let lines = shares.detail.as_ref().map_or(0, |(_, lines)| lines.len());
        1 + lines.min(shares.of_detail)
    } else {
        0
    };
    let all = 1 + count.clamp(1, of_rows) + detail + foot.lines.len();
    let surplus = all.saturating_sub(usize::from(rows));
    let at = (usize::from(row) + surplus).checked_sub(1).filter(|at| *at < of_rows)?;
    let entry = (table.state.marked + 1).saturating_sub(of_rows) + at;
    (entry < count).then_some(entry)
}

/// The rows for the table, and for the detail, which has a title of its own.
struct Shares<'t> {
    of_rows: usize,
    of_detail: usize,
    /// The marked row with the rows of its detail.
    detail: Option<(&'t TableRow, Vec<Line>)>,
}

impl<'t> Shares<'t> {
    fn new(table: &'t Table, count: usize, room: usize, columns: u16) -> Self {
        let is_wide = table.state.is_wide;
        let rows_of = |row| -> Option<Vec<Line>> {
            let lines = table.detail(row)?;
            Some(lines.iter().flat_map(|line| wrapped(line, columns)).collect())
        };
        let detail = table.marked().and_then(|row| Some((row, rows_of(row)?)));
        let detail =
            detail.filter(|(_, lines)| is_wide || (room >= ROOM_FOR_DETAIL && !lines.is_empty()));
        let (of_rows, of_detail) = match &detail {
            None => (room, 0),
            Some(_) if is_wide => (1, room.saturating_sub(2)),
            Some((_, lines)) => {
                let rest = room.saturating_sub(1 + lines.len());
                let of_rows = count.max(1).min(rest.max(room / 2));
                (of_rows, room.saturating_sub(of_rows + 1))
            }
        };
        Self { of_rows, of_detail, detail }
    }
}

fn headline(table: &Table, fitting: usize) -> String {
    let mut words = vec![table.title.clone()];
    if !table.state.typed.is_empty() {
        words.push(format!("{fitting} of {}", table.rows.len()));
    }
    words.join(" · ")
}

/// The rows around the marked one.
fn row_lines(table: &Table, fitting: &[&TableRow], columns: u16, room: usize) -> Vec<Line> {
    if fitting.is_empty() {
        let none = if table.state.typed.is_empty() { "there is nothing" } else { "nothing fits" };
        return vec![Line::flush().with(format!("  {none}"), Style::DIM)];
    }
    let widths = Widths::of(fitting, columns);
    let marked = table.state.marked.min(fitting.len() - 1);
    let first = (marked + 1).saturating_sub(room.max(1));
    let shown = fitting.iter().enumerate().skip(first).take(room.max(1));
    shown.map(|(at, row)| widths.line(row, at == marked, columns)).collect()
}

/// The widths of the columns.
struct Widths {
    name: usize,
    cells: Vec<usize>,
}

impl Widths {
    fn of(fitting: &[&TableRow], columns: u16) -> Self {
        let widest = usize::from(columns) / 2;
        let rows = || fitting.iter().filter(|row| row.tone != Tone::Head);
        let name = rows().map(|row| row.depth * 2 + text_width(&row.name)).max().unwrap_or(0);
        let count = rows().map(|row| row.cells.len()).max().unwrap_or(0);
        let count = if columns < WIDE { count.min(1) } else { count };
        // A cell that stands alone has the room of two.
        let most = if count > 1 { widest / 2 } else { widest };
        let width = |at: usize| {
            let cells = rows().filter_map(|row| row.cells.get(at));
            cells.map(|cell| text_width(cell)).max().unwrap_or(0).min(most)
        };
        Self { name: name.min(widest), cells: (0..count).map(width).collect() }
    }

    fn line(&self, row: &TableRow, is_marked: bool, columns: u16) -> Line {
        if row.tone == Tone::Head {
            return Line { spans: foreign(&row.name, Style::BOLD), ..Line::flush() };
        }
        let style = match row.tone {
            Tone::Plain | Tone::Head => Style::PLAIN,
            Tone::Good => Style::of(Colour::Green),
            Tone::Bad => Style::of(Colour::Red),
            Tone::Notable => Style::of(Colour::Yellow),
            Tone::Faint => Style::DIM,
        };
        let style = if is_marked { style.bold() } else { style };
        let mark = if is_marked { "❯ " } else { "  " };
        let mut line = Line::flush().with(mark, Style::of(Colour::Cyan));
        let name = format!("{}{}", "  ".repeat(row.depth), row.name);
        line.spans.extend(foreign(&fitted(&name, self.name), style));
        for (at, width) in self.cells.iter().enumerate() {
            let cell = row.cells.get(at).map(String::as_str).unwrap_or_default();
            line.push("  ", Style::PLAIN);
            line.spans.extend(foreign(&fitted(cell, *width), Style::PLAIN));
        }
        if !row.hint.is_empty() {
            line.push("  ", Style::PLAIN);
            line.spans.extend(foreign(&row.hint, Style::DIM));
        }
        if line.width() > usize::from(columns) {
            return super::tree::cut(line, usize::from(columns));
        }
        line
    }
}

/// A piece of a detail, with what says how much more there is.
fn detail_lines(all: &[Line], scroll: usize, room: usize) -> Vec<Line> {
    if all.len() <= room {
        return all.to_vec();
    }
    let room = room.saturating_sub(1).max(1);
    let first = scroll.min(all.len().saturating_sub(room));
    let left = all.len() - first - room.min(all.len() - first);
    let said = match (first, left) {
        (_, 0) => "(the end) · pgup".to_owned(),
        (0, left) => format!("… {left} more lines · pgdn"),
        (_, left) => format!("… {left} more lines · pgdn pgup"),
    };
    let mut shown: Vec<Line> = all.iter().skip(first).take(room).cloned().collect();
    shown.push(Line::flush().with(said, Style::DIM));
    shown
}

/// The last rows: what is told, and words that are written, or the keys.
fn foot(table: &Table, notice: Option<&str>, columns: u16) -> Part {
    let mut foot = keys_or_words(table, columns);
    if let Some(notice) = notice {
        let said = foreign(notice, Style::of(Colour::Yellow));
        foot.lines.insert(0, Line { spans: said, ..Line::flush() });
        foot.cursor = foot.cursor.map(|place| Place { row: place.row + 1, ..place });
    }
    foot
}

/// Words that are written, or the keys.
fn keys_or_words(table: &Table, columns: u16) -> Part {
    if let Some(words) = &table.state.words {
        let mut prompt = Line { spans: Vec::new(), hang: 2, ..Line::default() };
        prompt.spans.extend(foreign(&words.prompt, Style::of(Colour::Cyan)));
        let mut lines = wrapped(&prompt, columns);
        let (rows, place) = words.draft.lines(columns.saturating_sub(2).max(1));
        let first = (usize::from(place.row) + 1).saturating_sub(WORDS);
        let above = lines.len();
        for row in rows.into_iter().skip(first).take(WORDS) {
            let mut line = Line::flush().with("❯ ", Style::of(Colour::Cyan));
            line.spans.extend(row.spans);
            lines.push(line);
        }
        let row = u16::try_from(above + usize::from(place.row) - first).unwrap_or_default();
        lines.push(Line::flush().with(" enter · esc back", Style::DIM));
        return Part { lines, cursor: Some(Place { row, column: place.column + 2 }) };
    }
    let screen = table_screen(table.of);
    let is_typing = screen.is_typed || table.state.is_searching;
    let mut lines = Vec::new();
    let mut cursor = None;
    if is_typing {
        let mut line = Line::flush().with("/ ", Style::of(Colour::Cyan));
        line.spans.extend(foreign(&table.state.typed, Style::PLAIN));
        let column = u16::try_from(line.width()).unwrap_or(u16::MAX).min(columns.saturating_sub(1));
        cursor = Some(Place { row: 0, column });
        lines.push(line);
    }
    let mut keys = Line { hang: 1, ..Line::default() };
    keys.push(format!(" {}", key_words(table, is_typing)), Style::DIM);
    let mut rows = wrapped(&keys, columns);
    rows.truncate(KEY_ROWS);
    lines.extend(rows);
    Part { lines, cursor }
}

/// The keys of a table in words.
fn key_words(table: &Table, is_typing: bool) -> String {
    let screen = table_screen(table.of);
    let mut words: Vec<String> = Vec::new();
    match (table.state.is_searching, screen.enter) {
        (true, _) => words.push("enter keeps these".to_owned()),
        (false, "") => {}
        (false, enter) => words.push(format!("enter {enter}")),
    }
    let keys = screen.keys.iter().filter(|key| key.is_ctrl || !is_typing);
    words.extend(keys.map(|key| {
        let ctrl = if key.is_ctrl { "ctrl+" } else { "" };
        format!("{ctrl}{} {}", key.letter, key.label)
    }));
    let wide = if table.state.is_wide { "list" } else { "view" };
    words.push(if is_typing { format!("tab {wide}") } else { format!("space {wide}") });
    if !is_typing {
        words.push("/ search".to_owned());
    }
    words.push("esc".to_owned());
    words.join(" · ")
}
