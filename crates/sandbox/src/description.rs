//! The permissions of a command, as plain data.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The permissions of a command and everything that it starts.
///
/// All paths are absolute. Everything may be read except `deny_read`; nothing may be written except `write`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Sandbox {
    /// Directories and files that may be changed. A missing one stays out of reach.
    pub write: Vec<PathBuf>,
    /// Paths that must not change, even below a path of `write`. A missing one cannot be created; a missing directory
    /// ends with a slash.
    pub deny_write: Vec<PathBuf>,
    /// Directories below a path of `write` that may be changed although `deny_write` names one above them. Paths of
    /// `deny_write` at or below them must not change. A directory that is missing, or behind a link, does not count.
    #[serde(default)]
    pub write_within: Vec<PathBuf>,
    /// Paths that cannot be read.
    pub deny_read: Vec<PathBuf>,
    /// Paths that can be read below a path of `deny_read`. Paths of `write` always can.
    pub allow_read: Vec<PathBuf>,
    /// Paths that can neither be read nor changed, whatever the other fields say.
    #[serde(default)]
    pub forbidden: Vec<PathBuf>,
    pub network: Network,
    pub unix_sockets: UnixSockets,
}

/// The reachable part of the network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Network {
    /// All of it.
    Open,
    /// Nothing, not even servers on this machine.
    #[default]
    Off,
    /// Only the servers of the command and its own processes.
    Loopback,
    /// The same, and ways out that decide by host: the listener of each is passed to the [`Proxy`](crate::Proxy) that
    /// has bound this Unix socket.
    Proxied { socket: PathBuf, ways: Vec<ProxyProtocol> },
}

/// The protocol by which a command asks a proxy for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProxyProtocol {
    Http,
    Socks,
}

/// The usable Unix sockets: a program that listens on one acts outside of the sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnixSockets {
    #[default]
    Denied,
    /// The sockets that the [`Proxy`](crate::Proxy) on this socket lists: it makes the connections.
    Listed {
        socket: PathBuf,
    },
    Allowed,
}

impl Sandbox {
    /// The sockets of the required proxies, each once.
    pub(crate) fn proxies(&self) -> BTreeSet<&Path> {
        let network = match &self.network {
            Network::Proxied { socket, .. } => Some(socket),
            Network::Open | Network::Off | Network::Loopback => None,
        };
        let unix_sockets = match &self.unix_sockets {
            UnixSockets::Listed { socket } => Some(socket),
            UnixSockets::Denied | UnixSockets::Allowed => None,
        };
        network.into_iter().chain(unix_sockets).map(PathBuf::as_path).collect()
    }
}
