//! The one journal: what happened, append-only, one line and one write per record.
//!
//! Conversation records form a chain by `parentUuid`; facts about the run stand beside it. A torn last
//! line is left where it is and fenced off by a line end, so that the file only ever grows.

mod compaction;
mod target;

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use centurion_protocol::transcript::{
    AttachmentBody, Body, CustomTitle, FileBackups, FileHistory, FileSnapshot, Line,
    QueueOperationBody, SystemBody,
};
use centurion_protocol::{AgentId, RecordId, SessionId, Timestamp, World, bounded, end_json_line};
use centurion_redact::redact;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::to_raw_value;

pub use self::compaction::{Compacted, Compaction, KeptRound};
use self::target::Target;
use crate::MOST_TRANSCRIPT;
use crate::mirror::Mirror;
use crate::round::Round;
use crate::transcript::{Loaded, UsedSkill, load, used_skills};
use crate::transcript_file::{JournalError, TranscriptFile};

/// The fields that every line of one transcript repeats.
#[derive(Clone, Debug)]
pub struct Stamp {
    pub session: SessionId,
    /// `None` for the main agent.
    pub agent: Option<AgentId>,
    pub cwd: String,
    pub git_branch: String,
    pub entrypoint: String,
}

/// Whether and how records reach the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redaction {
    On,
    Off,
}

/// The way in which records reach the disk and a reader beside it.
#[derive(Clone)]
pub struct Recording {
    pub redaction: Redaction,
    pub mirror: Option<Arc<dyn Mirror>>,
}

impl From<Redaction> for Recording {
    fn from(redaction: Redaction) -> Self {
        Self { redaction, mirror: None }
    }
}

/// The transcript of one agent.
pub struct Journal {
    stamp: Stamp,
    world: Arc<dyn World>,
    recording: Recording,
    state: Mutex<JournalState>,
}

struct JournalState {
    /// The session that records belong to.
    session: SessionId,
    target: Target,
    /// The last record of the conversation: the parent of the next.
    last: Option<RecordId>,
    round: Round,
    buffer: Vec<u8>,
}

/// The fate of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteResult {
    Kept,
    /// Thinking that cannot be redacted.
    LeftOut,
    /// Nothing is kept here.
    Nowhere,
}

impl Journal {
    /// A journal that keeps nothing.
    pub fn nowhere(stamp: Stamp, world: Arc<dyn World>) -> Self {
        Self::with_target(stamp, world, Redaction::On.into(), Target::Nowhere)
    }

    /// A new transcript at `path`, created at the first record.
    pub fn new(
        path: PathBuf,
        stamp: Stamp,
        world: Arc<dyn World>,
        recording: impl Into<Recording>,
    ) -> Self {
        Self::with_target(stamp, world, recording.into(), Target::Planned(path))
    }

    /// Continues an existing transcript after what was read from it.
    pub fn resume(
        file: TranscriptFile,
        loaded: &Loaded,
        stamp: Stamp,
        world: Arc<dyn World>,
        recording: impl Into<Recording>,
    ) -> Self {
        let mut journal = Self::with_target(stamp, world, recording.into(), Target::Open(file));
        let state = journal.state.get_mut();
        state.last = loaded.last;
        state.round = loaded.round.clone();
        journal
    }

    fn with_target(
        stamp: Stamp,
        world: Arc<dyn World>,
        recording: Recording,
        target: Target,
    ) -> Self {
        let (last, buffer, session) = (None, Vec::new(), stamp.session);
        let round = Round::default();
        let state = Mutex::new(JournalState { session, target, last, round, buffer });
        Self { stamp, world, recording, state }
    }

    /// Appends a record of the conversation.
    pub fn append(&self, body: Body<'_>) -> Result<RecordId, JournalError> {
        self.append_to(&mut self.state.lock(), self.world.record_id(), body)
    }

    /// Appends a record of the conversation under the id that its sender chose, or under a new id if the transcript
    /// has a record of that id already.
    pub fn append_as(&self, wanted: RecordId, body: Body<'_>) -> Result<RecordId, JournalError> {
        let mut state = self.state.lock();
        let is_taken = match state.target.file()? {
            Some(file) => file.has_record(wanted)?,
            None => false,
        };
        let uuid = if is_taken { self.world.record_id() } else { wanted };
        self.append_to(&mut state, uuid, body)
    }

    /// Appends a record under an id that this session has made before.
    pub fn append_under(&self, uuid: RecordId, body: Body<'_>) -> Result<RecordId, JournalError> {
        self.append_to(&mut self.state.lock(), uuid, body)
    }

