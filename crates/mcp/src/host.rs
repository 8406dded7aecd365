//! What servers ask of the host: a person's answer, a model's answer, a way to a server that lives in the host.

use std::future::Future;
use std::pin::Pin;

use serde_json::{Map, Value};

pub type HostFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Puts a server's questions to a person.
pub trait Elicitor: Send + Sync {
    /// Dropping the future withdraws the question: the server does not want an answer any more.
    fn elicit(&self, question: Elicitation) -> HostFuture<'_, ElicitationAnswer>;
}

/// A question of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Elicitation {
    /// Which server asks.
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
    /// What was filled in; nothing for a page. Fields left out get the defaults of the form.
    Accept(Map<String, Value>),
    /// The person said no.
    Decline,
    /// There was no answer.
    Cancel,
}

/// Why a host does not do what a server asks for.
pub type HostError = Box<dyn std::error::Error + Send + Sync>;

/// Lets a model answer for a server. Without one, servers are refused.
pub trait Sampler: Send + Sync {
    /// `request` holds the parameters of `sampling/createMessage`, the answer its result. An error says
    /// to the server why not.
    fn sample<'a>(
        &'a self,
        server: &'a str,
        request: Value,
    ) -> HostFuture<'a, Result<Value, HostError>>;
}

/// The way to servers that live in the host.
pub trait SdkChannel: Send + Sync {
    /// Hands one JSON-RPC message over and waits for what the server says to it: `None` where there is
    /// nothing to say. Dropping the future gives the answer up.
    fn exchange<'a>(
        &'a self,
        server: &'a str,
        message: Value,
    ) -> HostFuture<'a, Result<Option<Value>, HostError>>;
}
