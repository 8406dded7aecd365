//! The instruction files and the notes: what agents are told, and from where.

use super::{Press, TableScreen, open_file};
use crate::effect::Effect;
use crate::model::Model;
use crate::model::table::Table;

pub(super) const SCREEN: TableScreen =
    TableScreen { is_typed: false, enter: "opens it in your editor", keys: &[], back: None, act };

fn act(model: &mut Model, table: &mut Table, press: &Press, effects: &mut Vec<Effect>) -> bool {
    if *press == Press::Enter {
        open_file(model, table, effects);
    }
    true
}
