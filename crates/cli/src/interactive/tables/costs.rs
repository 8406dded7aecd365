//! The spending of the session: by agent with all below it, and by model.

use std::collections::HashMap;
use std::fmt::Write as _;

use centurion_engine::{AgentSpending, Handle};
use centurion_protocol::AgentId;
use centurion_tui::{Table, TableOf, TableRow, Tone};

use super::{amount, one_line};

pub(super) fn table(handle: &Handle) -> Table {
    let agents = handle.spending();
    let total = handle.usage().total_cost();
    let known: HashMap<&AgentId, &AgentSpending> = agents.iter().map(|it| (&it.id, it)).collect();
    let is_top = |it: &&AgentSpending| it.parent.as_ref().is_none_or(|it| !known.contains_key(it));
    let of_agents: f64 = agents.iter().filter(is_top).map(|it| it.dollars).sum();
    let mut rows = vec![main_row(handle, total, of_agents)];
    let mut stack: Vec<(&AgentSpending, usize)> =
        agents.iter().filter(is_top).rev().map(|it| (it, 1)).collect();
    while let Some((agent, depth)) = stack.pop() {
        let below = agents.iter().filter(|it| it.parent.as_ref() == Some(&agent.id));
        rows.push(row(agent, depth, below.clone().map(|it| it.dollars).sum()));
        // A tree, by its own making; the bound holds whatever the records say.
        if rows.len() <= agents.len() {
            stack.extend(below.rev().map(|it| (it, depth + 1)));
        }
    }
    let left = handle.budget_left().map(|left| format!(" · ${left:.2} left"));
    let title = format!("Cost ${total:.4}{}", left.unwrap_or_default());
    Table::new(TableOf::Costs, title, rows)
}

fn main_row(handle: &Handle, total: f64, of_agents: f64) -> TableRow {
    let usage = handle.usage();
    let models = usage.by_model().values();
    let (read, cached) = models.fold((0, 0), |(all, cached), it| {
        let sent = it.input_tokens + it.cache_read_input_tokens + it.cache_creation_input_tokens;
        (all + sent + it.output_tokens, cached + it.cache_read_input_tokens)
    });
    let own = (total - of_agents).max(0.0);
    let cells = cells(total, own, read, cached);
    TableRow { cells, ..TableRow::new("", "main") }.with_detail(&handle.cost_text())
}

/// The columns: with all below it, itself, tokens, and how many of them came from the cache.
fn cells(with_below: f64, own: f64, tokens: u64, cached: u64) -> Vec<String> {
    let cached = if cached == 0 { String::new() } else { format!("{} cached", amount(cached)) };
    vec![format!("${with_below:.4}"), format!("own ${own:.4}"), amount(tokens), cached]
}

fn row(agent: &AgentSpending, depth: usize, below: f64) -> TableRow {
    let own = (agent.dollars - below).max(0.0);
    let mut text = format!(
        "{} with all below it: ${:.4}, {} tokens\nitself: ${own:.4}\nmodel {}",
        agent.name, agent.dollars, agent.tokens, agent.model
    );
    // Writing to a string cannot fail.
    if let Some(most) = agent.most_dollars {
        let left = (most - agent.dollars).max(0.0);
        let _ = write!(text, "\nof ${most:.2} that it may spend, ${left:.2} are left");
    }
    let _ = write!(text, "\nread from the provider's cache in its last run: {}", agent.cached);
    let tone = if agent.is_running { Tone::Good } else { Tone::Plain };
    let cells = cells(agent.dollars, own, agent.tokens, agent.cached);
    let hint = one_line(&agent.task);
    TableRow { cells, hint, depth, tone, ..TableRow::new(agent.id.to_string(), &*agent.name) }
        .with_detail(&text)
}
