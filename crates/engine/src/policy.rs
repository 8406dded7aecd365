//! What agents may do: the live rules, and who is asked where they say nothing.

pub(crate) mod broker;
pub(crate) mod permissions;
pub(crate) mod rule_text;
