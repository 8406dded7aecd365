//! The state of a connection.

use std::fmt;

/// The state of a connection. [`fmt::Display`] gives the one word that people and hosts read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is being opened, for the first time or again.
    Pending,
    Connected,
    /// It could not be opened, or it broke. Nothing is tried until a caller asks for it.
    Failed {
        reason: String,
    },
    /// The server demands authorization.
    NeedsAuth {
        reason: String,
    },
    /// It was closed for good.
    Closed,
}

impl State {
    /// The reason that the server cannot be used, where there is one.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed { reason } | Self::NeedsAuth { reason } => Some(reason),
            Self::Pending | Self::Connected | Self::Closed => None,
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Pending => "pending",
            Self::Connected => "connected",
            Self::Failed { .. } => "failed",
            Self::NeedsAuth { .. } => "needs-auth",
            Self::Closed => "closed",
        })
    }
}
