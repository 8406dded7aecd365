//! What a call would touch.

use std::path::PathBuf;

/// The one thing a call does to the world outside the conversation, as far as permission cares.
/// Paths are absolute, with symbolic links resolved as far as they exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only the session itself: a to-do list, a question, the output of a background shell.
    Session,
    Read(PathBuf),
    Write(PathBuf),
    Shell(String),
    /// A request to this URL.
    Network(String),
    /// Whatever a server outside this program does with it. That it only reads is the server's own word.
    External {
        only_reads: bool,
    },
}
