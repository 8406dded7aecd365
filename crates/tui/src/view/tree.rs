//! The tree of agents, and the focus of one.

use centurion_protocol::AgentId;

use super::rule;
use super::words::{amount, clock, money};
use crate::frame::{Colour, Line, Style};
use crate::model::agents::{AgentRow, AgentState};
use crate::model::{Focus, Model};
use crate::text::{foreign, wrapped};

/// A row of the tree, with its agent if it is one's.
pub(super) type TreeRow = (Line, Option<AgentId>);

/// The tree in at most so many rows; empty without agents.
pub(super) fn tree(model: &Model, columns: u16, most: usize) -> Vec<TreeRow> {
    let shown = model.agents.shown(model.now);
    if shown.is_empty() || most < 2 {
        return Vec::new();
    }
    let mut lines = vec![(rule(&headline(model), columns), None)];
    let selected = match &model.focus {
        Focus::Tree(id) => shown.iter().position(|shown| *shown == id),
        Focus::Prompt | Focus::Agent(_) => None,
    };
    let room = most - 1;
    let is_cut = shown.len() > room;
    let room = if is_cut { room.saturating_sub(1).max(1) } else { room };
    // The selected row is always among those that are shown.
    let first = selected.map_or(0, |at| (at + 1).saturating_sub(room));
    for (at, id) in shown.iter().enumerate().skip(first).take(room) {
        if let Some(row) = model.agents.get(id) {
            let line = agent_row(model, id, row, columns, Some(at) == selected);
            lines.push((line, Some((*id).clone())));
        }
    }
    if is_cut {
        let more = format!("… {} more", shown.len() - room);
        lines.push((Line::flush().with(more, Style::DIM), None));
    }
    if selected.is_some() && lines.len() < most {
        let keys =
            "enter focus · m message · b background and back · x x stop · ←→ fold · esc back";
        lines.push((Line::flush().with(format!("  {keys}"), Style::DIM), None));
    }
    lines
}

fn headline(model: &Model) -> String {
    let (at_work, asks) = model.agents.counts();
    let agents = if at_work == 1 { "agent" } else { "agents" };
    let mut words = vec![format!("{at_work} {agents}")];
    if asks > 0 {
        words.push(format!("{asks} asks"));
    }
    let tokens: u64 = model.agents.iter().map(|(_, row)| row.tokens).sum();
    words.push(amount(tokens));
    let dollars: f64 = model
        .agents
        .iter()
        .filter(|(_, row)| row.parent.is_none())
        .map(|(_, row)| row.dollars)
        .sum();
    if dollars > 0.0 {
        words.push(money(dollars));
    }
    words.join(" · ")
}

fn state_style(state: AgentState) -> Style {
    match state {
        AgentState::Works => Style::of(Colour::Green),
        AgentState::Asks => Style::of(Colour::Yellow).bold(),
        AgentState::Failed => Style::of(Colour::Red),
        AgentState::Waits(_) | AgentState::Rests | AgentState::Done | AgentState::Stopped => {
            Style::DIM
        }
    }
}

fn agent_row(model: &Model, id: &AgentId, row: &AgentRow, columns: u16, is_selected: bool) -> Line {
    let is_narrow = columns < 60;
    let has_children = model.agents.children(Some(id)).next().is_some();
    let is_folded = has_children && model.agents.folded.contains(id);
    let mark = match (has_children, is_folded) {
        (true, true) => "▸ ",
        (true, false) => "▾ ",
        (false, _) if row.depth > 0 => "├ ",
        (false, _) => "  ",
    };
    let look = Style::of(row.colour).bold();
    let look = if is_selected { look.reversed() } else { look };
    let mut line = Line::flush().with("  ".repeat(row.depth), Style::PLAIN).with(mark, Style::DIM);
    line.spans.extend(foreign(&row.name, look));
    let sums = if is_folded { Some(model.agents.sums(id)) } else { None };
    if let Some(sums) = sums {
        line.push(format!(" +{}", sums.agents - 1), Style::DIM);
    }
    if !is_narrow {
        line.push("  ", Style::PLAIN);
        line.spans.extend(foreign(&row.task, Style::DIM));
    }
    line.push(format!("  {} ", row.state.mark()), state_style(row.state));
    if let Some(own) = model.taste.agent_rows.get(id).filter(|_| row.state != AgentState::Asks) {
        line.spans.extend(own.spans.iter().cloned());
    } else {
        line.spans.extend(foreign(&activity(model, id, row), Style::PLAIN));
    }
    let (calls, tokens) = sums.map_or((row.calls, row.tokens), |sums| (sums.calls, sums.tokens));
    let mut used = if is_narrow { String::new() } else { format!("{calls}  {}  ", amount(tokens)) };
    if row.dollars > 0.0 && !is_narrow {
        used.push_str(&money(row.dollars));
        used.push_str("  ");
    }
    used.push_str(&clock(row.time(model.now)));
    right(line, &used, columns)
}

