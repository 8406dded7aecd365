//! Tasks in the form for other programs: one file each.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use centurion_files::private;
use serde_json::json;

use super::state::{Task, TaskNumber};

/// Writes the view of a task, or removes it if the task no longer exists. A view that cannot be written is only out of
/// date: the log counts.
pub(super) fn write(directory: &Path, id: TaskNumber, task: Option<&Task>) {
    let path = directory.join(format!("{id}.json"));
    let _ = match task {
        Some(task) => private::replace(&path, format!("{:#}\n", form(task)).as_bytes()),
        None => fs::remove_file(path),
    };
}

/// Whether a file of this name is the view of a task.
pub(super) fn is_view(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_suffix(".json"));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
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
