//! The small file beside a transcript by which other programs know an agent.

use centurion_protocol::Outcome;
use centurion_redact::{keep_over, redact_text};
use serde_json::json;

use super::worktree;
use crate::agent::shared::Shared;
use crate::agent::task::{End, Task};

/// Writes the file, which says how the agent ended if it has.
pub(super) fn write_meta(shared: &Shared, task: &Task, end: Option<&End>) {
    let spec = &task.spec;
    let mut meta = json!({
        "agentType": spec.agent_type,
        "isBuiltIn": spec.source == "built-in",
        "description": spec.description,
        "toolUseId": spec.call,
        "spawnDepth": spec.depth,
        "requestShape": if spec.in_background { "background" } else { "foreground" },
        "isFork": spec.is_fork(),
    });
    if let Some(fields) = meta.as_object_mut() {
        // A fork has those of its parent.
        if !spec.is_fork() {
            fields.insert("model".to_owned(), json!(spec.model));
            fields.insert("permissionMode".to_owned(), json!(spec.mode));
            fields.insert("color".to_owned(), json!(spec.color));
        }
        let name = spec.name.as_ref().map(|name| json!(name));
        let parent = spec.parent.as_ref().map(|parent| json!(parent));
        let finished = end.filter(|end| end.outcome == Outcome::Completed).map(|_| json!(true));
        for (key, value) in [("name", name), ("parentAgentId", parent), ("finished", finished)] {
            fields.extend(value.map(|value| (key.to_owned(), value)));
        }
        fields.extend(worktree::meta(spec, end));
    }
    let path = task.transcript.with_extension("meta.json");
    // The description is in another agent's words, which may hold anything.
    let text = redact_text(&meta.to_string()).into_owned();
    if let Err(error) = keep_over(&path, &text) {
        tracing::debug!(%error, path = %path.display(), "an agent's file could not be written");
    }
    if let Some(mirror) = &shared.delegation.builder.files.recording.mirror {
        // A store of transcripts has no file beside them: the same facts are a line of the transcript there.
        let fields = text.strip_prefix('{').unwrap_or_default();
        mirror.mirror(
            &task.transcript,
            format!("{{\"type\":\"agent_metadata\",{fields}\n").as_bytes(),
        );
    }
}
