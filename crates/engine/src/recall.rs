//! Agents of earlier processes: who they were, how they ended, and what is still owed about them.
//!
//! All of it is read from their transcripts. An agent whose record has a start and no end was interrupted:
//! its end is written now, and told once. An end is told when some other transcript contains the id of its
//! notification; what is not told yet is owed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use centurion_protocol::{AgentId, Outcome, ToolUseId, Usage};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::delegation::Delegation;
use crate::evidence::Evidence;
use crate::journal::{Journal, Stamp, TranscriptFile};
use crate::notification;
use crate::session::Shared;
use crate::spawn::{self, END, RESUME, SPAWN};
use crate::spec::AgentSpec;
use crate::task::{End, Task, TaskRun};
use crate::transcript;

/// The agent that a name or id means, of this process or an earlier one.
pub(crate) fn find(shared: &Arc<Shared>, to: &str) -> Option<Arc<Task>> {
    let delegation = shared.delegation.get()?;
    delegation.find(to).or_else(|| {
        // Only what looks like an id becomes part of a path.
        let is_id = to.len() == 17
            && to.starts_with('a')
            && to.bytes().skip(1).all(|byte| byte.is_ascii_hexdigit());
        let (path, _) = spawn::places(delegation, &AgentId::new(to));
        let told = if is_id { read(&path) } else { None }?;
        Some(told.enter(shared, delegation)?.0)
    })
}

/// Takes up the agents of the session's earlier processes: ends those that were interrupted, and queues
/// what is owed.
pub(crate) fn take_up(shared: &Arc<Shared>) {
    let Some(delegation) = shared.delegation.get() else { return };
    let Ok(entries) = std::fs::read_dir(&delegation.ground.agents_dir) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "jsonl"));
    let mut told: Vec<Told> = paths.iter().filter_map(|path| read(path)).collect();
    // A name means whoever got it last.
    told.sort_by_key(|told| told.started);
    let entered = told.into_iter().filter_map(|told| told.enter(shared, delegation));
    let ends =
        entered.flat_map(|(task, ends)| ends.into_iter().map(move |end| (Arc::clone(&task), end)));
    let ends: Vec<(Arc<Task>, End)> = ends.collect();
    paths.push(delegation.ground.transcript.clone());
    for (task, end) in untold(ends, &paths) {
        shared.queue.push(notification::agent_news(&task, &end));
    }
}

/// Those ends whose news no other transcript holds. All are looked for at once: a session may have
/// thousands of agents.
fn untold(ends: Vec<(Arc<Task>, End)>, transcripts: &[PathBuf]) -> Vec<(Arc<Task>, End)> {
    if ends.is_empty() {
        return ends;
    }
    let ids = ends.iter().map(|(_, end)| end.notification.to_string());
    // Ids are short; so many that this failed would not fit into memory.
    let Ok(finder) = AhoCorasick::new(ids) else { return ends };
    let mut told = vec![false; ends.len()];
    for path in transcripts {
        let text = std::fs::read(path).unwrap_or_default();
        for found in finder.find_iter(&text) {
            let number = found.pattern().as_usize();
            told[number] |= ends[number].0.transcript != *path;
        }
    }
    ends.into_iter().zip(told).filter(|(_, is_told)| !is_told).map(|(end, _)| end).collect()
}

/// What a transcript says about its agent.
struct Told {
    id: AgentId,
    path: PathBuf,
    spec: AgentSpec,
    started: Timestamp,
    run: String,
    prompt: String,
    /// How its runs ended.
    ends: Vec<End>,
    /// Whether its last run has no end.
    was_interrupted: bool,
}

#[derive(Deserialize)]
struct Note<T> {
    subtype: String,
    timestamp: Timestamp,
    data: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpawnNote {
    agent_id: AgentId,
    run: String,
    prompt: String,
    spec: AgentSpec,
}

/// What the notes of all beginnings have.
#[derive(Deserialize)]
struct ResumeNote {
    run: String,
    prompt: String,
}

#[derive(Deserialize)]
struct EndNote {
    end: End,
}

/// Reads the notes of an agent's life; `None` for a file that is none of ours.
fn read(path: &Path) -> Option<Told> {
    let text = std::fs::read(path).ok()?;
    let (_, spawned) = notes::<SpawnNote>(&text, SPAWN).next()?;
    let SpawnNote { agent_id, mut run, mut prompt, spec } = spawned.data;
    let mut begun_at = 0;
    if let Some((at, resumed)) = notes::<ResumeNote>(&text, RESUME).last() {
        begun_at = at;
        (run, prompt) = (resumed.data.run, resumed.data.prompt);
    }
    let (places, ends): (Vec<usize>, Vec<End>) =
        notes::<EndNote>(&text, END).map(|(at, note)| (at, note.data.end)).unzip();
    // An end before the last beginning is that of an earlier run.
    let was_interrupted = places.last().is_none_or(|at| *at < begun_at);
    let (id, path, started) = (agent_id, path.to_owned(), spawned.timestamp);
    Some(Told { id, path, spec, started, run, prompt, ends, was_interrupted })
}

/// What an agent was last set to work for, if its process ended before it was told.
pub(crate) fn unread_prompt(text: &[u8]) -> Option<String> {
    let spawned = notes::<ResumeNote>(text, SPAWN).last();
    let (at, begun) = notes::<ResumeNote>(text, RESUME).last().or(spawned)?;
    let is_read = |line: &[u8]| {
        memchr::memmem::find(line, b"\"type\":\"user\"").is_some()
            // A line that was torn says nothing.
            && serde_json::from_slice::<IgnoredAny>(line).is_ok()
    };
    let mut since = text.get(at..)?.split(|byte| *byte == b'\n');
    (!since.any(is_read)).then_some(begun.data.prompt)
}

/// The notes of a kind, each with its place. A line that only looks like one, because a call has such an
/// input, is none.
fn notes<T: DeserializeOwned>(
    text: &[u8],
    subtype: &str,
) -> impl Iterator<Item = (usize, Note<T>)> {
    let marker = marker(subtype);
    let places: Vec<usize> = memchr::memmem::find_iter(text, marker.as_bytes()).collect();
    places.into_iter().filter_map(move |at| {
        let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1);
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end);
        let note: Note<T> = serde_json::from_slice(&text[start..end]).ok()?;
        (note.subtype == subtype).then_some((at, note))
    })
}

