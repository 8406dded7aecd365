//! What a server offers, read once and kept until the server says that it changed.

mod listing;

use std::sync::Arc;

use centurion_protocol::ToolResultContent;
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use listing::{Part, list};

/// Who a server says that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerInfo {
    pub name: String,
    pub version: String,
    /// The revision of the protocol that is spoken.
    pub protocol: String,
}

/// What is known of a tool besides how a model calls it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInfo {
    /// `mcp__<server>__<tool>`.
    pub name: String,
    /// As the server calls it.
    pub tool: String,
    pub title: Option<String>,
    /// The server's hints as it gave them; an empty object where there are none.
    pub annotations: Value,
    /// The server's own word that the tool changes nothing.
    pub only_reads: bool,
    /// Whether the tool is to be offered from the start, however many tools there are.
    pub always_load: bool,
    /// Whether a person must agree to every call, whatever the rules say.
    pub requires_user_interaction: bool,
}

/// A prompt that a server has ready.
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
    /// Whether the model is to think that it said this itself.
    pub from_assistant: bool,
    pub content: ToolResultContent,
}

/// Something that a server lets others read.
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

/// A tool as its server declares it, ready to be offered under any server name.
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
    /// How many characters a result may have, where the tool asks for a bound of its own.
    pub(crate) most_characters: Option<usize>,
}

/// Everything that a server offers, in an order that does not depend on the server.
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
    /// What is missing here and why.
    pub(crate) fn problems(&self) -> impl Iterator<Item = &String> {
        [&self.tool_problems, &self.prompt_problems, &self.resource_problems].into_iter().flatten()
    }
}
