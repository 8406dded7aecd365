//! Walks over a tree of files. Skips files that version control ignores, but not hidden files. Never enters the
//! directories of version control itself, nor one that may not be read.
//!
//! The root is opened once, and every directory below it is opened from there without following a link: a directory
//! that is replaced by a link during the walk is skipped.

mod ignored;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_files::{Directory, Kind};
use parking_lot::{Condvar, Mutex};
use tokio_util::sync::CancellationToken;

use self::ignored::Ignored;
use crate::context::lock;
use crate::{ToolError, Workspace};

/// More threads than this do not make a disk faster.
const MAX_THREADS: usize = 8;

/// A tree of fewer directories is not worth another thread.
const FEW: usize = 16;

/// The number of threads of one call.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(MAX_THREADS)
}

/// A walk below an opened directory.
pub(crate) struct Walk<'w> {
    /// The resolved path of the directory.
    pub(crate) root: &'w Path,
    pub(crate) directory: &'w Directory,
    pub(crate) workspace: &'w Workspace,
    /// The most names of a path below the root.
    pub(crate) max_depth: Option<usize>,
}

/// An entry that the walk has reached.
pub(crate) struct Entry<'e> {
    /// Absolute; free of links, but for the entry itself.
    pub(crate) path: &'e Path,
    /// The same below the root.
    pub(crate) below: &'e Path,
    pub(crate) kind: Kind,
    /// The directory that it is in.
    pub(crate) directory: &'e Directory,
    pub(crate) name: &'e OsStr,
}

/// A directory that the walk has not read yet.
struct Pending {
    below: PathBuf,
    depth: usize,
    ignored: Arc<Ignored>,
}

/// The state that the threads of a walk share.
#[derive(Default)]
struct Queue {
    pending: Vec<Pending>,
    /// The number of directories that threads are reading.
    busy: usize,
}

/// One walk as it runs.
struct Run<'w, T> {
    walk: &'w Walk<'w>,
    cancel: &'w CancellationToken,
    visit: &'w (dyn Fn(&Entry<'_>) -> Step<T> + Sync),
    queue: Mutex<Queue>,
    changed: Condvar,
    found: Mutex<Vec<T>>,
}

/// Guard: a thread is reading a directory while this is held, and others wait for the directories in it.
struct Busy<'r> {
    queue: &'r Mutex<Queue>,
    changed: &'r Condvar,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        lock(self.queue).busy -= 1;
        self.changed.notify_all();
    }
}

/// The treatment of an entry.
pub(crate) enum Step<T> {
    /// The entry is skipped; a directory is not entered.
    Skip,
    /// A directory is entered.
    Enter,
    Take(T),
}

impl Walk<'_> {
    /// Walks and collects the results of `visit`, in no order. Skips entries that cannot be read.
    pub(crate) fn collect<T: Send>(
        &self,
        cancel: &CancellationToken,
        visit: impl Fn(&Entry<'_>) -> Step<T> + Sync,
    ) -> Result<Vec<T>, ToolError> {
        let ignored = Arc::new(Ignored::above(self.root));
        let first = Pending { below: PathBuf::new(), depth: 0, ignored };
        let run = Run {
            walk: self,
            cancel,
            visit: &visit,
            queue: Mutex::new(Queue { pending: vec![first], busy: 0 }),
            changed: Condvar::new(),
            found: Mutex::new(Vec::new()),
        };
        run.work(FEW);
        if !lock(&run.queue).pending.is_empty() {
            std::thread::scope(|scope| {
                for _ in 1..threads() {
                    scope.spawn(|| run.work(usize::MAX));
                }
                run.work(usize::MAX);
            });
        }
        if cancel.is_cancelled() {
            return Err(ToolError::Cancelled { partial: None });
        }
        Ok(run.found.into_inner())
    }
}

impl<T: Send> Run<'_, T> {
    /// Reads at most this many directories, until there are none left.
    fn work(&self, most: usize) {
        let mut found = Vec::new();
        for _ in 0..most {
            let Some((next, _busy)) = self.next() else { break };
            let inner = self.look(&next, &mut found);
            lock(&self.queue).pending.extend(inner);
        }
        lock(&self.found).append(&mut found);
    }

    /// The next directory; waits while another thread may still find one.
    fn next(&self) -> Option<(Pending, Busy<'_>)> {
        let mut queue = lock(&self.queue);
        loop {
            if self.cancel.is_cancelled() {
                return None;
            }
            if let Some(next) = queue.pending.pop() {
                queue.busy += 1;
                return Some((next, Busy { queue: &self.queue, changed: &self.changed }));
            }
            if queue.busy == 0 {
                return None;
            }
            self.changed.wait(&mut queue);
        }
    }

    /// Visits the entries of one directory; returns the directories to enter.
    fn look(&self, pending: &Pending, found: &mut Vec<T>) -> Vec<Pending> {
        let Pending { below, depth, ignored } = pending;
        let opened = self.walk.directory.directory(below);
        let listed = opened.and_then(|directory| Ok((directory.list(usize::MAX)?, directory)));
        let (listed, directory) = match listed {
            Ok(listed) => listed,
            Err(error) => {
                tracing::debug!(%error, path = %below.display(), "passed over while walking");
                return Vec::new();
            }
        };
        let mut path = self.walk.root.join(below);
        let ignored = ignored.with(&path, &directory, &listed);
        let mut inner = Vec::new();
        for entry in &listed {
            if entry.name == ".git" {
                continue;
            }
            path.push(&entry.name);
            let is_directory = entry.kind == Kind::Directory;
            if !ignored.matches(&path, is_directory) && (self.walk.workspace.may_read)(&path) {
                let below = path.strip_prefix(self.walk.root).unwrap_or(&path);
                let visited = Entry {
                    path: &path,
                    below,
                    kind: entry.kind,
                    directory: &directory,
                    name: &entry.name,
                };
                match (self.visit)(&visited) {
                    Step::Take(item) => found.push(item),
                    Step::Enter if is_directory && self.may_descend(*depth) => {
                        inner.push(Pending {
                            below: below.to_owned(),
                            depth: depth + 1,
                            ignored: Arc::clone(&ignored),
                        });
                    }
                    Step::Enter | Step::Skip => {}
                }
            }
            path.pop();
        }
        inner
    }

    /// Whether the entries of a directory that lies in one of this depth may still be visited.
    fn may_descend(&self, depth: usize) -> bool {
        self.walk.max_depth.is_none_or(|most| depth + 1 < most)
    }
}

/// Runs a search on a thread of its own. A call that is dropped cancels its search.
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
