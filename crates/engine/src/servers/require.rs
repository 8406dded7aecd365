//! Servers that an agent cannot work without: `requiredMcpServers`.

use std::time::Duration;

use centurion_mcp::{Connection, State};
use futures_util::future::join_all;
use globset::GlobBuilder;

use super::Servers;

/// How long a server that is being connected may keep an agent waiting.
pub const REQUIRED_PATIENCE: Duration = Duration::from_secs(30);

impl Servers {
    /// Waits until every pattern names a server that is connected and has a tool. `Err` says which one does
    /// not, and why.
    pub(crate) async fn require(
        &self,
        patterns: &[String],
        patience: Duration,
    ) -> Result<(), String> {
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

    /// Whether every pattern names a server that is there with a tool, or that may still come.
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

fn unmet(pattern: &str, named: &[Connection], states: &[State]) -> String {
    let why = |(connection, state): (&Connection, &State)| {
        let name = connection.name();
        match (state, state.reason()) {
            (State::Connected, _) => format!("{name} is connected and has no tools"),
            (state, Some(reason)) => format!("{name} is {state}: {reason}"),
            (state, None) => format!("{name} is {state}"),
        }
    };
    let reasons: Vec<String> = named.iter().zip(states).map(why).collect();
    let reasons =
        if reasons.is_empty() { "no server has this name".to_owned() } else { reasons.join("; ") };
    format!("the MCP server `{pattern}` is required and cannot be used: {reasons}")
}
