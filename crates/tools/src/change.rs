//! What every tool that changes files has in common: the rule that a file is known before it is changed,
//! and the writing that follows.

use std::path::Path;

use centurion_protocol::ToolResultContent;
use serde_json::Value;

use crate::disk::{self, Existing};
use crate::read_state::{Knowledge, ReadState, View};
use crate::text_file::{Encoding, Text, decode};
use crate::{ToolError, ToolOutput, Workspace};

/// How much an agent must have seen of a file that it changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// A part: the change itself says what it replaces.
    Part,
    /// All of it: the change replaces everything.
    Whole,
}

/// Why a file may not be changed by this agent yet.
pub(crate) enum Refusal {
    Unread,
    Outdated,
    PartlySeen(View),
}

impl Refusal {
    pub(crate) fn explain(&self, path: &Path) -> String {
        let path = path.display();
        match self {
            Self::Unread => format!("{path} exists and has not been read yet: Read it first"),
            Self::Outdated => {
                format!("{path} has changed since it was read: Read it again, then redo the change")
            }
            Self::PartlySeen(view) => format!(
                "only {} of {path} have been read: Read the rest before replacing all of it, or use Edit",
                view.describe()
            ),
        }
    }
}

/// What the agent knows of the file as it is now, if that is enough.
pub(crate) fn check_known(
    state: &ReadState,
    path: &Path,
    existing: &Existing,
    need: Need,
) -> Result<View, Refusal> {
    match state.knowledge(path, blake3::hash(&existing.bytes)) {
        Knowledge::Unread => Err(Refusal::Unread),
        Knowledge::Outdated => Err(Refusal::Outdated),
        Knowledge::Current(view @ View::Lines { .. }) if need == Need::Whole => {
            Err(Refusal::PartlySeen(view))
        }
        Knowledge::Current(view) => Ok(view),
    }
}

/// The text of a file that is about to be changed in part, if the rest can be kept byte for byte.
pub(crate) fn editable_text(path: &Path, existing: &Existing) -> Result<Text, ToolError> {
    let text = decode(existing.bytes.clone()).map_err(|_| {
        ToolError::failed(format!(
            "{} is not text: change it with a program in Bash",
            path.display()
        ))
    })?;
    // UTF-16 with broken pairs does not come back as it was.
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

/// Writes `content` in `encoding` and remembers what this agent knows of it: `view`. Gives the hash of
/// what was written, in hex.
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
    disk::replace(path, named, &bytes, existing)?;
    workspace.read_state.record(path, hash, view);
    Ok(hash.to_hex().to_string())
}

/// An answer with its data.
pub(crate) fn answer(text: String, data: Value) -> ToolOutput {
    ToolOutput { content: vec![ToolResultContent::Text(text)], data }
}
