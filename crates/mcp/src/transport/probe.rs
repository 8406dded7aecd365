//! The question which generation of the protocol a program speaks, asked without risk.
//!
//! New servers are asked what they can do, older ones are greeted. A program that drops what it does not know
//! leaves the question open, and is greeted as an old one after a while. A program that is still starting leaves
//! it open as well, and must not be greeted: a new server refuses the greeting, and some end because of it. So the
//! greeting is held back until the program has read the question.
//!
//! A program that reads early and answers late has both, question and greeting. If it takes the greeting, it is
//! used as an old one. If it tells what it can do and does not take the greeting, what it tells is given to the
//! client as the answer to the greeting: it need not be started again.

use std::future::Future;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rmcp::RoleClient;
use rmcp::model::{
    ClientNotification, ClientRequest, DiscoverResult, ErrorCode, ErrorData, Implementation,
    InitializeResult, JsonRpcMessage, ProtocolVersion, RequestId, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::time::{Instant, sleep_until};

/// How long a program may think about the question after it has read it, and about the greeting after it has
/// answered the question.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// How often a pipe is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Whether a program told that it is a new one after it had been greeted as an old one.
#[derive(Clone, Debug, Default)]
pub(crate) struct LateAnswer(Arc<AtomicBool>);

impl LateAnswer {
    pub(crate) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The pipe to a program. It is kept only until the program is greeted: as long as it is held, the program does not
/// see the end of its input.
pub(crate) struct Pipe(OwnedFd);

impl Pipe {
    /// `None` if there is no second handle to be had; then nothing is known about the reader.
    pub(crate) fn of(writer: &impl AsFd) -> Option<Self> {
        writer.as_fd().try_clone_to_owned().ok().map(Self)
    }

    /// Whether something in it waits for its reader.
    fn is_unread(&self) -> bool {
        rustix::io::ioctl_fionread(&self.0).is_ok_and(|count| count > 0)
    }
}

pub(crate) struct Probe<T> {
    inner: T,
    pipe: Option<Pipe>,
    patience: Duration,
    late: LateAnswer,
    stage: Stage,
    /// The greeting that was held back, while it is written.
    sending: Option<BoxFuture<'static, ()>>,
    /// Requests that have their answers, whatever the program still says to them.
    settled: Vec<RequestId>,
    /// What the program told is the answer to the greeting: the old handshake does not go on.
    is_new: bool,
}

/// How far it is known what a program speaks.
enum Stage {
    /// There is no question, or no doubt.
    Settled,
    /// The client waits for the answer until this moment.
    Asked(RequestId, Instant),
    /// The client waits no more, and greets next.
    GivenUp(RequestId),
    Held(Box<Held>),
    Greeted(Greeted),
}

/// The program has not read the question, or has read it just now.
struct Held {
    question: RequestId,
    greeting: RequestId,
    message: TxJsonRpcMessage<RoleClient>,
    has_read: bool,
    until: Instant,
}

/// The program has both, the question and the greeting.
struct Greeted {
    question: RequestId,
    greeting: RequestId,
    /// Its first answer, and how long the other one is waited for.
    first: Option<(First, Instant)>,
}

enum First {
    Told(Box<DiscoverResult>),
    Refused(Box<RxJsonRpcMessage<RoleClient>>),
}

impl Stage {
    /// When something is to be done, whatever the program says.
    fn until(&self) -> Option<Instant> {
        match self {
            Self::Held(held) => Some(held.until),
            Self::Asked(_, until) | Self::Greeted(Greeted { first: Some((_, until)), .. }) => {
                Some(*until)
            }
            Self::Greeted(_) | Self::GivenUp(_) | Self::Settled => None,
        }
    }
}

impl<T> Probe<T> {
    pub(crate) fn new(inner: T, pipe: Option<Pipe>, patience: Duration, late: LateAnswer) -> Self {
        let (stage, settled) = (Stage::Settled, Vec::new());
        Self { inner, pipe, patience, late, stage, sending: None, settled, is_new: false }
    }
}

impl<T: Transport<RoleClient>> Probe<T> {
    /// Takes note of what is sent; gives it back unless it is not to be sent, or not yet.
    fn pass(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> Option<TxJsonRpcMessage<RoleClient>> {
        let (id, is_question) = match &message {
            JsonRpcMessage::Request(request) => match &request.request {
                ClientRequest::DiscoverRequest(_) => (request.id.clone(), true),
                ClientRequest::InitializeRequest(_) => (request.id.clone(), false),
                _ => return Some(message),
            },
            JsonRpcMessage::Notification(it)
                if matches!(it.notification, ClientNotification::InitializedNotification(_)) =>
            {
                return (!self.is_new).then_some(message);
            }
            _ => return Some(message),
        };
        if is_question {
            self.stage = Stage::Asked(id, Instant::now() + self.patience);
            return Some(message);
        }
        let (Stage::Asked(question, _) | Stage::GivenUp(question)) = self.take_stage() else {
            return Some(message);
        };
        if self.pipe.as_ref().is_some_and(Pipe::is_unread) {
            let until = Instant::now() + LOOK;
            let held = Held { question, greeting: id, message, has_read: false, until };
            self.stage = Stage::Held(Box::new(held));
            return None;
        }
        self.stage = Stage::Greeted(Greeted { question, greeting: id, first: None });
        self.pipe = None;
        Some(message)
    }

    fn take_stage(&mut self) -> Stage {
        std::mem::replace(&mut self.stage, Stage::Settled)
    }

    /// Writes a greeting that was held back.
    fn release(&mut self, message: TxJsonRpcMessage<RoleClient>) {
        self.pipe = None;
        // If it cannot be written, nothing can be read either, and that is noticed.
        self.sending = Some(self.inner.send(message).map(drop).boxed());
    }

    /// What the program told, as the answer to the greeting.
    fn adopt(&mut self, told: DiscoverResult, greeting: RequestId) -> RxJsonRpcMessage<RoleClient> {
        self.is_new = true;
        self.pipe = None;
        self.settled.push(greeting.clone());
        // A server that does not say who it is has no name here.
        let server = told.server_info().unwrap_or_else(|| Implementation::new("", ""));
        let mut result = InitializeResult::new(told.capabilities)
            .with_protocol_version(ProtocolVersion::LATEST)
            .with_server_info(server);
        result.instructions = told.instructions;
        result.meta = told.meta;
        RxJsonRpcMessage::<RoleClient>::response(ServerResult::InitializeResult(result), greeting)
    }

    /// Time is up for what was waited for; what the client gets to read, if anything.
    fn go_on(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let now = Instant::now();
        match self.take_stage() {
            Stage::Asked(question, _) => {
                self.stage = Stage::GivenUp(question.clone());
                Some(unknown(question))
            }
            Stage::Held(mut held) => {
                if self.pipe.as_ref().is_some_and(Pipe::is_unread) {
                    held.until = now + LOOK;
                } else if !held.has_read {
                    held.has_read = true;
                    held.until = now + self.patience;
                } else {
                    let Held { question, greeting, message, .. } = *held;
                    self.release(message);
                    self.stage = Stage::Greeted(Greeted { question, greeting, first: None });
                    return None;
                }
                self.stage = Stage::Held(held);
                None
            }
            Stage::Greeted(Greeted { question, greeting, first: Some((first, _)) }) => {
                match first {
                    First::Told(told) => Some(self.adopt(*told, greeting)),
                    First::Refused(refusal) => {
                        self.settled.push(question);
                        Some(*refusal)
                    }
                }
            }
            stage => {
                self.stage = stage;
                None
            }
        }
    }

    /// What the client gets to read of a message, if anything.
    fn judge(
        &mut self,
        message: RxJsonRpcMessage<RoleClient>,
    ) -> Option<RxJsonRpcMessage<RoleClient>> {
        let Some(id) = answered(&message).cloned() else { return Some(message) };
        if self.settled.iter().any(|known| is_same(known, &id)) {
            return None;
        }
        match self.take_stage() {
            Stage::Asked(question, _) if is_same(&question, &id) => {
                self.pipe = None;
                Some(if is_error(&message) || tells(&message) {
                    message
                } else {
                    unknown(question)
                })
            }
            Stage::Held(held) if is_same(&held.question, &id) => {
                match telling(message) {
                    Some(told) => return Some(self.adopt(told, held.greeting)),
                    None => self.release(held.message),
                }
                None
            }
            Stage::Greeted(greeted) if is_same(&greeted.question, &id) => {
                self.hear_answer(greeted, message)
            }
            Stage::Greeted(greeted) if is_same(&greeted.greeting, &id) => {
                self.hear_greeting(greeted, message)
            }
            stage => {
                self.stage = stage;
                Some(message)
            }
        }
    }

    /// The answer to the question came after the greeting had been sent.
    fn hear_answer(
        &mut self,
        greeted: Greeted,
        message: RxJsonRpcMessage<RoleClient>,
    ) -> Option<RxJsonRpcMessage<RoleClient>> {
        let Greeted { question, greeting, first } = greeted;
        let Some(told) = telling(message) else {
            self.settled.push(question);
            return match first {
                Some((First::Refused(refusal), _)) => Some(*refusal),
                _ => None,
            };
        };
        self.late.note();
        if first.is_some() {
            return Some(self.adopt(told, greeting));
        }
        let first = Some((First::Told(Box::new(told)), Instant::now() + self.patience));
        self.stage = Stage::Greeted(Greeted { question, greeting, first });
        None
    }

    /// The answer to the greeting came, and the question was open when that was sent.
    fn hear_greeting(
        &mut self,
        greeted: Greeted,
        message: RxJsonRpcMessage<RoleClient>,
    ) -> Option<RxJsonRpcMessage<RoleClient>> {
        let Greeted { question, greeting, first } = greeted;
        match first {
            Some((First::Told(told), _)) if is_error(&message) => Some(self.adopt(*told, greeting)),
            None if is_error(&message) => {
                let first =
                    Some((First::Refused(Box::new(message)), Instant::now() + self.patience));
                self.stage = Stage::Greeted(Greeted { question, greeting, first });
                None
            }
            _ => {
                self.settled.push(question);
                Some(message)
            }
        }
    }

    /// The program says nothing more. What it said last is not lost.
    fn last_word(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        match self.take_stage() {
            Stage::Greeted(Greeted { first: Some((First::Refused(refusal), _)), .. }) => {
                Some(*refusal)
            }
            _ => None,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Probe<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sending = self.pass(message).map(|message| self.inner.send(message));
        async move {
            match sending {
                Some(sending) => sending.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let until = self.stage.until();
            let sending = async {
                match &mut self.sending {
                    Some(sending) => sending.await,
                    None => std::future::pending().await,
                }
            };
            let read = tokio::select! {
                biased;
                message = self.inner.receive() => match message {
                    Some(message) => self.judge(message),
                    None => return self.last_word(),
                },
                () = sending => {
                    self.sending = None;
                    None
                }
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => self.go_on(),
            };
            if read.is_some() {
                return read;
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.pipe = None;
        self.inner.close().await
    }
}

/// Whether a message tells what a server can do.
fn tells(message: &RxJsonRpcMessage<RoleClient>) -> bool {
    matches!(message, JsonRpcMessage::Response(response)
        if matches!(response.result, ServerResult::DiscoverResult(_)))
}

/// What a server can do that speaks the protocol as we do, if a message tells it.
fn telling(message: RxJsonRpcMessage<RoleClient>) -> Option<DiscoverResult> {
    match message {
        JsonRpcMessage::Response(response) => match response.result {
            ServerResult::DiscoverResult(told) => {
                told.supported_versions.contains(&ProtocolVersion::LATEST).then_some(told)
            }
            _ => None,
        },
        _ => None,
    }
}

fn is_error(message: &RxJsonRpcMessage<RoleClient>) -> bool {
    matches!(message, JsonRpcMessage::Error(_))
}

/// What a program says that does not know the question. Some programs say yes to everything: what tells nothing of
/// them is no answer.
fn unknown(id: RequestId) -> RxJsonRpcMessage<RoleClient> {
    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "it cannot tell", None);
    RxJsonRpcMessage::<RoleClient>::error(error, Some(id))
}

/// Which request a message answers.
fn answered(message: &RxJsonRpcMessage<RoleClient>) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

/// Some servers give a number back as text.
fn is_same(asked: &RequestId, answered: &RequestId) -> bool {
    asked == answered || asked.to_string() == answered.to_string()
}

#[cfg(test)]
mod tests;
