//! The tools for what servers keep for reading.

use std::fmt::Write as _;
use std::sync::Arc;

use centurion_mcp::{CallError, CallOptions, Connection, ResourceContent, State};
use centurion_permissions::Access;
use centurion_tools::{Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

use super::{REQUIRED_PATIENCE, Servers, is_connected, reason_suffix};

pub(super) struct ListMcpResources(pub(super) Arc<Servers>);

/// Lists the resources that MCP servers keep for reading.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListInput {
    /// Only those of this server.
    server: Option<String>,
}

impl Tool for ListMcpResources {
    type Input = ListInput;

    const NAME: &'static str = "ListMcpResourcesTool";

    fn is_read_only(&self, _: &Self::Input) -> bool {
        true
    }

    fn access(&self, _: &Self::Input, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(&self, input: Self::Input, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let connections = match &input.server {
            Some(name) => {
                vec![self.0.reachable(name).map_err(|error| ToolError::failed(error.to_string()))?]
            }
            None => self.0.active().into_iter().filter(is_connected).collect(),
        };
        let mut text = String::new();
        let mut data = Vec::new();
        for connection in connections {
            let server = connection.name();
            for resource in connection.resources() {
                let about = resource.description.as_deref().unwrap_or(&resource.name);
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{server}: {} ({about})", resource.uri);
                data.push(json!({
                    "server": server,
                    "uri": resource.uri,
                    "name": resource.name,
                    "description": resource.description,
                    "mimeType": resource.mime_type,
                }));
            }
            for template in connection.resource_templates() {
                let about = template.description.as_deref().unwrap_or(&template.name);
                let _ = writeln!(text, "{server}: {} (a template: {about})", template.uri_template);
            }
        }
        if text.is_empty() {
            text.push_str("The servers keep no resources.");
        }
        Ok(ToolOutput::text(text.trim_end()).with_data(Value::Array(data)))
    }
}

pub(super) struct ReadMcpResource(pub(super) Arc<Servers>);

/// Reads a resource that an MCP server keeps.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadInput {
    server: String,
    /// As it was listed, or a template filled in.
    uri: String,
}

impl Tool for ReadMcpResource {
    type Input = ReadInput;

    const NAME: &'static str = "ReadMcpResourceTool";

    fn is_read_only(&self, _: &Self::Input) -> bool {
        true
    }

    fn access(&self, _: &Self::Input, _: &ToolContext) -> Access {
        Access::Session
    }

    async fn run(
        &self,
        input: Self::Input,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let connection = self
            .0
            .reachable(&input.server)
            .map_err(|error| ToolError::failed(error.to_string()))?;
        let options = CallOptions { cancel: context.cancel.clone(), ..CallOptions::default() };
        let contents =
            connection.read_resource(&input.uri, &options).await.map_err(|error| match error {
                CallError::Cancelled => ToolError::Cancelled { partial: None },
                other => ToolError::failed(other.to_string()),
            })?;
        Ok(ToolOutput::text(as_text(&connection, &contents).await))
    }
}

/// Renders resource contents for a model. Bytes go to files.
pub(super) async fn as_text(connection: &Connection, contents: &[ResourceContent]) -> String {
    let mut texts = Vec::with_capacity(contents.len());
    for content in contents {
        texts.push(match content {
            ResourceContent::Text { text, .. } => text.clone(),
            ResourceContent::Blob { uri, mime_type, data } => {
                connection.keep_bytes(uri, mime_type.as_deref(), data).await
            }
        });
    }
    texts.join("\n\n")
}

impl Servers {
    /// A server that cannot be done without: one that is being connected is waited for.
    pub(crate) async fn reach(&self, name: &str) -> Result<Connection, ReachError> {
        if let Some(connection) = self.active().into_iter().find(|it| it.name() == name) {
            connection.ready(REQUIRED_PATIENCE).await;
        }
        self.reachable(name)
    }

    /// A server that can be asked now; `Err` says why it cannot.
    pub(crate) fn reachable(&self, name: &str) -> Result<Connection, ReachError> {
        let active = self.active();
        let Some(connection) = active.iter().find(|it| it.name() == name) else {
            let known = active.iter().map(|it| it.name().to_owned()).collect();
            return Err(ReachError::Unknown { name: name.to_owned(), known });
        };
        match connection.state() {
            State::Connected => Ok(connection.clone()),
            state => Err(ReachError::NotConnected { name: name.to_owned(), state }),
        }
    }
}

/// The reason why a server cannot be asked, as models read it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ReachError {
    #[error("There is no server named {name}. The servers are: {}.", known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    #[error("The server {name} cannot be asked: it is {state}{}.", reason_suffix(state))]
    NotConnected { name: String, state: State },
}
