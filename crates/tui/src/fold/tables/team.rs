//! The team: its members, the tasks that they share, and their mail.

use centurion_protocol::AgentId;

use super::{Press, TableScreen, letter, write};
use crate::effect::{Effect, TableChange};
use crate::fold::{panes, send};
use crate::model::Model;
use crate::model::prompts::When;
use crate::model::table::Table;

/// The beginning of the id of a row that is a member; the id of its agent follows.
pub(crate) const MEMBER: &str = "member ";

pub(super) const SCREEN: TableScreen = TableScreen {
    is_typed: false,
    enter: "opens the member",
    keys: &[
        letter('m', "message"),
        letter('M', "all"),
        letter('x', "ask to end"),
        letter('X', "X stop"),
    ],
    back: None,
    act,
};

fn act(model: &mut Model, table: &mut Table, press: &Press, effects: &mut Vec<Effect>) -> bool {
    match press {
        Press::Key('M') => write(table, 'M', "to all members: ", ""),
        Press::Words('M', text) if !text.trim().is_empty() => {
            let members: Vec<AgentId> = table.rows.iter().filter_map(|it| member(&it.id)).collect();
            for id in members {
                send::tell(model, id, text.clone(), When::Next, effects);
            }
        }
        _ => return act_on_member(model, table, press, effects),
    }
    true
}

/// The agent of a row, if it is a member's.
fn member(row: &str) -> Option<AgentId> {
    row.strip_prefix(MEMBER).map(AgentId::new)
}

fn act_on_member(
    model: &mut Model,
    table: &mut Table,
    press: &Press,
    effects: &mut Vec<Effect>,
) -> bool {
    let Some(row) = table.marked().cloned() else { return true };
    let Some(id) = member(&row.id) else {
        model.notice = Some("that is no member".to_owned());
        return true;
    };
    match press {
        Press::Enter => {
            panes::focus(model, &id);
            return false;
        }
        Press::Key('m') => write(table, 'm', format!("to {}: ", row.name), ""),
        Press::Words('m', text) if !text.trim().is_empty() => {
            send::tell(model, id, text.clone(), When::Next, effects);
            super::again(table, effects);
        }
        Press::Key('x') => {
            super::change(table, TableChange::AskToEnd(id), effects);
        }
        Press::Key('X') => panes::stop(model, &id, effects),
        _ => {}
    }
    true
}
