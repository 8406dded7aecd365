//! The file system, as far as judgement needs it. This crate asks only the reader that it is given.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::paths::normalize;

/// What is at a path. A link is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Missing,
    File,
    Directory,
    Link,
    /// A pipe, a socket, a device.
    Other,
    /// The reader cannot tell.
    Unknown,
}

/// Where paths lead and what is there.
pub trait Links: fmt::Debug {
    /// The path with its links resolved as far as it exists, and without `.` and `..`. What does not
    /// exist yet stays as written.
    fn resolve(&self, path: &Path) -> PathBuf;

    /// What is at this path.
    fn kind(&self, _path: &Path) -> Kind {
        Kind::Unknown
    }

    /// The names in a directory, with those that begin with a dot. Nothing if there are more than `most`, or if
    /// it cannot be read.
    fn names(&self, _directory: &Path, _most: usize) -> Option<Vec<String>> {
        None
    }

    /// Every path below a directory, without following links. Nothing if there are more than `most`, or
    /// if one of the directories cannot be read.
    fn tree(&self, _directory: &Path, _most: usize) -> Option<Vec<PathBuf>> {
        None
    }
}

/// A file system without links, of which nothing else is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLinks;

impl Links for NoLinks {
    fn resolve(&self, path: &Path) -> PathBuf {
        normalize(path)
    }
}
