//! The directories in which a command may run: `cd` changes them for the following commands, if it succeeds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::paths::normalize;

/// More than this many possible directories count as unknown.
const MOST: usize = 8;

/// The directories in which a command may run; empty means that they are unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places(Arc<[PathBuf]>);

impl Places {
    pub(crate) fn at(directory: &Path) -> Self {
        Self(Arc::new([directory.to_owned()]))
    }

    pub(crate) fn unknown() -> Self {
        Self::default()
    }

    pub(crate) fn known(&self) -> &[PathBuf] {
        &self.0
    }

    /// An estimate of its size in bytes, as if it were not shared.
    pub(crate) fn weight(&self) -> usize {
        self.0.iter().map(|place| place.as_os_str().len() + size_of::<PathBuf>()).sum()
    }

    pub(crate) fn or(&self, other: &Self) -> Self {
        if Arc::ptr_eq(&self.0, &other.0) {
            return self.clone();
        }
        if self.0.is_empty() || other.0.is_empty() {
            return Self::unknown();
        }
        let mut all = self.0.to_vec();
        for place in other.known() {
            if !all.contains(place) {
                all.push(place.clone());
            }
        }
        if all.len() > MOST { Self::unknown() } else { Self(all.into()) }
    }

    /// The directories after `cd` into one of these.
    pub(crate) fn enter_any(&self, directories: &[String]) -> Self {
        let mut entered = directories.iter().map(|directory| self.enter(directory));
        let first = entered.next().unwrap_or_default();
        entered.fold(first, |all, more| all.or(&more))
    }

    /// The directories after `cd directory`. The shell resolves `..` by the text, not by the disk.
    pub(crate) fn enter(&self, directory: &str) -> Self {
        Self(self.0.iter().map(|place| normalize(&place.join(directory))).collect())
    }
}

/// The shell's directories after a command, depending on its success.
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

    /// After a pipeline, and another one that runs only if this one succeeds.
    pub(crate) fn and(self, then: Self) -> Self {
        Self { failure: self.failure.or(&then.failure), success: then.success }
    }

    /// After a pipeline, and another one that runs only if this one fails.
    pub(crate) fn or(self, then: Self) -> Self {
        Self { success: self.success.or(&then.success), failure: then.failure }
    }

    /// After a pipeline of several commands that all began in the shell's directory. Some shells run the last one
    /// themselves.
    pub(crate) fn of_pipe(places: &Places, last: &Self) -> Self {
        Self::same(places.or(&last.either()))
    }

    pub(crate) fn swapped(self) -> Self {
        Self { success: self.failure, failure: self.success }
    }
}
