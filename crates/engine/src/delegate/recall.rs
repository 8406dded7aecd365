//! Agents of earlier processes: who they were, how they ended, and which of their results are undelivered.
//!
//! All of it is read from their transcripts. An agent whose record has a start and no end was interrupted:
//! its end is written now, and told once. An end is told when some other transcript names its
//! notification; all other ends are undelivered. Unread mail stays in the agent's transcript until the agent is
//! resumed.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use centurion_protocol::{
    AgentId, Outcome, RecordId, ReportedUsage, SessionId, Timestamp, ToolUseId, bounded,
};
use centurion_team::Frame;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent::delegation::Delegation;
use crate::agent::evidence::Evidence;
use crate::agent::isolation::WorktreeEnd;
use crate::agent::shared::Shared;
use crate::agent::task::{Asker, End, Files, Task, TaskRun};
use crate::agent::team::OpenRequests;
use crate::definition::spec::AgentSpec;
use crate::delegate::notification;
use crate::delegate::spawn;
use crate::delegate::spending::{self, PastRun};
use crate::delegate::teammate;
use crate::message::life_records::{END, ENTERED, RESUME, SPAWN};
use crate::message::mail::{self, Arrival, Mail};
use crate::message::queue::Wakes;
use crate::money::budget::{Account, Amount};
use centurion_journal::transcript;
use centurion_journal::{Journal, MOST_TRANSCRIPT, Stamp, TranscriptFile};

/// Enters the agent of an earlier process that a name or id means into the table, if it is not there yet. A thread
/// of its own reads the files.
pub(crate) async fn recall(shared: &Arc<Shared>, to: &str) {
    let delegation = &shared.delegation;
    let id = delegation.id_of(to);
    if delegation.find(to).is_some() || !is_id(&id) {
        return;
    }
    let reader = Arc::clone(shared);
    let reading = tokio::task::spawn_blocking(move || read_agent(&reader, &id));
    match reading.await {
        // Another call may have entered it meanwhile.
        Ok(Some((told, spent))) if delegation.find(to).is_none() => {
            told.enter(shared, delegation, &spent);
        }
        Ok(_) => {}
        Err(fault) => tracing::error!(%fault, "an agent of an earlier process could not be read"),
    }
}

/// Reads the transcript of an agent, and for its account those of the agents below it. Blocks.
fn read_agent(shared: &Shared, id: &AgentId) -> Option<(ToldEnds, HashMap<AgentId, Amount>)> {
    let delegation = &shared.delegation;
    let own = spawn::agent_files(delegation, id).transcript;
    let told = ToldEnds::read(shared, own.clone(), &read(&own)?)?;
    let mut runs = told.runs.clone();
    if delegation.account(id).is_none() {
        for path in transcripts(delegation).into_iter().filter(|path| *path != own) {
            let text = read(&path).unwrap_or_default();
            runs.extend(ToldEnds::read(shared, path, &text).into_iter().flat_map(|it| it.runs));
        }
    }
    let spent = spending::by_agent(&runs);
    Some((told, spent))
}

/// Tells whether it looks like an id: only that becomes part of a path.
pub(crate) fn is_id(id: &AgentId) -> bool {
    let id = id.as_str();
    id.len() == 17 && id.starts_with('a') && id.bytes().skip(1).all(|byte| byte.is_ascii_hexdigit())
}

/// The paths of the transcripts of the session's agents.
fn transcripts(delegation: &Delegation) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(delegation.builder.files.place.agents_dir());
    let entries = entries.into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "jsonl"));
    paths
}

/// The subtype of the note by which a transcript gives its agents away, because its conversation began anew.
pub(crate) const LEFT: &str = "session_left";
/// The subtype of the note with which the transcript of such a session begins.
pub(crate) const CARRIED: &str = "session_begun_anew";

/// The session that a conversation continued as, and the agents that went along.
#[derive(Deserialize)]
struct LeftNote {
    to: SessionId,
    agents: HashSet<AgentId>,
}

