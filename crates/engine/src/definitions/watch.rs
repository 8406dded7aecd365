//! Whether something changed below some directories since the last look.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

/// Watches directories.
pub(super) struct Watch {
    changed: Arc<AtomicBool>,
    /// Ends the watching when it is dropped.
    _watcher: RecommendedWatcher,
}

impl Watch {
    /// Begins to watch; `None` where that is not possible, and then every look is a real one.
    pub(super) fn new(directories: &[PathBuf]) -> Option<Self> {
        let changed = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&changed);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Our own look at the files is an event, too.
            if !event.is_ok_and(|event| event.kind.is_access()) {
                flag.store(true, Ordering::Release);
            }
        });
        let mut watcher = match watcher {
            Ok(watcher) => watcher,
            Err(error) => {
                tracing::debug!(%error, "files cannot be watched");
                return None;
            }
        };
        for directory in directories {
            // A directory that is not there yet is noticed when it appears in one that is.
            let (place, mode) = match nearest(directory) {
                Some(place) if place == directory => (place, RecursiveMode::Recursive),
                Some(place) => (place, RecursiveMode::NonRecursive),
                None => continue,
            };
            if let Err(error) = watcher.watch(place, mode) {
                tracing::debug!(%error, place = %place.display(), "a directory cannot be watched");
                return None;
            }
        }
        Some(Self { changed, _watcher: watcher })
    }

    /// Whether there was a change since this was last asked.
    pub(super) fn has_changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }
}

/// The directory itself, or the nearest one above it that exists.
fn nearest(directory: &Path) -> Option<&Path> {
    directory.ancestors().find(|path| path.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The operating system tells of a change a moment later.
    fn settles(watch: &Watch) -> bool {
        (0..6_000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            watch.has_changed()
        })
    }

    #[test]
    fn a_change_below_is_noticed_and_so_is_a_new_directory() {
        let scratch = tempfile::tempdir().unwrap();
        let (there, absent) = (scratch.path().join("there"), scratch.path().join("absent/agents"));
        std::fs::create_dir_all(there.join("deep")).unwrap();
        let watch = Watch::new(&[there.clone(), absent.clone()]).unwrap();
        assert!(!watch.has_changed());
        std::fs::write(there.join("deep/a.md"), "x").unwrap();
        assert!(settles(&watch));
        std::fs::create_dir_all(&absent).unwrap();
        assert!(settles(&watch));
    }
}
