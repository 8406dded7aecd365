//! Consolidation: many notes become few, at most once a day. What is replaced or removed is kept beside.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use centurion_config::agent_memory::{AgentMemory, NoteName, Notes, Rearrangement};
use centurion_config::settings::MemoryTask;
use centurion_protocol::markup::contain;
use jiff::{SignedDuration, Timestamp};

use super::answer::{AnswerError, AnsweredNotes};
use super::{MemoryTaskError, date, paid_by};
use crate::agent::fork_point::ForkPoint;
use crate::agent::shared::Shared;
use crate::turn::internal_fork::InternalFork;

const SYSTEM: &str = include_str!("../../definition/prompts/consolidate_notes.md");

/// The purpose in the journal.
const PURPOSE: &str = "memory_consolidation";
/// The least notes on sessions, or notes in all, for a consolidation.
const MANY_SESSIONS: usize = 5;
const MANY_NOTES: usize = 40;
/// The least time between two consolidations.
const REST: SignedDuration = SignedDuration::from_hours(24);
/// The most bytes that the model reads.
const MOST_READ: usize = 256 * 1024;
/// The format of the time of a consolidation, which is part of a name.
const TIME: &str = "%Y%m%dT%H%M%SZ";

/// Consolidates the notes if that is due.
pub(super) async fn consolidate(
    shared: &Shared,
    point: &ForkPoint,
    memory: &AgentMemory,
    task: &MemoryTask,
) -> Result<(), MemoryTaskError> {
    let now = shared.world.now();
    let time = now.strftime(TIME).to_string();
    let is_due = |notes: &Notes, last: Option<&str>| is_due(notes, last, now);
    let Some(seen) = memory.claim_consolidation(&time, is_due)? else { return Ok(()) };
    let shown = shown(&seen);
    let own = &point.settings.model;
    let fork = InternalFork::with_small_model(shared, own, PURPOSE, SYSTEM.trim(), render(&shown));
    let fork = InternalFork { journal: point.journal.clone(), ..fork };
    let answer = paid_by(shared, task, fork)?.ask(shared).await?;
    let wanted = read(shared, &AnsweredNotes::read(&answer)?, &seen, &shown)?;
    Ok(memory.rearrange(&seen, &wanted, &time, &date(shared))?)
}

/// Tells whether there are many notes, and the last consolidation is long ago.
fn is_due(notes: &Notes, last: Option<&str>, now: Timestamp) -> bool {
    let sessions = notes.files.keys().filter(|path| Notes::is_of_session(path)).count();
    let last = last.and_then(|it| jiff::civil::DateTime::strptime(TIME, it).ok());
    let last = last.and_then(|it| it.to_zoned(jiff::tz::TimeZone::UTC).ok());
    let has_rested = last.is_none_or(|last| now.duration_since(last.timestamp()) >= REST);
    has_rested && (sessions >= MANY_SESSIONS || notes.files.len() >= MANY_NOTES)
}

/// The notes that the model reads: all, or as many as it can, subjects before sessions.
fn shown(notes: &Notes) -> BTreeMap<&Path, &str> {
    let mut left = MOST_READ;
    let of_subjects = notes.files.iter().filter(|(path, _)| !Notes::is_of_session(path));
    let of_sessions = notes.files.iter().filter(|(path, _)| Notes::is_of_session(path));
    let fits = |(_, text): &(&PathBuf, &String)| {
        let fits = text.len() <= left;
        left -= if fits { text.len() } else { 0 };
        fits
    };
    let all = of_subjects.chain(of_sessions).filter(fits);
    all.map(|(path, text)| (path.as_path(), text.as_str())).collect()
}

fn render(shown: &BTreeMap<&Path, &str>) -> String {
    let mut text = String::new();
    for (path, content) in shown {
        let (path, content) = (path.to_string_lossy(), contain(content.trim()));
        // Writing to memory cannot fail.
        let _ = writeln!(
            text,
            "<agent-memory file=\"{}\">\n{content}\n</agent-memory>",
            contain(&path)
        );
    }
    text
}

/// Reads an answer: only notes that were shown are replaced or removed.
fn read(
    shared: &Shared,
    answered: &AnsweredNotes,
    seen: &Notes,
    shown: &BTreeMap<&Path, &str>,
) -> Result<Rearrangement, AnswerError> {
    let known =
        |name: &str| shown.get_key_value(Path::new(name)).map(|(path, _)| PathBuf::from(path));
    let new = |name: &str| {
        let path = PathBuf::from(NoteName::new(name)?.as_str());
        (!seen.files.contains_key(&path) && !seen.unreadable.contains(&path)).then_some(path)
    };
    let mut written = BTreeMap::new();
    for note in &answered.notes {
        let name = note.file.trim();
        let path = known(name).or_else(|| new(name));
        let path = path.ok_or_else(|| AnswerError::Name(name.to_owned()))?;
        if written.insert(path, note.to_note(shared)).is_some() {
            return Err(AnswerError::Twice(name.to_owned()));
        }
    }
    let mut removed = Vec::new();
    for name in &answered.remove {
        let path = known(name.trim()).ok_or_else(|| AnswerError::Name(name.clone()))?;
        if !written.contains_key(&path) && !removed.contains(&path) {
            removed.push(path);
        }
    }
    if written.is_empty() && shown.keys().all(|path| removed.iter().any(|gone| gone == path)) {
        return Err(AnswerError::NothingLeft);
    }
    Ok(Rearrangement { written, removed })
}