    fn append_to(
        &self,
        state: &mut JournalState,
        uuid: RecordId,
        body: Body<'_>,
    ) -> Result<RecordId, JournalError> {
        let line = self.line(state.session, state.last, uuid, body);
        let written = self.write(state, std::slice::from_ref(&line))?;
        if written == WriteResult::Kept {
            state.last = Some(uuid);
        }
        if written != WriteResult::LeftOut {
            state.round.add(uuid, line.body.answer());
        }
        Ok(uuid)
    }

    /// The last record of the conversation.
    pub fn last(&self) -> Option<RecordId> {
        self.state.lock().last
    }

    /// Another process has written the conversation up to this record: what this one adds comes behind it.
    pub fn follow(&self, last: Option<RecordId>) {
        let mut state = self.state.lock();
        state.last = last.or(state.last);
    }

    /// Whether a record is one of the last answer, or came behind it.
    pub fn is_in_round(&self, record: RecordId) -> bool {
        self.state.lock().round.records().contains(&record)
    }

    /// A journal of the same agent for another session, in a file that is made with its first record.
    pub fn of_session(&self, session: SessionId, path: PathBuf) -> Self {
        let target = match self.state.lock().target {
            Target::Nowhere => Target::Nowhere,
            Target::Planned(_) | Target::Resting { .. } | Target::Open(_) => Target::Planned(path),
        };
        let stamp = Stamp { session, ..self.stamp.clone() };
        Self::with_target(stamp, Arc::clone(&self.world), self.recording.clone(), target)
    }

    /// Continues as another journal of the same agent. The file so far is complete and free for other processes.
    pub fn continue_as(&self, other: Self) {
        *self.state.lock() = other.state.into_inner();
    }

    /// Removes the file that this journal made, as far as it was written.
    pub fn discard(self) -> io::Result<()> {
        match &self.state.into_inner().target {
            Target::Open(file) => std::fs::remove_file(&file.path),
            Target::Nowhere | Target::Planned(_) | Target::Resting { .. } => Ok(()),
        }
    }

    /// Whether anything was answered since the conversation began, here and not in one that it continues from.
    pub fn has_round(&self) -> bool {
        !self.state.lock().round.records().is_empty()
    }

    /// Whether what is appended can be read again later.
    pub fn is_kept(&self) -> bool {
        let state = self.state.lock();
        !matches!(state.target, Target::Nowhere)
    }

    /// The skills that the agent of this journal was told, from the record.
    pub fn used_skills(&self) -> Vec<UsedSkill> {
        let mut state = self.state.lock();
        let text = match &mut state.target {
            Target::Nowhere => return Vec::new(),
            Target::Planned(path) | Target::Resting { path, .. } => {
                bounded::read_file(path, MOST_TRANSCRIPT).ok()
            }
            Target::Open(file) => file.read().ok(),
        };
        text.map(|text| used_skills(&text)).unwrap_or_default()
    }

    /// Appends a fact about the run.
    pub fn note(&self, subtype: &str, data: &impl Serialize) -> Result<RecordId, JournalError> {
        let data = to_raw_value(data);
        let data = data.map_err(|error| self.state.lock().target.write_error(error.into()))?;
        self.append_beside(Body::System(SystemBody { subtype, data: &data }))
    }

    /// Appends the name of the session.
    pub fn note_title(&self, title: &str) -> Result<(), JournalError> {
        self.append_beside(Body::CustomTitle(CustomTitle { title })).map(drop)
    }

    /// Whether something was written.
    pub fn has_begun(&self) -> bool {
        matches!(self.state.lock().target, Target::Open(_) | Target::Resting { .. })
    }

    /// Appends that files are about to be changed while a prompt is being worked on.
    pub fn note_files(
        &self,
        message_id: RecordId,
        files: &FileBackups,
        timestamp: Timestamp,
    ) -> Result<(), JournalError> {
        let snapshot = FileSnapshot { message_id, tracked_file_backups: files, timestamp };
        let body = FileHistory { message_id, snapshot, is_snapshot_update: true };
        self.append_beside(Body::FileHistory(body)).map(drop)
    }

    /// Appends a record that is no part of the conversation, whatever the agent does meanwhile. The file of an agent
    /// that rests is closed again.
    fn append_beside(&self, body: Body<'_>) -> Result<RecordId, JournalError> {
        let mut state = self.state.lock();
        let was_resting = matches!(state.target, Target::Resting { .. });
        let uuid = self.world.record_id();
        let line = self.line(state.session, state.last, uuid, body);
        let written = self.write(&mut state, &[line]);
        if was_resting {
            state.target.rest();
        }
        written.map(|_| uuid)
    }

