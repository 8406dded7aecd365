//! The fields of one definition: each is changed in its file, which is read again before it counts.

use super::{Press, TableScreen, letter, open_file, write};
use crate::effect::{Effect, TableChange};
use crate::model::Model;
use crate::model::table::{Table, TableOf};

pub(super) const SCREEN: TableScreen = TableScreen {
    is_typed: false,
    enter: "changes it",
    keys: &[letter('x', "take it out"), letter('e', "the whole file")],
    back: Some(TableOf::Agents),
    act,
};

fn act(model: &mut Model, table: &mut Table, press: &Press, effects: &mut Vec<Effect>) -> bool {
    let Some(row) = table.marked().cloned() else { return true };
    let change = |table: &Table, text: Option<String>| {
        let (file, field) = (table.subject.clone(), row.id.clone());
        TableChange::AgentField { file, field, text }
    };
    match press {
        Press::Enter => write(table, '=', format!("{}: ", row.name), &row.value),
        Press::Key('e') => open_file(model, table, effects),
        Press::Key('x') => {
            super::change(table, change(table, None), effects);
        }
        Press::Words('=', text) => {
            super::change(table, change(table, Some(text.clone())), effects);
        }
        _ => {}
    }
    true
}
