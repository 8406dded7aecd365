//! The live sessions: those that answer on their sockets.

use std::path::{Path, PathBuf};
use std::time::Duration;

use centurion_protocol::SessionId;
use tokio::task::JoinSet;

use super::wire::{Greeting, MOST_FRAME, VERSION};
use super::{Introduction, PeerAddress, SCHEME};
use crate::socket::{Connection, Patience, SocketDirectory, SocketError, remove_if_dead};

/// The time that a session has to answer to be listed.
const ANSWER: Patience = Patience { until_next: Some(CONNECT), for_one: CONNECT };
const CONNECT: Duration = Duration::from_secs(1);
/// The most sessions that are checked.
const MOST: usize = 256;
/// The suffix of socket names.
const SUFFIX: &str = ".sock";

/// The directory with the sockets of all sessions.
#[derive(Clone, Debug)]
pub struct PeerDirectory(SocketDirectory);

/// A session that has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePeer {
    pub introduction: Introduction,
    pub pid: Option<u32>,
    pub socket: PathBuf,
}

impl LivePeer {
    /// The address for `SendMessage`.
    pub fn address(&self) -> String {
        format!("{SCHEME}{}", self.introduction.session)
    }
}

impl PeerDirectory {
    /// Opens the directory, and makes it if it is missing.
    pub fn open(path: &Path) -> Result<Self, SocketError> {
        SocketDirectory::open(path).map(Self)
    }

    /// Opens the directory if a session has made it.
    pub fn open_existing(path: &Path) -> Result<Self, SocketError> {
        SocketDirectory::open_existing(path).map(Self)
    }

    pub(super) fn sockets(&self) -> &SocketDirectory {
        &self.0
    }

    pub(super) fn socket_name(session: SessionId) -> String {
        format!("{session}{SUFFIX}")
    }

    /// The sessions that answer, except the caller's own. Removes the sockets of dead sessions.
    pub async fn live(&self, own: Option<SessionId>) -> Result<Vec<LivePeer>, SocketError> {
        let names = self.0.names(MOST)?;
        let mut asking = JoinSet::new();
        for session in names.iter().filter_map(|name| session_of(name)) {
            if Some(session) != own {
                let directory = self.clone();
                asking.spawn(async move { directory.ask(session).await });
            }
        }
        let mut live: Vec<LivePeer> = asking.join_all().await.into_iter().flatten().collect();
        live.sort_by_key(|peer| peer.introduction.session);
        Ok(live)
    }

    async fn ask(&self, session: SessionId) -> Option<LivePeer> {
        let name = Self::socket_name(session);
        let connected = self.greet(session, None).await;
        if let Err(SocketError::Dead) = connected {
            let (directory, name) = (self.0.clone(), name.clone());
            // The caller does not need to know whether it is gone.
            let _ = tokio::task::spawn_blocking(move || remove_if_dead(&directory, &name)).await;
        }
        let (connection, introduction) = connected.ok()?;
        let socket = self.0.path().join(name);
        Some(LivePeer { introduction, pid: connection.peer.pid, socket })
    }

    /// Connects to a session and greets it.
    pub(super) async fn greet(
        &self,
        session: SessionId,
        own: Option<&Introduction>,
    ) -> Result<(Connection, Introduction), SocketError> {
        let mut connection = self.connect(session).await?;
        let failed = |_| SocketError::Late;
        connection.writer.write(&Greeting::of(own), CONNECT).await.map_err(failed)?;
        let greeting = connection.reader.read::<Greeting>(ANSWER).await.map_err(failed)?;
        let greeting = greeting.filter(|it| it.centurion == VERSION).ok_or(SocketError::Strange)?;
        let introduction = greeting.introduction().filter(|it| it.session == session);
        Ok((connection, introduction.ok_or(SocketError::Strange)?))
    }

    async fn connect(&self, session: SessionId) -> Result<Connection, SocketError> {
        Connection::open(&self.0, &Self::socket_name(session), MOST_FRAME, CONNECT).await
    }

    /// The process that serves a session's socket.
    pub(super) async fn server(&self, session: SessionId) -> Option<u32> {
        self.connect(session).await.ok()?.peer.pid
    }

    /// The session of an address. A path must be that of a socket in this directory.
    pub(super) fn session(&self, address: &PeerAddress) -> Option<SessionId> {
        let path = match address {
            PeerAddress::Session(session) => return Some(*session),
            PeerAddress::Socket(path) => path,
        };
        let session = session_of(path.file_name()?.to_str()?)?;
        let is_here = |parent: &Path| {
            parent == self.0.path()
                || parent.canonicalize().ok() == self.0.path().canonicalize().ok()
        };
        path.parent().is_some_and(is_here).then_some(session)
    }
}

fn session_of(name: &str) -> Option<SessionId> {
    let session: SessionId = name.strip_suffix(SUFFIX)?.parse().ok()?;
    // One spelling only: no session is listed twice.
    (PeerDirectory::socket_name(session) == name).then_some(session)
}
