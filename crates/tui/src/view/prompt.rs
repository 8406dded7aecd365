//! The prompt: the draft, the menu below it, and what waits to be read.

use super::Part;
use super::touch::Target;
use crate::frame::{Colour, Line, Place, Style};
use crate::model::Model;
use crate::model::prompts::{Stage, When};
use crate::text::{foreign, text_width};

/// The most rows of the menu.
const MENU: usize = 8;

/// The draft in at most so many rows, with the menu.
pub(super) fn prompt(model: &Model, columns: u16, rows: u16) -> Part {
    let width = columns.saturating_sub(2).max(1);
    let (mut lines, mut place) = match model.draft() {
        Some(draft) => draft.lines(width),
        None => (vec![Line::default()], Place::default()),
    };
    let rows = usize::from(rows.max(1));
    let first = first_row(place, rows);
    lines.drain(..first.min(lines.len()));
    lines.truncate(rows);
    place.row = place.row.saturating_sub(u16::try_from(first).unwrap_or_default());
    let is_empty = model.is_draft_empty();
    let mut shown: Vec<Line> = Vec::new();
    for (at, line) in lines.into_iter().enumerate() {
        let mark = if at == 0 && first == 0 { "❯ " } else { "  " };
        let mut row = Line::flush().with(mark, Style::of(Colour::Cyan));
        row.spans.extend(line.spans);
        shown.push(row);
    }
    if is_empty && let Some(row) = shown.first_mut() {
        row.spans.extend(foreign(&hint(model), Style::DIM));
    }
    place.column += 2;
    shown.extend(menu(model, usize::from(columns)));
    Part { lines: shown, cursor: Some(place) }
}

/// The first row of the draft that is shown: the row of the cursor is always among those that are.
fn first_row(cursor: Place, rows: usize) -> usize {
    (usize::from(cursor.row) + 1).saturating_sub(rows)
}

/// The target at a place of the prompt, which has at most so many rows for the draft.
pub(super) fn target(model: &Model, columns: u16, rows: u16, place: Place) -> Option<Target> {
    let width = columns.saturating_sub(2).max(1);
    let rows = usize::from(rows.max(1));
    let (count, cursor) = model.draft().map_or((1, Place::default()), |draft| {
        let (lines, cursor) = draft.lines(width);
        (lines.len(), cursor)
    });
    let first = first_row(cursor, rows);
    let shown = count.saturating_sub(first).min(rows);
    let row = usize::from(place.row);
    if row < shown {
        let row = u16::try_from(row + first).ok()?;
        return Some(Target::Draft(Place { row, column: place.column.saturating_sub(2) }));
    }
    let menu = model.menu.as_ref()?;
    let entry = (menu.selected + 1).saturating_sub(MENU) + row - shown;
    (row - shown < MENU && entry < menu.entries.len()).then_some(Target::Menu(entry))
}

/// The words in an empty prompt.
fn hint(model: &Model) -> String {
    match model.addressee().and_then(|id| model.agents.get(&id)) {
        Some(row) if row.state.has_ended() => format!("Message {}… it resumes with it", row.name),
        Some(row) => format!("Message {}… it reads it between two calls", row.name),
        None => String::new(),
    }
}

fn menu(model: &Model, columns: usize) -> Vec<Line> {
    let Some(menu) = &model.menu else { return Vec::new() };
    let first = (menu.selected + 1).saturating_sub(MENU);
    let widest =
        menu.entries.iter().skip(first).take(MENU).map(|entry| text_width(&entry.word)).max();
    let widest = widest.unwrap_or_default().min(columns / 2);
    let mut lines: Vec<Line> = Vec::new();
    for (at, entry) in menu.entries.iter().enumerate().skip(first).take(MENU) {
        let style = if at == menu.selected { Style::BOLD } else { Style::PLAIN };
        let mut line = Line::flush()
            .with(if at == menu.selected { "› " } else { "  " }, Style::of(Colour::Cyan));
        line.spans.extend(foreign(&entry.word, style));
        line.push(" ".repeat(widest.saturating_sub(text_width(&entry.word)) + 2), Style::PLAIN);
        line.spans.extend(foreign(&entry.hint, Style::DIM));
        lines.push(line);
    }
    if menu.entries.len() > MENU {
        lines.push(Line::flush().with(format!("  … {} in all", menu.entries.len()), Style::DIM));
    }
    lines
}

/// The prompts that were sent and are not read.
pub(super) fn queue(model: &Model, columns: u16) -> Vec<Line> {
    let to = model.addressee();
    let waiting = model.prompts.waiting.iter().filter(|waiting| waiting.to == to);
    let mut lines: Vec<Line> = Vec::new();
    for waiting in waiting {
        let when = match (waiting.when, waiting.stage) {
            (When::Now, _) => "now",
            (_, Stage::Held) => "later",
            _ => "next",
        };
        let mut line = Line::flush().with(format!("┄ {when}: "), Style::of(Colour::Cyan));
        line.spans.extend(foreign(waiting.text.lines().next().unwrap_or_default(), Style::DIM));
        lines.push(line);
    }
    if let Some(last) = lines.last_mut() {
        let words = "↑ to take back";
        let gap = usize::from(columns).saturating_sub(last.width() + words.chars().count() + 1);
        if gap > 1 {
            last.push(" ".repeat(gap), Style::PLAIN);
            last.push(words, Style::DIM);
        }
    }
    lines
}
