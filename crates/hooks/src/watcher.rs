//! The observers' view of hooks: the start and the end of each, and late replies.

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
    /// The message that a person sees while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
}

/// A hook has printed something, and runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HookProgress {
    pub hook_id: String,
    pub hook_name: String,
    pub hook_event: Event,
    /// The agent in which the event happened; absent for the main agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Its output so far, or the end of a long one.
    pub output: String,
    pub stdout: String,
    pub stderr: String,
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
    /// Its whole output.
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

/// The reply of an asynchronous hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateReply {
    pub hook_name: String,
    pub event: Event,
    /// The agent in which the event happened; `None` for the main agent.
    pub agent: Option<AgentId>,
    /// The context for the model's next turn, in the form of other hooks' context.
    pub context: Vec<String>,
    /// The text that wakes an idle model.
    pub wakes: Option<String>,
    /// The reason that the hook had no effect.
    pub error: Option<String>,
}

/// An observer of hooks. Called from the task that runs the hook: it must not block.
pub trait HookWatcher: Send + Sync {
    fn started(&self, hook: HookStarted);

    fn progressed(&self, hook: HookProgress) {
        let _ = hook;
    }

    fn ended(&self, hook: HookResponse);
    fn late(&self, reply: LateReply);
}
