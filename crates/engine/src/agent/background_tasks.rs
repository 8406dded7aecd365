//! The list of background tasks, as hosts see it.
//!
//! A host is told the whole list when it changed: once for everything that changes at one moment, because a
//! list for each of a thousand agents that start together would be a million entries. It is always
//! told before the next turn begins and before a result.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use centurion_protocol::TaskId;
use centurion_protocol::sdk::{BackgroundTask, EventBody, System};
use indexmap::IndexMap;
use parking_lot::{Mutex, MutexGuard};

use crate::agent::shared::Shared;

#[derive(Default)]
pub(crate) struct BackgroundTasks {
    list: Mutex<IndexMap<TaskId, BackgroundTask>>,
    is_untold: AtomicBool,
}

impl BackgroundTasks {
    fn list(&self) -> MutexGuard<'_, IndexMap<TaskId, BackgroundTask>> {
        self.list.lock()
    }
}

/// Adds to the list.
pub(crate) fn enter(shared: &Arc<Shared>, entry: BackgroundTask) {
    shared.background.list().insert(TaskId::new(entry.task_id.as_str()), entry);
    tell_soon(shared);
}

/// Tells whether something is on the list, so that observers know of it.
pub(crate) fn has(shared: &Shared, id: &str) -> bool {
    shared.background.list().contains_key(&TaskId::new(id))
}

/// Takes something off the list, if it is there.
pub(crate) fn leave(shared: &Arc<Shared>, id: &TaskId) {
    if shared.background.list().shift_remove(id).is_some() {
        tell_soon(shared);
    }
}

/// Tells the list after all that is happening now.
fn tell_soon(shared: &Arc<Shared>) {
    if shared.background.is_untold.swap(true, Ordering::AcqRel) {
        return;
    }
    let teller = Arc::clone(shared);
    shared.work.spawn(async move {
        tokio::task::yield_now().await;
        tell(&teller);
    });
}

/// Tells the list now, if it changed since it was last told.
pub(crate) fn tell(shared: &Shared) {
    if shared.background.is_untold.swap(false, Ordering::AcqRel) {
        let tasks = shared.background.list().values().cloned().collect();
        shared.show(EventBody::System(System::BackgroundTasksChanged { tasks }));
    }
}