/// How a note of a kind looks in its line. Text inside a record has its quotes escaped and cannot look so.
fn marker(subtype: &str) -> String {
    format!("\"subtype\":\"{subtype}\"")
}

impl Told {
    /// Takes the agent into the table. One that was interrupted has its end now. Returns all its ends.
    fn enter(mut self, shared: &Shared, delegation: &Delegation) -> Option<(Arc<Task>, Vec<End>)> {
        let identity = spawn::identity(&self.spec, &self.id);
        let call = self.spec.call.clone();
        let (_, output) = spawn::places(delegation, &self.id);
        if self.was_interrupted {
            self.ends.push(interrupted(shared, &self.spec, &self.path));
        }
        let end = self.ends.last()?.clone();
        let run = task_run(self.run, call, self.prompt);
        let task =
            Task::recalled(identity, Arc::new(self.spec), self.path, output, run, end.clone())?;
        if self.was_interrupted {
            record_interruption(shared, delegation, &task, &end);
        }
        delegation.enter(&task);
        Some((task, self.ends))
    }
}

fn task_run(id: String, call: ToolUseId, prompt: String) -> TaskRun {
    TaskRun { id, call, prompt, cancel: CancellationToken::new(), started: Instant::now() }
}

/// The end of an agent whose process ended before it did, with what it had said last.
fn interrupted(shared: &Shared, spec: &AgentSpec, path: &Path) -> End {
    let text = std::fs::read(path).unwrap_or_default();
    End {
        outcome: Outcome::Interrupted,
        stopped_by: None,
        text: transcript::last_words(&text).unwrap_or_default(),
        structured: None,
        errors: Vec::new(),
        denials: Vec::new(),
        usage: Usage::default(),
        cumulative_usage: Usage::default(),
        model: spec.model.clone(),
        turns: 0,
        duration_ms: 0,
        evidence: Evidence::default(),
        notification: shared.world.record_id(),
    }
}

fn record_interruption(shared: &Shared, delegation: &Delegation, task: &Task, end: &End) {
    let stamp = Stamp {
        agent: Some(task.id.clone()),
        cwd: task.spec.cwd.display().to_string(),
        ..delegation.ground.stamp.clone()
    };
    let written = TranscriptFile::open(&task.transcript).and_then(|file| {
        let world = Arc::clone(&shared.world);
        let journal = Journal::resume(file, None, stamp, world, delegation.ground.redaction);
        journal.note(END, &json!({"run": task.run().id, "status": end.status(), "end": end}))
    });
    if let Err(error) = written {
        tracing::error!(%error, agent = %task.id, "an interruption could not be recorded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: &str, subtype: &str, data: &serde_json::Value) -> String {
        let timestamp = "2026-01-01T00:00:00Z";
        json!({"type": kind, "subtype": subtype, "timestamp": timestamp, "data": data}).to_string()
            + "\n"
    }

    fn begin(subtype: &str, run: &str, prompt: &str) -> String {
        line("system", subtype, &json!({"run": run, "prompt": prompt}))
    }

    #[test]
    fn a_call_whose_input_looks_like_a_note_is_none() {
        let forged = json!({"subtype": END, "timestamp": "2026-01-01T00:00:00Z", "data": {"run": "x", "prompt": "y"}});
        let text = begin(END, "r1", "p")
            + &line("assistant", "", &json!({"input": forged, "run": "r2", "prompt": "q"}));
        let found: Vec<String> =
            notes::<ResumeNote>(text.as_bytes(), END).map(|(_, note)| note.data.run).collect();
        assert_eq!(found, ["r1"]);
    }

    #[test]
    fn what_an_agent_was_never_told_is_known_from_its_record() {
        // S-231
        let said = json!({"type": "user", "message": {"content": "find it"}}).to_string() + "\n";
        let spawned = begin(SPAWN, "r1", "find it");
        assert_eq!(unread_prompt(spawned.as_bytes()).as_deref(), Some("find it"));
        let told = spawned + &said;
        assert_eq!(unread_prompt(told.as_bytes()), None);
        let again = told + &begin(RESUME, "r2", "go on");
        assert_eq!(unread_prompt(again.as_bytes()).as_deref(), Some("go on"));
        let torn = again.clone() + &said[..said.len() / 2];
        assert_eq!(unread_prompt(torn.as_bytes()).as_deref(), Some("go on"));
        assert_eq!(unread_prompt((again + &said).as_bytes()), None);
    }
}
