//! The tasks of a log: a fold over its entries that accepts any entries.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;

use centurion_protocol::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::UpdatedTask;
use super::rules::TaskRefusal;

/// The number of a task, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskNumber(pub u64);

impl fmt::Display for TaskNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for TaskNumber {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        text.strip_prefix('#').unwrap_or(text).parse().map(Self)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    InProgress,
    Completed,
    Deleted,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Deleted => "deleted",
        }
    }
}

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub id: TaskNumber,
    pub subject: String,
    pub description: String,
    /// The current activity of its owner, for people: "Running the tests".
    pub active_form: Option<String>,
    /// The member that it was assigned to or that claimed it.
    pub owner: Option<String>,
    pub status: Status,
    /// The tasks that wait for it.
    pub blocks: BTreeSet<TaskNumber>,
    /// The tasks that it waits for.
    pub blocked_by: BTreeSet<TaskNumber>,
    pub metadata: Map<String, Value>,
}

/// One line of the log: the action of a member, and its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogEntry {
    pub at: Timestamp,
    pub by: String,
    #[serde(flatten)]
    pub what: TaskChange,
}

/// A change of tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum TaskChange {
    Created {
        id: TaskNumber,
        subject: String,
        description: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        active_form: Option<String>,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
    },
    Changed {
        id: TaskNumber,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        active_form: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<Status>,
        /// Empty if the owner was removed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        add_blocks: Vec<TaskNumber>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        add_blocked_by: Vec<TaskNumber>,
        /// A key with `null` is removed.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
    },
    /// The owner has ended: these are free again.
    Released { ids: Vec<TaskNumber> },
}

impl TaskChange {
    fn ids(&self) -> Vec<TaskNumber> {
        match self {
            Self::Created { id, .. } | Self::Changed { id, .. } => vec![*id],
            Self::Released { ids } => ids.clone(),
        }
    }

    /// The tasks that a change affects.
    pub(super) fn touches(&self, task: &Task) -> BTreeSet<TaskNumber> {
        let mut touched: BTreeSet<TaskNumber> = self.ids().into_iter().collect();
        if let Self::Changed { add_blocks, add_blocked_by, status, .. } = self {
            touched.extend(add_blocks.iter().chain(add_blocked_by));
            if *status == Some(Status::Deleted) {
                touched.extend(task.blocks.iter().chain(&task.blocked_by));
            }
        }
        touched
    }
}

/// All tasks of a list.
#[derive(Default)]
pub(super) struct Tasks {
    by_number: BTreeMap<TaskNumber, Task>,
    last: u64,
    history: HashMap<TaskNumber, Vec<LogEntry>>,
    /// The number of lines of the log.
    changes: u64,
}

impl Tasks {
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Task> {
        self.by_number.values()
    }

    pub(super) fn get(&self, id: TaskNumber) -> Option<&Task> {
        self.by_number.get(&id)
    }

    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(super) fn next_id(&self) -> TaskNumber {
        TaskNumber(self.last + 1)
    }

    pub(super) fn history(&self, id: TaskNumber) -> &[LogEntry] {
        self.history.get(&id).map(Vec::as_slice).unwrap_or_default()
    }

    /// The open tasks that block this one.
    pub(super) fn open_blockers(&self, task: &Task) -> Vec<TaskNumber> {
        let is_open =
            |id: &&TaskNumber| self.get(**id).is_some_and(|it| it.status != Status::Completed);
        task.blocked_by.iter().filter(is_open).copied().collect()
    }

    /// The unfinished tasks of the given members, by member.
    pub(super) fn unfinished_of(
        &self,
        is_meant: impl Fn(&str) -> bool,
    ) -> BTreeMap<String, Vec<TaskNumber>> {
        let mut unfinished: BTreeMap<String, Vec<TaskNumber>> = BTreeMap::new();
        for task in self.all().filter(|task| task.status != Status::Completed) {
            if let Some(owner) = task.owner.as_ref().filter(|owner| is_meant(owner)) {
                unfinished.entry(owner.clone()).or_default().push(task.id);
            }
        }
        unfinished
    }

    pub(super) fn take_in(&mut self, entries: impl IntoIterator<Item = LogEntry>) {
        for entry in entries {
            self.changes += 1;
            self.apply(&entry.what);
            for id in entry.what.ids() {
                self.history.entry(id).or_default().push(entry.clone());
            }
        }
    }

