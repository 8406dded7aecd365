//! Applies a plan, in the process that is about to become the command.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::filter::{SharedObjects, Sockets};
use crate::namespaces::{OwnMounts, Processes};
use crate::proxy::greeting::{self, HandedDescriptor};
use crate::view::{Mode, View};
use crate::{
    Method, Network, Plan, ProxyProtocol, UnixSockets, bubblewrap, capabilities, filter, mounts,
    namespaces, processes, rules, system,
};

/// The directory of one command, and its caller's files that it needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CommandPlace {
    /// The name of the command, unique among running commands.
    pub id: String,
    pub cwd: PathBuf,
    /// Readable, whatever the sandbox says.
    pub read: Vec<PathBuf>,
    /// Writable, whatever the sandbox says.
    pub write: Vec<PathBuf>,
}

/// The reason that a plan could not be applied. The process must not continue.
#[derive(Debug, Error)]
pub enum ApplyError {
    #[error("cannot {what}: {source}")]
    Step { what: &'static str, source: io::Error },
    #[error("cannot follow {}: {source}", .path.display())]
    Path { path: PathBuf, source: io::Error },
    #[error("cannot keep {} apart: {source}", .path.display())]
    Place { path: PathBuf, source: io::Error },
    #[error("the whole file system is denied, and nothing runs without it")]
    NothingLeft,
    #[error("cannot restrict writing: {0}")]
    Rules(#[from] landlock::RulesetError),
    #[error("the kernel does not restrict writing although it said that it can")]
    NotEnforced,
    #[error("cannot filter system calls: {0}")]
    Filter(#[from] seccompiler::Error),
}

impl ApplyError {
    pub(crate) fn step(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Step { what, source }
    }
}

/// Devices that a program may write to where it sees those of the machine.
const HARMLESS: [&str; 6] =
    ["/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero"];

/// The ports of the proxies; in a namespace of their own any port is free.
const HTTP_PORT: u16 = 3128;
const SOCKS_PORT: u16 = 1080;

impl Plan {
    /// With bubblewrap, the command that brings `program` to the point at which it calls [`Plan::apply`]; `None` when
    /// it can be called here.
    pub fn wrapped(
        &self,
        place: &CommandPlace,
        program: &[OsString],
    ) -> Result<Option<Command>, ApplyError> {
        match &self.method {
            Method::Bubblewrap(path) => bubblewrap::command(path, self, place, program).map(Some),
            Method::Namespaces | Method::Landlock => Ok(None),
        }
    }

    /// Confines this process, which must have one thread, for good. Returns the additional environment variables of the
    /// command.
    ///
    /// Processes of the command in a namespace of their own live until the other end of the pipe `lifeline` is closed;
    /// without a pipe, until this process ends.
    ///
    /// After an error the process must not continue.
    pub fn apply(
        &self,
        place: &CommandPlace,
        lifeline: Option<OwnedFd>,
    ) -> Result<Vec<(&'static str, String)>, ApplyError> {
        let sandbox = &self.sandbox;
        system::close_all_on_exec().map_err(ApplyError::step("close files"))?;
        let view = View::of(sandbox, place)?;
        let proxies = self.find_proxies()?;
        if self.method == Method::Namespaces {
            let own = self.enter_namespaces(lifeline)?;
            mounts::build(&view, &own)?;
        }
        let variables = self.connect(&proxies, &place.id)?;
        // The current directory of this process is the machine's, not that of the view.
        std::env::set_current_dir(&place.cwd)
            .map_err(ApplyError::step("enter the working directory"))?;
        capabilities::drop_all()
            .map_err(|error| ApplyError::step("give up privileges")(error.into()))?;
        let is_enforced = rules::restrict(self.writable(&view), &sandbox.unix_sockets)?;
        if self.method == Method::Landlock && !is_enforced {
            return Err(ApplyError::NotEnforced);
        }
        filter::install(self.sockets(), &sandbox.unix_sockets, self.company())?;
        if let Some(broker) = &proxies.broker {
            let connections = filter::give_connections_away()
                .map_err(ApplyError::step("give connections to the proxy"))?;
            greeting::hand_over(broker, HandedDescriptor::Connections, &place.id, &connections)
                .map_err(ApplyError::step("hand connections to the proxy"))?;
        }
        Ok(variables)
    }

    fn enter_namespaces(&self, lifeline: Option<OwnedFd>) -> Result<OwnMounts, ApplyError> {
        let seen = if self.own_processes { Processes::Own } else { Processes::Shared };
        let own = namespaces::enter(&self.sandbox.network, seen)
            .map_err(|error| ApplyError::step("enter namespaces")(error.into()))?;
        if seen == Processes::Own {
            processes::divide(lifeline).map_err(ApplyError::step("start processes of its own"))?;
            processes::mount_own(&own)
                .map_err(|error| ApplyError::step("show its own processes")(error.into()))?;
        }
        Ok(own)
    }

    /// Connects to the proxies outside, while they can still be reached.
    fn find_proxies(&self) -> Result<Proxies, ApplyError> {
        let reach = |socket: &PathBuf| {
            UnixStream::connect(socket).map_err(ApplyError::step("reach the proxy"))
        };
        let mut proxies = Proxies::default();
        if let Network::Proxied { socket, ways } = &self.sandbox.network {
            for way in ways {
                proxies.ways.push((*way, reach(socket)?));
            }
        }
        if let UnixSockets::Listed { socket } = &self.sandbox.unix_sockets {
            proxies.broker = Some(reach(socket)?);
        }
        Ok(proxies)
    }

    /// Sets up the command's network.
    fn connect(
        &self,
        proxies: &Proxies,
        id: &str,
    ) -> Result<Vec<(&'static str, String)>, ApplyError> {
        let has_loopback =
            matches!(self.sandbox.network, Network::Loopback | Network::Proxied { .. });
        if has_loopback && self.method == Method::Namespaces {
            system::raise_loopback()
                .map_err(ApplyError::step("switch on the loopback interface"))?;
        }
        for (way, proxy) in &proxies.ways {
            let port = match way {
                ProxyProtocol::Http => HTTP_PORT,
                ProxyProtocol::Socks => SOCKS_PORT,
            };
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
                .map_err(ApplyError::step("listen for the proxy"))?;
            greeting::hand_over(proxy, HandedDescriptor::Listener(*way), id, &listener)
                .map_err(ApplyError::step("hand the listener to the proxy"))?;
        }
        let ways: Vec<ProxyProtocol> = proxies.ways.iter().map(|(way, _)| *way).collect();
        Ok(variables(&ways))
    }

    fn writable<'a>(&self, view: &'a View) -> impl Iterator<Item = &'a Path> {
        let devices: &[&str] = if self.method == Method::Landlock { &HARMLESS } else { &["/dev"] };
        let places = view.iter().filter(|(_, mode)| *mode == Mode::Writable);
        places.map(|(path, _)| path).chain(devices.iter().map(Path::new))
    }

    fn company(&self) -> SharedObjects {
        if self.own_processes {
            SharedObjects::Own
        } else if self.method == Method::Landlock {
            SharedObjects::All
        } else {
            SharedObjects::Processes
        }
    }

    fn sockets(&self) -> Sockets {
        match (&self.method, &self.sandbox.network) {
            (Method::Landlock, Network::Off | Network::Loopback | Network::Proxied { .. }) => {
                Sockets::Nothing
            }
            _ => Sockets::Network,
        }
    }
}

/// Connections to the proxies that serve the command from outside.
#[derive(Debug, Default)]
struct Proxies {
    ways: Vec<(ProxyProtocol, UnixStream)>,
    /// Makes connections to Unix sockets.
    broker: Option<UnixStream>,
}

/// The variables that tell programs the addresses of the proxies.
fn variables(ways: &[ProxyProtocol]) -> Vec<(&'static str, String)> {
    const WEB: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
    const ALL: [&str; 2] = ["ALL_PROXY", "all_proxy"];
    const EXCEPT: [&str; 2] = ["NO_PROXY", "no_proxy"];

    let http = ways.contains(&ProxyProtocol::Http).then(|| format!("http://127.0.0.1:{HTTP_PORT}"));
    // The proxy resolves names: there is no name server in here.
    let socks =
        ways.contains(&ProxyProtocol::Socks).then(|| format!("socks5h://127.0.0.1:{SOCKS_PORT}"));
    let own = (!ways.is_empty()).then(|| "localhost,127.0.0.1,::1".to_owned());
    let all = socks.or_else(|| http.clone());
    let set = [(&WEB[..], http), (&ALL, all), (&EXCEPT, own)];
    let set = set.into_iter().filter_map(|(names, value)| Some((names, value?)));
    set.flat_map(|(names, value)| names.iter().map(move |name| (*name, value.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_of_the_ways_that_there_are() {
        let told = |ways: &[ProxyProtocol]| {
            let variables = variables(ways);
            ["http_proxy", "ALL_PROXY", "NO_PROXY"].map(|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| value.split(':').next().unwrap().to_owned())
            })
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(told(&[]), [None, None, None]);
        assert_eq!(
            told(&[ProxyProtocol::Http]),
            [text("http"), text("http"), text("localhost,127.0.0.1,")]
        );
        assert_eq!(told(&[ProxyProtocol::Socks])[..2], [None, text("socks5h")]);
        assert_eq!(
            told(&[ProxyProtocol::Http, ProxyProtocol::Socks])[..2],
            [text("http"), text("socks5h")]
        );
    }
}
