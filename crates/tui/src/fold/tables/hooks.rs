//! The hooks that are in force, each with its file and line.

use super::{Press, TableScreen, letter, open_file};
use crate::effect::Effect;
use crate::model::Model;
use crate::model::table::Table;

pub(super) const SCREEN: TableScreen =
    TableScreen { is_typed: false, enter: "", keys: &[letter('e', "its file")], back: None, act };

fn act(model: &mut Model, table: &mut Table, press: &Press, effects: &mut Vec<Effect>) -> bool {
    if *press == Press::Key('e') {
        open_file(model, table, effects);
    }
    true
}
