//! A scratch machine for tests: files below a scratch directory.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A scratch directory that stands for a whole machine. Each suite of tests has its own `S`: what it knows of the
/// machine, and by it the methods that it adds.
pub(crate) struct Machine<S = ()> {
    directory: tempfile::TempDir,
    suite: S,
}

impl<S> Machine<S> {
    pub(crate) fn with(suite: impl FnOnce(&Path) -> S) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let suite = suite(&directory.path().canonicalize().unwrap());
        Self { directory, suite }
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        // Scratch directories may themselves be reached through a link.
        self.directory.path().canonicalize().unwrap().join(relative)
    }

    /// Writes a file, with the directories it needs.
    pub(crate) fn write(&self, relative: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap()
    }

    /// Makes a link, with the directories it needs.
    pub(crate) fn link(&self, relative: &str, target: &str) -> &Self {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(self.path(target), path).unwrap();
        self
    }
}

impl<S> Deref for Machine<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.suite
    }
}

impl<S> DerefMut for Machine<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.suite
    }
}
