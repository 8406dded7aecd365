//! The way out for commands that may reach some hosts or some Unix sockets: the proxy outside decides.
//!
//! The command's network is empty except for a listener, which was made inside and passed out here: a socket stays in
//! the network in which it was made, whichever process holds it. So no process of ours runs inside, and there is no
//! other way out. The command does not connect to Unix sockets itself: the proxy does.

mod broker;
mod connection;
mod domains;
pub(crate) mod greeting;
mod request;
mod socks;
mod unix_sockets;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub use domains::Domains;
use greeting::Greeting;
use unix_sockets::AllowedSockets;

use crate::ProxyProtocol;

/// The reachable targets of commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    pub domains: Domains,
    /// The port of the user's own HTTP proxy on this machine, which makes the connections instead of this one.
    pub http: Option<u16>,
    /// The same for SOCKS, which needs such a proxy.
    pub socks: Option<u16>,
    pub unix_sockets: Vec<PathBuf>,
}

impl Routes {
    /// The protocols by which commands can ask for hosts.
    pub fn ways(&self) -> Vec<ProxyProtocol> {
        let http = self.http.is_some() || !self.domains.allowed.is_empty();
        let ways = [(http, ProxyProtocol::Http), (self.socks.is_some(), ProxyProtocol::Socks)];
        ways.into_iter().filter(|(is_there, _)| *is_there).map(|(_, way)| way).collect()
    }
}

/// Serves the commands of one policy. Dropping it ends every connection.
#[derive(Debug)]
pub struct Proxy {
    socket: PathBuf,
    _serving: JoinSet<()>,
}

impl Proxy {
    /// Listens for commands on a socket at this path, which must not exist yet and which only this user should be able
    /// to reach. Needs a runtime.
    pub fn start(socket: PathBuf, routes: Routes) -> io::Result<Self> {
        let listener = UnixListener::bind(&socket)?;
        let listed = Arc::new(AllowedSockets::new(&routes.unix_sockets));
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::new(routes), listed));
        Ok(Self { socket, _serving: serving })
    }

    /// For [`crate::Network::Proxied`] and [`crate::UnixSockets::Listed`].
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.socket) {
            tracing::debug!(%error, "cannot remove the socket of a proxy");
        }
    }
}

/// The served commands, each until its hold is gone.
type Commands = Arc<Mutex<HashMap<String, CancellationToken>>>;

async fn serve(listener: UnixListener, routes: Arc<Routes>, listed: Arc<AllowedSockets>) {
    let commands = Commands::default();
    let mut tasks = JoinSet::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "the proxy of a sandbox cannot be reached for a moment");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        while tasks.try_join_next().is_some() {}
        // One after the other, in order: the hold of a command comes before its listener.
        match timeout(greeting::PATIENCE, greeting::receive(&stream)).await {
            Ok(Ok(Greeting::Hold { id })) => {
                let ended = CancellationToken::new();
                lock(&commands).insert(id.clone(), ended.clone());
                tasks.spawn(watch(stream, id, ended, Arc::clone(&commands)));
            }
            Ok(Ok(Greeting::Listener { id, way, listener })) => {
                let Some(ended) = lock(&commands).get(&id).cloned() else { continue };
                let routes = Arc::clone(&routes);
                tasks.spawn(async move {
                    ended.run_until_cancelled(accept(listener, way, routes)).await;
                });
            }
            Ok(Ok(Greeting::Connections { id, calls })) => {
                let Some(ended) = lock(&commands).get(&id).cloned() else { continue };
                let listed = Arc::clone(&listed);
                tasks.spawn(async move {
                    ended.run_until_cancelled(broker::serve(calls, listed)).await;
                });
            }
            Ok(Err(error)) => tracing::debug!(%error, "a sandbox was not understood"),
            Err(_) => tracing::debug!("a sandbox said nothing"),
        }
    }
}

/// Waits for the end of a command.
async fn watch(mut hold: UnixStream, id: String, ended: CancellationToken, commands: Commands) {
    // Nothing more is ever sent on it.
    let _ = hold.read(&mut [0]).await;
    lock(&commands).remove(&id);
    ended.cancel();
}

/// Serves one command. Its connections end with this future.
async fn accept(listener: TcpListener, way: ProxyProtocol, routes: Arc<Routes>) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let routes = Arc::clone(&routes);
                connections.spawn(async move {
                    let served = match way {
                        ProxyProtocol::Http => connection::serve(stream, &routes).await,
                        ProxyProtocol::Socks => socks::serve(stream, &routes).await,
                    };
                    if let Err(error) = served {
                        tracing::debug!(%error, "a connection through the proxy broke off");
                    }
                });
            }
            Err(error) => {
                tracing::debug!(%error, "a connection to the proxy was lost");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

fn lock<T>(mutex: &Mutex<T>) -> parking_lot::MutexGuard<'_, T> {
    mutex.lock()
}
