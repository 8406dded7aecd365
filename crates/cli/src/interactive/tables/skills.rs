//! The skills: what each is for, who brings it, and which are off.

use centurion_config::settings::{self, Level};
use centurion_config::skills::{OffSwitch, SkillEntry};
use centurion_engine::Handle;
use centurion_tui::{Table, TableOf, TableRow, Tone};
use serde_json::json;

use super::{Tables, file_line, one_line, placed};

/// The setting that switches single skills off.
const OVERRIDES: &str = "skillOverrides";

pub(super) fn table(handle: &Handle) -> Table {
    let catalog = handle.skill_catalog();
    let mut rows: Vec<TableRow> = catalog.active.iter().map(|it| row(it)).collect();
    for off in &catalog.off {
        let hint = format!("off: {}", off.by.as_str());
        rows.push(TableRow { tone: Tone::Faint, hint, ..row(&off.entry) });
    }
    for failed in &catalog.failed {
        let name = failed.path.parent().and_then(|it| it.file_name());
        let name = name.map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        let row = TableRow {
            cells: vec!["✗".to_owned()],
            hint: format!("{}: {}", placed(&failed.path, failed.line), one_line(&failed.message)),
            tone: Tone::Bad,
            file: Some(file_line(&failed.path, failed.line.unwrap_or(1))),
            ..TableRow::new(failed.path.display().to_string(), name)
        };
        rows.push(row.with_detail(&failed.to_string()));
    }
    for shadowed in &catalog.shadowed {
        let by = shadowed.by.path.display();
        let row = row(&shadowed.entry);
        let id = format!("shadowed {}", row.id);
        rows.push(TableRow { id, hint: format!("{by} goes before it"), tone: Tone::Faint, ..row });
    }
    Table::new(TableOf::Skills, format!("Skills · {}", catalog.active.len()), rows)
}

fn row(entry: &SkillEntry) -> TableRow {
    let card = &entry.card;
    let whom = match (card.for_models, card.for_people) {
        (true, true) => "",
        (true, false) => "models only",
        (false, true) => "people only",
        (false, false) => "unused",
    };
    let path = &entry.origin.path;
    let is_file = path.is_file();
    let hint = card.summary.as_deref().map(one_line).unwrap_or_default();
    let cells = vec![entry.origin.source.as_str().to_owned(), whom.to_owned()];
    let id = if is_file { path.display().to_string() } else { entry.name.clone() };
    let row = TableRow {
        cells,
        hint: hint.clone(),
        file: is_file.then(|| file_line(path, 1)),
        ..TableRow::new(id, &*entry.name)
    };
    // The text of a file is asked for when it is looked at.
    if is_file { row } else { row.with_detail(&hint) }
}

/// Switches a skill off in the person's own settings for this project, or takes that back.
pub(super) fn switch(tables: &Tables, name: &str, is_on: bool) -> anyhow::Result<String> {
    let file = tables.settings_file(Level::Local)?;
    let place = file.path().display().to_string();
    if is_on {
        settings::unset(&file, &[OVERRIDES, name])?;
    } else {
        settings::set_value(&file, &[OVERRIDES, name], &json!("off"))?;
    }
    if let Some(live) = &tables.settings {
        live.with(|state| state.is_changed = true);
    }
    let handle = tables.handle()?;
    handle.reload_skills();
    let is_off_now = handle
        .skill_catalog()
        .off
        .iter()
        .any(|off| off.entry.name == name && off.by == OffSwitch::Overrides);
    Ok(match (is_on, is_off_now) {
        (true, false) => format!("{name} is on"),
        (false, true) => format!("{name} is off → {place}"),
        (true, true) => format!("{name} is on in {place}, from the next start on"),
        (false, false) => format!("{name} is off in {place}, from the next start on"),
    })
}
