//! An agent starts, wants to stop, or failed.

use std::path::Path;

use centurion_protocol::{AgentId, Env};
use serde::Serialize;

use crate::event::Event;
use crate::input::{Common, EventInput};
use crate::reply::{self, Reply};

/// A subagent starts. Hooks may add context but cannot block it.
#[derive(Clone, Debug, Serialize)]
pub struct SubagentStart<'a> {
    pub agent_id: &'a AgentId,
    pub agent_type: &'a str,
}

impl EventInput for SubagentStart<'_> {
    const EVENT: Event = Event::SubagentStart;
    type Verdict = ();

    fn subject(&self) -> Option<&str> {
        Some(self.agent_type)
    }

    fn fold(&self, _: &Common, _: &[Reply]) {}
}

/// The main agent wants to stop.
#[derive(Clone, Debug, Serialize)]
pub struct Stop<'a> {
    /// Whether it runs only because a hook kept it from stopping.
    pub stop_hook_active: bool,
    pub last_assistant_message: &'a str,
    pub background_tasks: &'a [BackgroundWork],
    pub session_crons: &'a [ScheduledWork],
}

/// A subagent wants to stop.
#[derive(Clone, Debug, Serialize)]
pub struct SubagentStop<'a> {
    pub stop_hook_active: bool,
    pub agent_id: &'a AgentId,
    pub agent_type: &'a str,
    pub agent_transcript_path: &'a Path,
    pub last_assistant_message: &'a str,
    pub background_tasks: &'a [BackgroundWork],
    pub session_crons: &'a [ScheduledWork],
}

/// A task that still runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BackgroundWork {
    pub id: String,
    /// `subagent`, `teammate`, `shell`, …
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A task that is scheduled.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ScheduledWork {
    pub id: String,
    pub schedule: String,
    pub recurring: bool,
    pub prompt: String,
}

/// The verdict of hooks about an agent that wants to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopVerdict {
    /// The work that it has to do first.
    pub feedback: Option<String>,
    /// Whether it continues: there is work, or context for it.
    pub should_continue: bool,
}

impl StopVerdict {
    fn of(replies: &[Reply]) -> Self {
        let feedback = reply::blocks(replies);
        let has_context =
            replies.iter().filter_map(Reply::specific).any(|it| it.additional_context.is_some());
        Self { should_continue: feedback.is_some() || has_context, feedback }
    }

    /// The text for the model.
    pub fn instruction(&self) -> Option<String> {
        self.feedback.as_ref().map(|feedback| format!("Stop hook feedback:\n{feedback}"))
    }
}

impl EventInput for Stop<'_> {
    const EVENT: Event = Event::Stop;
    type Verdict = StopVerdict;

    fn fold(&self, _: &Common, replies: &[Reply]) -> StopVerdict {
        StopVerdict::of(replies)
    }
}

impl EventInput for SubagentStop<'_> {
    const EVENT: Event = Event::SubagentStop;
    type Verdict = StopVerdict;

    fn subject(&self) -> Option<&str> {
        Some(self.agent_type)
    }

    fn fold(&self, _: &Common, replies: &[Reply]) -> StopVerdict {
        StopVerdict::of(replies)
    }
}

/// The limit on consecutive blocks of one agent's stop.
#[derive(Clone, Debug)]
pub struct StopCap {
    /// `None` where there is no limit.
    most: Option<u32>,
    in_a_row: u32,
}

impl StopCap {
    const USUAL: u32 = 8;

    /// The limit from the environment: `CLAUDE_CODE_STOP_HOOK_BLOCK_CAP`, where zero means no limit.
    pub fn new(env: &Env) -> Self {
        let most = env.number("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP").unwrap_or(Self::USUAL);
        Self { most: (most > 0).then_some(most), in_a_row: 0 }
    }

    /// Whether the agent continues. A verdict that lets it stop resets the count.
    pub fn should_continue(&mut self, verdict: &StopVerdict) -> bool {
        let may = self.most.is_none_or(|most| self.in_a_row < most);
        let continues = verdict.should_continue && may;
        self.in_a_row = if continues { self.in_a_row + 1 } else { 0 };
        continues
    }

    /// Whether the agent runs only because a hook kept it from stopping.
    pub fn is_active(&self) -> bool {
        self.in_a_row > 0
    }
}

/// An agent could not continue.
#[derive(Clone, Debug, Serialize)]
pub struct StopFailure<'a> {
    /// Such as `rate_limit`.
    pub error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_details: Option<&'a str>,
    pub last_assistant_message: &'a str,
}

impl EventInput for StopFailure<'_> {
    const EVENT: Event = Event::StopFailure;
    type Verdict = ();

    fn subject(&self) -> Option<&str> {
        Some(self.error)
    }

    fn fold(&self, _: &Common, _: &[Reply]) {}
}
