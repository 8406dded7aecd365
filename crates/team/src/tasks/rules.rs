//! The rules for changes of tasks: pure functions from a request to the change.
//!
//! - Any member can claim a free task; an owned task belongs to its owner and the lead.
//! - Only the lead assigns tasks to others; a member can hand on its own.
//! - A task that waits for an open one can neither be started nor completed, and no task waits for itself.
//! - A request is fulfilled whole or refused whole.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use centurion_redact::redact_text;
use serde_json::{Map, Value};
use thiserror::Error;

use super::state::{Status, Task, TaskChange, TaskNumber, Tasks};

/// The most tasks of a list at once.
const MOST_TASKS: usize = 5_000;
/// The longest subject or active form, in bytes.
const SHORT: usize = 1_000;
/// The longest description, in bytes.
const LONG: usize = 64 * 1024;
/// The most metadata of a task, in bytes of JSON.
const MOST_METADATA: usize = 16 * 1024;

/// The member that makes a request.
#[derive(Clone, Copy, Debug)]
pub struct Actor<'a> {
    pub name: &'a str,
    pub is_lead: bool,
    /// All members that can own a task, the lead included.
    pub members: &'a [String],
}

/// A task to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewTask {
    pub subject: String,
    pub description: String,
    pub active_form: Option<String>,
    pub metadata: Map<String, Value>,
}

/// A requested change of a task; fields that are `None` or empty stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRequest {
    pub id: TaskNumber,
    pub subject: Option<String>,
    pub description: Option<String>,
    pub active_form: Option<String>,
    pub status: Option<Status>,
    /// An empty name means no owner.
    pub owner: Option<String>,
    pub add_blocks: Vec<TaskNumber>,
    pub add_blocked_by: Vec<TaskNumber>,
    /// A key with `null` is removed.
    pub metadata: Map<String, Value>,
}

impl TaskRequest {
    /// A request for no change so far.
    pub fn new(id: TaskNumber) -> Self {
        Self {
            id,
            subject: None,
            description: None,
            active_form: None,
            status: None,
            owner: None,
            add_blocks: Vec::new(),
            add_blocked_by: Vec::new(),
            metadata: Map::new(),
        }
    }
}

/// The reason that a task does not change.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TaskRefusal {
    #[error("Task #{0} not found")]
    NotFound(TaskNumber),
    #[error("task #{id} is {owner}'s ({}): take another one", status.as_str())]
    Held { id: TaskNumber, owner: String, status: Status },
    #[error("task #{0} is completed: create another one if there is more to do")]
    Completed(TaskNumber),
    #[error("task #{id} waits for {}: work on those first", numbers(by))]
    Blocked { id: TaskNumber, by: Vec<TaskNumber> },
    #[error("task #{0} cannot wait for itself")]
    Itself(TaskNumber),
    #[error("task #{then} cannot wait for #{first}: #{first} waits for #{then} already")]
    Circle { first: TaskNumber, then: TaskNumber },
    #[error("task #{id} is {} already: it cannot be made to wait for another one", status.as_str())]
    Begun { id: TaskNumber, status: Status },
    #[error("only the lead gives tasks to others: claim it yourself, or ask the lead")]
    NotTheLead,
    #[error("no agent here is named '{name}': the owner can be {}", members.join(", "))]
    NoMember { name: String, members: Vec<String> },
    #[error("a task needs a subject")]
    NoSubject,
    #[error("`{field}` is too long: {most} bytes at the most")]
    TooLong { field: &'static str, most: usize },
    #[error("the list is full ({MOST_TASKS} tasks): delete tasks that do not matter any more")]
    Full,
}

fn numbers(ids: &[TaskNumber]) -> String {
    let mut text = String::new();
    for (place, id) in ids.iter().enumerate() {
        let separator = if place == 0 { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}#{id}");
    }
    text
}

/// The change that creates a task.
pub(super) fn create(tasks: &Tasks, new: NewTask) -> Result<TaskChange, TaskRefusal> {
    if tasks.len() >= MOST_TASKS {
        return Err(TaskRefusal::Full);
    }
    Ok(TaskChange::Created {
        id: tasks.next_id(),
        subject: subject(&new.subject)?,
        description: text("description", &new.description, LONG)?,
        active_form: new.active_form.map(|form| text("activeForm", &form, SHORT)).transpose()?,
        metadata: metadata(&Map::new(), new.metadata)?,
    })
}

