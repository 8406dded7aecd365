//! Resolves a path, and records its links.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The most links that are followed, as in the kernel.
const MAX_LINKS: usize = 40;

/// An absolute path, resolved as far as it exists.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// The existing part, without links.
    pub(crate) path: PathBuf,
    /// The followed links, each by its own path.
    pub(crate) links: Vec<PathBuf>,
    /// The missing names.
    pub(crate) missing: Vec<OsString>,
}

impl Resolved {
    pub(crate) fn exists(&self) -> bool {
        self.missing.is_empty()
    }
}

/// Follows an absolute path.
pub(crate) fn resolve(path: &Path) -> io::Result<Resolved> {
    if !path.is_absolute() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path is not absolute"));
    }
    let mut resolved = Resolved { path: "/".into(), links: Vec::new(), missing: Vec::new() };
    let mut names = steps(path);
    while let Some(step) = names.pop_front() {
        let Step::Down(name) = step else {
            // The parent of a missing name is the part before it.
            if resolved.missing.pop().is_none() {
                resolved.path.pop();
            }
            continue;
        };
        if !resolved.exists() {
            resolved.missing.push(name);
            continue;
        }
        let place = resolved.path.join(&name);
        match fs::symlink_metadata(&place) {
            Ok(metadata) if metadata.is_symlink() => {
                if resolved.links.len() == MAX_LINKS {
                    return Err(io::Error::other("too many links"));
                }
                let target = fs::read_link(&place)?;
                if target.is_absolute() {
                    resolved.path = "/".into();
                }
                resolved.links.push(place);
                let mut followed = steps(&target);
                followed.append(&mut names);
                names = followed;
            }
            Ok(_) => resolved.path = place,
            Err(error) if is_missing(&error) => resolved.missing.push(name),
            Err(error) => return Err(error),
        }
    }
    Ok(resolved)
}

enum Step {
    Down(OsString),
    Up,
}

fn steps(path: &Path) -> VecDeque<Step> {
    let steps = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(Step::Down(name.to_owned())),
        Component::ParentDir => Some(Step::Up),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    steps.collect()
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_link_on_the_way_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/sub")).unwrap();
        symlink("real", root.join("one")).unwrap();
        symlink(root.join("one/sub"), root.join("real/two")).unwrap();
        let resolved = resolve(&root.join("one/./two/../new/file")).unwrap();
        assert_eq!(resolved.path, root.join("real"));
        assert_eq!(resolved.links, [root.join("one"), root.join("real/two"), root.join("one")]);
        assert_eq!(resolved.missing, ["new", "file"]);
        assert!(resolve(&root.join("real/sub")).unwrap().exists());
    }

    #[test]
    fn links_in_a_circle_and_relative_paths_are_refused() {
        let scratch = tempfile::tempdir().unwrap();
        symlink("loop", scratch.path().join("loop")).unwrap();
        assert!(resolve(&scratch.path().join("loop")).is_err());
        assert!(resolve(Path::new("relative")).is_err());
    }
}
