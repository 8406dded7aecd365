//! The spending: of each agent itself, and with all below it.

use super::{Press, TableScreen, focus_row};
use crate::effect::Effect;
use crate::model::Model;
use crate::model::table::Table;

pub(super) const SCREEN: TableScreen =
    TableScreen { is_typed: false, enter: "opens the agent", keys: &[], back: None, act };

fn act(model: &mut Model, table: &mut Table, press: &Press, _: &mut Vec<Effect>) -> bool {
    *press != Press::Enter || !focus_row(model, table)
}
