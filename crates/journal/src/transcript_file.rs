//! The file of one transcript: opened by one writer at a time, appended to line by line.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use centurion_files::private;
use centurion_protocol::{RecordId, SessionId, bounded};
use thiserror::Error;

use crate::transcript;

/// The bytes of a transcript that are copied at once.
const COPY_PIECE: usize = 256 * 1024;

/// The most that others write beside a conversation while its agent rests: names, marks and notes.
const MOST_NEWS: u64 = 1024 * 1024;

/// The bytes of a transcript that are searched at once.
const SEARCH_PIECE: usize = 64 * 1024;

/// The largest transcript that is read back: what a model read is in it, and no window is that large.
pub const MOST_TRANSCRIPT: u64 = 512 * 1024 * 1024;

/// An error about a transcript file.
#[derive(Debug, Error)]
pub enum JournalError {
    #[error("cannot write the transcript {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot open the transcript {path}: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("the session is open in another process: {path}")]
    Locked { path: PathBuf },
    #[error(
        "another process has continued this session: {path}; help: resume the session to continue behind what was \
         said there"
    )]
    ContinuedElsewhere { path: PathBuf },
}

impl JournalError {
    /// The name of the error if there is no room for what was to be written.
    pub fn lack_of_room(&self) -> Option<&'static str> {
        let (Self::Write { source, .. } | Self::Open { source, .. }) = self else { return None };
        match source.kind() {
            io::ErrorKind::StorageFull => Some("ENOSPC"),
            io::ErrorKind::QuotaExceeded => Some("EDQUOT"),
            _ => None,
        }
    }
}

/// A transcript that is open for appending, by one writer.
pub struct TranscriptFile {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    /// The last write did not get through: what it left must be fenced off before the next.
    is_torn: bool,
    /// Another process writes to it, too, and may die in the middle of a line.
    pub(crate) is_shared: bool,
}

