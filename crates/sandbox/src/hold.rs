//! Resources that a process outside holds while a command runs.

use std::io;
use std::os::unix::net::UnixStream;

use crate::placeholders::Placeholders;
use crate::proxy::greeting;
use crate::{CommandPlace, Method, Plan};

/// Held by the process that watches a command, until all processes of the command have ended.
#[derive(Debug, Default)]
pub struct Hold {
    _placeholders: Placeholders,
    /// While these are open, their proxies serve the command.
    _proxies: Vec<UnixStream>,
}

impl Plan {
    /// Prepares the parts that the command cannot prepare itself. Must be called before the command starts.
    pub fn hold(&self, place: &CommandPlace) -> io::Result<Hold> {
        let placeholders = match self.method {
            Method::Namespaces | Method::Bubblewrap(_) => Placeholders::create(&self.sandbox)?,
            // Landlock could not keep a command from removing them.
            Method::Landlock => Placeholders::default(),
        };
        let proxies = self.sandbox.proxies().into_iter().map(|socket| {
            let proxy = UnixStream::connect(socket)?;
            greeting::hold(&proxy, &place.id)?;
            Ok(proxy)
        });
        let proxies = proxies.collect::<io::Result<_>>()?;
        Ok(Hold { _placeholders: placeholders, _proxies: proxies })
    }
}
