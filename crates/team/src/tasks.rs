//! The task list of a team, or of a session without one.

mod name;
mod rules;
mod state;
mod view;

use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

use centurion_protocol::Timestamp;
use thiserror::Error;

pub use self::name::{ListName, ListNameError};
pub use self::rules::{Actor, NewTask, TaskRefusal, TaskRequest};
use self::state::Tasks;
pub use self::state::{LogEntry, Status, Task, TaskChange, TaskNumber};
pub use self::view::TeamTaskViews;
use crate::log::{Log, LogError};

/// The log of a list, in the directory of that list.
const LOG: &str = "log.jsonl";

/// A list of tasks on disk. Every call first reads the changes of other processes.
pub struct TaskList {
    directory: PathBuf,
    log: Log,
    tasks: Tasks,
}

/// The reason that a task list refused a request.
#[derive(Debug, Error)]
pub enum TaskListError {
    #[error(transparent)]
    Refused(#[from] TaskRefusal),
    #[error("the task list cannot be used: {0}")]
    Log(#[from] LogError),
}

/// The result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdatedTask {
    /// The task as it is now; its last state, if it was deleted.
    pub task: Task,
    /// The changed fields, by their names on the wire.
    pub fields: Vec<&'static str>,
    /// The status before, if it changed.
    pub was: Option<Status>,
    /// The tasks that waited only for this one, and can be started now.
    pub unblocked: Vec<TaskNumber>,
}

impl TaskList {
    /// Opens a list below the directory of all lists, or begins one.
    pub fn open(lists: &Path, name: &ListName) -> Result<Self, TaskListError> {
        let directory = lists.join(name.as_str());
        Self::with_log(Log::open(&directory.join(LOG))?, directory)
    }

    /// Opens a list that exists.
    pub fn open_existing(lists: &Path, name: &ListName) -> Result<Self, TaskListError> {
        let directory = lists.join(name.as_str());
        Self::with_log(Log::open_existing(&directory.join(LOG))?, directory)
    }

    fn with_log(log: Log, directory: PathBuf) -> Result<Self, TaskListError> {
        let mut list = Self { directory, log, tasks: Tasks::default() };
        list.refresh()?;
        Ok(list)
    }

