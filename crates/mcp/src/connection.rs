//! A handle to a server.

use std::sync::Arc;
use std::time::Duration;

use centurion_config::mcp::McpServer;
use centurion_tools::DynTool;
use rmcp::model::{
    GetPromptRequestParams, ReadResourceRequestParams, ResourceContents, Role, ServerResult,
};
use serde_json::{Map, Value};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::DropGuard;

use crate::bytes::Bytes;
use crate::call::{Call, CallError, CallOptions, CallOutput, Patience};
use crate::catalog::{
    Prompt, PromptMessage, PromptText, Resource, ResourceContent, ResourceTemplate, ServerInfo,
    ToolInfo,
};
use crate::link::Link;
use crate::name::tool_name;
use crate::tool::McpTool;
use crate::{State, auth, content};

/// A connection to a server, under the holder's name for the server.
///
/// Clones share the connection. A connection from [`crate::Pool::own`] is closed when its last clone is dropped; one
/// from [`crate::Pool::share`] belongs to the pool. Its tools do not keep it open.
#[derive(Clone)]
pub struct Connection {
    server: Arc<McpServer>,
    link: Arc<Link>,
    /// Dropping the last of these closes the connection. `None` for a shared one.
    lease: Option<Arc<DropGuard>>,
}

impl Connection {
    pub(crate) fn new(server: McpServer, link: Arc<Link>, lease: Option<DropGuard>) -> Self {
        Self { server: Arc::new(server), link, lease: lease.map(Arc::new) }
    }

    pub fn name(&self) -> &str {
        &self.server.name
    }

    pub fn server(&self) -> &McpServer {
        &self.server
    }

    pub fn state(&self) -> State {
        self.link.seen().state.clone()
    }

    /// Waits until the connection is open or has failed, for this long at most.
    pub async fn ready(&self, patience: Duration) -> State {
        self.link.ready(patience).await
    }

    /// The identity that the server reports.
    pub fn server_info(&self) -> Option<ServerInfo> {
        self.link.seen().info.clone()
    }

    /// The server's instructions for models; at most two kilobytes.
    pub fn instructions(&self) -> Option<String> {
        self.link.seen().instructions.clone()
    }

    /// Counts every change of the state and of the offers.
    pub fn generation(&self) -> u64 {
        *self.link.generation().borrow()
    }

