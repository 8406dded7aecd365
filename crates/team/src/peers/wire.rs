//! What sessions say to each other: one frame each way for a greeting, then one each way for a message.

use centurion_protocol::{RecordId, SessionId};
use serde::{Deserialize, Serialize};

use super::Introduction;

/// The version of what is said here.
pub(super) const VERSION: u32 = 1;

/// How many bytes of text a message may have.
pub const MOST_TEXT: usize = 128 * 1024;

/// How many bytes a frame may have: a text of which every byte is escaped, and what stands around it.
pub(super) const MOST_FRAME: usize = 6 * MOST_TEXT + 4096;

/// How long a directory may be that a peer says it works in.
const MOST_CWD: usize = 1024;

/// The first frame of each side.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Greeting {
    /// The version that is spoken.
    pub(super) centurion: u32,
    /// Who speaks; a caller that serves no socket of its own says nothing.
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

    /// Who it says that it is.
    pub(super) fn introduction(self) -> Option<Introduction> {
        let cwd = self.cwd.unwrap_or_default();
        // It is shown to people and models on one line.
        let plain: String = cwd.chars().filter(|c| !c.is_control()).collect();
        let cwd = plain[..plain.floor_char_boundary(MOST_CWD)].to_owned();
        Some(Introduction { session: self.session?, cwd })
    }
}

/// What a caller asks for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    Message { id: RecordId, text: String },
}

/// What it is told.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// It is written down.
    Accepted(RecordId),
    /// It was not taken, and why.
    Refused(String),
}
