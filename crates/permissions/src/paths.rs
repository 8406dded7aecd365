//! Paths as text: without access to the file system.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

/// The path without `.` and `..`, as far as its text tells.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    normal(path).into_owned()
}

/// The path without `.` and `..`: the same where it has none.
pub(crate) fn normal(path: &Path) -> Cow<'_, Path> {
    if is_normal(path) {
        return Cow::Borrowed(path);
    }
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    Cow::Owned(clean)
}

/// The path of a word in a directory, as [`Path::join`] makes it but in one piece of memory.
pub(crate) fn join(directory: &Path, word: &str) -> PathBuf {
    let mut path = PathBuf::with_capacity(directory.as_os_str().len() + word.len() + 1);
    path.push(directory);
    path.push(word);
    path
}

/// Whether the path is certainly absolute and clean. `/.x` counts as not clean, though it may be: this check is quick.
#[expect(
    clippy::needless_bitwise_bool,
    reason = "without a branch, many bytes are seen in one step"
)]
fn is_normal(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let dirty = bytes.iter().zip(bytes.iter().skip(1)).fold(false, |dirty, (byte, next)| {
        dirty | ((*byte == b'/') & ((*next == b'.') | (*next == b'/')))
    });
    let ends = bytes.len() == 1 || bytes.last() != Some(&b'/');
    let begins = bytes.first() == Some(&b'/');
    !dirty && begins && ends && std::path::MAIN_SEPARATOR == '/'
}

/// The part of a clean path below a clean directory, if it is there.
pub(crate) fn below<'a>(path: &'a Path, directory: &Path) -> Option<&'a Path> {
    // As text where that is equal: comparing component by component takes most of a decision's time.
    match (path.to_str(), directory.to_str()) {
        (Some(path), Some(directory)) if std::path::MAIN_SEPARATOR == '/' => {
            let rest = path.strip_prefix(directory.strip_suffix('/').unwrap_or(directory))?;
            if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }.map(Path::new)
        }
        _ => path.strip_prefix(directory).ok(),
    }
}

/// Whether the path is one of the directories or below one.
pub(crate) fn is_inside(path: &Path, directories: &[PathBuf]) -> bool {
    let path = normal(path);
    directories.iter().any(|directory| below(&path, &normal(directory)).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_are_resolved_and_the_root_has_no_parent() {
        for (path, clean) in [
            ("/a/./b/../c", "/a/c"),
            ("/a/b/", "/a/b"),
            ("/../../etc", "/etc"),
            ("/a/b/../..", "/"),
        ] {
            assert_eq!(normalize(Path::new(path)), Path::new(clean), "{path}");
        }
    }

    #[test]
    fn what_is_below_is_told_as_by_its_components() {
        let paths = ["/", "/a", "/a/b", "/a/bc", "/ab", "/b/a", "/a/b/c d/é"].map(Path::new);
        for (path, directory) in paths.iter().flat_map(|path| paths.map(|other| (*path, other))) {
            let expected = path.strip_prefix(directory).ok();
            assert_eq!(below(path, directory), expected, "{path:?} below {directory:?}");
        }
    }

    #[test]
    fn a_sibling_with_the_same_beginning_is_outside() {
        let directories = [PathBuf::from("/home/ada/project")];
        for (path, inside) in [
            ("/home/ada/project", true),
            ("/home/ada/project/src/main.rs", true),
            ("/home/ada/project-secrets/key", false),
            ("/home/ada/project/../key", false),
            ("/home/ada", false),
        ] {
            assert_eq!(is_inside(Path::new(path), &directories), inside, "{path}");
        }
    }
}
