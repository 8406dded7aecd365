//! The MCP servers: their state, their tools, and a switch.

use super::{Press, TableScreen, letter, open_file};
use crate::effect::{Effect, TableChange};
use crate::model::Model;
use crate::model::table::{Table, Tone};

pub(super) const SCREEN: TableScreen = TableScreen {
    is_typed: false,
    enter: "",
    keys: &[letter('x', "on/off"), letter('r', "connect again"), letter('e', "its file")],
    back: None,
    act,
};

fn act(model: &mut Model, table: &mut Table, press: &Press, effects: &mut Vec<Effect>) -> bool {
    let Some(row) = table.marked().cloned() else { return true };
    match press {
        Press::Key('e') => open_file(model, table, effects),
        Press::Key('x') => {
            let change =
                TableChange::SwitchServer { name: row.name, is_on: row.tone == Tone::Faint };
            super::change(table, change, effects);
        }
        Press::Key('r') => {
            super::change(table, TableChange::ConnectServer(row.name), effects);
        }
        _ => {}
    }
    true
}
