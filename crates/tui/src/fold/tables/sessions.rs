//! The sessions that can be resumed: found by what was said in them, with a preview of their end.

use centurion_protocol::SessionId;

use super::{Press, TableScreen, ctrl, open, write};
use crate::effect::{Effect, TableChange};
use crate::model::Model;
use crate::model::table::{Table, TableOf};

/// The sessions of all directories, and those of the present branch, as subjects of the table.
const ALL: &str = "all";
const BRANCH: &str = "branch";

pub(super) const SCREEN: TableScreen = TableScreen {
    is_typed: true,
    enter: "resumes",
    keys: &[
        ctrl('f', "fork"),
        ctrl('r', "name"),
        ctrl('b', "this branch"),
        ctrl('a', "all folders"),
    ],
    back: None,
    act,
};

fn act(model: &mut Model, table: &mut Table, press: &Press, effects: &mut Vec<Effect>) -> bool {
    let places = |table: &Table, wanted: &'static str| {
        if table.subject == wanted { "" } else { wanted }
    };
    match press {
        Press::Key('a') => open(TableOf::Sessions, places(table, ALL), effects),
        Press::Key('b') => open(TableOf::Sessions, places(table, BRANCH), effects),
        _ => return act_on_session(model, table, press, effects),
    }
    true
}

fn act_on_session(
    model: &mut Model,
    table: &mut Table,
    press: &Press,
    effects: &mut Vec<Effect>,
) -> bool {
    let Some(row) = table.marked().cloned() else { return true };
    let Ok(session) = row.id.parse::<SessionId>() else { return true };
    match press {
        Press::Enter => {
            effects.push(Effect::Resume(session));
            return false;
        }
        Press::Key('f') => {
            effects.push(Effect::Fork(session));
            return false;
        }
        Press::Key('r') => write(table, 'r', "name of the session: ", &row.name),
        Press::Words('r', title) if title.trim().is_empty() => {
            model.notice = Some("a session needs a name".to_owned());
        }
        Press::Words('r', title) => {
            let title = title.trim().to_owned();
            super::change(table, TableChange::SessionTitle { session, title }, effects);
        }
        _ => {}
    }
    true
}
