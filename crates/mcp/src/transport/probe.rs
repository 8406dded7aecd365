//! Finds the generation of the protocol that a program speaks, without risk.
//!
//! The client asks new servers for their capabilities, and sends older ones the handshake. A new server refuses the
//! handshake, and some end because of it, so it must not get one, however long it takes to start. A program that drops
//! unknown messages does not answer the question, and must get one.
//!
//! So the client sends the handshake to a silent program only if the program is certainly done with the question: it
//! has read it, and it rests, with all that it has started, and without a way over which it could have handed the
//! question to a program that this machine does not show (see [`super::reader`]). Otherwise the client holds the
//! handshake back until the time for the connection is over. Then there is nothing to lose.
//!
//! A program that answers late may have received both. If it accepts the handshake, it is used as an old one. If it
//! reports its capabilities and does not accept the handshake, the client uses that report as the answer to the
//! handshake: the program need not be started again.

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

use super::reader::rests;

/// The time that a program may take for the question after it has read it, and for the handshake after it has answered
/// the question.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The time for which a program must rest after it has read the question before it gets the handshake.
const REST: Duration = Duration::from_secs(1);

/// The time after the time limit for a connection in which a program may answer the handshake that was held back until
/// then.
pub(crate) const LAST_CHANCE: Duration = Duration::from_secs(5);

/// The interval of checks of a pipe.
const LOOK: Duration = Duration::from_millis(50);

/// The interval of checks of the program behind it.
const LOOK_AT_PROGRAM: Duration = Duration::from_millis(250);

/// Facts about a handshake that the caller needs if the connection fails.
#[derive(Clone, Debug, Default)]
pub(crate) struct HandshakeNotes(Arc<Notes>);

#[derive(Debug, Default)]
struct Notes {
    answered_late: AtomicBool,
    was_held: AtomicBool,
    ended_at_question: AtomicBool,
}

impl HandshakeNotes {
    /// Whether the program answered that it is a new one after it had received the handshake of an old one.
    pub(crate) fn answered_late(&self) -> bool {
        self.0.answered_late.load(Ordering::Relaxed)
    }

    /// Whether a program that has read the question and is silent gets the handshake only at the deadline.
    pub(crate) fn was_held(&self) -> bool {
        self.0.was_held.load(Ordering::Relaxed)
    }

    fn hold(&self, is_held: bool) {
        self.0.was_held.store(is_held, Ordering::Relaxed);
    }

    /// Whether the program read the question and ended instead of an answer.
    pub(crate) fn ended_at_question(&self) -> bool {
        self.0.ended_at_question.load(Ordering::Relaxed)
    }
}

/// The pipe to a program. Kept only until the handshake: while it is held, the program does not see the end of its
/// input.
pub(crate) struct Pipe {
    writer: OwnedFd,
    /// Whether the readers of the pipe with this inode certainly rest.
    rests: fn(u64) -> bool,
}

impl Pipe {
    /// `None` if the descriptor cannot be duplicated; then nothing is known about the reader.
    pub(crate) fn of(writer: &impl AsFd) -> Option<Self> {
        Self::judged_by(writer, rests)
    }

    fn judged_by(writer: &impl AsFd, rests: fn(u64) -> bool) -> Option<Self> {
        let writer = writer.as_fd().try_clone_to_owned().ok()?;
        Some(Self { writer, rests })
    }

    /// Whether it contains bytes that were not read.
    fn is_unread(&self) -> bool {
        rustix::io::ioctl_fionread(&self.writer).is_ok_and(|count| count > 0)
    }

    /// Whether the program certainly waits for more input, and does nothing else.
    fn is_awaited(&self) -> bool {
        rustix::fs::fstat(&self.writer).is_ok_and(|pipe| (self.rests)(pipe.st_ino))
    }
}

pub(crate) struct Probe<T> {
    inner: T,
    pipe: Option<Pipe>,
    patience: Duration,
    /// The end of the time for the connection.
    deadline: Instant,
    notes: HandshakeNotes,
    stage: Stage,
    /// The delayed handshake, while it is written.
    sending: Option<BoxFuture<'static, ()>>,
    /// Requests that have their answers, whatever the program still sends about them.
    settled: Vec<RequestId>,
    /// The program's report is the answer to the handshake: the old handshake does not continue.
    is_new: bool,
}

