//! An append-only log that several processes read and write: one record a line, one write a record.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use centurion_files::private;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// The time to wait for another process that holds the lock. No process holds it longer than one write takes.
const PATIENCE: Duration = Duration::from_secs(5);
/// The interval of attempts to get the lock.
const TRY_AGAIN: Duration = Duration::from_millis(1);

/// The reason that a log cannot be read or written.
#[derive(Debug, Error)]
#[error("{}: {reason}", path.display())]
pub struct LogError {
    path: PathBuf,
    reason: LogFault,
}

#[derive(Debug, Error)]
enum LogFault {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is no regular file: remove it")]
    NoFile,
    #[error("another process has held it for {} seconds", PATIENCE.as_secs())]
    Held,
    #[error("it has become shorter: another program has changed it")]
    Shorter,
}

/// The log, and this process's position in it.
pub(crate) struct Log {
    file: File,
    path: PathBuf,
    /// The offset behind the last whole line that was read.
    read: u64,
}

/// Guard: only this process may write to the log.
pub(crate) struct LockedLog<'a> {
    log: &'a mut Log,
}

impl Log {
    /// Opens a log, or makes an empty one with its directory.
    pub(crate) fn open(path: &Path) -> Result<Self, LogError> {
        Self::open_with(OpenOptions::new().read(true).append(true).create(true), path)
    }

    /// Opens a log that exists.
    pub(crate) fn open_existing(path: &Path) -> Result<Self, LogError> {
        Self::open_with(OpenOptions::new().read(true).append(true), path)
    }

    fn open_with(options: &mut OpenOptions, path: &Path) -> Result<Self, LogError> {
        let fault = |reason| LogError { path: path.to_owned(), reason };
        // Opening a pipe for reading and writing does not wait, so it can be checked and refused.
        let file = private::open(options, path).map_err(|error| fault(error.into()))?;
        let metadata = file.metadata().map_err(|error| fault(error.into()))?;
        if !metadata.is_file() {
            return Err(fault(LogFault::NoFile));
        }
        Ok(Self { file, path: path.to_owned(), read: 0 })
    }

    /// Keeps other writers out until the result is dropped.
    pub(crate) fn lock(&mut self) -> Result<LockedLog<'_>, LogError> {
        let until = Instant::now() + PATIENCE;
        loop {
            match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(LockedLog { log: self }),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => {
                    std::thread::sleep(TRY_AGAIN);
                }
                Err(Errno::WOULDBLOCK) => return Err(self.fault(LogFault::Held)),
                Err(error) => return Err(self.fault(io::Error::from(error).into())),
            }
        }
    }

    /// The records since the last call, oldest first. Skips a line that cannot be parsed: it was torn, or another
    /// program wrote it.
    pub(crate) fn news<R: DeserializeOwned>(&mut self) -> Result<Vec<R>, LogError> {
        let bytes = self.unread().map_err(|reason| self.fault(reason))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.read += whole as u64;
        let lines = bytes[..whole].split(|byte| *byte == b'\n');
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    fn unread(&self) -> Result<Vec<u8>, LogFault> {
        let length = self.file.metadata()?.len();
        let Some(more) = length.checked_sub(self.read) else { return Err(LogFault::Shorter) };
        let mut bytes = vec![0; usize::try_from(more).map_err(io::Error::other)?];
        self.file.read_exact_at(&mut bytes, self.read)?;
        Ok(bytes)
    }

    fn fault(&self, reason: LogFault) -> LogError {
        LogError { path: self.path.clone(), reason }
    }
}

impl LockedLog<'_> {
    pub(crate) fn news<R: DeserializeOwned>(&mut self) -> Result<Vec<R>, LogError> {
        self.log.news()
    }

    /// Appends a record behind everything that was read: all of it, or nothing.
    pub(crate) fn append(&mut self, record: &impl Serialize) -> Result<(), LogError> {
        let added = self.try_append(record);
        added.map_err(|reason| self.log.fault(reason))
    }

    fn try_append(&mut self, record: &impl Serialize) -> Result<(), LogFault> {
        let end = self.log.file.metadata()?.len();
        // A writer that died in the middle of a line left it open. It never reported the line as written.
        let torn = end > self.log.read;
        let mut line = if torn { vec![b'\n'] } else { Vec::new() };
        serde_json::to_writer(&mut line, record).map_err(io::Error::from)?;
        line.push(b'\n');
        if let Err(error) = (&self.log.file).write_all(&line) {
            self.log.file.set_len(end)?;
            return Err(error.into());
        }
        self.log.read = end + line.len() as u64;
        Ok(())
    }
}

impl Drop for LockedLog<'_> {
    fn drop(&mut self) {
        // Closing the file releases the lock at the latest.
        let _ = flock(&self.log.file, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn append(log: &mut Log, number: u32) -> Vec<u32> {
        let mut locked = log.lock().unwrap();
        let before = locked.news().unwrap();
        locked.append(&number).unwrap();
        before
    }

    #[test]
    fn each_reader_sees_what_the_other_wrote_once() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("below/log.jsonl");
        let (mut one, mut two) = (Log::open(&path).unwrap(), Log::open(&path).unwrap());
        assert_eq!(append(&mut one, 1), [0_u32; 0]);
        assert_eq!(append(&mut one, 2), [0_u32; 0]);
        assert_eq!(append(&mut two, 3), [1, 2]);
        assert_eq!(one.news::<u32>().unwrap(), [3]);
        assert_eq!(one.news::<u32>().unwrap(), [0_u32; 0]);
    }

    #[test]
    fn a_torn_line_is_fenced_off_and_what_follows_is_read() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("log.jsonl");
        fs::write(&path, "1\n[2").unwrap();
        let mut log = Log::open(&path).unwrap();
        assert_eq!(append(&mut log, 3), [1]);
        assert_eq!(append(&mut log, 4), [0_u32; 0]);
        assert_eq!(Log::open(&path).unwrap().news::<u32>().unwrap(), [1, 3, 4]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n[2\n3\n4\n");
    }

    #[test]
    fn what_is_no_log_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        let (pipe, link) = (scratch.path().join("pipe"), scratch.path().join("link"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        std::os::unix::fs::symlink("elsewhere", &link).unwrap();
        for path in [&pipe, &link] {
            let error = Log::open(path).err().unwrap();
            assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
        }
        let path = scratch.path().join("log.jsonl");
        let mut log = Log::open(&path).unwrap();
        append(&mut log, 1);
        fs::write(&path, "").unwrap();
        assert!(log.news::<u32>().unwrap_err().to_string().contains("shorter"));
        assert!(Log::open_existing(&scratch.path().join("none")).is_err());
        assert!(!scratch.path().join("none").exists());
    }
}
