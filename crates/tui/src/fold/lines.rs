//! Lines that are printed when something is finished: calls, agents, what a person said.

use centurion_protocol::ToolResult;
use serde_json::Value;

use crate::frame::{Colour, Line, Style, Wrap};
use crate::model::Moment;
use crate::model::agents::{AgentRow, AgentState};
use crate::model::call::{Call, text_of};
use crate::text::{diff, diff_beginning, foreign};
use crate::view::words::{amount, clock, money};

/// The most lines of a result that are shown with its call.
const RESULT_LINES: usize = 4;
/// The most characters of one of them.
const RESULT_CHARS: usize = 400;
/// The most lines of a change that are shown with its call.
const DIFF_LINES: usize = 40;

/// A line that begins with a mark.
pub(super) fn marked(mark: &'static str, colour: Colour, text: &str) -> Line {
    let mut line = Line { hang: 2, ..Line::default() }.with(format!("{mark} "), Style::of(colour));
    line.spans.extend(foreign(text.lines().next().unwrap_or_default(), Style::PLAIN));
    line
}

/// The words of a person.
pub(super) fn said(text: &str) -> Vec<Line> {
    let line = |(at, line): (usize, &str)| {
        let mark = if at == 0 { "› " } else { "  " };
        let mut shown = Line { hang: 2, ..Line::default() }.with(mark, Style::of(Colour::Cyan));
        shown.spans.extend(foreign(line, Style::BOLD));
        shown
    };
    text.trim_end().lines().enumerate().map(line).collect()
}

/// A text that the program tells, line by line. Its signs are no Markdown: they may belong to a rule or a path.
pub(super) fn told(text: &str) -> Vec<Line> {
    let style = |line: &str| match line.split(':').next() {
        Some("warning") => Style::of(Colour::Yellow),
        Some("error") => Style::of(Colour::Red),
        _ => Style::PLAIN,
    };
    let line = |line: &str| Line { hang: 2, ..Line::from(foreign(line, style(line))) };
    text.trim_end().lines().map(line).collect()
}

/// A text as it is: its columns, its indents and its signs mean what they say.
pub(super) fn as_it_is(text: &str) -> Vec<Line> {
    let line = |line: &str| Line { wrap: Wrap::Flush, ..Line::from(foreign(line, Style::PLAIN)) };
    text.trim_end().lines().map(line).collect()
}

/// A call that has ended.
pub(super) fn call_lines(
    call: &Call,
    result: &ToolResult,
    before: Option<&str>,
    now: Moment,
) -> Vec<Line> {
    let (mark, colour) =
        if result.is_error { ("✗ ", Colour::Red) } else { ("● ", Colour::Green) };
    let mut head = Line::flush().with(mark, Style::of(colour));
    head.spans.extend(foreign(&call.tool, Style::BOLD));
    if !call.subject.is_empty() {
        head.push(" ", Style::PLAIN);
        head.spans.extend(foreign(&call.subject, Style::PLAIN));
    }
    let took = now.saturating_sub(call.began);
    if took.as_secs() >= 2 {
        head.push(format!(" · {}", clock(took)), Style::DIM);
    }
    let mut lines = vec![head];
    let changed = if result.is_error { Vec::new() } else { changes(&call.input, before) };
    let (mut shown, mut more): (Vec<Line>, usize) = (Vec::new(), 0);
    for (old, new) in changed {
        let (begin, rest) = diff_beginning(old, new, DIFF_LINES.saturating_sub(shown.len()));
        shown.extend(begin);
        more += rest;
    }
    if shown.is_empty() {
        lines.extend(excerpt(&text_of(result), result.is_error));
        return lines;
    }
    if more > 0 {
        shown.push(Line::flush().with(format!("  … {more} more lines · ctrl+o"), Style::DIM));
    }
    lines.extend(shown);
    lines
}

/// The change that a call makes to a file, whole; empty for any other call.
pub(crate) fn change_lines(input: &Value) -> Vec<Line> {
    changes(input, None).into_iter().flat_map(|(old, new)| diff(old, new)).collect()
}

/// The texts that a call replaces in a file, each with what comes in its place; none for any other call. `before` is the file
/// as it was, where that is known.
fn changes<'a>(input: &'a Value, before: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    let one = |edit: &'a Value| edit["old_string"].as_str().zip(edit["new_string"].as_str());
    if let Some(change) = one(input) {
        return vec![change];
    }
    if let Some(edits) = input["edits"].as_array() {
        return edits.iter().filter_map(one).collect();
    }
    let content = input["content"].as_str().filter(|_| input["file_path"].is_string());
    content.map(|content| (before.unwrap_or_default(), content)).into_iter().collect()
}

fn excerpt(text: &str, is_error: bool) -> Vec<Line> {
    let all: Vec<&str> = text.trim_end().lines().collect();
    let style = if is_error { Style::of(Colour::Red) } else { Style::DIM };
    let mut lines: Vec<Line> = Vec::new();
    let mut is_cut = false;
    for (at, line) in all.iter().take(RESULT_LINES).enumerate() {
        let mut shown = Line::flush().with(if at == 0 { "  └ " } else { "    " }, Style::DIM);
        let end = line.char_indices().nth(RESULT_CHARS).map(|(at, _)| at);
        shown.spans.extend(foreign(&line[..end.unwrap_or(line.len())], style));
        if end.is_some() {
            shown.push("…", Style::DIM);
            is_cut = true;
        }
        lines.push(shown);
    }
    let more = match all.len().saturating_sub(RESULT_LINES) {
        0 if is_cut => "    … more of that line · ctrl+o".to_owned(),
        0 => return lines,
        more => format!("    … {more} more lines · ctrl+o"),
    };
    lines.push(Line::flush().with(more, Style::DIM));
    lines
}

/// An agent that has ended.
pub(super) fn end_lines(row: &AgentRow, path: &str, summary: &str, state: AgentState) -> Vec<Line> {
    let colour = if state == AgentState::Done { Colour::Green } else { Colour::Red };
    let mut head =
        Line { hang: 2, ..Line::default() }.with(format!("{} ", state.mark()), Style::of(colour));
    head.spans.extend(foreign(path, Style::BOLD));
    head.push("  ", Style::PLAIN);
    head.spans.extend(foreign(&row.task, Style::PLAIN));
    let mut used =
        format!(" · {} calls · {} · {}", row.calls, amount(row.tokens), clock(row.worked));
    if row.dollars > 0.0 {
        used.push_str(" · ");
        used.push_str(&money(row.dollars));
    }
    head.push(used, Style::DIM);
    let mut lines = vec![head];
    lines.extend(excerpt(summary, state == AgentState::Failed));
    lines
}
