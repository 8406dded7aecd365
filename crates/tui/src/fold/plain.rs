//! Lines of a terminal that edits lines itself: a prompt, or the number of an answer.

use super::{ask, chat, send, tables};
use crate::effect::Effect;
use crate::input::{Key, KeyCode};
use crate::keys::{Action, Meaning};
use crate::model::Model;
use crate::model::asks::AskKind;
use crate::model::prompts::When;
use crate::model::screen::Screen;

/// Takes a line.
pub(super) fn line(model: &mut Model, text: &str, effects: &mut Vec<Effect>) {
    model.notice = None;
    let is_heard = model.asks.hears(model.now);
    model.hands.last_key = Some(model.now);
    if answer(model, text.trim(), is_heard, effects) || choose(model, text.trim(), effects) {
        return;
    }
    model.screen = None;
    if text.trim().is_empty() {
        return;
    }
    if matches!(text.trim(), "?" | "/keys") {
        return effects.push(Effect::Show { command: "keys".to_owned() });
    }
    model.set_draft(text);
    send::submit(model, When::Next, effects);
}

/// Takes a line for the answer to the open question; whether it was one.
fn answer(model: &mut Model, text: &str, is_heard: bool, effects: &mut Vec<Effect>) -> bool {
    let Some(asked) = model.asks.open.front() else { return false };
    let is_words = model.asks.dialog.as_ref().is_some_and(|dialog| dialog.words.is_some());
    let (first, words) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let is_permission = matches!(asked.kind, AskKind::Permission(_) | AskKind::Plan { .. });
    let is_letter = is_permission && matches!(first, "y" | "n" | "a" | "s");
    let is_answer =
        first.len() == 1 && (is_letter || first.starts_with(|it: char| ('1'..='9').contains(&it)));
    if !is_answer && !is_words {
        return false;
    }
    if model.asks.dialog.is_none() || !is_heard {
        // It was written before the question was read.
        model.asks.show_oldest(model.now);
        model.notice = Some("a question came meanwhile: answer again".to_owned());
        return true;
    }
    let mut press = |model: &mut Model, code: KeyCode| {
        ask::key(model, Key::plain(code), effects);
    };
    if is_words {
        text.chars().for_each(|char| press(model, KeyCode::Char(char)));
        press(model, KeyCode::Enter);
        return true;
    }
    let is_no_with_words = is_permission && matches!(first, "3" | "n") && !words.is_empty();
    if is_no_with_words {
        press(model, KeyCode::Tab);
    } else {
        first.chars().for_each(|char| press(model, KeyCode::Char(char)));
    }
    let wants_words = model.asks.dialog.as_ref().is_some_and(|dialog| dialog.words.is_some());
    if wants_words && !words.is_empty() {
        words.chars().for_each(|char| press(model, KeyCode::Char(char)));
        press(model, KeyCode::Enter);
    }
    true
}

/// Takes a line for the number of a row in the list that is shown; whether it was one.
fn choose(model: &mut Model, text: &str, effects: &mut Vec<Effect>) -> bool {
    if matches!(&model.screen, Some(Screen::Table(_))) {
        return tables::line(model, text, effects);
    }
    let count = match &model.screen {
        Some(Screen::Picker(picker)) => picker.fitting().len(),
        _ => return false,
    };
    let Some(place) = text.parse().ok().filter(|it| (1..=count).contains(it)) else { return false };
    if let Some(Screen::Picker(mut picker)) = model.screen.take() {
        picker.selected = place - 1;
        super::picker::key(model, picker, Meaning::Action(Action::Accept), effects);
    }
    chat::draft_changed(model, effects);
    true
}
