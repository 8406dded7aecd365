//! The task lists of a process: that of the session as it is now, and those of sessions that it was before, for agents
//! that began there and are still at work.

use std::collections::HashMap;
use std::sync::Arc;

use centurion_protocol::AgentId;
use parking_lot::Mutex;

use crate::agent::delegation::Delegation;
use crate::agent::session_tasks::SessionTasks;

pub(crate) struct TaskLists(Mutex<TaskListTable>);

struct TaskListTable {
    now: Arc<SessionTasks>,
    earlier: HashMap<AgentId, Arc<SessionTasks>>,
}

impl TaskLists {
    pub(crate) fn new(now: Arc<SessionTasks>) -> Self {
        Self(Mutex::new(TaskListTable { now, earlier: HashMap::new() }))
    }

    /// The list of the session as it is now.
    pub(crate) fn now(&self) -> Arc<SessionTasks> {
        Arc::clone(&self.0.lock().now)
    }

    /// Puts another list in the place of the present one, which these agents keep.
    pub(crate) fn begin_anew(&self, list: SessionTasks, staying: impl Iterator<Item = AgentId>) {
        let mut lists = self.0.lock();
        let earlier = std::mem::replace(&mut lists.now, Arc::new(list));
        for agent in staying {
            lists.earlier.entry(agent).or_insert_with(|| Arc::clone(&earlier));
        }
    }

    /// The list of an agent: its own, or that of the nearest agent up the line of askers; `None` is the main agent.
    fn of(&self, delegation: &Delegation, agent: Option<&AgentId>) -> Arc<SessionTasks> {
        let mut agent = agent.cloned();
        while let Some(id) = agent {
            let lists = self.0.lock();
            if lists.earlier.is_empty() {
                break;
            }
            if let Some(list) = lists.earlier.get(&id) {
                return Arc::clone(list);
            }
            // Not under the lock: a task has one of its own.
            drop(lists);
            agent = delegation.find(id.as_str()).and_then(|it| it.run().asker).map(|it| it.agent);
        }
        self.now()
    }
}

impl Delegation {
    /// The task list of the session as it is now; `None` where agents keep lists of their own.
    pub(crate) fn task_list(&self) -> Option<Arc<SessionTasks>> {
        self.task_lists.as_ref().map(TaskLists::now)
    }

    /// The task list of an agent; `None` is the main agent.
    pub(crate) fn task_list_of(&self, agent: Option<&AgentId>) -> Option<Arc<SessionTasks>> {
        self.task_lists.as_ref().map(|lists| lists.of(self, agent))
    }

    /// Tells whether agents share a task list.
    pub(crate) fn has_tasks(&self) -> bool {
        self.task_lists.is_some()
    }
}
