//! The files of a session.

use std::path::{Path, PathBuf};

use centurion_engine::{Start, Storage};
use centurion_protocol::{SessionId, World};
use tempfile::TempDir;

use crate::{Error, ErrorKind};

/// The beginning of a session, as the program asks for it.
#[derive(Clone, Debug, Default)]
pub(crate) enum Beginning {
    #[default]
    New,
    Resume(String),
    Fork(String),
}

/// The files of a session, and the directory that goes with it where it keeps none.
pub(crate) struct Files {
    pub(crate) start: Start,
    pub(crate) storage: Storage,
    pub(crate) scratch: Option<TempDir>,
    /// The session's own directory.
    pub(crate) directory: PathBuf,
}

impl Files {
    pub(crate) fn new(
        transcripts: Option<&Path>,
        beginning: &Beginning,
        world: &dyn World,
    ) -> Result<Self, Error> {
        let Some(transcripts) = transcripts else {
            if !matches!(beginning, Beginning::New) {
                let message = "a session is resumed from its transcript: say where transcripts are";
                return Err(Error::new(ErrorKind::Configuration, message));
            }
            return Self::scratch(world.session_id());
        };
        std::fs::create_dir_all(transcripts)
            .map_err(|error| Error::caused(ErrorKind::Storage, "the transcripts", error))?;
        // The engine compares paths without links.
        let transcripts = transcripts
            .canonicalize()
            .map_err(|error| Error::caused(ErrorKind::Storage, "the transcripts", error))?;
        let file = |id: SessionId| transcripts.join(format!("{id}.jsonl"));
        let start = match beginning {
            Beginning::New => Start::New(world.session_id()),
            Beginning::Resume(id) => Start::Resume(known(id, &file)?),
            Beginning::Fork(id) => Start::Fork { from: known(id, &file)?, id: world.session_id() },
        };
        let directory = transcripts.join(start.id().to_string());
        let resumed = match &start {
            Start::New(_) => None,
            Start::Resume(id) | Start::Fork { from: id, .. } => Some(file(*id)),
        };
        let storage = Storage {
            transcript: Some(file(start.id())),
            resumed,
            ..Storage::without_transcript(directory.join("output"))
        };
        Ok(Self { start, storage, scratch: None, directory })
    }

    fn scratch(id: SessionId) -> Result<Self, Error> {
        let scratch = tempfile::tempdir()
            .map_err(|error| Error::caused(ErrorKind::Storage, "a scratch directory", error))?;
        let directory = scratch.path().to_owned();
        let storage = Storage::without_transcript(directory.join("output"));
        Ok(Self { start: Start::New(id), storage, scratch: Some(scratch), directory })
    }
}

/// The id of a session whose transcript is there. An id is no path: only a UUID is one.
fn known(id: &str, file: &dyn Fn(SessionId) -> PathBuf) -> Result<SessionId, Error> {
    let id: SessionId = id.parse().map_err(|_| {
        let shown: String = id.chars().filter(|letter| !letter.is_control()).take(64).collect();
        Error::new(ErrorKind::Configuration, format!("`{shown}` is no id of a session"))
    })?;
    if file(id).is_file() {
        Ok(id)
    } else {
        Err(Error::new(ErrorKind::Storage, format!("there is no session {id}")))
    }
}
