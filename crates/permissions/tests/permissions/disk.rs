//! The real disk, for tests that compare the judgement with a shell.
#![expect(clippy::unwrap_used, reason = "a disk that cannot be read shows nothing")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use centurion_permissions::{Links, PathKind};

/// The real disk.
#[derive(Debug)]
pub(crate) struct Disk;

impl Links for Disk {
    fn resolve(&self, path: &Path) -> PathBuf {
        resolve(path, |path| path.canonicalize().ok())
    }

    fn kind(&self, path: &Path) -> PathKind {
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_file() => PathKind::File,
            Ok(metadata) if metadata.is_dir() => PathKind::Directory,
            Ok(metadata) if metadata.is_symlink() => PathKind::Link,
            Ok(_) => PathKind::Other,
            Err(_) => PathKind::Missing,
        }
    }

    fn names(&self, directory: &Path, most: usize) -> Option<Vec<String>> {
        let names = fs::read_dir(directory).ok()?;
        let names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        (names.len() <= most).then_some(names)
    }

    fn tree(&self, directory: &Path, most: usize) -> Option<Vec<PathBuf>> {
        let mut found = BTreeMap::new();
        collect(directory, &mut found);
        (found.len() <= most).then(|| found.into_keys().collect())
    }
}

/// Resolves a path name by name; `target` says where one leads that is a link.
pub(crate) fn resolve(path: &Path, target: impl Fn(&Path) -> Option<PathBuf>) -> PathBuf {
    let mut resolved = PathBuf::new();
    for component in path.components() {
        match component {
            std::path::Component::ParentDir => {
                resolved.pop();
            }
            std::path::Component::CurDir => {}
            other => resolved.push(other),
        }
        if let Some(real) = target(&resolved) {
            resolved = real;
        }
    }
    resolved
}

/// Every path below a directory with its content.
pub(crate) fn collect(directory: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            collect(&path, found);
            found.insert(path, b"directory".to_vec());
        } else if entry.file_type().unwrap().is_file() {
            let content = fs::read(&path).unwrap_or_default();
            found.insert(path, content);
        } else {
            found.insert(path, b"other".to_vec());
        }
    }
}
