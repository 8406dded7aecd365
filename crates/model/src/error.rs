//! The errors between a request and its answer, classified by their treatment.

use std::time::Duration;

use thiserror::Error;

/// A failed request.
#[derive(Clone, Debug, Error)]
#[error("{message}")]
pub struct ModelError {
    pub kind: ErrorKind,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// The failure and its cause, for a person.
    pub message: String,
    /// The wait that the provider asked for.
    pub retry_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The key is missing, wrong or not allowed to do this. Not retried.
    Authentication,
    /// The account cannot pay. Not retried.
    Billing,
    /// The request is invalid and will stay so. Not retried.
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
    /// The answer violated the protocol.
    Malformed,
    /// The answer is larger than any answer may be. Not retried: each attempt would cost as much.
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

    /// The name in the headless protocol.
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

/// The bytes of a message that are kept. It may quote the provider, which may have sent anything.
const LONGEST_MESSAGE: usize = 4096;

fn shorten(mut message: String) -> String {
    if message.len() > LONGEST_MESSAGE {
        message.truncate(message.floor_char_boundary(LONGEST_MESSAGE));
        message.push('…');
    }
    message
}
