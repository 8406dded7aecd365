//! One turn of an agent: requests, calls, hooks, and what is recorded of them.

mod bounded;
pub(crate) mod commands;
pub(crate) mod context_usage;
pub(crate) mod dispatch;
pub(crate) mod driver;
pub(crate) mod elicitation;
pub(crate) mod hooks;
pub(crate) mod internal_fork;
mod mention;
pub(crate) mod message_breakdown;
pub(crate) mod model_switch;
mod refusal;
pub(crate) mod skill;
pub(crate) mod typed_command;
