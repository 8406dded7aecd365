//! The usage of the session by model: a fold over the answers that were recorded.

use centurion_model::ModelInfo;
use centurion_protocol::Usage;
use centurion_protocol::sdk::ModelUsage;
use indexmap::IndexMap;

/// Running totals over all agents of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct UsageTotals {
    by_model: IndexMap<String, ModelUsage>,
}

impl UsageTotals {
    /// Adds one answer; returns what it cost.
    pub(crate) fn add(&mut self, model: &str, info: &ModelInfo, usage: &Usage) -> f64 {
        let cost = info.cost(usage);
        let entry = self.by_model.entry(model.to_owned()).or_default();
        entry.input_tokens += usage.input_tokens;
        entry.output_tokens += usage.output_tokens;
        entry.cache_read_input_tokens += usage.cache_read_input_tokens;
        entry.cache_creation_input_tokens += usage.cache_creation_input_tokens;
        entry.cost_usd += cost;
        entry.context_window = info.context_window;
        entry.max_output_tokens = u64::from(info.max_output);
        cost
    }

    pub(crate) fn by_model(&self) -> &IndexMap<String, ModelUsage> {
        &self.by_model
    }

    pub(crate) fn total_cost(&self) -> f64 {
        self.by_model.values().fold(0.0, |total, usage| total + usage.cost_usd)
    }
}
