//! Servers that an agent cannot work without: `requiredMcpServers`.

use std::time::Duration;

use centurion_mcp::{Connection, State};
use futures_util::future::join_all;
use globset::GlobBuilder;
use thiserror::Error;

use super::{Servers, reason_suffix};

/// The longest wait of an agent for a required server.
pub const REQUIRED_PATIENCE: Duration = Duration::from_secs(30);

/// The reason why an agent has to do without a server that it requires.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequireError {
    #[error("the MCP server `{pattern}` is required and cannot be used: no server has this name")]
    NotConfigured { pattern: String },
    #[error("the MCP server `{pattern}` is required and cannot be used: {}", joined(servers))]
    NotUsable { pattern: String, servers: Vec<UnusableServer> },
}

/// The reason why a server does not count as one that is there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnusableServer {
    #[error("{name} is connected and has no tools")]
    NoTools { name: String },
    #[error("{name} is {state}{}", reason_suffix(state))]
    NotConnected { name: String, state: State },
}

fn joined(servers: &[UnusableServer]) -> String {
    servers.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl Servers {
    /// Waits until every pattern names a server that is connected and has a tool. `Err` says which one does
    /// not, and why.
    pub(crate) async fn require(
        &self,
        patterns: &[String],
        patience: Duration,
    ) -> Result<(), RequireError> {
        for pattern in patterns {
            let named = self.named(pattern);
            let ready = named.iter().map(|connection| connection.ready(patience));
            let states = join_all(ready).await;
            let is_met = |(connection, state): (&Connection, &State)| {
                *state == State::Connected && !connection.tools().is_empty()
            };
            if !named.iter().zip(&states).any(is_met) {
                return Err(unmet(pattern, &named, &states));
            }
        }
        Ok(())
    }

    /// Tells whether every pattern names a server that is there with a tool, or that may still come.
    pub(crate) fn may_meet(&self, patterns: &[String]) -> bool {
        let may = |connection: &Connection| match connection.state() {
            State::Connected => !connection.tools().is_empty(),
            State::Pending => true,
            _ => false,
        };
        patterns.iter().all(|pattern| self.named(pattern).iter().any(may))
    }

    /// The servers that a pattern names, with `*` for anything.
    fn named(&self, pattern: &str) -> Vec<Connection> {
        let glob = GlobBuilder::new(pattern).case_insensitive(true).build();
        let Ok(glob) = glob.map(|glob| glob.compile_matcher()) else { return Vec::new() };
        self.active().into_iter().filter(|it| glob.is_match(it.name())).collect()
    }
}

fn unmet(pattern: &str, named: &[Connection], states: &[State]) -> RequireError {
    let pattern = pattern.to_owned();
    let why = |(connection, state): (&Connection, &State)| {
        let name = connection.name().to_owned();
        match state {
            State::Connected => UnusableServer::NoTools { name },
            state => UnusableServer::NotConnected { name, state: state.clone() },
        }
    };
    let servers: Vec<UnusableServer> = named.iter().zip(states).map(why).collect();
    if servers.is_empty() {
        RequireError::NotConfigured { pattern }
    } else {
        RequireError::NotUsable { pattern, servers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unmet_requirement_says_how_every_server_stands() {
        let failed = State::Failed { reason: "no such file".to_owned() };
        let servers = vec![
            UnusableServer::NoTools { name: "a".to_owned() },
            UnusableServer::NotConnected { name: "b".to_owned(), state: State::Pending },
            UnusableServer::NotConnected { name: "c".to_owned(), state: failed },
        ];
        assert_eq!(
            RequireError::NotUsable { pattern: "*".to_owned(), servers }.to_string(),
            "the MCP server `*` is required and cannot be used: \
             a is connected and has no tools; b is pending; c is failed: no such file"
        );
    }
}
