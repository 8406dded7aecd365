//! The user's rules about started agents.

use std::time::Duration;

use centurion_permissions::Mode;
use indexmap::IndexMap;
use serde::Deserialize;

use crate::definition::limits::Limits;

/// The way in which the main agent works with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionMode {
    #[default]
    Normal,
    /// It does nothing itself: it starts agents, which all run in the background.
    Coordinator,
    /// It never waits, so that a person can always speak to it.
    Assistant,
    /// It acts without being asked, and waits for no agent.
    Proactive,
}

/// The user's rules about started agents.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct DelegationRules {
    pub limits: Limits,
    /// Models for types of agents.
    pub models: IndexMap<String, String>,
    /// The model of agents that name none.
    pub subagent_model: Option<String>,
    /// The permission mode of agents that name none; `None` is that of the agent that starts them.
    pub child_mode: Option<Mode>,
    /// True if agents run in the background unless their call wants to wait.
    pub background: bool,
    /// True if nothing at all runs in the background.
    pub background_is_off: bool,
    /// After how long a call that waits for an agent stops waiting.
    pub auto_background: Option<Duration>,
    /// The longest silence of a background agent; `None` is for ever.
    pub stall: Option<Duration>,
    /// The longest wait of a finished session for background agents; `None` is for ever.
    pub wait: Option<Duration>,
    pub mode: SessionMode,
    /// True if an interrupt also ends agents in the background.
    pub interrupt_ends_background: bool,
    /// True if the effort of the session holds for all agents, whatever they ask for.
    pub effort_is_fixed: bool,
    /// True if hosts see what agents in the foreground say and think.
    pub forwards_text: bool,
    /// Added to the system prompt of every agent that another one starts.
    pub append_prompt: Option<String>,
    /// True if agents can be forked. All agents then run in the background.
    pub forks: bool,
    /// True if a person may have prompts come again and again, whatever models may schedule.
    pub loops: bool,
    /// True if a small model says now and then what agents in the background are doing.
    pub summaries: bool,
}

impl Default for DelegationRules {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            models: IndexMap::new(),
            subagent_model: None,
            child_mode: None,
            background: false,
            background_is_off: false,
            auto_background: None,
            stall: Some(Duration::from_mins(10)),
            wait: Some(Duration::from_mins(10)),
            mode: SessionMode::Normal,
            interrupt_ends_background: false,
            effort_is_fixed: false,
            forwards_text: false,
            append_prompt: None,
            forks: false,
            loops: false,
            summaries: false,
        }
    }
}
