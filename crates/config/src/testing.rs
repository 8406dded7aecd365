//! A scratch machine for tests: files below a scratch directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A scratch directory that stands for a whole machine.
pub(crate) trait ScratchFiles: Sized {
    fn root(&self) -> &Path;

    fn path(&self, relative: &str) -> PathBuf {
        // Scratch directories may themselves be reached through a link.
        self.root().canonicalize().unwrap().join(relative)
    }

    /// Writes a file, with the directories it needs.
    fn write(&self, relative: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap()
    }

    /// Makes a link, with the directories it needs.
    fn link(&self, relative: &str, target: &str) -> &Self {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(self.path(target), path).unwrap();
        self
    }
}
