//! Selects the files that a search reads.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_files::{Directory, Kind, OpenError};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use tokio_util::sync::CancellationToken;

use crate::walk::{Entry, Step, Walk};
use crate::{ToolError, Workspace, disk};

/// The files below a directory that pass all filters.
pub(super) struct Candidates {
    /// With links resolved.
    root: PathBuf,
    /// The opened root; `None` where the root is one named file.
    directory: Option<Directory>,
    workspace: Arc<Workspace>,
    globs: Override,
    types: Option<Types>,
}

impl Candidates {
    pub(super) fn plan(
        root: PathBuf,
        workspace: Arc<Workspace>,
        globs: Option<&str>,
        file_type: Option<&str>,
    ) -> Result<Self, ToolError> {
        let globs = parse_globs(&root, globs.unwrap_or_default())
            .map_err(|error| ToolError::Input(format!("the glob cannot be used: {error}")))?;
        let types = file_type.map(parse_type).transpose()?;
        let directory = match Directory::open(&root) {
            Ok(directory) => Some(directory),
            Err(error) if error.kind() == ErrorKind::NotADirectory => None,
            // Reports the missing path with suggestions.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(disk::explain_missing(&root, &root));
            }
            Err(error) => return Err(disk::explain("search", &root, &error)),
        };
        Ok(Self { root, directory, workspace, globs, types })
    }

    /// Whether the root is one named file.
    pub(super) fn is_single_file(&self) -> bool {
        self.directory.is_none()
    }

    /// Returns all candidates, ordered by path. A named file is always a candidate, whatever the filters say, unless it
    /// may not be read.
    pub(super) fn collect(&self, cancel: &CancellationToken) -> Result<Vec<PathBuf>, ToolError> {
        let Some(directory) = &self.directory else {
            if !(self.workspace.may_read)(&self.root) {
                return Err(ToolError::failed(format!(
                    "{} may not be read: a permission rule denies it",
                    self.root.display()
                )));
            }
            disk::open(&self.root, &self.root)?;
            return Ok(vec![self.root.clone()]);
        };
        let walk =
            Walk { root: &self.root, directory, workspace: &self.workspace, max_depth: None };
        let mut files = walk.collect(cancel, |entry| self.visit(entry))?;
        files.sort_unstable();
        Ok(files)
    }

    fn visit(&self, entry: &Entry<'_>) -> Step<PathBuf> {
        let is_directory = entry.kind == Kind::Directory;
        let is_left_out = self.globs.matched(entry.path, is_directory).is_ignore()
            || self
                .types
                .as_ref()
                .is_some_and(|types| types.matched(entry.path, is_directory).is_ignore());
        match entry.kind {
            _ if is_left_out => Step::Skip,
            Kind::Directory => Step::Enter,
            Kind::File => Step::Take(entry.path.to_owned()),
            Kind::Link | Kind::Other => Step::Skip,
        }
    }

    /// Opens a candidate below the directory that was opened at the start.
    pub(super) fn open(&self, path: &Path) -> Result<File, OpenError> {
        let opened = match &self.directory {
            Some(directory) => {
                directory.regular_file(path.strip_prefix(&self.root).unwrap_or(path))
            }
            None => centurion_files::open_regular(path),
        };
        opened.map(|(file, _)| file)
    }
}

/// Parses a list of globs, separated by commas or white space; `!` before a glob excludes its matches.
fn parse_globs(root: &Path, globs: &str) -> Result<Override, ignore::Error> {
    let mut builder = OverrideBuilder::new(root);
    for glob in split_globs(globs) {
        builder.add(glob)?;
    }
    builder.build()
}

/// Splits at commas, but not within braces.
fn split_globs(globs: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    globs
        .split(|character: char| {
            match character {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && (character == ',' || character.is_whitespace())
        })
        .filter(|glob| !glob.is_empty())
        .collect()
}

fn parse_type(name: &str) -> Result<Types, ToolError> {
    let mut builder = TypesBuilder::new();
    builder.add_defaults().select(name);
    builder.build().map_err(|_| {
        ToolError::Input(format!("there is no file type \"{name}\": choose the files with glob"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_are_parted_outside_braces() {
        assert_eq!(split_globs("*.{ts,tsx},!a b"), ["*.{ts,tsx}", "!a", "b"]);
        assert_eq!(split_globs(" , "), Vec::<&str>::new());
        assert_eq!(split_globs("}{a,b"), ["}{a,b"]);
    }
}
