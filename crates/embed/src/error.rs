//! The errors of the library.

use std::error::Error as StdError;

use thiserror::Error;

/// A session that cannot be opened or used, with the reason.
#[derive(Debug, Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    #[source]
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The model cannot be opened: no such model, no key, a script that cannot be read.
    Model,
    /// A rule, an agent, a tool or a directory that the builder was given cannot be used.
    Configuration,
    /// The files of the session cannot be read or written.
    Storage,
    /// The session has ended: nothing more can be asked.
    Ended,
    /// A run ended otherwise than with an answer; see [`Answer::into_text`](crate::Answer::into_text).
    Unsuccessful,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// An error that another one is the reason of.
    pub(crate) fn caused(
        kind: ErrorKind,
        doing: &str,
        source: impl StdError + Send + Sync + 'static,
    ) -> Self {
        Self { kind, message: format!("{doing}: {source}"), source: Some(Box::new(source)) }
    }

    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}
