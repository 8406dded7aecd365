//! The hooks that are in force, in the order in which they run.

use std::fmt::Write as _;

use centurion_engine::Handle;
use centurion_hooks::ListedHook;
use centurion_tui::{Table, TableOf, TableRow};

use super::{file_line, one_line, placed};

pub(super) fn table(handle: &Handle) -> Table {
    let hooks = handle.hooks();
    let rows = hooks.iter().enumerate().map(|(at, hook)| row(at, hook)).collect();
    Table::new(TableOf::Hooks, format!("Hooks · {}", hooks.len()), rows)
}

fn row(at: usize, hook: &ListedHook) -> TableRow {
    let handler = &hook.handler;
    let origin = &handler.origin;
    let label = one_line(&handler.action.label());
    let matcher = if hook.matcher.is_empty() { "*" } else { &hook.matcher };
    let mut text = format!(
        "{} · {matcher} · {}\n{}\n",
        hook.event.name(),
        handler.action.handler_type(),
        handler.action.label()
    );
    // Writing to a string cannot fail.
    if let Some(timeout) = handler.timeout {
        let _ = writeln!(text, "at most {} s", timeout.as_secs_f64());
    }
    if let Some(file) = &origin.file {
        let line = origin.line.map(|line| format!(":{line}")).unwrap_or_default();
        let _ = writeln!(text, "from {}{line}", file.display());
    }
    let file = origin.file.as_ref().map(|file| file_line(file, origin.line.unwrap_or(1)));
    let place = origin.file.as_ref().map(|file| placed(file, origin.line));
    let hint = format!("{label}   ← {}", place.unwrap_or_else(|| "the host".to_owned()));
    let cells = vec![matcher.to_owned(), handler.action.handler_type().to_string()];
    TableRow { cells, hint, file, ..TableRow::new(at.to_string(), hook.event.name()) }
        .with_detail(&text)
}
