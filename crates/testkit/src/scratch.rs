//! A directory for one test, with a home and a project in it, gone when the test is over.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A scratch home and project directory.
#[derive(Debug)]
pub struct Scratch {
    root: TempDir,
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// Makes the directories.
    ///
    /// # Panics
    /// If the machine has no room for them: no test can continue then.
    pub fn new() -> Self {
        let scratch = Self { root: tempfile::tempdir().expect("a scratch directory") };
        for directory in [scratch.home(), scratch.project()] {
            std::fs::create_dir(&directory).expect("a scratch directory");
        }
        scratch
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// Writes a file below the project, with the directories it needs; gives its path.
    pub fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        write_at(&self.project().join(path), text.as_ref())
    }

    /// Writes a file below the home, with the directories it needs; gives its path.
    pub fn write_home(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> PathBuf {
        write_at(&self.home().join(path), text.as_ref())
    }

    /// The text of a file below the project.
    pub fn read(&self, path: impl AsRef<Path>) -> String {
        let path = self.project().join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}

fn write_at(path: &Path, text: &[u8]) -> PathBuf {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).expect("a directory for a file");
    }
    std::fs::write(path, text).expect("a file in a scratch directory");
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_is_gone_when_dropped() {
        let scratch = Scratch::new();
        let path = scratch.write("a/b.txt", "hello");
        assert_eq!(scratch.read("a/b.txt"), "hello");
        assert!(scratch.write_home(".config/x", "y").starts_with(scratch.home()));
        drop(scratch);
        assert!(!path.exists());
    }
}
