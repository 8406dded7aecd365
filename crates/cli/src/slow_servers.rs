//! Tells a person that servers take their time to connect.

use std::convert::Infallible;
use std::time::Duration;

use centurion_mcp::{Connection, State};

use crate::output::note;

/// A wait that a person notices.
const NOTICEABLE: Duration = Duration::from_secs(1);

/// Does something that servers may hold up, and tells of those that do.
pub(crate) async fn beside<T>(servers: Vec<Connection>, work: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        done = work => done,
        never = tell(servers) => match never {},
    }
}

/// Tells once of every server that is not there after a moment. It never ends: it runs beside the run.
pub(crate) async fn tell(servers: Vec<Connection>) -> Infallible {
    tokio::time::sleep(NOTICEABLE).await;
    for server in servers.iter().filter(|server| server.state() == State::Pending) {
        note(&format!("warning: server `{}` is still connecting", server.name()));
    }
    drop(servers);
    std::future::pending().await
}
