//! What one agent runs with, as plain data: the record of its start holds it, and the agent is resumed by it, in
//! this process or a later one. What acts for the user is not in it: see `Powers`.

use std::path::PathBuf;

use centurion_permissions::Mode;
use centurion_protocol::{AgentId, Effort, RecordId, Thinking, ToolUseId};
use centurion_team::TeamName;
use centurion_worktree::Slug;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definition::resolve::ToolView;

/// The effective options of one agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "a record, in which each says one thing")]
pub(crate) struct AgentSpec {
    pub(crate) agent_type: String,
    /// Who defined the type.
    pub(crate) source: String,
    pub(crate) color: String,
    pub(crate) description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<AgentId>,
    pub(crate) depth: u32,
    /// The types from the main agent's children down to this one.
    pub(crate) path: Vec<String>,
    /// The call that started it.
    pub(crate) call: ToolUseId,
    pub(crate) model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) effort: Option<Effort>,
    pub(crate) thinking: Thinking,
    /// The mode at its start.
    pub(crate) mode: Mode,
    /// The mode that it had by itself. When it is resumed, this gives no more than the resuming agent has.
    #[serde(default)]
    pub(crate) own_mode: Option<Mode>,
    /// How many requests it may send in each of its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_turns: Option<u32>,
    pub(crate) tools: ToolView,
    /// Rules that single tools are confined to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) only: Vec<String>,
    /// The sections of the system prompt; none for a fork, which sends its parent's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) system: Vec<String>,
    pub(crate) cwd: PathBuf,
    /// Whether it changes nothing, by no tool and no command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) only_reads: bool,
    /// Whether it is told what the instruction files say.
    pub(crate) instructions: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reminder: Option<String>,
    /// What its answer must fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) schema: Option<Value>,
    pub(crate) in_background: bool,
    /// Whether it is not expected to be resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_one_shot: bool,
    /// What the call asked for, where it could differ from what is in force.
    pub(crate) requested: Value,
    /// The types that it may start; `None` is all. A fork may start what its parent may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) startable: Option<String>,
    /// Whether it or an agent above it is a fork.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_below_fork: bool,
    /// The conversation of its parent that it was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<ContextRef>,
    /// Where it works apart from others: in a worktree of its own, or in that of an agent above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) worktree: Option<WorktreeSpec>,
    /// The team that it is a member of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) team: Option<Membership>,
}

/// An agent as a member of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Membership {
    pub(crate) name: TeamName,
    /// Whether it changes nothing until the lead has approved its plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) must_plan: bool,
    /// The mode that its definition limits it to when its plan is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<Mode>,
}

/// Where an agent works apart, as its record says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorktreeSpec {
    pub(crate) path: PathBuf,
    /// The checkout that it is kept out of.
    pub(crate) checkout: PathBuf,
    /// The checkout of the agent that it works for, where git knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) caller_top: Option<PathBuf>,
    /// Directories of the checkout that links in the worktree lead to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) links: Vec<PathBuf>,
    /// Where the agent stood that it works for.
    pub(crate) caller: PathBuf,
    /// Nothing for one that a hook made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) git: Option<GitWorktree>,
}

/// A worktree that git knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GitWorktree {
    pub(crate) slug: Slug,
    pub(crate) branch: String,
    /// The commit that it began at.
    pub(crate) base: String,
    /// The git directories: its own, and the one that it belongs to.
    pub(crate) own: PathBuf,
    pub(crate) common: PathBuf,
}

/// A conversation that is kept in the transcript of another agent, the parent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContextRef {
    /// The definition of the parent, whose hooks bind a fork as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<DefinitionRef>,
    /// The last record of it; `None` where the parent's transcript is not kept.
    pub(crate) record: Option<RecordId>,
    pub(crate) messages: usize,
    /// How many bytes are shared.
    pub(crate) bytes: usize,
    /// A digest of all that was sent.
    pub(crate) digest: String,
    /// The digest under which the parent's transcript keeps system prompt and tools. `None` where the agent has its own.
    pub(crate) prefix: Option<String>,
}

/// A definition by its name and its source.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DefinitionRef {
    pub(crate) name: String,
    pub(crate) source: String,
}

impl AgentSpec {
    /// Whether it goes on with its parent's conversation as if it were the parent.
    pub(crate) fn is_fork(&self) -> bool {
        self.context.as_ref().is_some_and(|context| context.prefix.is_some())
    }
}

/// Hooks that come with an agent.
#[derive(Clone, Debug)]
pub(crate) struct BroughtHooks {
    pub(crate) value: Value,
    pub(crate) path: PathBuf,
    /// The skill that brings them; `None` for the agent's own definition.
    pub(crate) skill: Option<String>,
}

/// What a definition brings, and where it is written.
#[derive(Clone, Debug)]
pub(crate) struct Brought {
    pub(crate) value: Value,
    pub(crate) path: PathBuf,
}
