//! One request to a server, from sending it to its answer, with every possible end.

mod task;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use centurion_protocol::ToolResultContent;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, DEFAULT_MRTR_MAX_ROUNDS,
    GetPromptRequest, GetPromptRequestParams, InputRequiredResult, InputResponses,
    ReadResourceRequest, ReadResourceRequestParams, RequestMetaObject, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle};
use rmcp::{RoleClient, ServiceError};
use serde_json::{Map, Value};
use thiserror::Error;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::content::{self, ContentPart};
use crate::link::Live;
use crate::name::cut;
use crate::progress::Progress;
use crate::transport::AnyError;
use crate::transport::failure::{self, Failure};

/// The most bytes of a refusal; a longer one is cut.
const MOST_REFUSAL: usize = 4_096;

/// The options of a call.
#[derive(Clone, Default)]
pub struct CallOptions {
    /// Sent with the call as its `_meta`.
    pub meta: Map<String, Value>,
    /// Cancels the call and tells the server.
    pub cancel: CancellationToken,
    /// Receives the progress of the call.
    pub on_progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
}

/// The result of a tool.
#[derive(Clone, Debug)]
pub struct CallOutput {
    pub(crate) parts: Vec<ContentPart>,
    pub structured: Option<Value>,
    /// Whether the tool itself reports a failure.
    pub is_error: bool,
}

impl CallOutput {
    /// The result in forms that a model can read; bytes that it cannot see are described.
    pub fn content(&self) -> Vec<ToolResultContent> {
        self.parts.iter().cloned().map(ContentPart::described).collect()
    }

    /// All text of the result.
    pub fn text(&self) -> String {
        content::text(&self.content())
    }
}

/// A call that gave no result.
#[derive(Debug, Error)]
pub enum CallError {
    #[error("the MCP server {server} is {state}, so nothing was called: {reason}")]
    NotConnected { server: String, state: String, reason: String },
    #[error("the MCP server {server} went away during the call: {reason}")]
    Gone { server: String, reason: String },
    #[error("the MCP server {server} wants to know who is there: {reason}")]
    NeedsAuth {
        server: String,
        reason: String,
        /// The missing scope, where the server names it.
        scope: Option<String>,
    },
    #[error("the MCP server {server} did not finish within {limit:?}, and the call was cancelled")]
    Timeout { server: String, limit: Duration },
    #[error(
        "the MCP server {server} gave no sign of life for {limit:?}, and the call was cancelled"
    )]
    Silent { server: String, limit: Duration },
    #[error("the call was cancelled")]
    Cancelled,
    #[error("the MCP server {server} refused the call: {message} (code {code})")]
    Refused { server: String, code: i32, message: String },
    #[error("the MCP server {server} could not be reached: {reason}")]
    Unreachable { server: String, reason: String },
    #[error("the MCP server {server} answered with something else than was asked for")]
    Unexpected { server: String },
    #[error(
        "the call became a task of the MCP server {server}, which failed: {message} (code {code})"
    )]
    TaskFailed { server: String, code: i64, message: String },
    #[error("the call became a task of the MCP server {server}, which cancelled it: {reason}")]
    TaskCancelled { server: String, reason: String },
}

/// The time limits of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) total: Duration,
    /// The time without a sign of life.
    pub(crate) silence: Option<Duration>,
}

/// A request that a server may answer with questions of its own.
pub(crate) trait Question: Clone {
    fn request(self) -> ClientRequest;
    fn answer(&mut self, answers: Option<InputResponses>, state: Option<String>);
}

macro_rules! question {
    ($params:ident, $request:ident) => {
        impl Question for $params {
            fn request(self) -> ClientRequest {
                ClientRequest::$request($request::new(self))
            }

            fn answer(&mut self, answers: Option<InputResponses>, state: Option<String>) {
                self.input_responses = answers;
                self.request_state = state;
            }
        }
    };
}

question!(CallToolRequestParams, CallToolRequest);
question!(GetPromptRequestParams, GetPromptRequest);
question!(ReadResourceRequestParams, ReadResourceRequest);

/// An exchange with a server about one request.
pub(crate) struct Call<'a> {
    pub(crate) server: &'a str,
    pub(crate) live: &'a Live,
    pub(crate) options: &'a CallOptions,
    pub(crate) patience: Patience,
}

