//! The settings: what counts, who says so, what does not count and why; and a new value.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use centurion_config::settings::{
    self, Change, KeyReport, KnownSetting, Level, Settings, known_settings,
};
use centurion_tui::{SettingLevel, Table, TableOf, TableRow, Tone};

use super::{Tables, file_line, placed};

/// The most characters of a value in a row.
const MOST: usize = 40;

pub(super) fn table(settings: &Settings) -> Table {
    let mut by_key: BTreeMap<String, Vec<KeyReport>> = BTreeMap::new();
    for report in settings.keys() {
        by_key.entry(report.key.clone()).or_default().push(report);
    }
    let known: BTreeMap<&str, KnownSetting> = known_settings().map(|it| (it.key, it)).collect();
    let set: BTreeSet<&str> = by_key.keys().map(String::as_str).collect();
    let unset = known.keys().filter(|key| !set.contains(**key));
    let mut rows: Vec<TableRow> = by_key
        .iter()
        .map(|(key, reports)| row(settings, key, reports, known.get(key.as_str())))
        .collect();
    rows.extend(unset.map(|key| row(settings, key, &[], known.get(key))));
    let title = format!("Settings · {} set", by_key.len());
    Table::new(TableOf::Settings, title, rows)
}

fn row(
    settings: &Settings,
    key: &str,
    reports: &[KeyReport],
    known: Option<&KnownSetting>,
) -> TableRow {
    let decisive = reports.iter().find(|it| it.in_force()).or(reports.first());
    let value = settings.value(key).filter(|_| reports.iter().any(KeyReport::in_force));
    // A key or a password has no place on a screen.
    let whole = value.as_ref().map(ToString::to_string).unwrap_or_default();
    let shown = centurion_redact::redact_text(&whole).into_owned();
    let is_secret = shown != whole;
    let tone = match decisive {
        None => Tone::Faint,
        Some(report) if report.in_force() => Tone::Plain,
        Some(_) => Tone::Notable,
    };
    let mut text = String::new();
    // Writing to a string cannot fail.
    if !shown.is_empty() {
        let _ = writeln!(text, "{key} = {shown}");
    }
    for report in reports {
        let place = format!("{}:{}", report.file.display(), report.line);
        let why = report.why();
        let state = if report.in_force() { "counts" } else { why.as_str() };
        let _ = writeln!(text, "{place} ({}): {state}", report.level);
    }
    if let Some(known) = known {
        let _ = writeln!(text, "It may be {}.", known.expected);
        if let Some(why) = known.unused {
            let _ = writeln!(text, "Not all values do something: {why}.");
        }
    }
    let hint = decisive.map_or_else(String::new, |it| {
        let why = it.why();
        let place = format!("{} {}", it.level, placed(&it.file, Some(it.line)));
        if why.is_empty() { place } else { format!("{place} · {why}") }
    });
    let value = match &value {
        Some(_) if is_secret => String::new(),
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    let cells = vec![shortened(&shown)];
    let file = decisive.map(|it| file_line(&it.file, it.line));
    TableRow { cells, hint, tone, value, file, ..TableRow::new(key, key) }.with_detail(&text)
}

/// The beginning of a value.
fn shortened(value: &str) -> String {
    let mut short: String = value.chars().take(MOST).collect();
    if short.len() < value.len() {
        short.push('…');
    }
    short
}

/// Sets a setting, or unsets it.
pub(super) fn set(
    tables: &Tables,
    key: &str,
    text: &str,
    level: SettingLevel,
) -> anyhow::Result<String> {
    let level = match level {
        SettingLevel::User => Level::User,
        SettingLevel::Local => Level::Local,
        SettingLevel::Project => Level::Project,
    };
    let file = tables.settings_file(level)?;
    let place = file.path().display().to_string();
    let path: Vec<&str> = key.split('.').collect();
    if text.is_empty() {
        return Ok(match settings::unset(&file, &path)? {
            Change::Written => format!("{key} is unset in {place}"),
            Change::AlreadyThere => format!("{place} says nothing about {key}"),
        });
    }
    let value = settings::read_setting(key, text)?;
    settings::set_value(&file, &path, &value)?;
    let after = tables.fresh_settings()?;
    let counts = |it: &KeyReport| it.key == key && *it.file == *file.path() && it.in_force();
    if after.keys().iter().any(counts) {
        return Ok(format!("{key} is {value} · {place}"));
    }
    let why = after.keys().into_iter().find(|it| it.key == key && *it.file == *file.path());
    let why = why.map(|it| it.why()).unwrap_or_default();
    Ok(format!("{key} is written to {place}, and does not count: {why}"))
}
