//! Files as a host sees them: a part to show, and the word that an agent has seen one.

use std::io::Read as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::disk::{self, MAX_IN_MEMORY};
use crate::{ToolError, View, Workspace};

/// The beginning of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileView {
    pub bytes: Vec<u8>,
    /// Whether the file has more.
    pub is_cut: bool,
}

/// Reads at most `most` bytes of a regular file, by its resolved path.
pub fn view_file(path: &Path, most: u64) -> Result<FileView, ToolError> {
    let (file, _) = disk::open(path, path)?;
    let mut bytes = Vec::new();
    let limit = most.saturating_add(1);
    let read = file.take(limit).read_to_end(&mut bytes);
    read.map_err(|error| disk::explain("read", path, &error))?;
    let is_cut = bytes.len() as u64 > most;
    bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    Ok(FileView { bytes, is_cut })
}

impl Workspace {
    /// Notes that the agent has seen the whole file at `path` (resolved), if the file was last changed at this
    /// millisecond; whether it was.
    pub fn seed_seen(&self, path: &Path, changed_at: u64) -> Result<bool, ToolError> {
        let (_, metadata) = disk::open(path, path)?;
        let changed = metadata.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
        if changed.is_none_or(|it| it.as_millis() != u128::from(changed_at)) {
            return Ok(false);
        }
        let FileView { bytes, is_cut } = view_file(path, MAX_IN_MEMORY)?;
        if !is_cut {
            self.note_seen(path, &bytes, View::Whole);
        }
        Ok(!is_cut)
    }
}
