//! A tool of a server, as one of an agent's tools.

use std::sync::Arc;

use centurion_config::mcp::McpServer;
use centurion_permissions::Access;
use centurion_protocol::ToolSpec;
use centurion_tools::{DynTool, PreparedCall, RunFuture, ToolContext, ToolError, ToolOutput};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::call::{CallError, CallOptions};
use crate::catalog::ToolEntry;
use crate::link::Link;
use crate::name::tool_name;
use crate::progress::Heartbeat;
use crate::{connection, content, output};

/// The tool under its full name. It does not keep its connection open.
pub(crate) struct McpTool {
    name: String,
    server: Arc<McpServer>,
    entry: Arc<ToolEntry>,
    link: Arc<Link>,
}

impl McpTool {
    pub(crate) fn new(server: &Arc<McpServer>, entry: Arc<ToolEntry>, link: &Arc<Link>) -> Self {
        Self {
            name: tool_name(&server.name, &entry.name),
            server: Arc::clone(server),
            entry,
            link: Arc::clone(link),
        }
    }
}

impl DynTool for McpTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.clone(),
            description: self.entry.description.clone(),
            input_schema: self.entry.input_schema.clone(),
        }
    }

    /// Only the server can validate the fields.
    fn prepare(&self, input: &RawValue) -> Result<Box<dyn PreparedCall>, ToolError> {
        let arguments = serde_json::from_str(input.get()).map_err(|_| {
            ToolError::Input(format!("{} takes a JSON object of arguments", self.name))
        })?;
        Ok(Box::new(McpCall {
            name: self.name.clone(),
            server: Arc::clone(&self.server),
            entry: Arc::clone(&self.entry),
            link: Arc::clone(&self.link),
            arguments,
        }))
    }
}

struct McpCall {
    name: String,
    server: Arc<McpServer>,
    entry: Arc<ToolEntry>,
    link: Arc<Link>,
    arguments: Map<String, Value>,
}

impl PreparedCall for McpCall {
    fn is_read_only(&self) -> bool {
        self.entry.only_reads
    }

    fn access(&self, _: &ToolContext) -> Access {
        Access::External { only_reads: self.entry.only_reads }
    }

    fn run(self: Box<Self>, context: &ToolContext) -> RunFuture<'_> {
        Box::pin(async move { self.call(context).await })
    }
}

impl McpCall {
    async fn call(self, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let call = context.call.as_str();
        let mut meta = Map::new();
        meta.insert("claudecode/toolUseId".to_owned(), json!(call));
        let heartbeat = Heartbeat::default();
        let (host, id, tool) =
            (Arc::clone(&context.workspace.host), context.call.clone(), self.name.clone());
        let on_progress = move |_| {
            if let Some(elapsed) = heartbeat.beat() {
                host.call_progressed(&id, &tool, elapsed);
            }
        };
        let options = CallOptions {
            meta,
            cancel: context.cancel.clone(),
            on_progress: Some(Arc::new(on_progress)),
        };
        let Self { name, server, entry, link, arguments } = self;
        let result = connection::call(&link, &server, &entry.name, arguments, &options)
            .await
            .map_err(|error| match error {
                CallError::Cancelled => ToolError::Cancelled { partial: None },
                error => ToolError::Failed(error.to_string()),
            })?;
        let settings = &link.settings;
        let most = settings.limits.characters(entry.most_characters);
        let file = format!("{name}-{call}");
        let mut kept = Vec::with_capacity(result.parts.len());
        for part in result.parts {
            kept.push(part.kept(&settings.output_dir).await);
        }
        let parts = output::bound(kept, most, &settings.output_dir, &file).await;
        let data = serde_json::to_value(&parts).unwrap_or_default();
        if result.is_error {
            let message = content::text(&parts);
            let message = if message.is_empty() {
                format!("{name} failed and did not say why")
            } else {
                message
            };
            return Err(ToolError::FailedWith { message, data });
        }
        Ok(ToolOutput { content: parts, data })
    }
}
