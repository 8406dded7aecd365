//! The messages between sessions: one frame each way for a greeting, then one each way for a message.

use centurion_protocol::{RecordId, SessionId};
use serde::{Deserialize, Serialize};

use super::Introduction;

/// The version of the protocol.
pub(super) const VERSION: u32 = 1;

/// The most bytes of text in a message.
pub const MOST_TEXT: usize = 128 * 1024;

/// The most bytes of a frame: a text of which every byte is escaped, and its envelope.
pub(super) const MOST_FRAME: usize = 6 * MOST_TEXT + 4096;

/// The most bytes of a peer's working directory.
const MOST_CWD: usize = 1024;

/// The first frame of each side.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Greeting {
    /// The version of the sender's protocol.
    pub(super) centurion: u32,
    /// The sender's session; absent for a caller that serves no socket of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
}

impl Greeting {
    pub(super) fn of(own: Option<&Introduction>) -> Self {
        let (session, cwd) = (own.map(|own| own.session), own.map(|own| own.cwd.clone()));
        Self { centurion: VERSION, session, cwd }
    }

    /// The identity that it claims.
    pub(super) fn introduction(self) -> Option<Introduction> {
        let cwd = self.cwd.unwrap_or_default();
        // People and models see it on one line.
        let plain: String = cwd.chars().filter(|c| !c.is_control()).collect();
        let cwd = plain[..plain.floor_char_boundary(MOST_CWD)].to_owned();
        Some(Introduction { session: self.session?, cwd })
    }
}

/// A caller's request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    Message {
        id: RecordId,
        text: String,
        /// It tells the fate of a message of the recipient.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        notice: bool,
    },
}

/// The answer to it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// The message is recorded.
    Accepted(RecordId),
    /// The message is recorded, and waits until the user lets it in.
    Held(RecordId),
    /// The message was refused, for this reason.
    Refused(String),
}
