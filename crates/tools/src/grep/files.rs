//! Which files a search looks into.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use tokio_util::sync::CancellationToken;

use crate::{ToolError, Workspace, disk, walk};

/// The files below a place that pass all filters.
pub(super) struct Candidates {
    /// With links resolved.
    root: PathBuf,
    workspace: Arc<Workspace>,
    /// Whether the root is one file that was named.
    pub(super) is_single_file: bool,
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
        Ok(Self { is_single_file: root.is_file(), root, workspace, globs, types })
    }

    /// All candidates, ordered by path. A file that was named is one, whatever the filters say, but not
    /// when it may not be read.
    pub(super) fn collect(&self, cancel: &CancellationToken) -> Result<Vec<PathBuf>, ToolError> {
        if !self.root.is_dir() {
            if !(self.workspace.may_read)(&self.root) {
                return Err(ToolError::failed(format!(
                    "{} may not be read: a permission rule denies it",
                    self.root.display()
                )));
            }
            disk::open(&self.root)?;
            return Ok(vec![self.root.clone()]);
        }
        let globs = self.globs.clone();
        let mut builder = walk::builder(&self.root, &self.workspace, move |entry| {
            let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
            entry.depth() == 0 || !globs.matched(entry.path(), is_dir).is_ignore()
        });
        if let Some(types) = &self.types {
            builder.types(types.clone());
        }
        let mut files = walk::collect(&builder, cancel, |entry| {
            entry.file_type()?.is_file().then(|| entry.into_path())
        })?;
        files.sort_unstable();
        Ok(files)
    }
}

/// Globs as a list, parted by commas or white space; `!` before one leaves out what it matches.
fn parse_globs(root: &Path, globs: &str) -> Result<Override, ignore::Error> {
    let mut builder = OverrideBuilder::new(root);
    for glob in split_globs(globs) {
        builder.add(glob)?;
    }
    builder.build()
}

/// Commas inside braces do not part.
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
