//! The skills: what they are for, who brings them, and a switch.

use super::{Press, TableScreen, letter, open_file};
use crate::effect::{Effect, TableChange};
use crate::fold::chat;
use crate::model::Model;
use crate::model::table::{Table, Tone};

pub(super) const SCREEN: TableScreen = TableScreen {
    is_typed: false,
    enter: "types it",
    keys: &[letter('e', "edit"), letter('x', "on/off")],
    back: None,
    act,
};

fn act(model: &mut Model, table: &mut Table, press: &Press, effects: &mut Vec<Effect>) -> bool {
    let Some(row) = table.marked().cloned() else { return true };
    match press {
        Press::Enter => {
            model.set_draft(&format!("/{} ", row.name));
            chat::draft_changed(model, effects);
            return false;
        }
        Press::Key('e') => open_file(model, table, effects),
        Press::Key('x') => {
            let change =
                TableChange::SwitchSkill { name: row.name, is_on: row.tone == Tone::Faint };
            super::change(table, change, effects);
        }
        _ => {}
    }
    true
}
