//! Bringing files back to what they were at a prompt, while the session continues.

use std::convert::Infallible;

use centurion_journal::MOST_TRANSCRIPT;
use centurion_protocol::{RecordId, bounded};
use centurion_tools::{FileHistory, Rewind, RewindError};

use crate::agent::shared::Shared;

/// Goes back to a prompt, or says what that would do.
pub(super) fn rewind_files(
    shared: &Shared,
    prompt: RecordId,
    is_trial: bool,
) -> Result<Rewind, RewindError> {
    if shared.is_running() {
        return Err(RewindError::AtWork);
    }
    rewind_between_turns(shared, prompt, is_trial)
}

/// The same by a command, whose own run does no work.
pub(super) fn rewind_between_turns(
    shared: &Shared,
    prompt: RecordId,
    is_trial: bool,
) -> Result<Rewind, RewindError> {
    let builder = &shared.delegation.builder;
    let checkpoints = builder.files.checkpoints.as_ref().ok_or(RewindError::NotEnabled)?;
    if shared.delegation.has_running() {
        return Err(RewindError::AtWork);
    }
    let transcript = bounded::read_file(&builder.files.place.transcript(), MOST_TRANSCRIPT)
        .map_err(RewindError::Transcript)?;
    let history = FileHistory::read(&transcript);
    let prompt = history.find(prompt).ok_or(RewindError::NoSuchPrompt(prompt))?;
    if is_trial {
        return Ok(Rewind::plan(&history, prompt, &checkpoints.directory()));
    }
    // The undone changes can be brought back as well.
    let Ok(_) = checkpoints.begin(|| Ok::<_, Infallible>(shared.world.record_id()));
    Ok(Rewind::apply(&history, prompt, checkpoints))
}
