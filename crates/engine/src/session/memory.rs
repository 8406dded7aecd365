//! What the main agent remembers from session to session, unless an agent that it runs as has a memory of its own.
//!
//! While a session runs, the agent itself keeps its notes, with the tools that it has. When the session ends, the program
//! can do more, each only where the settings say so: write a note on the session, extract what will help later, and
//! consolidate many notes into few. Each is one request to a model that carries out no call and has a budget of its own.
//! What the model answers is data: names are checked, texts are redacted, and only the memory's directory is written to.

mod answer;
mod consolidate;
mod extract;
mod session_note;

use std::time::Duration;

use centurion_config::agent_memory::{AgentMemory, MemoryText, NoteError};
use centurion_config::settings::{MemorySettings, MemoryTask};
use centurion_model::SystemPrompt;
use centurion_protocol::sdk::MemoryPaths;
use centurion_tools::resolve;
use thiserror::Error;

use self::answer::Unreadable;
use crate::agent::fork_point::ForkPoint;
use crate::agent::shared::Shared;
use crate::definition::prompt::Section;
use crate::message::queue::Queue;
use crate::money::budget::Limit;
use crate::session::beside::beside;
use crate::turn::driver::Driver;
use crate::turn::internal_fork::{InternalFork, InternalForkError};

/// The tool that notes are written with.
const WRITE: &str = "Write";

/// How long a session that ends waits for what is made of it.
const GRACE: Duration = Duration::from_mins(2);

/// The memory of the main agent, and what is made of a session at its end.
pub(super) struct MainMemory {
    pub(super) notes: AgentMemory,
    work: MemorySettings,
}

/// Why something was not remembered.
#[derive(Debug, Error)]
enum MemoryTaskError {
    #[error(transparent)]
    Model(#[from] InternalForkError),
    #[error("the model's answer is not what was asked for: {0}")]
    Answer(#[from] Unreadable),
    #[error(transparent)]
    Notes(#[from] NoteError),
    #[error("the model `{0}` may not be used: {1}")]
    ModelRefused(String, String),
}

impl MainMemory {
    /// The memory of the main agent, which it may read and change without asking. Nothing is written yet.
    pub(super) fn locate(shared: &Shared, work: MemorySettings) -> Option<Self> {
        let notes = AgentMemory::of_main(shared.delegation.builder.files.memories.as_ref()?)?;
        if let Err(error) = notes.check() {
            shared.inform(None, "warning", error.to_string());
            return None;
        }
        let mut role = shared.permissions.role();
        role.memory = Some(resolve(notes.directory()));
        shared.permissions.confine(role);
        Some(Self { notes, work })
    }

    /// Tells the agent of its memory in its system prompt, if it can write to it.
    pub(super) fn introduce(&self, driver: &mut Driver) {
        if driver.dispatch.toolbox.names().any(|name| name == WRITE) {
            let section = Section::memory(&self.notes.render(&MemoryText::default())).text;
            let sections = driver.system.sections().map(str::to_owned).chain([section]);
            driver.system = SystemPrompt::new(sections.collect());
        }
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

    /// Where it is, for hosts.
    pub(super) fn paths(&self) -> MemoryPaths {
        MemoryPaths { auto: self.notes.directory().display().to_string() }
    }

    /// Makes of a session that ends what the settings want. A session that is to end at once is not held up.
    pub(super) async fn keep(&self, shared: &Shared) {
        if self.work.is_off() || shared.queue.is_abandoned() {
            return;
        }
        let Some(point) = shared.main_point().filter(|point| has_answer(point)) else { return };
        tokio::select! {
            biased;
            () = abandoned(&shared.queue) => {}
            () = self.carry_out(shared, &point) => {}
            () = tokio::time::sleep(GRACE) => {
                let text = "the session was not remembered: the model took too long";
                shared.inform(None, "warning", text.to_owned());
            }
        }
    }

    async fn carry_out(&self, shared: &Shared, point: &ForkPoint) {
        let tell = |what: &str, done: Result<(), MemoryTaskError>| {
            if let Err(error) = done {
                shared.inform(None, "warning", format!("{what} failed: {error}"));
            }
        };
        if let Some(task) = &self.work.session {
            let done = session_note::write(shared, point, &self.notes, task).await;
            tell("the note on the session", done);
        }
        if let Some(task) = &self.work.extraction {
            let done = extract::extract(shared, point, &self.notes, task).await;
            tell("remembering the session", done);
        }
        if let Some(task) = &self.work.consolidation {
            let done = consolidate::consolidate(shared, point, &self.notes, task).await;
            tell("consolidating the notes", done);
        }
    }
}

/// Whether the conversation holds something to remember, and no call that is open.
fn has_answer(point: &ForkPoint) -> bool {
    let last = point.prefix.conversation.last();
    last.is_some_and(|last| last.role() == centurion_protocol::Role::Assistant)
}

/// Waits until the session is to end at once.
async fn abandoned(queue: &Queue) {
    while queue.arrival(None).await.is_some() {
        // Input that comes this late is not taken.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A question behind the whole conversation, as a task of the memory puts it.
fn question(
    shared: &Shared,
    point: &ForkPoint,
    task: &MemoryTask,
    purpose: &'static str,
    text: String,
) -> Result<InternalFork, MemoryTaskError> {
    let fork = beside(shared, point, purpose, text);
    paid_by(shared, task, fork)
}

/// The same with the model and the budget of a task.
fn paid_by(
    shared: &Shared,
    task: &MemoryTask,
    fork: InternalFork,
) -> Result<InternalFork, MemoryTaskError> {
    let limit = Limit { dollars: Some(task.max_budget), tokens: None };
    let budget = shared.budget.child(limit);
    let Some(name) = &task.model else { return Ok(InternalFork { budget, ..fork }) };
    if let Some(reason) = (shared.delegation.builder.refuse_model)(name) {
        return Err(MemoryTaskError::ModelRefused(name.clone(), reason));
    }
    let model = shared.model.resolve(name);
    let cached_tokens = if model == fork.model { fork.cached_tokens } else { 0 };
    Ok(InternalFork { model, cached_tokens, budget, ..fork })
}

/// The day, for a note.
fn date(shared: &Shared) -> String {
    shared.world.now().to_string()[..10].to_owned()
}

/// A text without credentials, unless transcripts keep them too.
fn redacted(shared: &Shared, text: &str) -> String {
    match shared.delegation.builder.files.redaction {
        centurion_journal::Redaction::On => centurion_redact::redact_text(text).into_owned(),
        centurion_journal::Redaction::Off => text.to_owned(),
    }
}
