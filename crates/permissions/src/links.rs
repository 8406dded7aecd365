//! Symbolic links, as whoever knows the file system sees them. This crate asks nobody but the one it
//! is given.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::paths::normalize;

/// Where paths lead.
pub trait Links: fmt::Debug {
    /// The path with its links resolved as far as it exists, and without `.` and `..`. What does not
    /// exist yet stays as written.
    fn resolve(&self, path: &Path) -> PathBuf;
}

/// A file system without links.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLinks;

impl Links for NoLinks {
    fn resolve(&self, path: &Path) -> PathBuf {
        normalize(path)
    }
}
