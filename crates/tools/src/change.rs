//! The common part of all tools that change files: the rule that the agent has read a file before it changes it, and
//! the write itself.

use std::path::Path;

use centurion_protocol::ToolResultContent;
use serde_json::Value;

use crate::disk::{self, Existing, OtherNames, run_sized};
use crate::path_lock;
use crate::read_state::{Knowledge, View};
use crate::shared_files::OthersChange;
use crate::text_file::{Encoding, Text, decode};
use crate::{ToolContext, ToolError, ToolOutput, Workspace};

/// Runs a change of the file at `path` (resolved), as the only one of that file. `size` is the size of its new content,
/// as far as it is known.
pub(crate) async fn alone(
    context: &ToolContext,
    path: &Path,
    size: u64,
    change: impl FnOnce(&Workspace) -> Result<ToolOutput, ToolError> + Send + 'static,
) -> Result<ToolOutput, ToolError> {
    let guard = path_lock::hold(path, &context.cancel).await?;
    let workspace = context.workspace.clone();
    let size = disk::size_hint(path).max(size);
    run_sized(workspace.size_of_change(size), move || {
        // Held in here: the write continues when the call is dropped.
        let _guard = guard;
        change(&workspace)
    })
    .await
}

/// The part of a file that an agent must have seen before it changes the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredView {
    /// A part: the change itself names the text that it replaces.
    Part,
    /// All of it: the change replaces everything.
    Whole,
}

/// The reason that this agent may not change a file yet.
pub(crate) enum Refusal {
    Unread,
    Outdated(OthersChange),
    PartlySeen(View),
}

impl Refusal {
    pub(crate) fn explain(&self, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::Unread => format!("{path} exists and has not been read yet: Read it first"),
            Self::Outdated(OthersChange { by, difference }) => {
                let by = by.as_deref().unwrap_or("a person, a command or another program");
                let what = difference.as_ref().map_or_else(String::new, |difference| {
                    format!(". What has changed since:\n{}", difference.trim_end())
                });
                format!(
                    "{path} has changed since it was read, by {by}: Read it again, then redo the change{what}"
                )
            }
            Self::PartlySeen(view) => format!(
                "only {} of {path} have been read: Read the rest before replacing all of it, or use Edit",
                view.describe()
            ),
        }
    }
}

/// Returns the agent's knowledge of the file's present content, if that is enough for the change.
pub(crate) fn check_known(
    workspace: &Workspace,
    path: &Path,
    existing: &Existing,
    need: RequiredView,
) -> Result<View, Refusal> {
    match workspace.read_state.knowledge(path, blake3::hash(&existing.bytes)) {
        Knowledge::Unread => Err(Refusal::Unread),
        Knowledge::Outdated(seen) => {
            Err(Refusal::Outdated(workspace.files.since(path, seen, &existing.bytes)))
        }
        Knowledge::Current(view @ View::Lines { .. }) if need == RequiredView::Whole => {
            Err(Refusal::PartlySeen(view))
        }
        Knowledge::Current(view) => Ok(view),
    }
}

/// The text of a file that is about to be changed in part, if the rest survives byte for byte.
pub(crate) fn editable_text(path: &Path, existing: &Existing) -> Result<Text, ToolError> {
    let text = decode(existing.bytes.clone()).map_err(|_| {
        ToolError::failed(format!(
            "{} is not text: change it with a program in Bash",
            path.display()
        ))
    })?;
    // UTF-16 with broken pairs does not survive decoding and encoding.
    let utf16 = matches!(text.encoding, Encoding::Utf16Le | Encoding::Utf16Be);
    if utf16 && text.encoding.encode(&text.content).ok().as_ref() != Some(&existing.bytes) {
        return Err(ToolError::failed(format!(
            "{} is damaged {}: an edit would change more than it says",
            path.display(),
            text.encoding.name()
        )));
    }
    Ok(text)
}

