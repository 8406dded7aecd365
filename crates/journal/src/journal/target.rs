//! The file that a journal writes to: made late, and closed while there is nothing to write.

use std::io;
use std::path::PathBuf;

use crate::transcript_file::{JournalError, TranscriptFile};

pub(super) enum Target {
    /// Nothing is kept.
    Nowhere,
    /// The file is made when there is something to write, so that a run that never starts leaves none.
    Planned(PathBuf),
    /// The file is closed, so that another process may use it, and had this length.
    Resting {
        path: PathBuf,
        length: u64,
    },
    Open(TranscriptFile),
}

impl Target {
    pub(super) fn write_error(&self, source: io::Error) -> JournalError {
        let path = match self {
            Self::Nowhere => PathBuf::new(),
            Self::Planned(path) | Self::Resting { path, .. } => path.clone(),
            Self::Open(file) => file.path.clone(),
        };
        JournalError::Write { path, source }
    }

    /// Closes the file until there is something to write. One whose length cannot be told stays open.
    pub(super) fn rest(&mut self) {
        if let Self::Open(file) = self
            && let Ok(length) = file.length()
        {
            *self = Self::Resting { path: std::mem::take(&mut file.path), length };
        }
    }

    /// Opens a file that rests. Returns the lines that others wrote meanwhile.
    pub(super) fn wake(&mut self) -> Result<Vec<u8>, JournalError> {
        let Self::Resting { path, length } = self else { return Ok(Vec::new()) };
        let file = TranscriptFile::reopen(path)?;
        let news = file.written_since(*length)?;
        *self = Self::Open(file);
        Ok(news)
    }

    /// The file to write to, made if it is not there yet; `None` where nothing is kept.
    pub(super) fn file(&mut self) -> Result<Option<&mut TranscriptFile>, JournalError> {
        self.wake()?;
        if let Self::Planned(path) = self {
            *self = Self::Open(TranscriptFile::open(path)?);
        }
        Ok(match self {
            Self::Open(file) => Some(file),
            Self::Nowhere | Self::Planned(_) | Self::Resting { .. } => None,
        })
    }
}
