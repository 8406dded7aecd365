//! The MCP servers: their state, their tools, and where they are declared.

use std::fmt::Write as _;

use anyhow::Context as _;
use centurion_engine::Handle;
use centurion_mcp::{Connection, State};
use centurion_tui::{Table, TableOf, TableRow, Tone};

use super::{file_line, one_line, placed};

pub(super) fn table(handle: &Handle) -> Table {
    let mut rows: Vec<TableRow> =
        handle.servers().iter().map(|(connection, is_on)| row(connection, *is_on)).collect();
    for server in handle.withheld_servers() {
        let row = TableRow {
            cells: vec![server.status.to_owned()],
            hint: one_line(&server.reason),
            tone: Tone::Notable,
            ..TableRow::new(&*server.name, &*server.name)
        };
        rows.push(row.with_detail(&format!("not started: {}", server.reason)));
    }
    Table::new(TableOf::Servers, format!("MCP servers · {}", rows.len()), rows)
}

fn row(connection: &Connection, is_on: bool) -> TableRow {
    let state = connection.state();
    let (said, tone) = match (&state, is_on) {
        (_, false) => ("off".to_owned(), Tone::Faint),
        (State::Connected, true) => (state.to_string(), Tone::Good),
        _ if state.reason().is_some() => (state.to_string(), Tone::Bad),
        _ => (state.to_string(), Tone::Notable),
    };
    let tools = connection.tool_infos();
    let origin = &connection.server().origin;
    let mut text = String::new();
    // Writing to a string cannot fail.
    if let Some(why) = state.reason() {
        let _ = writeln!(text, "{why}");
    }
    if let Some(file) = &origin.file {
        let _ = writeln!(text, "from {}", placed_whole(file, origin.line));
    }
    for problem in connection.problems() {
        let _ = writeln!(text, "! {problem}");
    }
    for tool in &tools {
        let reads = if tool.only_reads { "  (says that it only reads)" } else { "" };
        let _ = writeln!(text, "  {}{reads}", tool.tool);
    }
    for prompt in connection.prompts() {
        let _ = writeln!(text, "  /mcp__{}__{}", connection.name(), prompt.name);
    }
    let cells = vec![said, format!("{} tools", tools.len())];
    let file = origin.file.as_ref().map(|file| file_line(file, origin.line.unwrap_or(1)));
    let declared = origin.file.as_ref().map(|file| placed(file, origin.line));
    let why = state.reason().map(one_line).unwrap_or_default();
    let hint = [why, declared.unwrap_or_default()];
    let hint = hint.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" · ");
    let name = connection.name();
    TableRow { cells, hint, tone, file, ..TableRow::new(name, name) }.with_detail(&text)
}

fn placed_whole(file: &std::path::Path, line: Option<usize>) -> String {
    let file = file.display();
    line.map_or_else(|| file.to_string(), |line| format!("{file}:{line}"))
}

/// Connects a server again.
pub(super) async fn connect(handle: &Handle, name: &str) -> anyhow::Result<String> {
    let found = handle.servers().into_iter().find(|(connection, _)| connection.name() == name);
    let (connection, _) = found.context("that server was not started: its row says why")?;
    Ok(match connection.reconnect().await {
        State::Connected => format!("{name} is connected"),
        state => format!("{name} is {state}: {}", state.reason().unwrap_or("no reason is known")),
    })
}

/// Switches a server on or off for this session.
pub(super) fn switch(handle: &Handle, name: &str, is_on: bool) -> anyhow::Result<String> {
    anyhow::ensure!(handle.switch_server(name, is_on), "that server was not started");
    Ok(format!("{name} is {} for this session", if is_on { "on" } else { "off" }))
}
