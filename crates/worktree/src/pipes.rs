//! Pipes, sockets and devices in the place of files that git reads wherever it looks. Git waits for a writer of a pipe that
//! never comes, so such a file is looked for before git looks at what an agent left.

use std::ffi::OsStr;
use std::fs::{self, FileType};
use std::path::{Path, PathBuf};

use crate::files::{SHORT, read_text};

/// The files that git reads in any directory.
const READ: [&str; 5] = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap", ".lfsconfig"];

/// The first file in a checkout that git, or a filter of the user's, would read and that is none.
pub(crate) fn first_in(top: &Path) -> Option<PathBuf> {
    let mut directories = vec![top.to_owned()];
    while let Some(directory) = directories.pop() {
        // A directory that cannot be listed is git's to name.
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
            let path = entry.path();
            if name == ".git" {
                // The checkout's own leads to what is looked at by itself.
                let inner = if directory == top { None } else { first_of_repository(&path, kind) };
                if inner.is_some() {
                    return inner;
                }
            } else if kind.is_dir() {
                directories.push(path);
            } else if is_special(kind) && READ.iter().any(|it| *it == name) {
                return Some(path);
            }
        }
    }
    None
}

/// The same of the repository of a checkout within one.
fn first_of_repository(git: &Path, kind: FileType) -> Option<PathBuf> {
    if is_special(kind) {
        return Some(git.to_owned());
    }
    if kind.is_dir() {
        return first_below(git);
    }
    // Its place may be anywhere.
    let text = read_text(git, SHORT).ok()?;
    let named = git.parent()?.join(text.strip_prefix("gitdir:")?.trim());
    fs::metadata(&named).is_ok_and(|it| it.is_dir()).then(|| first_below(&named))?
}

/// The first file below a git directory that is none.
pub(crate) fn first_below(directory: &Path) -> Option<PathBuf> {
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            // Through links as well: git follows them here.
            let Ok(kind) = fs::metadata(entry.path()).map(|it| it.file_type()) else { continue };
            if is_special(kind) {
                return Some(entry.path());
            }
            // Objects have the names of what is in them, and are not looked at.
            let is_link = entry.file_type().is_ok_and(|it| it.is_symlink());
            if kind.is_dir() && !is_link && entry.file_name() != OsStr::new("objects") {
                directories.push(entry.path());
            }
        }
    }
    None
}

fn is_special(kind: FileType) -> bool {
    !kind.is_file() && !kind.is_dir() && !kind.is_symlink()
}
