//! Indexes by which git looks at every file that is there.
//!
//! In an index, git can be told not to look at a file (`assume-unchanged`, `skip-worktree`). What was changed in such a
//! file is work like any other, so it is looked for by a copy of the index without such marks. A file that is not checked
//! out, as in a sparse worktree, keeps its mark: it is not missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::files::{LONG, read, remove_if_there, replace_copy};
use crate::git::{At, Git, GitError};
use crate::index::{self, IndexEntry};
use crate::names;

/// Number of copies that this process has made.
static COPIES: AtomicUsize = AtomicUsize::new(0);

/// An index without such marks: itself where it has none, or a copy, which goes with this.
pub(crate) struct WholeIndex {
    path: PathBuf,
    is_copy: bool,
}

impl WholeIndex {
    /// `at` is the repository with the files that the index is about.
    pub(crate) async fn of(git: &Git, at: &At<'_>, index: &Path) -> Result<Self, GitError> {
        let marked = MarkedFiles::find(git, &at.clone().index(index)).await?;
        if marked.is_nothing() {
            return Ok(Self { path: index.to_owned(), is_copy: false });
        }
        let (process, number) = (std::process::id(), COPIES.fetch_add(1, Ordering::Relaxed));
        let path = index.with_file_name(format!("centurion-look-{process}-{number}"));
        let copy = Self { path, is_copy: true };
        replace_copy(index, &copy.path)?;
        marked.clear(git, &at.clone().index(&copy.path)).await?;
        Ok(copy)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WholeIndex {
    fn drop(&mut self) {
        if self.is_copy
            && let Err(error) = remove_if_there(&self.path)
        {
            tracing::debug!(%error, "the copy of an index stays");
        }
    }
}

/// Takes the marks from an index, which is the one of `at`, for the files that are there.
pub(crate) async fn unhide(git: &Git, at: &At<'_>) -> Result<(), GitError> {
    MarkedFiles::find(git, at).await?.clear(git, at).await
}

/// The files that git does not look at and that count all the same.
#[derive(Default)]
struct MarkedFiles {
    /// `assume-unchanged`.
    assumed: Vec<PathBuf>,
    /// `skip-worktree`, of files that are there.
    skipped: Vec<PathBuf>,
}

impl MarkedFiles {
    async fn find(git: &Git, at: &At<'_>) -> Result<Self, GitError> {
        let mut found = Self::default();
        if !at.index.is_some_and(may_mark) {
            return Ok(found);
        }
        let listed = git.run_raw(at.clone(), ["ls-files", "-v", "-z"]).await?;
        for entry in names::parts(&listed) {
            let (Some(mark), Some(path)) = (entry.first(), entry.get(2..)) else { continue };
            let path = names::path(path);
            let is_there = || fs::symlink_metadata(at.directory.join(&path)).is_ok();
            let is_skipped = mark.eq_ignore_ascii_case(&b's') && is_there();
            if mark.is_ascii_lowercase() {
                found.assumed.push(path.clone());
            }
            if is_skipped {
                found.skipped.push(path);
            }
        }
        Ok(found)
    }

    fn is_nothing(&self) -> bool {
        self.assumed.is_empty() && self.skipped.is_empty()
    }

    async fn clear(&self, git: &Git, at: &At<'_>) -> Result<(), GitError> {
        for (paths, option) in
            [(&self.assumed, "--no-assume-unchanged"), (&self.skipped, "--no-skip-worktree")]
        {
            if !paths.is_empty() {
                let input = names::joined(paths);
                let args = ["update-index", "-z", option, "--stdin"];
                git.run(at.clone().input(&input), args).await?;
            }
        }
        Ok(())
    }
}

/// Checks that an index may have marks; in doubt it may.
fn may_mark(index: &Path) -> bool {
    let Ok(bytes) = read(index, LONG) else { return index.exists() };
    index::entries(&bytes).is_none_or(|entries| entries.iter().any(IndexEntry::is_marked))
}
