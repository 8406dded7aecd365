//! The definitions of agents: which there are, who defines them, what is wrong with them, and which are off.

use std::fmt::Write as _;

use centurion_config::Problem;
use centurion_config::agents::{AgentDefinition, AgentSource};
use centurion_config::settings::{self, Level, RuleForm, RuleList, Settings};
use centurion_engine::builtin;
use centurion_tui::{FileLine, Table, TableOf, TableRow, Tone};

use super::{Tables, file_line, one_line, placed};
use crate::agents::write_new_agent;

pub(super) fn table(tables: &Tables) -> anyhow::Result<Table> {
    let catalog = tables.handle()?.agent_catalog();
    let off = tables.fresh_settings().map(|it| denied(&it)).unwrap_or_default();
    let mut rows = Vec::new();
    for agent in catalog.active.iter().filter(|it| !builtin::is_hidden(&it.definition)) {
        let name = &agent.definition.name.value;
        rows.push(row(&agent.definition, &catalog.problems, off.iter().any(|it| it == name)));
    }
    for failed in &catalog.failed {
        let name = failed.path.file_stem().map(|it| it.to_string_lossy().into_owned());
        let place = placed(&failed.path, failed.line);
        let text = format!("{}\n{place}: {}", failed.path.display(), failed.reason);
        let row = TableRow {
            cells: vec![failed.source.to_string(), "✗".to_owned()],
            hint: format!("{place}: {}", one_line(&failed.reason)),
            tone: Tone::Bad,
            file: Some(file_line(&failed.path, failed.line.unwrap_or(1))),
            ..TableRow::new(failed.path.display().to_string(), name.unwrap_or_default())
        };
        rows.push(row.with_detail(&text));
    }
    for agent in catalog.shadowed.iter().filter(|it| !builtin::is_hidden(&it.definition)) {
        let definition = &agent.definition;
        let by = agent.by.path.display();
        let shadowed = row(definition, &[], false);
        let text = format!("{} goes before it\n\n{}", by, fields(definition));
        let hint = format!("{by} goes before it");
        let id = format!("shadowed {}", definition.origin.path.display());
        rows.push(TableRow { id, hint, tone: Tone::Faint, ..shadowed }.with_detail(&text));
    }
    let broken = match catalog.failed.len() {
        0 => String::new(),
        count => format!(", {count} broken"),
    };
    let title = format!("Agents · {}{broken}", catalog.active.len());
    Ok(Table::new(TableOf::Agents, title, rows))
}

/// The types that rules deny by name, as `x` writes them.
fn denied(settings: &Settings) -> Vec<String> {
    let rules = settings.permissions().deny.iter();
    let name = |form: &RuleForm| match form {
        RuleForm::Text(text) => {
            Some(text.trim().strip_prefix("Agent(")?.strip_suffix(')')?.to_owned())
        }
        RuleForm::Object(_) => None,
    };
    rules.filter_map(|rule| name(&rule.form)).collect()
}

fn row(definition: &AgentDefinition, problems: &[Problem], is_off: bool) -> TableRow {
    let own: Vec<&Problem> =
        problems.iter().filter(|it| it.path == definition.origin.path).collect();
    let model = definition.model.as_ref().map_or("inherit", |model| model.as_str());
    let tools = definition.tools.as_ref().filter(|_| !definition.has_all_tools());
    let tools = tools.map_or("all tools".to_owned(), |tools| tools.join(", "));
    let mut text = String::new();
    // Writing to a string cannot fail.
    if is_off {
        let _ = writeln!(text, "off: a rule denies Agent({})", definition.name.value);
    }
    for problem in &own {
        let _ = writeln!(text, "! {problem}");
    }
    text.push_str(&fields(definition));
    let tone = match (is_off, own.is_empty()) {
        (true, _) => Tone::Faint,
        (false, false) => Tone::Notable,
        (false, true) => Tone::Plain,
    };
    let cells = vec![definition.origin.source.to_string(), model.to_owned(), tools];
    let hint = if is_off { "off".to_owned() } else { one_line(&definition.description) };
    let file = file_of(definition);
    // Files of plugins and administrators are theirs.
    let is_own = matches!(definition.origin.source, AgentSource::Project | AgentSource::User);
    let value = file.as_ref().filter(|_| is_own).map(|it| it.path.clone()).unwrap_or_default();
    let name = definition.name.value.clone();
    TableRow { cells, hint, tone, file, value, ..TableRow::new(name.clone(), name) }
        .with_detail(&text)
}

/// The file of a definition, if it has one.
fn file_of(definition: &AgentDefinition) -> Option<FileLine> {
    let path = &definition.origin.path;
    let is_file = definition.origin.source != AgentSource::BuiltIn && path.is_file();
    is_file.then(|| file_line(path, definition.name.line))
}

/// The fields of a definition, each with its file and line.
fn fields(definition: &AgentDefinition) -> String {
    let path = &definition.origin.path;
    let mut text = String::new();
    for field in super::agent_fields::said(definition) {
        let place = placed(path, Some(field.line));
        let _ = writeln!(text, "{:<16} {}   ← {place}", field.name, one_line(&field.value));
    }
    let _ = write!(text, "\n{}", definition.prompt.value);
    text
}

/// Writes the file of a new agent.
pub(super) fn write_new(tables: &Tables, name: &str, is_own: bool) -> anyhow::Result<String> {
    let path = write_new_agent(&tables.surroundings, name, is_own)?;
    Ok(format!("wrote {}: enter changes it", path.display()))
}

/// Switches an agent off by a rule of the person's own for this project, or takes that rule back.
pub(super) fn switch(tables: &Tables, name: &str, is_on: bool) -> anyhow::Result<String> {
    let rule = format!("Agent({name})");
    let file = tables.settings_file(Level::Local)?;
    let place = file.path().display().to_string();
    if !is_on {
        settings::add_rule(&file, RuleList::Deny, &rule)?;
        return Ok(format!("{name} is off: deny {rule} → {place}"));
    }
    settings::remove_rules(&file, RuleList::Deny, std::slice::from_ref(&rule))?;
    let still = tables.fresh_settings().map(|it| denied(&it)).unwrap_or_default();
    anyhow::ensure!(
        !still.iter().any(|it| it == name),
        "another file denies {rule}: /permissions says which"
    );
    Ok(format!("{name} is on again"))
}
