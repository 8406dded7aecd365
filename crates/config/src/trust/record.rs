//! The accepted contents of one folder, on disk: a file of ours for each folder.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::TrustError;
use crate::files::{self, FileError, Stamp};

/// More than the definitions of any folder.
const LARGEST: u64 = 64 * 1024 * 1024;

/// An item that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AcceptedItem {
    /// From the top of its folder.
    pub file: PathBuf,
    pub item: String,
    pub digest: String,
    /// Its text, without what must not be shown.
    pub text: String,
}

/// All that was accepted in a folder.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    /// The state of the file when it was read.
    stamp: Option<Stamp>,
    pub(super) items: Vec<AcceptedItem>,
    known: HashSet<(PathBuf, String, String)>,
}

#[derive(Serialize, Deserialize)]
struct StoredRecord {
    folder: PathBuf,
    accepted: Vec<AcceptedItem>,
}

/// The path of the record of a folder.
pub(super) fn file_of(directory: &Path, folder: &Path) -> PathBuf {
    let name = blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex();
    directory.join(format!("{}.json", name.get(..32).unwrap_or_default()))
}

impl Record {
    pub(super) fn new(mut items: Vec<AcceptedItem>) -> Self {
        items.sort();
        items.dedup();
        let key = |it: &AcceptedItem| (it.file.clone(), it.item.clone(), it.digest.clone());
        Self { stamp: None, known: items.iter().map(key).collect(), items }
    }

    /// Whether the file is as it was when it was read.
    pub(super) fn is_current(&self, file: &Path) -> bool {
        self.stamp == Stamp::of(file)
    }

    /// Whether anything was ever accepted, be it nothing.
    pub(super) fn exists(&self) -> bool {
        self.stamp.is_some()
    }

    pub(super) fn read(file: &Path, folder: &Path) -> Result<Self, TrustError> {
        let failed = |error| TrustError { file: file.to_owned(), error };
        let (stamp, text) = files::read(file, LARGEST);
        let Some(text) = text.map_err(failed)? else { return Ok(Self::default()) };
        let stored: StoredRecord = serde_json::from_str(&text).map_err(|error| {
            let reason = error.to_string();
            failed(FileError::Broken { line: error.line(), column: error.column(), reason })
        })?;
        // Names of files are shortened, and another folder's record says nothing about this one.
        let accepted = if stored.folder == folder { stored.accepted } else { Vec::new() };
        Ok(Self { stamp, ..Self::new(accepted) })
    }

    pub(super) fn write(self, file: &Path, folder: &Path) -> Result<Self, TrustError> {
        let failed = |error| TrustError { file: file.to_owned(), error };
        let stored = StoredRecord { folder: folder.to_owned(), accepted: self.items };
        let text = serde_json::to_string_pretty(&stored)
            .map_err(|error| failed(FileError::Unwritable(error.into())))?;
        files::replace(file, &(text + "\n")).map_err(failed)?;
        Ok(Self { stamp: Stamp::of(file), ..Self::new(stored.accepted) })
    }

    pub(super) fn has(&self, file: &Path, item: &str, digest: &str) -> bool {
        let key = (file.to_owned(), item.to_owned(), digest.to_owned());
        self.known.contains(&key)
    }

    /// Whether an item of this name was accepted in this file, whatever it said.
    pub(super) fn names(&self, file: &Path, item: &str) -> bool {
        self.items.iter().any(|it| it.file == file && it.item == item)
    }
}

/// Forgets what was accepted.
pub(super) fn remove(file: &Path) -> Result<(), TrustError> {
    match fs::remove_file(file) {
        Err(error) if !files::is_absence(&error) => {
            Err(TrustError { file: file.to_owned(), error: FileError::Unwritable(error) })
        }
        _ => Ok(()),
    }
}
