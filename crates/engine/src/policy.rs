//! Permissions of agents: the live rules, and the broker of questions where they do not decide; the names of tools that
//! a host redirects.

pub(crate) mod broker;
pub(crate) mod permissions;
pub(crate) mod rule_text;
pub(crate) mod tool_aliases;
