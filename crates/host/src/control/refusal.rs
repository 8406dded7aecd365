//! Reasons why a request of a host is not carried out.

use std::error::Error;

use crate::ModelRefused;

/// The answer to a host that is refused: a reason, and a code that programs can tell apart.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The request is known, and what it asks for cannot be.
    #[error(transparent)]
    Invalid(Box<dyn Error + Send + Sync>),
    #[error(transparent)]
    Model(#[from] ModelRefused),
    #[error("the request `{0}` is not supported")]
    Unsupported(String),
    #[error("the session is at work; ask again when it is idle")]
    Busy,
    #[error("the request was withdrawn")]
    Withdrawn,
    #[error("too many requests are under way; wait for their answers")]
    TooMany,
}

impl Refusal {
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) | Self::Model(_) => "invalid_request",
            Self::Withdrawn => "cancelled",
            Self::Unsupported(_) => "unsupported_request",
            Self::Busy => "reload_plugins_busy",
            Self::TooMany => "too_many_requests",
        }
    }

    /// A request that is known, and that `reason` keeps from being carried out.
    pub(super) fn invalid(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Invalid(reason.into())
    }
}
