//! The windows: that of the main agent by its parts, and how full those of the other agents are.

use std::fmt::Write as _;

use centurion_engine::{AgentSpending, ContextUsage, Handle};
use centurion_tui::{Table, TableOf, TableRow, Tone};

use super::{amount, one_line};

/// The cells of a bar.
const BAR: u64 = 20;
/// The share of a window from which on it is worth a look.
const NEARLY_FULL: u64 = 80;

pub(super) fn table(handle: &Handle) -> Table {
    let usage = handle.context_usage();
    let used: u64 = usage.parts.iter().map(|part| part.tokens).sum();
    let mut rows = vec![window_row("", "main", &usage.model, used, usage.window)];
    if let Some(main) = rows.first_mut() {
        *main = main.clone().with_detail(&by_part(&usage, used));
    }
    for agent in handle.spending() {
        let AgentSpending { id, name, task, model, context, window, is_running, .. } = agent;
        let row = window_row(id.as_str(), &name, &model, context, window);
        let tone = match row.tone {
            Tone::Plain if is_running => Tone::Good,
            tone => tone,
        };
        let text = format!(
            "{name}: its last request and answer had {context} of {window} tokens\nmodel {model}"
        );
        let hint = one_line(&task);
        rows.push(TableRow { tone, hint, depth: 1, ..row }.with_detail(&text));
    }
    let title = format!("Context · {} of {} tokens", amount(used), amount(usage.window));
    Table::new(TableOf::Contexts, title, rows)
}

fn share(tokens: u64, window: u64) -> u64 {
    tokens * 100 / window.max(1)
}

fn bar(tokens: u64, window: u64) -> String {
    let full = (tokens * BAR).div_ceil(window.max(1)).min(BAR);
    let cells = |count: u64, cell: &str| cell.repeat(usize::try_from(count).unwrap_or_default());
    format!("{}{}", cells(full, "█"), cells(BAR - full, "░"))
}

fn window_row(id: &str, name: &str, model: &str, tokens: u64, window: u64) -> TableRow {
    let share = share(tokens, window);
    let cells = vec![
        format!("{share} %"),
        bar(tokens, window),
        format!("{} of {}", amount(tokens), amount(window)),
    ];
    let tone = if share >= NEARLY_FULL { Tone::Notable } else { Tone::Plain };
    TableRow { cells, tone, hint: model.to_owned(), ..TableRow::new(id, name) }
}

fn by_part(usage: &ContextUsage, used: u64) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let mut line = |name: &str, tokens: u64| {
        let (bar, share) = (bar(tokens, usage.window), share(tokens, usage.window));
        let _ = writeln!(text, "{name:<18} {:>8}  {share:>3} %  {bar}", amount(tokens));
    };
    for part in &usage.parts {
        line(part.name, part.tokens);
    }
    line("free", usage.window.saturating_sub(used));
    if let Some(from) = usage.compacted_from {
        let _ = writeln!(text, "compacted from {} tokens on", amount(from));
    }
    if !usage.memory.is_empty() {
        let _ = writeln!(text, "\nInstruction files:");
    }
    for file in &usage.memory {
        let _ =
            writeln!(text, "  {:>7}  {} ({})", amount(file.tokens), file.path.display(), file.kind);
    }
    let mut tools = usage.tools.clone();
    tools.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
    if !tools.is_empty() {
        let _ = writeln!(text, "\nTools:");
    }
    for (name, tokens) in tools {
        let _ = writeln!(text, "  {:>7}  {name}", amount(tokens));
    }
    text
}
