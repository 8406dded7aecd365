//! Keys in the tree, in the focus of an agent, and in screens.

use centurion_protocol::AgentId;

use crate::effect::Effect;
use crate::frame::Line;
use crate::input::{Key, KeyCode};
use crate::keys::Action;
use crate::model::agents::AgentState;
use crate::model::screen::{MOST_VIEWED, Screen, SessionList, TextScreen, Viewer};
use crate::model::{Focus, Hands, Model};
use crate::text::wrapped;
use crate::view::screen_rows;

/// Keys in the tree.
pub(super) fn tree_key(model: &mut Model, selected: &AgentId, key: Key, effects: &mut Vec<Effect>) {
    let shown: Vec<AgentId> = model.agents.shown(model.now).into_iter().cloned().collect();
    let at = shown.iter().position(|id| id == selected).unwrap_or(0);
    let go = |model: &mut Model, at: usize| {
        if let Some(id) = shown.get(at) {
            model.focus = Focus::Tree(id.clone());
        }
    };
    match key.code {
        KeyCode::Up if at == 0 => model.focus = Focus::Prompt,
        KeyCode::Up => go(model, at - 1),
        KeyCode::Down => go(model, at + 1),
        KeyCode::Left => drop(model.agents.folded.insert(selected.clone())),
        KeyCode::Right => drop(model.agents.folded.remove(selected)),
        KeyCode::Enter | KeyCode::Char('m') => focus(model, selected),
        KeyCode::Char('b') if !key.ctrl => effects.push(Effect::Background(Some(selected.clone()))),
        KeyCode::Char('x') if !key.ctrl => stop(model, selected, effects),
        KeyCode::Char('a') if key.alt => model.asks.show_oldest(model.now),
        KeyCode::Escape => model.focus = Focus::Prompt,
        KeyCode::Char('c') if key.ctrl => model.focus = Focus::Prompt,
        KeyCode::Char(char) if !key.ctrl && !key.alt && !"xbm".contains(char) => {
            // Words are for the prompt.
            model.focus = Focus::Prompt;
            super::chat::key(model, key, effects);
        }
        _ => {}
    }
}

fn focus(model: &mut Model, id: &AgentId) {
    if let Some(row) = model.agents.get_mut(id) {
        row.is_seen = true;
    }
    model.focus = Focus::Agent(id.clone());
    model.menu = None;
}

/// Stops an agent on the second press.
fn stop(model: &mut Model, id: &AgentId, effects: &mut Vec<Effect>) {
    let (now, first) = (model.now, model.hands.last_stop.take());
    let name = model.agents.get(id).map(|row| row.name.clone()).unwrap_or_default();
    if model.agents.get(id).is_none_or(|row| row.state.has_ended()) {
        model.notice = Some(format!("{name} is not at work: a message resumes it"));
        return;
    }
    if Hands::completes(first, now) {
        effects.push(Effect::StopTask(id.clone()));
        model.notice = Some(format!("stopping {name} · a message resumes it"));
        return;
    }
    model.hands.last_stop = Some(now);
    model.notice = Some(format!("x again stops {name}"));
}

/// Goes from the agent in focus to another one near it.
pub(super) fn go(model: &mut Model, action: Action) {
    let Focus::Agent(id) = &model.focus else { return };
    let parent = model.agents.get(id).and_then(|row| row.parent.clone());
    let siblings: Vec<AgentId> = model.agents.children(parent.as_ref()).cloned().collect();
    let at = siblings.iter().position(|sibling| sibling == id).unwrap_or(0);
    let next = match action {
        Action::PreviousSibling => at.checked_sub(1).and_then(|at| siblings.get(at)).cloned(),
        Action::NextSibling => siblings.get(at + 1).cloned(),
        Action::FirstChild => model.agents.children(Some(id)).next().cloned(),
        _ => parent,
    };
    match next {
        Some(next) => focus(model, &next),
        None if action == Action::Parent => model.focus = Focus::Prompt,
        None => {}
    }
}

/// Keys in a screen.
pub(super) fn screen_key(model: &mut Model, key: Key, effects: &mut Vec<Effect>) {
    let is_close = key.code == KeyCode::Escape
        || key.ctrl && matches!(key.code, KeyCode::Char('c' | 'd' | 'o'));
    let pane = Pane::of(model);
    let Some(screen) = &mut model.screen else { return };
    let is_typing = matches!(screen, Screen::Viewer(viewer) if viewer.is_typing);
    if is_close && !is_typing {
        model.screen = None;
        return;
    }
    let closes = match screen {
        Screen::Text(text) => text_key(text, key),
        Screen::Sessions(list) => sessions_key(list, key, effects),
        Screen::Viewer(viewer) => viewer_key(viewer, pane, key, effects),
    };
    if closes {
        model.screen = None;
    }
}

