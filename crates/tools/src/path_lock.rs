//! One writer at a time for each file.
//!
//! The table belongs to the process: two agents of any two sessions that change the same file must share one lock.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use crate::ToolError;
use crate::context::lock;

type Lock = tokio::sync::Mutex<()>;

static LOCKS: LazyLock<Mutex<HashMap<PathBuf, Weak<Lock>>>> = LazyLock::new(Mutex::default);

/// Past this many entries, unused locks are dropped.
const SWEEP_AT: usize = 64;

/// Waits until this call alone may change the file at `path` (resolved).
pub(crate) async fn hold(
    path: &Path,
    cancel: &CancellationToken,
) -> Result<OwnedMutexGuard<()>, ToolError> {
    let entry = entry(path);
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ToolError::Cancelled { partial: None }),
        guard = entry.lock_owned() => Ok(guard),
    }
}

fn entry(path: &Path) -> Arc<Lock> {
    let mut locks = lock(&LOCKS);
    if let Some(entry) = locks.get(path).and_then(Weak::upgrade) {
        return entry;
    }
    if locks.len() >= SWEEP_AT {
        locks.retain(|_, entry| entry.strong_count() > 0);
    }
    let entry = Arc::new(Lock::default());
    locks.insert(path.to_owned(), Arc::downgrade(&entry));
    entry
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn the_second_waits_for_the_first_or_for_its_end() {
        let path = Path::new("/lock/test/one");
        let cancel = CancellationToken::new();
        let first = hold(path, &cancel).await.unwrap();
        let other = hold(Path::new("/lock/test/two"), &cancel).await.unwrap();
        let second = hold(path, &cancel);
        tokio::pin!(second);
        assert!((&mut second).now_or_never().is_none());
        drop(first);
        let second = second.await.unwrap();
        cancel.cancel();
        assert!(matches!(hold(path, &cancel).await, Err(ToolError::Cancelled { .. })));
        drop((second, other));
    }

    #[test]
    fn unheld_locks_do_not_pile_up() {
        for number in 0..SWEEP_AT * 4 {
            drop(entry(Path::new(&format!("/lock/pile/{number}"))));
        }
        assert!(lock(&LOCKS).len() <= SWEEP_AT + 1);
    }
}
