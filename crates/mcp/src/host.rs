//! The services of the host for servers: a person's answer, a model's answer, a channel to a server inside the host.

use std::future::Future;
use std::pin::Pin;

use serde_json::{Map, Value};

pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Puts a server's questions to a person.
pub trait Elicitor: Send + Sync {
    /// Dropping the future withdraws the question: the server no longer wants an answer.
    fn elicit(&self, question: Elicitation) -> HostFuture<'_, ElicitationAnswer>;

    /// A server says that the person has done what it had asked for with this id, on the page that it named.
    fn completed<'a>(&'a self, server: &'a str, id: &'a str) -> HostFuture<'a, ()> {
        let _ = (server, id);
        Box::pin(std::future::ready(()))
    }
}

/// A question of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Elicitation {
    /// The server that asks.
    pub server: String,
    pub message: String,
    pub kind: ElicitationKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ElicitationKind {
    /// Fields to fill in: a flat JSON Schema object.
    Form { schema: Value },
    /// A page to visit; the answer goes there and not to us.
    Url { url: String, id: String },
}

#[derive(Clone, Debug, PartialEq)]
pub enum ElicitationAnswer {
    /// The filled-in fields; empty for a page. Missing fields get the defaults of the form.
    Accept(Map<String, Value>),
    /// The person said no.
    Decline,
    /// There was no answer.
    Cancel,
}

/// The reason that a host does not fulfil a server's request.
pub type HostError = Box<dyn std::error::Error + Send + Sync>;

/// Lets a model answer a server. Without one, such requests are refused.
pub trait Sampler: Send + Sync {
    /// `request` holds the parameters of `sampling/createMessage`, the answer its result. An error tells the server the
    /// reason.
    fn sample<'a>(
        &'a self,
        server: &'a str,
        request: Value,
    ) -> HostFuture<'a, Result<Value, HostError>>;
}

/// The channel to servers inside the host.
pub trait SdkChannel: Send + Sync {
    /// Passes one JSON-RPC message and waits for the server's answer: `None` where there is none. Dropping the future
    /// cancels the wait.
    fn exchange<'a>(
        &'a self,
        server: &'a str,
        message: Value,
    ) -> HostFuture<'a, Result<Option<Value>, HostError>>;

    /// Gives the host a way to pass on what a server says by itself: notifications, and requests of its own. A later way
    /// to the same server takes the place of an earlier one.
    fn listen(&self, server: &str, inbox: SdkInbox) {
        let _ = (server, inbox);
    }
}

/// Takes a message of a server inside the host; `Err` says why it was not taken.
pub type SdkInbox = Box<dyn Fn(Value) -> Result<(), HostError> + Send + Sync>;