/// The progress in finding the program's protocol.
enum Stage {
    /// There is no question, or no doubt.
    Settled,
    /// The client waits for the answer until this moment.
    Asked(RequestId, Instant),
    /// The client waits no more, and sends the handshake next.
    GivenUp(RequestId),
    Held(Box<HeldHandshake>),
    Greeted(PendingGreeting),
}

/// The program has not read the question, or is not certainly done with it.
struct HeldHandshake {
    question: RequestId,
    greeting: RequestId,
    message: TxJsonRpcMessage<RoleClient>,
    /// The time since which it rests.
    rests: Option<Instant>,
    /// The time of the next look.
    until: Instant,
}

impl HeldHandshake {
    /// Looks at the program. Returns whether it is time for the handshake.
    fn look(&mut self, pipe: Option<&Pipe>, deadline: Instant, notes: &HandshakeNotes) -> bool {
        let now = Instant::now();
        let is_unread = pipe.is_some_and(Pipe::is_unread);
        if is_unread {
            notes.hold(false);
            self.rests = None;
            self.until = now + LOOK;
            return false;
        }
        if pipe.is_some_and(Pipe::is_awaited) {
            self.rests.get_or_insert(now);
        } else {
            self.rests = None;
        }
        let end = self.rests.map_or(deadline, |rests| deadline.min(rests + REST));
        self.until = end.min(now + LOOK_AT_PROGRAM);
        notes.hold(now < end || now >= deadline);
        now >= end
    }
}

/// The program has both, the question and the handshake.
struct PendingGreeting {
    question: RequestId,
    greeting: RequestId,
    /// Its first answer, and the deadline for the other one.
    first: Option<(FirstAnswer, Instant)>,
}

enum FirstAnswer {
    Told(Box<DiscoverResult>),
    Refused(Box<RxJsonRpcMessage<RoleClient>>),
}

impl Stage {
    /// The time of the next step, whatever the program sends.
    fn until(&self) -> Option<Instant> {
        match self {
            Self::Held(held) => Some(held.until),
            Self::Asked(_, until)
            | Self::Greeted(PendingGreeting { first: Some((_, until)), .. }) => Some(*until),
            Self::Greeted(_) | Self::GivenUp(_) | Self::Settled => None,
        }
    }
}

impl<T> Probe<T> {
    pub(crate) fn new(
        inner: T,
        pipe: Option<Pipe>,
        patience: Duration,
        deadline: Instant,
        notes: HandshakeNotes,
    ) -> Self {
        Self {
            inner,
            pipe,
            patience,
            deadline,
            notes,
            stage: Stage::Settled,
            sending: None,
            settled: Vec::new(),
            is_new: false,
        }
    }
}

