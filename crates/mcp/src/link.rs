//! The state that the supervisor of a connection and all its handles share.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rmcp::{Peer, RoleClient};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::State;
use crate::call::CallError;
use crate::catalog::{Catalog, ServerInfo};
use crate::client::Client;
use crate::pool::Settings;

/// A connection as all its handles see it.
pub(crate) struct Link {
    pub(crate) settings: Arc<Settings>,
    pub(crate) is_remote: bool,
    seen: Mutex<LinkState>,
    generation: watch::Sender<u64>,
    /// Handles send, the supervisor receives: a request to reconnect, with a channel for the result. When it is full,
    /// another handle has asked already, and this one waits its turn.
    pub(crate) wishes: mpsc::Sender<oneshot::Sender<State>>,
    /// Cancelled to close the connection: by its owner or by the pool.
    pub(crate) closing: CancellationToken,
    /// Cancelled by the supervisor when everything is closed.
    pub(crate) closed: CancellationToken,
}

pub(crate) struct LinkState {
    pub(crate) state: State,
    pub(crate) live: Option<Live>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) info: Option<ServerInfo>,
    pub(crate) instructions: Option<String>,
}

/// An open way to a server.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) client: Arc<Client>,
    /// Cancelled once the server is known to be gone, and the reason.
    pub(crate) gone: CancellationToken,
    pub(crate) reason: Arc<Mutex<String>>,
}

impl Live {
    pub(crate) fn why_gone(&self) -> String {
        let reason = self.reason.lock().clone();
        if reason.is_empty() { "the connection was closed".to_owned() } else { reason }
    }
}

impl Link {
    pub(crate) fn new(
        settings: Arc<Settings>,
        is_remote: bool,
        wishes: mpsc::Sender<oneshot::Sender<State>>,
        closing: CancellationToken,
    ) -> Self {
        let seen = LinkState {
            state: State::Pending,
            live: None,
            catalog: Arc::default(),
            info: None,
            instructions: None,
        };
        Self {
            settings,
            is_remote,
            seen: Mutex::new(seen),
            generation: watch::Sender::new(0),
            wishes,
            closing,
            closed: CancellationToken::new(),
        }
    }

    pub(crate) fn seen(&self) -> MutexGuard<'_, LinkState> {
        self.seen.lock()
    }

    /// Changes the shared state, and notifies all handles.
    pub(crate) fn change(&self, change: impl FnOnce(&mut LinkState)) {
        change(&mut self.seen());
        self.generation.send_modify(|generation| *generation += 1);
    }

    pub(crate) fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Waits until the connection is open or has failed.
    pub(crate) async fn ready(&self, patience: Duration) -> State {
        let mut generation = self.generation();
        let settled = async {
            loop {
                let state = self.seen().state.clone();
                if state != State::Pending || generation.changed().await.is_err() {
                    return state;
                }
            }
        };
        tokio::time::timeout(patience, settled).await.unwrap_or(State::Pending)
    }

    /// The way to the server. Waits for a connection that is being opened.
    pub(crate) async fn live(&self, server: &str) -> Result<Live, CallError> {
        let state = self.ready(self.settings.limits.connect).await;
        let live = self.seen().live.clone();
        match (state, live) {
            (State::Connected, Some(live)) => Ok(live),
            (State::NeedsAuth { reason }, _) => {
                Err(CallError::NeedsAuth { server: server.to_owned(), reason, scope: None })
            }
            (state, _) => Err(CallError::NotConnected {
                server: server.to_owned(),
                state: state.to_string(),
                reason: match state {
                    State::Pending => "it is not ready yet, try again later".to_owned(),
                    _ => state.reason().unwrap_or("it was closed").to_owned(),
                },
            }),
        }
    }
}
