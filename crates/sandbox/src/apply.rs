//! Puts a plan into force, in the process that is about to become the command.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::filter::Sockets;
use crate::proxy::greeting;
use crate::view::{Mode, View};
use crate::{
    Method, Network, Plan, bubblewrap, capabilities, filter, mounts, namespaces, rules, system,
};

/// Where one command runs, and which files it needs of whoever runs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Place {
    /// The name of the command, which no other has at the same time.
    pub id: String,
    pub cwd: PathBuf,
    /// Can be read, whatever the sandbox says.
    pub read: Vec<PathBuf>,
    /// Can be written, whatever the sandbox says.
    pub write: Vec<PathBuf>,
}

/// Why a plan could not be put into force. The process must not go on.
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

/// Where the proxy listens: alone in its namespace, it can choose.
const PROXY_PORT: u16 = 3128;

impl Plan {
    /// With bubblewrap, the command that brings `program` to where [`Plan::apply`] is to be called;
    /// `None` when it can be called here.
    pub fn wrapped(
        &self,
        place: &Place,
        program: &[OsString],
    ) -> Result<Option<Command>, ApplyError> {
        match &self.method {
            Method::Bubblewrap(path) => bubblewrap::command(path, self, place, program).map(Some),
            Method::Namespaces | Method::Landlock => Ok(None),
        }
    }

    /// Confines this process, which must have one thread, for good. Gives the environment variables that
    /// the command needs besides.
    ///
    /// After an error the process is in no state to go on.
    pub fn apply(&self, place: &Place) -> Result<Vec<(&'static str, String)>, ApplyError> {
        let sandbox = &self.sandbox;
        system::close_all_on_exec().map_err(ApplyError::step("close files"))?;
        let view = View::of(sandbox, place)?;
        let proxy = self.find_proxy()?;
        if self.method == Method::Namespaces {
            namespaces::enter(&sandbox.network)
                .map_err(|error| ApplyError::step("enter namespaces")(error.into()))?;
            mounts::build(&view)?;
        }
        let variables = self.connect(proxy.as_ref(), &place.id)?;
        // The directory that this process stands in is the machine's, not that of the view.
        std::env::set_current_dir(&place.cwd)
            .map_err(ApplyError::step("enter the working directory"))?;
        capabilities::drop_all()
            .map_err(|error| ApplyError::step("give up privileges")(error.into()))?;
        let is_enforced = rules::restrict(self.writable(&view), sandbox.unix_sockets)?;
        if self.method == Method::Landlock && !is_enforced {
            return Err(ApplyError::NotEnforced);
        }
        filter::install(self.sockets(), sandbox.unix_sockets)?;
        Ok(variables)
    }

    fn find_proxy(&self) -> Result<Option<UnixStream>, ApplyError> {
        match &self.sandbox.network {
            Network::Proxied { socket } => {
                UnixStream::connect(socket).map(Some).map_err(ApplyError::step("reach the proxy"))
            }
            Network::Open | Network::Off | Network::Loopback => Ok(None),
        }
    }

    /// Sets up what there is of a network.
    fn connect(
        &self,
        proxy: Option<&UnixStream>,
        id: &str,
    ) -> Result<Vec<(&'static str, String)>, ApplyError> {
        let has_loopback =
            matches!(self.sandbox.network, Network::Loopback | Network::Proxied { .. });
        if has_loopback && self.method == Method::Namespaces {
            system::raise_loopback()
                .map_err(ApplyError::step("switch on the loopback interface"))?;
        }
        let Some(proxy) = proxy else { return Ok(Vec::new()) };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT))
            .map_err(ApplyError::step("listen for the proxy"))?;
        greeting::hand_over(proxy, id, &listener)
            .map_err(ApplyError::step("hand the listener to the proxy"))?;
        let address = format!("http://127.0.0.1:{PROXY_PORT}");
        let own = "localhost,127.0.0.1,::1".to_owned();
        let proxies =
            ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
        let variables = proxies.into_iter().map(|name| (name, address.clone()));
        Ok(variables.chain([("NO_PROXY", own.clone()), ("no_proxy", own)]).collect())
    }

    fn writable<'a>(&self, view: &'a View) -> impl Iterator<Item = &'a Path> {
        let devices: &[&str] = if self.method == Method::Landlock { &HARMLESS } else { &["/dev"] };
        let places = view.iter().filter(|(_, mode)| *mode == Mode::Writable);
        places.map(|(path, _)| path).chain(devices.iter().map(Path::new))
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
