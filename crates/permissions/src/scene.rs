//! Paths as they are named and as they lead: permission rests on both.

use std::borrow::Cow;
use std::path::Path;

use crate::links::Links;
use crate::paths::{is_inside, normal, normalize};
use crate::policy::Policy;
use crate::protected::is_protected;

/// The places of a policy, and the links between them.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) links: &'a dyn Links,
}

impl Scene<'_> {
    /// The path as it is named and, where that is another, as it leads. `..` after a link is the disk's
    /// business, so the text is resolved before it is cleaned.
    pub(crate) fn spots<'p>(&self, path: &'p Path) -> impl Iterator<Item = Cow<'p, Path>> {
        let named = normal(path);
        let target = self.links.resolve(path);
        let leads = (target.as_os_str() != named.as_os_str()).then(|| normalize(&target).into());
        std::iter::once(named).chain(leads)
    }

    /// Whether the path and what it leads to may be read without anybody's word.
    pub(crate) fn is_open_to_reading(&self, path: &Path) -> bool {
        self.spots(path).all(|spot| {
            is_inside(&spot, &self.policy.directories) || is_inside(&spot, &self.policy.readable)
        })
    }

    /// Whether the path and what it leads to are in the working directories.
    pub(crate) fn is_inside(&self, path: &Path) -> bool {
        self.spots(path).all(|spot| is_inside(&spot, &self.policy.directories))
    }

    /// Whether the path or what it leads to is protected.
    pub(crate) fn is_protected(&self, path: &Path) -> bool {
        self.spots(path).any(|spot| is_protected(&spot))
    }
}