/// Writes `content` in `encoding` and records `view` as this agent's knowledge of it. Returns the hash of the written
/// bytes, in hex.
pub(crate) fn write(
    workspace: &Workspace,
    path: &Path,
    named: &Path,
    content: &str,
    encoding: Encoding,
    existing: Option<&Existing>,
    view: View,
) -> Result<String, ToolError> {
    let bytes = encoding
        .encode(content)
        .map_err(|error| ToolError::failed(format!("cannot write {}: {error}", named.display())))?;
    let hash = blake3::hash(&bytes);
    if let Some(checkpoints) = &workspace.checkpoints {
        checkpoints.keep(path, existing, &hash).map_err(|reason| {
            ToolError::failed(format!("{} was not changed: {reason}", named.display()))
        })?;
    }
    // A hard link to a file in a worktree may be a file of the parent's checkout.
    let other_names =
        if workspace.isolation.is_some() { OtherNames::StayBehind } else { OtherNames::Follow };
    disk::replace(path, named, &bytes, existing, other_names)?;
    workspace.note_seen(path, &bytes, view);
    workspace.files.wrote(path, hash, &workspace.called);
    Ok(hash.to_hex().to_string())
}

/// The most bytes of a file's earlier content that the data of a change hold.
const MOST_ORIGINAL: usize = 256 * 1024;

/// The earlier content of a file for hosts; `None` if there was no file, or if it was too long.
pub(crate) fn original(old: Option<&str>) -> Option<&str> {
    old.filter(|old| old.len() <= MOST_ORIGINAL)
}

/// An answer with its data.
pub(crate) fn answer(text: String, data: Value) -> ToolOutput {
    ToolOutput { content: vec![ToolResultContent::Text(text)], data }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use serde_json::json;

    use crate::testing::{call, context};
    use crate::{Edit, IsolatedPlaces, NotebookEdit, Read, ToolContext, Write};

    /// Changes one file with each of the tools.
    async fn change(context: &ToolContext, path: &Path, notebook: &Path) {
        for path in [path, notebook] {
            call(Read, context, json!({"file_path": path})).await.unwrap();
        }
        let edit = json!({"file_path": path, "old_string": "old", "new_string": "edited"});
        call(Edit, context, edit).await.unwrap();
        call(Write, context, json!({"file_path": path, "content": "new"})).await.unwrap();
        let cell = json!({"notebook_path": notebook, "cell_id": "a", "new_source": "new"});
        call(NotebookEdit, context, cell).await.unwrap();
    }

    #[tokio::test]
    async fn no_change_of_an_isolated_agent_reaches_another_name_of_the_file() {
        const NOTEBOOK: &str = r#"{"cells": [{"cell_type": "raw", "id": "a", "metadata": {},
            "source": "old"}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}"#;
        for is_isolated in [true, false] {
            let scratch = tempfile::tempdir().unwrap();
            let top = scratch.path().canonicalize().unwrap();
            let root = top.join("worktree");
            fs::create_dir(&root).unwrap();
            for (name, content) in [("file", "old"), ("n.ipynb", NOTEBOOK)] {
                fs::write(top.join(name), content).unwrap();
                fs::hard_link(top.join(name), root.join(name)).unwrap();
            }
            let mut context = context(&root);
            let workspace = Arc::get_mut(&mut context.workspace).unwrap();
            workspace.isolation = is_isolated.then(|| {
                let places = IsolatedPlaces {
                    root: root.clone(),
                    checkout: top.clone(),
                    git_dir: None,
                    own: vec![root.clone()],
                    kept: vec![top.clone()],
                };
                Arc::new(places)
            });
            change(&context, &root.join("file"), &root.join("n.ipynb")).await;
            assert_eq!(fs::read_to_string(root.join("file")).unwrap(), "new");
            assert!(fs::read_to_string(root.join("n.ipynb")).unwrap().contains("new"));
            for (name, old) in [("file", "old"), ("n.ipynb", NOTEBOOK)] {
                let is_old = fs::read_to_string(top.join(name)).unwrap() == old;
                assert_eq!(is_old, is_isolated, "{name}");
            }
        }
    }
}
