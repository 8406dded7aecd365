//! Back ends: the places where members of a team run, beside the process of their lead.
//!
//! A back end starts a process; it knows nothing of what that does. The process comes to the lead's socket with its
//! ticket, and all else passes there.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;

use centurion_protocol::SessionId;
use thiserror::Error;

use crate::{MemberName, TeamName};

/// A member whose process is to be started.
#[derive(Clone, Debug)]
pub struct MemberCommand {
    pub name: MemberName,
    pub team: TeamName,
    pub color: String,
    pub agent_type: String,
    /// The session of the lead.
    pub session: SessionId,
    pub plan_mode_required: bool,
    /// The lead's permission mode.
    pub permission_mode: String,
    pub cwd: PathBuf,
    /// The word by which the process is known at the lead's socket.
    pub ticket: String,
}

impl MemberCommand {
    /// The public name of the member: `name@team`.
    pub fn agent_id(&self) -> String {
        format!("{}@{}", self.name, self.team)
    }
}

/// A program with everything that it is executed with.
#[derive(Clone, Debug)]
pub struct Execution {
    pub program: OsString,
    pub args: Vec<OsString>,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
}

/// The place of a member as hosts know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberPlace {
    /// The word of the settings for its back end.
    pub back_end: &'static str,
    /// The session, the window and the pane of a terminal multiplexer.
    pub pane: Option<PanePlace>,
}

/// A pane of a terminal multiplexer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PanePlace {
    pub session: String,
    pub window: String,
    pub id: String,
}

/// The reason why a member's process was not started.
#[derive(Debug, Error)]
pub enum BackEndError {
    #[error("cannot start {program}: {source}")]
    Start { program: String, source: io::Error },
    #[error("tmux says: {0}")]
    Tmux(String),
    #[error("tmux did not answer in time")]
    Late,
}

pub type BackEndFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A place where members run.
pub trait BackEnd: Send + Sync {
    /// Starts the process of a member.
    fn start<'a>(
        &'a self,
        member: &'a MemberCommand,
    ) -> BackEndFuture<'a, Result<Box<dyn MemberProcess>, BackEndError>>;

    /// The program that the started process turns into, if it is not started as that. It asks for this at the lead's
    /// socket, so that no other user of the machine sees its environment.
    fn execution(&self, _member: &MemberCommand) -> Option<Execution> {
        None
    }
}

/// The process of a member. Dropping it ends the process.
pub trait MemberProcess: Send + Sync {
    fn place(&self) -> MemberPlace;

    /// Waits for the end of the process; says how it ended.
    fn ended(&mut self) -> BackEndFuture<'_, String>;

    /// Ends the process and waits until it is gone.
    fn stop(&mut self) -> BackEndFuture<'_, ()>;
}
