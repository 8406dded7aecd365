//! Keys in a list to choose from, and the lists that the model has by itself.

use centurion_protocol::AgentId;

use super::{chat, panes, send};
use crate::effect::Effect;
use crate::keys::{Action, Meaning};
use crate::model::Model;
use crate::model::picker::{PickFor, PickRow, Picker};
use crate::model::prompts::When;
use crate::model::screen::Screen;
use crate::model::talk::TodoState;
use crate::view::words::clock;

/// Opens the search through earlier prompts.
pub(super) fn history(model: &mut Model) {
    let row = |text: &str| {
        let shown = text.trim().replace('\n', " ⏎ ");
        PickRow { text: shown, hint: String::new(), value: text.to_owned() }
    };
    let rows: Vec<PickRow> = model.history.search("").map(row).collect();
    let mut picker = Picker::new("Earlier prompts", PickFor::Draft, rows);
    picker.is_history = true;
    // The draft so far is what is looked for.
    if let Some(draft) = model.draft().map(crate::draft::Draft::text) {
        draft.lines().next().unwrap_or_default().clone_into(&mut picker.typed);
    }
    if picker.fitting().is_empty() {
        picker.typed.clear();
    }
    super::show_screen(model, Screen::Picker(picker));
}

/// Opens the list of the to-dos, agents and shells.
pub(super) fn tasks(model: &mut Model) {
    let todos = model.talk.todos.iter().map(|todo| {
        let mark = match todo.state {
            TodoState::Done => "✓",
            TodoState::Active => "◼",
            TodoState::Pending => "◻",
        };
        PickRow { text: format!("{mark} {}", todo.text), ..PickRow::default() }
    });
    let agents = model.agents.iter().map(|(id, row)| PickRow {
        text: format!("{} {}  {}", row.state.mark(), model.agents.path(id).join(" ▸ "), row.task),
        hint: [clock(row.time(model.now)), row.activity.clone()]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" · "),
        value: id.to_string(),
    });
    let rows: Vec<PickRow> = todos.chain(agents).collect();
    if rows.is_empty() {
        model.notice = Some("there are no tasks".to_owned());
        return;
    }
    let done = model.talk.todos.iter().filter(|todo| todo.state == TodoState::Done).count();
    let title = match model.talk.todos.len() {
        0 => "Tasks".to_owned(),
        count => format!("Tasks {done}/{count}"),
    };
    super::show_screen(model, Screen::Picker(Picker::new(title, PickFor::Tasks, rows)));
}

/// Takes a key in a list.
pub(super) fn key(
    model: &mut Model,
    mut picker: Picker,
    meaning: Meaning,
    effects: &mut Vec<Effect>,
) {
    let count = picker.fitting().len();
    match meaning {
        Meaning::Action(Action::Up) => picker.selected = picker.selected.saturating_sub(1),
        Meaning::Action(Action::Down) => {
            picker.selected = (picker.selected + 1).min(count.saturating_sub(1));
        }
        Meaning::Action(Action::Accept) => {
            let row = picker.fitting().get(picker.selected).map(|row| (*row).clone());
            match row {
                Some(row) if take(model, picker.purpose, &row, effects) => return,
                _ => {}
            }
        }
        Meaning::Insert(char) if picker.purpose == PickFor::Tasks => {
            let row = picker.fitting().get(picker.selected).map(|row| row.value.clone());
            let agent = row.filter(|value| !value.is_empty()).map(AgentId::new);
            match (char, agent) {
                ('m', Some(agent)) => return panes::focus(model, &agent),
                ('f', Some(agent)) => panes::to_other_ground(model, &agent, effects),
                ('x', Some(agent)) => panes::stop(model, &agent, effects),
                ('q', _) => return,
                _ => {}
            }
        }
        meaning => {
            if panes::type_words(&mut picker.typed, meaning) {
                picker.selected = 0;
            }
        }
    }
    model.screen = Some(Screen::Picker(picker));
}

/// Does what a row is for; false where the list stays.
fn take(model: &mut Model, purpose: PickFor, row: &PickRow, effects: &mut Vec<Effect>) -> bool {
    match purpose {
        PickFor::Reading => return false,
        PickFor::Draft | PickFor::Begin => {
            model.set_draft(&row.value);
            chat::draft_changed(model, effects);
            model.menu = None;
        }
        PickFor::Command => send::command(model, &row.value, When::Next, effects),
        PickFor::Tasks if row.value.is_empty() => return false,
        PickFor::Tasks => {
            panes::view_transcript(model, Some(AgentId::new(row.value.as_str())), effects);
        }
    }
    true
}