    /// The same count, as a channel to wait on.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.link.generation()
    }

    /// The server's tools, by name.
    pub fn tools(&self) -> Vec<Arc<dyn DynTool>> {
        let catalog = Arc::clone(&self.link.seen().catalog);
        let tool = |entry| -> Arc<dyn DynTool> {
            Arc::new(McpTool::new(&self.server, Arc::clone(entry), &self.link))
        };
        catalog.tools.iter().map(tool).collect()
    }

    /// The other facts about the tools, in the same order.
    pub fn tool_infos(&self) -> Vec<ToolInfo> {
        let catalog = Arc::clone(&self.link.seen().catalog);
        let info = |entry: &Arc<crate::catalog::ToolEntry>| ToolInfo {
            name: tool_name(&self.server.name, &entry.name),
            tool: entry.name.clone(),
            title: entry.title.clone(),
            annotations: entry.annotations.clone(),
            only_reads: entry.only_reads,
            always_load: entry.always_load,
            requires_user_interaction: entry.requires_user_interaction,
        };
        catalog.tools.iter().map(info).collect()
    }

    pub fn prompts(&self) -> Vec<Prompt> {
        self.link.seen().catalog.prompts.clone()
    }

    pub fn resources(&self) -> Vec<Resource> {
        self.link.seen().catalog.resources.clone()
    }

    pub fn resource_templates(&self) -> Vec<ResourceTemplate> {
        self.link.seen().catalog.templates.clone()
    }

    /// Problems for a person: the reason that the server cannot be used, and the offers that were left out.
    pub fn problems(&self) -> Vec<String> {
        let seen = self.link.seen();
        let state = seen.state.reason().map(str::to_owned);
        state.into_iter().chain(seen.catalog.problems().cloned()).collect()
    }

    /// Fetches a prompt with its arguments filled in.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        options: &CallOptions,
    ) -> Result<PromptText, CallError> {
        let mut params = GetPromptRequestParams::new(name);
        params.arguments = (!arguments.is_empty()).then_some(arguments);
        match self.ask(params, options).await? {
            ServerResult::GetPromptResult(result) => Ok(PromptText {
                description: result.description,
                messages: result
                    .messages
                    .iter()
                    .map(|message| PromptMessage {
                        from_assistant: matches!(message.role, Role::Assistant),
                        content: content::of_block(&message.content),
                    })
                    .collect(),
            }),
            _ => Err(CallError::Unexpected { server: self.server.name.clone() }),
        }
    }

    /// Reads a resource.
    pub async fn read_resource(
        &self,
        uri: &str,
        options: &CallOptions,
    ) -> Result<Vec<ResourceContent>, CallError> {
        match self.ask(ReadResourceRequestParams::new(uri), options).await? {
            ServerResult::ReadResourceResult(result) => {
                Ok(result.contents.into_iter().filter_map(resource_content).collect())
            }
            _ => Err(CallError::Unexpected { server: self.server.name.clone() }),
        }
    }

    /// Keeps bytes of a resource in a file, and gives the words that stand for them.
    pub async fn keep_bytes(&self, uri: &str, mime_type: Option<&str>, data: &str) -> String {
        let media_type = mime_type.unwrap_or("application/octet-stream").to_owned();
        let bytes = Bytes { what: format!("resource {uri}"), media_type, data: data.to_owned() };
        bytes.keep(&self.link.settings.output_dir).await
    }

    /// Calls a tool by the server's own name for it, without limits on the result: for hooks and for tools that answer
    /// permission questions.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        options: &CallOptions,
    ) -> Result<CallOutput, CallError> {
        call(&self.link, &self.server, tool, arguments, options).await
    }

    async fn ask(
        &self,
        question: impl crate::call::Question,
        options: &CallOptions,
    ) -> Result<ServerResult, CallError> {
        let live = self.link.live(&self.server.name).await?;
        let patience = patience(&self.link, &self.server);
        Call { server: &self.server.name, live: &live, options, patience }.converse(question).await
    }

    /// Closes the connection and opens it again, with a new process; returns the new state.
    pub async fn reconnect(&self) -> State {
        let (tell, told) = oneshot::channel();
        if self.link.wishes.send(tell).await.is_err() {
            return State::Closed;
        }
        told.await.unwrap_or_else(|_| self.state())
    }

    /// Whether it belongs to its owner alone, and ends with the owner.
    pub fn is_own(&self) -> bool {
        self.lease.is_some()
    }

    /// Closes the connection for all holders, and waits until nothing of it is left. Does not close a shared one: its
    /// pool does that.
    pub async fn close(&self) {
        if self.lease.is_some() {
            self.link.closing.cancel();
            self.link.closed.cancelled().await;
        }
    }
}

/// Calls a tool of a server.
pub(crate) async fn call(
    link: &Link,
    server: &McpServer,
    tool: &str,
    arguments: Map<String, Value>,
    options: &CallOptions,
) -> Result<CallOutput, CallError> {
    let live = tokio::select! {
        live = link.live(&server.name) => live?,
        () = options.cancel.cancelled() => return Err(CallError::Cancelled),
    };
    let patience = patience(link, server);
    let mut result =
        Call { server: &server.name, live: &live, options, patience }.tool(tool, arguments).await;
    if let Err(CallError::NeedsAuth { reason, scope, .. }) = &mut result {
        let state = auth::needs_login(&link.settings, server, reason, scope.clone());
        // The caller is also told how to log in.
        if let Some(told) = state.reason() {
            told.clone_into(reason);
        }
        link.change(|seen| seen.state = state);
    }
    result
}

fn patience(link: &Link, server: &McpServer) -> Patience {
    let limits = &link.settings.limits;
    Patience { total: server.timeout.unwrap_or(limits.call), silence: limits.idle(link.is_remote) }
}

fn resource_content(content: ResourceContents) -> Option<ResourceContent> {
    match content {
        ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
            Some(ResourceContent::Text { uri, mime_type, text })
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            Some(ResourceContent::Blob { uri, mime_type, data: blob })
        }
        _ => None,
    }
}
