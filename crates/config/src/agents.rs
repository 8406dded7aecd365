//! Definitions of agents: reading them from Markdown and JSON, finding them in all the places where
//! people and plugins keep them, and saying which of those with the same name counts.
//!
//! Nothing here runs an agent, and nothing decides what an agent may do.

mod catalog;
mod definition;
mod edit;
mod json;
mod markdown;
mod name;
mod place;
mod reading;
mod sources;
#[cfg(test)]
mod tests;

pub use catalog::{ActiveAgent, AgentCatalog, AgentLoader, ShadowedAgent, watched_directories};
pub(crate) use catalog::{commands_of_text, directory_power};
pub use definition::{
    AgentDefinition, AgentEffort, AgentModel, AgentOrigin, AgentSource, Color, Isolation,
    MemoryScope, PERMISSION_MODES,
};
pub use edit::{FieldError, PROMPT_FIELD, change_field, change_field_in};
pub use json::{AgentsFlagError, JsonAgentError, JsonAgents, read_agents_flag, read_json_agent};
pub(crate) use markdown::trimmed;
pub use markdown::{
    AGENT_GRAMMAR, AgentFileError, AgentScope, FailedAgent, read_markdown, write_markdown,
};
pub use name::{
    NameError, READ_ONLY_NAMES, check_characters, check_name, check_skill_name, directory_name,
    folded, is_read_only_name,
};
pub(crate) use place::is_plugin;
pub use place::{ReadPlace, read_place};
pub(crate) use reading::effort;
pub use reading::{AGENT_KEYS, ReadAgent, Vocabulary};
pub(crate) use sources::PROJECT_DIRS;
pub use sources::{AgentSources, BuiltInAgent, PluginAgents, ProjectFolders};
