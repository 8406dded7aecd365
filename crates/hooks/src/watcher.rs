//! What others see of hooks: when one starts and ends, and what one says when it is no longer waited for.

use centurion_protocol::AgentId;
use serde::Serialize;

use crate::event::Event;

/// A hook starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HookStarted {
    pub hook_id: String,
    /// Such as `SessionStart:startup`.
    pub hook_name: String,
    pub hook_event: Event,
    /// The agent in which the event happened; absent for the main agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// What a person sees while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
}

/// A hook has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HookResponse {
    pub hook_id: String,
    pub hook_name: String,
    pub hook_event: Event,
    /// The agent in which the event happened; absent for the main agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// All that it printed.
    pub output: String,
    pub stdout: String,
    pub stderr: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    pub outcome: HookOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HookOutcome {
    Success,
    Error,
    Cancelled,
}

/// What a hook said that the event did not wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateReply {
    pub hook_name: String,
    pub event: Event,
    /// The agent in which the event happened; `None` for the main agent.
    pub agent: Option<AgentId>,
    /// What the model reads with its next turn, as it reads the context of other hooks.
    pub context: Vec<String>,
    /// What wakes the model, if it has nothing to do.
    pub wakes: Option<String>,
    /// Why the hook had no effect.
    pub error: Option<String>,
}

/// An observer of hooks. Called from the task that runs the hook: it must not block.
pub trait HookWatcher: Send + Sync {
    fn started(&self, hook: HookStarted);
    fn ended(&self, hook: HookResponse);
    fn late(&self, reply: LateReply);
}
