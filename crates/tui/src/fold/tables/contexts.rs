//! The windows: what fills that of the main agent, and how full those of the others are.

use super::{Press, TableScreen, focus_row, letter};
use crate::effect::Effect;
use crate::fold::send;
use crate::model::Model;
use crate::model::prompts::When;
use crate::model::table::Table;

pub(super) const SCREEN: TableScreen = TableScreen {
    is_typed: false,
    enter: "opens the agent",
    keys: &[letter('c', "compact the main conversation")],
    back: None,
    act,
};

fn act(model: &mut Model, table: &mut Table, press: &Press, effects: &mut Vec<Effect>) -> bool {
    match press {
        Press::Enter => !focus_row(model, table),
        Press::Key('c') => {
            send::command(model, "/compact", When::Next, effects);
            false
        }
        _ => true,
    }
}
