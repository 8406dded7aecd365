//! What a command may do, as plain data.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What a command and everything that it starts may do.
///
/// All paths are absolute. Everything may be read but for `deny_read`; nothing may be written but `write`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Sandbox {
    /// Directories and files that may be changed. One that does not exist stays out of reach.
    pub write: Vec<PathBuf>,
    /// What stays as it is, even below a path of `write`. One that does not exist cannot be created; when
    /// it is to be a directory, it ends with a slash.
    pub deny_write: Vec<PathBuf>,
    /// Directories below a path of `write` that may be changed although `deny_write` names one above them. What
    /// `deny_write` names at or below them stays as it is. One that does not exist, or that is reached over a
    /// link, does not count.
    #[serde(default)]
    pub write_within: Vec<PathBuf>,
    /// What cannot be read.
    pub deny_read: Vec<PathBuf>,
    /// What can be read although it is below a path of `deny_read`. Paths of `write` can in any case.
    pub allow_read: Vec<PathBuf>,
    /// What cannot be read and not be changed, whatever else is said.
    #[serde(default)]
    pub forbidden: Vec<PathBuf>,
    pub network: Network,
    pub unix_sockets: UnixSockets,
}

/// What of the network can be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Network {
    /// All of it.
    Open,
    /// Nothing, not even what listens on this machine.
    #[default]
    Off,
    /// Only what the command itself and its processes listen on.
    Loopback,
    /// The same, and ways out that decide by host: the listener of each is handed to the
    /// [`Proxy`](crate::Proxy) that has bound this Unix socket.
    Proxied { socket: PathBuf, ways: Vec<Way> },
}

/// How a command asks a proxy for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Way {
    Http,
    Socks,
}

/// Which Unix sockets can be used: a program that listens on one acts outside of the sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnixSockets {
    #[default]
    Denied,
    /// Those that the [`Proxy`](crate::Proxy) on this socket knows: it makes the connections.
    Listed {
        socket: PathBuf,
    },
    Allowed,
}

impl Sandbox {
    /// The sockets of the proxies that this needs, each once.
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
