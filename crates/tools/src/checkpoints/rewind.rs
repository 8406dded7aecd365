//! Rewind: restores the files of a prompt.
//!
//! Touches only files that agents changed. Copies others' later changes of them beside the checkpoints first, and names
//! them. Leaves a link in the place of a file alone, and names it as well.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use centurion_diff::LineDiff;
use centurion_files::{Existing, OpenError, ReplaceError, is_link_refusal};
use centurion_protocol::RecordId;
use serde::Serialize;
use thiserror::Error;

use super::history::{FileHistory, Prompt, Tracked};
use super::{
    CheckpointError, Checkpoints, FileKeeper as _, backup_name, is_copy_of, path_digest, save,
};
use crate::disk::{LoadError, load_existing};

/// The reason that no file was restored.
#[derive(Debug, Error)]
pub enum RewindError {
    #[error("File rewinding is not enabled.")]
    NotEnabled,
    #[error("No file checkpoint found for this message: {0}")]
    NoSuchPrompt(RecordId),
    #[error("agents are at work: interrupt them first")]
    AtWork,
    #[error("the transcript cannot be read: {0}")]
    Transcript(io::Error),
}

/// The reason that one file was not restored.
#[derive(Debug, Error)]
enum FileError {
    #[error("what it was could not be kept: {0}")]
    NotKept(String),
    #[error("its record does not have its path as it was")]
    PathChanged,
    #[error("its record names no checkpoint of it")]
    ForeignCopy,
    #[error("its checkpoint is damaged")]
    Damaged,
    #[error("its checkpoint is gone")]
    Gone,
    #[error("its checkpoint cannot be read: {0}")]
    Unreadable(Box<Self>),
    #[error("other files cannot be brought back, so it stays")]
    Incomplete,
    #[error("it was changed by others, and that could not be set aside: {0}")]
    NotSetAside(io::Error),
    #[error("it was changed in this very moment, and was left alone")]
    ChangedNow,
    #[error("it has become too large")]
    TooLarge,
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Write(ReplaceError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The effects of a rewind, done or planned.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rewind {
    pub files: Vec<RewoundFile>,
    /// Files that others changed since, with the paths of their copies.
    pub set_aside: Vec<SetAside>,
    /// Links in the place of files, which were left alone.
    pub skipped_links: Vec<PathBuf>,
    /// Files that could not be restored, and the reasons.
    pub failed: Vec<(PathBuf, String)>,
}

/// A file that is restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RewoundFile {
    pub path: PathBuf,
    /// Inserted and deleted lines.
    pub insertions: usize,
    pub deletions: usize,
    /// The agents whose changes are undone, by their names; the main agent is not among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
}

impl RewoundFile {
    /// The words that name the agents whose changes are undone; empty where only the main agent made any.
    pub fn by_whom(&self) -> String {
        if self.agents.is_empty() {
            return String::new();
        }
        format!(", changed by {}", self.agents.join(", "))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetAside {
    pub path: PathBuf,
    pub copy: PathBuf,
}

/// The present state of a path.
enum PathState {
    Nothing,
    File(Box<Existing>),
    Link,
}

impl Rewind {
    /// The effects that a rewind to a prompt would have.
    pub fn plan(history: &FileHistory, prompt: &Prompt, directory: &Path) -> Self {
        Self::carry_out(history, prompt, directory, None)
    }

    /// Restores the files of a prompt.
    pub fn apply(history: &FileHistory, prompt: &Prompt, checkpoints: &Checkpoints) -> Self {
        Self::carry_out(history, prompt, &checkpoints.directory(), Some(checkpoints))
    }

    fn carry_out(
        history: &FileHistory,
        prompt: &Prompt,
        directory: &Path,
        checkpoints: Option<&Checkpoints>,
    ) -> Self {
        let mut rewind = Self::default();
        // A link may lead to our own directory.
        let directory = &directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let contents = history.tracked_since(prompt).into_iter().map(|tracked| {
            let before = content_before(&tracked, directory);
            (tracked, before)
        });
        let contents: Vec<(Tracked, Result<_, FileError>)> = contents.collect();
        // A partial rewind deletes nothing.
        let is_whole = contents.iter().all(|(_, before)| before.is_ok());
        for (tracked, before) in contents {
            let before = match before {
                Ok(None) if !is_whole => Err(FileError::Incomplete),
                before => before,
            };
            let done = before
                .and_then(|before| rewind.one(&tracked, before.as_deref(), directory, checkpoints));
            if let Err(error) = done {
                rewind.failed.push((tracked.path, error.to_string()));
            }
        }
        rewind
    }

    fn one(
        &mut self,
        tracked: &Tracked,
        before: Option<&[u8]>,
        directory: &Path,
        checkpoints: Option<&Checkpoints>,
    ) -> Result<(), FileError> {
        let path = &tracked.path;
        let found = look(path)?;
        let now = match &found {
            PathState::Link => {
                self.skipped_links.push(path.clone());
                return Ok(());
            }
            PathState::Nothing => None,
            PathState::File(existing) => Some(&**existing),
        };
        for name in tracked.foreign.iter().filter(|name| is_copy_of(name, path)) {
            self.set_aside.push(SetAside { path: path.clone(), copy: directory.join(name) });
        }
        let mode_now = now.map(|existing| existing.metadata.mode() & 0o777);
        let has_mode =
            before.is_none() || tracked.before.mode.is_none_or(|mode| mode_now == Some(mode));
        if now.map(|existing| existing.bytes.as_slice()) == before && has_mode {
            return Ok(());
        }
        let is_ours = now.is_none_or(|existing| {
            let hash = blake3::hash(&existing.bytes).to_hex();
            tracked.written.as_deref() == Some(hash.as_str())
                || Some(existing.bytes.as_slice()) == before
        });
        if !is_ours && let Some(existing) = now {
            let copy = match checkpoints {
                Some(_) => {
                    set_aside(directory, path, &existing.bytes).map_err(FileError::NotSetAside)?
                }
                None => PathBuf::new(),
            };
            self.set_aside.push(SetAside { path: path.clone(), copy });
        }
        let (insertions, deletions) = lines(now.map(|it| it.bytes.as_slice()), before);
        if let Some(checkpoints) = checkpoints {
            let hash = blake3::hash(before.unwrap_or_default());
            checkpoints.keep(path, now, &hash)?;
            restore(path, now, before, tracked.before.mode)?;
        }
        let agents = tracked.agents.iter().cloned().collect();
        self.files.push(RewoundFile { path: path.clone(), insertions, deletions, agents });
        Ok(())
    }
}

/// The earlier content of the file; `None` if it did not exist.
fn content_before(tracked: &Tracked, directory: &Path) -> Result<Option<Vec<u8>>, FileError> {
    if let Some(reason) = &tracked.before.not_kept {
        return Err(FileError::NotKept(reason.clone()));
    }
    if tracked.before.path_digest != path_digest(&tracked.path) {
        return Err(FileError::PathChanged);
    }
    let (name, is_there) = match &tracked.before.backup_file_name {
        Some(name) => (name.clone(), true),
        None => (backup_name(&tracked.path, tracked.before.version), false),
    };
    if !is_copy_of(&name, &tracked.path) {
        return Err(FileError::ForeignCopy);
    }
    match look(&directory.join(name)) {
        Ok(PathState::File(kept)) if is_there => {
            let digest = blake3::hash(&kept.bytes).to_hex();
            let is_it = tracked.before.digest.as_deref() == Some(digest.as_str());
            is_it.then_some(Some(kept.bytes)).ok_or(FileError::Damaged)
        }
        Ok(PathState::File(_)) => Ok(None),
        Ok(PathState::Nothing | PathState::Link) => Err(FileError::Gone),
        Err(error) => Err(FileError::Unreadable(Box::new(error))),
    }
}

fn look(path: &Path) -> Result<PathState, FileError> {
    match load_existing(path) {
        Ok(None) => Ok(PathState::Nothing),
        Ok(Some(existing)) => Ok(PathState::File(Box::new(existing))),
        Err(LoadError::Open(OpenError::Io(error))) if is_link_refusal(&error) => {
            Ok(PathState::Link)
        }
        Err(LoadError::Open(error)) => Err(error.into()),
        Err(LoadError::Read(error)) => Err(error.into()),
        Err(LoadError::TooLarge) => Err(FileError::TooLarge),
    }
}

/// Keeps others' changes of a file, under a new name.
fn set_aside(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let directory = directory.join("set-aside");
    save(&directory, path, &mut 0, bytes).map(|name| directory.join(name))
}

fn restore(
    path: &Path,
    now: Option<&Existing>,
    before: Option<&[u8]>,
    mode: Option<u32>,
) -> Result<(), FileError> {
    let written = match (now, before) {
        (None, None) => Ok(()),
        (Some(existing), None) => existing.remove(),
        (Some(existing), Some(bytes)) if existing.bytes == bytes => Ok(()),
        (Some(existing), Some(bytes)) => centurion_files::replace(existing, bytes),
        (None, Some(bytes)) => {
            centurion_files::create_with_mode(path, bytes, mode.map(|it| it & 0o777))
        }
    };
    written.map_err(|error| match error {
        ReplaceError::Changed | ReplaceError::Appeared => FileError::ChangedNow,
        error => FileError::Write(error),
    })?;
    if let (Some(_), Some(mode)) = (before, mode) {
        let (file, metadata) = centurion_files::open_regular(path)?;
        // Records do not have the special bits, and take none away.
        let special = metadata.mode() & 0o7000;
        file.set_permissions(Permissions::from_mode(special | (mode & 0o777)))?;
    }
    Ok(())
}

/// The numbers of inserted and of deleted lines.
fn lines(now: Option<&[u8]>, before: Option<&[u8]>) -> (usize, usize) {
    let text =
        |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    LineDiff::new(&text(now), &text(before)).counts()
}
