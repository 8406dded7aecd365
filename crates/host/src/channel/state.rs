//! Telling a host that the session waits for its answer, where the host wants to know.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use centurion_protocol::sdk::{Event, EventBody, System};
use centurion_protocol::{CurrentSession, SessionId};

use super::HostChannel;

/// Whether the session waits for an answer of the host.
pub(super) struct WaitState {
    /// The session when it began; `None` where the host does not want to know.
    begun: Option<SessionId>,
    /// The session now.
    current: OnceLock<CurrentSession>,
    /// The number of questions that wait.
    questions: AtomicUsize,
}

impl WaitState {
    pub(super) fn new(session: Option<SessionId>) -> Self {
        Self { begun: session, current: OnceLock::new(), questions: AtomicUsize::new(0) }
    }

    pub(super) fn follow(&self, session: CurrentSession) {
        // A channel belongs to one process, which has one session at a time.
        let _ = self.current.set(session);
    }

    /// The session that the host is told about, if it wants to know.
    fn session(&self) -> Option<SessionId> {
        Some(self.current.get().map_or(self.begun?, CurrentSession::id))
    }
}

/// A question that the host has to answer, until it is dropped.
pub(super) struct RequiredAction<'a>(&'a HostChannel);

impl HostChannel {
    pub(super) fn require_action(&self) -> RequiredAction<'_> {
        if self.state.questions.fetch_add(1, Ordering::Relaxed) == 0 {
            self.tell_state("requires_action");
        }
        RequiredAction(self)
    }

    fn tell_state(&self, state: &'static str) {
        if let Some(session) = self.state.session() {
            let body = EventBody::System(System::SessionStateChanged { state });
            let uuid = self.world.record_id();
            self.output.json_line(&Event { body, session_id: session, uuid });
        }
    }
}

impl Drop for RequiredAction<'_> {
    fn drop(&mut self) {
        if self.0.state.questions.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.tell_state("running");
        }
    }
}