/// The change for a request; `None` if it would change nothing.
pub(super) fn update(
    tasks: &Tasks,
    actor: &Actor<'_>,
    request: &TaskRequest,
) -> Result<Option<TaskChange>, TaskRefusal> {
    let task = tasks.get(request.id).ok_or(TaskRefusal::NotFound(request.id))?;
    let holder = task.owner.as_deref().filter(|_| task.status != Status::Completed);
    if let Some(owner) = holder.filter(|owner| *owner != actor.name && !actor.is_lead) {
        return Err(TaskRefusal::Held {
            id: task.id,
            owner: owner.to_owned(),
            status: task.status,
        });
    }
    if task.status == Status::Completed && !may_reopen(task, actor, request) {
        return Err(TaskRefusal::Completed(task.id));
    }
    let owner = new_owner(task, actor, request)?;
    let is_put_back = request.status.is_none()
        && task.status == Status::InProgress
        && owner.as_deref() == Some("");
    let status = request.status.or(is_put_back.then_some(Status::Pending));
    let status = status.filter(|status| *status != task.status);
    check_status(tasks, task, actor, request, owner.as_deref())?;
    let add_blocks = check_dependencies(tasks, &request.add_blocks, |other| (task.id, other))?;
    let add_blocked_by =
        check_dependencies(tasks, &request.add_blocked_by, |other| (other, task.id))?;
    check_circle_of_both(tasks, &add_blocks, &add_blocked_by)?;
    let add_blocks = new_ones(&add_blocks, &task.blocks);
    let add_blocked_by = new_ones(&add_blocked_by, &task.blocked_by);
    let is_new = |new: &String, old: Option<&str>| Some(new.as_str()) != old;
    let change = TaskChange::Changed {
        id: task.id,
        subject: request
            .subject
            .as_deref()
            .map(subject)
            .transpose()?
            .filter(|new| is_new(new, Some(&task.subject))),
        description: field("description", request.description.as_deref(), LONG)?
            .filter(|new| is_new(new, Some(&task.description))),
        active_form: field("activeForm", request.active_form.as_deref(), SHORT)?
            .filter(|new| is_new(new, task.active_form.as_deref())),
        status,
        owner: owner.filter(|new| is_new(new, Some(task.owner.as_deref().unwrap_or_default()))),
        add_blocks,
        add_blocked_by,
        metadata: metadata(&task.metadata, request.metadata.clone())?,
    };
    let nothing = TaskChange::Changed {
        id: task.id,
        subject: None,
        description: None,
        active_form: None,
        status: None,
        owner: None,
        add_blocks: Vec::new(),
        add_blocked_by: Vec::new(),
        metadata: Map::new(),
    };
    Ok((change != nothing).then_some(change))
}

/// Whether a completed task can be changed in this way: its owner and the lead can reopen or delete it, and completing
/// it again changes nothing.
fn may_reopen(task: &Task, actor: &Actor<'_>, request: &TaskRequest) -> bool {
    let is_its_owner = task.owner.as_deref() == Some(actor.name);
    let only_says_so =
        *request == TaskRequest { status: Some(Status::Completed), ..TaskRequest::new(request.id) };
    only_says_so || ((actor.is_lead || is_its_owner) && request.status != Some(Status::Completed))
}

/// The new owner of the task, if the request names or implies one.
fn new_owner(
    task: &Task,
    actor: &Actor<'_>,
    request: &TaskRequest,
) -> Result<Option<String>, TaskRefusal> {
    let begins = matches!(request.status, Some(Status::InProgress | Status::Completed));
    let name = request.owner.as_deref().map(str::trim);
    // A task that is begun or done has an owner: an empty name is ignored.
    if let Some(name) = name.filter(|name| !(begins && name.is_empty())) {
        let is_for_another = !name.is_empty() && name != actor.name;
        if is_for_another && !actor.members.iter().any(|member| member == name) {
            let members = actor.members.to_vec();
            return Err(TaskRefusal::NoMember { name: name.to_owned(), members });
        }
        let hands_on = task.owner.as_deref() == Some(actor.name);
        if is_for_another && !actor.is_lead && !hands_on {
            return Err(TaskRefusal::NotTheLead);
        }
        return Ok(Some(name.to_owned()));
    }
    Ok(match request.status {
        // Starting or finishing a task claims it.
        _ if begins && task.owner.is_none() => Some(actor.name.to_owned()),
        Some(Status::Pending) if task.status == Status::InProgress => Some(String::new()),
        _ => None,
    })
}

