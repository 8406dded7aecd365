//! Keys at the prompt: what is typed, sent, taken back, stopped.

use super::{facts, intent, panes, picker, send};
use crate::draft::{Draft, EditAction, Vi, ViMode};
use crate::effect::Effect;
use crate::input::{Key, KeyCode};
use crate::keys::{Action, Context, Meaning};
use crate::model::agents::AgentState;
use crate::model::prompts::When;
use crate::model::{Focus, Gestures, Model};
use crate::surface::Scroll;

/// The modes that Shift+Tab goes through.
const MODES: [&str; 3] = ["default", "acceptEdits", "plan"];

pub(super) fn key(model: &mut Model, key: Key, effects: &mut Vec<Effect>) {
    if let Focus::Tree(selected) = &model.focus {
        let selected = selected.clone();
        return panes::tree_key(model, &selected, key, effects);
    }
    if menu_key(model, key, effects) || scroll_key(model, key, effects) {
        return;
    }
    let meaning = intent::meaning(model, key);
    if vi_key(model, key, meaning, effects) {
        return;
    }
    match meaning {
        Meaning::Insert('?') if model.is_draft_empty() => {
            effects.push(Effect::Show { command: "keys".to_owned() });
        }
        Meaning::Insert(char) => {
            model.draft_mut().insert(char);
            draft_changed(model, effects);
        }
        Meaning::Action(action) => act(model, action, effects),
        Meaning::ChordBegun => model.notice = Some("ctrl+x …".to_owned()),
        Meaning::None => {}
    }
}

/// Keys that move through what was printed; whether this was one. Where the prompt has a use for a key, it goes before.
fn scroll_key(model: &mut Model, key: Key, effects: &mut Vec<Effect>) -> bool {
    let is_used = !model.is_draft_empty() && model.bindings.own(Context::Chat, key).is_some();
    let scroll = match model.bindings.own(Context::Scroll, key).filter(|_| !is_used) {
        Some(Action::ScrollUp) => Scroll::Rows(-1),
        Some(Action::ScrollDown) => Scroll::Rows(1),
        Some(Action::ScrollPageUp) => Scroll::Pages(-1),
        Some(Action::ScrollPageDown) => Scroll::Pages(1),
        Some(Action::ScrollTop) => Scroll::Top,
        Some(Action::ScrollBottom) => Scroll::Bottom,
        _ => return false,
    };
    effects.push(Effect::Scroll(scroll));
    true
}

/// Keys of vi; whether this was one.
fn vi_key(model: &mut Model, key: Key, meaning: Meaning, effects: &mut Vec<Effect>) -> bool {
    let is_empty = model.is_draft_empty();
    let Some(mut vi) = model.taste.vi.take() else { return false };
    let is_redo = key == Key::plain(KeyCode::Char('r')).ctrl();
    let is_taken = match (vi.mode, meaning) {
        (ViMode::Insert, Meaning::Action(Action::Interrupt | Action::Back)) if !is_empty => {
            vi.enter_normal(model.draft_mut());
            true
        }
        (ViMode::Normal, Meaning::Action(Action::Interrupt | Action::Back)) => vi.forget(),
        (ViMode::Normal, Meaning::Insert(letter)) => {
            vi.key(model.draft_mut(), letter);
            true
        }
        (ViMode::Normal, _) if is_redo => {
            model.draft_mut().apply(EditAction::Redo);
            true
        }
        (
            ViMode::Normal,
            Meaning::Action(Action::Submit | Action::SubmitLater | Action::SubmitNow),
        ) => {
            vi = Vi::default();
            false
        }
        _ => false,
    };
    model.taste.vi = Some(vi);
    if is_taken {
        draft_changed(model, effects);
    }
    is_taken
}

