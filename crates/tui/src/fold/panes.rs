//! Keys in the tree, in the focus of an agent, and in screens.

use centurion_protocol::AgentId;

use crate::draft::EditAction;
use crate::effect::Effect;
use crate::frame::Line;
use crate::input::{Key, KeyCode};
use crate::keys::{Action, Context, Meaning};
use crate::model::agents::AgentState;
use crate::model::screen::{MOST_VIEWED, Screen, TextScreen, Viewer};
use crate::model::{Focus, Gestures, Model};
use crate::text::wrapped;
use crate::view::viewer_rows;

/// Keys in the tree.
pub(super) fn tree_key(model: &mut Model, selected: &AgentId, key: Key, effects: &mut Vec<Effect>) {
    let shown: Vec<AgentId> = model.agents.shown(model.now).into_iter().cloned().collect();
    let at = shown.iter().position(|id| id == selected).unwrap_or(0);
    let go = |model: &mut Model, at: usize| {
        if let Some(id) = shown.get(at) {
            model.focus = Focus::Tree(id.clone());
        }
    };
    match model.bindings.meaning(Context::Tree, key) {
        Meaning::Action(Action::Up) if at == 0 => model.focus = Focus::Prompt,
        Meaning::Action(Action::Up) => go(model, at - 1),
        Meaning::Action(Action::Down) => go(model, at + 1),
        Meaning::Action(Action::Fold) => drop(model.agents.folded.insert(selected.clone())),
        Meaning::Action(Action::Unfold) => drop(model.agents.folded.remove(selected)),
        Meaning::Action(Action::Open | Action::Message) => focus(model, selected),
        Meaning::Action(Action::MoveToBackground) => to_other_ground(model, selected, effects),
        Meaning::Action(Action::Background) => {
            effects.push(Effect::Background(Some(selected.clone())));
        }
        Meaning::Action(Action::Stop) => stop(model, selected, effects),
        Meaning::Action(Action::Back | Action::Clear) => model.focus = Focus::Prompt,
        Meaning::Action(Action::Viewer) => view_transcript(model, Some(selected.clone()), effects),
        Meaning::Action(action) => super::chat::act(model, action, effects),
        Meaning::Insert(_) => {
            // Words are for the prompt.
            model.focus = Focus::Prompt;
            super::chat::key(model, key, effects);
        }
        Meaning::ChordBegun | Meaning::None => {}
    }
}

/// Sends an agent that is waited for to the background, and brings one that is there back.
pub(super) fn to_other_ground(model: &mut Model, id: &AgentId, effects: &mut Vec<Effect>) {
    let Some(row) = model.agents.get(id) else { return };
    if row.state.has_ended() {
        model.notice = Some(format!("{} is not at work: a message resumes it", row.name));
    } else if row.is_shell {
        model.notice = Some("a shell in the background is not waited for".to_owned());
    } else if row.is_background {
        effects.push(Effect::Foreground(id.clone()));
    } else {
        effects.push(Effect::Background(Some(id.clone())));
    }
}

/// Opens the viewer of a transcript.
pub(super) fn view_transcript(
    model: &mut Model,
    agent: Option<AgentId>,
    effects: &mut Vec<Effect>,
) {
    effects.push(Effect::Page { agent: agent.clone(), before: None });
    let viewer = Viewer { agent, is_loading: true, ..Viewer::default() };
    super::show_screen(model, Screen::Viewer(viewer));
}

pub(super) fn focus(model: &mut Model, id: &AgentId) {
    if let Some(row) = model.agents.get_mut(id) {
        row.is_seen = true;
    }
    model.focus = Focus::Agent(id.clone());
    model.menu = None;
}

/// Stops an agent on the second press.
pub(super) fn stop(model: &mut Model, id: &AgentId, effects: &mut Vec<Effect>) {
    let (now, first) = (model.now, model.hands.last_stop.take());
    let name = model.agents.get(id).map(|row| row.name.clone()).unwrap_or_default();
    if model.agents.get(id).is_none_or(|row| row.state.has_ended()) {
        model.notice = Some(format!("{name} is not at work: a message resumes it"));
        return;
    }
    if Gestures::completes(first, now) {
        effects.push(Effect::StopTask(id.clone()));
        model.notice = Some(format!("stopping {name} · a message resumes it"));
        return;
    }
    model.hands.last_stop = Some(now);
    let below = model.agents.sums(id).agents.saturating_sub(1);
    let below = match below {
        0 => String::new(),
        count => format!(" and the {count} below it"),
    };
    model.notice = Some(format!("x again stops {name}{below}"));
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
    let pane = Pane::of(model);
    let Some(mut screen) = model.screen.take() else { return };
    if let Screen::Table(table) = screen {
        return super::tables::key(model, table, key, effects);
    }
    let (context, is_typed) = match &screen {
        Screen::Viewer(viewer) if viewer.is_typing => (Context::Chat, true),
        Screen::Text(_) | Screen::Viewer(_) | Screen::Table(_) => (Context::Transcript, false),
        Screen::Picker(picker) => (picker.context(), picker.is_typed()),
    };
    let mut meaning = model.bindings.meaning(context, key);
    if meaning == Meaning::None && key.code == KeyCode::Escape {
        // A chord that had begun ends with it, and the screen closes all the same.
        meaning = model.bindings.meaning(context, key);
    }
    if is_typed && meaning == Meaning::None {
        meaning = model.bindings.own(Context::Chat, key).map_or(meaning, Meaning::Action);
    }
    let is_search = matches!(&screen, Screen::Viewer(viewer) if viewer.is_typing);
    let stays = match (meaning, &mut screen) {
        (Meaning::Action(Action::Redraw), _) => {
            effects.push(Effect::Redraw);
            true
        }
        (Meaning::Action(Action::Suspend), _) => {
            effects.push(Effect::Suspend);
            true
        }
        (Meaning::Action(Action::OldestAsk), _) => {
            model.asks.show_oldest(model.now);
            false
        }
        (
            Meaning::Action(
                Action::Close | Action::ViewerClose | Action::Clear | Action::Exit | Action::Viewer,
            ),
            _,
        ) if !is_search => false,
        (_, Screen::Text(text)) => text_key(text, meaning),
        (_, Screen::Viewer(viewer)) => viewer_key(viewer, pane, meaning, effects),
        (_, Screen::Table(_)) => true,
        (_, Screen::Picker(picker)) => {
            let picker = std::mem::take(picker);
            return super::picker::key(model, picker, meaning, effects);
        }
    };
    // A key may have opened another one.
    if stays && model.screen.is_none() {
        model.screen = Some(screen);
    }
}

