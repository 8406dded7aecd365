//! Answers of the server: its tools, and the results of calls.

use std::sync::Arc;
use std::time::Duration;

use centurion_engine::{Answerer, ToolReply, ToolServer, ToolUnavailable};
use centurion_protocol::ToolResultContent;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ResourceContents,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{ElicitationMode, Peer, RequestContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::value::to_raw_value;
use tokio_util::task::TaskTracker;

use super::agents::{Caller, ServedAgents};
use super::client::Client;
use super::request;
use crate::input::MOST_OPEN_REQUESTS;

const INSTRUCTIONS: &str = "The tools of Centurion, a coding agent runtime, in the directory it was started \
    in. Each call is subject to its permission rules; one that is not allowed says why. To hand over a whole \
    task instead of single steps, call `centurion` with a prompt.";

/// Tools and agents for the program that started this one.
pub(super) struct Server {
    tools: ToolServer,
    agents: ServedAgents,
    offered: Vec<Tool>,
    /// The calls that are under way.
    calls: TaskTracker,
}

impl Server {
    pub(super) fn new(tools: ToolServer, agents: ServedAgents) -> Self {
        let own = tools.specs().map(|spec| {
            let schema: JsonObject =
                serde_json::from_str(spec.input_schema.get()).unwrap_or_default();
            Tool::new(spec.name.clone(), spec.description.clone(), schema)
        });
        let agent = tools.is_allowed(request::TOOL).then(request::tool);
        let offered = own.chain(agent).collect();
        Self { tools, agents, offered, calls: TaskTracker::new() }
    }

    /// Waits until all calls have ended, for this long at most, and ends what they have started.
    pub(super) async fn close(&self, patience: Duration) {
        self.calls.close();
        if tokio::time::timeout(patience, self.calls.wait()).await.is_err() {
            tracing::warn!("calls were still under way when the server ended");
        }
        self.tools.close().await;
    }

    async fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let answerer = answerer(&context.peer);
        if name == request::TOOL && self.offered.iter().any(|tool| tool.name == name) {
            let caller = Caller {
                progress: context.meta.get_progress_token(),
                peer: context.peer,
                answerer,
                cancel: context.ct,
            };
            return Ok(self.agents.run(arguments, caller).await);
        }
        if let Some(answerer) = answerer {
            self.tools.handle().attach(answerer);
        }
        let input = to_raw_value(&arguments).map_err(|error| invalid(error.to_string()))?;
        let reply = self.tools.call(name, input, &context.ct).await;
        reply.map(result).map_err(|error| invalid(self.with_agent(error).to_string()))
    }

    /// Names the tool that is no tool of the session among those that there are.
    fn with_agent(&self, error: ToolUnavailable) -> ToolUnavailable {
        match error {
            ToolUnavailable::Unknown { name, known } if self.tools.is_allowed(request::TOOL) => {
                ToolUnavailable::Unknown { name, known: format!("{known}, {}", request::TOOL) }
            }
            other => other,
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("centurion", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.offered.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.calls.len() >= MOST_OPEN_REQUESTS {
            return Err(invalid(format!("{MOST_OPEN_REQUESTS} calls are under way already")));
        }
        let arguments = request.arguments.unwrap_or_default();
        let call = self.call(&request.name, arguments, context);
        self.calls.track_future(call).await.map(CallToolResponse::Complete)
    }
}

/// The client, if it can put questions to a person.
fn answerer(peer: &Peer<RoleServer>) -> Option<Arc<dyn Answerer>> {
    let can_ask = peer.supported_elicitation_modes().contains(&ElicitationMode::Form);
    can_ask.then(|| Arc::new(Client(peer.clone())) as Arc<dyn Answerer>)
}

fn invalid(message: String) -> ErrorData {
    ErrorData::invalid_params(message, None)
}

fn result(reply: ToolReply) -> CallToolResult {
    let content = reply.content.into_iter().map(|part| match part {
        ToolResultContent::Text(text) => ContentBlock::text(text),
        ToolResultContent::Image { media_type, data } => ContentBlock::image(data, media_type),
        ToolResultContent::Document { media_type, data } => {
            let document = ResourceContents::blob(data, "centurion://document");
            ContentBlock::resource(document.with_mime_type(media_type))
        }
    });
    let content = content.collect();
    if reply.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) }
}
