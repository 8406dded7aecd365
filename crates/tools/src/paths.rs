//! Paths as a model writes them, and the files that they mean.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use centurion_diff::close_words;
use centurion_files::{Directory, exists_without_links};
use centurion_permissions::{Links, PathKind};

/// The links that a path may lead through before it counts as a loop.
const MAX_LINKS: usize = 40;

/// The names of a directory that are compared for a suggestion.
const MAX_NAMES: usize = 1_000;

/// The path with the links of its longest existing part resolved, and without `.` and `..`.
///
/// The part that does not exist yet stays as written, so that a file about to be created has its future path: rules are
/// matched against that.
pub fn resolve(path: &Path) -> PathBuf {
    if exists_without_links(path) {
        return path.components().collect();
    }
    path.canonicalize().unwrap_or_else(|_| resolve_parts(path, &mut { MAX_LINKS }))
}

/// Resolves a path part by part. `links_left` counts for the whole path: links that name each other twice would double
/// the work.
fn resolve_parts(path: &Path, links_left: &mut usize) -> PathBuf {
    let mut resolved = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                resolved.pop();
            }
            Component::Normal(name) => {
                resolved.push(name);
                if let Ok(canonical) = resolved.canonicalize() {
                    resolved = canonical;
                } else if *links_left > 0
                    && let Ok(target) = fs::read_link(&resolved)
                {
                    // A link that leads nowhere yet: a write would create its target.
                    *links_left -= 1;
                    resolved.pop();
                    resolved = resolve_parts(&resolved.join(target), links_left);
                }
            }
            root => resolved.push(root),
        }
    }
    resolved
}

/// The path as answers show it: relative to `base` where it lies below.
pub(crate) fn shown(path: &Path, base: &Path) -> String {
    match path.strip_prefix(base) {
        Ok(rest) if !rest.as_os_str().is_empty() => rest.to_string_lossy().into_owned(),
        _ => path.to_string_lossy().into_owned(),
    }
}

/// Names in the directory of a missing file, given by its resolved path, that the model may have meant, best first.
pub(crate) fn similar_names(missing: &Path) -> Vec<String> {
    let (Some(directory), Some(name)) = (missing.parent(), missing.file_name()) else {
        return Vec::new();
    };
    let listed = Directory::open(directory).and_then(|directory| directory.list(MAX_NAMES));
    let name = name.to_string_lossy().to_lowercase();
    let names: Vec<(String, String)> = listed
        .unwrap_or_default()
        .into_iter()
        .map(|entry| entry.name.to_string_lossy().into_owned())
        .map(|name| (name.to_lowercase(), name))
        .collect();
    let lower: Vec<&str> = names.iter().map(|(lower, _)| lower.as_str()).collect();
    let close = close_words(&name, &lower, 3);
    let mut found: Vec<String> = Vec::new();
    for candidate in close {
        for (lower, name) in &names {
            if lower == candidate && !found.contains(name) {
                found.push(name.clone());
            }
        }
    }
    found
}

/// The file system of this machine, for permission decisions.
#[derive(Clone, Copy, Debug)]
pub struct DiskLinks;

impl Links for DiskLinks {
    fn resolve(&self, path: &Path) -> PathBuf {
        resolve(path)
    }

    fn kind(&self, path: &Path) -> PathKind {
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_file() => PathKind::File,
            Ok(metadata) if metadata.is_dir() => PathKind::Directory,
            Ok(metadata) if metadata.is_symlink() => PathKind::Link,
            Ok(_) => PathKind::Other,
            Err(error) if error.kind() == ErrorKind::NotFound => PathKind::Missing,
            // A name below something that is no directory.
            Err(error) if error.kind() == ErrorKind::NotADirectory => PathKind::Missing,
            Err(_) => PathKind::Unknown,
        }
    }

    fn names(&self, directory: &Path, most: usize) -> Option<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(directory).ok()? {
            if names.len() == most {
                return None;
            }
            names.push(entry.ok()?.file_name().to_string_lossy().into_owned());
        }
        Some(names)
    }

    fn tree(&self, directory: &Path, most: usize) -> Option<Vec<PathBuf>> {
        let mut paths = Vec::new();
        let mut waiting = vec![directory.to_owned()];
        while let Some(directory) = waiting.pop() {
            for entry in fs::read_dir(directory).ok()? {
                let entry = entry.ok()?;
                if paths.len() == most {
                    return None;
                }
                if entry.file_type().ok()?.is_dir() {
                    waiting.push(entry.path());
                }
                paths.push(entry.path());
            }
        }
        Some(paths)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_resolved_as_far_as_the_path_exists() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        fs::create_dir(base.join("real")).unwrap();
        symlink(base.join("real"), base.join("link")).unwrap();
        assert_eq!(resolve(&base.join("link/new/file")), base.join("real/new/file"));
        assert_eq!(resolve(&base.join("link/../x")), base.join("x"));
        assert_eq!(resolve(&base.join("./link/./a/../b")), base.join("real/b"));
    }

    #[test]
    fn what_exists_has_the_path_that_the_system_gives_it() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for place in ["a", "a/a", "b"] {
            fs::create_dir(base.join(place)).unwrap();
            fs::write(base.join(place).join("file"), "").unwrap();
            symlink("file", base.join(place).join("link")).unwrap();
            symlink("..", base.join(place).join("up")).unwrap();
        }
        symlink("b", base.join("c")).unwrap();
        let names = ["", ".", "..", "a", "b", "c", "file", "link", "up", "missing"];
        let mut existing = 0;
        for n in 0..names.len().pow(4) {
            let parts = [n / 1000, n / 100, n / 10, n].map(|digit| names[digit % 10]);
            let path = PathBuf::from(format!("{}/{}", base.display(), parts.join("/")));
            if let Ok(known) = path.canonicalize() {
                existing += 1;
                assert_eq!(resolve(&path), known, "{}", path.display());
            }
        }
        assert!(existing > 500, "only {existing} paths lead somewhere");
    }

    #[test]
    fn a_dangling_link_means_what_it_points_to() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        symlink("missing/target", base.join("dangling")).unwrap();
        assert_eq!(resolve(&base.join("dangling")), base.join("missing/target"));
        symlink("loop/../loop", base.join("loop")).unwrap();
        assert_eq!(resolve(&base.join("loop")).file_name().unwrap(), "loop");
    }

    #[test]
    fn a_missing_file_is_answered_with_names_like_it() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for name in ["README.md", "main.rs", "unrelated.bin"] {
            fs::write(base.join(name), "").unwrap();
        }
        assert_eq!(similar_names(&base.join("readme.txt")), ["README.md"]);
        assert_eq!(similar_names(&base.join("mian.rs")), ["main.rs"]);
        assert!(similar_names(&base.join("none/x")).is_empty());
    }
}
