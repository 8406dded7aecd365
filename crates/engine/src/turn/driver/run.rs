//! One run of an agent: what it has done and used so far, and how it ends.

use std::time::Duration;

use centurion_protocol::sdk::PermissionDenial;
use centurion_protocol::{Outcome, ReportedUsage, StopReason, ToolUse};
use serde_json::Value;
use tokio::time::Instant;

use super::compact::CompactionCount;
use crate::agent::evidence::Evidence;
use crate::agent::task::Denial;

/// The usage of a run's requests.
#[derive(Debug, Default)]
pub(crate) struct RunUsage {
    pub(crate) total: ReportedUsage,
    /// Of the first answer.
    pub(crate) first: Option<ReportedUsage>,
    /// Of the last one.
    pub(crate) last: ReportedUsage,
    /// The cost of all of them.
    pub(crate) dollars: f64,
}

/// The state of one run until its outcome.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) started: Instant,
    pub(crate) turns: u32,
    pub(crate) api_time: Duration,
    pub(crate) times: RunTimes,
    pub(crate) used: RunUsage,
    pub(crate) text: String,
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) denials: Vec<PermissionDenial>,
    pub(crate) errors: Vec<String>,
    pub(crate) structured: Option<Value>,
    pub(crate) outcome: Outcome,
    /// True if a cancelled run was at its tools when it was cancelled.
    pub(crate) cancelled_in_tools: bool,
    /// The failure of the provider.
    pub(crate) failure: Option<ProviderFailure>,
    /// The effects of the calls.
    pub(crate) evidence: Evidence,
    /// Calls that were not allowed, and why.
    pub(crate) denial_reasons: Vec<Denial>,
    /// True if only words followed a denied call.
    pub(crate) ended_on_denial: bool,
    /// True if hooks know that the agent stops.
    pub(crate) told_stop: bool,
    /// The call that a hook put off.
    pub(crate) deferred: Option<ToolUse>,
    pub(crate) compactions: CompactionCount,
    /// The refused parts of the conversation that were replaced.
    pub(crate) refused: Vec<&'static str>,
}

/// The moments of a run, counted from its beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunTimes {
    /// The first request was sent.
    pub(crate) request: Option<Duration>,
    /// The first event of its answer came.
    pub(crate) event: Option<Duration>,
    /// The first piece of a block came.
    pub(crate) token: Option<Duration>,
    /// Observers were shown the first piece or block.
    pub(crate) shown: Option<Duration>,
}

/// A failure of a provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProviderFailure {
    /// The status of its answer, if there was one.
    pub(crate) status: Option<u16>,
    /// Its name for hosts and hooks.
    pub(crate) name: &'static str,
}

impl Run {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            turns: 0,
            api_time: Duration::ZERO,
            times: RunTimes::default(),
            used: RunUsage::default(),
            text: String::new(),
            stop_reason: None,
            denials: Vec::new(),
            errors: Vec::new(),
            structured: None,
            outcome: Outcome::Cancelled,
            cancelled_in_tools: false,
            failure: None,
            evidence: Evidence::default(),
            denial_reasons: Vec::new(),
            ended_on_denial: false,
            told_stop: false,
            deferred: None,
            compactions: CompactionCount::default(),
            refused: Vec::new(),
        }
    }
}