/// The session that a conversation began anew from, and the agents that came along.
#[derive(Serialize, Deserialize)]
pub(crate) struct CarriedNote {
    pub(crate) from: SessionId,
    /// The directory for large outputs of the process.
    pub(crate) outputs: PathBuf,
    pub(crate) agents: Vec<CarriedAgent>,
}

/// An agent whose transcript stands with those of an earlier session.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CarriedAgent {
    pub(crate) id: AgentId,
    pub(crate) transcript: PathBuf,
    /// Its run at that time. The ends of earlier ones were told.
    pub(crate) run: String,
    /// Whether the end of that run was told.
    pub(crate) is_told: bool,
}

impl CarriedNote {
    /// The note that a transcript begins with; `None` for nearly all transcripts.
    pub(crate) fn read(transcript: &[u8]) -> Option<Self> {
        notes::<Self>(transcript, CARRIED).next().map(|(_, note)| note.data)
    }
}

/// Facts about other agents in the transcript of the main agent. The session reads them when it opens the transcript.
#[derive(Default)]
pub(crate) struct MainRecord {
    /// The ids of notifications that the main agent has.
    delivered: HashSet<RecordId>,
    /// The structured messages that it has accepted.
    frames: Vec<Frame>,
    /// The mail that it had accepted and not read.
    unread: Vec<Mail>,
    /// The length of the part in which another session has taken over what was there.
    given_away: usize,
    /// The agents that another session has taken over.
    left: HashSet<AgentId>,
    /// The agents that came from another session.
    carried: Vec<CarriedAgent>,
}

impl MainRecord {
    /// Reads a transcript that is at this path.
    pub(crate) fn read(transcript: &[u8], path: &Path) -> Self {
        // Agents are given away once the other session has written down that it took them.
        let is_taken = |to: SessionId| {
            let other = read(&path.with_file_name(format!("{to}.jsonl")));
            other.is_some_and(|other| CarriedNote::read(&other).is_some())
        };
        let (mut since, mut left) = (0, HashSet::new());
        for (at, note) in notes::<LeftNote>(transcript, LEFT) {
            if is_taken(note.data.to) {
                since = at;
                left.extend(note.data.agents);
            }
        }
        let news = transcript.get(since..).unwrap_or_default();
        Self {
            delivered: delivered_in(transcript).collect(),
            frames: mail::frames(news),
            unread: mail::waiting(news),
            given_away: since,
            left,
            carried: CarriedNote::read(transcript).map(|note| note.agents).unwrap_or_default(),
        }
    }

    /// The part of the transcript behind what another session has taken over; `None` if none has.
    pub(crate) fn own_part<'t>(&self, transcript: &'t [u8]) -> Option<&'t [u8]> {
        transcript.get(self.given_away..).filter(|_| self.given_away > 0)
    }

    /// The transcripts of the agents that belong to it.
    fn transcripts(&self, delegation: &Delegation) -> Vec<PathBuf> {
        let mut paths = transcripts(delegation);
        let is_left = |path: &Path| {
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            name.strip_prefix("agent-").is_some_and(|id| self.left.contains(&AgentId::new(id)))
        };
        paths.retain(|path| !is_left(path));
        let carried = self.carried.iter().filter(|it| !self.left.contains(&it.id));
        paths.extend(carried.map(|it| it.transcript.clone()));
        paths
    }

    /// The ends of an agent that were told in the session that it came from.
    fn told_before(&self, agent: &ToldEnds) -> Vec<RecordId> {
        let Some(carried) = self.carried.iter().find(|it| it.id == agent.id) else {
            return Vec::new();
        };
        let is_earlier = |ended: &&EndedRun| ended.run.id != carried.run;
        let before = agent.ends.iter().take_while(is_earlier).map(|ended| ended.end.notification);
        let last = agent.ends.iter().find(|ended| ended.run.id == carried.run);
        let last = last.filter(|_| carried.is_told).map(|ended| ended.end.notification);
        before.chain(last).collect()
    }
}

