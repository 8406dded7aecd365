//! Agents in the background that a person has brought to the foreground: the main agent takes no further step before they
//! have ended.
//!
//! No call waits for them, and so their ends are news as before. What a person interrupts waits for nothing any more.

use std::collections::HashSet;

use centurion_protocol::AgentId;
use centurion_protocol::sdk::{EventBody, System, TaskPatch, TaskUpdated};
use tokio::sync::watch;

use crate::agent::delegation::Delegation;
use crate::agent::shared::Shared;
use crate::agent::task::Task;

/// The agents that are waited for.
#[derive(Default)]
pub(crate) struct Foreground {
    wanted: watch::Sender<HashSet<AgentId>>,
}

impl Foreground {
    /// Takes note of an agent; whether it was not waited for before.
    pub(crate) fn bring(&self, id: &AgentId) -> bool {
        self.wanted.send_if_modified(|wanted| wanted.insert(id.clone()))
    }

    /// Forgets an agent; whether it was waited for.
    pub(crate) fn release(&self, id: &AgentId) -> bool {
        self.wanted.send_if_modified(|wanted| wanted.remove(id))
    }

    /// Forgets all agents; those that were waited for.
    pub(crate) fn release_all(&self) -> HashSet<AgentId> {
        self.wanted.send_replace(HashSet::new())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.wanted.borrow().is_empty()
    }
}

/// Shows observers whether an agent is in the background.
pub(crate) fn show_background(shared: &Shared, task: &Task, is_background: bool) {
    let patch = TaskPatch { is_backgrounded: Some(is_background), ..TaskPatch::default() };
    let (task_id, run_id) = (task.id.to_string(), Some(task.run().id));
    shared.show(EventBody::System(System::TaskUpdated(TaskUpdated { task_id, run_id, patch })));
}

impl Shared {
    /// Sends every agent in the foreground to the background again; how many there were.
    pub(crate) fn release_foreground(&self) -> usize {
        let released = self.delegation.foreground.release_all();
        let tasks = released.iter().filter_map(|id| self.delegation.find(id.as_str()));
        let at_work = tasks.filter(|task| task.is_running());
        at_work.inspect(|task| show_background(self, task, true)).count()
    }
}

impl Delegation {
    /// Waits until no agent in the foreground is at work.
    pub(crate) async fn foreground_is_over(&self) {
        let (mut wanted, mut ends) = (self.foreground.wanted.subscribe(), self.ends());
        loop {
            // An end that comes from here on wakes this.
            ends.mark_unchanged();
            let ids = wanted.borrow_and_update().clone();
            let is_at_work =
                |id: &&AgentId| self.find(id.as_str()).is_some_and(|task| task.is_running());
            let (open, over): (Vec<_>, Vec<_>) = ids.iter().partition(is_at_work);
            for id in over {
                self.foreground.release(id);
            }
            if open.is_empty() {
                return;
            }
            // The senders live as long as this.
            tokio::select! {
                _ = wanted.changed() => {}
                _ = ends.changed() => {}
            }
        }
    }
}
