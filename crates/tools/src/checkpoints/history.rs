//! The files in a transcript: its prompts in order, and the changes after each.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use centurion_protocol::markup::typed_commands;
use centurion_protocol::transcript::{FileBackup, FileBackups};
use centurion_protocol::{RecordId, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A prompt to which a session can return.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub record: RecordId,
    /// The record before it.
    pub parent: Option<RecordId>,
    /// The id that a host gave it, if a host sent it.
    pub queue_item: Option<RecordId>,
    pub time: Option<Timestamp>,
    pub text: String,
    /// Whether it is no prompt, but the state of files before a rewind.
    pub is_rewind: bool,
    /// Whether it stands in the conversation as that is now, or did before a compaction.
    pub is_current: bool,
    /// Its line: changes on later lines came after it.
    line: usize,
}

/// The prompts of a session, and the changes of files after each.
#[derive(Clone, Debug, Default)]
pub struct FileHistory {
    pub prompts: Vec<Prompt>,
    changes: Vec<FileChange>,
}

#[derive(Clone, Debug)]
struct FileChange {
    line: usize,
    path: PathBuf,
    backup: FileBackup,
}

/// The state of a file at a prompt, and the last hash that the session gave it.
#[derive(Clone, Debug)]
pub(super) struct Tracked {
    pub(super) path: PathBuf,
    pub(super) before: FileBackup,
    pub(super) written: Option<String>,
    /// Copies of changes that others have made since.
    pub(super) foreign: Vec<String>,
    /// The agents that have changed it, but for the main one.
    pub(super) agents: BTreeSet<String>,
    /// The last copy that a record named.
    copy: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HistoryLine<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    uuid: Option<RecordId>,
    #[serde(default)]
    parent_uuid: Option<RecordId>,
    #[serde(default)]
    queue_item: Option<RecordId>,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_meta: bool,
    #[serde(default)]
    is_compact_summary: bool,
    #[serde(default)]
    logical_parent_uuid: Option<RecordId>,
    #[serde(default)]
    timestamp: Option<Timestamp>,
    #[serde(borrow, default)]
    tool_use_result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<SaidView<'a>>,
    #[serde(default)]
    message_id: Option<RecordId>,
    #[serde(default)]
    snapshot: Option<SnapshotView>,
}

#[derive(Deserialize)]
struct SaidView<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SnapshotView {
    #[serde(default)]
    tracked_file_backups: FileBackups,
}

impl FileHistory {
    /// Reads the main agent's transcript. Skips lines that cannot be read.
    pub fn read(transcript: &[u8]) -> Self {
        let mut history = Self::default();
        let mut branches = Branches::default();
        for (line, text) in transcript.split(|byte| *byte == b'\n').enumerate() {
            let Ok(text) = std::str::from_utf8(text) else { continue };
            let Ok(view) = serde_json::from_str::<HistoryLine<'_>>(text) else { continue };
            branches.take(&view);
            match &*view.kind {
                "user" => history.prompts.extend(prompt(&view, line)),
                "file-history-snapshot" => {
                    history.prompts.extend(view.message_id.and_then(|id| {
                        let is_new = !history.prompts.iter().any(|prompt| prompt.record == id);
                        is_new.then(|| Prompt::before_rewind(id, view.timestamp, line))
                    }));
                    let files = view.snapshot.map(|it| it.tracked_file_backups).unwrap_or_default();
                    history.changes.extend(files.into_iter().map(|(path, backup)| FileChange {
                        line,
                        path: PathBuf::from(path),
                        backup,
                    }));
                }
                _ => {}
            }
        }
        let current = branches.current();
        for prompt in &mut history.prompts {
            prompt.is_current = current.contains(&prompt.record);
        }
        history
    }

    /// Finds the prompt with an id, as hosts or transcripts know it.
    pub fn find(&self, id: RecordId) -> Option<&Prompt> {
        self.prompts.iter().rfind(|prompt| prompt.record == id || prompt.queue_item == Some(id))
    }

    /// The number of files that were changed since a prompt.
    pub fn changed_since(&self, prompt: &Prompt) -> usize {
        self.tracked_since(prompt).len()
    }