fn check_status(
    tasks: &Tasks,
    task: &Task,
    actor: &Actor<'_>,
    request: &TaskRequest,
    owner: Option<&str>,
) -> Result<(), TaskRefusal> {
    let Some(status @ (Status::InProgress | Status::Completed)) = request.status else {
        return Ok(());
    };
    if status == task.status {
        // Of two members that start the same task, the second is told the owner, the lead as well.
        return match task.owner.as_deref() {
            Some(holder)
                if status == Status::InProgress && owner.is_none() && holder != actor.name =>
            {
                Err(TaskRefusal::Held { id: task.id, owner: holder.to_owned(), status })
            }
            _ => Ok(()),
        };
    }
    if status == Status::InProgress
        && let Some(holder) = task.owner.as_deref()
        && owner.is_none()
        && holder != actor.name
    {
        return Err(TaskRefusal::Held {
            id: task.id,
            owner: holder.to_owned(),
            status: task.status,
        });
    }
    let mut by: BTreeSet<TaskNumber> = tasks.open_blockers(task).into_iter().collect();
    let is_open =
        |id: &&TaskNumber| tasks.get(**id).is_some_and(|it| it.status != Status::Completed);
    by.extend(request.add_blocked_by.iter().filter(is_open));
    if by.is_empty() {
        return Ok(());
    }
    Err(TaskRefusal::Blocked { id: task.id, by: by.into_iter().collect() })
}

/// The requested dependencies, if all of them are possible.
fn check_dependencies(
    tasks: &Tasks,
    others: &[TaskNumber],
    pair: impl Fn(TaskNumber) -> (TaskNumber, TaskNumber),
) -> Result<BTreeSet<TaskNumber>, TaskRefusal> {
    for other in others {
        let (first, then) = pair(*other);
        if first == then {
            return Err(TaskRefusal::Itself(first));
        }
        let blocker = tasks.get(first).ok_or(TaskRefusal::NotFound(first))?;
        let waiting = tasks.get(then).ok_or(TaskRefusal::NotFound(then))?;
        let is_new = !waiting.blocked_by.contains(&first) && blocker.status != Status::Completed;
        if is_new && waiting.status != Status::Pending {
            return Err(TaskRefusal::Begun { id: then, status: waiting.status });
        }
        if waits_for(tasks, first, then) {
            return Err(TaskRefusal::Circle { first, then });
        }
    }
    Ok(others.iter().copied().collect())
}

/// Whether a task waits for another one, directly or through others.
fn waits_for(tasks: &Tasks, task: TaskNumber, other: TaskNumber) -> bool {
    let (mut seen, mut open) = (BTreeSet::from([task]), vec![task]);
    while let Some(next) = open.pop() {
        let blockers = tasks.get(next).into_iter().flat_map(|task| &task.blocked_by);
        for blocker in blockers {
            if *blocker == other {
                return true;
            }
            if seen.insert(*blocker) {
                open.push(*blocker);
            }
        }
    }
    false
}

/// Refuses a circle through both lists of one request: a blocker in it must not wait for a task that it blocks.
fn check_circle_of_both(
    tasks: &Tasks,
    blocks: &BTreeSet<TaskNumber>,
    blocked_by: &BTreeSet<TaskNumber>,
) -> Result<(), TaskRefusal> {
    let pairs = blocked_by.iter().flat_map(|first| blocks.iter().map(move |then| (*first, *then)));
    for (first, then) in pairs {
        if first == then || waits_for(tasks, first, then) {
            return Err(TaskRefusal::Circle { first, then });
        }
    }
    Ok(())
}

fn new_ones(asked: &BTreeSet<TaskNumber>, known: &BTreeSet<TaskNumber>) -> Vec<TaskNumber> {
    asked.difference(known).copied().collect()
}

fn subject(given: &str) -> Result<String, TaskRefusal> {
    let given = given.trim();
    if given.is_empty() {
        return Err(TaskRefusal::NoSubject);
    }
    text("subject", given, SHORT)
}

fn field(
    name: &'static str,
    given: Option<&str>,
    most: usize,
) -> Result<Option<String>, TaskRefusal> {
    given.map(|given| text(name, given, most)).transpose()
}

/// A text to store: not too long, and without credentials.
fn text(field: &'static str, given: &str, most: usize) -> Result<String, TaskRefusal> {
    if given.len() > most {
        return Err(TaskRefusal::TooLong { field, most });
    }
    Ok(redact_text(given).into_owned())
}

/// The new metadata, if all of it together is not too large.
fn metadata(
    old: &Map<String, Value>,
    new: Map<String, Value>,
) -> Result<Map<String, Value>, TaskRefusal> {
    if new.is_empty() {
        return Ok(new);
    }
    let written = Value::Object(new).to_string();
    let new: Map<String, Value> = serde_json::from_str(&redact_text(&written)).unwrap_or_default();
    let changed: Map<String, Value> = new
        .into_iter()
        .filter(|(key, value)| old.get(key).unwrap_or(&Value::Null) != value)
        .collect();
    let both = Value::Object(old.clone()).to_string().len() + written.len();
    if both > MOST_METADATA {
        return Err(TaskRefusal::TooLong { field: "metadata", most: MOST_METADATA });
    }
    Ok(changed)
}
