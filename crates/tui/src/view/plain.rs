//! The view for screen readers and terminals that can do nothing: statements in words, each written once.

use super::dialog::{body, choices, headline, reasons};
use crate::fold::table_screen;
use crate::frame::{Frame, Line, Style};
use crate::model::Model;
use crate::model::agents::AgentState;
use crate::model::asks::AskKind;
use crate::model::prompts::Stage;
use crate::model::screen::Screen;
use crate::model::table::{Table, Tone};
use crate::text::foreign;

/// Marks at the beginning of a line, with the words for them.
const MARKS: [(&str, &str); 12] = [
    ("› ", "you: "),
    ("● ", "call: "),
    ("✓ ", "done: "),
    ("✗ ", "failed: "),
    ("■ ", "stopped: "),
    ("▶ ", "agent starts: "),
    ("! ", "note: "),
    ("∴ ", "thinking: "),
    ("  └ ", "  result: "),
    ("└ ", "result: "),
    ("❯ ", ""),
    ("· ", ""),
];

/// The frame of statements.
pub(super) fn plain(model: &Model) -> Frame {
    let print = model.unprinted().iter().map(spoken).filter(|line| !line.spans.is_empty());
    let mut live: Vec<Line> = Vec::new();
    live.extend(model.agents.iter().filter(|(_, row)| row.state == AgentState::Asks).map(
        |(id, row)| {
            let asked = model.asks.open.iter().find(|asked| asked.agent.as_ref() == Some(id));
            let what = asked.map(|asked| format!(", {}", asked.headline())).unwrap_or_default();
            said(&format!("agent {}: asks{what}", row.name))
        },
    ));
    live.extend(model.prompts.waiting.iter().map(|waiting| {
        let when = if waiting.stage == Stage::Held { "after this turn" } else { "next" };
        said(&format!("waits to be read, {when}: {}", waiting.text))
    }));
    live.extend(model.notice.as_ref().map(|notice| said(notice)));
    live.extend(dialog(model));
    live.extend(screen(model));
    live.push(said(state(model)));
    Frame { print: print.collect(), live, ..Frame::default() }
}

fn said(text: &str) -> Line {
    let mut line = Line::flush();
    line.spans.extend(foreign(text, Style::PLAIN));
    line
}

/// A line with its mark in words.
fn spoken(line: &Line) -> Line {
    let text = line.text();
    let marked = MARKS.iter().find_map(|(mark, word)| Some((text.strip_prefix(mark)?, word)));
    match marked {
        Some((rest, word)) => Line::flush().with(format!("{word}{rest}"), Style::PLAIN),
        None => line.clone(),
    }
}

/// The state of the main agent. It has no clock: a statement that changes would be read again.
fn state(model: &Model) -> &'static str {
    match (model.facts.is_open, model.talk.is_busy, model.talk.waits.is_some()) {
        (false, ..) => "starting",
        (true, true, false) => "working",
        (true, true, true) => "waiting",
        (true, false, _) => "ready for a prompt",
    }
}

/// The open question with numbered answers.
fn dialog(model: &Model) -> Vec<Line> {
    let Some((asked, dialog)) = model.asks.current() else { return Vec::new() };
    if dialog.words.is_some() {
        return vec![said("write the words and press enter")];
    }
    let mut lines = vec![said(&format!("question {}", headline(model, asked)))];
    lines.extend(body(asked, dialog));
    let below = [reasons(asked), choices(asked, dialog)].concat();
    lines.extend(below.iter().map(|line| said(line.text().trim_start_matches(['›', ' ']))));
    let how = match &asked.kind {
        AskKind::Permission(_) => "type a number and enter; 3 and words says no with a reason",
        AskKind::Plan { .. } => "type a number and enter; 3 and words keeps planning",
        _ => "type a number and enter",
    };
    lines.push(said(how));
    lines
}

/// The text or the list that a command shows.
fn screen(model: &Model) -> Vec<Line> {
    let numbered = |(at, text): (usize, String)| said(&format!("{} {text}", at + 1));
    match &model.screen {
        None => Vec::new(),
        Some(Screen::Text(text)) => {
            std::iter::once(said(&text.title)).chain(text.lines.iter().cloned()).collect()
        }
        Some(Screen::Viewer(viewer)) => viewer.lines.iter().map(spoken).collect(),
        Some(Screen::Table(table)) => spoken_table(table),
        Some(Screen::Picker(picker)) => {
            let rows = picker.fitting().into_iter().map(|row| format!("{} {}", row.text, row.hint));
            std::iter::once(said(&picker.title)).chain(rows.enumerate().map(numbered)).collect()
        }
    }
}

/// A table in statements: each row once with its number, then how keys are written.
fn spoken_table(table: &Table) -> Vec<Line> {
    let mut lines = vec![said(&table.title)];
    let mut number = 0;
    for row in table.fitting() {
        if row.tone == Tone::Head {
            lines.push(said(&row.name));
            continue;
        }
        number += 1;
        let words = std::iter::once(row.name.as_str()).chain(row.cells.iter().map(String::as_str));
        let words = words.chain([row.hint.as_str()]).map(str::trim).filter(|it| !it.is_empty());
        lines.push(said(&format!("{number} {}", words.collect::<Vec<_>>().join(", "))));
    }
    let screen = table_screen(table.of);
    let enter = (!screen.enter.is_empty()).then(|| format!("a number {}", screen.enter));
    let keys = screen.keys.iter().map(|key| format!("{} and a number: {}", key.letter, key.label));
    let how: Vec<String> = enter.into_iter().chain(keys).collect();
    lines.push(said(&how.join("; ")));
    if let Some(detail) =
        table.marked().filter(|_| table.state.is_wide).and_then(|it| table.detail(it))
    {
        lines.extend(detail);
    }
    lines
}