/// Does what a key at the prompt means.
pub(super) fn act(model: &mut Model, action: Action, effects: &mut Vec<Effect>) {
    let is_empty = model.is_draft_empty();
    match action {
        Action::Edit(edit) => {
            model.draft_mut().apply(edit);
            draft_changed(model, effects);
        }
        Action::Submit if ends_with_backslash(model) => {
            model.draft_mut().apply(EditAction::DeleteBackward);
            model.draft_mut().insert('\n');
            draft_changed(model, effects);
        }
        Action::Submit => send::submit(model, When::Next, effects),
        Action::SubmitLater => send::submit(model, When::Later, effects),
        Action::SubmitNow => send::submit(model, When::Now, effects),
        Action::NewLine => {
            model.draft_mut().insert('\n');
            draft_changed(model, effects);
        }
        Action::Interrupt | Action::Back => escape(model, effects),
        Action::Clear => clear(model, effects),
        // No key ends the session while words are for an agent.
        Action::Exit if is_empty && model.addressee().is_some() => model.focus = Focus::Prompt,
        Action::Exit if is_empty => effects.push(Effect::Exit),
        Action::Exit => {
            model.draft_mut().apply(EditAction::DeleteForward);
            draft_changed(model, effects);
        }
        Action::Suspend => effects.push(Effect::Suspend),
        Action::Redraw => effects.push(Effect::Redraw),
        Action::HistoryOlder if is_empty && send::take_back(model, effects) => {}
        Action::HistoryOlder => older(model),
        Action::HistoryNewer => newer(model),
        Action::FocusTree => to_tree(model),
        Action::Stash if model.draft_mut().stash() => unsaved(model),
        Action::Stash => {
            model.notice = Some("there is nothing to put aside or to bring back".to_owned());
        }
        Action::Editor => {
            effects.push(Effect::Editor(model.draft().map(Draft::text).unwrap_or_default()));
        }
        Action::CycleMode => cycle_mode(model, effects),
        Action::OldestAsk => model.asks.show_oldest(model.now),
        Action::Background => effects.push(Effect::Background(model.addressee())),
        Action::StopAll => stop_all(model, effects),
        Action::Tasks => picker::tasks(model),
        Action::Viewer => {
            let agent = model.addressee();
            panes::view_transcript(model, agent, effects);
        }
        Action::HistorySearch => picker::history(model),
        Action::PasteImage => effects.push(Effect::PasteImage),
        Action::ToggleThinking => effects.push(Effect::ToggleThinking),
        Action::Help => effects.push(Effect::Show { command: "keys".to_owned() }),
        Action::PreviousSibling | Action::NextSibling | Action::Parent | Action::FirstChild => {
            panes::go(model, action);
        }
        Action::Command(number) => {
            let typed = format!("/{}", model.bindings.command(number));
            send::bound_command(model, &typed, effects);
        }
        Action::PickModel => effects.push(Effect::Show { command: "model".to_owned() }),
        _ => {}
    }
}

fn ends_with_backslash(model: &Model) -> bool {
    model.draft().is_some_and(|draft| draft.before_cursor().ends_with('\\'))
}

/// The draft has changed: it is to be saved, and the menu follows it.
pub(super) fn draft_changed(model: &mut Model, effects: &mut Vec<Effect>) {
    unsaved(model);
    if let Some(word) = model.update_menu() {
        effects.push(Effect::FindFiles(word));
    }
}

/// Takes note that the draft is to be saved.
pub(super) fn unsaved(model: &mut Model) {
    let (agent, now) = (model.addressee(), model.now);
    model.unsaved.insert(agent, now);
}

/// Keys of the menu; whether one was meant for it.
fn menu_key(model: &mut Model, key: Key, effects: &mut Vec<Effect>) -> bool {
    let action = model.bindings.own(Context::Autocomplete, key);
    // The key that would send the draft takes an entry and sends it; another one takes it alone.
    let sends = model.bindings.own(Context::Chat, key) == Some(Action::Submit);
    let Some(menu) = &mut model.menu else { return false };
    let count = menu.entries.len();
    match action {
        Some(Action::CompletePrevious) if count > 0 => {
            menu.selected = menu.selected.checked_sub(1).unwrap_or(count - 1);
        }
        Some(Action::CompleteNext) if count > 0 => menu.selected = (menu.selected + 1) % count,
        Some(Action::Complete) if !sends => {
            model.complete();
            draft_changed(model, effects);
        }
        Some(Action::Complete) if count > 0 => {
            let is_whole = menu
                .entries
                .get(menu.selected)
                .is_some_and(|it| it.word.get(1..) == Some(&menu.word));
            let is_command = menu.kind == crate::model::menu::MenuKind::Commands;
            if is_whole {
                model.menu = None;
                return false;
            }
            model.complete();
            if is_command {
                // A command that takes no words is sent with the same key.
                let text = model.draft().map(Draft::text).unwrap_or_default();
                let name = text.trim().trim_start_matches('/');
                let takes_words = model
                    .commands
                    .iter()
                    .any(|it| it.name == name && !it.arguments.trim().is_empty());
                if !takes_words {
                    send::submit(model, When::Next, effects);
                }
            }
        }
        Some(Action::CompleteClose) => model.menu = None,
        _ => return false,
    }
    true
}

