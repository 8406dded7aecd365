//! The effective options of one agent as plain data: the record of its start holds it, and the agent is resumed by it, in
//! this process or a later one. What acts for the user is not in it: see `Powers`.

use std::borrow::Cow;
use std::path::PathBuf;

use centurion_permissions::Mode;
use centurion_protocol::{AgentId, Effort, RecordId, Thinking, ToolUseId};
use centurion_team::TeamName;
use centurion_worktree::{HookedCheckout, Slug};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definition::resolve::ToolView;

/// The effective options of one agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "a record, in which each says one thing")]
pub(crate) struct AgentSpec {
    pub(crate) agent_type: String,
    /// The source of the type's definition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
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
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) thinking: Thinking,
    /// The mode at its start.
    pub(crate) mode: Mode,
    /// The mode that it had by itself. When it is resumed, this gives no more than the resuming agent has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) own_mode: Option<Mode>,
    /// The most requests in each of its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_turns: Option<u32>,
    pub(crate) tools: ToolView,
    /// Rules that single tools are confined to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) only: Vec<String>,
    /// The sections of the system prompt; none for a fork, which sends its parent's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) system: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub(crate) cwd: PathBuf,
    /// True if it changes nothing, by no tool and no command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) only_reads: bool,
    /// True if it is told what the instruction files say.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub(crate) instructions: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reminder: Option<String>,
    /// The schema of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) schema: Option<Value>,
    pub(crate) in_background: bool,
    /// True if it is not expected to be resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_one_shot: bool,
    /// The requested values, where others are in force.
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    pub(crate) requested: Value,
    /// The types that it may start; `None` is all. A fork may start what its parent may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) startable: Option<String>,
    /// True if it or an agent above it is a fork.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_below_fork: bool,
    /// The conversation of its parent that it was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<ContextRef>,
    /// The worktree that it works in: its own, or that of an agent above it.
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
    /// True if it changes nothing until the lead has approved its plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) must_plan: bool,
    /// The mode that its definition limits it to when its plan is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<Mode>,
}

/// The worktree of an agent, as its record holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorktreeSpec {
    pub(crate) path: PathBuf,
    /// The checkout that it is kept out of.
    pub(crate) checkout: PathBuf,
    /// The checkout of the agent that it works for, where git knows one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) caller_top: Option<PathBuf>,
    /// Further paths around it that it leaves alone: repositories, and the checkouts that this one is a submodule of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) kept: Vec<PathBuf>,
    /// Directories of the checkout that links in the worktree lead to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) links: Vec<PathBuf>,
    /// The directory of the agent that it works for.
    pub(crate) caller: PathBuf,
    /// Nothing for one that a hook made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) git: Option<GitWorktree>,
    /// One that a hook made, where it is a checkout of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hooked: Option<HookedCheckout>,
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
    /// The number of shared bytes.
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

fn yes() -> bool {
    true
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn nothing() -> Value {
    Value::Object(serde_json::Map::new())
}

fn is_nothing(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// The source of the definition of forks.
pub(crate) const BUILT_IN: &str = "built-in";

impl AgentSpec {
    /// The options as the record of a start holds them. That of a fork leaves out what follows from its being one, and the
    /// directory, which stands in the line of the record.
    pub(crate) fn for_record(&self) -> Cow<'_, Self> {
        if !self.is_fork() {
            return Cow::Borrowed(self);
        }
        let mut record = self.clone();
        record.is_below_fork = false;
        if record.source == BUILT_IN {
            record.source.clear();
        }
        record.own_mode = record.own_mode.filter(|own| *own != record.mode);
        if record.cwd.to_str().is_some() {
            record.cwd = PathBuf::new();
        }
        Cow::Owned(record)
    }

    /// The options that a record holds, whose line has this directory.
    pub(crate) fn restored(mut self, cwd: PathBuf) -> Self {
        if self.is_fork() {
            self.is_below_fork = true;
            if self.source.is_empty() {
                BUILT_IN.clone_into(&mut self.source);
            }
            self.own_mode = self.own_mode.or(Some(self.mode));
            if self.cwd.as_os_str().is_empty() {
                self.cwd = cwd;
            }
        }
        self
    }

    /// Tells whether it continues with its parent's conversation as if it were the parent.
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

/// A part that a definition brings, and its file.
#[derive(Clone, Debug)]
pub(crate) struct BroughtPart {
    pub(crate) value: Value,
    pub(crate) path: PathBuf,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(context: Option<Value>) -> AgentSpec {
        let mut spec = json!({
            "agentType": "fork", "source": BUILT_IN, "color": "blue", "description": "d", "depth": 1, "path": ["fork"],
            "call": "toolu_1", "model": "m", "thinking": "auto", "mode": "plan", "ownMode": "plan", "tools": "inherited",
            "cwd": "/code/project", "instructions": true, "inBackground": true, "requested": {}, "isBelowFork": true,
        });
        if let Some(context) = context {
            spec["context"] = context;
        }
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn the_record_of_a_fork_leaves_out_what_follows_from_its_being_one() {
        let context =
            json!({"record": null, "messages": 1, "bytes": 1, "digest": "d", "prefix": "p"});
        let fork = spec(Some(context));
        let record = serde_json::to_string(&*fork.for_record()).unwrap();
        for left_out in
            ["isBelowFork", "ownMode", "cwd", "built-in", "requested", "thinking", "instructions"]
        {
            assert!(!record.contains(left_out), "{left_out}: {record}");
        }
        let read: AgentSpec = serde_json::from_str(&record).unwrap();
        let read = read.restored("/code/project".into());
        assert_eq!(serde_json::to_value(&read).unwrap(), serde_json::to_value(&fork).unwrap());
        assert!(read.is_below_fork && read.instructions && read.own_mode == Some(Mode::Plan));
        assert_eq!((read.source.as_str(), read.cwd.to_str()), (BUILT_IN, Some("/code/project")));
    }

    #[test]
    fn the_record_of_another_agent_holds_all_of_it() {
        let agent = spec(None);
        let record = serde_json::to_string(&*agent.for_record()).unwrap();
        for held in ["isBelowFork", "ownMode", "cwd", "built-in"] {
            assert!(record.contains(held), "{held}: {record}");
        }
        let read: AgentSpec = serde_json::from_str(&record).unwrap();
        assert_eq!(read.restored("/elsewhere".into()).cwd.to_str(), Some("/code/project"));
    }
}
