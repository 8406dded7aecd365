//! Copying a plugin's directory: what belongs to it and nothing else, within bounds.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::Problem;

const MOST_FILES: usize = 20_000;
const MOST_BYTES: u64 = 512 * 1024 * 1024;
const DEEPEST: usize = 32;

/// The reason why a tree cannot be copied.
#[derive(Debug, Error)]
pub enum CopyError {
    #[error("{} cannot be copied: {error}", path.display())]
    Copy { path: PathBuf, error: io::Error },
    #[error("{} is no directory", .0.display())]
    NoDirectory(PathBuf),
    #[error("{} holds the directory that plugins are kept in, and cannot be one", .0.display())]
    Inside(PathBuf),
    #[error("{} is too large for a plugin: {limit}", path.display())]
    TooLarge { path: PathBuf, limit: String },
}

/// Copies a directory to a place where nothing is; gives what was left out. History of git is not copied,
/// nor is anything that is no file, nor a link that would lead elsewhere from its new place.
pub(super) fn copy_tree(from: &Path, to: &Path) -> Result<Vec<Problem>, CopyError> {
    let failed = |error| CopyError::Copy { path: from.to_owned(), error };
    let real = from.canonicalize().map_err(failed)?;
    if !real.is_dir() {
        return Err(CopyError::NoDirectory(from.to_owned()));
    }
    if to.starts_with(&real) {
        return Err(CopyError::Inside(from.to_owned()));
    }
    let mut copy = Copy { root: real.clone(), left_out: Vec::new(), files: 0, bytes: 0 };
    copy.directory(&real, to, 0)?;
    Ok(copy.left_out)
}

struct Copy {
    root: PathBuf,
    left_out: Vec<Problem>,
    files: usize,
    bytes: u64,
}

impl Copy {
    fn directory(&mut self, from: &Path, to: &Path, depth: usize) -> Result<(), CopyError> {
        if depth > DEEPEST {
            return Err(self.too_large(format!("folders lie more than {DEEPEST} deep")));
        }
        let failed = |error| CopyError::Copy { path: from.to_owned(), error };
        fs::create_dir(to).map_err(failed)?;
        for entry in fs::read_dir(from).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (path, name) = (entry.path(), entry.file_name());
            if name == ".git" {
                continue;
            }
            let kind = entry.file_type().map_err(failed)?;
            let target = to.join(&name);
            self.count(&path)?;
            if kind.is_dir() {
                self.directory(&path, &target, depth + 1)?;
            } else if kind.is_symlink() {
                self.link(&path, &target)?;
            } else if kind.is_file() {
                copy_file(&path, &target)?;
            } else {
                self.leave_out(&path, "is no file and was left out");
            }
        }
        Ok(())
    }

    fn count(&mut self, path: &Path) -> Result<(), CopyError> {
        self.files += 1;
        if self.files > MOST_FILES {
            return Err(self.too_large(format!("it has more than {MOST_FILES} files")));
        }
        let metadata = path.symlink_metadata();
        let metadata =
            metadata.map_err(|error| CopyError::Copy { path: path.to_owned(), error })?;
        self.bytes += metadata.len();
        if self.bytes > MOST_BYTES {
            let limit = format!("it has more than {} MiB", MOST_BYTES / 1024 / 1024);
            return Err(self.too_large(limit));
        }
        Ok(())
    }

    fn too_large(&self, limit: String) -> CopyError {
        CopyError::TooLarge { path: self.root.clone(), limit }
    }

    fn leave_out(&mut self, path: &Path, message: &str) {
        let (path, message) = (path.to_owned(), message.to_owned());
        self.left_out.push(Problem { path, line: None, message });
    }

    /// A link stays one if it is relative and leads to something that is copied, too.
    fn link(&mut self, from: &Path, to: &Path) -> Result<(), CopyError> {
        let failed = |error| CopyError::Copy { path: from.to_owned(), error };
        let written = fs::read_link(from).map_err(failed)?;
        let is_inside = from.canonicalize().is_ok_and(|real| real.starts_with(&self.root));
        if written.is_absolute() || !is_inside {
            self.leave_out(from, "is a link that leads elsewhere, and was left out");
            return Ok(());
        }
        symlink(written, to).map_err(failed)
    }
}

fn copy_file(from: &Path, to: &Path) -> Result<(), CopyError> {
    let failed = |error| CopyError::Copy { path: from.to_owned(), error };
    fs::copy(from, to).map_err(failed)?;
    let mode = fs::metadata(to).map_err(failed)?.permissions().mode();
    // Nothing that changes who runs it, and nothing that its owner cannot replace.
    let mode = (mode & 0o777) | 0o600;
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_a_tree_is_copied_and_nothing_else() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path().canonicalize().unwrap();
        let from = top.join("from");
        fs::create_dir_all(from.join("a/b")).unwrap();
        fs::create_dir_all(from.join(".git")).unwrap();
        fs::write(from.join(".git/config"), "secret").unwrap();
        fs::write(top.join("outside"), "secret").unwrap();
        fs::write(from.join("a/b/run.sh"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(from.join("a/b/run.sh"), fs::Permissions::from_mode(0o4555)).unwrap();
        symlink("b/run.sh", from.join("a/near")).unwrap();
        symlink("../../outside", from.join("a/far")).unwrap();
        symlink(from.join("a"), from.join("absolute")).unwrap();
        let to = top.join("to");
        let left_out = copy_tree(&from, &to).unwrap();
        let mut names: Vec<_> =
            left_out.iter().map(|it| it.path.file_name().unwrap().to_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["absolute", "far"]);
        assert_eq!(fs::read_to_string(to.join("a/near")).unwrap(), "#!/bin/sh\n");
        let mode = fs::metadata(to.join("a/b/run.sh")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
        assert!(!to.join(".git").exists() && !to.join("a/far").is_symlink());
        assert!(matches!(
            copy_tree(&top.join("outside"), &top.join("x")),
            Err(CopyError::NoDirectory(_))
        ));
        assert!(matches!(copy_tree(&from, &from.join("a/x")), Err(CopyError::Inside(_))));
        assert!(copy_tree(&top.join("none"), &top.join("x")).is_err());
    }
}