/// Closes what is open, or stops the turn, or begins a gesture.
fn escape(model: &mut Model, effects: &mut Vec<Effect>) {
    let (now, first) = (model.now, model.hands.last_escape.take());
    if let Focus::Agent(_) = model.focus {
        model.focus = Focus::Prompt;
        return;
    }
    if send::stop_shell(model, effects) {
        return;
    }
    if model.is_busy() {
        return interrupt(model, effects);
    }
    if Gestures::completes(first, now) {
        if model.is_draft_empty() {
            model.set_draft("/rewind");
            return send::submit(model, When::Next, effects);
        }
        return draft_to_history(model, effects);
    }
    model.hands.last_escape = Some(now);
    model.notice = Some(
        if model.is_draft_empty() {
            "esc again to go back to an earlier prompt"
        } else {
            "esc again to clear"
        }
        .to_owned(),
    );
}

/// Stops the main agent's turn. A prompt that nothing has answered comes back.
fn interrupt(model: &mut Model, effects: &mut Vec<Effect>) {
    effects.push(Effect::Interrupt);
    if let Some(text) = model.prompts.unanswered.take() {
        facts::give_back(model, &None, &text);
    }
    model.notice = Some("stopping this turn · agents in the background continue".to_owned());
}

fn draft_to_history(model: &mut Model, effects: &mut Vec<Effect>) {
    let text = model.draft_mut().take().text;
    model.history.add(&text);
    model.menu = None;
    effects.push(Effect::Remember(text));
    draft_changed(model, effects);
    model.notice = Some("the draft is in the history: ↑".to_owned());
}

fn clear(model: &mut Model, effects: &mut Vec<Effect>) {
    let (now, first) = (model.now, model.hands.last_clear.take());
    if !model.is_draft_empty() {
        return draft_to_history(model, effects);
    }
    if let Focus::Agent(_) = model.focus {
        model.focus = Focus::Prompt;
        return;
    }
    if send::stop_shell(model, effects) {
        return;
    }
    if Gestures::completes(first, now) {
        return effects.push(Effect::Exit);
    }
    model.hands.last_clear = Some(now);
    if model.is_busy() {
        interrupt(model, effects);
    }
    model.notice = Some(leaving_words(model));
}

/// The words that name what leaving would cut short.
fn leaving_words(model: &Model) -> String {
    let at_work = model
        .agents
        .iter()
        .filter(|(_, row)| !row.state.has_ended() && row.state != AgentState::Rests);
    let names: Vec<&str> = at_work.map(|(_, row)| row.name.as_str()).collect();
    match names.as_slice() {
        [] => "ctrl+c again to leave".to_owned(),
        names => format!("ctrl+c again to leave: this interrupts {}", names.join(", ")),
    }
}

/// Moves up in the draft, and from its first row to the prompt before.
fn older(model: &mut Model) {
    let present = model.draft().map(Draft::text).unwrap_or_default();
    if model.draft_mut().apply(EditAction::Up) {
        return;
    }
    if let Some(text) = model.history.older(&present).map(str::to_owned) {
        model.set_draft(&text);
        model.menu = None;
        unsaved(model);
    }
}

/// Moves down in the draft, and from its last row to the prompt after, or to the tree.
fn newer(model: &mut Model) {
    if model.draft_mut().apply(EditAction::Down) {
        return;
    }
    match model.history.newer() {
        Some(text) => {
            model.set_draft(&text);
            model.menu = None;
            unsaved(model);
        }
        None if model.is_draft_empty() => to_tree(model),
        None => {}
    }
}

/// Moves the keys to the tree, if there is one.
fn to_tree(model: &mut Model) {
    let first = model.agents.shown(model.now).first().map(|id| (*id).clone());
    match first {
        Some(first) => model.focus = Focus::Tree(first),
        None => model.notice = Some("no agents are at work".to_owned()),
    }
}

fn cycle_mode(model: &mut Model, effects: &mut Vec<Effect>) {
    let at = MODES.iter().position(|mode| *mode == model.facts.mode);
    let next = MODES.get(at.map_or(0, |at| at + 1)).unwrap_or(&MODES[0]);
    // Two presses in one read are two steps.
    (*next).clone_into(&mut model.facts.mode);
    effects.push(Effect::SetMode((*next).to_owned()));
}

fn stop_all(model: &mut Model, effects: &mut Vec<Effect>) {
    let (now, first) = (model.now, model.hands.last_stop.take());
    if Gestures::completes(first, now) {
        return effects.push(Effect::StopAll);
    }
    model.hands.last_stop = Some(now);
    model.notice = Some("ctrl+x ctrl+k again stops all agents in the background".to_owned());
}