/// Takes a paste for a search; whether one is being typed.
pub(super) fn paste(model: &mut Model, text: &str, effects: &mut Vec<Effect>) -> bool {
    let line = text.lines().next().unwrap_or_default();
    match &mut model.screen {
        Some(Screen::Viewer(viewer)) if viewer.is_typing => viewer.sought.push_str(line),
        Some(Screen::Sessions(list)) => {
            list.typed.push_str(line);
            list.selected = 0;
            effects.push(Effect::SearchSessions(list.typed.clone()));
        }
        _ => return false,
    }
    true
}

/// The rows that a page key moves.
const PAGE: usize = 10;

fn text_key(text: &mut TextScreen, key: Key) -> bool {
    let last = text.lines.len().saturating_sub(1);
    text.scroll = match key.code {
        KeyCode::Up | KeyCode::Char('k') => text.scroll.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => text.scroll + 1,
        KeyCode::PageUp => text.scroll.saturating_sub(PAGE),
        KeyCode::PageDown | KeyCode::Char(' ') => text.scroll + PAGE,
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => last,
        KeyCode::Enter | KeyCode::Char('q') => return true,
        _ => text.scroll,
    }
    .min(last);
    false
}

fn sessions_key(list: &mut SessionList, key: Key, effects: &mut Vec<Effect>) -> bool {
    let count = list.fitting().len();
    match key.code {
        KeyCode::Up => list.selected = list.selected.saturating_sub(1),
        KeyCode::Down => list.selected = (list.selected + 1).min(count.saturating_sub(1)),
        KeyCode::Enter => {
            if let Some(entry) = list.fitting().get(list.selected) {
                effects.push(Effect::Resume(entry.id));
                return true;
            }
        }
        KeyCode::Backspace => {
            list.typed.pop();
            list.selected = 0;
        }
        KeyCode::Char(char) if !key.ctrl && !key.alt => {
            list.typed.push(char);
            list.selected = 0;
        }
        _ => {}
    }
    if matches!(key.code, KeyCode::Char(_) | KeyCode::Backspace) && list.typed.chars().count() >= 3
    {
        effects.push(Effect::SearchSessions(list.typed.clone()));
    }
    false
}

/// The pane of a viewer.
#[derive(Clone, Copy, Debug)]
struct Pane {
    columns: u16,
    rows: usize,
}

impl Pane {
    fn of(model: &Model) -> Self {
        let rows = usize::from(screen_rows(model.size)).saturating_sub(2).max(1);
        Self { columns: model.size.columns, rows }
    }

    /// The rows of the line that has so many below it.
    fn rows_of(self, viewer: &Viewer, scroll: usize) -> usize {
        let line = viewer.lines.iter().rev().nth(scroll);
        line.map_or(1, |line| wrapped(line, self.columns).len()).max(1)
    }
}

/// The place at which the first row of all is the first one of the pane.
fn top(viewer: &Viewer, pane: Pane) -> (usize, usize) {
    let mut rows = 0;
    for (at, line) in viewer.lines.iter().enumerate() {
        rows += wrapped(line, pane.columns).len();
        if rows >= pane.rows {
            return (viewer.lines.len() - 1 - at, rows - pane.rows);
        }
    }
    (0, 0)
}

fn move_up(viewer: &mut Viewer, pane: Pane, rows: usize) {
    let last = viewer.lines.len().saturating_sub(1);
    for _ in 0..rows {
        if viewer.below + 1 < pane.rows_of(viewer, viewer.scroll) {
            viewer.below += 1;
        } else if viewer.scroll < last {
            (viewer.scroll, viewer.below) = (viewer.scroll + 1, 0);
        }
    }
    (viewer.scroll, viewer.below) = (viewer.scroll, viewer.below).min(top(viewer, pane));
}

fn move_down(viewer: &mut Viewer, pane: Pane, rows: usize) {
    for _ in 0..rows {
        if viewer.below > 0 {
            viewer.below -= 1;
        } else if viewer.scroll > 0 {
            viewer.scroll -= 1;
            viewer.below = pane.rows_of(viewer, viewer.scroll) - 1;
        }
    }
}

/// Goes to a line: its first row is in the pane, whatever its length.
fn go_to(viewer: &mut Viewer, pane: Pane, scroll: usize) {
    viewer.scroll = scroll;
    viewer.below = pane.rows_of(viewer, scroll).saturating_sub(pane.rows);
}

