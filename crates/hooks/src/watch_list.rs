//! Watched files: the list of them, and the last known state of each.
//!
//! Nothing runs between two checks. The owner of the hooks checks when there is time, such as between turns.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, MutexGuard};

/// A changed file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    pub path: PathBuf,
    /// `change`, `add` or `unlink`.
    pub event: &'static str,
}

/// The files that hooks watch.
#[derive(Debug, Default)]
pub(crate) struct WatchList(Mutex<WatchState>);

#[derive(Debug, Default)]
struct WatchState {
    /// The files that hooks requested while the session ran.
    wanted: Vec<PathBuf>,
    /// The state of each file at the last check.
    seen: HashMap<PathBuf, Sight>,
}

/// The values that distinguish two states of a file without reading it. `None` for a missing file.
type Sight = Option<(u64, u64, i64, i64)>;

impl WatchList {
    /// Watches these files from now on, instead of the ones that were requested before.
    pub(crate) fn replace(&self, paths: &[PathBuf]) {
        let mut watched = self.lock();
        watched.wanted = paths.to_vec();
        for path in paths {
            watched.seen.entry(path.clone()).or_insert_with(|| sight(path));
        }
    }

    /// The changes since the last check, among the requested files and `named`. A file has not changed at its first
    /// check.
    pub(crate) fn look(&self, named: Vec<PathBuf>) -> Vec<FileChange> {
        let mut watched = self.lock();
        let WatchState { wanted, seen } = &mut *watched;
        let mut before = std::mem::take(seen);
        let mut changes = Vec::new();
        for path in wanted.iter().cloned().chain(named) {
            if seen.contains_key(&path) {
                continue;
            }
            let now = sight(&path);
            let event = match (before.remove(&path), now) {
                (None, _) => None,
                (Some(None), Some(_)) => Some("add"),
                (Some(Some(_)), None) => Some("unlink"),
                (Some(before), now) => (before != now).then_some("change"),
            };
            changes.extend(event.map(|event| FileChange { path: path.clone(), event }));
            seen.insert(path, now);
        }
        changes
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.0.lock()
    }
}

fn sight(path: &Path) -> Sight {
    let file = fs::metadata(path).ok()?;
    Some((file.ino(), file.size(), file.mtime(), file.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_tells_each_change_once() {
        let scratch = tempfile::tempdir().unwrap();
        let (a, b) = (scratch.path().join("a"), scratch.path().join("b"));
        fs::write(&a, "1").unwrap();
        let list = WatchList::default();
        let look = || -> Vec<(PathBuf, &str)> {
            let changes = list.look(vec![b.clone()]);
            changes.into_iter().map(|change| (change.path, change.event)).collect()
        };
        list.replace(std::slice::from_ref(&a));
        assert_eq!(look(), []);
        fs::write(&a, "22").unwrap();
        fs::write(&b, "1").unwrap();
        assert_eq!(look(), [(a.clone(), "change"), (b.clone(), "add")]);
        assert_eq!(look(), []);
        fs::remove_file(&b).unwrap();
        assert_eq!(look(), [(b.clone(), "unlink")]);
        // A path that is no longer watched is forgotten.
        list.replace(&[]);
        fs::write(&a, "333").unwrap();
        assert_eq!(look(), []);
        list.replace(std::slice::from_ref(&a));
        assert_eq!(look(), []);
    }
}
