//! File checkpoints: the program copies a file before it changes it, once for each prompt.
//!
//! All agents of a session share them. The record of a change is written before the change: it names the current
//! prompt, the copy, and a digest of the new content. With the digest a later check tells the session's own changes
//! from other changes. Changes that commands make are not known here.

mod history;
mod rewind;

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blake3::Hash;
use centurion_files::{Existing, OpenError, private};
use centurion_protocol::transcript::{FileBackup, FileBackups};
use centurion_protocol::{RecordId, Timestamp, World};
use parking_lot::Mutex;
use thiserror::Error;

use crate::disk::{LoadError, load_existing};

pub use self::history::{FileHistory, Prompt};
pub use self::rewind::{Rewind, RewindError, RewoundFile, SetAside};

/// Records that files are about to be changed on behalf of a prompt.
pub type ChangeLog =
    Box<dyn Fn(RecordId, &FileBackups, Timestamp) -> Result<(), LogError> + Send + Sync>;

/// The reason that a change could not be recorded.
pub type LogError = Box<dyn std::error::Error + Send + Sync>;

/// A keeper of what files were before they are changed.
pub trait FileKeeper: Send + Sync {
    /// Keeps a file as it is, and records the change that follows: this digest of the new content.
    fn keep(
        &self,
        path: &Path,
        existing: Option<&Existing>,
        written: &Hash,
    ) -> Result<(), CheckpointError>;

    /// Whether that waits for another process, so that it must not hold up a thread that others need.
    fn waits(&self) -> bool {
        false
    }
}

/// The reason that a file has no checkpoint. The file is not changed then.
#[derive(Debug, Error)]
pub enum CheckpointError {
    #[error("its name is no text, so that its checkpoint could not be recorded")]
    Name,
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("it cannot be read: {0}")]
    Read(io::Error),
    #[error("it has become too large")]
    TooLarge,
}

/// The copies of a session's files, and their index.
pub struct Checkpoints {
    log: ChangeLog,
    world: Arc<dyn World>,
    state: Mutex<CheckpointState>,
}

#[derive(Default)]
struct CheckpointState {
    directory: PathBuf,
    /// The current prompt.
    prompt: Option<RecordId>,
    /// The copies made for it.
    kept: HashMap<PathBuf, FileBackup>,
    /// The number of the last copy of each file.
    versions: HashMap<PathBuf, u32>,
    /// The hash that the session last wrote to each file.
    written: HashMap<PathBuf, Hash>,
}

impl Checkpoints {
    pub fn new(directory: PathBuf, log: ChangeLog, world: Arc<dyn World>) -> Self {
        let state = CheckpointState { directory, ..CheckpointState::default() };
        Self { log, world, state: Mutex::new(state) }
    }

    pub fn directory(&self) -> PathBuf {
        self.state.lock().directory.clone()
    }

    /// Keeps the copies of another session in a directory of its own from now on.
    pub fn begin_anew(&self, directory: PathBuf) {
        *self.state.lock() = CheckpointState { directory, ..CheckpointState::default() };
    }

    /// Assigns later changes to the prompt that `record` records. No change comes between the two.
    pub fn begin<E>(&self, record: impl FnOnce() -> Result<RecordId, E>) -> Result<RecordId, E> {
        let mut state = self.state.lock();
        let prompt = record()?;
        state.prompt = Some(prompt);
        state.kept.clear();
        Ok(prompt)
    }

    /// Keeps a file that an agent in another process is about to change.
    pub fn keep_for(
        &self,
        agent: Option<&str>,
        path: &Path,
        written: &Hash,
    ) -> Result<(), CheckpointError> {
        let existing = load_existing(path).map_err(|error| match error {
            LoadError::Open(error) => CheckpointError::Open(error),
            LoadError::Read(error) => CheckpointError::Read(error),
            LoadError::TooLarge => CheckpointError::TooLarge,
        })?;
        self.keep_by(agent, path, existing.as_ref(), written)
    }

    /// Copies a file unless that was done for this prompt, and records the change that an agent makes next.
    fn keep_by(
        &self,
        agent: Option<&str>,
        path: &Path,
        existing: Option<&Existing>,
        written: &Hash,
    ) -> Result<(), CheckpointError> {
        let mut state = self.state.lock();
        let Some(prompt) = state.prompt else { return Ok(()) };
        let name = path.to_str().ok_or(CheckpointError::Name)?;
        let now = self.world.now().into();
        let mut backup = match state.kept.get(path) {
            None => state.copy(path, existing, now),
            Some(kept) => {
                let mut kept = kept.clone();
                kept.foreign = state.copy_of_others(path, existing);
                kept
            }
        };
        state.kept.insert(path.to_owned(), FileBackup { foreign: None, ..backup.clone() });
        backup.written = Some(written.to_hex().to_string());
        backup.agent = agent.map(str::to_owned);
        (self.log)(prompt, &FileBackups::from([(name.to_owned(), backup)]), now)?;
        state.written.insert(path.to_owned(), *written);
        Ok(())
    }
}

