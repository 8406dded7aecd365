//! What can go wrong between a request and its answer, sorted by what to do about it.

use std::time::Duration;

use thiserror::Error;

/// A failed request.
#[derive(Clone, Debug, Error)]
#[error("{message}")]
pub struct ModelError {
    pub kind: ErrorKind,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// What failed and why, for a person.
    pub message: String,
    /// How long the provider asked us to wait.
    pub retry_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The key is missing, wrong or not allowed to do this. Not retried.
    Authentication,
    /// The account cannot pay. Not retried.
    Billing,
    /// The request is wrong and will stay wrong. Not retried.
    InvalidRequest,
    /// There is no such model. Not retried.
    ModelNotFound,
    /// The conversation is too long for the model. Not retried.
    ContextOverflow,
    /// Too many requests: 429.
    RateLimit,
    /// The provider is overloaded: 529, 503, or an in-stream error of that name.
    Overloaded,
    /// The provider failed: another 5xx or in-stream error.
    Server,
    /// No connection, or a connection that broke.
    Network,
    /// Silence for longer than allowed.
    Timeout,
    /// The answer was not what the protocol says.
    Malformed,
    /// The answer is larger than any answer may be. Not retried: it costs as much each time.
    TooLarge,
    /// A cassette or script does not fit the request. Not retried.
    Replay,
}

impl ErrorKind {
    pub fn is_retryable(self) -> bool {
        match self {
            Self::RateLimit
            | Self::Overloaded
            | Self::Server
            | Self::Network
            | Self::Timeout
            | Self::Malformed => true,
            Self::Authentication
            | Self::Billing
            | Self::InvalidRequest
            | Self::ModelNotFound
            | Self::ContextOverflow
            | Self::TooLarge
            | Self::Replay => false,
        }
    }

    /// The word that hosts of the headless protocol know it by.
    pub fn sdk_name(self) -> &'static str {
        match self {
            Self::Authentication => "authentication_failed",
            Self::Billing => "billing_error",
            Self::InvalidRequest | Self::ContextOverflow | Self::Replay => "invalid_request",
            Self::ModelNotFound => "model_not_found",
            Self::RateLimit => "rate_limit",
            Self::Overloaded => "overloaded",
            Self::Server | Self::TooLarge => "server_error",
            Self::Network | Self::Timeout | Self::Malformed => "unknown",
        }
    }
}

impl ModelError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, status: None, message: shorten(message.into()), retry_after: None }
    }

    pub fn with_status(self, status: u16) -> Self {
        Self { status: Some(status), ..self }
    }
}

/// How much of a message is kept. It may quote what the provider sent, which may be anything.
const LONGEST_MESSAGE: usize = 4096;

fn shorten(mut message: String) -> String {
    if message.len() > LONGEST_MESSAGE {
        message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
        message.push('…');
    }
    message
}
