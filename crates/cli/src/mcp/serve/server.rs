//! Answers of the server: its tools, and the results of calls.

use std::sync::Arc;
use std::time::Duration;

use centurion_engine::{Answerer, ToolReply, ToolServer, ToolUnavailable};
use centurion_protocol::ToolResultContent;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities,
    ContentBlock, CreateTaskResult, ErrorData, GetTaskParams, GetTaskResult, Implementation,
    JsonObject, ListToolsResult, PaginatedRequestParams, ResourceContents, ServerCapabilities,
    ServerConfig, Tool, UpdateTaskParams,
};
use rmcp::service::{ElicitationMode, Peer, RequestContext};
use rmcp::{RoleServer, ServerHandler};
use serde_json::value::to_raw_value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::agents::{Caller, ServedAgents};
use super::client::Client;
use super::request;
use super::tasks::{LongCall, Moment, Tasks};
use crate::input::MOST_OPEN_REQUESTS;

const INSTRUCTIONS: &str = "The tools of Centurion, a coding agent runtime, in the directory it was started \
    in. Each call is subject to its permission rules; one that is not allowed says why. To hand over a whole \
    task instead of single steps, call `centurion` with a prompt.";

/// The time after which a call of a client that knows tasks continues as one.
const LONG: Duration = Duration::from_secs(2);

/// Tools and agents for the program that started this one.
pub(super) struct Server {
    work: Arc<CallRunner>,
    /// The calls that are under way.
    calls: TaskTracker,
    tasks: Tasks,
    /// Ends the calls that continue as tasks: no client waits for those.
    ending: CancellationToken,
}

/// The parts that carry out calls.
struct CallRunner {
    tools: ToolServer,
    agents: ServedAgents,
    offered: Vec<Tool>,
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
        let work = Arc::new(CallRunner { tools, agents, offered });
        let (calls, ending) = (TaskTracker::new(), CancellationToken::new());
        Self { work, calls, tasks: Tasks::default(), ending }
    }

    /// Waits until all calls have ended, for this long at most, and ends what they have started.
    pub(super) async fn close(&self, patience: Duration) {
        self.calls.close();
        self.ending.cancel();
        if tokio::time::timeout(patience, self.calls.wait()).await.is_err() {
            tracing::warn!("calls were still under way when the server ended");
        }
        self.work.tools.close().await;
    }

    /// Begins a call and waits for its end, but not longer than until it takes long or has a question: then it continues
    /// as a task.
    async fn call_or_task(
        &self,
        name: String,
        arguments: JsonObject,
        context: RequestContext<RoleServer>,
        can_ask: bool,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = LongCall::new(self.ending.child_token());
        let mut moments = call.moments();
        let withdrawn = context.ct.clone();
        let line = || Arc::new(Client::Task(Arc::clone(&call))) as Arc<dyn Answerer>;
        let caller = Caller {
            progress: context.meta.get_progress_token(),
            peer: context.peer,
            answerer: can_ask.then(line),
            cancel: call.cancel.clone(),
            long: Some(Arc::clone(&call)),
        };
        let (is_agent, work) = (self.work.is_agent(&name), Arc::clone(&self.work));
        let done = Arc::clone(&call).work(async move { work.call(&name, arguments, caller).await });
        self.calls.spawn(done);
        // An agent takes long.
        let is_withdrawn = !is_agent
            && tokio::select! {
                biased;
                _ = moments.wait_for(|moment| *moment != Moment::AtWork) => false,
                () = withdrawn.cancelled() => true,
                () = tokio::time::sleep(LONG) => false,
            };
        if is_withdrawn {
            call.cancel.cancel();
            let _ = moments.wait_for(|moment| *moment == Moment::Ended).await;
        }
        match call.take_result() {
            Some(result) => result.map(CallToolResponse::Complete),
            None => Ok(CallToolResponse::Task(CreateTaskResult::new(self.tasks.keep(&call)))),
        }
    }
}

impl CallRunner {
    /// Whether a tool runs an agent.
    fn is_agent(&self, name: &str) -> bool {
        name == request::TOOL && self.offered.iter().any(|tool| tool.name == name)
    }

    async fn call(
        &self,
        name: &str,
        arguments: JsonObject,
        caller: Caller,
    ) -> Result<CallToolResult, ErrorData> {
        if self.is_agent(name) {
            return Ok(self.agents.run(arguments, caller).await);
        }
        let input = to_raw_value(&arguments).map_err(|error| invalid(error.to_string()))?;
        let reply = self.tools.call(name, input, caller.answerer, &caller.cancel).await;
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
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tasks().build())
            .with_server_info(Implementation::new("centurion", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.work.offered.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if self.calls.len() >= MOST_OPEN_REQUESTS {
            return Err(invalid(format!("{MOST_OPEN_REQUESTS} calls are under way already")));
        }
        let (name, arguments) = (request.name.into_owned(), request.arguments.unwrap_or_default());
        // Each request says for itself whether its result may be a task: what a session once declared does not count.
        let client = context.meta.client_capabilities();
        if let Some(client) = client.filter(ClientCapabilities::supports_tasks) {
            return self.call_or_task(name, arguments, context, can_ask(&client)).await;
        }
        let caller = Caller {
            progress: context.meta.get_progress_token(),
            answerer: answerer(&context.peer),
            peer: context.peer,
            cancel: context.ct,
            long: None,
        };
        let call = self.work.call(&name, arguments, caller);
        self.calls.track_future(call).await.map(CallToolResponse::Complete)
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.find(&request.task_id)?.detailed()))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.find(&request.task_id)?.answer(request.input_responses);
        Ok(())
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.find(&request.task_id)?.cancel_for_client();
        Ok(())
    }
}

/// Whether a client that knows tasks can put a form to a person.
fn can_ask(client: &ClientCapabilities) -> bool {
    client.elicitation.as_ref().is_some_and(|it| it.form.is_some() || it.url.is_none())
}

/// The client, if it can put questions to a person.
fn answerer(peer: &Peer<RoleServer>) -> Option<Arc<dyn Answerer>> {
    let can_ask = peer.supported_elicitation_modes().contains(&ElicitationMode::Form);
    can_ask.then(|| Arc::new(Client::Direct(peer.clone())) as Arc<dyn Answerer>)
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
