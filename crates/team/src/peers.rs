//! Peers: other sessions of the same user on this machine, each with a socket of its own.
//!
//! The directory of sockets is the directory of peers. A session is listed when it has answered; the name of a dead one
//! is removed. A message is plain text with an id that its sender chose. The recipient records a message before it
//! acknowledges it; a repeated message is acknowledged and not delivered again.
//!
//! The kernel identifies a sender, not the sender itself: a process counts as a session when it serves that session's
//! socket. Nothing here knows what sessions do with a message.

mod call;
mod directory;
mod serve;
mod wire;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use centurion_protocol::{RecordId, SessionId};
use thiserror::Error;

pub use call::SendError;
pub use directory::{LivePeer, PeerDirectory};
pub use serve::{Inbox, PeerListener};
pub use wire::MOST_TEXT;

/// The prefix of peer addresses.
pub const SCHEME: &str = "uds:";

/// A session as it introduces itself to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    pub session: SessionId,
    /// Its working directory, for people.
    pub cwd: String,
}

/// The verified sender of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The process that serves this session's socket.
    Session(Introduction),
    /// Some process of the user.
    Process(Option<u32>),
}

/// A message for this session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The same whenever this sender repeats the message, and never that of another sender's message.
    pub id: RecordId,
    pub from: Sender,
    pub text: String,
    /// The id that the sender gave it.
    pub sent_as: RecordId,
    /// Whether it only tells the fate of a message of this session.
    pub is_notice: bool,
}

/// The treatment of a message that a session accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageTreatment {
    /// Its agent reads it.
    ToRead,
    /// It is kept until the user lets it in or declines it.
    Held,
}

/// The reason that a session does not accept a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MessageRefusal {
    #[error("too many messages wait there to be read: send it again later")]
    Full,
    #[error("no user is there who could let it in")]
    Alone,
    #[error("the user has declined it")]
    Declined,
    #[error("the session is ending")]
    Ending,
    #[error("it cannot be kept there: {0}")]
    Lost(String),
}

/// A message to another session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    pub id: RecordId,
    pub text: String,
    /// Whether it only tells the fate of a message of the other session.
    pub is_notice: bool,
}

impl Outgoing {
    pub fn new(id: RecordId, text: impl Into<String>) -> Self {
        Self { id, text: text.into(), is_notice: false }
    }

    /// Tells the other session the fate of a message that it sent.
    pub fn notice(id: RecordId, text: impl Into<String>) -> Self {
        Self { id, text: text.into(), is_notice: true }
    }
}

/// The address of a peer: `uds:` and the id of its session, or the path of its socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerAddress {
    Session(SessionId),
    Socket(PathBuf),
}

/// The reason that an address means no peer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no address of a session: write `uds:` and the id of a session or the path of its socket"
)]
pub struct AddressError(String);

impl FromStr for PeerAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError(text.to_owned());
        let place = text.strip_prefix(SCHEME).map(str::trim).ok_or_else(wrong)?;
        if place.starts_with('/') {
            return Ok(Self::Socket(PathBuf::from(place)));
        }
        let session: SessionId = place.parse().map_err(|_| wrong())?;
        // One spelling only, so that no address bypasses a rule about a session.
        if session.to_string() == place { Ok(Self::Session(session)) } else { Err(wrong()) }
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(it) => {
                write!(f, "Another session ({SCHEME}{}, in {})", it.session, it.cwd)
            }
            Self::Process(Some(pid)) => write!(f, "Another process (number {pid})"),
            Self::Process(None) => f.write_str("Another process"),
        }
    }
}
