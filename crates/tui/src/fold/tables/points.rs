//! The prompts to which one can go back, each with what that would change.

use super::{Press, TableScreen, letter};
use crate::effect::Effect;
use crate::fold::{chat, send};
use crate::model::Model;
use crate::model::prompts::When;
use crate::model::table::Table;

pub(super) const SCREEN: TableScreen = TableScreen {
    is_typed: false,
    enter: "goes back, files and conversation",
    keys: &[letter('f', "files alone"), letter('c', "conversation alone")],
    back: None,
    act,
};

fn act(model: &mut Model, table: &mut Table, press: &Press, effects: &mut Vec<Effect>) -> bool {
    let Some(row) = table.marked() else { return true };
    let part = match press {
        Press::Enter => "both",
        Press::Key('f') => "files",
        Press::Key('c') => "conversation",
        _ => return true,
    };
    if part != "files" && model.is_draft_empty() {
        // The prompt is there to be sent otherwise.
        model.set_draft(&row.value);
        chat::draft_changed(model, effects);
        model.menu = None;
    }
    send::command(model, &format!("/rewind {} {part}", row.id), When::Next, effects);
    false
}
