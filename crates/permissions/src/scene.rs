//! Paths as they are named and as they lead: permission rests on both.

use std::path::{Path, PathBuf};

use crate::links::Links;
use crate::paths::{is_inside, normalize};
use crate::policy::Policy;
use crate::protected::is_protected;

/// The places of a policy, and the links between them.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) links: &'a dyn Links,
}

impl Scene<'_> {
    /// The path as it is named and as it leads. `..` after a link is the disk's business, so the text
    /// is resolved before it is cleaned.
    pub(crate) fn spots(&self, path: &Path) -> [PathBuf; 2] {
        [normalize(path), normalize(&self.links.resolve(path))]
    }

    /// Whether the path and what it leads to may be read without anybody's word.
    pub(crate) fn is_open_to_reading(&self, path: &Path) -> bool {
        self.spots(path).iter().all(|spot| {
            is_inside(spot, &self.policy.directories) || is_inside(spot, &self.policy.readable)
        })
    }

    /// Whether the path and what it leads to are in the working directories.
    pub(crate) fn is_inside(&self, path: &Path) -> bool {
        self.spots(path).iter().all(|spot| is_inside(spot, &self.policy.directories))
    }

    /// Whether the path or what it leads to is protected.
    pub(crate) fn is_protected(&self, path: &Path) -> bool {
        self.spots(path).iter().any(|spot| is_protected(spot))
    }
}
