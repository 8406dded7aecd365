//! The end of a session: `memory` in the settings. All of it is off unless it is switched on.

use serde_json::Value;

use super::merge::MergedValues;

/// The memory tasks at the end of a session, in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemorySettings {
    /// A note on the session.
    pub session: Option<MemoryTask>,
    /// Notes on what will help in later sessions.
    pub extraction: Option<MemoryTask>,
    /// Many notes become few, now and then.
    pub consolidation: Option<MemoryTask>,
}

/// One of these tasks, which a model does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryTask {
    /// The model; without one, the task has its usual one.
    pub model: Option<String>,
    /// The most that a task may cost, in dollars.
    pub max_budget: f64,
}

/// The most that a task may cost if the settings do not say.
const USUAL_BUDGET: f64 = 0.5;

impl MemorySettings {
    pub(super) fn new(merged: &MergedValues) -> Self {
        let task = |name: &str| {
            let path = |field: &str| format!("memory.{name}.{field}");
            let is_on = merged.bool(&path("enabled")).unwrap_or(false);
            let budget = merged.first(&path("maxBudgetUsd")).map(|it| &it.entry.value);
            is_on.then(|| MemoryTask {
                model: merged.text(&path("model")).map(|model| model.value),
                max_budget: budget.and_then(Value::as_f64).unwrap_or(USUAL_BUDGET),
            })
        };
        Self {
            session: task("session"),
            extraction: task("extraction"),
            consolidation: task("consolidation"),
        }
    }

    /// Whether nothing is done.
    pub fn is_off(&self) -> bool {
        *self == Self::default()
    }
}
