//! Requests beside the main agent's conversation that begin with all of it.

use std::sync::Arc;

use centurion_model::Patience;

use crate::agent::fork_point::ForkPoint;
use crate::agent::shared::Shared;
use crate::turn::internal_fork::InternalFork;

/// A question behind what the main agent has sent.
pub(super) fn beside(
    shared: &Shared,
    point: &ForkPoint,
    purpose: &'static str,
    question: String,
) -> InternalFork {
    InternalFork {
        purpose,
        model: point.settings.model.clone(),
        effort: point.settings.effort,
        thinking: point.settings.thinking,
        prefix: point.prefix.clone(),
        question,
        // As the conversation's own requests: with another bound on thinking, a provider reads nothing from its cache.
        max_tokens: u32::MAX,
        agent: None,
        parent_agent: None,
        journal: point.journal.clone(),
        cached_tokens: point.cached.map_or(0, |cached| cached.tokens),
        receipt: None,
        budget: Arc::clone(&shared.budget),
        ceiling: None,
        // An answer that comes late is worth little.
        patience: Patience::Brief,
    }
}
