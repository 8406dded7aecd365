//! The limits of delegation: depth, number, rate, money, tokens and turns.
//!
//! [`Limits`] is what a person wrote, read once. [`SpawnGate`] counts the agents that are started. Slots and
//! budgets have files of their own.

use std::collections::VecDeque;
use std::str::FromStr;
use std::time::Duration;

use centurion_config::settings::{Sourced, SubagentLimits};
use centurion_protocol::Env;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::time::Instant;

use crate::money::budget::Limit;

const DEPTH_VARIABLE: &str = "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH";
const RUNNING_VARIABLE: &str = "CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS";
const MINUTE: Duration = Duration::from_mins(1);

/// The limits of agents that other agents start. Zero means that none may.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// The greatest depth of agents below the main one.
    pub depth: u32,
    /// The most agents that may compute at once; more wait their turn.
    pub running: usize,
    /// The most agents that may be started in a session.
    pub spawns: Option<u64>,
    pub spawns_per_minute: Option<u64>,
    /// The budget of one agent with everything below it, over all its runs.
    pub budget: Limit,
    /// The most requests of one agent in each run. Its spending is added up over all
    /// its runs; turns are not, because a caller that asks it for more means it to have some.
    pub turns: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: SubagentLimits::DEPTH,
            running: to_count(SubagentLimits::RUNNING),
            spawns: None,
            spawns_per_minute: None,
            budget: Limit::default(),
            turns: None,
        }
    }
}

/// A variable that does not hold a limit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{variable} must be a whole number, and is `{value}`; help: set it to a number or unset it"
)]
pub struct LimitError {
    pub variable: &'static str,
    pub value: String,
}

impl Limits {
    /// Reads the settings, and above them the environment.
    pub fn new(settings: &SubagentLimits, env: &Env) -> Result<Self, LimitError> {
        let default = Self::default();
        let running = settings.running.as_ref().map(|it| to_count(it.value));
        Ok(Self {
            depth: variable(env, DEPTH_VARIABLE)?
                .or(value(settings.depth.as_ref()))
                .unwrap_or(default.depth),
            running: variable(env, RUNNING_VARIABLE)?.or(running).unwrap_or(default.running),
            spawns: value(settings.spawns.as_ref()),
            spawns_per_minute: value(settings.spawns_per_minute.as_ref()),
            budget: Limit {
                dollars: value(settings.budget_usd.as_ref()),
                tokens: value(settings.tokens.as_ref()),
            },
            turns: value(settings.turns.as_ref()),
        })
    }
}

fn value<T: Copy>(sourced: Option<&Sourced<T>>) -> Option<T> {
    sourced.map(|it| it.value)
}

fn to_count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn variable<N: FromStr>(env: &Env, variable: &'static str) -> Result<Option<N>, LimitError> {
    let Some(text) = env.get(variable) else { return Ok(None) };
    let wrong = |_| LimitError { variable, value: text.to_owned() };
    text.trim().parse().map(Some).map_err(wrong)
}

/// Counts the agents that a session starts, and refuses those that are too many.
#[derive(Debug)]
pub(crate) struct SpawnGate {
    total: Option<u64>,
    per_minute: Option<u64>,
    state: Mutex<SpawnCounts>,
}

#[derive(Debug, Default)]
struct SpawnCounts {
    total: u64,
    /// The starts of the last minute, the oldest first; kept only where their number is limited.
    recent: VecDeque<Instant>,
}

/// The reason why no agent may be started now. The model that wanted it reads this.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum SpawnRefused {
    #[error("no agent may be started here: do the work yourself (the setting {0} is 0)")]
    Never(&'static str),
    #[error(
        "no more agents may be started in this session, which has started {limit}: do what is left \
         yourself, or say what is missing (the setting {TOTAL} is {limit})"
    )]
    Total { limit: u64 },
    #[error(
        "too many agents were started in the last minute: try again in {}, or do the work yourself \
         (the setting {PER_MINUTE} is {limit})",
        seconds(*wait)
    )]
    Rate {
        limit: u64,
        /// The time until the next one may be started.
        wait: Duration,
    },
}

const TOTAL: &str = "subagents.limits.spawns";
const PER_MINUTE: &str = "subagents.limits.spawnsPerMinute";

/// Whole seconds, rounded up, as a person says them.
fn seconds(wait: Duration) -> String {
    match wait.as_secs() + u64::from(wait.subsec_nanos() > 0) {
        1 => "1 second".to_owned(),
        seconds => format!("{seconds} seconds"),
    }
}

impl SpawnGate {
    pub(crate) fn new(limits: &Limits) -> Self {
        let (total, per_minute) = (limits.spawns, limits.spawns_per_minute);
        Self { total, per_minute, state: Mutex::default() }
    }

    /// Counts one agent that is about to be started, unless it is one too many. A refused one does not
    /// count.
    pub(crate) fn admit(&self) -> Result<(), SpawnRefused> {
        let mut state = self.state.lock();
        match (self.total, self.per_minute) {
            (Some(0), _) => return Err(SpawnRefused::Never(TOTAL)),
            (_, Some(0)) => return Err(SpawnRefused::Never(PER_MINUTE)),
            (Some(limit), _) if state.total >= limit => return Err(SpawnRefused::Total { limit }),
            _ => {}
        }
        if let Some(limit) = self.per_minute {
            let now = Instant::now();
            while state.recent.front().is_some_and(|it| now.duration_since(*it) >= MINUTE) {
                state.recent.pop_front();
            }
            let oldest = state.recent.front().filter(|_| state.recent.len() as u64 >= limit);
            if let Some(oldest) = oldest {
                let wait = MINUTE.saturating_sub(now.duration_since(*oldest));
                return Err(SpawnRefused::Rate { limit, wait });
            }
            state.recent.push_back(now);
        }
        state.total = state.total.saturating_add(1);
        Ok(())
    }

    /// The number of started agents.
    #[cfg(test)]
    pub(crate) fn spawned(&self) -> u64 {
        self.state.lock().total
    }
}

#[cfg(test)]
mod tests;