/// Puts words at the right end of a row; what does not fit before them is cut.
fn right(mut line: Line, words: &str, columns: u16) -> Line {
    let room = usize::from(columns).saturating_sub(words.chars().count() + 1);
    if line.width() > room {
        line = cut(line, room);
    }
    let gap = room.saturating_sub(line.width()) + 1;
    line.push(" ".repeat(gap), Style::PLAIN);
    line.push(words, Style::DIM);
    line
}

/// The first cells of a line.
pub(super) fn cut(line: Line, columns: usize) -> Line {
    use unicode_width::UnicodeWidthChar as _;
    let mut left = columns.saturating_sub(1);
    let mut short = Line { spans: Vec::new(), ..line };
    for span in line.spans {
        let mut text = String::new();
        for char in span.text.chars() {
            let width = char.width().unwrap_or(0);
            if width > left {
                short.push(text, span.style);
                short.push("…", Style::DIM);
                return short;
            }
            left -= width;
            text.push(char);
        }
        short.push(text, span.style);
    }
    short
}

fn activity(model: &Model, id: &AgentId, row: &AgentRow) -> String {
    use centurion_protocol::sdk::WaitsFor;
    match row.state {
        AgentState::Asks => {
            let asked = model.asks.open.iter().find(|asked| asked.agent.as_ref() == Some(id));
            asked.map_or_else(|| "asks".to_owned(), |asked| format!("asks: {}", asked.headline()))
        }
        AgentState::Waits(WaitsFor::Agent) => {
            let below = model.agents.children(Some(id)).filter_map(|child| model.agents.get(child));
            format!("{} agents", below.filter(|child| child.ended.is_none()).count())
        }
        AgentState::Waits(WaitsFor::Slot) => "a free slot".to_owned(),
        AgentState::Waits(WaitsFor::Provider) => "the provider".to_owned(),
        AgentState::Waits(WaitsFor::Servers) => "servers".to_owned(),
        AgentState::Waits(WaitsFor::Person) => "you".to_owned(),
        AgentState::Rests => "idle".to_owned(),
        AgentState::Done => "done".to_owned(),
        AgentState::Failed => "failed".to_owned(),
        AgentState::Stopped => "stopped".to_owned(),
        AgentState::Works if row.is_shell => "running".to_owned(),
        AgentState::Works if row.activity.is_empty() => "thinking".to_owned(),
        AgentState::Works => row.activity.clone(),
    }
}

/// The focus of one agent: its path, and the end of its transcript.
pub(super) fn focused(model: &Model, id: &AgentId, columns: u16, room: usize) -> Vec<Line> {
    let Some(row) = model.agents.get(id) else { return Vec::new() };
    let path = std::iter::once("main".to_owned())
        .chain(model.agents.path(id))
        .collect::<Vec<_>>()
        .join(" ▸ ");
    let kind = if row.kind == row.name { String::new() } else { format!(" · {}", row.kind) };
    let mut lines = vec![rule(&format!("{path} · {}{kind}", row.task), columns)];
    let below = if room > 4 { 2 } else { 1 };
    let shown = room.saturating_sub(1 + below);
    lines.extend(last_rows(row, columns, shown));
    let mut now = Line::flush().with(format!("{} ", row.state.mark()), state_style(row.state));
    now.spans.extend(foreign(&activity(model, id, row), Style::PLAIN));
    let used =
        format!("{} calls · {} · {}", row.calls, amount(row.tokens), clock(row.time(model.now)));
    lines.push(right(now, &used, columns));
    if below > 1 {
        let keys = " esc back, it goes on · /stop ends it · ctrl+o all of it · ctrl+x ←→↑↓ siblings, parent";
        lines.push(Line::flush().with(keys, Style::DIM));
    }
    lines
}

/// The last rows of an agent's transcript, wrapped.
fn last_rows(row: &AgentRow, columns: u16, count: usize) -> Vec<Line> {
    let mut rows: Vec<Line> = Vec::new();
    for line in row.lines.iter().rev() {
        let mut wrapped = wrapped(line, columns);
        wrapped.reverse();
        rows.append(&mut wrapped);
        if rows.len() >= count {
            break;
        }
    }
    rows.truncate(count);
    rows.reverse();
    rows
}
