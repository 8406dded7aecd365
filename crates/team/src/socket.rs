//! Private sockets between processes of one user: lines of JSON over Unix-domain sockets.
//!
//! A socket is in a directory that only its owner may enter. The kernel identifies the other end, and both sides reject
//! processes of other users. Everything that a peer sends or fails to send has a bound: the size of a frame, the time
//! until it is complete, the time for reading an answer, the number of connections of all processes and of one. A peer
//! can only lose its own connection.
//!
//! Nothing here knows the meaning of the frames.

mod connection;
mod directory;
mod frame;
mod listener;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

pub use connection::{Connection, Process};
pub use directory::SocketDirectory;
pub use frame::{FrameError, FrameReader, FrameWriter, Patience};
pub(crate) use listener::remove_if_dead;
pub use listener::{Limits, Listener};

/// The reason that a socket cannot be made or reached.
#[derive(Debug, Error)]
pub enum SocketError {
    #[error("{}: {source}", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("{}: it is no directory", .0.display())]
    NoDirectory(PathBuf),
    #[error("{}: it belongs to another user", .0.display())]
    ForeignDirectory(PathBuf),
    #[error("{}: other users can enter it; help: chmod 700 {}", .0.display(), .0.display())]
    OpenDirectory(PathBuf),
    #[error("{}: another process has held it for too long", .0.display())]
    Held(PathBuf),
    #[error("`{0}` cannot be the name of a socket")]
    Name(String),
    #[error("another process serves it")]
    Served,
    #[error("no process serves it")]
    Dead,
    #[error("it has too many callers that wait")]
    Busy,
    #[error("it belongs to another user")]
    ForeignProcess,
    #[error("it did not answer in time")]
    Late,
    #[error("it speaks another protocol")]
    Strange,
    #[error(transparent)]
    Io(#[from] io::Error),
}