/// Restores the agents of the session's earlier processes: ends those that were interrupted, and queues
/// undelivered results for the main agent. All agents with undelivered results have stopped. Reads the transcript of
/// each agent once, and so blocks.
pub(crate) fn restore(shared: &Arc<Shared>, main: MainRecord) {
    let delegation = &shared.delegation;
    let mut delivered = main.delivered.clone();
    let mut told: Vec<ToldEnds> = Vec::new();
    for path in main.transcripts(delegation) {
        let Some(text) = read(&path) else { continue };
        let agent = ToldEnds::read(shared, path, &text);
        let own = |id: &RecordId| agent.as_ref().is_some_and(|it| it.has_end(*id));
        delivered.extend(delivered_in(&text).filter(|id| !own(id)));
        delivered.extend(agent.iter().flat_map(|agent| main.told_before(agent)));
        told.extend(agent);
    }
    // A name means the agent that got it last.
    told.sort_by_key(|told| told.started);
    let runs: Vec<PastRun> = told.iter().flat_map(|told| told.runs.clone()).collect();
    let spent = spending::by_agent(&runs);
    let entered = told.into_iter().filter_map(|told| told.enter(shared, delegation, &spent));
    let entered: Vec<RecalledTask> = entered.collect();
    reopen_requests(shared, &entered, &main.frames);
    for RecalledTask { task, ends, .. } in entered {
        for EndedRun { run, end } in ends {
            if !delivered.contains(&end.notification) {
                shared.queue.push(notification::agent_news(&task, &run, &end));
            }
        }
    }
    for mail in main.unread {
        shared.queue.push(mail.item(None, Arrival::AtBeginning));
    }
}

fn read(transcript: &Path) -> Option<Vec<u8>> {
    bounded::read_file(transcript, MOST_TRANSCRIPT).ok()
}

/// The fields of a transcript that name notifications: of an item that was read, of a result that a call gave, and of
/// one notification for several ends. Text inside a record has its quotes escaped and cannot look so.
const NOTIFICATION_FIELDS: [&str; 3] =
    ["\"queueItem\":\"", "\"notification\":\"", "\"covers\":[\""];

/// The ids of notifications that a transcript contains.
fn delivered_in(transcript: &[u8]) -> impl Iterator<Item = RecordId> {
    let id = |bytes: &[u8]| str::from_utf8(bytes).ok()?.parse::<RecordId>().ok();
    NOTIFICATION_FIELDS.iter().flat_map(move |field| {
        let places = memchr::memmem::find_iter(transcript, field.as_bytes());
        places.flat_map(move |at| {
            let list = &transcript[at + field.len()..];
            let end = if field.contains('[') { b']' } else { b'"' };
            let length = memchr::memchr(end, list).unwrap_or_default();
            list[..length].split(|byte| b"\",".contains(byte)).filter_map(id)
        })
    })
}

/// Opens what was open between the lead of a team and its members: plans without an answer, and requests to end.
fn reopen_requests(shared: &Shared, entered: &[RecalledTask], of_lead: &[Frame]) {
    let Some(team) = &shared.delegation.team else { return };
    for RecalledTask { task, frames, .. } in entered {
        let name = task.spec.name.as_deref().filter(|_| task.spec.team.is_some());
        let (Some(name), Some(end)) = (name, task.end()) else { continue };
        if !end.leaves_team() {
            team.reopen(&task.id, open_requests(name, frames, of_lead));
        }
    }
}

