//! Spending of agents: budgets, usage and its price.

pub(crate) mod budget;
pub(crate) mod usage;
