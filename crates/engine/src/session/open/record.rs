//! The transcript that a session continues: locked before it is read, and read once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_journal::transcript::{self, Loaded};
use centurion_journal::{Journal, Stamp, TranscriptFile};
use centurion_tools::share_checkpoints;

use super::{FILE_HISTORY, OpenError};
use crate::agent::isolation::entered::{self, EnteredPlace};
use crate::delegate::recall::{CarriedNote, MainRecord};
use crate::schedule::{self, RecordedSchedule};
use crate::session::{Options, ResumePoint, Start};

/// The notes of a transcript beside the conversation.
#[derive(Default)]
pub(super) struct TranscriptNotes {
    pub(super) schedules: Vec<RecordedSchedule>,
    /// The worktree that the main agent was in.
    pub(super) worktree: Option<EnteredPlace>,
    /// The directory for large outputs of the session whose process began this one by beginning anew.
    pub(super) came_from: Option<PathBuf>,
    /// Facts about other agents; of a resumed session alone.
    pub(super) agents: MainRecord,
}

impl TranscriptNotes {
    fn read(text: &[u8]) -> Self {
        let (schedules, worktree) = (schedule::read(text), entered::noted(text));
        let came_from = CarriedNote::read(text).map(|it| it.outputs);
        Self { schedules, worktree, came_from, agents: MainRecord::default() }
    }
}

/// Opens the transcript and reads what it holds.
pub(super) fn open_journal(
    options: &Options,
    stamp: Stamp,
) -> Result<(Arc<Journal>, Loaded, TranscriptNotes), OpenError> {
    let (storage, world) = (&options.storage, Arc::clone(&options.base.world));
    let recording = storage.recording();
    let point = storage.resumed_at;
    if options.agents.lead.is_some() {
        // The transcript is the lead's.
        return Ok((
            Arc::new(Journal::nowhere(stamp, world)),
            Loaded::default(),
            TranscriptNotes::default(),
        ));
    }
    let load = |text: &[u8]| (transcript::load(text), TranscriptNotes::read(text));
    let (journal, (loaded, noted)) = match (&options.start, &storage.transcript) {
        (Start::New(_), Some(path)) => {
            (Journal::new(path.clone(), stamp, world, recording), Default::default())
        }
        (Start::Resume(_), Some(path)) => {
            // Locked before it is read: what another process has yet to write must not be missed.
            let mut file = TranscriptFile::open(path)?;
            let text = file.read()?;
            let mut read = load(counted(&text, point)?);
            // All of it: what was told after the point was told.
            read.1.agents = MainRecord::read(&text, path);
            if let Some(own) = read.1.agents.own_part(&text) {
                read.1.schedules = schedule::read(own);
            }
            let journal = Journal::resume(file, &read.0, stamp, world, recording);
            if point.is_some() {
                journal.branch_from(read.0.last)?;
            }
            (journal, read)
        }
        (Start::Fork { from, id }, Some(path)) => {
            let text = read(storage.resumed.as_deref())?;
            let text = counted(&text, point)?;
            let earlier =
                storage.resumed.as_deref().map(|it| it.with_extension("").join(FILE_HISTORY));
            if let (Some(from), Some(to)) = (earlier, &storage.file_history) {
                share_checkpoints(&from, to)
                    .map_err(|source| OpenError::Read { path: from, source })?;
            }
            let (copied, read) = std::thread::scope(|scope| {
                let copy = scope.spawn(|| TranscriptFile::copy(path, text, *from, *id));
                let read = load(text);
                (copy.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), read)
            });
            let mut copied = copied?;
            if let Some(mirror) = &recording.mirror {
                mirror.mirror(path, &copied.read()?);
            }
            (Journal::resume(copied, &read.0, stamp, world, recording), read)
        }
        (_, None) => {
            let text = read(storage.resumed.as_deref())?;
            (Journal::nowhere(stamp, world), load(counted(&text, point)?))
        }
    };
    Ok((Arc::new(journal), loaded, noted))
}

/// The part of a transcript that counts.
fn counted(text: &[u8], point: Option<ResumePoint>) -> Result<&[u8], OpenError> {
    let Some(ResumePoint { record, drops }) = point else { return Ok(text) };
    let kept = transcript::until(text, record).ok_or(OpenError::NoSuchRecord(record))?;
    if let Some(prompt) = drops {
        transcript::check_one_turn(&text[kept.len()..], prompt)?;
    }
    Ok(kept)
}

fn read(path: Option<&Path>) -> Result<Vec<u8>, OpenError> {
    let Some(path) = path else { return Ok(Vec::new()) };
    centurion_protocol::bounded::read_file(path, centurion_journal::MOST_TRANSCRIPT)
        .map_err(|source| OpenError::Read { path: path.to_owned(), source })
}
