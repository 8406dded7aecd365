//! Paths by their names and by their targets: permission depends on both.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use crate::links::{Links, PathKind};
use crate::paths::{is_inside, join, normal, normalize};
use crate::policy::Policy;
use crate::shell::{Shape, Step};

/// The directories of a policy, and the links between them.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) links: &'a dyn Links,
}

impl Scene<'_> {
    /// The path by its name and, where that differs, by its target. The disk decides about `..` after a link, so the
    /// text is resolved before it is cleaned; the shell itself cleans it first.
    pub(crate) fn spots<'p>(&self, path: &'p Path) -> impl Iterator<Item = Cow<'p, Path>> {
        let named = normal(path);
        let other = |path: &Path| {
            let target = self.links.resolve(path);
            (target.as_os_str() != named.as_os_str()).then(|| normalize(&target).into())
        };
        let leads: Option<Cow<'p, Path>> = other(path);
        let climbs = matches!(named, Cow::Owned(_))
            && path.components().any(|it| it == Component::ParentDir);
        let cleaned = if climbs { other(&named) } else { None };
        std::iter::once(named).chain(leads).chain(cleaned)
    }

    /// The paths on the disk that match a pattern, which begins at the root and has no choices. `None` if there is too
    /// much to search, or if the disk cannot be read.
    pub(crate) fn matches(&self, pattern: &Shape) -> Option<Vec<PathBuf>> {
        const MOST: usize = 2_000;
        const LARGEST: usize = 20_000;
        let mut found = vec![PathBuf::from("/")];
        let names = pattern.steps().split(|step| *step == Step::Literal('/'));
        for name in names.filter(|name| !name.is_empty()) {
            let shape = Shape::from_steps(name);
            let mut next = Vec::new();
            for directory in &found {
                if let Some(text) = shape.text() {
                    next.push(join(directory, &text));
                    continue;
                }
                let there = self.links.resolve(directory);
                if matches!(self.links.kind(&there), PathKind::Missing | PathKind::File) {
                    continue;
                }
                let names = self.links.names(&there, LARGEST)?;
                let fits = |name: &&String| shape.intersects(&Shape::literal(name));
                next.extend(names.iter().filter(fits).map(|name| join(directory, name)));
                if next.len() > MOST {
                    return None;
                }
            }
            found = next;
        }
        Some(found)
    }

    /// Whether the path and its target may be read without a question.
    pub(crate) fn is_open_to_reading(&self, path: &Path) -> bool {
        self.spots(path).all(|spot| {
            is_inside(&spot, &self.policy.directories) || is_inside(&spot, &self.policy.readable)
        })
    }

    /// Whether the path and its target are in the working directories.
    pub(crate) fn is_inside(&self, path: &Path) -> bool {
        self.spots(path).all(|spot| is_inside(&spot, &self.policy.directories))
    }

    /// Whether a deny or ask rule matches the path or its target: for reading or, with `writes`, for editing.
    pub(crate) fn is_guarded(&self, path: &Path, writes: bool) -> bool {
        self.spots(path).any(|spot| self.policy.guards(&spot, writes))
    }

    /// Whether the path or its target is protected.
    pub(crate) fn is_protected(&self, path: &Path) -> bool {
        self.spots(path).any(|spot| self.policy.protects(&spot))
    }
}
