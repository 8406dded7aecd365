//! Extraction of facts for later sessions: facts that the model finds worth keeping, each added to a note.

use std::fmt::Write as _;

use centurion_config::agent_memory::{AgentMemory, NoteName, Notes};
use centurion_config::settings::MemoryTask;
use centurion_protocol::markup::contain;

use super::answer::{AnswerError, AnsweredNotes};
use super::{MemoryTaskError, date, question};
use crate::agent::fork_point::ForkPoint;
use crate::agent::shared::Shared;

const QUESTION: &str = include_str!("../../definition/prompts/extract_notes.md");

/// The purpose in the journal.
const PURPOSE: &str = "memory_extraction";
/// The most bytes of the present notes that the model is shown.
const MOST_SHOWN: usize = 32 * 1024;

/// Asks what is worth keeping, and writes it down.
pub(super) async fn extract(
    shared: &Shared,
    point: &ForkPoint,
    notes: &AgentMemory,
    task: &MemoryTask,
) -> Result<(), MemoryTaskError> {
    let seen = notes.notes()?;
    let text = QUESTION.trim().replace("{{notes}}", &present(&seen));
    let answer = question(shared, point, task, PURPOSE, text)?.ask(shared).await?;
    let answered = AnsweredNotes::read(&answer)?;
    let named = answered.notes.iter().map(|note| {
        let name = NoteName::meant(note.file.trim(), &seen);
        let name = name.ok_or_else(|| AnswerError::Name(note.file.clone()))?;
        Ok((name, note.to_note(shared)))
    });
    // All names are good before anything is written.
    for (name, note) in named.collect::<Result<Vec<_>, AnswerError>>()? {
        notes.add_note(&name, &note, &date(shared))?;
    }
    Ok(())
}

/// The notes that exist, each with its beginning.
fn present(notes: &Notes) -> String {
    let mut text = String::new();
    let files = notes.files.iter().filter(|(path, _)| !Notes::is_of_session(path));
    for (path, content) in files {
        let content = contain(content.trim());
        // Writing to memory cannot fail.
        let _ = write!(
            text,
            "<agent-memory file=\"{}\">\n{content}\n</agent-memory>\n",
            contain(&path.to_string_lossy())
        );
        if text.len() > MOST_SHOWN {
            text.truncate(text.floor_char_boundary(MOST_SHOWN));
            text.push_str("\n(there are more)");
            break;
        }
    }
    if text.is_empty() { "(none)".to_owned() } else { text.trim_end().to_owned() }
}