    /// Goes back: what follows comes behind an earlier record, or begins a new conversation. What was said since stays
    /// in the file, on a branch of its own.
    pub fn branch_from(&self, record: Option<RecordId>) -> Result<RecordId, JournalError> {
        self.branch(&mut self.state.lock(), record)
    }

    /// Goes back in the same way, and reads what the conversation is then.
    pub fn go_back(&self, record: Option<RecordId>) -> Result<Loaded, JournalError> {
        let mut state = self.state.lock();
        let state = &mut *state;
        self.branch(state, record)?;
        let Some(file) = state.target.file()? else { return Ok(Loaded::default()) };
        let loaded = load(&file.read()?);
        state.round = loaded.round.clone();
        Ok(loaded)
    }

    fn branch(
        &self,
        state: &mut JournalState,
        record: Option<RecordId>,
    ) -> Result<RecordId, JournalError> {
        if state.last != record {
            // The newest round is on the branch that is left.
            state.round = Round::default();
        }
        state.last = record;
        let id = self.world.record_id();
        self.append_to(state, id, Body::Attachment(AttachmentBody::branch()))
    }

    /// Appends what waits for the agent.
    pub fn enqueue(&self, body: QueueOperationBody<'_>) -> Result<(), JournalError> {
        self.append_beside(Body::QueueOperation(body)).map(drop)
    }