impl<T: Transport<RoleClient>> Probe<T> {
    /// Records a message to send; returns it unless it must not be sent, or not yet.
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
        let held =
            HeldHandshake { question, greeting: id, message, rests: None, until: Instant::now() };
        self.stage = Stage::Held(Box::new(held));
        None
    }

    fn take_stage(&mut self) -> Stage {
        std::mem::replace(&mut self.stage, Stage::Settled)
    }

    /// Writes a delayed handshake.
    fn release(&mut self, message: TxJsonRpcMessage<RoleClient>) {
        self.pipe = None;
        // If it cannot be written, reading fails as well, which is noticed.
        self.sending = Some(self.inner.send(message).map(drop).boxed());
    }

    /// Turns the program's report into the answer to the handshake.
    fn adopt(&mut self, told: DiscoverResult, greeting: RequestId) -> RxJsonRpcMessage<RoleClient> {
        self.is_new = true;
        self.pipe = None;
        self.settled.push(greeting.clone());
        // A server without an identity has no name here.
        let server = told.server_info().unwrap_or_else(|| Implementation::new("", ""));
        let mut result = InitializeResult::new(told.capabilities)
            .with_protocol_version(ProtocolVersion::LATEST)
            .with_server_info(server);
        result.instructions = told.instructions;
        result.meta = told.meta;
        RxJsonRpcMessage::<RoleClient>::response(ServerResult::InitializeResult(result), greeting)
    }

    /// Advances after a deadline has passed. Returns the message that the client reads now, if there is one.
    fn advance_stage(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        match self.take_stage() {
            Stage::Asked(question, _) => {
                self.stage = Stage::GivenUp(question.clone());
                Some(unknown(question))
            }
            Stage::Held(mut held) => {
                if held.look(self.pipe.as_ref(), self.deadline, &self.notes) {
                    let HeldHandshake { question, greeting, message, .. } = *held;
                    self.release(message);
                    self.stage =
                        Stage::Greeted(PendingGreeting { question, greeting, first: None });
                } else {
                    self.stage = Stage::Held(held);
                }
                None
            }
            Stage::Greeted(PendingGreeting { question, greeting, first: Some((first, _)) }) => {
                match first {
                    FirstAnswer::Told(told) => Some(self.adopt(*told, greeting)),
                    FirstAnswer::Refused(refusal) => {
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

    /// Judges a message; returns the message for the client, if there is one.
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
                self.notes.hold(false);
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

    /// Handles the answer to the question after the handshake was sent.
    fn hear_answer(
        &mut self,
        greeted: PendingGreeting,
        message: RxJsonRpcMessage<RoleClient>,
    ) -> Option<RxJsonRpcMessage<RoleClient>> {
        let PendingGreeting { question, greeting, first } = greeted;
        let Some(told) = telling(message) else {
            self.settled.push(question);
            return match first {
                Some((FirstAnswer::Refused(refusal), _)) => Some(*refusal),
                _ => None,
            };
        };
        self.notes.0.answered_late.store(true, Ordering::Relaxed);
        if first.is_some() {
            return Some(self.adopt(told, greeting));
        }
        let first = Some((FirstAnswer::Told(Box::new(told)), Instant::now() + self.patience));
        self.stage = Stage::Greeted(PendingGreeting { question, greeting, first });
        None
    }

    /// Handles the answer to a handshake that was sent while the question was open.
    fn hear_greeting(
        &mut self,
        greeted: PendingGreeting,
        message: RxJsonRpcMessage<RoleClient>,
    ) -> Option<RxJsonRpcMessage<RoleClient>> {
        let PendingGreeting { question, greeting, first } = greeted;
        match first {
            Some((FirstAnswer::Told(told), _)) if is_error(&message) => {
                Some(self.adopt(*told, greeting))
            }
            None if is_error(&message) => {
                let first =
                    Some((FirstAnswer::Refused(Box::new(message)), Instant::now() + self.patience));
                self.stage = Stage::Greeted(PendingGreeting { question, greeting, first });
                None
            }
            _ => {
                self.settled.push(question);
                Some(message)
            }
        }
    }

    /// Handles the end of the program's output. Its last message is not lost.
    fn last_word(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        match self.take_stage() {
            Stage::Greeted(PendingGreeting {
                first: Some((FirstAnswer::Refused(refusal), _)),
                ..
            }) => Some(*refusal),
            Stage::Asked(..) | Stage::GivenUp(_) | Stage::Held(_) => {
                let has_read = self.pipe.as_ref().is_some_and(|pipe| !pipe.is_unread());
                self.notes.0.ended_at_question.store(has_read, Ordering::Relaxed);
                None
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
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => self.advance_stage(),
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

/// Whether a message reports the capabilities of a server.
fn tells(message: &RxJsonRpcMessage<RoleClient>) -> bool {
    matches!(message, JsonRpcMessage::Response(response)
        if matches!(response.result, ServerResult::DiscoverResult(_)))
}

/// The capabilities of a server that speaks our protocol, if a message reports them.
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

/// The answer of a program that does not know the question. Some programs agree to everything: an answer without
/// capabilities counts as this one.
fn unknown(id: RequestId) -> RxJsonRpcMessage<RoleClient> {
    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "it cannot tell", None);
    RxJsonRpcMessage::<RoleClient>::error(error, Some(id))
}

/// The request that a message answers.
fn answered(message: &RxJsonRpcMessage<RoleClient>) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}

/// Whether two ids are equal. Some servers return a number as text.
fn is_same(asked: &RequestId, answered: &RequestId) -> bool {
    asked == answered || asked.to_string() == answered.to_string()
}

#[cfg(test)]
mod tests;
