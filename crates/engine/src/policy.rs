//! Permissions of agents: the live rules, and the broker of questions where they do not decide.

pub(crate) mod broker;
pub(crate) mod permissions;
pub(crate) mod rule_text;
