//! The wait of first turns for servers that are still connecting.
//!
//! A tool that comes after the first request makes the provider read the whole conversation anew, so a short wait
//! is worth its time. A server that hangs must not hold a run up: later turns have its tools when it is there.

use std::time::Duration;

use centurion_config::agents::AgentDefinition;
use centurion_config::mcp::{McpScope, McpServer};
use centurion_mcp::{Connection, State, tool_name};
use futures_util::future::join_all;

use super::Servers;

/// The longest wait of an agent's first turn for servers that are still connecting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerPatience {
    /// For servers that were asked for: on the command line, there also by the name of a tool, by the host, or by the
    /// definition of an agent.
    pub asked_for: Duration,
    /// For all others, and for each of them once in a session.
    pub others: Duration,
}

impl ServerPatience {
    /// The same patience with all servers.
    pub const fn same(patience: Duration) -> Self {
        Self { asked_for: patience, others: patience }
    }
}

/// Tells whether a server is there because the command line, the host or a definition asks for it.
fn is_asked_for(server: &McpServer) -> bool {
    match server.origin.scope {
        McpScope::Flag | McpScope::Host | McpScope::Agent(_) => true,
        McpScope::Managed
        | McpScope::Local
        | McpScope::Project
        | McpScope::User
        | McpScope::Plugin(_) => false,
    }
}

impl Servers {
    /// Waits until every server is there or has failed, for so long at most. A server that was not asked for and was
    /// waited for in vain is not waited for again.
    pub(crate) async fn settle(&self, patience: ServerPatience) {
        let root = self.root();
        let wait = async |connection: Connection| {
            let name = connection.name();
            if is_asked_for(connection.server()) || root.lists_tools_of(name) {
                connection.ready(patience.asked_for).await;
            } else if !root.held().overdue.contains(name)
                && connection.ready(patience.others).await == State::Pending
            {
                root.held().overdue.insert(name.to_owned());
            }
        };
        join_all(self.active().into_iter().map(wait)).await;
        root.held().newcomers.clear();
    }

    /// A wait for the servers that were added since the last wait, where one is not there yet. It is made once for each.
    pub(crate) fn settle_newcomers(
        &self,
        patience: ServerPatience,
    ) -> Option<impl Future<Output = ()> + use<>> {
        let newcomers = std::mem::take(&mut self.root().held().newcomers);
        let is_awaited =
            |it: &Connection| newcomers.contains(it.name()) && it.state() == State::Pending;
        let awaited: Vec<Connection> = self.active().into_iter().filter(is_awaited).collect();
        (!awaited.is_empty()).then_some(async move {
            join_all(awaited.iter().map(|connection| connection.ready(patience.asked_for))).await;
        })
    }

    fn lists_tools_of(&self, server: &str) -> bool {
        self.held().asked_tools.iter().any(|tool| may_be_of(server, tool))
    }

    /// A wait for the servers whose tools a definition lists, where one is not there yet: a definition asks for them,
    /// and whether the tools that it lists are there is known when their servers are.
    pub(crate) fn settle_listed(
        &self,
        definition: &AgentDefinition,
        patience: ServerPatience,
    ) -> Option<impl Future<Output = ()> + use<>> {
        let tools = definition.tools.as_ref()?;
        let is_awaited = |it: &Connection| {
            it.state() == State::Pending && tools.iter().any(|tool| may_be_of(it.name(), tool))
        };
        let awaited: Vec<Connection> = self.active().into_iter().filter(is_awaited).collect();
        if awaited.is_empty() {
            return None;
        }
        Some(async move {
            join_all(awaited.iter().map(|connection| connection.ready(patience.asked_for))).await;
        })
    }
}

/// Tells whether what is listed asks for a tool of a server: `mcp__server__tool`, all of its tools, or a pattern.
fn may_be_of(server: &str, listed: &str) -> bool {
    if !listed.starts_with("mcp__") {
        // `*` takes what is there: it asks for no server.
        return false;
    }
    let prefix = tool_name(server, "");
    match listed.split_once('*') {
        Some((start, _)) => prefix.starts_with(start) || start.starts_with(&prefix),
        None => format!("{listed}__").starts_with(&prefix),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_asks_for_the_servers_whose_tools_it_names() {
        for listed in
            ["mcp__desk__greet", "mcp__desk", "mcp__desk__*", "mcp__desk__greet(a)", "mcp__*"]
        {
            assert!(may_be_of("desk", listed), "{listed}");
        }
        for listed in ["Read", "*", "mcp__desktop__greet", "mcp__e*", "mcp__desktop"] {
            assert!(!may_be_of("desk", listed), "{listed}");
        }
    }
}
