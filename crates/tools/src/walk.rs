//! Walks over a tree of files: what version control ignores is left out, hidden files are not, and what
//! version control itself keeps, or what may not be read, is never entered.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex};

use ignore::{DirEntry, WalkBuilder, WalkState};
use tokio_util::sync::CancellationToken;

use crate::context::lock;
use crate::{ToolError, Workspace};

/// More threads than this do not make a disk faster.
const MAX_THREADS: usize = 8;

/// How many threads work on one call.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MAX_THREADS)
}

/// A walk below `root` that enters and shows what may be read and what `keep` lets through.
pub(crate) fn builder(
    root: &Path,
    workspace: &Workspace,
    keep: impl Fn(&DirEntry) -> bool + Send + Sync + 'static,
) -> WalkBuilder {
    let may_read = Arc::clone(&workspace.may_read);
    let mut builder = WalkBuilder::new(root);
    builder
        .hidden(false)
        .require_git(false)
        // A person's own ignore file is found through the environment, which is not ours to read.
        .git_global(false)
        .threads(threads())
        .filter_entry(move |entry| {
            entry.file_name() != ".git" && keep(entry) && may_read(entry.path())
        });
    builder
}

/// Walks and collects what `pick` makes of the files. What cannot be read is passed over.
pub(crate) fn collect<T: Send>(
    builder: &WalkBuilder,
    cancel: &CancellationToken,
    pick: impl Fn(DirEntry) -> Option<T> + Sync,
) -> Result<Vec<T>, ToolError> {
    let found = Mutex::new(Vec::new());
    builder.build_parallel().run(|| {
        Box::new(|entry| {
            if cancel.is_cancelled() {
                return WalkState::Quit;
            }
            match entry {
                Ok(entry) => {
                    if let Some(item) = pick(entry) {
                        lock(&found).push(item);
                    }
                }
                Err(error) => tracing::debug!(%error, "passed over while walking"),
            }
            WalkState::Continue
        })
    });
    if cancel.is_cancelled() {
        return Err(ToolError::Cancelled { partial: None });
    }
    Ok(found.into_inner().unwrap_or_default())
}

/// Runs a search on a thread of its own. A call that is dropped takes its search along.
pub(crate) async fn run<T: Send + 'static>(
    cancel: &CancellationToken,
    work: impl FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let cancel = cancel.child_token();
    let guard = cancel.clone().drop_guard();
    let result = tokio::task::spawn_blocking(move || work(&cancel)).await;
    guard.disarm();
    result.map_err(|error| ToolError::failed(format!("the search broke off: {error}")))?
}
