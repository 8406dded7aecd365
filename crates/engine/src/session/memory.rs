//! The memory of the main agent across sessions, unless the agent that it runs as has a memory of its own.
//!
//! While a session runs, the agent itself keeps its notes, with the tools that it has. When the session ends, the program
//! can do more, each only where the settings say so: write a note on the session, extract what will help later, and
//! consolidate many notes into few. That comes after the results have been read, by [`Remembering`]. Each is one request to a model that carries out no call and has a budget of its own.
//! What the model answers is data: names are checked, texts are redacted, and only the memory's directory is written to.

mod answer;
mod consolidate;
mod extract;
mod session_note;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use centurion_config::agent_memory::{AgentMemory, MemoryText, NoteError};
use centurion_config::settings::{MemorySettings, MemoryTask};
use centurion_protocol::sdk::MemoryPaths;
use centurion_protocol::{Role, SessionId};
use thiserror::Error;

use self::answer::AnswerError;
use crate::agent::fork_point::ForkPoint;
use crate::agent::shared::Shared;
use crate::definition::model_check::ModelRefusal;
use crate::definition::prompt::Section;
use crate::money::budget::Limit;
use crate::turn::internal_fork::{InternalFork, InternalForkError};

/// The longest wait of an ending session for its memory tasks.
const GRACE: Duration = Duration::from_mins(2);

/// The most conversations that are kept until the process ends. Of more that were left, the last ones count.
const MOST_CONVERSATIONS: usize = 8;

/// The memory of the main agent, and what is made of its sessions when the process ends.
pub(super) struct MainMemory {
    pub(super) notes: Arc<AgentMemory>,
    work: MemorySettings,
    /// The conversations that `/clear` has left.
    left: VecDeque<EndedConversation>,
}

/// A conversation in which something was said, with the session that it belongs to.
struct EndedConversation {
    session: SessionId,
    point: Arc<ForkPoint>,
}

/// The memory tasks of a session that has ended. Dropping this value, or the future that carries it out, ends it at once.
pub struct Remembering {
    shared: Arc<Shared>,
    notes: Arc<AgentMemory>,
    work: MemorySettings,
    /// Never empty. The last one comes last.
    conversations: VecDeque<EndedConversation>,
}