impl Call<'_> {
    /// Sends the request, answers the server's questions, and returns its final answer.
    pub(crate) async fn converse(
        &self,
        question: impl Question,
    ) -> Result<ServerResult, CallError> {
        self.converse_until(question, self.deadline()).await
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.patience.total
    }

    async fn converse_until(
        &self,
        mut question: impl Question,
        deadline: Instant,
    ) -> Result<ServerResult, CallError> {
        for round in 0..DEFAULT_MRTR_MAX_ROUNDS {
            let required = match self.ask(question.clone().request(), deadline).await? {
                ServerResult::InputRequiredResult(required) => required,
                result => return Ok(result),
            };
            let (answers, state) = tokio::select! {
                answers = self.answers(required, round) => answers?,
                () = self.options.cancel.cancelled() => return Err(CallError::Cancelled),
            };
            question.answer(answers, state);
        }
        Err(self.unexpected())
    }

    async fn answers(
        &self,
        required: InputRequiredResult,
        round: usize,
    ) -> Result<(Option<InputResponses>, Option<String>), CallError> {
        let mut answers = InputResponses::new();
        for (key, request) in required.input_requests.unwrap_or_default() {
            let answer = self.live.client.fulfil(request).await;
            answers.insert(key, answer.map_err(|error| self.refused(&error))?);
        }
        if answers.is_empty() {
            if required.request_state.is_none() {
                return Err(self.unexpected());
            }
            // The server only wants to be asked again: not at once.
            let wait = Duration::from_millis(50 << round.min(3));
            tokio::time::sleep(wait).await;
        }
        Ok(((!answers.is_empty()).then_some(answers), required.request_state))
    }

    /// One request and its answer.
    async fn ask(
        &self,
        request: ClientRequest,
        deadline: Instant,
    ) -> Result<ServerResult, CallError> {
        let meta = RequestMetaObject::from(self.options.meta.clone());
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let sent = self.live.peer.send_request_with_option(request, options).await;
        let mut handle = match sent {
            Ok(handle) => handle,
            Err(error) => return Err(self.failed(error).await),
        };
        let mut signs = self.live.client.progress.wait(handle.progress_token.clone());
        let far = Instant::now() + Duration::from_secs(u64::from(u32::MAX));
        let silent_at = || self.patience.silence.map_or(far, |silence| Instant::now() + silence);
        let mut silence = silent_at();
        loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    let answer = answer.unwrap_or(Err(ServiceError::TransportClosed));
                    return match answer {
                        Ok(result) => Ok(result),
                        Err(error) => Err(self.failed(error).await),
                    };
                }
                () = self.options.cancel.cancelled() => {
                    withdraw(handle, "the call was cancelled").await;
                    return Err(CallError::Cancelled);
                }
                () = self.live.gone.cancelled() => return Err(self.gone()),
                Some(progress) = signs.next() => {
                    silence = silent_at();
                    if let Some(on_progress) = &self.options.on_progress {
                        on_progress(progress);
                    }
                }
                () = sleep_until(deadline) => {
                    withdraw(handle, "the call took too long").await;
                    return Err(self.too_long());
                }
                () = sleep_until(silence) => {
                    // A server that waits for a person is silent for a reason.
                    if self.live.client.is_asking() {
                        silence = silent_at();
                        continue;
                    }
                    withdraw(handle, "no sign of life").await;
                    return Err(CallError::Silent {
                        server: self.server.to_owned(),
                        limit: self.patience.silence.unwrap_or_default(),
                    });
                }
            }
        }
    }

    async fn failed(&self, error: ServiceError) -> CallError {
        let server = self.server.to_owned();
        match error {
            ServiceError::McpError(error) => self.refused(&error),
            ServiceError::TransportClosed => self.lost("the answer broke off".to_owned()).await,
            // The pipe to a program breaks when the program ends.
            ServiceError::TransportSend(error)
                if AnyError::unboxed(error.error.as_ref()).is::<std::io::Error>() =>
            {
                self.lost(error.error.to_string()).await
            }
            ServiceError::TransportSend(error) => match failure::of(error.error.as_ref()) {
                Failure::NeedsAuth { reason, scope } => {
                    CallError::NeedsAuth { server, reason, scope }
                }
                Failure::Passing(reason) | Failure::Lasting(reason) => {
                    CallError::Unreachable { server, reason }
                }
            },
            ServiceError::Cancelled { .. } => CallError::Cancelled,
            _ => self.unexpected(),
        }
    }

    /// The error for a broken connection: the server is gone, which is known in a moment, or only this call failed.
    async fn lost(&self, reason: String) -> CallError {
        match timeout(Duration::from_secs(2), self.live.gone.cancelled()).await {
            Ok(()) => self.gone(),
            Err(_) => CallError::Unreachable { server: self.server.to_owned(), reason },
        }
    }

    fn gone(&self) -> CallError {
        CallError::Gone { server: self.server.to_owned(), reason: self.live.why_gone() }
    }

    fn refused(&self, error: &rmcp::ErrorData) -> CallError {
        CallError::Refused {
            server: self.server.to_owned(),
            code: error.code.0,
            message: cut(&error.message, MOST_REFUSAL),
        }
    }

    fn too_long(&self) -> CallError {
        CallError::Timeout { server: self.server.to_owned(), limit: self.patience.total }
    }

    fn unexpected(&self) -> CallError {
        CallError::Unexpected { server: self.server.to_owned() }
    }

    /// Calls a tool.
    pub(crate) async fn tool(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<CallOutput, CallError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let deadline = self.deadline();
        match self.converse_until(params, deadline).await? {
            ServerResult::CallToolResult(result) => Ok(output(&result)),
            ServerResult::CreateTaskResult(created) => self.follow(&created.task, deadline).await,
            ServerResult::EmptyResult(_) => {
                Ok(CallOutput { parts: Vec::new(), structured: None, is_error: false })
            }
            // An unknown kind of content is still worth reading.
            ServerResult::CustomResult(result) => Ok(CallOutput {
                is_error: result.0.get("isError").and_then(Value::as_bool).unwrap_or(false),
                parts: content::of_unknown(&result.0),
                structured: None,
            }),
            _ => Err(self.unexpected()),
        }
    }
}

fn output(result: &CallToolResult) -> CallOutput {
    CallOutput {
        parts: content::of_result(result),
        structured: result.structured_content.clone(),
        is_error: result.is_error.unwrap_or(false),
    }
}

/// Tells the server that the caller has stopped waiting. Does not wait for a server that does not read.
async fn withdraw(handle: RequestHandle<RoleClient>, reason: &str) {
    let _ = timeout(Duration::from_secs(1), handle.cancel(Some(reason.to_owned()))).await;
}
