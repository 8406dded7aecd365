//! Going back: files become again what they were at a prompt.
//!
//! Only files that agents changed are touched. What others made of them since is copied beside the checkpoints first,
//! and named. A link in the place of a file is left alone, and named as well.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use centurion_files::{Existing, OpenError, ReplaceError, is_link_refusal};
use centurion_protocol::RecordId;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};
use thiserror::Error;

use super::history::{FileHistory, Prompt, Tracked};
use super::{Checkpoints, is_backup_name, save};
use crate::disk::{LoadError, load_existing};

/// Why nothing was brought back.
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

/// What going back does, or would do.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Rewind {
    pub files: Vec<RewoundFile>,
    /// Files that others changed since, with where that is kept now.
    pub set_aside: Vec<SetAside>,
    /// Links that stand in the place of files, and were left alone.
    pub skipped_links: Vec<PathBuf>,
    /// Files that could not be brought back, and why.
    pub failed: Vec<(PathBuf, String)>,
}

/// A file that becomes what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RewoundFile {
    pub path: PathBuf,
    /// Lines that come, and lines that go.
    pub insertions: usize,
    pub deletions: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SetAside {
    pub path: PathBuf,
    pub copy: PathBuf,
}

/// What there is at a path now.
enum Found {
    Nothing,
    File(Box<Existing>),
    Link,
}

impl Rewind {
    /// What going back to a prompt would do.
    pub fn plan(history: &FileHistory, prompt: &Prompt, directory: &Path) -> Self {
        Self::carry_out(history, prompt, directory, None)
    }

    /// Goes back to a prompt.
    pub fn apply(history: &FileHistory, prompt: &Prompt, checkpoints: &Checkpoints) -> Self {
        Self::carry_out(history, prompt, &checkpoints.directory, Some(checkpoints))
    }

    fn carry_out(
        history: &FileHistory,
        prompt: &Prompt,
        directory: &Path,
        checkpoints: Option<&Checkpoints>,
    ) -> Self {
        let mut rewind = Self::default();
        for tracked in history.tracked_since(prompt) {
            if let Err(reason) = rewind.one(&tracked, directory, checkpoints) {
                rewind.failed.push((tracked.path, reason));
            }
        }
        rewind
    }

    fn one(
        &mut self,
        tracked: &Tracked,
        directory: &Path,
        checkpoints: Option<&Checkpoints>,
    ) -> Result<(), String> {
        let path = &tracked.path;
        let before = content_before(tracked, directory)?;
        let found = look(path)?;
        let now = match &found {
            Found::Link => {
                self.skipped_links.push(path.clone());
                return Ok(());
            }
            Found::Nothing => None,
            Found::File(existing) => Some(&**existing),
        };
        let mode_now = now.map(|existing| existing.metadata.mode() & 0o7777);
        let has_mode =
            before.is_none() || tracked.before.mode.is_none_or(|mode| mode_now == Some(mode));
        if now.map(|existing| &existing.bytes) == before.as_ref() && has_mode {
            return Ok(());
        }
        let is_ours = now.is_none_or(|existing| {
            let hash = blake3::hash(&existing.bytes).to_hex();
            tracked.written.as_deref() == Some(hash.as_str())
                || Some(&existing.bytes) == before.as_ref()
        });
        if !is_ours && let Some(existing) = now {
            let copy = match checkpoints {
                Some(_) => set_aside(directory, path, &existing.bytes).map_err(|error| {
                    format!("it was changed by others, and that could not be set aside: {error}")
                })?,
                None => PathBuf::new(),
            };
            self.set_aside.push(SetAside { path: path.clone(), copy });
        }
        let (insertions, deletions) = lines(now.map(|it| it.bytes.as_slice()), before.as_deref());
        if let Some(checkpoints) = checkpoints {
            let hash = blake3::hash(before.as_deref().unwrap_or_default());
            checkpoints.keep(path, now, &hash)?;
            restore(path, now, before.as_deref(), tracked.before.mode)?;
        }
        self.files.push(RewoundFile { path: path.clone(), insertions, deletions });
        Ok(())
    }
}

/// What the file was; `None` if it was not there.
fn content_before(tracked: &Tracked, directory: &Path) -> Result<Option<Vec<u8>>, String> {
    if let Some(reason) = &tracked.before.not_kept {
        return Err(format!("what it was could not be kept: {reason}"));
    }
    let Some(name) = &tracked.before.backup_file_name else { return Ok(None) };
    if !is_backup_name(name) {
        return Err("its record names no checkpoint".to_owned());
    }
    match look(&directory.join(name)) {
        Ok(Found::File(kept)) => Ok(Some(kept.bytes)),
        Ok(Found::Nothing | Found::Link) => Err("its checkpoint is gone".to_owned()),
        Err(error) => Err(format!("its checkpoint cannot be read: {error}")),
    }
}

fn look(path: &Path) -> Result<Found, String> {
    match load_existing(path) {
        Ok(None) => Ok(Found::Nothing),
        Ok(Some(existing)) => Ok(Found::File(Box::new(existing))),
        Err(LoadError::Open(OpenError::Io(error))) if is_link_refusal(&error) => Ok(Found::Link),
        Err(LoadError::Open(error)) => Err(error.to_string()),
        Err(LoadError::Read(error)) => Err(error.to_string()),
        Err(LoadError::TooLarge) => Err("it has become too large".to_owned()),
    }
}

/// Keeps what others made of a file, under a name that is new.
fn set_aside(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let directory = directory.join("set-aside");
    save(&directory, path, &mut 0, bytes).map(|name| directory.join(name))
}

fn restore(
    path: &Path,
    now: Option<&Existing>,
    before: Option<&[u8]>,
    mode: Option<u32>,
) -> Result<(), String> {
    let written = match (now, before) {
        (None, None) => Ok(()),
        (Some(existing), None) => existing.remove(),
        (Some(existing), Some(bytes)) if existing.bytes == bytes => Ok(()),
        (Some(existing), Some(bytes)) => centurion_files::replace(existing, bytes),
        (None, Some(bytes)) => centurion_files::create(path, bytes),
    };
    written.map_err(|error| match error {
        ReplaceError::Changed | ReplaceError::Appeared => {
            "it was changed in this very moment, and was left alone".to_owned()
        }
        error => error.to_string(),
    })?;
    if let (Some(_), Some(mode)) = (before, mode) {
        let (file, _) = centurion_files::open_regular(path).map_err(|error| error.to_string())?;
        file.set_permissions(Permissions::from_mode(mode)).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// How many lines come and go.
fn lines(now: Option<&[u8]>, before: Option<&[u8]>) -> (usize, usize) {
    let text =
        |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    let (now, before) = (text(now), text(before));
    let diff = TextDiff::configure().timeout(Duration::from_millis(200)).diff_lines(&now, &before);
    let count =
        |tag: ChangeTag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    (count(ChangeTag::Insert), count(ChangeTag::Delete))
}