/// The reason why something was not remembered.
#[derive(Debug, Error)]
enum MemoryTaskError {
    #[error(transparent)]
    Model(#[from] InternalForkError),
    #[error("the model's answer is not what was asked for: {0}")]
    Answer(#[from] AnswerError),
    #[error(transparent)]
    Notes(#[from] NoteError),
    #[error("the model `{model}` may not be used: {source}")]
    ModelRefused { model: String, source: ModelRefusal },
}

impl MainMemory {
    /// The memory of the main agent, which it may read and change without asking. Nothing is written yet.
    pub(super) fn locate(shared: &Shared, work: MemorySettings) -> Option<Self> {
        let places = shared.delegation.builder.files.memories.as_ref()?;
        let notes = match AgentMemory::of_main(places) {
            Ok(notes) => notes?,
            Err(error) => {
                shared.inform(None, "warning", error.to_string());
                return None;
            }
        };
        let mut role = shared.permissions.role();
        role.memory = Some(notes.directory().to_owned());
        shared.permissions.confine(role);
        Some(Self { notes: Arc::new(notes), work, left: VecDeque::new() })
    }

    /// The section of the system prompt about the memory.
    pub(super) fn section(&self) -> String {
        Section::memory(&self.notes.render(&MemoryText::default())).text
    }

    /// Makes the directory when the first run begins. The first time, what another program of the user keeps is copied
    /// in.
    pub(super) fn prepare(&self, shared: &Shared) {
        match self.notes.prepare() {
            Ok(problems) => {
                for problem in problems {
                    shared.inform(None, "warning", problem.to_string());
                }
            }
            Err(error) => shared.inform(None, "warning", error.to_string()),
        }
    }

    /// Its path, for hosts.
    pub(super) fn paths(&self) -> MemoryPaths {
        MemoryPaths { auto: self.notes.directory().display().to_string() }
    }

    /// Keeps the present conversation of the session until the process ends, if there is anything to remember in it.
    pub(super) fn keep_conversation(&mut self, shared: &Shared) {
        if self.work.is_off() {
            return;
        }
        let Some(point) = shared.main_point().filter(|point| has_answer(point)) else { return };
        let session = shared.id();
        self.left.retain(|conversation| conversation.session != session);
        if self.left.len() == MOST_CONVERSATIONS {
            self.left.pop_front();
        }
        self.left.push_back(EndedConversation { session, point });
    }

    /// The memory tasks of the settings, if there is anything to remember.
    pub(super) fn remembering(mut self, shared: &Arc<Shared>) -> Option<Remembering> {
        self.keep_conversation(shared);
        let Self { notes, work, left: conversations } = self;
        let shared = Arc::clone(shared);
        (!conversations.is_empty()).then_some(Remembering { shared, notes, work, conversations })
    }
}

impl Remembering {
    /// Does what the settings want. Returns what did not come of it, for people.
    pub async fn carry_out(self) -> Vec<String> {
        let mut doing = "";
        let mut failures = Vec::new();
        let in_time = tokio::time::timeout(GRACE, self.work(&mut doing, &mut failures)).await;
        if in_time.is_err() {
            failures.push(format!("{doing} failed: the model took too long"));
        }
        failures
    }

    async fn work(&self, doing: &mut &str, failures: &mut Vec<String>) {
        let Self { shared, notes, work, conversations } = self;
        let mut tell = |what: &str, point: &ForkPoint, done: Result<(), MemoryTaskError>| {
            failures.extend(done.err().map(|error| format!("{what} failed: {error}")));
            // Other processes may have the transcript.
            if let Some(journal) = &point.journal {
                journal.rest();
            }
        };
        for conversation in conversations {
            let point = &conversation.point;
            if let Some(task) = &work.session {
                *doing = "the note on the session";
                tell(doing, point, session_note::write(shared, conversation, notes, task).await);
            }
            if let Some(task) = &work.extraction {
                *doing = "remembering the session";
                tell(doing, point, extract::extract(shared, point, notes, task).await);
            }
        }
        if let (Some(task), Some(last)) = (&work.consolidation, conversations.back()) {
            *doing = "consolidating the notes";
            let point = &last.point;
            tell(doing, point, consolidate::consolidate(shared, point, notes, task).await);
        }
    }
}

/// Tells whether the conversation holds something to remember.
fn has_answer(point: &ForkPoint) -> bool {
    point.prefix.conversation.iter().any(|message| message.role() == Role::Assistant)
}

/// A question behind the whole conversation, as a task of the memory puts it.
fn question(
    shared: &Shared,
    point: &ForkPoint,
    task: &MemoryTask,
    purpose: &'static str,
    text: String,
) -> Result<InternalFork, MemoryTaskError> {
    let fork = InternalFork::after_conversation(shared, point, purpose, text);
    let is_fresh = point.cached.is_some_and(|cached| cached.is_fresh());
    let cached_tokens = if is_fresh { fork.cached_tokens } else { 0 };
    paid_by(shared, task, InternalFork { cached_tokens, ..fork })
}

/// The same with the model and the budget of a task.
fn paid_by(
    shared: &Shared,
    task: &MemoryTask,
    fork: InternalFork,
) -> Result<InternalFork, MemoryTaskError> {
    let limit = Limit { dollars: Some(task.max_budget), tokens: None };
    let (budget, ceiling) = (shared.budget.child(limit), Some(task.max_budget));
    let Some(name) = &task.model else { return Ok(InternalFork { budget, ceiling, ..fork }) };
    (shared.delegation.builder.check_model)(name)
        .map_err(|source| MemoryTaskError::ModelRefused { model: name.clone(), source })?;
    let model = shared.model.resolve(name);
    let cached_tokens = if model == fork.model { fork.cached_tokens } else { 0 };
    Ok(InternalFork { model, cached_tokens, budget, ceiling, ..fork })
}

/// The day, for a note.
fn date(shared: &Shared) -> String {
    shared.world.now().strftime("%Y-%m-%d").to_string()
}

/// A text without credentials, unless transcripts keep them too.
fn redacted(shared: &Shared, text: &str) -> String {
    match shared.delegation.builder.files.recording.redaction {
        centurion_journal::Redaction::On => centurion_redact::redact_text(text).into_owned(),
        centurion_journal::Redaction::Off => text.to_owned(),
    }
}
