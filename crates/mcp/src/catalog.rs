//! The offers of a server, read once and kept until the server reports a change.

mod listing;

use std::sync::Arc;

use centurion_protocol::ToolResultContent;
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use listing::{ListKind, list};

/// The identity that a server reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerInfo {
    pub name: String,
    pub version: String,
    /// The protocol revision in use.
    pub protocol: String,
}

/// The facts about a tool besides the specification for the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInfo {
    /// `mcp__<server>__<tool>`.
    pub name: String,
    /// The server's own name for it.
    pub tool: String,
    pub title: Option<String>,
    /// The server's hints, unchanged; an empty object where there are none.
    pub annotations: Value,
    /// The server's own claim that the tool changes nothing.
    pub only_reads: bool,
    /// Whether the tool is offered from the start, however many tools there are.
    pub always_load: bool,
    /// Whether a person must approve every call, whatever the rules allow.
    pub requires_user_interaction: bool,
}

/// A prompt that a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub arguments: Vec<PromptArgument>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    pub name: String,
    pub description: Option<String>,
    pub required: bool,
}

/// A prompt with its arguments filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptText {
    pub description: Option<String>,
    pub messages: Vec<PromptMessage>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptMessage {
    /// Whether the text counts as the model's own.
    pub from_assistant: bool,
    pub content: ToolResultContent,
}

/// A resource that a server offers for reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    pub uri: String,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub mime_type: Option<String>,
}

/// A pattern of URIs that a server can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceTemplate {
    pub uri_template: String,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub mime_type: Option<String>,
}

/// The content of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceContent {
    Text {
        uri: String,
        mime_type: Option<String>,
        text: String,
    },
    /// `data` is base64.
    Blob {
        uri: String,
        mime_type: Option<String>,
        data: String,
    },
}

/// A tool as its server declares it, usable under any server name.
#[derive(Debug)]
pub(crate) struct ToolEntry {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    pub(crate) input_schema: Box<RawValue>,
    pub(crate) annotations: Value,
    pub(crate) only_reads: bool,
    pub(crate) always_load: bool,
    pub(crate) requires_user_interaction: bool,
    /// The most characters of a result, where the tool asks for its own limit.
    pub(crate) most_characters: Option<usize>,
}

/// All offers of a server, in an order that does not depend on the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) tools: Vec<Arc<ToolEntry>>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) templates: Vec<ResourceTemplate>,
    tool_problems: Vec<String>,
    prompt_problems: Vec<String>,
    resource_problems: Vec<String>,
}

impl Catalog {
    /// The missing offers, with the reasons.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &String> {
        [&self.tool_problems, &self.prompt_problems, &self.resource_problems].into_iter().flatten()
    }
}
