//! Limits on the time and the output of servers, from the environment.

use std::time::Duration;

use centurion_protocol::Env;

/// The largest limit that a tool may set for its own results, in characters.
const MOST_CHARACTERS: usize = 500_000;
const CHARACTERS_PER_TOKEN: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The time from the start of a server until it is ready.
    pub(crate) connect: Duration,
    /// The time for one call, unless the server's configuration sets another.
    pub(crate) call: Duration,
    /// The time without a sign of life, where the user has set it. Zero means no limit.
    idle: Option<Duration>,
    /// The most characters of one result.
    characters: usize,
}

impl Limits {
    pub(crate) fn new(env: &Env) -> Self {
        let tokens = env.number("MAX_MCP_OUTPUT_TOKENS").filter(|tokens| *tokens > 0);
        Self {
            connect: env.millis("MCP_TIMEOUT").unwrap_or(Duration::from_secs(30)),
            // Nearly 28 hours: a limit for forgotten calls.
            call: env.millis("MCP_TOOL_TIMEOUT").unwrap_or(Duration::from_secs(100_000)),
            idle: env.millis("CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT"),
            characters: tokens.unwrap_or(25_000_usize).saturating_mul(CHARACTERS_PER_TOKEN),
        }
    }

    /// The time that a call may go without a sign of life.
    pub(crate) fn idle(&self, is_remote: bool) -> Option<Duration> {
        let minutes = if is_remote { 5 } else { 30 };
        let idle = self.idle.unwrap_or(Duration::from_mins(minutes));
        (!idle.is_zero()).then_some(idle)
    }

    /// The most characters of a result; `asked` is the tool's own request.
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
