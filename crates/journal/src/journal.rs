//! The one journal: what happened, append-only, one line and one write per record.
//!
//! Conversation records form a chain by `parentUuid`; facts about the run stand beside it. A torn last
//! line is left where it is and fenced off by a line end, so that the file only ever grows.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use centurion_protocol::transcript::{Body, Line, QueueOperationBody, SystemBody};
use centurion_protocol::{AgentId, RecordId, SessionId, World, end_json_line};
use centurion_redact::redact;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::transcript_file::{JournalError, TranscriptFile};

/// What every line of one transcript repeats.
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

/// The transcript of one agent.
pub struct Journal {
    stamp: Stamp,
    world: Arc<dyn World>,
    redaction: Redaction,
    state: Mutex<State>,
}

struct State {
    target: Target,
    /// The last record of the conversation: the parent of the next.
    last: Option<RecordId>,
    buffer: Vec<u8>,
}

enum Target {
    /// Nothing is kept.
    Nowhere,
    /// The file is made when there is something to write, so that a run that never starts leaves none.
    Planned(PathBuf),
    Open(TranscriptFile),
}

impl Journal {
    /// A journal that keeps nothing.
    pub fn nowhere(stamp: Stamp, world: Arc<dyn World>) -> Self {
        Self::with_target(stamp, world, Redaction::On, Target::Nowhere, None)
    }

    /// A new transcript at `path`, created at the first record.
    pub fn new(path: PathBuf, stamp: Stamp, world: Arc<dyn World>, redaction: Redaction) -> Self {
        Self::with_target(stamp, world, redaction, Target::Planned(path), None)
    }

    /// Goes on with an existing transcript after the record `last`.
    pub fn resume(
        file: TranscriptFile,
        last: Option<RecordId>,
        stamp: Stamp,
        world: Arc<dyn World>,
        redaction: Redaction,
    ) -> Self {
        Self::with_target(stamp, world, redaction, Target::Open(file), last)
    }

    fn with_target(
        stamp: Stamp,
        world: Arc<dyn World>,
        redaction: Redaction,
        target: Target,
        last: Option<RecordId>,
    ) -> Self {
        let state = Mutex::new(State { target, last, buffer: Vec::with_capacity(1024) });
        Self { stamp, world, redaction, state }
    }

    /// Appends a record of the conversation.
    pub fn append(&self, body: Body<'_>) -> Result<RecordId, JournalError> {
        let mut state = self.state.lock();
        let uuid = self.world.record_id();
        if self.write(&mut state, uuid, body)? {
            state.last = Some(uuid);
        }
        Ok(uuid)
    }

    /// The last record of the conversation.
    pub fn last(&self) -> Option<RecordId> {
        self.state.lock().last
    }

    /// Whether what is appended can be read again later.
    pub fn is_kept(&self) -> bool {
        let state = self.state.lock();
        !matches!(state.target, Target::Nowhere)
    }

    /// Appends a fact about the run.
    pub fn note(&self, subtype: &str, data: &impl Serialize) -> Result<RecordId, JournalError> {
        let mut state = self.state.lock();
        let uuid = self.world.record_id();
        let data = to_raw_value(data).map_err(|error| state.target.write_error(error.into()))?;
        self.write(&mut state, uuid, Body::System(SystemBody { subtype, data: &data }))?;
        Ok(uuid)
    }

    /// Appends what waits for the agent, whatever the agent does meanwhile. The file of one that rests is
    /// closed again.
    pub fn enqueue(&self, body: QueueOperationBody<'_>) -> Result<(), JournalError> {
        let mut state = self.state.lock();
        let was_resting = matches!(state.target, Target::Planned(_));
        let uuid = self.world.record_id();
        let written = self.write(&mut state, uuid, Body::QueueOperation(body));
        if was_resting {
            state.target.rest();
        }
        written.map(drop)
    }

