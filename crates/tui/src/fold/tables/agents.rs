//! The definitions of agents: what they are, who defines them, what is wrong with them, and changes of all that.

use super::{Press, TableScreen, letter, open, open_file, write};
use crate::effect::{Effect, TableChange};
use crate::fold::chat;
use crate::model::Model;
use crate::model::table::{Table, TableOf, Tone};

/// The subject of a detail that is the whole explanation of an agent.
pub(crate) const EXPLAINED: &str = "explained";

pub(super) const SCREEN: TableScreen = TableScreen {
    is_typed: false,
    enter: "changes it",
    keys: &[
        letter('i', "explain"),
        letter('n', "new"),
        letter('N', "new for you"),
        letter('e', "edit"),
        letter('t', "try"),
        letter('x', "on/off"),
    ],
    back: None,
    act,
};

fn act(model: &mut Model, table: &mut Table, press: &Press, effects: &mut Vec<Effect>) -> bool {
    match press {
        Press::Key(key @ ('n' | 'N')) => write(table, *key, "name of the new agent: ", ""),
        Press::Words(key @ ('n' | 'N'), name) if !name.trim().is_empty() => {
            let change =
                TableChange::NewAgent { name: name.trim().to_owned(), is_own: *key == 'N' };
            super::change(table, change, effects);
        }
        Press::Key('e') => open_file(model, table, effects),
        _ => return act_on_agent(model, table, press, effects),
    }
    true
}

fn act_on_agent(
    model: &mut Model,
    table: &mut Table,
    press: &Press,
    effects: &mut Vec<Effect>,
) -> bool {
    let Some(row) = table.marked().cloned() else { return true };
    match press {
        Press::Enter if row.value.is_empty() => {
            let why = "is not yours to change here: i explains it, n writes one";
            model.notice = Some(format!("{} {why}", row.name));
        }
        Press::Enter => open(TableOf::AgentFields, &row.value, effects),
        Press::Key('i') => {
            table.state.is_wide = true;
            let subject = EXPLAINED.to_owned();
            effects.push(Effect::Detail { of: TableOf::Agents, subject, id: row.id });
        }
        Press::Key('t') if row.tone == Tone::Bad => {
            model.notice = Some(format!("{} cannot be used as it is", row.name));
        }
        Press::Key('t') => {
            model.set_draft(&format!("Use the {} agent to ", row.name));
            chat::draft_changed(model, effects);
            return false;
        }
        Press::Key('x') => {
            let change =
                TableChange::SwitchAgent { name: row.name, is_on: row.tone == Tone::Faint };
            super::change(table, change, effects);
        }
        _ => {}
    }
    true
}
