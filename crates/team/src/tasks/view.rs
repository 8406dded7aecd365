//! Tasks in the form for other programs: one file each, beside the log of their list, and in a directory of their
//! team's name.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use centurion_files::private;
use serde_json::json;

use super::LOG;
use super::state::{Task, TaskNumber};
use crate::TeamName;

/// The tasks of a team in a directory of the team's name, where other programs look for them. Nothing reads them here.
#[derive(Debug)]
pub struct TeamTaskViews {
    lists: PathBuf,
    directory: PathBuf,
    /// The files as they were written.
    shown: BTreeMap<TaskNumber, String>,
    is_prepared: bool,
}

impl TeamTaskViews {
    /// The views of a team below the directory of all lists.
    pub fn new(lists: &Path, team: &TeamName) -> Self {
        let directory = lists.join(team.as_str());
        Self { lists: lists.to_owned(), directory, shown: BTreeMap::new(), is_prepared: false }
    }

    /// Writes what has changed.
    pub fn show(&mut self, tasks: &[Task]) -> io::Result<()> {
        if tasks.is_empty() && self.shown.is_empty() {
            return Ok(());
        }
        self.prepare()?;
        for task in tasks {
            let text = text(task);
            if self.shown.get(&task.id) != Some(&text) {
                private::replace(&self.path(task.id), text.as_bytes())?;
                self.shown.insert(task.id, text);
            }
        }
        let is_there = |id: &TaskNumber| tasks.iter().any(|task| task.id == *id);
        let gone: Vec<TaskNumber> = self.shown.keys().filter(|id| !is_there(id)).copied().collect();
        for id in gone {
            fs::remove_file(self.path(id))?;
            self.shown.remove(&id);
        }
        Ok(())
    }

    /// Removes the views, and the directory if nothing of another program is in it.
    pub fn remove(&self) {
        if !self.is_ours() {
            return;
        }
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            if is_view(&entry.file_name()) && entry.file_type().is_ok_and(|it| it.is_file()) {
                // A view that stays is out of date, and removed with the next look.
                let _ = fs::remove_file(entry.path());
            }
        }
        let _ = fs::remove_dir(&self.directory);
    }

    fn path(&self, id: TaskNumber) -> PathBuf {
        self.directory.join(format!("{id}.json"))
    }

    /// Makes the directory, without what an earlier process left in it.
    fn prepare(&mut self) -> io::Result<()> {
        if !self.is_prepared {
            self.remove();
            private::create_directory(&self.directory)?;
            if !self.is_ours() {
                let reason = "a link or a list of tasks in its place";
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
            }
            self.is_prepared = true;
        }
        Ok(())
    }

    /// Tells whether the directory is one of views: no link, and no list of its own.
    fn is_ours(&self) -> bool {
        let is_directory = |path: &Path| fs::symlink_metadata(path).is_ok_and(|it| it.is_dir());
        is_directory(&self.lists)
            && is_directory(&self.directory)
            && fs::symlink_metadata(self.directory.join(LOG)).is_err()
    }
}

/// Writes the view of a task, or removes it if the task no longer exists. A view that cannot be written is only out of
/// date: the log counts.
pub(super) fn write(directory: &Path, id: TaskNumber, task: Option<&Task>) {
    let path = directory.join(format!("{id}.json"));
    let _ = match task {
        Some(task) => private::replace(&path, text(task).as_bytes()),
        None => fs::remove_file(path),
    };
}

/// Whether a file of this name is the view of a task.
pub(super) fn is_view(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_suffix(".json"));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn text(task: &Task) -> String {
    format!("{:#}\n", form(task))
}

fn form(task: &Task) -> serde_json::Value {
    let ids = |ids: &std::collections::BTreeSet<TaskNumber>| {
        ids.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let mut form = json!({
        "id": task.id.to_string(),
        "subject": task.subject,
        "description": task.description,
    });
    if let Some(fields) = form.as_object_mut() {
        for (key, value) in [("activeForm", &task.active_form), ("owner", &task.owner)] {
            fields.extend(value.as_ref().map(|value| (key.to_owned(), json!(value))));
        }
        fields.insert("status".to_owned(), json!(task.status));
        fields.insert("blocks".to_owned(), json!(ids(&task.blocks)));
        fields.insert("blockedBy".to_owned(), json!(ids(&task.blocked_by)));
        if !task.metadata.is_empty() {
            fields.insert("metadata".to_owned(), json!(task.metadata));
        }
    }
    form
}
