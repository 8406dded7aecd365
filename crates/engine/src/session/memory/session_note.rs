//! The note on a session: what it was about and how far it got, for the agent of a later one.

use centurion_config::agent_memory::{AgentMemory, NewNote, NoteKind};
use centurion_config::settings::MemoryTask;

use super::{EndedConversation, MemoryTaskError, date, question, redacted};
use crate::agent::shared::Shared;
use crate::turn::internal_fork::InternalForkError;

const QUESTION: &str = include_str!("../../definition/prompts/session_note.md");

/// The purpose in the journal.
const PURPOSE: &str = "session_memory";
/// The longest note.
const LARGEST: usize = 16 * 1024;

/// Writes the note, in the place of an earlier one on the same session.
pub(super) async fn write(
    shared: &Shared,
    EndedConversation { session, point }: &EndedConversation,
    notes: &AgentMemory,
    task: &MemoryTask,
) -> Result<(), MemoryTaskError> {
    let fork = question(shared, point, task, PURPOSE, QUESTION.trim().to_owned())?;
    let answer = redacted(shared, &fork.ask(shared).await?);
    let answer = answer[..answer.floor_char_boundary(LARGEST)].trim();
    let (description, text) = answer.split_once('\n').unwrap_or((answer, answer));
    let text = text.trim();
    if text.is_empty() {
        return Err(InternalForkError::Empty.into());
    }
    let description = description.trim_start_matches(['#', ' ']).to_owned();
    let note = NewNote { kind: NoteKind::Project, description, text: text.to_owned() };
    Ok(notes.put_session_note(*session, &note, &date(shared))?)
}
