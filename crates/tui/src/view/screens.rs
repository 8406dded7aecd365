//! Screens: a text, a list, a transcript.

use super::words::first_that_fits;
use super::{Part, rule, table};
use crate::frame::{Colour, Line, Style};
use crate::model::Model;
use crate::model::picker::Picker;
use crate::model::screen::{Screen, TextScreen, Viewer};
use crate::text::{foreign, text_width, wrapped};

/// A screen in at most so many rows.
pub(super) fn screen(model: &Model, screen: &Screen, columns: u16, rows: u16) -> Part {
    let room = usize::from(rows).saturating_sub(2).max(1);
    let lines = match screen {
        Screen::Table(shown) => {
            return table::table(shown, model.notice.as_deref(), columns, rows);
        }
        Screen::Text(text) => text_screen(text, columns, room),
        Screen::Viewer(viewer) => view_transcript(model, viewer, columns, room),
        Screen::Picker(picker) => picker_rows(picker, columns, room),
    };
    Part { lines, cursor: None }
}

/// The entry of a list in a row of its screen.
pub(super) fn entry(
    screen: &Screen,
    notice: Option<&str>,
    columns: u16,
    rows: u16,
    row: u16,
) -> Option<usize> {
    let room = usize::from(rows).saturating_sub(2).max(1);
    let (selected, count) = match screen {
        Screen::Table(shown) => return table::entry(shown, notice, columns, rows, row),
        Screen::Picker(picker) => (picker.selected, picker.fitting().len()),
        _ => return None,
    };
    // The first row has the title.
    let at = usize::from(row).checked_sub(1).filter(|at| *at < room)?;
    let entry = (selected + 1).saturating_sub(room) + at;
    (entry < count).then_some(entry)
}

fn keys(text: &str) -> Line {
    Line::flush().with(format!(" {text}"), Style::DIM)
}

fn text_screen(text: &TextScreen, columns: u16, room: usize) -> Vec<Line> {
    let all: Vec<Line> = text.lines.iter().flat_map(|line| wrapped(line, columns)).collect();
    let first = text.scroll.min(all.len().saturating_sub(room));
    let mut lines = vec![rule(&text.title, columns)];
    lines.extend(all.iter().skip(first).take(room).cloned());
    let left = all.len().saturating_sub(first + room);
    let more = if left > 0 { format!("{left} more · ↓ · ") } else { String::new() };
    lines.push(keys(&format!("{more}esc closes")));
    lines
}

fn list_row(is_selected: bool, text: &str) -> Line {
    let style = if is_selected { Style::BOLD } else { Style::PLAIN };
    let mut line =
        Line::flush().with(if is_selected { "❯ " } else { "  " }, Style::of(Colour::Cyan));
    line.spans.extend(foreign(text, style));
    line
}

fn picker_rows(picker: &Picker, columns: u16, room: usize) -> Vec<Line> {
    let fitting = picker.fitting();
    let typed =
        if picker.typed.is_empty() { String::new() } else { format!(" · {}", picker.typed) };
    let widest = fitting.iter().filter(|row| !row.hint.is_empty()).map(|row| text_width(&row.text));
    let widest = widest.max().unwrap_or(0).min(usize::from(columns) / 2);
    let mut lines = vec![rule(&format!("{}{typed}", picker.title), columns)];
    let first = (picker.selected + 1).saturating_sub(room);
    for (at, row) in fitting.iter().enumerate().skip(first).take(room) {
        let mut line = list_row(at == picker.selected, &row.text);
        if !row.hint.is_empty() {
            let gap = widest.saturating_sub(text_width(&row.text)) + 2;
            line.push(" ".repeat(gap), Style::PLAIN);
            line.spans.extend(foreign(&row.hint, Style::DIM));
        }
        lines.push(line);
    }
    if fitting.is_empty() {
        lines.push(list_row(false, "nothing fits"));
    }
    lines.push(keys(picker.keys()));
    lines
}

/// The keys of the viewer, in fewer and fewer words.
const VIEWER_KEYS: [&str; 3] = [
    "j k g G move · / n N search · { } prompts · y copy · v editor · q closes",
    "j k g G · / n N search · { } · y copy · v edit · q closes",
    "j k g G · / n N · { } · y v · q closes",
];

fn view_transcript(model: &Model, viewer: &Viewer, columns: u16, room: usize) -> Vec<Line> {
    let mut path = vec!["Transcript".to_owned()];
    if let Some(id) = &viewer.agent {
        path.push(
            std::iter::once("main".to_owned())
                .chain(model.agents.path(id))
                .collect::<Vec<_>>()
                .join(" ▸ "),
        );
    }
    let mut lines = vec![rule(&path.join(" · "), columns)];
    let end = viewer.lines.len().saturating_sub(viewer.scroll);
    let mut rows: Vec<Line> = Vec::new();
    for (at, line) in viewer.lines.iter().take(end).rev().enumerate() {
        let mut wrapped = wrapped(line, columns);
        if at == 0 {
            wrapped.truncate(wrapped.len().saturating_sub(viewer.below).max(1));
        }
        wrapped.reverse();
        rows.append(&mut wrapped);
        if rows.len() >= room {
            break;
        }
    }
    rows.truncate(room);
    rows.reverse();
    if rows.is_empty() {
        rows.push(
            Line::flush()
                .with(if viewer.is_loading { "reading …" } else { "nothing was said" }, Style::DIM),
        );
    }
    lines.extend(rows);
    let sought = crate::text::foreign_text(&viewer.sought);
    let sought = match (viewer.is_typing, sought.as_str()) {
        (true, sought) => format!("/{sought}█ · "),
        (false, "") => String::new(),
        (false, sought) if viewer.is_seeking => format!("/{sought} is sought in older pages · "),
        (false, sought) if viewer.is_missed => format!("/{sought} is not there · "),
        (false, sought) => format!("/{sought} · "),
    };
    let left = usize::from(columns).saturating_sub(1 + text_width(&sought));
    lines.push(keys(&format!("{sought}{}", first_that_fits(&VIEWER_KEYS, left))));
    lines
}