/// Takes a paste for a search; whether one is being typed.
pub(super) fn paste(model: &mut Model, text: &str, effects: &mut Vec<Effect>) -> bool {
    let line = text.lines().next().unwrap_or_default();
    match &mut model.screen {
        Some(Screen::Viewer(viewer)) if viewer.is_typing => viewer.sought.push_str(line),
        Some(Screen::Table(table)) => super::tables::paste(table, text, effects),
        Some(Screen::Picker(picker)) if picker.is_typed() => {
            picker.typed.push_str(line);
            picker.selected = 0;
        }
        _ => return false,
    }
    true
}

/// The rows that a page key moves.
const PAGE: usize = 10;

/// Keys in a text; false closes it.
fn text_key(text: &mut TextScreen, meaning: Meaning) -> bool {
    let last = text.lines.len().saturating_sub(1);
    let Meaning::Action(action) = meaning else { return true };
    text.scroll = match action {
        Action::ViewerUp => text.scroll.saturating_sub(1),
        Action::ViewerDown => text.scroll + 1,
        Action::ViewerPageUp => text.scroll.saturating_sub(PAGE),
        Action::ViewerPageDown => text.scroll + PAGE,
        Action::ViewerTop => 0,
        Action::ViewerBottom => last,
        _ => text.scroll,
    }
    .min(last);
    true
}

/// Changes words that are typed into a list; whether they have changed.
pub(super) fn type_words(words: &mut String, meaning: Meaning) -> bool {
    let before = words.len();
    match meaning {
        Meaning::Insert(char) => words.push(char),
        Meaning::Action(Action::Edit(EditAction::DeleteBackward)) => drop(words.pop()),
        Meaning::Action(Action::Edit(EditAction::DeleteWordBackward)) => {
            let kept = words.trim_end().rfind(char::is_whitespace).map_or(0, |at| at + 1);
            words.truncate(kept);
        }
        Meaning::Action(Action::Edit(EditAction::KillToLineStart)) => words.clear(),
        _ => {}
    }
    words.len() != before
}

/// The pane of a viewer.
#[derive(Clone, Copy, Debug)]
struct Pane {
    columns: u16,
    rows: usize,
}

impl Pane {
    fn of(model: &Model) -> Self {
        let rows = usize::from(viewer_rows(model.size)).saturating_sub(2).max(1);
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

fn viewer_key(
    viewer: &mut Viewer,
    pane: Pane,
    meaning: Meaning,
    effects: &mut Vec<Effect>,
) -> bool {
    if viewer.is_typing {
        match meaning {
            Meaning::Action(Action::Submit) => {
                viewer.is_typing = false;
                seek(viewer, pane, effects);
            }
            Meaning::Action(Action::Interrupt | Action::Clear) => viewer.is_typing = false,
            meaning => drop(type_words(&mut viewer.sought, meaning)),
        }
        return true;
    }
    let step = pane.rows.saturating_sub(1).max(1);
    let Meaning::Action(action) = meaning else { return true };
    match action {
        Action::ViewerUp => move_up(viewer, pane, 1),
        Action::ViewerDown => move_down(viewer, pane, 1),
        Action::ViewerPageUp => move_up(viewer, pane, step),
        Action::ViewerPageDown => move_down(viewer, pane, step),
        Action::ViewerTop => (viewer.scroll, viewer.below) = top(viewer, pane),
        Action::ViewerBottom => (viewer.scroll, viewer.below) = (0, 0),
        Action::ViewerSearch => {
            viewer.is_typing = true;
            viewer.sought.clear();
        }
        Action::ViewerNextMatch => seek(viewer, pane, effects),
        Action::ViewerPreviousMatch => seek_down(viewer, pane),
        Action::ViewerPreviousPrompt => jump(viewer, pane, true),
        Action::ViewerNextPrompt => jump(viewer, pane, false),
        Action::ViewerCopy => {
            let text: Vec<String> = viewer.lines.iter().map(Line::text).collect();
            effects.push(Effect::Copy(text.join("\n")));
        }
        Action::ViewerEditor => {
            let text: Vec<String> = viewer.lines.iter().map(Line::text).collect();
            effects.push(Effect::ReadInEditor(text.join("\n")));
        }
        _ => {}
    }
    want_older(viewer, effects);
    true
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

/// Takes an older page of the transcript that is viewed, and continues with a search.
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
