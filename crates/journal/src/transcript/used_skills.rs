//! The skills that an agent was told in a conversation, from its record.

use serde::{Deserialize, Serialize};

use super::{line_around, places};

/// How the note is called of a skill that an agent was told.
pub const SKILL_USED: &str = "skill_used";

/// The skills that an agent was told in this conversation, each once, with the text of the last time. Those that were
/// used last come last.
pub fn used_skills(text: &[u8]) -> Vec<UsedSkill> {
    #[derive(Deserialize)]
    struct Note {
        data: UsedSkill,
    }
    let mut used: Vec<UsedSkill> = Vec::new();
    for at in places(text, b"\"subtype\":\"skill_used\"") {
        let Ok(Note { data }) = serde_json::from_slice(line_around(text, at)) else { continue };
        used.retain(|it| it.name != data.name);
        used.push(data);
    }
    used
}

/// A skill with the text that an agent was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedSkill {
    pub name: String,
    pub text: String,
}
