//! Where a command may run: `cd` moves what follows it, if it succeeds.

use std::path::{Path, PathBuf};

use crate::paths::normalize;

/// More than this many possible directories count as unknown.
const MOST: usize = 8;

/// The directories in which a command may run; none means that nobody knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places(Vec<PathBuf>);

impl Places {
    pub(crate) fn at(directory: &Path) -> Self {
        Self(vec![directory.to_owned()])
    }

    pub(crate) fn unknown() -> Self {
        Self::default()
    }

    pub(crate) fn known(&self) -> &[PathBuf] {
        &self.0
    }

    pub(crate) fn or(&self, other: &Self) -> Self {
        if self.0.is_empty() || other.0.is_empty() {
            return Self::unknown();
        }
        let mut all = self.0.clone();
        for place in &other.0 {
            if !all.contains(place) {
                all.push(place.clone());
            }
        }
        if all.len() > MOST { Self::unknown() } else { Self(all) }
    }

    /// The directories after `cd directory`. The shell takes `..` from the text, not from the disk.
    pub(crate) fn enter(&self, directory: &str) -> Self {
        Self(self.0.iter().map(|place| normalize(&place.join(directory))).collect())
    }
}

/// Where the shell stands after a command, depending on how it ended.
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    pub(crate) success: Places,
    pub(crate) failure: Places,
}

impl Ending {
    pub(crate) fn same(places: Places) -> Self {
        Self { success: places.clone(), failure: places }
    }

    pub(crate) fn either(&self) -> Places {
        self.success.or(&self.failure)
    }

    pub(crate) fn swapped(self) -> Self {
        Self { success: self.failure, failure: self.success }
    }
}