    fn line<'a>(
        &'a self,
        session_id: SessionId,
        parent_uuid: Option<RecordId>,
        uuid: RecordId,
        body: Body<'a>,
    ) -> Line<'a> {
        Line {
            parent_uuid,
            is_sidechain: self.stamp.agent.is_some(),
            agent_id: self.stamp.agent.as_ref(),
            body,
            uuid,
            timestamp: self.world.now().into(),
            user_type: "external",
            entrypoint: &self.stamp.entrypoint,
            cwd: &self.stamp.cwd,
            session_id,
            version: env!("CARGO_PKG_VERSION"),
            git_branch: &self.stamp.git_branch,
        }
    }

    /// Writes records with one write.
    fn write(
        &self,
        state: &mut JournalState,
        lines: &[Line<'_>],
    ) -> Result<WriteResult, JournalError> {
        let JournalState { target, buffer, .. } = state;
        let Some(file) = target.file()? else { return Ok(WriteResult::Nowhere) };
        buffer.clear();
        for line in lines {
            serde_json::to_writer(&mut *buffer, line)
                .map_err(|error| file.write_error(error.into()))?;
            end_json_line(buffer);
        }
        let bytes = match self.recording.redaction {
            Redaction::On => redact(buffer),
            Redaction::Off => Cow::Borrowed(buffer.as_slice()),
        };
        // Signed thinking that had to be changed would be refused when it goes back: leave it out.
        let is_thinking = lines.iter().any(|line| line.body.is_thinking());
        if is_thinking && matches!(bytes, Cow::Owned(_)) {
            return Ok(WriteResult::LeftOut);
        }
        file.append(&bytes)?;
        if let Some(mirror) = &self.recording.mirror {
            mirror.mirror(&file.path, &bytes);
        }
        Ok(WriteResult::Kept)
    }

    /// Opens the file again after a rest, and keeps it from other processes. Returns the lines that others wrote
    /// meanwhile; none of them is of the conversation.
    pub fn wake(&self) -> Result<Vec<u8>, JournalError> {
        let mut state = self.state.lock();
        state.target.wake()
    }

    /// Opens the file of an agent that works in another process, which writes to it, too.
    pub fn wake_shared(&self) -> Result<(), JournalError> {
        let mut state = self.state.lock();
        state.target.wake()?;
        if let Target::Open(file) = &mut state.target {
            file.is_shared = true;
        }
        Ok(())
    }

    /// Closes the file until there is something more to write: agents that wait their turn are many, and
    /// files that may be open at once are few. Another process may continue with the conversation meanwhile.
    pub fn rest(&self) {
        let mut state = self.state.lock();
        state.target.rest();
        state.buffer = Vec::new();
    }

    /// Waits until everything appended so far is on the disk itself, beside whatever else happens.
    pub async fn sync(&self) -> Result<(), JournalError> {
        let (file, path) = {
            let state = self.state.lock();
            let Target::Open(file) = &state.target else { return Ok(()) };
            let copy = file.file.try_clone().map_err(|source| file.write_error(source))?;
            (copy, file.path.clone())
        };
        let synced = if self.world.has_threads() {
            let synced = tokio::task::spawn_blocking(move || file.sync_data()).await;
            synced.unwrap_or_else(|error| Err(io::Error::other(error)))
        } else {
            file.sync_data()
        };
        synced.map_err(|source| JournalError::Write { path, source })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;

    use super::*;
    use centurion_protocol::transcript::BoundaryData;
    use centurion_protocol::transcript::{AssistantBody, RecordedAnswer, UserBody, UserContent};
    use centurion_protocol::{Block, ReportedUsage, SeededWorld, Usage};
    use serde_json::Value;
    use std::os::unix::fs::PermissionsExt;

    fn stamp() -> Stamp {
        Stamp {
            session: SeededWorld::new(1).session_id(),
            agent: None,
            cwd: "/p".into(),
            git_branch: "main".into(),
            entrypoint: "cli".into(),
        }
    }

    fn user(text: &str) -> Body<'_> {
        Body::User(UserBody::new(UserContent::Text(text)))
    }

    fn journal(path: &Path) -> Journal {
        Journal::new(path.to_owned(), stamp(), Arc::new(SeededWorld::new(2)), Redaction::On)
    }

    fn lines(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn records_are_chained_private_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er/s.jsonl");
        let journal = journal(&path);
        assert!(!path.exists(), "nothing is made before there is something to write");
        let first = journal.append(user("one")).unwrap();
        journal.note("api_retry", &serde_json::json!({"attempt": 1})).unwrap();
        journal.append(user("two")).unwrap();
        let lines = lines(&path);
        assert_eq!(lines[0]["parentUuid"], Value::Null);
        assert_eq!(lines[0]["message"]["content"], "one");
        assert_eq!(lines[2]["parentUuid"], first.to_string());
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_record_has_the_id_that_was_wanted_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let journal = journal(&path);
        let wanted = SeededWorld::new(77).record_id();
        // An id inside of what is said, and one at the border of two pieces of the file, are found rightly.
        journal.append(user(&format!("{{\"uuid\":\"{wanted}\"}}"))).unwrap();
        assert_eq!(journal.append_as(wanted, user("one")).unwrap(), wanted);
        for length in (64 * 1024 - 420..64 * 1024).step_by(37) {
            let again = journal.append_as(wanted, user(&"x".repeat(length))).unwrap();
            assert_ne!(again, wanted);
            assert_ne!(journal.append_as(again, user("two")).unwrap(), again, "{length}");
        }
        let lines = lines(&path);
        let with_it = lines.iter().filter(|line| line["uuid"] == wanted.to_string());
        assert_eq!(with_it.count(), 1);
    }

    #[test]
    fn a_block_with_raw_input_is_written_as_it_came() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let raw = r#"{"type":"tool_use","id":"t","name":"X","input":{"n":1e2}}"#;
        let block =
            Block::parse(&serde_json::from_str::<Box<serde_json::value::RawValue>>(raw).unwrap())
                .unwrap();
        let content = UserContent::Blocks(std::slice::from_ref(&block));
        journal(&path)
            .append(Body::User(UserBody { is_meta: true, ..UserBody::new(content) }))
            .unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().contains(raw));
    }

    #[test]
    fn secrets_do_not_reach_the_disk_unless_redaction_is_off() {
        let dir = tempfile::tempdir().unwrap();
        let secret = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz";
        let (on, off) = (dir.path().join("on"), dir.path().join("off"));
        journal(&on).append(user(secret)).unwrap();
        assert!(!std::fs::read_to_string(&on).unwrap().contains("abcdefgh"));
        let plain =
            Journal::new(off.clone(), stamp(), Arc::new(SeededWorld::new(2)), Redaction::Off);
        plain.append(user(secret)).unwrap();
        assert!(std::fs::read_to_string(&off).unwrap().contains(secret));
    }

    #[test]
    fn thinking_that_holds_a_secret_is_left_out_and_the_chain_continues_without_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let journal = journal(&path);
        let first = journal.append(user("one")).unwrap();
        let thinking = "the key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz".to_owned();
        let block = Block::Thinking { thinking, signature: "c2ln".into() };
        let message = RecordedAnswer {
            id: "m",
            kind: "message",
            role: "assistant",
            model: "m",
            content: [&block],
            stop_reason: None,
            stop_sequence: None,
            usage: &ReportedUsage::default(),
        };
        journal.append(Body::Assistant(AssistantBody { message, request_id: None })).unwrap();
        journal.append(user("two")).unwrap();
        let lines = lines(&path);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1]["parentUuid"], first.to_string());
    }

    fn answer<'a>(id: &'a str, block: &'a Block, usage: &'a ReportedUsage) -> Body<'a> {
        let message = RecordedAnswer {
            id,
            kind: "message",
            role: "assistant",
            model: "m",
            content: [block],
            stop_reason: None,
            stop_sequence: None,
            usage,
        };
        Body::Assistant(AssistantBody { message, request_id: None })
    }

    fn compaction<'a>(kept: &[RecordId], round: KeptRound<'a>) -> Compaction<'a> {
        let data = BoundaryData {
            trigger: "auto".into(),
            by_rule: false,
            pre_tokens: 90_000,
            post_tokens: 10,
            cumulative_dropped_tokens: 89_990,
            duration_ms: 1,
            preserved_segment: None,
            preserved_messages: None,
            last_uuid: None,
            todos: None,
            plan: None,
        };
        let lines = vec![user("summary"), user("state")];
        Compaction { data, lines, kept: kept.to_vec(), round }
    }

    fn texts(loaded: &Loaded) -> Vec<String> {
        let text = |message: &centurion_protocol::Message| {
            let texts = message.blocks().into_iter().filter_map(|block| match block {
                Block::Text(text) => Some(text),
                _ => None,
            });
            texts.collect::<Vec<_>>().join("+")
        };
        loaded.conversation.iter().map(text).collect()
    }

    #[test]
    fn behind_a_boundary_stand_the_summary_what_is_kept_and_the_newest_round() {
        let usage = ReportedUsage::from(Usage { input_tokens: 90_000, ..Usage::default() });
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let (first, second) = (Block::text("first"), Block::text("second"));
        {
            let journal = journal(&path);
            let prompt = journal.append(user("prompt")).unwrap();
            journal.append(answer("a", &first, &usage)).unwrap();
            journal.append(user("between")).unwrap();
            journal.append(answer("b", &second, &usage)).unwrap();
            journal.append(user("newest")).unwrap();
            let compacted = journal.compact(compaction(&[prompt], KeptRound::Whole)).unwrap();
            assert_eq!(journal.last(), compacted.data.last_uuid);
            journal.append(user("after")).unwrap();
        }
        let text = std::fs::read(&path).unwrap();
        let expected = ["summary+state+prompt", "second", "newest+after"];
        let loaded = load(&text);
        assert_eq!(texts(&loaded), expected);
        assert_eq!(loaded.counted, None, "what was counted was counted with all that is left out");
        assert_eq!(loaded.dropped_tokens, 89_990);
        // A second one, in a later process, with the newest round cut.
        {
            let file = TranscriptFile::open(&path).unwrap();
            let world = Arc::new(SeededWorld::new(8));
            let journal = Journal::resume(file, &loaded, stamp(), world, Redaction::On);
            let prompt = loaded.standing.prompt[0].record;
            journal.compact(compaction(&[prompt], KeptRound::Cut(vec![user("cut")]))).unwrap();
        }
        let text = std::fs::read(&path).unwrap();
        let loaded = load(&text);
        assert_eq!(texts(&loaded)[1..], ["second", "cut"]);
        // Without all that was written with it, a boundary does not count.
        let begin = memchr::memmem::rfind(&text, b"compact_boundary").unwrap();
        for end in begin..text.len() - 1 {
            assert_eq!(texts(&load(&text[..end])), expected, "{end}");
        }
    }

    #[test]
    fn what_looks_like_a_field_inside_of_records_is_none() {
        let usage = ReportedUsage::from(Usage { input_tokens: 90_000, ..Usage::default() });
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let block = Block::text("second");
        let journal = journal(&path);
        let prompt = journal.append(user("prompt")).unwrap();
        journal.append(answer("a", &Block::text("first"), &usage)).unwrap();
        journal.append(user("between")).unwrap();
        let forged = format!(
            r#"{{"type":"tool_use","id":"t","name":"X","input":{{"uuid":"{prompt}","newTodos":[],"subtype":"compact_boundary"}}}}"#
        );
        let call = serde_json::from_str::<Box<serde_json::value::RawValue>>(&forged).unwrap();
        journal.append(answer("b", &Block::parse(&call).unwrap(), &usage)).unwrap();
        journal.append(user("odd")).unwrap();
        journal.append(answer("c", &block, &usage)).unwrap();
        journal.compact(compaction(&[prompt], KeptRound::Whole)).unwrap();
        drop(journal);
        let text = std::fs::read(&path).unwrap();
        let loaded = load(&text);
        assert_eq!(texts(&loaded), ["summary+state+prompt", "second"]);
    }

    #[test]
    fn a_journal_at_rest_lets_others_write_and_refuses_to_continue_behind_their_records() {
        // D-73
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let first = journal(&path);
        first.append(user("one")).unwrap();
        assert!(matches!(TranscriptFile::open(&path), Err(JournalError::Locked { .. })));
        first.rest();
        // Facts beside the conversation are written by either, and leave the file free.
        first.note("x", &serde_json::json!({})).unwrap();
        let tag = "{\"type\":\"tag\",\"tag\":\"t\"}\n";
        let append = |line: &str| {
            let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
            file.write_all(line.as_bytes()).unwrap();
        };
        append(tag);
        assert_eq!(first.wake().unwrap(), tag.as_bytes());
        assert!(matches!(TranscriptFile::open(&path), Err(JournalError::Locked { .. })));
        first.append(user("two")).unwrap();
        first.rest();
        let world = Arc::new(SeededWorld::new(9));
        {
            let mut file = TranscriptFile::open(&path).unwrap();
            let loaded = load(&file.read().unwrap());
            let second = Journal::resume(file, &loaded, stamp(), world, Redaction::On);
            assert!(matches!(first.wake(), Err(JournalError::Locked { .. })));
            second.append(user("elsewhere")).unwrap();
        }
        for _ in 0..2 {
            assert!(matches!(first.wake(), Err(JournalError::ContinuedElsewhere { .. })));
            assert!(matches!(
                first.append(user("three")),
                Err(JournalError::ContinuedElsewhere { .. })
            ));
        }
        assert!(!std::fs::read_to_string(&path).unwrap().contains("three"));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(first.append(user("four")), Err(JournalError::Open { .. })));
        assert!(!path.exists());
    }

    #[test]
    fn a_journal_that_begins_anew_writes_to_another_file_and_frees_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one.jsonl"), dir.path().join("two.jsonl"));
        let journal = journal(&one);
        journal.append(user("one")).unwrap();
        assert!(matches!(TranscriptFile::open(&one), Err(JournalError::Locked { .. })));
        let session = SeededWorld::new(5).session_id();
        journal.continue_as(journal.of_session(session, two.clone()));
        assert!(TranscriptFile::open(&one).is_ok() && !two.exists());
        assert_eq!(journal.last(), None);
        assert!(!journal.has_begun() && journal.is_kept());
        journal.append(user("two")).unwrap();
        let (before, after) = (lines(&one), lines(&two));
        assert_eq!((before.len(), after.len()), (1, 1));
        assert_eq!(after[0]["parentUuid"], Value::Null);
        assert_eq!(after[0]["sessionId"], session.to_string());
        assert_eq!(before[0]["sessionId"], stamp().session.to_string());
        let nowhere = Journal::nowhere(stamp(), Arc::new(SeededWorld::new(3)));
        nowhere.continue_as(nowhere.of_session(session, two.clone()));
        nowhere.append(user("three")).unwrap();
        assert_eq!(lines(&two).len(), 1);
    }

    #[test]
    fn what_another_journal_has_written_goes_with_it_and_nothing_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one.jsonl"), dir.path().join("two.jsonl"));
        let world = Arc::new(SeededWorld::new(3));
        let journal = Journal::new(one.clone(), stamp(), world, Redaction::On);
        journal.append(user("one")).unwrap();
        let session = SeededWorld::new(5).session_id();
        let other = journal.of_session(session, two.clone());
        other.append(user("two")).unwrap();
        assert!(two.exists());
        other.discard().unwrap();
        assert!(!two.exists());
        journal.of_session(session, two).discard().unwrap();
        journal.append(user("three")).unwrap();
        assert_eq!(lines(&one).len(), 2);
    }

    #[test]
    fn a_torn_tail_is_fenced_off_and_a_second_writer_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, "{\"type\":\"user\",\"mess").unwrap();
        let world = Arc::new(SeededWorld::new(3));
        let file = TranscriptFile::open(&path).unwrap();
        let journal = Journal::resume(file, &Loaded::default(), stamp(), world, Redaction::On);
        journal.append(user("next")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(matches!(TranscriptFile::open(&path), Err(JournalError::Locked { .. })));
    }
}
