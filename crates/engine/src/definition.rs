//! The description of an agent: definitions, the rules of the user about agents, and their combined meaning.
//!
//! Plain values and how they are read. Nothing here runs.

pub mod builtin;
pub(crate) mod bypass;
pub(crate) mod context_rules;
pub(crate) mod definitions;
pub(crate) mod environment;
pub(crate) mod identity;
pub(crate) mod limits;
pub(crate) mod model_check;
pub(crate) mod prompt;
pub(crate) mod request_settings;
pub(crate) mod resolve;
pub(crate) mod rules;
pub(crate) mod spec;