impl TranscriptFile {
    /// Opens a transcript, or makes an empty one, as its only writer.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        Self::open_with(&mut options, path)
    }

    /// Opens a transcript that was there before. A new file in its place would lack everything that was said.
    pub(crate) fn reopen(path: &Path) -> Result<Self, JournalError> {
        let mut options = OpenOptions::new();
        options.read(true).append(true);
        Self::open_with(&mut options, path)
    }

    /// Opens a transcript for a second writer, while another process holds the lock for both and adds only lines that are
    /// no part of the conversation.
    pub fn open_shared(path: &Path) -> Result<Self, JournalError> {
        let open_error = |source| JournalError::Open { path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        options.read(true).append(true);
        let mut file = private::open(&mut options, path).map_err(open_error)?;
        let is_torn = has_torn_tail(&mut file).map_err(open_error)?;
        Ok(Self { file, path: path.to_owned(), is_torn, is_shared: true })
    }

    fn open_with(options: &mut OpenOptions, path: &Path) -> Result<Self, JournalError> {
        let open_error = |source| JournalError::Open { path: path.to_owned(), source };
        let mut file = private::open(options, path).map_err(open_error)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(JournalError::Locked { path: path.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(open_error(source)),
        }
        let is_torn = has_torn_tail(&mut file).map_err(open_error)?;
        Ok(Self { file, path: path.to_owned(), is_torn, is_shared: false })
    }

    /// Begins a transcript with the lines of another, under the new session's id.
    pub fn copy(
        path: &Path,
        text: &[u8],
        from: SessionId,
        id: SessionId,
    ) -> Result<Self, JournalError> {
        let (old, new) = (session_field(from), session_field(id));
        let mut file = Self::open(path)?;
        file.is_torn = text.last().is_some_and(|last| *last != b'\n');
        // Piece by piece: a second copy of a long transcript in memory would cost more than the writing.
        let mut piece = Vec::with_capacity(COPY_PIECE + COPY_PIECE / 4);
        let mut rest = 0;
        // A short text is found several times as fast as the whole field.
        let fields = memchr::memmem::find_iter(text, SESSION_FIELD)
            .filter(|at| text.get(*at..).is_some_and(|field| field.starts_with(&old)));
        for at in fields.chain([text.len()]) {
            piece.extend_from_slice(&text[rest..at]);
            if at < text.len() {
                piece.extend_from_slice(&new);
            }
            rest = at + old.len();
            if piece.len() >= COPY_PIECE || at == text.len() {
                file.file.write_all(&piece).map_err(|source| file.write_error(source))?;
                piece.clear();
            }
        }
        Ok(file)
    }

    /// Everything written so far.
    pub fn read(&mut self) -> Result<Vec<u8>, JournalError> {
        let open_error = |source| JournalError::Open { path: self.path.clone(), source };
        self.file.rewind().map_err(open_error)?;
        bounded::read_all(&self.file, MOST_TRANSCRIPT).map_err(open_error)
    }

    /// The length of the file.
    pub(crate) fn length(&self) -> io::Result<u64> {
        self.file.metadata().map(|metadata| metadata.len())
    }

    /// The lines behind an earlier end of the file. `Err` if one of them is a record of the conversation, or if the
    /// file has become shorter.
    pub(crate) fn written_since(&self, end: u64) -> Result<Vec<u8>, JournalError> {
        let open_error = |source| JournalError::Open { path: self.path.clone(), source };
        let continued = || JournalError::ContinuedElsewhere { path: self.path.clone() };
        let length = self.length().map_err(open_error)?;
        let count = length.checked_sub(end).ok_or_else(continued)?;
        if count > MOST_NEWS {
            return Err(continued());
        }
        let mut news = vec![0; usize::try_from(count).unwrap_or_default()];
        self.file.read_exact_at(&mut news, end).map_err(open_error)?;
        if transcript::has_conversation(&news) { Err(continued()) } else { Ok(news) }
    }

    /// Whether a record has this id.
    pub(crate) fn has_record(&self, id: RecordId) -> Result<bool, JournalError> {
        let field = format!("\"uuid\":\"{id}\"").into_bytes();
        let open_error = |source| JournalError::Open { path: self.path.clone(), source };
        let (mut piece, mut kept, mut from) = (vec![0; SEARCH_PIECE], 0, 0);
        while from < MOST_TRANSCRIPT {
            let room = piece.get_mut(kept..).unwrap_or_default();
            let count = self.file.read_at(room, from).map_err(open_error)?;
            let filled = piece.get(..kept + count).unwrap_or_default();
            if memchr::memmem::find(filled, &field).is_some() {
                return Ok(true);
            }
            if count == 0 {
                break;
            }
            // The field may begin at the end of this piece.
            let start = filled.len().saturating_sub(field.len());
            (kept, from) = (filled.len() - start, from + count as u64);
            piece.copy_within(start..start + kept, 0);
        }
        Ok(false)
    }

    /// Appends a whole line with one write.
    pub(crate) fn append(&mut self, line: &[u8]) -> Result<(), JournalError> {
        if self.is_torn || self.is_shared && self.has_foreign_fragment() {
            self.file.write_all(b"\n").map_err(|source| self.write_error(source))?;
        }
        self.is_torn = true;
        self.file.write_all(line).map_err(|source| self.write_error(source))?;
        self.is_torn = false;
        Ok(())
    }

    /// Tells whether the other writer has left, or is writing, a line without an end. An end too many is an empty line.
    fn has_foreign_fragment(&self) -> bool {
        let mut last = [b'\n'];
        let end = self.length().unwrap_or_default().checked_sub(1);
        end.is_some_and(|at| self.file.read_exact_at(&mut last, at).is_ok() && last != *b"\n")
    }

    pub(crate) fn write_error(&self, source: io::Error) -> JournalError {
        JournalError::Write { path: self.path.clone(), source }
    }
}

impl Drop for TranscriptFile {
    fn drop(&mut self) {
        // A process that is being started has a copy of every open file for a moment, and would hold the lock with it:
        // a later `open` would say that another process has the transcript.
        let _ = self.file.unlock();
    }
}

/// The start of the field that names the session of a line.
const SESSION_FIELD: &[u8] = b"\"sessionId\":\"";

fn session_field(id: SessionId) -> Vec<u8> {
    [SESSION_FIELD, id.to_string().as_bytes(), b"\""].concat()
}

fn has_torn_tail(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use centurion_protocol::{SeededWorld, World as _};

    use super::*;

    #[test]
    fn a_lock_ends_with_its_file_though_a_process_that_is_being_started_still_has_a_copy() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let file = TranscriptFile::open(&path).unwrap();
        let locked = TranscriptFile::open(&path).map(drop);
        assert!(matches!(locked, Err(JournalError::Locked { .. })), "{locked:?}");
        // As between the fork and the exec of a child.
        let copy = file.file.try_clone().unwrap();
        drop(file);
        drop(TranscriptFile::open(&path).unwrap());
        drop(copy);
    }

    #[test]
    fn what_a_writer_that_died_left_of_a_line_spoils_no_line_of_the_other_writer() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let mut own = TranscriptFile::open(&path).unwrap();
        own.is_shared = true;
        let mut other = TranscriptFile::open_shared(&path).unwrap();
        own.append(b"{\"a\":1}\n").unwrap();
        other.append(b"{\"b\":2}\n").unwrap();
        // Killed in the middle of a long line.
        other.file.write_all(b"{\"torn\":").unwrap();
        own.append(b"{\"c\":3}\n").unwrap();
        own.append(b"{\"d\":4}\n").unwrap();
        let text = own.read().unwrap();
        assert_eq!(text, b"{\"a\":1}\n{\"b\":2}\n{\"torn\":\n{\"c\":3}\n{\"d\":4}\n");
    }

    #[test]
    fn a_long_transcript_is_copied_whole_under_the_new_id() {
        let dir = tempfile::tempdir().unwrap();
        let (from, id) = (SeededWorld::new(5).session_id(), SeededWorld::new(6).session_id());
        let line = |session: SessionId| {
            format!("{{\"sessionId\":\"{session}\",\"x\":\"{}\"}}\n", "y".repeat(700))
        };
        for (count, tail) in [(0, ""), (1, ""), (2_000, ""), (2_000, "{\"torn")] {
            let path = dir.path().join(format!("{count}{}", tail.len()));
            let text = line(from).repeat(count) + tail;
            let mut file = TranscriptFile::copy(&path, text.as_bytes(), from, id).unwrap();
            assert!(
                file.read().unwrap() == (line(id).repeat(count) + tail).into_bytes(),
                "{count}{tail}"
            );
            assert_eq!(file.is_torn, !tail.is_empty());
        }
    }
}
