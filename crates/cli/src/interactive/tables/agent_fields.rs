//! The fields of one agent's file, and changes of them.

use std::path::Path;

use anyhow::Context as _;
use centurion_config::Located;
use centurion_config::agents::{
    AGENT_KEYS, AgentDefinition, AgentScope, AgentSource, PROMPT_FIELD, Vocabulary,
    change_field_in, read_markdown,
};
use centurion_protocol::bounded;
use centurion_tui::{Table, TableOf, TableRow, Tone};

use super::{file_line, one_line};

/// The largest file that is read.
const LARGEST: u64 = 4 * 1024 * 1024;

/// A field that a definition has.
pub(super) struct SaidField {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) line: usize,
}

/// The fields that a definition has, in their usual order.
pub(super) fn said(definition: &AgentDefinition) -> Vec<SaidField> {
    let names =
        |it: &Option<Located<Vec<String>>>| it.as_ref().map(|it| (it.value.join(", "), it.line));
    let json = |it: &Option<Located<serde_json::Value>>| {
        it.as_ref().map(|it| (it.value.to_string(), it.line))
    };
    let text = |it: &Option<Located<String>>| it.as_ref().map(|it| (it.value.clone(), it.line));
    let d = definition;
    let flag = |it: &Option<Located<bool>>| it.as_ref().map(|it| (it.value.to_string(), it.line));
    let all = [
        ("name", Some((d.name.value.clone(), d.name.line))),
        ("description", Some((d.description.value.clone(), d.description.line))),
        ("tools", names(&d.tools)),
        ("disallowedTools", names(&d.disallowed_tools)),
        ("model", d.model.as_ref().map(|it| (it.as_str().to_owned(), it.line))),
        ("effort", d.effort.as_ref().map(|it| (it.value.to_string(), it.line))),
        ("permissionMode", text(&d.permission_mode)),
        ("mcpServers", json(&d.mcp_servers)),
        ("requiredMcpServers", names(&d.required_mcp_servers)),
        ("hooks", json(&d.hooks)),
        ("skills", names(&d.skills)),
        ("maxTurns", d.max_turns.as_ref().map(|it| (it.value.to_string(), it.line))),
        ("background", flag(&d.background)),
        ("isolation", d.isolation.as_ref().map(|it| (it.as_str().to_owned(), it.line))),
        ("memory", d.memory.as_ref().map(|it| (it.as_str().to_owned(), it.line))),
        ("color", d.color.as_ref().map(|it| (it.as_str().to_owned(), it.line))),
        ("initialPrompt", text(&d.initial_prompt)),
        ("forkContext", flag(&d.fork_context)),
        ("omitClaudeMd", flag(&d.omit_claude_md)),
        ("criticalSystemReminder_EXPERIMENTAL", text(&d.critical_reminder)),
    ];
    let field = |(name, found): (&'static str, Option<(String, usize)>)| {
        found.map(|(value, line)| SaidField { name, value, line })
    };
    all.into_iter().filter_map(field).collect()
}

/// Words about fields that say little by their name.
fn about(field: &str) -> &'static str {
    match field {
        "description" => "when to use it: what the model reads to choose",
        "tools" => "the only tools that it has; without it all",
        "disallowedTools" => "tools that it does not have, whatever `tools` says",
        "model" => "sonnet, opus, haiku, fable, inherit or a full name",
        "effort" => "low, medium, high, xhigh, max or a number",
        "permissionMode" => "default, acceptEdits, plan, dontAsk, bubble, bypassPermissions",
        "mcpServers" => "servers of its own, as JSON",
        "requiredMcpServers" => "servers without which it is not started",
        "hooks" => "hooks of its own, as JSON",
        "skills" => "skills that it knows from the start",
        "maxTurns" => "the most requests of a run",
        "background" => "true: no call waits for it",
        "isolation" => "worktree: it works in a worktree of its own",
        "memory" => "user, project or local: notes that it keeps",
        "color" => "red, blue, green, yellow, purple, orange, pink, cyan",
        "initialPrompt" => "goes before the first turn of every run",
        "forkContext" => "true: it sees the conversation that it is started from",
        "omitClaudeMd" => "true: it goes without the instruction files",
        PROMPT_FIELD => "what it is told; e opens the whole file",
        _ => "",
    }
}

/// The place of an agent's file: what a person changes here is their own or the project's.
fn scope() -> AgentScope {
    AgentScope::Own(AgentSource::Project)
}

pub(super) fn table(path: &Path) -> anyhow::Result<Table> {
    let text = bounded::read_text_file(path, LARGEST)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    let text = text.replace("\r\n", "\n");
    let read = read_markdown(&text, path, &scope(), &Vocabulary::default())
        .map_err(|failed| anyhow::anyhow!("{}: e opens it in your editor", failed.reason))?
        .context("the file has no frontmatter: e opens it in your editor")?;
    let definition = &read.definition;
    let said = said(definition);
    let mut rows: Vec<TableRow> = Vec::new();
    for name in AGENT_KEYS {
        let field = said.iter().find(|it| it.name == *name);
        let value = field.map(|it| it.value.clone()).unwrap_or_default();
        let tone = if field.is_some() { Tone::Plain } else { Tone::Faint };
        let text = match (value.as_str(), about(name)) {
            ("", about) => about.to_owned(),
            (value, about) => format!("{value}\n\n{about}"),
        };
        let row = TableRow {
            hint: if field.is_some() { one_line(&value) } else { about(name).to_owned() },
            cells: vec![field.map(|it| format!(":{}", it.line)).unwrap_or_default()],
            tone,
            value,
            file: Some(file_line(path, field.map_or(1, |it| it.line))),
            ..TableRow::new(*name, *name)
        };
        rows.push(row.with_detail(&text));
    }
    let prompt = &definition.prompt;
    let row = TableRow {
        hint: one_line(&prompt.value),
        cells: vec![format!(":{}", prompt.line)],
        value: prompt.value.clone(),
        file: Some(file_line(path, prompt.line)),
        ..TableRow::new(PROMPT_FIELD, PROMPT_FIELD)
    };
    rows.push(row.with_detail(&prompt.value));
    let problems = match read.problems.len() {
        0 => String::new(),
        count => format!(" · {count} remarks: {}", read.problems[0]),
    };
    let title = format!("{} · {}{problems}", definition.name.value, path.display());
    Ok(Table::new(TableOf::AgentFields, title, rows))
}

/// Changes a field of a file, or takes it out.
pub(super) fn set(path: &Path, field: &str, text: Option<&str>) -> anyhow::Result<String> {
    let problems = change_field_in(path, field, text, &scope(), &Vocabulary::default())?;
    Ok(match problems.first() {
        None => format!("{field} is written; agents that start from now on have it"),
        Some(problem) => format!("{field} is written · {problem}"),
    })
}
