//! The question which generation of the protocol a program speaks, asked without risk.
//!
//! New servers are asked what they can do, older ones are greeted. A program that is still starting, or
//! that drops what it does not know, leaves the question open; then it is greeted as an old one, and
//! an answer that comes after that must not be taken for the answer to the greeting. But it is heard: a new
//! server refuses the greeting, and who knows that it is new can start over and wait.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerResult};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::time::{Instant, sleep_until};

/// How long a program may think about the question, of which nothing is known.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// Whether a program answered the question after it had been given up.
#[derive(Clone, Debug, Default)]
pub(crate) struct LateAnswer(Arc<AtomicBool>);

impl LateAnswer {
    pub(crate) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) struct Probe<T> {
    inner: T,
    patience: Duration,
    late: LateAnswer,
    /// The open question, and when it is given up.
    open: Option<(RequestId, Instant)>,
    given_up: Vec<RequestId>,
}

impl<T> Probe<T> {
    pub(crate) fn new(inner: T, patience: Duration, late: LateAnswer) -> Self {
        Self { inner, patience, late, open: None, given_up: Vec::new() }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Probe<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &message
            && matches!(request.request, ClientRequest::DiscoverRequest(_))
        {
            self.open = Some((request.id.clone(), Instant::now() + self.patience));
        }
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let until = self.open.as_ref().map(|(_, until)| *until);
            let message = tokio::select! {
                biased;
                message = self.inner.receive() => message,
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {
                    let (id, _) = self.open.take()?;
                    self.given_up.push(id.clone());
                    return Some(unknown(id));
                }
            };
            match answered(message.as_ref()) {
                Some(id) if self.given_up.iter().any(|known| is_same(known, id)) => {
                    if message.as_ref().is_some_and(tells) {
                        self.late.0.store(true, Ordering::Relaxed);
                    }
                }
                id => {
                    if let (Some(id), Some((open, _))) = (id, &self.open)
                        && is_same(open, id)
                    {
                        let id = id.clone();
                        self.open = None;
                        return message.map(|message| understood(message, id));
                    }
                    return message;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

/// Some programs say yes to everything: what tells nothing of them is no answer.
fn understood(
    message: RxJsonRpcMessage<RoleClient>,
    id: RequestId,
) -> RxJsonRpcMessage<RoleClient> {
    match &message {
        JsonRpcMessage::Response(_) if !tells(&message) => unknown(id),
        _ => message,
    }
}

/// Whether a message tells what a server can do.
fn tells(message: &RxJsonRpcMessage<RoleClient>) -> bool {
    matches!(message, JsonRpcMessage::Response(response)
        if matches!(response.result, ServerResult::DiscoverResult(_)))
}

/// What a program says that does not know the question.
fn unknown(id: RequestId) -> RxJsonRpcMessage<RoleClient> {
    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "it cannot tell", None);
    RxJsonRpcMessage::<RoleClient>::error(error, Some(id))
}

/// Which request a message answers.
fn answered(message: Option<&RxJsonRpcMessage<RoleClient>>) -> Option<&RequestId> {
    match message? {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

/// Some servers give a number back as text.
fn is_same(asked: &RequestId, answered: &RequestId) -> bool {
    asked == answered || asked.to_string() == answered.to_string()
}