impl CheckpointState {
    /// Copies the content that others have given a file since the session last wrote it.
    fn copy_of_others(&mut self, path: &Path, existing: Option<&Existing>) -> Option<String> {
        let existing = existing?;
        if self.written.get(path) == Some(&blake3::hash(&existing.bytes)) {
            return None;
        }
        let version = self.versions.entry(path.to_owned()).or_default();
        save(&self.directory, path, version, &existing.bytes).ok()
    }

    fn copy(&mut self, path: &Path, existing: Option<&Existing>, now: Timestamp) -> FileBackup {
        let version = self.versions.entry(path.to_owned()).or_default();
        // For a missing file, an empty copy says that the session created it.
        let bytes = existing.map(|existing| existing.bytes.as_slice());
        let saved = save(&self.directory, path, version, bytes.unwrap_or_default());
        let (backup_file_name, not_kept) = match saved {
            Ok(name) => (existing.map(|_| name), None),
            Err(error) => (None, Some(error.to_string())),
        };
        FileBackup {
            backup_file_name,
            version: *version,
            backup_time: Some(now),
            mode: existing.map(|existing| existing.metadata.mode() & 0o777),
            path_digest: path_digest(path),
            digest: bytes.map(|bytes| blake3::hash(bytes).to_hex().to_string()),
            foreign: None,
            written: None,
            agent: None,
            not_kept,
        }
    }
}

impl FileKeeper for Checkpoints {
    fn keep(
        &self,
        path: &Path,
        existing: Option<&Existing>,
        written: &Hash,
    ) -> Result<(), CheckpointError> {
        self.keep_by(None, path, existing, written)
    }
}

/// The checkpoints of a session as one agent makes them: records of its changes name it.
pub struct AgentCheckpoints {
    checkpoints: Arc<Checkpoints>,
    agent: String,
}

impl AgentCheckpoints {
    pub fn new(checkpoints: Arc<Checkpoints>, agent: String) -> Self {
        Self { checkpoints, agent }
    }
}

impl FileKeeper for AgentCheckpoints {
    fn keep(
        &self,
        path: &Path,
        existing: Option<&Existing>,
        written: &Hash,
    ) -> Result<(), CheckpointError> {
        self.checkpoints.keep_by(Some(&self.agent), path, existing, written)
    }
}

/// Writes a copy of a file under a name that no earlier process has used.
fn save(directory: &Path, path: &Path, version: &mut u32, bytes: &[u8]) -> io::Result<String> {
    use std::io::Write as _;
    loop {
        *version += 1;
        let name = backup_name(path, *version);
        match private::create(&directory.join(&name)) {
            Ok(mut file) => return file.write_all(bytes).map(|()| name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Gives a session that was copied from another the checkpoints of the original.
pub fn share_checkpoints(from: &Path, to: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(from) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    private::create_directory(to)?;
    for entry in entries {
        let entry = entry?;
        let is_copy = entry.file_name().to_str().is_some_and(is_backup_name);
        // Copies are never changed, so one file can serve both sessions.
        if is_copy && std::fs::hard_link(entry.path(), to.join(entry.file_name())).is_err() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// The beginning of a digest of a path.
fn path_digest(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    blake3::hash(path.as_os_str().as_bytes()).to_hex()[..16].to_owned()
}

fn backup_name(path: &Path, version: u32) -> String {
    format!("{}@v{version}", path_digest(path))
}

/// Whether a name is one that [`backup_name`] makes.
fn is_backup_name(name: &str) -> bool {
    let Some((digest, version)) = name.split_once("@v") else { return false };
    digest.len() == 16
        && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
        && !version.is_empty()
        && version.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a name belongs to a copy of this file: names in records never become other paths.
fn is_copy_of(name: &str, path: &Path) -> bool {
    is_backup_name(name) && name.starts_with(&path_digest(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use centurion_protocol::SeededWorld;

    #[test]
    fn no_change_comes_between_a_prompt_and_what_belongs_to_it() {
        let scratch = tempfile::tempdir().unwrap();
        let world = Arc::new(SeededWorld::new(1));
        let (first, second) = (world.record_id(), world.record_id());
        let logged: Arc<Mutex<Vec<RecordId>>> = Arc::default();
        let log = Arc::clone(&logged);
        let checkpoints = Arc::new(Checkpoints::new(
            scratch.path().join("history"),
            Box::new(move |prompt, _, _| {
                log.lock().push(prompt);
                Ok(())
            }),
            world,
        ));
        checkpoints.begin(|| Ok::<_, std::convert::Infallible>(first)).unwrap();
        let path = scratch.path().join("a.txt");
        let (started, begun) = std::sync::mpsc::channel();
        let other = Arc::clone(&checkpoints);
        let mut changing = None;
        // While the second prompt is being recorded, another agent changes a file.
        let recorded = checkpoints.begin(|| {
            changing = Some(std::thread::spawn(move || {
                started.send(()).unwrap();
                other.keep(&path, None, &blake3::hash(b"x")).unwrap();
            }));
            begun.recv().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(logged.lock().is_empty(), "the change waits until the prompt is recorded");
            Ok::<_, std::convert::Infallible>(second)
        });
        changing.unwrap().join().unwrap();
        assert_eq!((recorded.unwrap(), &logged.lock()[..]), (second, &[second][..]));
    }
}
