//! Targets of the mouse: the thing that stands at a place of the live region.

use centurion_protocol::AgentId;

use super::dialog::DialogLayout;
use super::{above_prompt, half_of, is_prompt_alone, prompt, screen_rows, screens};
use crate::frame::{Place, Size};
use crate::model::Model;

/// Something that can be pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A place of the draft, in its own rows.
    Draft(Place),
    /// An entry of the menu.
    Menu(usize),
    /// The row of an agent.
    Agent(AgentId),
    /// An entry of a list.
    Entry(usize),
    /// An answer, by its key.
    Answer(char),
}

/// The target at a place of the live region.
pub(crate) fn target(model: &Model, place: Place) -> Option<Target> {
    let size = model.size;
    if is_prompt_alone(size) {
        return prompt::target(model, size.columns, 1, place);
    }
    if let Some(screen) = &model.screen {
        let (notice, rows) = (model.notice.as_deref(), screen_rows(size));
        return screens::entry(screen, notice, size.columns, rows, place.row).map(Target::Entry);
    }
    if model.asks.current().is_some() {
        return DialogLayout::of(model)?.key_at(place.row).map(Target::Answer);
    }
    at_prompt(model, size, place)
}

fn at_prompt(model: &Model, size: Size, place: Place) -> Option<Target> {
    let half = half_of(size);
    let rows = (half / 2).max(1);
    let below =
        prompt::prompt(model, size.columns, rows).lines.len() + 1 + model.taste.status.len();
    let above = above_prompt(model, size, usize::from(half).saturating_sub(below));
    if let Some((_, agent)) = above.get(usize::from(place.row)) {
        return agent.clone().map(Target::Agent);
    }
    let row = place.row - u16::try_from(above.len()).unwrap_or(u16::MAX);
    prompt::target(model, size.columns, rows, Place { row, ..place })
}
