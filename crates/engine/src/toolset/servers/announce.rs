//! Announcements of servers to an agent: their own instructions, and the names of tools that have to be
//! searched for. Told once, and again only where something changed.

use std::collections::{BTreeMap, BTreeSet};

use super::{Servers, is_connected};
use crate::toolset::toolbox::ServerTools;
use centurion_protocol::markup::contain;

/// The announcements made so far.
#[derive(Clone, Default)]
pub(crate) struct Announcements {
    instructions: BTreeMap<String, String>,
    deferred: BTreeSet<String>,
}

/// Announcements that an agent has read, and the version of the servers that it knows.
#[derive(Clone, Default)]
pub(crate) struct KnownServers {
    pub(crate) announced: Announcements,
    /// The version of the servers whose tools are in the toolbox.
    pub(crate) version: u64,
}

impl Announcements {
    /// The announcement to make now, if there is one.
    pub(crate) fn news(&mut self, servers: &Servers, served: &ServerTools) -> Option<String> {
        let mut parts = Vec::new();
        for connection in servers.active().iter().filter(|it| is_connected(it)) {
            let Some(text) = connection.instructions().filter(|text| !text.trim().is_empty())
            else {
                continue;
            };
            let name = connection.name().to_owned();
            if self.instructions.get(&name) != Some(&text) {
                parts.push(format!(
                    "What the MCP server {name} says about its tools:\n{}",
                    contain(text.trim())
                ));
                self.instructions.insert(name, text);
            }
        }
        let fresh: Vec<&str> =
            served.deferred.difference(&self.deferred).map(String::as_str).collect();
        if !fresh.is_empty() {
            parts.push(format!(
                "Tools that ToolSearch can load for you; they cannot be called before:\n{}",
                fresh.join("\n")
            ));
        }
        let is_known = |name: &&String| {
            !served.deferred.contains(*name) && !served.offered.contains_key(*name)
        };
        let gone: Vec<&str> = self.deferred.iter().filter(is_known).map(String::as_str).collect();
        if !gone.is_empty() {
            parts.push(format!("Tools that are no longer there:\n{}", gone.join("\n")));
        }
        self.deferred.clone_from(&served.deferred);
        (!parts.is_empty())
            .then(|| format!("<system-reminder>\n{}\n</system-reminder>", parts.join("\n\n")))
    }
}
