//! The permission rules with their files and lines, what was denied lately, and a trial: what would happen to a call.

use super::{Press, TableScreen, letter, open_file, write};
use crate::effect::Effect;
use crate::model::Model;
use crate::model::table::{Table, TableRow, Tone};

/// The beginning of the id of a row that is a trial; the call follows.
pub(crate) const TRIAL: &str = "try ";

pub(super) const SCREEN: TableScreen = TableScreen {
    is_typed: false,
    enter: "",
    keys: &[letter('t', "try a call"), letter('e', "its file")],
    back: None,
    act,
};

fn act(model: &mut Model, table: &mut Table, press: &Press, effects: &mut Vec<Effect>) -> bool {
    match press {
        Press::Key('t') => write(table, 't', "what would happen to: ", "Bash()"),
        Press::Words('t', call) if !call.trim().is_empty() => tries(table, call.trim()),
        Press::Key('e') => open_file(model, table, effects),
        _ => {}
    }
    true
}

/// Adds a trial above all other rows. Its detail is asked for like any other.
fn tries(table: &mut Table, call: &str) {
    let id = format!("{TRIAL}{call}");
    table.rows.retain(|row| row.id != id);
    let hint = "what would happen if".to_owned();
    let row = TableRow { tone: Tone::Notable, hint, ..TableRow::new(id.clone(), call) };
    table.rows.insert(0, row);
    (table.state.is_searching, table.state.scroll) = (false, 0);
    table.state.typed.clear();
    table.mark(&id);
}

/// Adds what was denied lately: such a call can be tried as it was.
pub(super) fn add_denied(table: &mut Table, denied: impl Iterator<Item = String>) {
    let row = |(at, said): (usize, String)| {
        let row = TableRow::new(format!("denied {at}"), said.lines().next().unwrap_or_default());
        TableRow { tone: Tone::Bad, ..row.with_detail(&said) }
    };
    let rows: Vec<TableRow> = denied.enumerate().map(row).collect();
    if !rows.is_empty() {
        table.rows.push(TableRow::head("Denied lately"));
        table.rows.extend(rows);
    }
}
