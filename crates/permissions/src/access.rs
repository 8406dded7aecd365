//! The access of a call.

use std::path::PathBuf;

/// The one effect of a call on the world outside the conversation, as far as permission cares. Paths are absolute, with
/// symbolic links resolved as far as they exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only the session itself: a to-do list, a question, the output of a background shell.
    Session,
    Read(PathBuf),
    Write(PathBuf),
    Shell(String),
    /// A request to this URL.
    Network(String),
    /// Any effect of a server outside this program. The server itself claims whether it only reads.
    External {
        only_reads: bool,
    },
}
