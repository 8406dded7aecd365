//! Skipping permissions: which runs may do it.

use centurion_permissions::Skipping;
use thiserror::Error;

/// The leave of this run to skip permissions, which only the user gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    Enabled,
    /// Only by the host that drives the session: no definition may ask for it.
    OnRequest,
    /// Permissions may not be skipped, with the reason.
    Refused(&'static str),
}

/// The reason why permissions may not be skipped in this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct BypassRefused(pub(crate) &'static str);

impl Bypass {
    pub(crate) fn skipping(self) -> Skipping {
        match self {
            Self::Enabled => Skipping::Enabled,
            Self::OnRequest | Self::Refused(_) => Skipping::Disabled,
        }
    }
}
