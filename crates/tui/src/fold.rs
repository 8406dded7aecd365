//! The fold: one happening changes the model, and may want effects. Knows no clock, terminal, file or task.

mod answer;
mod ask;
mod chat;
mod events;
mod facts;
mod intent;
mod lines;
mod panes;
mod send;

use centurion_protocol::sdk::EventBody;

pub use self::facts::Fact;
use crate::effect::Effect;
use crate::input::Input;
use crate::model::asks::{AskNumber, Asked};
use crate::model::{Model, Moment};

/// Something that happened.
#[derive(Debug)]
pub enum Happening<'a> {
    /// The session shows an event.
    Event(&'a EventBody),
    /// A question waits for a person.
    Asked(Box<Asked>),
    /// A question needs no answer any more: its call ended, or another front answered it.
    Withdrawn(AskNumber),
    /// The terminal sent something.
    Input(&'a Input),
    /// Time has passed.
    Tick,
    /// Something that was asked for has come, or a state was looked at.
    Fact(Fact),
}

/// Changes the model by what happened at a moment. Returns what is to be done.
pub fn fold(model: &mut Model, at: Moment, happening: Happening<'_>) -> Vec<Effect> {
    model.now = at;
    let mut effects = Vec::new();
    match happening {
        Happening::Event(event) => events::event(model, event, &mut effects),
        Happening::Asked(asked) => ask::asked(model, *asked, &mut effects),
        Happening::Withdrawn(number) => ask::withdrawn(model, number),
        Happening::Input(input) => input_came(model, input, &mut effects),
        Happening::Tick => tick(model, &mut effects),
        Happening::Fact(fact) => facts::fact(model, fact, &mut effects),
    }
    effects
}

fn tick(model: &mut Model, effects: &mut Vec<Effect>) {
    let (now, last_key) = (model.now, model.hands.last_key);
    if model.screen.is_none() {
        model.asks.pass(now, last_key);
    }
    if model
        .hands
        .unsaved
        .is_some_and(|changed| now.saturating_sub(changed) >= crate::model::SAVE_AFTER)
    {
        model.hands.unsaved = None;
        let text = model.draft().map(crate::draft::Draft::text).unwrap_or_default();
        effects.push(Effect::SaveDraft { agent: model.addressee(), text });
    }
}

fn input_came(model: &mut Model, input: &Input, effects: &mut Vec<Effect>) {
    match input {
        Input::Key(key) => {
            model.notice = None;
            let is_heard = model.asks.hears(model.now);
            model.hands.last_key = Some(model.now);
            if is_heard {
                ask::key(model, *key, effects);
            } else if model.screen.is_some() {
                panes::screen_key(model, *key, effects);
            } else {
                chat::key(model, *key, effects);
            }
        }
        Input::Paste(text) => {
            let is_heard = model.asks.hears(model.now);
            model.hands.last_key = Some(model.now);
            if is_heard && ask::paste(model, text) {
                return;
            }
            model.draft_mut().paste(text);
            chat::draft_changed(model, effects);
        }
        Input::Focus(is_focused) => model.facts.is_focused = *is_focused,
        Input::Resized(_) | Input::Mouse(_) | Input::Reply(_) => {}
    }
}
