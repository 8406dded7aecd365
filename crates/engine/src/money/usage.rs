//! The usage of the session by model: a fold over the answers that were recorded.

use std::time::Duration;

use centurion_model::{ModelInfo, ProviderKind};
use centurion_protocol::ReportedUsage;
use centurion_protocol::sdk::ModelUsage;
use indexmap::IndexMap;
use tokio::time::Instant;

/// Running totals over all agents of a session.
#[derive(Clone, Debug)]
pub struct UsageTotals {
    by_model: IndexMap<String, ModelUsage>,
    /// The time when this process opened the session.
    pub began: Instant,
    /// The time that requests have taken, one after the other.
    pub api_time: Duration,
    /// Lines that file tools have written and taken out.
    pub lines_added: u64,
    pub lines_removed: u64,
}

impl Default for UsageTotals {
    fn default() -> Self {
        Self {
            by_model: IndexMap::new(),
            began: Instant::now(),
            api_time: Duration::ZERO,
            lines_added: 0,
            lines_removed: 0,
        }
    }
}

impl UsageTotals {
    /// Adds one answer; returns what it cost.
    pub(crate) fn add(
        &mut self,
        model: &str,
        info: &ModelInfo,
        kind: ProviderKind,
        reported: &ReportedUsage,
    ) -> f64 {
        let (cost, usage) = (info.cost_of(reported), &reported.counts);
        let entry = self.by_model.entry(model.to_owned()).or_default();
        let count = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        count(&mut entry.input_tokens, usage.input_tokens);
        count(&mut entry.output_tokens, usage.output_tokens);
        count(&mut entry.cache_read_input_tokens, usage.cache_read_input_tokens);
        count(&mut entry.cache_creation_input_tokens, usage.cache_creation_input_tokens);
        count(&mut entry.web_search_requests, reported.web_searches());
        let thinking = reported.number(["output_tokens_details", "thinking_tokens"]);
        count(&mut entry.thinking_tokens, thinking);
        let short = reported.number(["cache_creation", "ephemeral_5m_input_tokens"]);
        count(&mut entry.five_minute_writes, short);
        count(&mut entry.hour_writes, reported.hour_writes());
        entry.cost_usd += cost;
        entry.context_window = info.context_window;
        entry.max_output_tokens = u64::from(info.max_output);
        info.canonical_name().clone_into(&mut entry.canonical_model);
        provider_name(kind).clone_into(&mut entry.provider);
        let basis = if info.is_estimate { "unknown" } else { "list" };
        basis.clone_into(&mut entry.cost_basis);
        cost
    }

    /// Adds the lines that a call added and removed.
    pub(crate) fn add_lines(&mut self, (added, removed): (u64, u64)) {
        self.lines_added += added;
        self.lines_removed += removed;
    }

    pub fn by_model(&self) -> &IndexMap<String, ModelUsage> {
        &self.by_model
    }

    pub fn total_cost(&self) -> f64 {
        self.by_model.values().fold(0.0, |total, usage| total + usage.cost_usd)
    }
}

/// The name of a kind of provider for hosts, which know the Messages API as the first party.
fn provider_name(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::Anthropic => "firstParty",
        other => other.as_str(),
    }
}
