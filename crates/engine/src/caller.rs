//! One agent, as the tools see it by which it starts and reaches others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use centurion_protocol::sdk::PermissionDenial;
use centurion_protocol::{Effort, RecordId, Thinking};

use crate::budget::Budget;
use crate::delegation::SessionMode;
use crate::driver::RequestSettings;
use crate::identity::Identity;
use crate::permissions::Permissions;
use crate::places::Seat;
use crate::pulse::Waiting;
use crate::servers::Servers;
use crate::session::Shared;
use crate::task::{Asker, Task};

/// An agent that may start others.
pub(crate) struct Caller {
    /// Weak, because the session owns its agents.
    pub(crate) shared: Weak<Shared>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) permissions: Arc<Permissions>,
    pub(crate) servers: Arc<Servers>,
    pub(crate) budget: Arc<Budget>,
    /// Its place among those that run; the main agent needs none.
    pub(crate) seat: Option<Seat>,
    /// `None` for the main agent.
    pub(crate) task: Option<Arc<Task>>,
    /// The types of agents that it may start; `None` is all.
    pub(crate) startable: Option<String>,
    /// What a person said that it works on now; its hooks hear of it.
    pub(crate) prompt: Arc<Mutex<Option<RecordId>>>,
    requests: Mutex<Requests>,
    /// What the agents were not allowed to do whose ends it was told of, until its own run ends.
    denials: Mutex<Vec<PermissionDenial>>,
    /// How much the agents may report that its calls wait for, each, in bytes.
    report_room: AtomicUsize,
}

/// What its requests ask for now, and agents inherit that say nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    pub(crate) model: String,
    pub(crate) effort: Option<Effort>,
    pub(crate) thinking: Thinking,
}

impl Caller {
    #[expect(clippy::too_many_arguments, reason = "each part of an agent once")]
    pub(crate) fn new(
        shared: Weak<Shared>,
        identity: Arc<Identity>,
        permissions: Arc<Permissions>,
        servers: Arc<Servers>,
        budget: Arc<Budget>,
        seat: Option<Seat>,
        task: Option<Arc<Task>>,
        startable: Option<String>,
    ) -> Arc<Self> {
        let (prompt, requests, denials) = (Arc::default(), Mutex::default(), Mutex::default());
        let report_room = AtomicUsize::new(usize::MAX);
        Arc::new(Self {
            shared,
            identity,
            permissions,
            servers,
            budget,
            seat,
            task,
            startable,
            prompt,
            requests,
            denials,
            report_room,
        })
    }

    /// Works on what another agent works on.
    pub(crate) fn share_prompt(&self, other: &Self) {
        let prompt = *other.prompt.lock().unwrap_or_else(PoisonError::into_inner);
        *self.prompt.lock().unwrap_or_else(PoisonError::into_inner) = prompt;
    }

    /// Notes what its requests ask for.
    pub(crate) fn note(&self, settings: &RequestSettings) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if requests.model != settings.model {
            requests.model.clone_from(&settings.model);
        }
        requests.effort = settings.effort;
        requests.thinking = settings.thinking;
    }

    /// Notes how much each agent may report that a call now waits for.
    pub(crate) fn note_room(&self, bytes: usize) {
        self.report_room.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn report_room(&self) -> usize {
        self.report_room.load(Ordering::Relaxed)
    }

    /// Takes note of what an agent was not allowed to do whose end it is told of.
    pub(crate) fn note_denials(&self, denials: Vec<PermissionDenial>) {
        self.denials.lock().unwrap_or_else(PoisonError::into_inner).extend(denials);
    }

    /// What was noted so far.
    pub(crate) fn take_denials(&self) -> Vec<PermissionDenial> {
        std::mem::take(&mut *self.denials.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn requests(&self) -> Requests {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The agent as the one that asks for a run of another; `None` is the main agent.
    pub(crate) fn asker(&self) -> Option<Asker> {
        self.task.as_ref().map(|task| Asker { agent: task.id.clone(), run: task.run().id })
    }

    /// Whether it can look into a file that another agent writes.
    pub(crate) fn can_read_files(&self) -> bool {
        if self.only_directs() {
            return false;
        }
        let view = self.task.as_ref().map(|task| &task.spec.tools);
        let has = |tool| view.is_none_or(|view| view.admits(tool).is_ok());
        (has("Read") && self.permissions.is_offered("Read")) || has("Bash")
    }

    /// Whether it is the main agent of a session in which that one only directs others.
    fn only_directs(&self) -> bool {
        let shared = self.shared.upgrade();
        let rules = shared.as_ref().and_then(|shared| Some(&shared.delegation.get()?.rules));
        self.identity.is_main() && rules.is_some_and(|it| it.mode == SessionMode::Coordinator)
    }

    /// Waits for somebody else: meanwhile the agent's place is another's, and its silence no stall.
    pub(crate) async fn wait<F: Future>(&self, future: F) -> F::Output {
        let _waiting: Option<Waiting<'_>> = self.task.as_ref().map(|task| task.pulse.wait());
        match &self.seat {
            Some(seat) => seat.lend(future).await,
            None => future.await,
        }
    }
}