    /// The agents that have changed each file, by their names; the main agent is `main`.
    pub fn authors(&self) -> BTreeMap<&Path, BTreeSet<&str>> {
        let mut authors: BTreeMap<&Path, BTreeSet<&str>> = BTreeMap::new();
        for FileChange { path, backup, .. } in &self.changes {
            let agent = backup.agent.as_deref().unwrap_or("main");
            authors.entry(path).or_default().insert(agent);
        }
        authors
    }

    /// The files that were changed since a prompt.
    pub(super) fn tracked_since(&self, prompt: &Prompt) -> Vec<Tracked> {
        let mut files: BTreeMap<PathBuf, Tracked> = BTreeMap::new();
        for FileChange { path, backup, .. } in
            self.changes.iter().filter(|change| change.line > prompt.line)
        {
            let tracked = files.entry(path.clone()).or_insert_with(|| Tracked {
                path: path.clone(),
                before: backup.clone(),
                written: backup.digest.clone(),
                foreign: Vec::new(),
                agents: BTreeSet::new(),
                copy: backup.backup_file_name.clone(),
            });
            tracked.agents.extend(backup.agent.clone());
            // Others changed the file if it was not, before a change of ours, as we had last written it.
            let is_foreign = backup.digest.is_some()
                && backup.digest != tracked.written
                && backup.backup_file_name != tracked.copy;
            let copy = backup.backup_file_name.as_ref().filter(|_| is_foreign);
            tracked.foreign.extend(copy.or(backup.foreign.as_ref()).cloned());
            tracked.copy.clone_from(&backup.backup_file_name);
            tracked.written = backup.written.clone().or(tracked.written.take());
        }
        files.into_values().collect()
    }
}

/// The records of a conversation and what each one follows, also over a boundary.
#[derive(Default)]
struct Branches {
    before: HashMap<RecordId, Option<RecordId>>,
    last: Option<RecordId>,
}

impl Branches {
    fn take(&mut self, view: &HistoryLine<'_>) {
        let is_boundary = view.logical_parent_uuid.is_some();
        let is_said = matches!(&*view.kind, "user" | "assistant" | "attachment") || is_boundary;
        if let Some(id) = view.uuid.filter(|_| is_said && !view.is_sidechain) {
            self.before.insert(id, view.parent_uuid.or(view.logical_parent_uuid));
            self.last = Some(id);
        }
    }

    /// The records on the way to the last one.
    fn current(&self) -> HashSet<RecordId> {
        let mut current = HashSet::new();
        let mut next = self.last;
        while let Some(id) = next.filter(|id| current.insert(*id)) {
            next = self.before.get(&id).copied().flatten();
        }
        current
    }
}

fn prompt(view: &HistoryLine<'_>, line: usize) -> Option<Prompt> {
    let content = view.message.as_ref()?.content.get();
    let is_result = view.tool_use_result.is_some() || content.contains("\"tool_result\"");
    if view.is_meta || view.is_sidechain || view.is_compact_summary || is_result {
        return None;
    }
    Some(Prompt {
        record: view.uuid?,
        parent: view.parent_uuid,
        queue_item: view.queue_item,
        time: view.timestamp,
        text: text(content),
        is_rewind: false,
        is_current: false,
        line,
    })
}

impl Prompt {
    /// The state of files before a rewind whose first record is in this line.
    fn before_rewind(record: RecordId, time: Option<Timestamp>, line: usize) -> Self {
        Self {
            record,
            parent: None,
            queue_item: None,
            time,
            text: "(before a rewind)".to_owned(),
            is_rewind: true,
            is_current: false,
            line: line.saturating_sub(1),
        }
    }
}

/// The words of a message.
fn text(content: &str) -> String {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Said {
        Text(String),
        Blocks(Vec<Part>),
    }
    #[derive(Deserialize)]
    struct Part {
        #[serde(default)]
        text: String,
    }
    let said = match serde_json::from_str(content) {
        Ok(Said::Text(text)) => text,
        Ok(Said::Blocks(parts)) => {
            parts.into_iter().map(|part| part.text).collect::<Vec<_>>().join("\n")
        }
        Err(_) => String::new(),
    };
    typed_commands(&said).unwrap_or(said)
}
