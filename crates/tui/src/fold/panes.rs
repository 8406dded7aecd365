//! Keys in the tree, in the focus of an agent, and in screens.

use centurion_protocol::AgentId;

use crate::effect::Effect;
use crate::frame::Line;
use crate::input::{Key, KeyCode};
use crate::keys::Action;
use crate::model::agents::AgentState;
use crate::model::screen::{MOST_VIEWED, Screen, SessionList, TextScreen, Viewer};
use crate::model::{Focus, Hands, Model};

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
    let Some(screen) = &mut model.screen else { return };
    let is_typing = matches!(screen, Screen::Viewer(viewer) if viewer.is_typing);
    if is_close && !is_typing {
        model.screen = None;
        return;
    }
    let closes = match screen {
        Screen::Text(text) => text_key(text, key),
        Screen::Sessions(list) => sessions_key(list, key, effects),
        Screen::Viewer(viewer) => viewer_key(viewer, key, effects),
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

fn viewer_key(viewer: &mut Viewer, key: Key, effects: &mut Vec<Effect>) -> bool {
    if viewer.is_typing {
        match key.code {
            KeyCode::Enter => {
                viewer.is_typing = false;
                seek(viewer, 1);
            }
            KeyCode::Escape => viewer.is_typing = false,
            KeyCode::Backspace => drop(viewer.sought.pop()),
            KeyCode::Char(char) => viewer.sought.push(char),
            _ => {}
        }
        return false;
    }
    let last = viewer.lines.len().saturating_sub(1);
    match key.code {
        KeyCode::Up | KeyCode::Char('k') => viewer.scroll += 1,
        KeyCode::Down | KeyCode::Char('j') => viewer.scroll = viewer.scroll.saturating_sub(1),
        KeyCode::PageUp => viewer.scroll += PAGE,
        KeyCode::PageDown | KeyCode::Char(' ') => {
            viewer.scroll = viewer.scroll.saturating_sub(PAGE);
        }
        KeyCode::Home | KeyCode::Char('g') => viewer.scroll = last,
        KeyCode::End | KeyCode::Char('G') => viewer.scroll = 0,
        KeyCode::Char('/') => {
            viewer.is_typing = true;
            viewer.sought.clear();
        }
        KeyCode::Char('n') => seek(viewer, 1),
        KeyCode::Char('N') => seek_down(viewer),
        KeyCode::Char('{') => jump(viewer, true),
        KeyCode::Char('}') => jump(viewer, false),
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
    viewer.scroll = viewer.scroll.min(last);
    want_older(viewer, effects);
    false
}

/// Asks for the next older page when the first line comes near.
fn want_older(viewer: &mut Viewer, effects: &mut Vec<Effect>) {
    let is_near = viewer.scroll + 100 >= viewer.lines.len();
    let before = viewer.start.filter(|start| *start > 0);
    if is_near && before.is_some() && !viewer.is_loading && viewer.lines.len() < MOST_VIEWED {
        viewer.is_loading = true;
        effects.push(Effect::Page { agent: viewer.agent.clone(), before });
    }
}

/// Goes up to the next line with the sought words.
fn seek(viewer: &mut Viewer, step: usize) {
    let sought = viewer.sought.to_lowercase();
    let from = viewer.scroll + step;
    let found = viewer.lines.iter().rev().enumerate().skip(from);
    let mut found = found.filter(|(_, line)| line.text().to_lowercase().contains(&sought));
    if let Some((at, _)) = found.next().filter(|_| !sought.is_empty()) {
        viewer.scroll = at;
    }
}

fn seek_down(viewer: &mut Viewer) {
    let sought = viewer.sought.to_lowercase();
    let mut below = viewer.lines.iter().rev().enumerate().take(viewer.scroll);
    let found = below.rfind(|(_, line)| line.text().to_lowercase().contains(&sought));
    if let Some((at, _)) = found.filter(|_| !sought.is_empty()) {
        viewer.scroll = at;
    }
}

/// Goes to the prompt before or after the present line.
fn jump(viewer: &mut Viewer, up: bool) {
    let is_prompt = |line: &Line| line.text().starts_with("› ");
    let lines = viewer.lines.iter().rev().enumerate();
    let found = if up {
        lines.skip(viewer.scroll + 1).find(|(_, line)| is_prompt(line))
    } else {
        lines.take(viewer.scroll).rfind(|(_, line)| is_prompt(line))
    };
    if let Some((at, _)) = found {
        viewer.scroll = at;
    }
}

/// Takes an older page of the transcript that is viewed.
pub(super) fn page_came(
    model: &mut Model,
    agent: Option<&AgentId>,
    mut lines: Vec<Line>,
    start: u64,
) {
    let Some(Screen::Viewer(viewer)) = &mut model.screen else { return };
    if viewer.agent.as_ref() != agent {
        return;
    }
    lines.append(&mut viewer.lines);
    viewer.lines = lines;
    viewer.start = Some(start);
    viewer.is_loading = false;
}

/// True if an agent asks for a person.
pub(super) fn asks(model: &mut Model, agent: &AgentId, is_so: bool) {
    if let Some(row) = model.agents.get_mut(agent).filter(|row| !row.state.has_ended()) {
        row.state = if is_so { AgentState::Asks } else { AgentState::Works };
    }
}