/// The requests between the lead and a member that have no answer, by what each has accepted.
fn open_requests(member: &str, frames: &[Frame], of_lead: &[Frame]) -> OpenRequests {
    let proposed = of_lead.iter().rev().find_map(|frame| match frame {
        Frame::PlanApprovalRequest { request_id, from, .. } if from == member => Some(request_id),
        _ => None,
    });
    let is_answered = |id: &&String| {
        frames.iter().any(
            |frame| matches!(frame, Frame::PlanApprovalResponse { request_id, .. } if request_id == *id),
        )
    };
    let asked = frames.iter().rev().find_map(|frame| match frame {
        Frame::ShutdownRequest { request_id, .. } => Some(request_id),
        _ => None,
    });
    let is_refused = |id: &&String| {
        of_lead.iter().any(
            |frame| matches!(frame, Frame::ShutdownRejected { request_id, .. } if request_id == *id),
        )
    };
    OpenRequests {
        plan: proposed.filter(|id| !is_answered(id)).cloned(),
        shutdown: asked.filter(|id| !is_refused(id)).cloned(),
    }
}

/// An agent of an earlier process that is in the table now.
struct RecalledTask {
    task: Arc<Task>,
    /// Its ends that may have to be told.
    ends: Vec<EndedRun>,
    /// The structured messages that it has accepted since it last left its team.
    frames: Vec<Frame>,
}

/// An agent as its transcript describes it.
struct ToldEnds {
    id: AgentId,
    path: PathBuf,
    spec: AgentSpec,
    started: Timestamp,
    /// All its runs, with what each has spent.
    runs: Vec<PastRun>,
    /// The ends of its runs.
    ends: Vec<EndedRun>,
    /// Its last run, if that has no end.
    interrupted: Option<InterruptedRun>,
    /// The number of messages that it has not read.
    unread: usize,
    /// The structured messages that it has accepted since it last left its team.
    frames: Vec<Frame>,
}

/// A run that has ended.
struct EndedRun {
    run: TaskRun,
    end: End,
}

/// A run whose process ended before it did.
struct InterruptedRun {
    run: TaskRun,
    usage: ReportedUsage,
    dollars: f64,
    /// The last text of the agent.
    text: String,
}

#[derive(Deserialize)]
pub(super) struct Note<T> {
    subtype: String,
    timestamp: Timestamp,
    /// The directory of the line's agent.
    #[serde(default)]
    cwd: PathBuf,
    pub(super) data: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReadSpawnNote {
    agent_id: AgentId,
    pub(super) spec: AgentSpec,
}

/// The common fields of the notes of all beginnings.
#[derive(Deserialize)]
struct BeginNote {
    run: String,
    prompt: String,
    asker: Option<Asker>,
    /// Without it, the call that first started the agent.
    call: Option<ToolUseId>,
}

#[derive(Deserialize)]
struct EndNote {
    run: String,
    end: End,
}

impl ToldEnds {
    /// Reads the notes of an agent's life from its transcript; `None` for a file of another program.
    fn read(shared: &Shared, path: PathBuf, text: &[u8]) -> Option<Self> {
        let (_, Note { timestamp, cwd, data: ReadSpawnNote { agent_id, spec }, .. }) =
            notes::<ReadSpawnNote>(text, SPAWN).next()?;
        let mut told = Self {
            id: agent_id,
            path,
            spec: spec.restored(cwd),
            started: timestamp,
            runs: Vec::new(),
            ends: Vec::new(),
            interrupted: None,
            unread: mail::waiting(text).len(),
            frames: Vec::new(),
        };
        if told.spec.team.is_some() {
            let left = notes::<EndNote>(text, END).filter(|(_, it)| it.data.end.leaves_team());
            let since = left.last().map_or(0, |(at, _)| at);
            told.frames = mail::frames(&text[since..]);
        }
        let mut ends: HashMap<String, End> =
            notes::<EndNote>(text, END).map(|(_, it)| (it.data.run, it.data.end)).collect();
        let begun = notes::<BeginNote>(text, SPAWN).take(1);
        for (at, begun) in begun.chain(notes::<BeginNote>(text, RESUME)) {
            let end = ends.remove(&begun.data.run);
            told.add(shared, begun.data, end, text, at);
        }
        Some(told)
    }

    /// Tells whether one of its ends has this notification.
    fn has_end(&self, notification: RecordId) -> bool {
        self.ends.iter().any(|ended| ended.end.notification == notification)
    }