    fn apply(&mut self, what: &TaskChange) {
        match what {
            TaskChange::Created { id, subject, description, active_form, metadata } => {
                self.last = self.last.max(id.0);
                let task = Task {
                    id: *id,
                    subject: subject.clone(),
                    description: description.clone(),
                    active_form: active_form.clone(),
                    owner: None,
                    status: Status::Pending,
                    blocks: BTreeSet::new(),
                    blocked_by: BTreeSet::new(),
                    metadata: metadata.clone(),
                };
                self.by_number.entry(*id).or_insert(task);
            }
            TaskChange::Changed { id, status: Some(Status::Deleted), .. } => self.remove(*id),
            TaskChange::Changed { id, .. } => self.change(*id, what),
            TaskChange::Released { ids } => {
                for id in ids {
                    if let Some(task) = self.by_number.get_mut(id) {
                        task.status = Status::Pending;
                        task.owner = None;
                    }
                }
            }
        }
    }

    fn change(&mut self, changed: TaskNumber, what: &TaskChange) {
        let Some(task) = self.by_number.get_mut(&changed) else { return };
        task.change(what);
        let TaskChange::Changed { add_blocks, add_blocked_by, .. } = what else { return };
        let pairs = add_blocks.iter().map(|other| (changed, *other));
        let pairs = pairs.chain(add_blocked_by.iter().map(|other| (*other, changed)));
        for (first, then) in pairs {
            if self.by_number.contains_key(&first) && self.by_number.contains_key(&then) {
                self.by_number.get_mut(&first).map(|task| task.blocks.insert(then));
                self.by_number.get_mut(&then).map(|task| task.blocked_by.insert(first));
            }
        }
    }

    fn remove(&mut self, id: TaskNumber) {
        let Some(gone) = self.by_number.remove(&id) else { return };
        for other in gone.blocks.iter().chain(&gone.blocked_by) {
            if let Some(other) = self.by_number.get_mut(other) {
                other.blocks.remove(&id);
                other.blocked_by.remove(&id);
            }
        }
    }

    /// The result of a change, before it is made.
    pub(super) fn outcome(
        &self,
        id: TaskNumber,
        change: Option<&TaskChange>,
    ) -> Result<UpdatedTask, TaskRefusal> {
        let before = self.get(id).ok_or(TaskRefusal::NotFound(id))?;
        let mut task = before.clone();
        let mut updated = UpdatedTask {
            task: before.clone(),
            fields: Vec::new(),
            was: None,
            unblocked: Vec::new(),
        };
        let Some(what) = change else { return Ok(updated) };
        task.change(what);
        updated.fields = what.fields();
        updated.was = (task.status != before.status).then_some(before.status);
        if matches!(task.status, Status::Completed | Status::Deleted) {
            let waits_for_it_alone = |other: &TaskNumber| {
                self.get(*other).is_some_and(|other| self.open_blockers(other) == [id])
            };
            updated.unblocked = task.blocks.iter().copied().filter(waits_for_it_alone).collect();
        }
        updated.task = task;
        Ok(updated)
    }
}

impl Task {
    /// Applies a change to the task itself.
    fn change(&mut self, what: &TaskChange) {
        let TaskChange::Changed {
            subject,
            description,
            active_form,
            status,
            owner,
            metadata,
            add_blocks,
            add_blocked_by,
            ..
        } = what
        else {
            return;
        };
        let text = |field: &mut String, new: &Option<String>| {
            if let Some(new) = new {
                field.clone_from(new);
            }
        };
        text(&mut self.subject, subject);
        text(&mut self.description, description);
        if active_form.is_some() {
            self.active_form.clone_from(active_form);
        }
        if let Some(status) = status {
            self.status = *status;
        }
        if let Some(owner) = owner {
            self.owner = Some(owner.clone()).filter(|owner| !owner.is_empty());
        }
        self.blocks.extend(add_blocks);
        self.blocked_by.extend(add_blocked_by);
        for (key, value) in metadata {
            if value.is_null() {
                self.metadata.shift_remove(key);
            } else {
                self.metadata.insert(key.clone(), value.clone());
            }
        }
    }
}

impl TaskChange {
    /// The fields that a change touches, by their names on the wire.
    fn fields(&self) -> Vec<&'static str> {
        let Self::Changed {
            subject,
            description,
            active_form,
            status,
            owner,
            metadata,
            add_blocks,
            add_blocked_by,
            ..
        } = self
        else {
            return Vec::new();
        };
        let fields = [
            ("subject", subject.is_some()),
            ("description", description.is_some()),
            ("activeForm", active_form.is_some()),
            ("owner", owner.is_some()),
            ("metadata", !metadata.is_empty()),
            ("blocks", !add_blocks.is_empty()),
            ("blockedBy", !add_blocked_by.is_empty()),
            ("status", status.is_some()),
        ];
        fields.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
    }
}
