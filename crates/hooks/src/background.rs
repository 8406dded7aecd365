//! Background work: asynchronous hooks, and processes that hooks left.

use parking_lot::{Mutex, MutexGuard};
use tokio::task::JoinSet;

/// Tasks that end with their owner.
#[derive(Debug, Default)]
pub(crate) struct Background(Mutex<JoinSet<()>>);

impl Background {
    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock()
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        // Ended tasks must not accumulate.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Ends all tasks, and returns when they are gone.
    pub(crate) async fn shutdown(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks());
        tasks.shutdown().await;
    }
}
