//! The fold: one happening changes the model, and may want effects. Knows no clock, terminal, file or task.

mod answer;
mod ask;
mod brought;
mod chat;
mod commands;
mod events;
mod facts;
mod images;
mod intent;
mod lines;
mod mouse;
mod panes;
mod picker;
mod plain;
mod send;
mod tables;

use centurion_protocol::sdk::EventBody;

pub use self::facts::Fact;
pub(crate) use self::lines::change_lines;
pub(crate) use self::tables::screen as table_screen;
use crate::attachment::dragged_image;
use crate::draft::Draft;
use crate::effect::Effect;
use crate::input::Input;
use crate::model::asks::{AskNumber, Asked};
use crate::model::screen::Screen;
use crate::model::{Addressee, Model, Moment};
use crate::view::is_prompt_alone;

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
    /// The terminal goes, for whatever reason.
    Leaving,
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
        Happening::Withdrawn(number) => ask::withdrawn(model, number, &mut effects),
        Happening::Input(input) => input_came(model, input, &mut effects),
        Happening::Tick => tick(model, &mut effects),
        Happening::Leaving => save_drafts(model, &mut effects, |_| true),
        Happening::Fact(fact) => facts::fact(model, fact, &mut effects),
    }
    effects
}

fn tick(model: &mut Model, effects: &mut Vec<Effect>) {
    let (now, last_key) = (model.now, model.hands.last_key);
    if model.screen.is_none() {
        model.asks.pass(now, last_key);
    }
    save_drafts(model, effects, |changed| now.saturating_sub(changed) >= crate::model::SAVE_AFTER);
}

/// Keeps the drafts that have changed, each under its own agent.
fn save_drafts(model: &mut Model, effects: &mut Vec<Effect>, is_due: impl Fn(Moment) -> bool) {
    let due = model.unsaved.iter().filter(|(_, changed)| is_due(**changed));
    let due: Vec<Addressee> = due.map(|(agent, _)| agent.clone()).collect();
    for agent in due {
        model.unsaved.remove(&agent);
        let draft = model.drafts.get(&agent).map(Draft::kept).unwrap_or_default();
        effects.push(Effect::SaveDraft { agent, draft });
    }
}

fn input_came(model: &mut Model, input: &Input, effects: &mut Vec<Effect>) {
    match input {
        Input::Key(key) => {
            model.notice = None;
            match hearer(model) {
                KeyTarget::Screen => panes::screen_key(model, *key, effects),
                KeyTarget::Dialog => ask::key(model, *key, effects),
                KeyTarget::Chat => chat::key(model, *key, effects),
            }
            model.hands.last_key = Some(model.now);
        }
        Input::Paste(text) => {
            let hearer = hearer(model);
            model.hands.last_key = Some(model.now);
            let is_taken = match hearer {
                KeyTarget::Screen => panes::paste(model, text, effects),
                KeyTarget::Dialog => ask::paste(model, text),
                KeyTarget::Chat => false,
            };
            if is_taken {
                return;
            }
            if let Some(path) = dragged_image(text) {
                return effects.push(Effect::ReadImage { path, pasted: text.clone() });
            }
            model.draft_mut().paste(text);
            chat::draft_changed(model, effects);
        }
        Input::Focus(is_focused) => model.facts.is_away = !*is_focused,
        Input::Resized(size) => model.size = *size,
        Input::Line(text) => plain::line(model, text, effects),
        Input::Mouse(mouse) => mouse::mouse(model, *mouse, effects),
        Input::Reply(_) => {}
    }
}

/// The part of the screen that a key is for: always one that is shown.
enum KeyTarget {
    Screen,
    Dialog,
    Chat,
}

fn hearer(model: &mut Model) -> KeyTarget {
    if is_prompt_alone(model.size) {
        return KeyTarget::Chat;
    }
    if model.screen.is_some() {
        return KeyTarget::Screen;
    }
    if model.asks.hears(model.now) { KeyTarget::Dialog } else { KeyTarget::Chat }
}

/// Shows a screen. A dialog closes for it, and opens again behind it when the keys are quiet.
fn show_screen(model: &mut Model, screen: Screen) {
    model.asks.close();
    model.screen = Some(screen);
}
