//! How long servers may take and how much they may say, from the environment.

use std::time::Duration;

use centurion_protocol::Env;

/// A tool may raise its own bound up to this many characters.
const MOST_CHARACTERS: usize = 500_000;
const CHARACTERS_PER_TOKEN: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// From the start of a server until it is ready.
    pub(crate) connect: Duration,
    /// For one call, unless the server's configuration says otherwise.
    pub(crate) call: Duration,
    /// How long a call may go without a sign of life, where the user has said so. Zero is for ever.
    idle: Option<Duration>,
    /// What one result may hold.
    characters: usize,
}

impl Limits {
    pub(crate) fn new(env: &Env) -> Self {
        let tokens = env.number("MAX_MCP_OUTPUT_TOKENS").filter(|tokens| *tokens > 0);
        Self {
            connect: env.millis("MCP_TIMEOUT").unwrap_or(Duration::from_secs(30)),
            // Nearly 28 hours: a bound for what has been forgotten.
            call: env.millis("MCP_TOOL_TIMEOUT").unwrap_or(Duration::from_secs(100_000)),
            idle: env.millis("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT"),
            characters: tokens.unwrap_or(25_000_usize).saturating_mul(CHARACTERS_PER_TOKEN),
        }
    }

    /// How long a call may go without a sign of life.
    pub(crate) fn idle(&self, is_remote: bool) -> Option<Duration> {
        let minutes = if is_remote { 5 } else { 30 };
        let idle = self.idle.unwrap_or(Duration::from_mins(minutes));
        (!idle.is_zero()).then_some(idle)
    }

    /// What a result may hold; `asked` is what the tool itself asks for.
    pub(crate) fn characters(&self, asked: Option<usize>) -> usize {
        asked.map_or(self.characters, |asked| asked.min(MOST_CHARACTERS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_environment_or_the_documented_ones() {
        let limits = Limits::new(&Env::default());
        assert_eq!(limits.connect, Duration::from_secs(30));
        assert_eq!(limits.idle(true), Some(Duration::from_mins(5)));
        assert_eq!(limits.idle(false), Some(Duration::from_mins(30)));
        assert_eq!(limits.characters(None), 100_000);
        assert_eq!(limits.characters(Some(300_000)), 300_000);
        assert_eq!(limits.characters(Some(9_000_000)), 500_000);

        let limits = Limits::new(&Env::from([
            ("MCP_TIMEOUT", "5"),
            ("MCP_TOOL_TIMEOUT", "7"),
            ("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT", "0"),
            ("MAX_MCP_OUTPUT_TOKENS", "10"),
        ]));
        assert_eq!(limits.connect, Duration::from_millis(5));
        assert_eq!(limits.call, Duration::from_millis(7));
        assert_eq!(limits.idle(true), None);
        assert_eq!(limits.characters(None), 40);
    }
}
