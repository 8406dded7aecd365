//! The mouse in the live region. Nothing is answered by a press that a key would not answer at that moment.

use super::{KeyTarget, ask, chat, hearer, panes, picker};
use crate::effect::Effect;
use crate::input::{Key, KeyCode, Mouse, MouseEvent};
use crate::keys::{Action, Meaning};
use crate::model::screen::Screen;
use crate::model::{Focus, Model};
use crate::surface::Scroll;
use crate::view::touch::{Target, target};

/// The rows that the wheel moves.
const WHEEL: usize = 3;

pub(super) fn mouse(model: &mut Model, mouse: Mouse, effects: &mut Vec<Effect>) {
    match mouse.event {
        MouseEvent::WheelUp => wheel(model, true, effects),
        MouseEvent::WheelDown => wheel(model, false, effects),
        MouseEvent::Pressed => pressed(model, mouse, effects),
        MouseEvent::Released | MouseEvent::Dragged | MouseEvent::Moved => {}
    }
}

fn wheel(model: &mut Model, is_up: bool, effects: &mut Vec<Effect>) {
    match hearer(model) {
        KeyTarget::Screen => {
            let code = if is_up { KeyCode::Up } else { KeyCode::Down };
            (0..WHEEL).for_each(|_| panes::screen_key(model, Key::plain(code), effects));
        }
        KeyTarget::Dialog => ask::scroll_rows(model, WHEEL, is_up),
        KeyTarget::Chat => {
            let rows = isize::try_from(WHEEL).unwrap_or(1);
            effects.push(Effect::Scroll(Scroll::Rows(if is_up { -rows } else { rows })));
        }
    }
}

fn pressed(model: &mut Model, mouse: Mouse, effects: &mut Vec<Effect>) {
    let is_heard = matches!(hearer(model), KeyTarget::Dialog);
    let target = target(model, mouse.place);
    model.hands.last_key = Some(model.now);
    match target {
        Some(Target::Answer(key)) if is_heard => {
            ask::key(model, Key::plain(KeyCode::Char(key)), effects);
        }
        Some(Target::Draft(place)) => {
            // From the tree back to the words.
            if matches!(model.focus, Focus::Tree(_)) {
                model.focus = Focus::Prompt;
            }
            model.draft_mut().go_to(place);
        }
        Some(Target::Menu(entry)) => {
            if let Some(menu) = &mut model.menu {
                menu.selected = entry;
            }
            model.complete();
            chat::draft_changed(model, effects);
        }
        Some(Target::Agent(agent)) => panes::focus(model, &agent),
        Some(Target::Entry(entry)) => choose(model, entry, effects),
        Some(Target::Answer(_)) | None => {}
    }
}

/// Selects an entry of a list; a press on the selected one takes it.
fn choose(model: &mut Model, entry: usize, effects: &mut Vec<Effect>) {
    match &mut model.screen {
        Some(Screen::Picker(list)) if list.selected != entry => list.selected = entry,
        Some(Screen::Table(table)) if table.state.marked != entry => table.mark_place(entry),
        Some(Screen::Table(_)) => {
            panes::screen_key(model, Key::plain(KeyCode::Enter), effects);
        }
        Some(Screen::Picker(list)) => {
            let list = std::mem::take(list);
            model.screen = None;
            picker::key(model, list, Meaning::Action(Action::Accept), effects);
        }
        _ => {}
    }
}
