//! The events, each with its input for hooks and its verdict; one file for each family.

mod compact;
mod display;
mod elicitation;
mod model;
mod places;
mod prompt;
mod session;
mod stop;
mod tasks;
mod tools;
mod worktree;

pub use compact::{CompactTrigger, PostCompact, PreCompact};
pub use display::{MessageDisplay, Notification};
pub use elicitation::{Elicitation, ElicitationReply, ElicitationResult};
pub use model::{ModelSwitch, ModelSwitchVerdict, PostModelSwitch, PreModelSwitch};
pub use places::{ConfigChange, CwdChanged, DirectoryAdded, FileChanged, InstructionsLoaded};
pub use prompt::{PromptVerdict, UserPromptExpansion, UserPromptSubmit};
pub use session::{SessionEnd, SessionStart, SessionStartVerdict, Setup};
pub use stop::{
    BackgroundWork, ScheduledWork, Stop, StopCap, StopFailure, StopVerdict, SubagentStart,
    SubagentStop,
};
pub use tasks::{Task, TaskCompleted, TaskCreated, TeammateIdle};
pub use tools::{
    BatchCall, PermissionDenied, PermissionRequest, PostToolBatch, PostToolUse, PostToolUseFailure,
    PostToolVerdict, PreToolUse, PreToolVerdict,
};
pub use worktree::{WorktreeCreate, WorktreeRemove, WorktreeVerdict};

/// The reason of a block; `None` without a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block(pub Option<String>);

impl Block {
    pub(crate) fn of(replies: &[crate::Reply]) -> Self {
        Self(crate::reply::blocks(replies))
    }

    pub fn reason(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

#[cfg(test)]
mod tests;
