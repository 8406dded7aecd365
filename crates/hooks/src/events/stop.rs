//! An agent begins, wants to stop, or had to.

use std::path::Path;

use centurion_protocol::{AgentId, Env};
use serde::Serialize;

use crate::event::Event;
use crate::input::{Common, EventInput};
use crate::reply::{self, Reply};

/// An agent that another one started begins. Hooks may add context and cannot keep it from running.
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

/// The main agent is done.
#[derive(Clone, Debug, Serialize)]
pub struct Stop<'a> {
    /// Whether it goes on only because a hook wanted it to.
    pub stop_hook_active: bool,
    pub last_assistant_message: &'a str,
    pub background_tasks: &'a [BackgroundWork],
    pub session_crons: &'a [ScheduledWork],
}

/// An agent that another one started is done.
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

/// Something that still runs.
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

/// Something that will run at its time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ScheduledWork {
    pub id: String,
    pub schedule: String,
    pub recurring: bool,
    pub prompt: String,
}

/// What hooks say to an agent that wants to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopVerdict {
    /// What it has to do first.
    pub feedback: Option<String>,
    /// Whether it goes on: it has something to do, or to know.
    pub should_continue: bool,
}

impl StopVerdict {
    fn of(replies: &[Reply]) -> Self {
        let feedback = reply::blocks(replies);
        let has_context =
            replies.iter().filter_map(Reply::specific).any(|it| it.additional_context.is_some());
        Self { should_continue: feedback.is_some() || has_context, feedback }
    }

    /// What the model reads.
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

/// How often in a row hooks may keep one agent from stopping.
#[derive(Clone, Debug)]
pub struct StopCap {
    /// `None` where there is no limit.
    most: Option<u32>,
    in_a_row: u32,
}

impl StopCap {
    const USUAL: u32 = 8;

    /// As the environment has it: `CLAUDE_CODE_STOP_HOOK_BLOCK_CAP`, where zero means no limit.
    pub fn new(env: &Env) -> Self {
        let most = env.number("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP").unwrap_or(Self::USUAL);
        Self { most: (most > 0).then_some(most), in_a_row: 0 }
    }

    /// Whether the agent goes on. A verdict that lets it stop begins the count anew.
    pub fn should_continue(&mut self, verdict: &StopVerdict) -> bool {
        let may = self.most.is_none_or(|most| self.in_a_row < most);
        let continues = verdict.should_continue && may;
        self.in_a_row = if continues { self.in_a_row + 1 } else { 0 };
        continues
    }

    /// Whether the agent is at work only because a hook kept it from stopping.
    pub fn is_active(&self) -> bool {
        self.in_a_row > 0
    }
}

/// An agent could not go on.
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
