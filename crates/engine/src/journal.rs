//! The one journal: what happened, append-only, one line and one write per record.
//!
//! Conversation records form a chain by `parentUuid`; facts about the run stand beside it. A torn last
//! line is left where it is and fenced off by a line end, so that the file only ever grows.

use std::borrow::Cow;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use centurion_protocol::transcript::{Body, Line, QueueOperationBody, SystemBody};
use centurion_protocol::{AgentId, RecordId, SessionId, World, bounded, end_json_line};
use serde::Serialize;
use serde_json::value::to_raw_value;
use thiserror::Error;

use centurion_redact::redact;

use crate::private_file::NO_LINK;

/// How much of a transcript is copied at once.
const COPY_PIECE: usize = 256 * 1024;

/// The largest transcript that is read back: what a model read is in it, and no window is that large.
pub const MOST_TRANSCRIPT: u64 = 512 * 1024 * 1024;

/// What went wrong with a transcript file.
#[derive(Debug, Error)]
pub enum JournalError {
    #[error("cannot write the transcript {path}: {source}")]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot open the transcript {path}: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("the session is open in another process: {path}")]
    Locked { path: PathBuf },
}

/// What every line of one transcript repeats.
#[derive(Clone, Debug)]
pub(crate) struct Stamp {
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
pub(crate) struct Journal {
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
    pub(crate) fn nowhere(stamp: Stamp, world: Arc<dyn World>) -> Self {
        Self::with_target(stamp, world, Redaction::On, Target::Nowhere, None)
    }

    /// A new transcript at `path`, created at the first record.
    pub(crate) fn new(
        path: PathBuf,
        stamp: Stamp,
        world: Arc<dyn World>,
        redaction: Redaction,
    ) -> Self {
        Self::with_target(stamp, world, redaction, Target::Planned(path), None)
    }

    /// Goes on with an existing transcript after the record `last`.
    pub(crate) fn resume(
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
    pub(crate) fn append(&self, body: Body<'_>) -> Result<RecordId, JournalError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let uuid = self.world.record_id();
        if self.write(&mut state, uuid, body)? {
            state.last = Some(uuid);
        }
        Ok(uuid)
    }

    /// Whether what is appended can be read again later.
    pub(crate) fn is_kept(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        !matches!(state.target, Target::Nowhere)
    }

    /// Appends a fact about the run.
    pub(crate) fn note(
        &self,
        subtype: &str,
        data: &impl Serialize,
    ) -> Result<RecordId, JournalError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let uuid = self.world.record_id();
        let data = to_raw_value(data).map_err(|error| state.target.write_error(error.into()))?;
        self.write(&mut state, uuid, Body::System(SystemBody { subtype, data: &data }))?;
        Ok(uuid)
    }

    /// Appends what waits for the agent, whatever the agent does meanwhile. The file of one that rests is
    /// closed again.
    pub(crate) fn enqueue(&self, body: QueueOperationBody<'_>) -> Result<(), JournalError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
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
    pub(crate) fn rest(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).target.rest();
    }

    /// Waits until everything appended so far is on the disk itself, beside whatever else goes on.
    pub(crate) async fn sync(&self) -> Result<(), JournalError> {
        let (file, path) = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
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

/// A transcript that is open for appending, with nobody else writing to it.
pub(crate) struct TranscriptFile {
    file: File,
    path: PathBuf,
    /// The last write did not get through: what it left must be fenced off before the next.
    is_torn: bool,
}

impl TranscriptFile {
    /// Opens a transcript, or makes an empty one, as its only writer.
    pub(crate) fn open(path: &Path) -> Result<Self, JournalError> {
        let open_error = |source| JournalError::Open { path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        let mut file = open_private(&mut options, path).map_err(open_error)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(JournalError::Locked { path: path.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(open_error(source)),
        }
        let is_torn = has_torn_tail(&mut file).map_err(open_error)?;
        Ok(Self { file, path: path.to_owned(), is_torn })
    }

    /// Begins a transcript with the lines of another, under the new session's id.
    pub(crate) fn copy(
        path: &Path,
        text: &[u8],
        from: SessionId,
        id: SessionId,
    ) -> Result<Self, JournalError> {
        let (old, new) = (session_field(from), session_field(id));
        let mut file = Self::open(path)?;
        file.is_torn = text.last().is_some_and(|last| *last != b'\n');
        // Piece by piece: a second copy of a long transcript in memory would cost more than the writing.
        let mut piece = Vec::with_capacity(COPY_PIECE + COPY_PIECE / 4);
        let mut rest = 0;
        for at in memchr::memmem::find_iter(text, &old).chain([text.len()]) {
            piece.extend_from_slice(&text[rest..at]);
            if at < text.len() {
                piece.extend_from_slice(&new);
            }
            rest = at + old.len();
            if piece.len() >= COPY_PIECE || at == text.len() {
                file.file.write_all(&piece).map_err(|source| file.write_error(source))?;
                piece.clear();
            }
        }
        Ok(file)
    }

    /// Everything written so far.
    pub(crate) fn read(&mut self) -> Result<Vec<u8>, JournalError> {
        let open_error = |source| JournalError::Open { path: self.path.clone(), source };
        self.file.rewind().map_err(open_error)?;
        bounded::read_all(&self.file, MOST_TRANSCRIPT).map_err(open_error)
    }

    /// Appends a whole line with one write.
    fn append(&mut self, line: &[u8]) -> Result<(), JournalError> {
        if self.is_torn {
            self.file.write_all(b"\n").map_err(|source| self.write_error(source))?;
        }
        self.is_torn = true;
        self.file.write_all(line).map_err(|source| self.write_error(source))?;
        self.is_torn = false;
        Ok(())
    }

    fn write_error(&self, source: io::Error) -> JournalError {
        JournalError::Write { path: self.path.clone(), source }
    }
}

fn session_field(id: SessionId) -> Vec<u8> {
    format!("\"sessionId\":\"{id}\"").into_bytes()
}

/// Creates a directory that only its owner can enter.
pub(crate) fn create_private_dir(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens or makes a file of ours that only its owner reads, with the directory that it is to be in. A link that
/// another program put there is refused.
pub(crate) fn open_private(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.mode(0o600).custom_flags(NO_LINK);
    match (options.open(path), path.parent()) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
            create_private_dir(parent)?;
            options.open(path)
        }
        (opened, _) => opened,
    }
}

fn has_torn_tail(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
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
    fn a_long_transcript_is_copied_whole_under_the_new_id() {
        let dir = tempfile::tempdir().unwrap();
        let (from, id) = (SeededWorld::new(5).session_id(), SeededWorld::new(6).session_id());
        let line = |session: SessionId| {
            format!("{{\"sessionId\":\"{session}\",\"x\":\"{}\"}}\n", "y".repeat(700))
        };
        for (count, tail) in [(0, ""), (1, ""), (2_000, ""), (2_000, "{\"torn")] {
            let path = dir.path().join(format!("{count}{}", tail.len()));
            let text = line(from).repeat(count) + tail;
            let mut file = TranscriptFile::copy(&path, text.as_bytes(), from, id).unwrap();
            assert!(
                file.read().unwrap() == (line(id).repeat(count) + tail).into_bytes(),
                "{count}{tail}"
            );
            assert_eq!(file.is_torn, !tail.is_empty());
        }
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
