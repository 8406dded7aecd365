//! What has to be held from outside for as long as a command runs.

use std::io;
use std::os::unix::net::UnixStream;

use crate::placeholders::Placeholders;
use crate::proxy::greeting;
use crate::{Method, Network, Place, Plan};

/// Held by whoever watches over a command, until nothing of it is left.
#[derive(Debug, Default)]
pub struct Hold {
    _placeholders: Placeholders,
    /// As long as this is open, the proxy serves the command.
    _proxy: Option<UnixStream>,
}

impl Plan {
    /// Prepares for a command what it cannot do itself. To be called before the command starts.
    pub fn hold(&self, place: &Place) -> io::Result<Hold> {
        let placeholders = match self.method {
            Method::Namespaces | Method::Bubblewrap(_) => Placeholders::create(&self.sandbox)?,
            // It could not keep anybody from removing them.
            Method::Landlock => Placeholders::default(),
        };
        let proxy = match &self.sandbox.network {
            Network::Proxied { socket } => {
                let proxy = UnixStream::connect(socket)?;
                greeting::hold(&proxy, &place.id)?;
                Some(proxy)
            }
            Network::Open | Network::Off | Network::Loopback => None,
        };
        Ok(Hold { _placeholders: placeholders, _proxy: proxy })
    }
}
