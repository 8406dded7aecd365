//! The file system, as far as judgement needs it. This crate only asks the reader that the caller passes.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::paths::normalize;

/// The type of a path. A link is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathKind {
    Missing,
    File,
    Directory,
    Link,
    /// A pipe, a socket, a device.
    Other,
    /// The reader cannot tell.
    Unknown,
}

/// Access to links and types of paths.
pub trait Links: fmt::Debug {
    /// The path with its links resolved as far as it exists, and without `.` and `..`. The part that does not exist yet
    /// stays as written.
    fn resolve(&self, path: &Path) -> PathBuf;

    /// The type of this path.
    fn kind(&self, _path: &Path) -> PathKind {
        PathKind::Unknown
    }

    /// The names in a directory, hidden ones included. `None` if there are more than `most`, or if it cannot be read.
    fn names(&self, _directory: &Path, _most: usize) -> Option<Vec<String>> {
        None
    }

    /// Every path below a directory, without following links. `None` if there are more than `most`, or if one of the
    /// directories cannot be read.
    fn tree(&self, _directory: &Path, _most: usize) -> Option<Vec<PathBuf>> {
        None
    }
}

/// A file system without links, and otherwise unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLinks;

impl Links for NoLinks {
    fn resolve(&self, path: &Path) -> PathBuf {
        normalize(path)
    }
}