    /// The existing lists, the most recently changed first.
    pub fn names(lists: &Path) -> Vec<ListName> {
        let mut found: Vec<_> = fs::read_dir(lists)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().to_str()?.parse().ok()?;
                let log = fs::symlink_metadata(entry.path().join(LOG)).ok()?;
                log.is_file().then_some((log.modified().ok()?, name))
            })
            .collect();
        found.sort_by_key(|(changed, _)| std::cmp::Reverse(*changed));
        found.into_iter().map(|(_, name)| name).collect()
    }

    /// Removes a list that has not changed since a time. One that is being changed stays.
    pub fn remove_unchanged(lists: &Path, name: &ListName, since: SystemTime) -> io::Result<()> {
        let directory = lists.join(name.as_str());
        let log = directory.join(LOG);
        if fs::symlink_metadata(&log)?.modified()? >= since {
            return Ok(());
        }
        for entry in fs::read_dir(&directory)?.flatten() {
            if view::is_view(&entry.file_name()) && entry.file_type()?.is_file() {
                fs::remove_file(entry.path())?;
            }
        }
        fs::remove_file(log)?;
        // Files of another program stay, and the directory with them.
        let _ = fs::remove_dir(directory);
        Ok(())
    }

    /// The tasks as they are now, in the order of their creation.
    pub fn tasks(&mut self) -> Result<Vec<Task>, TaskListError> {
        self.refresh()?;
        Ok(self.tasks.all().cloned().collect())
    }

    /// The number of changes so far, as far as they are known here.
    pub fn changes(&self) -> u64 {
        self.tasks.changes()
    }

    /// One task as it is now.
    pub fn get(&mut self, id: TaskNumber) -> Result<Task, TaskListError> {
        self.refresh()?;
        Ok(self.tasks.get(id).cloned().ok_or(TaskRefusal::NotFound(id))?)
    }

    /// The open tasks that block this one.
    pub fn open_blockers(&self, task: &Task) -> Vec<TaskNumber> {
        self.tasks.open_blockers(task)
    }

    /// The log of a task, also of a deleted one.
    pub fn history(&mut self, id: TaskNumber) -> Result<Vec<LogEntry>, TaskListError> {
        self.refresh()?;
        match self.tasks.history(id) {
            [] => Err(TaskRefusal::NotFound(id).into()),
            history => Ok(history.to_vec()),
        }
    }

    /// Adds a task.
    pub fn create(
        &mut self,
        actor: &Actor<'_>,
        task: NewTask,
        at: Timestamp,
    ) -> Result<Task, TaskListError> {
        let mut locked = self.log.lock()?;
        self.tasks.take_in(locked.news()?);
        let created = rules::create(&self.tasks, task)?;
        let entry = LogEntry { at, by: actor.name.to_owned(), what: created };
        locked.append(&entry)?;
        let id = self.tasks.next_id();
        self.tasks.take_in([entry]);
        drop(locked);
        self.show([id]);
        Ok(self.tasks.get(id).cloned().ok_or(TaskRefusal::NotFound(id))?)
    }

    /// Returns the result of a change without making it.
    pub fn judge(
        &mut self,
        actor: &Actor<'_>,
        request: &TaskRequest,
    ) -> Result<UpdatedTask, TaskListError> {
        self.refresh()?;
        let change = rules::update(&self.tasks, actor, request)?;
        Ok(self.tasks.outcome(request.id, change.as_ref())?)
    }

    /// Changes a task as requested, or refuses the whole request.
    pub fn update(
        &mut self,
        actor: &Actor<'_>,
        request: &TaskRequest,
        at: Timestamp,
    ) -> Result<UpdatedTask, TaskListError> {
        let mut locked = self.log.lock()?;
        self.tasks.take_in(locked.news()?);
        let change = rules::update(&self.tasks, actor, request)?;
        let updated = self.tasks.outcome(request.id, change.as_ref())?;
        let Some(what) = change else { return Ok(updated) };
        let entry = LogEntry { at, by: actor.name.to_owned(), what };
        locked.append(&entry)?;
        let touched = entry.what.touches(&updated.task);
        self.tasks.take_in([entry]);
        drop(locked);
        self.show(touched);
        Ok(updated)
    }

    /// Releases the unfinished tasks of ended members: others can claim them. Returns those tasks.
    pub fn release(
        &mut self,
        has_ended: impl Fn(&str) -> bool,
        at: Timestamp,
    ) -> Result<Vec<Task>, TaskListError> {
        self.refresh()?;
        // Most calls find nothing, and need no lock for that.
        if self.tasks.unfinished_of(&has_ended).is_empty() {
            return Ok(Vec::new());
        }
        let mut locked = self.log.lock()?;
        self.tasks.take_in(locked.news()?);
        let mut freed = Vec::new();
        for (owner, ids) in self.tasks.unfinished_of(&has_ended) {
            let entry = LogEntry { at, by: owner, what: TaskChange::Released { ids: ids.clone() } };
            locked.append(&entry)?;
            self.tasks.take_in([entry]);
            freed.extend(ids);
        }
        drop(locked);
        self.show(freed.iter().copied());
        Ok(freed.iter().filter_map(|id| self.tasks.get(*id)).cloned().collect())
    }

    fn refresh(&mut self) -> Result<(), TaskListError> {
        self.tasks.take_in(self.log.news()?);
        Ok(())
    }

    /// Writes the views of tasks for other programs. Nothing depends on them.
    fn show(&self, ids: impl IntoIterator<Item = TaskNumber>) {
        for id in ids {
            view::write(&self.directory, id, self.tasks.get(id));
        }
    }
}
