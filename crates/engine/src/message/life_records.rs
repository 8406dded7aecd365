//! The kinds of records by which a transcript tells of an agent's life.

pub(crate) const SPAWN: &str = "agent_spawn";
pub(crate) const RESUME: &str = "agent_resume";
pub(crate) const END: &str = "agent_end";
/// The mark of the first message of an agent that begins with another agent's conversation.
pub(crate) const ENTERED: &str = "sub_agent_entered";
