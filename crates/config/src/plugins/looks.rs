//! Files that were looked at while plugins were read: they tell whether plugins have to be read again.

use std::path::{Path, PathBuf};

use crate::files::{self, FileError, LARGEST_SETTINGS, Stamp};

/// The seconds after which a stamp that is still the same proves that nothing changed.
const SETTLED_AFTER: i64 = 2;

/// Places that were looked at, and what was there.
#[derive(Debug, Default)]
pub(super) struct Looks {
    places: Vec<(PathBuf, Option<Stamp>)>,
    /// Whether something was looked for that the places do not tell of.
    is_doubtful: bool,
}

impl Looks {
    /// Reads a small text and remembers that it was looked at; `None` where there is none.
    pub(super) fn read(&mut self, path: &Path) -> Result<Option<String>, FileError> {
        let (stamp, text) = files::read(path, LARGEST_SETTINGS);
        self.places.push((path.to_owned(), stamp));
        text
    }

    /// Whether something is there; remembers that it was looked at.
    pub(super) fn exists(&mut self, path: &Path) -> bool {
        let stamp = Stamp::of(path);
        self.places.push((path.to_owned(), stamp));
        stamp.is_some()
    }

    /// Says that more was looked for than is remembered.
    pub(super) fn doubt(&mut self, is_doubtful: bool) {
        self.is_doubtful |= is_doubtful;
    }

    /// Whether all is as it was, which is sure only of what had not changed for a moment.
    pub(super) fn are_current(&self) -> bool {
        self.places.iter().all(|(path, stamp)| Stamp::of(path) == *stamp)
    }

    pub(super) fn are_settled(&self, now: i64) -> bool {
        let stamps = self.places.iter().filter_map(|(_, stamp)| stamp.as_ref());
        !self.is_doubtful && stamps.map(Stamp::changed_at).all(|at| at < now - SETTLED_AFTER)
    }
}
