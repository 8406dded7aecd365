//! Everything that one agent runs with, as plain data: the record of its start holds it, and whoever sets
//! the agent to work again, in this process or a later one, needs nothing else.

use std::path::PathBuf;

use centurion_permissions::Mode;
use centurion_protocol::{AgentId, Effort, Thinking, ToolUseId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::resolve::ToolView;

/// The effective options of one agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AgentSpec {
    pub(crate) agent_type: String,
    /// Who defined the type.
    pub(crate) source: String,
    pub(crate) color: String,
    pub(crate) description: String,
    pub(crate) name: Option<String>,
    pub(crate) parent: Option<AgentId>,
    pub(crate) depth: u32,
    /// The types from the main agent's children down to this one.
    pub(crate) path: Vec<String>,
    /// The call that started it.
    pub(crate) call: ToolUseId,
    pub(crate) model: String,
    pub(crate) effort: Option<Effort>,
    pub(crate) thinking: Thinking,
    pub(crate) mode: Mode,
    /// How many requests it may send in each of its runs.
    pub(crate) max_turns: Option<u32>,
    pub(crate) tools: ToolView,
    /// Rules that single tools are confined to.
    pub(crate) only: Vec<String>,
    /// The directory of its memory.
    #[serde(default)]
    pub(crate) memory: Option<PathBuf>,
    /// The sections of the system prompt.
    pub(crate) system: Vec<String>,
    pub(crate) cwd: PathBuf,
    /// Whether it is told what the instruction files say.
    pub(crate) instructions: bool,
    pub(crate) reminder: Option<String>,
    /// The hooks of its definition and of the skills that it knows from the start.
    #[serde(default)]
    pub(crate) hooks: Vec<BroughtHooks>,
    pub(crate) mcp_servers: Option<Brought>,
    /// What its answer must fit.
    pub(crate) schema: Option<Value>,
    pub(crate) in_background: bool,
    /// Whether nobody is expected to speak to it again.
    pub(crate) is_one_shot: bool,
    /// What the call asked for, where it could differ from what is in force.
    pub(crate) requested: Value,
}

/// Hooks that come with an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BroughtHooks {
    pub(crate) value: Value,
    pub(crate) path: PathBuf,
    /// The skill that brings them; `None` for the agent's own definition.
    #[serde(default)]
    pub(crate) skill: Option<String>,
}

/// What a definition brings, and where it is written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Brought {
    pub(crate) value: Value,
    pub(crate) path: PathBuf,
}
