//! The settings: what counts, who says so, and a new value.

use super::{Press, TableScreen, ctrl, open_file, write};
use crate::effect::{Effect, SettingLevel, TableChange};
use crate::model::Model;
use crate::model::table::Table;

pub(super) const SCREEN: TableScreen = TableScreen {
    is_typed: true,
    enter: "sets it for you",
    keys: &[ctrl('e', "for you here"), ctrl('r', "for the project"), ctrl('g', "its file")],
    back: None,
    act,
};

fn act(model: &mut Model, table: &mut Table, press: &Press, effects: &mut Vec<Effect>) -> bool {
    let Some(row) = table.marked().cloned() else { return true };
    let ask = |table: &mut Table, key: char, whose: &str| {
        let prompt = format!("{} {whose} (nothing unsets it): ", row.id);
        write(table, key, prompt, &row.value);
    };
    match press {
        Press::Enter => ask(table, 'u', "for you"),
        Press::Key('e') => ask(table, 'e', "for you in this project"),
        Press::Key('r') => ask(table, 'r', "for all in this project"),
        Press::Key('g') => open_file(model, table, effects),
        Press::Words(key, text) => {
            let level = match key {
                'e' => SettingLevel::Local,
                'r' => SettingLevel::Project,
                _ => SettingLevel::User,
            };
            let (key, text) = (row.id, text.trim().to_owned());
            super::change(table, TableChange::Setting { key, text, level }, effects);
        }
        Press::Key(_) => {}
    }
    true
}
