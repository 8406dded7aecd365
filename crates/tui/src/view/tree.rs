//! The tree of agents, and the focus of one.

use std::collections::HashSet;

use centurion_protocol::AgentId;

use super::words::{amount, clock, first_that_fits, money};
use super::{rule, rule_with_end};
use crate::frame::{Colour, Line, Style};
use crate::model::agents::{AgentRow, AgentState};
use crate::model::{Focus, Model};
use crate::text::{foreign, wrapped};

/// A row of the tree, with its agent if it is one's.
pub(super) type TreeRow = (Line, Option<AgentId>);

/// The keys of the tree, and of the focus, in fewer and fewer words.
const TREE_KEYS: [&str; 3] = [
    "enter focus · m message · b background and back · x x stop · ←→ fold · esc back",
    "enter focus · m message · b background, back · x x stop · ←→ fold · esc",
    "enter · m · b · x x stop · ←→ · esc",
];
const FOCUS_KEYS: [&str; 3] = [
    "esc back, it continues · /stop ends it · ctrl+o all of it · ctrl+x ←→↑↓ siblings, parent",
    "esc back, it continues · /stop ends it · ctrl+o all · ctrl+x ←→↑↓ others",
    "esc back · /stop · ctrl+o · ctrl+x ←→↑↓",
];

/// The tree in at most so many rows; empty without agents.
pub(super) fn tree(model: &Model, columns: u16, most: usize) -> Vec<TreeRow> {
    let shown = model.agents.shown(model.now);
    if shown.is_empty() || most < 2 {
        return Vec::new();
    }
    let is_reached_by_down = model.focus == Focus::Prompt && model.is_draft_empty();
    let end = if is_reached_by_down { "↓" } else { "" };
    let mut lines = vec![(rule_with_end(&headline(model), end, columns), None)];
    let branches = branches(model, &shown);
    let selected = match &model.focus {
        Focus::Tree(id) => shown.iter().position(|shown| *shown == id),
        Focus::Prompt | Focus::Agent(_) => None,
    };
    let room = most - 1;
    let is_cut = shown.len() > room;
    let room = if is_cut { room.saturating_sub(1).max(1) } else { room };
    // The selected row is always among those that are shown.
    let first = selected.map_or(0, |at| (at + 1).saturating_sub(room));
    for (at, (id, branch)) in shown.iter().zip(branches).enumerate().skip(first).take(room) {
        if let Some(row) = model.agents.get(id) {
            let line = agent_row(model, (id, row), &branch, columns, Some(at) == selected);
            lines.push((line, Some((*id).clone())));
        }
    }
    if is_cut {
        let more = format!("… {} more", shown.len() - room);
        lines.push((Line::flush().with(more, Style::DIM), None));
    }
    if selected.is_some() && lines.len() < most {
        let keys = first_that_fits(&TREE_KEYS, usize::from(columns).saturating_sub(2));
        lines.push((Line::flush().with(format!("  {keys}"), Style::DIM), None));
    }
    lines
}

/// The lines before the names that join each row to its parent, and its mark.
fn branches(model: &Model, shown: &[&AgentId]) -> Vec<String> {
    let parents: HashSet<&AgentId> =
        model.agents.iter().filter_map(|(_, row)| row.parent.as_ref()).collect();
    // For each depth, whether a sibling of the row or of its forebear comes below.
    let mut continues: Vec<bool> = Vec::new();
    let mut branches: Vec<String> = Vec::with_capacity(shown.len());
    for id in shown.iter().rev() {
        let depth = model.agents.get(id).map_or(0, |row| row.depth);
        continues.resize(depth + 1, false);
        let above = continues.iter().take(depth).skip(1);
        let mut branch: String =
            above.map(|continues| if *continues { "│ " } else { "  " }).collect();
        let is_last = !std::mem::replace(&mut continues[depth], true);
        branch.push_str(match (parents.contains(id), depth, is_last) {
            (true, ..) if model.agents.folded.contains(*id) => "▸ ",
            (true, ..) => "▾ ",
            (false, 0, _) => "  ",
            (false, _, true) => "└ ",
            (false, _, false) => "├ ",
        });
        if depth > 0 {
            branch.insert_str(0, "  ");
        }
        branches.push(branch);
    }
    branches.reverse();
    branches
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

fn agent_row(
    model: &Model,
    (id, row): (&AgentId, &AgentRow),
    branch: &str,
    columns: u16,
    is_selected: bool,
) -> Line {
    let is_narrow = columns < 60;
    let is_folded =
        model.agents.folded.contains(id) && model.agents.children(Some(id)).next().is_some();
    let look = Style::of(row.colour).bold();
    let look = if is_selected { look.reversed() } else { look };
    let mut line = Line::flush().with(branch, Style::DIM);
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
        let keys = first_that_fits(&FOCUS_KEYS, usize::from(columns).saturating_sub(1));
        lines.push(Line::flush().with(format!(" {keys}"), Style::DIM));
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