fn viewer_key(viewer: &mut Viewer, pane: Pane, key: Key, effects: &mut Vec<Effect>) -> bool {
    if viewer.is_typing {
        match key.code {
            KeyCode::Enter => {
                viewer.is_typing = false;
                seek(viewer, pane, effects);
            }
            KeyCode::Escape => viewer.is_typing = false,
            KeyCode::Backspace => drop(viewer.sought.pop()),
            KeyCode::Char(char) => viewer.sought.push(char),
            _ => {}
        }
        return false;
    }
    let step = pane.rows.saturating_sub(1).max(1);
    match key.code {
        KeyCode::Up | KeyCode::Char('k') => move_up(viewer, pane, 1),
        KeyCode::Down | KeyCode::Char('j') => move_down(viewer, pane, 1),
        KeyCode::PageUp => move_up(viewer, pane, step),
        KeyCode::PageDown | KeyCode::Char(' ') => move_down(viewer, pane, step),
        KeyCode::Home | KeyCode::Char('g') => (viewer.scroll, viewer.below) = top(viewer, pane),
        KeyCode::End | KeyCode::Char('G') => (viewer.scroll, viewer.below) = (0, 0),
        KeyCode::Char('/') => {
            viewer.is_typing = true;
            viewer.sought.clear();
        }
        KeyCode::Char('n') => seek(viewer, pane, effects),
        KeyCode::Char('N') => seek_down(viewer, pane),
        KeyCode::Char('{') => jump(viewer, pane, true),
        KeyCode::Char('}') => jump(viewer, pane, false),
        KeyCode::Char('y') => {
            let text: Vec<String> = viewer.lines.iter().map(Line::text).collect();
            effects.push(Effect::Copy(text.join("\n")));
        }
        KeyCode::Char('v') => {
            let text: Vec<String> = viewer.lines.iter().map(Line::text).collect();
            effects.push(Effect::ReadInEditor(text.join("\n")));
        }
        KeyCode::Char('q') => return true,
        _ => {}
    }
    want_older(viewer, effects);
    false
}

/// Asks for the next older page when the first line comes near.
fn want_older(viewer: &mut Viewer, effects: &mut Vec<Effect>) {
    if viewer.scroll + 100 >= viewer.lines.len() {
        load_older(viewer, effects);
    }
}

/// Asks for the next older page; whether one comes.
fn load_older(viewer: &mut Viewer, effects: &mut Vec<Effect>) -> bool {
    let before = viewer.start.filter(|start| *start > 0);
    if before.is_none() || viewer.lines.len() >= MOST_VIEWED {
        return viewer.is_loading;
    }
    if !std::mem::replace(&mut viewer.is_loading, true) {
        effects.push(Effect::Page { agent: viewer.agent.clone(), before });
    }
    true
}

fn has(line: &Line, sought: &str) -> bool {
    line.text().to_lowercase().contains(sought)
}

/// Goes up to the next line with the sought words, through all older pages.
fn seek(viewer: &mut Viewer, pane: Pane, effects: &mut Vec<Effect>) {
    let sought = viewer.sought.to_lowercase();
    (viewer.is_seeking, viewer.is_missed) = (false, false);
    if sought.is_empty() {
        return;
    }
    let above = viewer.lines.iter().rev().enumerate().skip(viewer.scroll + 1);
    let found = above.into_iter().find(|(_, line)| has(line, &sought)).map(|(at, _)| at);
    match found {
        Some(at) => go_to(viewer, pane, at),
        None if load_older(viewer, effects) => viewer.is_seeking = true,
        None => viewer.is_missed = true,
    }
}

fn seek_down(viewer: &mut Viewer, pane: Pane) {
    let sought = viewer.sought.to_lowercase();
    let mut below = viewer.lines.iter().rev().enumerate().take(viewer.scroll);
    let found = below.rfind(|(_, line)| has(line, &sought)).map(|(at, _)| at);
    viewer.is_missed = found.is_none();
    if let Some(at) = found.filter(|_| !sought.is_empty()) {
        go_to(viewer, pane, at);
    }
}

/// Goes to the prompt before or after the present line.
fn jump(viewer: &mut Viewer, pane: Pane, up: bool) {
    let is_prompt = |line: &Line| line.text().starts_with("› ");
    let lines = viewer.lines.iter().rev().enumerate();
    let found = if up {
        lines.skip(viewer.scroll + 1).find(|(_, line)| is_prompt(line))
    } else {
        lines.take(viewer.scroll).rfind(|(_, line)| is_prompt(line))
    };
    if let Some(at) = found.map(|(at, _)| at) {
        go_to(viewer, pane, at);
    }
}

/// Takes an older page of the transcript that is viewed, and goes on with a search.
pub(super) fn page_came(
    model: &mut Model,
    agent: Option<&AgentId>,
    mut lines: Vec<Line>,
    start: u64,
    effects: &mut Vec<Effect>,
) {
    let pane = Pane::of(model);
    let Some(Screen::Viewer(viewer)) = &mut model.screen else { return };
    if viewer.agent.as_ref() != agent {
        return;
    }
    lines.append(&mut viewer.lines);
    viewer.lines = lines;
    viewer.start = Some(start);
    viewer.is_loading = false;
    if viewer.is_seeking {
        seek(viewer, pane, effects);
    }
}

/// True if an agent asks for a person.
pub(super) fn asks(model: &mut Model, agent: &AgentId, is_so: bool) {
    if let Some(row) = model.agents.get_mut(agent).filter(|row| !row.state.has_ended()) {
        row.state = if is_so { AgentState::Asks } else { AgentState::Works };
    }
}
