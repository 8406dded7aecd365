//! What the agents of a session share, and the way to reach it from outside.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use centurion_model::Model;
use centurion_permissions::Mode;
use centurion_protocol::sdk::{Event, EventBody, Status, System};
use centurion_protocol::{Block, RecordId, SessionId, TaskId, Thinking, Usage, World};
use indexmap::IndexMap;
use tokio_util::sync::CancellationToken;

use crate::broker::Broker;
use crate::budget::Budget;
use crate::ledger::Ledger;
use crate::permissions::Permissions;
use crate::queue::{Item, Origin, Priority, Queue};

/// Somebody who watches.
pub trait View: Send + Sync {
    fn show(&self, event: &Event);
}

/// What the agents of a session share.
pub(crate) struct Shared {
    pub(crate) id: SessionId,
    pub(crate) world: Arc<dyn World>,
    pub(crate) view: Arc<dyn View>,
    pub(crate) queue: Queue,
    pub(crate) broker: Arc<Broker>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) model: Model,
    pub(crate) ledger: Mutex<Ledger>,
    /// The main agent's.
    pub(crate) permissions: Arc<Permissions>,
    run: Mutex<RunState>,
    /// What runs in the background now, by id: what each is for.
    tasks: Mutex<IndexMap<TaskId, String>>,
    /// A model that was chosen while the session runs, for the next run.
    chosen_model: Mutex<Option<String>>,
    chosen_thinking: Mutex<Option<Thinking>>,
}

#[derive(Default)]
struct RunState {
    /// Cancels the run that is under way.
    current: Option<CancellationToken>,
    /// An interrupt came when a run was due but had not begun.
    interrupts_next: bool,
}

impl Shared {
    pub(crate) fn new(
        id: SessionId,
        world: Arc<dyn World>,
        view: Arc<dyn View>,
        budget: Arc<Budget>,
        model: Model,
        permissions: Arc<Permissions>,
    ) -> Self {
        Self {
            id,
            world,
            view,
            queue: Queue::default(),
            broker: Arc::default(),
            budget,
            model,
            ledger: Mutex::default(),
            permissions,
            run: Mutex::default(),
            tasks: Mutex::default(),
            chosen_model: Mutex::default(),
            chosen_thinking: Mutex::default(),
        }
    }

    /// Shows an event that has no record.
    pub(crate) fn show(&self, body: EventBody) {
        self.show_as(self.world.record_id(), body);
    }

    /// Shows an event under the id of its record.
    pub(crate) fn show_as(&self, uuid: RecordId, body: EventBody) {
        self.view.show(&Event { body, session_id: self.id, uuid });
    }

    pub(crate) fn show_mode(&self, mode: Mode) {
        let permission_mode = mode.to_string();
        self.show(EventBody::System(System::Status(Status { status: None, permission_mode })));
    }

    pub(crate) fn tasks(&self) -> MutexGuard<'_, IndexMap<TaskId, String>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds what requests to a model consumed; returns what it cost.
    pub(crate) fn add_usage(&self, model: &str, usage: &Usage) -> f64 {
        let info = self.model.info(model);
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).add(model, &info, usage)
    }

    /// Marks the beginning of a run; what is returned cancels it.
    pub(super) fn begin_run(&self) -> CancellationToken {
        let cancel = CancellationToken::new();
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut run.interrupts_next) {
            cancel.cancel();
        }
        run.current = Some(cancel.clone());
        cancel
    }

    pub(super) fn end_run(&self) {
        self.run.lock().unwrap_or_else(PoisonError::into_inner).current = None;
    }

    pub(super) fn take_chosen_model(&self) -> Option<String> {
        self.chosen_model.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn take_chosen_thinking(&self) -> Option<Thinking> {
        self.chosen_thinking.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A way to reach a running session from outside.
#[derive(Clone)]
pub struct Handle(pub(super) Arc<Shared>);

impl Handle {
    /// Queues what a person says.
    pub fn submit(&self, id: RecordId, content: Vec<Block>) {
        self.submit_with(id, content, Priority::Next);
    }

    /// Queues what a person says, sooner or later than usual.
    pub fn submit_with(&self, id: RecordId, content: Vec<Block>, priority: Priority) {
        let origin = Origin::Person;
        self.0.queue.push(Item { id, priority, addressee: None, content, origin });
    }

    /// Nothing more will be submitted: the session ends when all is done.
    pub fn close(&self) {
        self.0.queue.close();
    }

    /// Stops the run that is under way or about to begin; history stays valid. Returns what still waits.
    pub fn interrupt(&self) -> Vec<RecordId> {
        let waiting = self.0.queue.pending(None);
        let mut run = self.0.run.lock().unwrap_or_else(PoisonError::into_inner);
        match &run.current {
            Some(current) => current.cancel(),
            None => run.interrupts_next = !waiting.is_empty(),
        }
        waiting.into_iter().map(|item| item.id).collect()
    }

    /// Stops the run that is under way and drops what waits: the session ends.
    pub fn stop(&self) {
        self.0.queue.abandon();
        self.interrupt();
    }

    pub fn mode(&self) -> Mode {
        self.0.permissions.mode()
    }

    /// The full name of a model.
    pub fn resolve_model(&self, name: &str) -> String {
        self.0.model.resolve(name)
    }

    /// Changes how the model thinks from the next run on.
    pub fn set_thinking(&self, thinking: Thinking) {
        *self.0.chosen_thinking.lock().unwrap_or_else(PoisonError::into_inner) = Some(thinking);
    }

    /// Changes the permission mode; `Err` says why not.
    pub fn set_mode(&self, mode: Mode) -> Result<(), &'static str> {
        self.0.permissions.set_mode(mode)?;
        self.0.show_mode(mode);
        Ok(())
    }

    /// Uses another model from the next run on, or the session's own; returns its full name.
    pub fn set_model(&self, name: Option<&str>) -> String {
        let full =
            name.map_or_else(|| self.0.model.name().to_owned(), |name| self.0.model.resolve(name));
        *self.0.chosen_model.lock().unwrap_or_else(PoisonError::into_inner) = Some(full.clone());
        full
    }
}