    /// Adds a run that began at some place of the transcript.
    fn add(&mut self, shared: &Shared, begun: BeginNote, end: Option<End>, text: &[u8], at: usize) {
        let BeginNote { run: id, prompt, asker, call } = begun;
        let call = call.unwrap_or_else(|| self.spec.call.clone());
        let (cancel, started) = (CancellationToken::new(), Instant::now());
        let run = TaskRun { id, call, asker, prompt, cancel, started };
        let (id, asker) = (run.id.clone(), run.asker.clone());
        // Only the last run can have been interrupted: no agent is resumed before its end is recorded.
        self.interrupted = None;
        let (tokens, dollars) = if let Some(end) = end {
            let spent = (end.cumulative_usage.counts.total(), end.dollars);
            self.ends.push(EndedRun { run, end });
            spent
        } else {
            let (usage, dollars) =
                spending::of_answers(text.get(at..).unwrap_or_default(), &shared.model);
            let text = transcript::last_words(text).unwrap_or_default();
            let tokens = usage.counts.total();
            self.interrupted = Some(InterruptedRun { run, usage, dollars, text });
            (tokens, dollars)
        };
        let spent = Amount { dollars, tokens };
        self.runs.push(PastRun { agent: self.id.clone(), id, asker, spent });
    }
}

/// The task of an agent whose process ended before the agent read it.
pub(crate) fn unread_prompt(text: &[u8]) -> Option<String> {
    let (at, begun) = notes::<BeginNote>(text, SPAWN).next()?;
    let is_read = |line: &[u8]| {
        memchr::memmem::find(line, b"\"type\":\"user\"").is_some()
            // The opening of a fork's first message is not its task.
            && memchr::memmem::find(line, ENTERED.as_bytes()).is_none()
            // A line that was torn says nothing.
            && serde_json::from_slice::<IgnoredAny>(line).is_ok()
    };
    let mut since = text.get(at..)?.split(|byte| *byte == b'\n');
    (!since.any(is_read)).then_some(begun.data.prompt)
}

/// The notes of a kind, each with its place. A line that only looks like one, because a call has such an
/// input, is none.
pub(super) fn notes<T: DeserializeOwned>(
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

/// The text of a note's kind in its line. Text inside a record has its quotes escaped and cannot look so.
fn marker(subtype: &str) -> String {
    format!("\"subtype\":\"{subtype}\"")
}

impl ToldEnds {
    /// Enters the agent into the table. One that was interrupted has its end now. Returns all its ends.
    fn enter(
        mut self,
        shared: &Shared,
        delegation: &Delegation,
        spent: &HashMap<AgentId, Amount>,
    ) -> Option<RecalledTask> {
        let was_interrupted = self.interrupted.is_some();
        self.ends.extend(self.interrupted.map(|it| it.end(shared, &self.spec)));
        let EndedRun { run, end } = self.ends.last_mut()?;
        // A session that was stopped dropped its queue, and did not count what it held.
        end.unread = self.unread;
        let account = delegation.account(&self.id).unwrap_or_else(|| {
            let spent = spent.get(&self.id).copied().unwrap_or_default();
            Account::new(delegation.rules.limits.budget, spent)
        });
        let output = spawn::agent_files(delegation, &self.id).output;
        let files = Files { transcript: self.path, output };
        let (spec, last) = (Arc::new(self.spec), Arc::new(end.clone()));
        let task = Task::recalled(self.id.clone(), spec, files, account, run.clone(), last);
        if was_interrupted {
            append_end(shared, &task, &task.run().id, end);
        }
        delegation.enter(&task);
        if let Some(team) = &delegation.team {
            team.enter(&task);
        }
        if task.spec.team.is_some() {
            // That it rested before is told by how it stands now; what it said is not.
            let mut later = self.ends.len();
            self.ends.retain(|ended| {
                later -= 1;
                later == 0 || teammate::wakes(&ended.end) != Wakes::Never
            });
        }
        Some(RecalledTask { task, ends: self.ends, frames: self.frames })
    }
}

impl InterruptedRun {
    /// The end of the run, with what was said last.
    fn end(self, shared: &Shared, spec: &AgentSpec) -> EndedRun {
        let end = End {
            outcome: Outcome::Interrupted,
            stopped_by: None,
            text: self.text,
            structured: None,
            errors: Vec::new(),
            denials: Vec::new(),
            usage: ReportedUsage::default(),
            cumulative_usage: self.usage,
            dollars: self.dollars,
            model: spec.model.clone(),
            turns: 0,
            duration_ms: 0,
            evidence: Evidence::default(),
            shared: None,
            worktree: spec.worktree.as_ref().map(WorktreeEnd::left_by_death),
            unconfined: spec.worktree.as_ref().and_then(|worktree| {
                let isolator = &shared.delegation.builder.isolator;
                isolator.again(worktree).ok()?.sandbox.isolation_fault()
            }),
            outside: Vec::new(),
            has_reported: false,
            unread: 0,
            notification: shared.world.record_id(),
        };
        EndedRun { run: self.run, end }
    }
}

/// Writes the end of an agent that is not at work into its transcript.
pub(super) fn append_end(shared: &Shared, task: &Task, run: &str, end: &End) {
    let delegation = &shared.delegation;
    let stamp = Stamp {
        agent: Some(task.id.clone()),
        cwd: task.spec.cwd.display().to_string(),
        ..delegation.builder.stamp()
    };
    let written = TranscriptFile::open(&task.transcript).and_then(|file| {
        let world = Arc::clone(&shared.world);
        let journal = Journal::resume(
            file,
            &transcript::Loaded::default(),
            stamp,
            world,
            delegation.builder.files.recording.clone(),
        );
        journal.note(END, &json!({"run": run, "status": end.status(), "end": end}))
    });
    if let Err(error) = written {
        tracing::error!(%error, agent = %task.id, "the end of an agent at rest could not be recorded");
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
            notes::<BeginNote>(text.as_bytes(), END).map(|(_, note)| note.data.run).collect();
        assert_eq!(found, ["r1"]);
    }

    #[test]
    fn notifications_are_found_where_a_record_names_them_and_not_in_text() {
        let ids: Vec<RecordId> =
            (1..=6).map(|n| format!("00000000-0000-4000-8000-{n:012}").parse().unwrap()).collect();
        let forged = json!({"content": format!("\"queueItem\":\"{}\"", ids[5])});
        let text = [
            json!({"type": "user", "queueItem": ids[0]}).to_string(),
            json!({"type": "user", "toolUseResult": {"notification": ids[1]}, "message": forged})
                .to_string(),
            json!({"type": "user", "origin": {"covers": [ids[2], ids[3]], "kind": "x"}})
                .to_string(),
            json!({"covers": [], "notification": null, "queueItem": "no id", "uuid": ids[4]})
                .to_string(),
            // The end of a file that was torn.
            format!("{{\"queueItem\":\"{}", ids[4]),
        ];
        let mut found: Vec<RecordId> = delivered_in(text.join("\n").as_bytes()).collect();
        found.sort_by_key(|id| id.0);
        assert_eq!(found, ids[..4]);
    }

    #[test]
    fn what_an_agent_was_never_told_is_known_from_its_record() {
        // S-231
        let said = json!({"type": "user", "message": {"content": "find it"}}).to_string() + "\n";
        let spawned = begin(SPAWN, "r1", "find it");
        assert_eq!(unread_prompt(spawned.as_bytes()).as_deref(), Some("find it"));
        let told = spawned + &said;
        assert_eq!(unread_prompt(told.as_bytes()), None);
        let spawned = begin(SPAWN, "r1", "find it");
        let torn = spawned + &said[..said.len() / 2];
        assert_eq!(unread_prompt(torn.as_bytes()).as_deref(), Some("find it"));
    }
}
