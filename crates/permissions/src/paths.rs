//! Paths as text: no file system is asked.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

/// The path without `.` and `..`, as far as its text tells.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    normal(path).into_owned()
}

/// The path without `.` and `..`: the same where it has none.
pub(crate) fn normal(path: &Path) -> Cow<'_, Path> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let marks = bytes.windows(2).any(|pair| matches!(pair, b"/." | b"//"));
    let ends = bytes.len() > 1 && bytes.ends_with(b"/");
    if bytes.starts_with(b"/") && !marks && !ends && std::path::MAIN_SEPARATOR == '/' {
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

/// Whether the path is one of the directories or below one.
pub(crate) fn is_inside(path: &Path, directories: &[PathBuf]) -> bool {
    let path = normal(path);
    directories.iter().any(|directory| path.starts_with(normal(directory)))
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
