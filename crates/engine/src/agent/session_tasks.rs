//! The task list that the agents of a session share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_protocol::{Timestamp, World};
use centurion_team::{Actor, ListName, Status, Task, TaskList, TaskListError};
use centurion_tools::ToolError;
use parking_lot::Mutex;

use crate::agent::delegation::Delegation;
use crate::agent::shared::Shared;
use crate::definition::identity::LEAD;

/// The place of a session's task list.
#[derive(Clone, Debug)]
pub struct TaskListPlace {
    /// The directory of all lists.
    pub lists: PathBuf,
    pub name: ListName,
}

/// The list of a session. It is opened when it is first used.
pub(crate) struct SessionTasks {
    place: TaskListPlace,
    list: Mutex<Option<TaskList>>,
    world: Arc<dyn World>,
}

/// The names of the agents that can have tasks now: the main agent, the agents that are at work, and the members of the
/// team that rest.
#[derive(Clone, Debug)]
pub(crate) struct Members(Vec<String>);

impl Members {
    fn of(delegation: &Delegation) -> Self {
        let running = delegation.running();
        let resting = delegation.team.iter().flat_map(|team| team.members());
        let resting = resting.filter(|task| task.end().is_some_and(|end| end.outcome.is_success()));
        let agents = running.into_iter().chain(resting);
        let names = agents.map(|task| task.identity.task_name());
        Self(std::iter::once(LEAD.to_owned()).chain(names).collect())
    }

    fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|member| member == name)
    }
}

/// An agent as one that works on tasks.
#[derive(Clone, Debug)]
pub(crate) struct TaskWorker(pub(crate) String);

impl TaskWorker {
    pub(crate) fn actor<'a>(&'a self, members: &'a Members) -> Actor<'a> {
        Actor { name: &self.0, is_lead: self.is_lead(), members: &members.0 }
    }

    pub(crate) fn is_lead(&self) -> bool {
        self.0 == LEAD
    }
}

impl SessionTasks {
    pub(crate) fn new(place: TaskListPlace, world: Arc<dyn World>) -> Self {
        Self { place, list: Mutex::default(), world }
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.place.name.as_str() == name
    }

    /// A list of another name in the same place.
    pub(crate) fn named(&self, name: ListName) -> Self {
        let lists = self.place.lists.clone();
        Self::new(TaskListPlace { lists, name }, Arc::clone(&self.world))
    }

    /// Does something with the list, on a thread that may wait for other processes. Whatever agents had that have ended
    /// is free before.
    pub(crate) async fn with<T: Send + 'static>(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        act: impl FnOnce(&mut TaskList, &Members, Timestamp) -> Result<T, TaskListError>
        + Send
        + 'static,
    ) -> Result<T, ToolError> {
        let (tasks, shared) = (Arc::clone(self), Arc::clone(shared));
        let has_threads = self.world.has_threads();
        let act = move || {
            tasks.with_list(|list, now| {
                let changes = list.changes();
                // Looked at while the list is held: an agent that claimed a task before is at work, or has ended.
                let members = Members::of(&shared.delegation);
                list.release(|owner| !members.contains(owner), now)?;
                let acted = act(list, &members, now);
                if list.changes() != changes {
                    shared.delegation.team.iter().for_each(|team| team.show());
                }
                acted
            })
        };
        let acted = if has_threads { tokio::task::spawn_blocking(act).await } else { Ok(act()) };
        let acted = acted.map_err(|error| ToolError::failed(error.to_string()))?;
        acted.map_err(|error| ToolError::failed(error.to_string()))
    }

    fn with_list<T>(
        &self,
        act: impl FnOnce(&mut TaskList, Timestamp) -> Result<T, TaskListError>,
    ) -> Result<T, TaskListError> {
        let mut list = self.list.lock();
        let list = match &mut *list {
            Some(list) => list,
            none => none.insert(TaskList::open(&self.place.lists, &self.place.name)?),
        };
        act(list, self.world.now().into())
    }

    /// All tasks, for the views of a team, and the directory of all lists.
    pub(crate) fn all(&self) -> (&Path, Vec<Task>) {
        let read = self.list.lock().as_mut().map(TaskList::tasks);
        (&self.place.lists, read.and_then(Result::ok).unwrap_or_default())
    }

    /// The tasks that are open, and those that are done; none if the list was never used or cannot be read.
    pub(crate) fn open_and_done(&self) -> (Vec<Task>, Vec<Task>) {
        let (_, tasks) = self.all();
        tasks.into_iter().partition(|task| task.status != Status::Completed)
    }

    /// All tasks, also those of a list that only an earlier process has used. Reads a file, and so blocks.
    pub(crate) fn everything(&self) -> Vec<Task> {
        let mut list = self.list.lock();
        if let Some(list) = &mut *list {
            return list.tasks().unwrap_or_default();
        }
        let existing = TaskList::open_existing(&self.place.lists, &self.place.name);
        existing.and_then(|mut list| list.tasks()).unwrap_or_default()
    }

    /// Frees what agents had that have ended, so that people and other programs see it, too.
    pub(crate) async fn release(self: &Arc<Self>, shared: &Arc<Shared>) {
        let is_in_use = self.list.lock().is_some()
            || TaskList::open_existing(&self.place.lists, &self.place.name).is_ok();
        if is_in_use && let Err(error) = self.with(shared, |_, _, _| Ok(())).await {
            tracing::warn!(%error, "the tasks of an agent that has ended are still its own");
        }
    }
}
