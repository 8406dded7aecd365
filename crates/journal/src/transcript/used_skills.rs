//! The skills that an agent was told in a conversation, from its record.

use centurion_protocol::transcript::AttachmentBody;
use serde::{Deserialize, Serialize};

use super::{boundary, line_around, parse, places};

/// The subtype of the note about a skill that an agent was told.
pub const SKILL_USED: &str = "skill_used";

/// A skill with the text that an agent was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedSkill {
    pub name: String,
    pub text: String,
}

/// The skills that an agent was told in this conversation, each once, with the text of the last time. Those that were
/// used last come last.
pub fn used_skills(text: &[u8]) -> Vec<UsedSkill> {
    let mut used: Vec<UsedSkill> = Vec::new();
    for (_, skill) in notes(text) {
        used.retain(|it| it.name != skill.name);
        used.push(skill);
    }
    used
}

/// The texts that the conversation still has: those that were told since its last boundary.
pub(super) fn told_skills(text: &[u8], is_side: bool) -> Vec<UsedSkill> {
    let notes = notes(text);
    if notes.is_empty() {
        return Vec::new();
    }
    let start = boundary::last(text, is_side).unwrap_or(0);
    notes.into_iter().filter(|(at, _)| *at >= start).map(|(_, skill)| skill).collect()
}

/// The notes of the branch that the transcript ends with, each with its place.
fn notes(text: &[u8]) -> Vec<(usize, UsedSkill)> {
    let read = |at: usize| Some((at, parse(line_around(text, at))?.note(SKILL_USED)?));
    let mark = format!("\"subtype\":\"{SKILL_USED}\"");
    let mut notes: Vec<(usize, UsedSkill)> =
        places(text, mark.as_bytes()).into_iter().filter_map(read).collect();
    if notes.is_empty() {
        return notes;
    }
    let mark = format!("\"type\":\"{}\"", AttachmentBody::BRANCH);
    for at in places(text, mark.as_bytes()) {
        let Some(view) = parse(line_around(text, at)) else { continue };
        if view.attachment_kind().as_deref() != Some(AttachmentBody::BRANCH) {
            continue;
        }
        let from = view.parent_uuid.and_then(|parent| boundary::place(text, parent)).unwrap_or(0);
        // Notes in between are on another branch.
        notes.retain(|(place, _)| !(from..at).contains(place));
    }
    notes
}
