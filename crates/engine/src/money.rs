//! What agents consume: budgets, usage and its price.

pub(crate) mod budget;
pub(crate) mod usage;