    /// Writes a record; `false` when it is not kept.
    fn write(
        &self,
        state: &mut State,
        uuid: RecordId,
        body: Body<'_>,
    ) -> Result<bool, JournalError> {
        let State { target, buffer, last } = state;
        let Some(file) = target.file()? else { return Ok(false) };
        let line = Line {
            parent_uuid: *last,
            is_sidechain: self.stamp.agent.is_some(),
            agent_id: self.stamp.agent.as_ref(),
            body,
            uuid,
            timestamp: self.world.now().into(),
            user_type: "external",
            entrypoint: &self.stamp.entrypoint,
            cwd: &self.stamp.cwd,
            session_id: self.stamp.session,
            version: env!("CARGO_PKG_VERSION"),
            git_branch: &self.stamp.git_branch,
        };
        buffer.clear();
        serde_json::to_writer(&mut *buffer, &line)
            .map_err(|error| file.write_error(error.into()))?;
        end_json_line(buffer);
        let bytes = match self.redaction {
            Redaction::On => redact(buffer),
            Redaction::Off => Cow::Borrowed(buffer.as_slice()),
        };
        // Signed thinking that had to be changed would be refused when it goes back: leave it out.
        if matches!(bytes, Cow::Owned(_)) && line.body.is_thinking() {
            return Ok(false);
        }
        file.append(&bytes)?;
        Ok(true)
    }

    /// Closes the file until there is something more to write: agents that wait their turn are many, and
    /// files that may be open at once are few.
    pub fn rest(&self) {
        self.state.lock().target.rest();
    }

    /// Waits until everything appended so far is on the disk itself, beside whatever else goes on.
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

impl Target {
    fn write_error(&self, source: io::Error) -> JournalError {
        let path = match self {
            Self::Nowhere => PathBuf::new(),
            Self::Planned(path) => path.clone(),
            Self::Open(file) => file.path.clone(),
        };
        JournalError::Write { path, source }
    }

    /// Closes the file until there is something to write.
    fn rest(&mut self) {
        if let Self::Open(file) = self {
            *self = Self::Planned(std::mem::take(&mut file.path));
        }
    }

    /// The file to write to, made if it is not there yet; `None` where nothing is kept.
    fn file(&mut self) -> Result<Option<&mut TranscriptFile>, JournalError> {
        if let Self::Planned(path) = self {
            *self = Self::Open(TranscriptFile::open(path)?);
        }
        Ok(match self {
            Self::Open(file) => Some(file),
            Self::Nowhere | Self::Planned(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use centurion_protocol::transcript::{
        AssistantBody, AssistantMessage, UserBody, UserContent, UserMessage,
    };
    use centurion_protocol::{Block, SeededWorld, Usage};
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
        Body::User(UserBody {
            message: UserMessage { role: "user", content: UserContent::Text(text) },
            tool_use_result: None,
            source: None,
            is_meta: false,
            queue_item: None,
            origin: None,
        })
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
    fn a_block_with_raw_input_is_written_as_it_came() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let raw = r#"{"type":"tool_use","id":"t","name":"X","input":{"n":1e2}}"#;
        let block =
            Block::parse(&serde_json::from_str::<Box<serde_json::value::RawValue>>(raw).unwrap())
                .unwrap();
        let content = UserContent::Blocks(std::slice::from_ref(&block));
        journal(&path)
            .append(Body::User(UserBody {
                message: UserMessage { role: "user", content },
                tool_use_result: None,
                source: None,
                is_meta: true,
                queue_item: None,
                origin: None,
            }))
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
    fn thinking_that_holds_a_secret_is_left_out_and_the_chain_goes_on_without_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let journal = journal(&path);
        let first = journal.append(user("one")).unwrap();
        let thinking = "the key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz".to_owned();
        let block = Block::Thinking { thinking, signature: "c2ln".into() };
        let message = AssistantMessage {
            id: "m",
            kind: "message",
            role: "assistant",
            model: "m",
            content: [&block],
            stop_reason: None,
            stop_sequence: None,
            usage: Usage::default(),
        };
        journal.append(Body::Assistant(AssistantBody { message, request_id: None })).unwrap();
        journal.append(user("two")).unwrap();
        let lines = lines(&path);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1]["parentUuid"], first.to_string());
    }

    #[test]
    fn a_torn_tail_is_fenced_off_and_a_second_writer_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, "{\"type\":\"user\",\"mess").unwrap();
        let world = Arc::new(SeededWorld::new(3));
        let file = TranscriptFile::open(&path).unwrap();
        let journal = Journal::resume(file, None, stamp(), world, Redaction::On);
        journal.append(user("next")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(matches!(TranscriptFile::open(&path), Err(JournalError::Locked { .. })));
    }
}
